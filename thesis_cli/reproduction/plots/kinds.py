"""Figures of runs: which one suits a run, by its command or its columns, and the files it goes to."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.base.figures import render
from thesis_cli.base.files import check_writable, write_atomic
from thesis_cli.reproduction.plots.run import SWEEP, Run
from thesis_cli.reproduction.plots.sweeps import ChosenColumns, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("estimate-z", "bound", "posterior", "race", "spin-glass", "structured ln-z"), ("estimates", "intervals")
    ),
    "renyi": ("estimates", "entropies"),
    "sample": ("states", "samples"),
    "structured sample": ("states", "samples"),
    "structured predict": ("states", "predictions"),
    "marginals": ("states", "marginals"),
    "map": ("states", "best"),
    "dp-release": ("tables", "release"),
    "dp-measure": ("tables", "measured"),
    "dp-query": ("tables", "answers"),
    "kernel-eval": ("tables", "values"),
    "dp-ledger": ("tables", "ledger"),
    "dp-audit": ("tables", "audited"),
    "dp-test": ("tables", "tested"),
    "synthesize": ("programs", "solved"),
    "explain": ("programs", "explained"),
}
"""Module of this package and its function, by the command that wrote the table."""

BY_COLUMNS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"value", "low", "high", "kind", "method", "order"}), "renyi"),
    (frozenset({"value", "low", "high", "kind", "method"}), "estimate-z"),
    (frozenset({"variable", "state", "probability"}), "marginals"),
    (frozenset({"variable", "state"}), "map"),
    (frozenset({"query", "group", "statistic", "value"}), "dp-query"),
    (frozenset({"query", "value"}), "kernel-eval"),
    (frozenset({"test", "p_value", "draws"}), "dp-test"),
    (frozenset({"task", "program", "seconds"}), "synthesize"),
    (frozenset({"task", "attribute", "probability"}), "explain"),
)
"""Commands by columns that their tables have, for tables without a record."""


def kind_of(run: Run) -> str:
    """The command whose figure suits a run, or `sweep`.

    Raises
    ------
    InputError : no figure suits it.
    """
    if run.kind in (SWEEP, *KINDS):
        return run.kind
    if not run.kind:
        found = next((command for columns, command in BY_COLUMNS if run.has(*columns)), "")
        if found:
            return found
    what = f"a table of {run.kind}" if run.kind else "a table with these columns and no record"
    raise InputError(f"no figure suits {what}", "give --x and --y, columns of it", source=run.path)


def figure(run: Run) -> Callable[[], Figure]:
    """Function that draws the figure that suits a run.

    Raises
    ------
    InputError : no figure suits it.
    """
    kind = kind_of(run)
    if kind == SWEEP:
        from thesis_cli.reproduction.plots.sweeps import ChosenColumns, sweep

        return lambda: sweep(run, ChosenColumns())
    module, name = KINDS[kind]
    draw: Callable[[Run], Figure] = getattr(importlib.import_module(f"thesis_cli.reproduction.plots.{module}"), name)
    return lambda: draw(run)


MARK = "thesis-cli plot "
"""Beginning of the metadata of a figure of a run; a digest of the table's name follows."""


def picture(run: Run, chosen: ChosenColumns, kinds: tuple[str, ...] = ("png", "pdf")) -> dict[str, bytes]:
    """The figure of a run; returns the file of each kind.

    Raises
    ------
    InputError : no figure suits the run, or what was chosen does not suit its columns.
    """
    draw: Callable[[], Figure] = (lambda: sweep(run, chosen)) if chosen.any else figure(run)
    return render(draw, kinds, mark(run.path))


def mark(table: Path) -> str:
    """Mark of the table in the metadata of its figure."""
    return MARK + hashlib.sha256(table.name.encode()).hexdigest()[:16]


def check_figure(table: Path, out: Path | None, overwrite: bool) -> Path:
    """The file for the figure of a table: beside it, unless another is given.

    Raises
    ------
    InputError : it cannot be written, or is a picture that was not drawn from this table.
    """
    found = out or table.with_suffix(".png")
    check_writable("--out", found, ".png")
    for path in (found, found.with_suffix(".pdf")):
        if path.is_file() and not overwrite and mark(table).encode() not in path.read_bytes():
            problem = f"{path} exists, and was not drawn by plot from {table.name}"
            raise InputError(problem, "give another --out, or --overwrite")
    return found


def write(found: Path, drawn: dict[str, bytes]) -> dict[Path, str]:
    """Write the files that differ; returns `new`, `changed` or `unchanged` for each."""
    changes = {}
    for kind, data in sorted(drawn.items()):
        path = found.with_suffix(f".{kind}")
        old = path.read_bytes() if path.is_file() else None
        changes[path] = "new" if old is None else "unchanged" if old == data else "changed"
        if old != data:
            write_atomic({path: data})
    return changes
