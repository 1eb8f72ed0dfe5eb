"""What a command writes: its summary on standard output, and the file of its result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable, finite, to_json
from thesis_cli.commands.core.fields import files_named, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result


def print_json(summary: Mapping[str, object]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(finite(summary), ensure_ascii=False))


def print_table(lines: Sequence[tuple[str, str]]) -> None:
    """Print two aligned columns."""
    width = max((len(name) for name, _ in lines), default=0)
    for name, text in lines:
        typer.echo(f"{name:<{width}}  {text}".rstrip())


def short(path: Path) -> str:
    """A path relative to the working folder, if it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def choose(given: str | None, name: str, request: Request, no_out: bool, suffix: str = ".csv") -> Path | None:
    """The file for the result; None under --no-out.

    The default name, under results/runs, has the names of the command, the input and the method. If
    it is taken by a result of other settings, it gets a number.

    Raises
    ------
    InputError : the file cannot be written, or would overwrite an input.
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
    """Whether a record has the same request, apart from seed, cores and file."""
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
        if result.compilation:
            cost += f", compilation {result.compilation:.1f} s"
        seed = result.settings.get("seed")
        lines = [*result.lines(), ("cost", f"seed {seed}, {cost}" if seed is not None else cost)]
        print_table(lines)
