"""Which figure suits a run: by the command of its record, or else by its columns."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.reproduction.plots.run import SWEEP, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("estimate-z", "bound", "posterior", "race", "spin-glass", "structured ln-z"), ("estimates", "intervals")
    ),
    "renyi": ("estimates", "entropies"),
    "sample": ("states", "samples"),
    "structured sample": ("states", "samples"),
    "marginals": ("states", "marginals"),
    "map": ("states", "best"),
    "dp-release": ("tables", "release"),
    "dp-measure": ("tables", "measured"),
    "dp-query": ("tables", "answers"),
    "kernel-eval": ("tables", "values"),
    "dp-ledger": ("tables", "ledger"),
    "dp-audit": ("tables", "audited"),
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
    """What draws the figure that suits a run.

    Raises
    ------
    InputError : no figure suits it.
    """
    kind = kind_of(run)
    if kind == SWEEP:
        from thesis_cli.reproduction.plots.sweeps import Chosen, sweep

        return lambda: sweep(run, Chosen())
    module, name = KINDS[kind]
    draw: Callable[[Run], Figure] = getattr(importlib.import_module(f"thesis_cli.reproduction.plots.{module}"), name)
    return lambda: draw(run)
