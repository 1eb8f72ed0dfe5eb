"""Results of commands, and the overwrite check: a command replaces only files that it wrote itself,
with the same settings.

A table is known by the record beside it, a figure by a mark among its metadata. The record of a
private release is never replaced: its noisy vector and its budget would be lost.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.errors import presentation as presentation
from thesis_cli.base.files import finite, to_json, write_atomic
from thesis_cli.commands.core.fields import Request, settings_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


RELEASE = b'"format": "thesis-cli priva'
"""First keys, after a brace, of records of releases and measurements, and of privacy ledgers."""
PLACEHOLDER = "thesis-cli private release, not made yet"
"""Format of the file that holds the name of a record until the record takes its place."""
FOLDERS = {".corpus": "corpus.json"}
"""Suffixes of results that are folders, with the names of their records."""
NAMED = r"`thesis-cli (\S+(?: \S+)?)`"
"""Pattern of the name of a command in the first sentence of its file."""
NOT_SETTINGS = ("jobs", "out")
"""Fields that change no result."""


def record_of(path: Path) -> Path:
    """The record of a result: beside its file, or in its folder."""
    name = FOLDERS.get(path.suffix.lower())
    return path / name if name else path.with_suffix(".json")


def command_of(request: Request) -> str:
    """Name of the command that a request is for, as the shell has it: the file of the request begins with it."""
    module = sys.modules[type(request).__module__]
    named = re.match(f"{NAMED}:", module.__doc__ or "")
    return named[1] if named else module.__name__.rpartition(".")[2]


def written_by(record: Path, request: Request) -> bool:
    """Whether a record is that of the same command with the same settings, whatever its file and
    its number of cores.
    """
    try:
        old = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
        return bool(old["command"] == command_of(request) and _relevant(old["asked"]) == _asked(request))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def mark(request: Request) -> str:
    """Origin of a figure, for its metadata: the command, and a digest of the settings."""
    digest = hashlib.sha256(json.dumps([_asked(request), str(getattr(request, "out", ""))]).encode()).hexdigest()
    return f"thesis-cli {command_of(request)} {digest[:16]}"


def check_overwritten(option: str, path: Path, overwrite: bool) -> None:
    """Refuse a file that exists, and that is not known to be the same command's.

    Raises
    ------
    InputError : the file may not be replaced without `overwrite`, or not at all.
    """
    if not path.is_file():  # what is none is refused for that
        return
    check_release(path)
    if not overwrite:
        problem = f"{option} {path} exists" if option else f"{path} exists"
        raise InputError(
            f"{problem}, and is not from this command with these settings", "give another name, or --overwrite"
        )


def check_release(path: Path) -> None:
    """Refuse to replace the record of a private release.

    Raises
    ------
    InputError : naming the file.
    """
    if holds_release(path):
        problem = "it is the record of a private release, whose budget is spent"
        raise InputError(problem, "give another name; no option replaces it", source=path)


def holds_release(path: Path) -> bool:
    """Whether a file is the record of a private release, of any version, damaged or not."""
    try:
        if not path.is_file():
            return False
        with open(path, "rb") as file:
            return RELEASE in file.read(200)
    except OSError:
        return False


def unfinished(path: Path) -> bool:
    """Whether a file is the placeholder of a release that is being made, or was killed."""
    try:
        return path.is_file() and PLACEHOLDER.encode() in path.read_bytes()[:200]
    except OSError:
        return False


def _asked(request: Request) -> Any:
    return _relevant(json.loads(to_json(settings_of(request))))


def _relevant(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in NOT_SETTINGS}


@dataclass(frozen=True, kw_only=True, repr=False)
class Summary:
    """A result as text and as JSON. Each command has a subclass with fields of its own, a
    dataclass with `repr=False`.

    Attributes
    ----------
    request : what was asked for.
    """

    request: Request

    @property
    def status(self) -> int:
        """Exit status: 0, or 1 if the work failed or gave no answer."""
        return int(bool(self.failures()))

    @presentation
    def failures(self, full: bool = False) -> Sequence[str]:
        """Failures, a line each; with `full`, the whole traceback of each."""
        return ()

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """The summary: names and what they say."""
        return []

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Entries of the JSON summary beside the settings."""
        return {}

    @presentation
    def summary(self, full: bool = False) -> str:
        """The summary as text, two aligned columns; with `full`, tracebacks are whole."""
        return aligned(self.lines())

    @presentation
    def to_dict(self) -> dict[str, Any]:
        """The facts, for JSON: inf and nan become None."""
        found = finite(self.facts())
        assert isinstance(found, dict)
        return found

    @presentation
    def __repr__(self) -> str:
        """The summary, so that an interactive session shows it."""
        return self.summary()

    @presentation
    def _repr_html_(self) -> str:
        """For notebooks."""
        import html

        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(text)}</td></tr>'
            for name, text in self.lines()
        )
        return f"<table>{rows}</table>" if rows else f"<pre>{html.escape(self.summary())}</pre>"


