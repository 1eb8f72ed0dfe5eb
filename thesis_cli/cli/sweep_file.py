"""A sweep: one command over a grid of its own options, written down in a TOML file.

    command = "spin-glass"            # any of COMMANDS
    seeds = 20                        # 0 to 19, or a list
    out = "glasses.csv"
    [options]                         # the same for every task
    samples = 100
    [grid]                            # or [[grid]], several times: one grid after the other
    alpha = [0, -0.1]
    coupling = { from = 0.1, to = 2.0, count = 20 }     # log = true: geometrically
    [slurm]
    partition = "short"

Options and arguments have their names on the command line, without the dashes in front. A list under [options] is an
option that is repeated, or several arguments. `{ files = "models/*.uai" }` lists files, by name.
"""

from __future__ import annotations

import glob
import itertools
import math
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.cli.command_work import (
    COMMANDS,
    RESERVED,
    arguments,
    click_command,
    is_flag,
    nearest,
    normal,
    option_named,
    options_of,
    shown,
    takes_many,
    texts_of,
)
from thesis_cli.reproduction.task_file import Entry

__all__ = ["COMMANDS", "Sweep", "arguments", "read_sweep"]

KEYS = ("command", "seeds", "out", "options", "grid", "slurm")
MOST_TASKS = 10**9
MOST_VALUES = 10**6
"""Of one option."""


@dataclass(frozen=True)
class Sweep:
    """The tasks of a sweep, and what else its file says.

    Attributes
    ----------
    path : the file. Relative paths in it, also those that options name, are meant from its folder.
    command : one of `COMMANDS`.
    fixed : values of options that all tasks share.
    grids : values of each other option; the tasks of a grid are all combinations.
    seeds : of each combination; None if the command takes none.
    out : where the table of all tasks goes.
    slurm : as it stands there.
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

    def entries(self) -> Iterator[Entry]:
        """The tasks, one by one: grid after grid, the last option of a grid faster than those before, seeds fastest."""
        for grid in self.grids:
            for values in itertools.product(*grid.values()):
                parameters = {**self.fixed, **dict(zip(grid, values, strict=True))}
                for seed in (None,) if self.seeds is None else self.seeds:
                    yield Entry(self.command, parameters, seed)


def read_sweep(path: Path) -> Sweep:
    """Read a sweep. Each value of each option is parsed as the command would parse it; no task is run.

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
        raise InputError(f"cannot be read ({(error.strerror or '').lower()})", "a TOML file is wanted") from None
    except UnicodeDecodeError:
        raise InputError("not text", "a TOML file in UTF-8 is wanted") from None
    except (ValueError, RecursionError) as error:
        message, _, place = str(error).partition(" (at line ")
        line = re.match(r"\d+", place)
        raise InputError(f"no TOML: {message}", source=path, line=int(line[0]) if line else None) from None


def _sweep(path: Path, content: dict[str, Any]) -> Sweep:
    if "command" not in content:
        _check_keys(content, KEYS)
        raise InputError("no command", f"command = one of {', '.join(COMMANDS)} is wanted")
    command = content["command"]
    if not isinstance(command, str):
        raise InputError(f"command = {shown(command)}", f"one of {', '.join(COMMANDS)} is wanted")
    with _at("command"):
        names = options_of(command)
    for key in content:
        if key not in KEYS and normal(key) in names.keys() - RESERVED.keys():
            raise InputError(f"{key} stands at the top", "options go under [options] or [grid]")
    _check_keys(content, KEYS)

    folder, parser = path.absolute().parent, _Parser(command)
    fixed: dict[str, Any] = {}
    for key, value in _table("options", content.get("options", {})).items():
        with _at(f"options.{key}"):
            name = parser.name(key, fixed)
            parser.parse(name, value)
            fixed[name] = value
    grids = _grids(content.get("grid", {}), fixed, parser, folder)
    seeds = _seeds(content.get("seeds"), "seed" in names)
    if (count := _count(grids, seeds)) > MOST_TASKS:
        raise InputError(f"{count:,} tasks", f"at most {MOST_TASKS:,} are wanted")
    slurm = _table("slurm", content.get("slurm", {}))
    return Sweep(path, command, fixed, grids, seeds, _out(content.get("out"), folder), slurm)


def _grids(given: Any, fixed: Mapping[str, Any], parser: _Parser, folder: Path) -> list[dict[str, Sequence[Any]]]:
    """A grid, or several that have no task in common."""
    tables = given if isinstance(given, list) else [given]
    if not tables:
        raise InputError("grid: an empty list", "a table of options is wanted")
    grids: list[dict[str, Sequence[Any]]] = []
    parsed: list[dict[str, set[str]]] = []
    for number, table in enumerate(tables, 1):
        where = f"grid[{number}]" if isinstance(given, list) else "grid"
        grid, texts = dict[str, Sequence[Any]](), dict[str, set[str]]()
        for key, listed in _table(where, table).items():
            with _at(f"{where}.{key}"):
                name = parser.name(key, {**fixed, **grid})
                grid[name] = _values(listed, folder)
                texts[name] = parser.parse_all(name, grid[name])
        for other, earlier in enumerate(parsed, 1):
            if earlier.keys() == texts.keys() and all(earlier[name] & texts[name] for name in texts):
                raise InputError(f"grid[{other}] and grid[{number}] have a task in common", "each is wanted once")
        parser.check_complete({**fixed, **{name: values[0] for name, values in grid.items()}})
        grids.append(grid)
        parsed.append(texts)
    return grids


