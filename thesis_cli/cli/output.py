"""Output of a command: messages and progress bars on standard error, its summary on standard output, and the
file of its result."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import typer

from thesis_cli.base.errors import InputError, censored, without_secrets
from thesis_cli.base.files import check_writable, finite
from thesis_cli.base.progress import Progress, bars, silent
from thesis_cli.commands.core.common import RUNS
from thesis_cli.commands.core.fields import Request, fields_of, files_named, settings_of
from thesis_cli.commands.core.overwrite import (
    FOLDERS,
    check_overwritten,
    command_of,
    holds_release,
    mark,
    record_of,
    written_by,
)
from thesis_cli.commands.core.result import Result, aligned
from thesis_cli.commands.inputs.trained import SUFFIX as TRAINED

logger = logging.getLogger("thesis_cli")

CHECKED = ("out", "init_schema", "model_out")
"""Fields whose files the commands check, or keep and add to."""


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        prefix = "warning: " if record.levelno == logging.WARNING else ""
        return prefix + censored(super().format(record))


def set_messages(quiet: bool, verbose: bool) -> None:
    """Send the messages of the library to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logger.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO)


def bars_unless(quiet: bool) -> Progress:
    """Progress bars; `silent` if standard error is no terminal, or under --quiet.

    Even a hidden bar would create a lock, which a killed process leaves behind.
    """
    return silent if quiet or not sys.stderr.isatty() else bars


def print_json(summary: Mapping[str, object]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(finite(summary), ensure_ascii=False))


def choose(
    given: str | None, request: Request, no_out: bool, suffix: str = ".csv", overwrite: bool = False
) -> Path | None:
    """The file for the result; None under --no-out.

    The default name, under results/runs, has the names of the command, the input and the method. If
    it is taken, and not by a result of the same settings, it gets a number.

    Raises
    ------
    InputError : the file cannot be written, would overwrite an input, or exists and was not written
        with the same settings.
    """
    if no_out:
        if given is not None:
            raise InputError("--out does not go with --no-out", "give one of them")
        return None
    inputs = [Path(text) for text in files_named(request)]
    if given is not None:
        path = Path(given)
        check_writable("--out", path, suffix, suffix in FOLDERS)
        traces = [path.with_suffix(".csv")] if suffix == TRAINED else []
        if {i.resolve() for i in inputs} & {each.resolve() for each in (path, record_of(path), *traces)}:
            raise InputError(f"--out {path} would overwrite the input", "give another --out")
        if not written_by(record_of(path), request):
            check_overwritten("--out", path, overwrite)
            check_overwritten("", record_of(path), overwrite)
        return path
    method = str(settings_of(request).get("method") or "auto")
    parts = [command_of(request).replace(" ", "-"), _stem(inputs), "" if method == "auto" else method]
    base = "-".join(part for part in parts if part)
    for number in count(1):
        path = RUNS / (f"{base}{suffix}" if number == 1 else f"{base}-{number}{suffix}")
        record = record_of(path)
        taken = path.exists() or record.exists()
        if not taken or written_by(record, request) or (overwrite and not holds_release(record)):
            check_writable("--out", path, suffix, suffix in FOLDERS)
            return path
    raise AssertionError


def check_others(request: Request, table: Path | None, figure: Path | None, overwrite: bool) -> None:
    """Refuse to overwrite a figure of other settings, or another file that the request names.

    Raises
    ------
    InputError : naming the file.
    """
    if figure:
        check_writable("--figure", figure, ".png")
        known = mark(request).encode()
        for path in (figure, figure.with_suffix(".pdf")):
            if path.is_file() and known not in path.read_bytes():
                check_overwritten("--figure", path, overwrite)
    if not (table and written_by(record_of(table), request)):
        for name, field in fields_of(type(request)).items():
            path = getattr(request, name)
            if field.about.names == "output" and name not in CHECKED and path is not None:
                if any(Path(text).resolve() == path.resolve() for text in files_named(request)):
                    raise InputError(f"{field.shell_name} {path} would overwrite the input", "give another name")
                check_overwritten(field.shell_name, path, overwrite)


def announce_folders(paths: Iterable[Path | None]) -> None:
    """Say which folders will be made for results, but for the one of results without a name."""
    for folder in dict.fromkeys(path.parent for path in paths if path is not None):
        if folder != RUNS and not folder.exists():
            logger.info("making the folder %s", folder)


def _stem(inputs: Sequence[Path]) -> str:
    """Name of the first input, without folder, suffix, and parameters of a URL."""
    first = next((without_secrets(str(path)).partition("?")[0] for path in inputs), "")
    return "stdin" if first == "-" else Path(first).stem


def converse(result: Any) -> Any:
    """Ask the user what a result asks, on standard error, until it asks nothing more, an empty line or the end
    of the input; nothing is asked if nobody is there.

    Parameters
    ----------
    result : a result with `question` and `answer`.

    Returns
    -------
    The result with all answers.
    """
    while sys.stdin is not None and sys.stdin.isatty() and (inputs := result.question()) is not None:
        typer.echo(f"{result.summary()}\nfor {json.dumps(inputs)[1:-1]}, the output is: ", nl=False, err=True)
        text = sys.stdin.readline()
        if not text.strip():
            break
        try:
            result = result.answer(text)
        except InputError as error:
            logger.error("%s", error)
    return result


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
        typer.echo(aligned(lines))
