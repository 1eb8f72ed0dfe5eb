"""A sweep: one command over a grid of its own options, read from a TOML file; and the folder of its results.

    command = "spin-glass"
    seeds = 20                        # 0 to 19, or a list
    out = "glasses.csv"
    [options]                         # the same for every task
    samples = 100
    [grid]                            # or [[grid]], several times: one grid after the other
    alpha = [0, -0.1]
    coupling = { from = 0.1, to = 2.0, count = 20 }     # log = true: spaced geometrically
    [slurm]
    partition = "short"

Options and arguments have their names on the command line, without the dashes in front. A list
under [options] repeats the option, or gives several arguments. `{ files = "models/*.uai" }` lists
files by name.
"""

from __future__ import annotations

import glob
import itertools
import json
import math
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from thesis_cli.base import VERSION
from thesis_cli.base.errors import InputError, nearest
from thesis_cli.base.files import to_json, write_atomic
from thesis_cli.commands.core.command import Command, command_named, entries
from thesis_cli.reproduction.command_work import (
    coerced,
    field_named,
    normal,
    plain,
    request_of,
    shown,
    swept_command,
)
from thesis_cli.reproduction.tasks import TaskSpec

LAYOUT = 1
"""Version of the files in the folder of a sweep's results; raise it if they change."""
MOST_VALUES = 10**6
"""Values of one option."""


def grid_values(given: Any, folder: Path) -> Sequence[Any]:
    """The values that a list, or a table with `files` or with `from`, `to` and `count`, stands for.

    Raises
    ------
    InputError : it is neither, or stands for none.
    """
    if isinstance(given, dict):
        kind = ("files",) if "files" in given else ("from", "to", "count", "log")
        check_keys(given, kind)
        return _files(given["files"], folder) if "files" in given else _spaced(**{"log": False, **given})
    if not isinstance(given, list):
        raise InputError(f"{shown(given)} is no list", "give a list of values; one value goes under [options]")
    if not given:
        raise InputError("an empty list", "give one value or more")
    return given


