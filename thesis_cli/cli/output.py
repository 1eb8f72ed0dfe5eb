"""What a command leaves behind: a table with a record beside it, and a summary."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable, finite, to_json, write_atomic
from thesis_cli.base.provenance import provenance
from thesis_cli.commands.core.fields import files_named, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats, Ints


@contextmanager
def naming(model: str) -> Iterator[None]:
    """Complaints about the model that do not name its file yet do so."""
    try:
        yield
    except InputError as error:
        raise error.at(model) from error


def out_file(out: Path | None, command: str, model: str, *others: str | Path | None) -> Path:
    """Where a command's result goes, refused before the work if it cannot be written or is an input."""
    path = out or Path("results/runs") / f"{command}-{'stdin' if model == '-' else Path(model).stem}.csv"
    inputs = [Path(model), *(Path(o) for o in others if o)]
    check_writable("--out", path, ".csv")
    if any(i.resolve() in (path.resolve(), path.with_suffix(".json").resolve()) for i in inputs):
        raise InputError(f"--out {path} would overwrite the input", "another --out is wanted")
    return path


def write_table(
    path: Path, rows: Sequence[Mapping[str, object]], settings: Mapping[str, object], seconds: float
) -> None:
    """A tidy CSV and beside it a JSON record of how it came about: both or, when that fails, neither."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    _write(path, text.getvalue(), settings, seconds)


def write_array(
    path: Path,
    names: Sequence[str],
    rows: Ints | Floats,
    settings: Mapping[str, object],
    seconds: float,
    form: str = "%d",
) -> None:
    """`write_table` of a matrix of numbers of one printed form, with the names of its columns."""
    import numpy as np

    text = io.StringIO(newline="\n")
    np.savetxt(text, rows, fmt=form, delimiter=",", header=",".join(names), comments="")
    _write(path, text.getvalue(), settings, seconds)


def _write(path: Path, text: str, settings: Mapping[str, object], seconds: float) -> None:
    record = {"settings": settings, "seconds": round(seconds, 3), **provenance()}
    write_atomic({path: text, path.with_suffix(".json"): to_json(record)})


def print_json(summary: Mapping[str, object]) -> None:
    typer.echo(json.dumps(finite(summary), ensure_ascii=False))


def print_table(lines: Sequence[tuple[str, str]]) -> None:
    """Two aligned columns."""
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        typer.echo(f"{name:<{width}}  {text}".rstrip())


def short(path: Path) -> str:
    """The path from here, where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def choose(given: str | None, name: str, request: Request, no_out: bool, suffix: str = ".csv") -> Path | None:
    """Where the result goes, refused before the work if it cannot be written or is an input.

    By default it goes under results/runs, with the names of the command, the method and the input; a table of
    other settings is never overwritten: the name then gets a number.
    """
    if no_out:
        if given is not None:
            raise InputError("--out does not go with --no-out", "give one of them")
        return None
    inputs = [Path(text) for text in files_named(request)]
    if given is not None:
        path = Path(given)
        check_writable("--out", path, suffix)
        if any(i.resolve() in (path.resolve(), path.with_suffix(".json").resolve()) for i in inputs):
            raise InputError(f"--out {path} would overwrite the input", "give another --out")
        return path
    settings = settings_of(request)
    method = str(settings.get("method") or "auto")
    parts = [name, _stem(inputs), "" if method == "auto" else method]
    base = "-".join(part for part in parts if part)
    for number in count(1):
        path = Path("results/runs") / (f"{base}{suffix}" if number == 1 else f"{base}-{number}{suffix}")
        if not path.exists() or _same_settings(path.with_suffix(".json"), settings):
            check_writable("--out", path, suffix)
            return path
    raise AssertionError


def _stem(inputs: Sequence[Path]) -> str:
    first = next(iter(inputs), None)
    return "" if first is None else "stdin" if str(first) == "-" else first.stem


def _same_settings(record: Path, settings: Mapping[str, object]) -> bool:
    """Whether a record is of the same request, whatever its seed and its cores."""
    try:
        old = json.loads(record.read_text())["asked"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    new = json.loads(to_json(settings))
    return isinstance(old, dict) and all(old.get(k) == v for k, v in new.items() if k not in ("seed", "jobs", "out"))


def show(result: Result, out: Path | None, as_json: bool) -> None:
    """Print a summary, as text or as JSON."""
    if as_json:
        where = {"out": str(out)} if out else {}
        typer.echo(json.dumps({**result.to_dict(), **where}, ensure_ascii=False))
    else:
        cost = f"{result.seconds:.3f} s"
        seed = result.settings.get("seed")
        lines = [*result.lines(), ("cost", f"seed {seed}, {cost}" if seed is not None else cost)]
        print_table(lines)
