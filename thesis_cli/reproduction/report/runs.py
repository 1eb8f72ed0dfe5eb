"""A page with several of a user's own runs: figures, settings, and their tables."""

from __future__ import annotations

import base64
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thesis_cli.base.errors import InputError, counted
from thesis_cli.commands.core.command import command_named, entries
from thesis_cli.commands.core.fields import plain
from thesis_cli.commands.core.result import NOT_SETTINGS
from thesis_cli.reproduction.command_work import shell_words
from thesis_cli.reproduction.plots.kinds import picture
from thesis_cli.reproduction.plots.run import SWEEP, Run
from thesis_cli.reproduction.plots.sweeps import ChosenColumns
from thesis_cli.reproduction.report.page import rendered

GENERATOR = "thesis-cli report"
"""Generator that the page names."""
MOST_ROWS, MOST_COLUMNS = 100, 40
"""Rows and columns of a table that the page shows."""
AHEAD = ("order", "result_order", "target", "method", "kind", "result_kind")
"""Columns of estimates that come before their numbers."""
OPEN = 20
"""Rows of the longest table that is shown at once."""


@dataclass(frozen=True)
class Column:
    """Heading of a column, and whether it has numbers, which are set to the right."""

    name: str
    number: bool


@dataclass(frozen=True)
class ShownRun:
    """Section of the page on one run.

    Attributes
    ----------
    picture : the figure as a data URI; empty if none suits.
    caption : where the figure comes from, or why there is none.
    shown : how many of the rows are shown.
    long : whether a reader has to open the table.
    constant : columns that are the same in all rows, with their value.
    """

    name: str
    origin: str
    faults: tuple[str, ...]
    picture: str
    caption: str
    shown: str
    long: bool
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    constant: Mapping[str, str]
    facts: Mapping[str, str]


def page(runs: Sequence[Run]) -> tuple[str, list[str]]:
    """The page, and what is missing or does not fit, one line each."""
    shown = [show(run) for run in runs]
    text = rendered("runs.html.j2", runs=shown, generator=GENERATOR)
    return text.lstrip(), [fault for run in shown for fault in run.faults]


def show(run: Run) -> ShownRun:
    """Section of the page on one run."""
    faults = list(run.faults)
    try:
        drawn = base64.b64encode(picture(run, ChosenColumns(), ("png",))["png"]).decode()
        uri, caption = f"data:image/png;base64,{drawn}", f"Drawn by thesis-cli plot {run.path.name}."
    except InputError as error:
        uri, caption = "", f"No figure: {error.problem}."
        faults.append(f"{run.path.name}: {error.problem}")
    table = run.table
    same = {str(name): run.texts(str(name))[0] for name in table if len(table) > 1 and _constant(table[name])}
    names = _ordered([str(name) for name in table if str(name) not in same], run.parameters)[:MOST_COLUMNS]
    count, cut = len(table), max(0, table.shape[1] - len(same) - MOST_COLUMNS)
    rows = f"the first {MOST_ROWS} of {count:,} rows" if count > MOST_ROWS else counted(count, "row")
    top = run.table.head(MOST_ROWS)
    columns = [Run(run.path, top, run.record).texts(name) for name in names]
    return ShownRun(
        name=run.path.stem,
        origin=_origin(run),
        faults=tuple(faults),
        picture=uri,
        caption=caption,
        shown=f"{run.path.name}: {rows}" + f"; {counted(cut, 'further column')} left out" * bool(cut),
        long=count > OPEN,
        columns=tuple(Column(name, table[name].dtype.kind in "iuf") for name in names),
        rows=tuple(zip(*columns, strict=True)),
        constant={name: text for name, text in same.items() if text},
        facts=_facts(run),
    )


def _ordered(names: Sequence[str], parameters: Sequence[str]) -> list[str]:
    """Parameters, then what a row is of, then its numbers."""
    first = [*parameters, *(name for name in AHEAD if name not in parameters)]
    return sorted(names, key=lambda name: first.index(name) if name in first else len(first))


def _constant(column: Any) -> bool:
    return bool(column.nunique(dropna=False) == 1)


def _origin(run: Run) -> str:
    """Command, and the first line of what it was asked for."""
    if run.kind == SWEEP:
        tasks, finished = run.record.get("tasks"), run.record.get("finished")
        return f"sweep of {run.command}, {finished} of {tasks} tasks"
    model = next(
        (str(run.settings[name]) for name in ("model", "release", "tasks", "size") if run.settings.get(name)), ""
    )
    return " ".join(filter(None, [run.command or "unknown command", model]))


def command_line(run: Run) -> str:
    """The command that gives the table again; empty if the record does not say what was asked for."""
    asked = run.record.get("asked")
    if not isinstance(asked, Mapping) or run.command not in entries():
        return ""
    fields = command_named(run.command).fields
    kept = {
        name: [math.inf if one is None else one for one in value] if isinstance(value, list) else value
        for name, value in {**asked, "seed": run.settings.get("seed")}.items()
        if name in fields
        and name not in NOT_SETTINGS
        and fields[name].about.names != "output"
        and value not in (None, plain(fields[name].default))
    }
    seed = kept.pop("seed", None)
    try:
        words = shell_words(run.command, kept, seed if isinstance(seed, int) else None)
    except InputError:
        return ""
    return shlex.join(["thesis-cli", *words])


def _facts(run: Run) -> Mapping[str, str]:
    """Settings that were asked for, time, versions and machine."""
    record = run.record
    settings = {name: _text(value) for name, value in run.settings.items() if value not in (None, "", [], False)}
    versions = record.get("versions")
    known = versions.items() if isinstance(versions, Mapping) else ()
    machine = record.get("machine")
    seconds = record.get("seconds")
    return {
        "command": command_line(run),
        **settings,
        "time": f"{seconds:.3g} s" if isinstance(seconds, int | float) and math.isfinite(seconds) else "",
        "versions": ", ".join(f"{name} {version}" for name, version in known if version),
        "machine": ", ".join(map(str, machine.values())) if isinstance(machine, Mapping) else "",
        "when": str(record.get("when", ""))[:10],
        "commit": str(record.get("git_commit") or "")[:12] + " with changes" * bool(record.get("git_dirty")),
    }


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