@presentation
def aligned(lines: Sequence[tuple[str, str]]) -> str:
    """Names and what they say, in two columns."""
    width = max((len(name) for name, _ in lines), default=0)
    return "\n".join(f"{name:<{width}}  {text}".rstrip() for name, text in lines)


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(Summary):
    """A result with a table.

    Attributes
    ----------
    columns : the table as plain columns, one observation a row; `save` writes it as CSV.
    table : the same as a DataFrame, made when it is asked for.
    settings : the request as it was carried out, plain values: the seed that was drawn, the method
        that was chosen.
    seconds : the time that the work took, without compilation.
    compilation : seconds of compilation; 0 if all code was compiled before.
    """

    columns: Columns
    settings: Mapping[str, Any]
    seconds: float = 0.0
    compilation: float = 0.0

    @cached_property
    def table(self) -> pd.DataFrame:
        return self.columns.frame()

    @presentation
    def figure(self) -> Figure | None:
        """The figure of the result, in the style of the project; None if it has none."""
        from thesis_cli.base.figures import style

        with style():
            return self.draw()

    @presentation
    def draw(self) -> Figure | None:
        """Draw the figure of `figure`, in commands that have one."""
        return None

    @presentation
    def to_dict(self) -> dict[str, Any]:
        """Settings and facts, for JSON: inf and nan become None."""
        found = finite({**self.settings, **self.facts(), **self._times()})
        assert isinstance(found, dict)
        return found

    @presentation
    def sidecar(self) -> dict[str, Any]:
        """Origin of the result: the command, the request, settings, facts, time, versions,
        machine and commit.
        """
        from thesis_cli.base.provenance import provenance

        return {
            "command": command_of(self.request),
            "asked": settings_of(self.request),
            "settings": self.settings,
            **self.facts(),
            **self._times(),
            **provenance(),
        }

    def _times(self) -> dict[str, float]:
        """Seconds of the work, and of compilation if there was any."""
        times = {"seconds": round(self.seconds, 3)}
        return times | ({"compilation_seconds": round(self.compilation, 3)} if self.compilation else {})

    @presentation
    def save(self, path: str | Path) -> list[Path]:
        """Write the table as CSV and beside it a JSON record of how it came about, with the digest of
        the table: both or, if that fails, neither.

        Raises
        ------
        InputError : the record of a private release has that name.
        OSError : naming the file that could not be written.
        """
        csv = Path(path)
        check_release(csv.with_suffix(".json"))
        table = self.columns.csv()
        record = {**self.sidecar(), "sha256": hashlib.sha256(table.encode()).hexdigest()}
        files = {csv: table, csv.with_suffix(".json"): to_json(record)}
        write_atomic(files)
        return list(files)

    @presentation
    def save_figure(self, path: str | Path) -> list[Path]:
        """Draw the figure: PNG and PDF, by the name of `path` without its suffix.

        Raises
        ------
        InputError : the result has no figure.
        """
        from thesis_cli.base.figures import save

        return save(self._drawn, Path(path).with_suffix(""), mark(self.request))

    def _drawn(self) -> Figure:
        figure = self.figure()
        if figure is None:
            raise InputError("--figure has nothing to draw", "this result has no figure")
        return figure