class _Parser:
    """What a command makes of the values of its options."""

    def __init__(self, command: str) -> None:
        self._command = click_command(command)
        self._name = command
        self._context = self._command.make_context(command, [], resilient_parsing=True)

    def name(self, key: str, others: Iterable[str]) -> str:
        """Of an option that is not among others yet."""
        name, _ = option_named(self._name, key)
        if name in others:
            raise InputError("stands there twice", "under [options] or in a grid, once, is wanted")
        return name

    def parse(self, name: str, value: Any) -> str:
        """Text that is the same for values that are the same to the command."""
        from thesis_cli.cli.app import UsageError

        option = options_of(self._name)[name]
        texts = texts_of(option, value)
        if is_flag(option):
            return str(value)
        try:
            return repr(option.process_value(self._context, texts if takes_many(option) else texts[0]))
        except UsageError as error:
            why = (getattr(error, "message", "") or str(error)).removeprefix("Value error, ").rstrip(".")
            raise InputError(f"{shown(value)}: {why}") from None

    def parse_all(self, name: str, values: Sequence[Any]) -> set[str]:
        """Of all values of a grid; no two may be the same."""
        found: set[str] = set()
        for value in values:
            text = self.parse(name, value)
            if text in found:
                raise InputError(f"{shown(value)} stands there twice", "once is wanted")
            found.add(text)
        return found

    def check_complete(self, parameters: Mapping[str, Any]) -> None:
        """Refuse a task that lacks what the command wants."""
        from thesis_cli.cli.app import UsageError

        try:
            self._command.make_context(self._name, arguments(self._name, parameters, None)[1:])
        except UsageError as error:
            why = error.format_message().rstrip(".")  # type: ignore[attr-defined]
            raise InputError(f"options: {why}", f"see thesis-cli {self._name} --help") from None


def _values(listed: Any, folder: Path) -> Sequence[Any]:
    """Values of an option of a grid: a list, or what a table stands for."""
    if isinstance(listed, dict):
        kind = ("files",) if "files" in listed else ("from", "to", "count", "log")
        _check_keys(listed, kind)
        return _files(listed["files"], folder) if "files" in listed else _spaced(**{"log": False, **listed})
    if not isinstance(listed, list):
        raise InputError(f"{shown(listed)} alone", "a list of values is wanted; one value goes under [options]")
    if not listed:
        raise InputError("an empty list", "one value or more is wanted")
    return listed


def _files(pattern: Any, folder: Path) -> list[str]:
    """Files that a pattern fits, by name."""
    if not isinstance(pattern, str):
        raise InputError(f"files = {shown(pattern)}", 'a pattern is wanted, such as "models/*.uai"')
    found = sorted(name for name in glob.glob(pattern, root_dir=folder, recursive=True) if (folder / name).is_file())
    if not found:
        raise InputError(f"no file fits {pattern}", f"a pattern of files in {folder} is wanted")
    return found


def _spaced(**given: Any) -> list[float] | list[int]:
    """Numbers from one to another, both included, of at most 12 digits; whole ones where the ends are."""
    for key in ("from", "to", "count"):
        if key not in given:
            raise InputError(f"no {key}", "from, to and count are wanted")
        number = given[key]
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= sys.float_info.max:
            raise InputError(f"{key} = {shown(number)}", "a finite number is wanted")
    low, high, count, log = (given[key] for key in ("from", "to", "count", "log"))
    if not isinstance(count, int) or not 1 <= count <= MOST_VALUES:
        raise InputError(f"count = {count}", f"a whole number from 1 to {MOST_VALUES:,} is wanted")
    if not isinstance(log, bool):
        raise InputError(f"log = {shown(log)}", "true or false is wanted")
    if log and min(low, high) <= 0:
        raise InputError(f"log = true from {low} to {high}", "numbers above 0 are wanted")
    first, last = Fraction(str(low)), Fraction(str(high))  # decimals as they are written
    shares = (Fraction(k, max(1, count - 1)) for k in range(count))
    spaced = (low ** float(1 - t) * high ** float(t) if log else float(first + t * (last - first)) for t in shares)
    numbers = [float(f"{x:.12g}") for x in spaced]
    whole = isinstance(low, int) and isinstance(high, int) and all(map(float.is_integer, numbers))
    return [int(x) for x in numbers] if whole else numbers


def _seeds(given: Any, taken: bool) -> Sequence[int] | None:
    """Without any, a command that takes one has 0: a task is to be repeatable."""
    if not taken:
        if given is not None:
            raise InputError("seeds: the command has no --seed", "leave them out")
        return None
    if given is None:
        return range(1)
    if isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MOST_TASKS:
        return range(given)
    if not isinstance(given, list) or not given:
        raise InputError(f"seeds = {shown(given)}", f"how many, 1 to {MOST_TASKS:,}, or a list of seeds is wanted")
    for seed in given:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"seeds: {shown(seed)}", "whole numbers from 0 are wanted")
    twice = next((seed for seed, following in itertools.pairwise(sorted(given)) if seed == following), None)
    if twice is not None:
        raise InputError(f"seeds: {twice} stands there twice", "once is wanted")
    return tuple(given)


def _out(given: Any, folder: Path) -> Path | None:
    if given is None:
        return None
    if not isinstance(given, str) or not given.lower().endswith(".csv"):
        raise InputError(f"out = {shown(given)}", "a file name that ends in .csv is wanted")
    return folder / given


def _count(grids: Iterable[Mapping[str, Sequence[Any]]], seeds: Sequence[int] | None) -> int:
    return sum(math.prod(map(len, grid.values())) for grid in grids) * (1 if seeds is None else len(seeds))


def _table(name: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InputError(f"{name} is no table", f"[{name}] is wanted")
    return found


def _check_keys(found: Iterable[str], known: Sequence[str]) -> None:
    for key in found:
        if key not in known:
            raise InputError(f"unknown key {key!r}", nearest(key, known))


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Complaints name the key they are about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error.problem}", error.remedy) from None