def check_keys(found: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a table with other keys.

    Raises
    ------
    InputError : naming the key, and the known one that is nearest.
    """
    for key in found:
        if key not in known:
            raise InputError(f"unknown key {key!r}", nearest(key, known))


def _files(pattern: Any, folder: Path) -> list[str]:
    """Files that fit a pattern, by name."""
    if not isinstance(pattern, str):
        raise InputError(f"files is {shown(pattern)}", 'it must be a pattern such as "models/*.uai"')
    found = sorted(name for name in glob.glob(pattern, root_dir=folder, recursive=True) if (folder / name).is_file())
    if not found:
        raise InputError(f"no file fits {pattern}", f"give a pattern of files in {folder}")
    return found


def _spaced(**given: Any) -> list[float] | list[int]:
    """Numbers from one to another, ends included, of at most 12 digits; whole if the ends are."""
    for key in ("from", "to", "count"):
        if key not in given:
            raise InputError(f"no {key}", "give from, to and count")
        number = given[key]
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= sys.float_info.max:
            raise InputError(f"{key} is {shown(number)}", "it must be a finite number")
    low, high, count, log = (given[key] for key in ("from", "to", "count", "log"))
    if not isinstance(count, int) or not 1 <= count <= MOST_VALUES:
        raise InputError(f"count is {count}", f"it must be a whole number from 1 to {MOST_VALUES:,}")
    if not isinstance(log, bool):
        raise InputError(f"log is {shown(log)}", "it must be true or false")
    if log and min(low, high) <= 0:
        raise InputError(f"log is true from {low} to {high}", "both ends must be above 0")
    first, last = Fraction(str(low)), Fraction(str(high))  # decimals as they are written
    shares = (Fraction(k, max(1, count - 1)) for k in range(count))
    spaced = (low ** float(1 - t) * high ** float(t) if log else float(first + t * (last - first)) for t in shares)
    numbers = [float(f"{x:.12g}") for x in spaced]
    whole = isinstance(low, int) and isinstance(high, int) and all(map(float.is_integer, numbers))
    return [int(x) for x in numbers] if whole else numbers


KEYS = ("command", "seeds", "out", "options", "grid", "slurm")
MOST_TASKS = 10**9
MOST_CHECKED = 10_000
"""Combinations that are checked before anything runs; of larger grids only the first is."""


@dataclass(frozen=True)
class Sweep:
    """The tasks of a sweep, and the rest of its file.

    Attributes
    ----------
    path : the file; relative paths in it start from its folder.
    command : the name of the command.
    fixed : values of options that all tasks share.
    grids : values of each other option; the tasks of a grid are all combinations.
    seeds : seeds of each combination; None if the command takes none.
    out : file for the table of all tasks.
    slurm : the table of that name, as it stands in the file.
    """

    path: Path
    command: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    grids: Sequence[Mapping[str, Sequence[Any]]] = ({},)
    seeds: Sequence[int] | None = None
    out: Path | None = None
    slurm: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.path.absolute().parent

    def __len__(self) -> int:
        return _count(self.grids, self.seeds)

    def entries(self) -> Iterator[TaskSpec]:
        """The tasks: in a grid the last option varies fastest, and the seed faster still."""
        for grid in self.grids:
            for values in itertools.product(*grid.values()):
                parameters = {**self.fixed, **dict(zip(grid, values, strict=True))}
                for seed in (None,) if self.seeds is None else self.seeds:
                    yield TaskSpec(self.command, parameters, seed)


def read_sweep(path: Path) -> Sweep:
    """Read a sweep and check every value of every option; no task is run.

    Raises
    ------
    InputError : naming the file, the key, and what would be right.
    """
    try:
        return _sweep(path, _toml(path))
    except InputError as error:
        raise error.at(path) from None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot be read ({(error.strerror or '').lower()})", "give a TOML file") from None
    except UnicodeDecodeError:
        raise InputError("not text", "give a TOML file in UTF-8") from None
    except (ValueError, RecursionError) as error:
        message, _, place = str(error).partition(" (at line ")
        line = re.match(r"\d+", place)
        raise InputError(f"not TOML: {message}", source=path, line=int(line[0]) if line else None) from None


def _sweep(path: Path, content: dict[str, Any]) -> Sweep:
    if "command" not in content:
        check_keys(content, KEYS)
        raise InputError("no command", f"command must be one of {_swept_names()}")
    name = content["command"]
    if not isinstance(name, str):
        raise InputError(f"command is {shown(name)}", f"it must be one of {_swept_names()}")
    with _at("command"):
        command = swept_command(name)
    for key in content:
        if key not in KEYS and normal(key) in command.fields and normal(key) != "seed":
            raise InputError(f"{key} is at the top", "options go under [options] or [grid]")
    check_keys(content, KEYS)
    folder = path.absolute().parent
    fixed: dict[str, Any] = {}
    for key, value in _table("options", content.get("options", {})).items():
        with _at(f"options.{key}"):
            option = _new_name(command, key, fixed)
            coerced(command.fields[option], plain(value))
            fixed[option] = plain(value)
    grids = _grids(content.get("grid", {}), fixed, command, folder)
    seeds = _seeds(content.get("seeds"), "seed" in command.fields)
    if (count := _count(grids, seeds)) > MOST_TASKS:
        raise InputError(f"{count:,} tasks", f"a sweep has at most {MOST_TASKS:,}")
    slurm = _table("slurm", content.get("slurm", {}))
    return Sweep(path, name, fixed, grids, seeds, _out(content.get("out"), folder), slurm)


def _swept_names() -> str:
    """The commands that can be swept."""
    return ", ".join(name for name in entries() if not command_named(name).not_swept)


def _new_name(command: Command, key: str, others: Iterable[str]) -> str:
    """The name of an option that is not among others yet."""
    name = field_named(command, key).name
    if name in others:
        raise InputError("given twice", "give it once, under [options] or in a grid")
    return name


def _grids(given: Any, fixed: Mapping[str, Any], command: Command, folder: Path) -> list[dict[str, Sequence[Any]]]:
    """One grid, or several that have no task in common."""
    tables = given if isinstance(given, list) else [given]
    if not tables:
        raise InputError("grid is an empty list", "it must be a table of options")
    grids: list[dict[str, Sequence[Any]]] = []
    parsed: list[dict[str, set[str]]] = []
    for number, table in enumerate(tables, 1):
        where = f"grid[{number}]" if isinstance(given, list) else "grid"
        grid, texts = dict[str, Sequence[Any]](), dict[str, set[str]]()
        for key, listed in _table(where, table).items():
            with _at(f"{where}.{key}"):
                name = _new_name(command, key, {**fixed, **grid})
                grid[name] = plain(grid_values(listed, folder))
                texts[name] = _different(command, name, grid[name])
        for other, earlier in enumerate(parsed, 1):
            if earlier.keys() == texts.keys() and all(earlier[name] & texts[name] for name in texts):
                raise InputError(f"grid[{other}] and grid[{number}] have a task in common", "list each task once")
        with _at(where if grid else "options"):
            _check_combinations(command, fixed, grid, folder)
        grids.append(grid)
        parsed.append(texts)
    return grids


def _different(command: Command, name: str, values: Sequence[Any]) -> set[str]:
    """The values of a grid as the command reads them; no two may be the same."""
    found: set[str] = set()
    for value in values:
        text = repr(coerced(command.fields[name], value))
        if text in found:
            raise InputError(f"{shown(value)} is listed twice", "list each value once")
        found.add(text)
    return found


def _check_combinations(
    command: Command, fixed: Mapping[str, Any], grid: Mapping[str, Sequence[Any]], folder: Path
) -> None:
    """Refuse a grid with a task that the command refuses."""
    count = math.prod(map(len, grid.values()))
    for values in itertools.islice(itertools.product(*grid.values()), count if count <= MOST_CHECKED else 1):
        request_of(command, {**fixed, **dict(zip(grid, values, strict=True))}, None, folder)


def _seeds(given: Any, taken: bool) -> Sequence[int] | None:
    """The seeds of a sweep: 0 alone if none are given, as a task must be repeatable."""
    if not taken:
        if given is not None:
            raise InputError("seeds: the command has no --seed", "leave them out")
        return None
    if given is None:
        return range(1)
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MOST_TASKS:
        return range(given)
    if not isinstance(given, list) or not given:
        raise InputError(f"seeds is {shown(given)}", f"give a number from 1 to {MOST_TASKS:,}, or a list of seeds")
    for seed in given:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"seeds: {shown(seed)}", "a seed must be a whole number, 0 or more")
    twice = next((seed for seed, following in itertools.pairwise(sorted(given)) if seed == following), None)
    if twice is not None:
        raise InputError(f"seeds: {twice} is listed twice", "list each seed once")
    return tuple(given)


def _out(given: Any, folder: Path) -> Path | None:
    if given is None:
        return None
    if not isinstance(given, str) or not given.lower().endswith(".csv"):
        raise InputError(f"out is {shown(given)}", "it must be a file name that ends in .csv")
    return folder / given


def _count(grids: Iterable[Mapping[str, Sequence[Any]]], seeds: Sequence[int] | None) -> int:
    return sum(math.prod(map(len, grid.values())) for grid in grids) * (1 if seeds is None else len(seeds))


def _table(name: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InputError(f"{name} is not a table", f"write [{name}]")
    return found


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Add the key to errors."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error.problem}", error.remedy) from None


@dataclass(frozen=True)
class RunFolder:
    """The folder of one sweep's results, recorded in `run.json`.

    Attributes
    ----------
    path : the folder; its tasks are in `tasks.json`.
    command : the command of its tasks.
    base : folder that relative paths among parameters start from.
    table : file of the merged table.
    cores : cores that each task uses.
    sweep : file of the sweep; empty in records of earlier versions.
    """

    path: Path
    command: str
    base: Path
    table: Path
    cores: int = 1
    sweep: str = ""

    @property
    def tasks(self) -> Path:
        return self.path / "tasks.json"

    def save(self, overwrite: bool = False) -> bool:
        """Create the folder, or take over one of the same layout and sweep; of any, to overwrite it.

        Returns
        -------
        Whether it has the results of another sweep.

        Raises
        ------
        InputError : something else has that name.
        """
        other = False
        if (self.path / "run.json").exists():
            other = not self._is_of(RunFolder.load(self.path))
            if other and not overwrite:
                self.check_sweep()
        elif self.path.exists() and not (self.path.is_dir() and all(n.startswith(".") for n in os.listdir(self.path))):
            raise InputError("exists, and is no folder of a sweep", "give another --out", source=self.path)
        what = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        del what["path"]
        write_atomic({self.path / "run.json": to_json({"layout": LAYOUT, "version": VERSION, **what})})
        return other

    def _is_of(self, found: RunFolder) -> bool:
        """Whether a folder is of the same sweep."""
        return found.sweep == self.sweep if found.sweep else found.base == self.base

    def check_sweep(self) -> None:
        """Refuse the results of another sweep's file.

        Raises
        ------
        InputError : naming that file, or its folder.
        """
        found = RunFolder.load(self.path)
        if not self._is_of(found):
            whose = found.sweep or f"a sweep in {found.base}"
            raise InputError(f"has the results of {whose}", "give another --out, or --overwrite", source=self.path)

    @classmethod
    def load(cls, path: Path) -> RunFolder:
        """Read the record of a folder.

        Raises
        ------
        InputError : the folder has none, or one of another version of this program.
        """
        file = path / "run.json"
        try:
            what = json.loads(file.read_text())
            layout, version = what.pop("layout"), what.pop("version")
            if layout != LAYOUT:
                raise InputError(
                    f"written by thesis-cli {version}, whose folders have another layout ({layout}, not {LAYOUT})",
                    "use that version, or give another --out",
                    source=path,
                )
            base, table, cores = Path(what["base"]), Path(what["table"]), int(what["cores"])
            return cls(path.absolute(), what["command"], base, table, cores, str(what.get("sweep", "")))
        except InputError:
            raise
        except (FileNotFoundError, NotADirectoryError):
            raise InputError("no folder of a sweep (it has no run.json)", source=path) from None
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            raise InputError(f"damaged ({error!r})", "remove the folder, or give another --out", source=file) from None
