"""Figures of estimates: with their intervals and bounds on one axis, against couplings, over orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.commands.figures.bounds import couplings_figure, intervals_figure
from thesis_cli.commands.figures.entropies import draw_estimates, draw_profile
from thesis_cli.commands.ln_z.entropies import Row, curve_orders
from thesis_cli.perturbation.estimate import Estimate
from thesis_cli.reproduction.plots.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("value", "standard_error", "low", "high", "target", "kind", "confidence", "map_calls", "method")
"""Columns of a table of estimates."""
MOST = 60
"""Estimates that a figure has room for."""


def estimates_of(run: Run) -> list[Estimate]:
    """The rows as estimates, in units of one power of ten.

    Raises
    ------
    InputError : a column is missing, or a cell is no number.
    """
    numbers = [run.numbers(name) for name in ("value", "standard_error", "low", "high", "confidence", "map_calls")]
    words = [run.texts(name) for name in ("target", "kind", "method", "source")]
    powers = run.numbers("exponent10") if run.has("exponent10") else [0.0] * len(run.table)
    if not all(words[1]) or not all(words[2]):
        row = next(k for k, pair in enumerate(zip(words[1], words[2], strict=True), 1) if not all(pair))
        raise InputError(f"row {row} has no kind or no method", "run its command again", source=run.path)
    top = max((int(power) for power in powers if math.isfinite(power)), default=0)
    found = []
    for value, error, low, high, confidence, calls, power, target, kind, method, source in zip(
        *numbers, powers, *words, strict=True
    ):
        unit = 10.0 ** max(int(power) - top, -400) if math.isfinite(power) else 1.0
        count = int(calls) if math.isfinite(calls) else 0
        e = Estimate(value, error, low, high, target, kind, confidence, count, method, source, top)
        found.append(replace(e, value=value * unit, standard_error=error * unit, low=low * unit, high=high * unit))
    return found


def intervals(run: Run) -> Figure:
    """All estimates of one target; those of a spin glass with several couplings against them."""
    found = estimates_of(run)
    if run.has("coupling") and run.table["coupling"].nunique() > 1:
        return _couplings(run, found)
    if len({e.target for e in found if e.kind != "exact"}) > 1:
        rows = [Row(None, e) for e in found[:MOST]]
        return draw_estimates(rows, _title(run, len(found)))
    return intervals_figure(found[:MOST], _title(run, len(found)))


def _couplings(run: Run, found: Sequence[Estimate]) -> Figure:
    groups: dict[float, list[Estimate]] = {}
    for coupling, e in zip(run.numbers("coupling"), found, strict=True):
        groups.setdefault(coupling, []).append(e)
    methods = [[e.method for e in group if e.kind != "exact"] for group in groups.values()]
    if not methods[0] or any(found != methods[0] for found in methods):
        raise InputError("has other methods at each coupling", "give --x coupling --y value", source=run.path)
    s = run.settings
    parts = [str(s[name]) for name in ("kind", "size") if name in s]
    calls = f"{s['samples']:,} MAP calls each" if isinstance(s.get("samples"), int) else ""
    return couplings_figure(list(groups.items()), ", ".join(filter(None, [" ".join(parts), calls])) or run.path.name)


def entropies(run: Run) -> Figure:
    """The profile of entropies over orders, or else each estimate with its interval."""
    found = [
        Row(None if math.isnan(order) else order, e)
        for order, e in zip(run.numbers("order"), estimates_of(run), strict=True)
    ]
    grid = curve_orders()
    rows, curve = found[: -len(grid)], found[-len(grid) :]
    title = _title(run, len(found))
    if rows and [row.order for row in curve] == grid:
        return draw_profile(rows, curve, (), title)
    return draw_estimates(found[:MOST], title)


def _title(run: Run, count: int) -> str:
    """The model, and how many perturbations; that rows are left out."""
    model = next(iter(run.texts("model")), "") or str(run.settings.get("size", ""))
    samples = run.settings.get("samples")
    calls = max((n for n in run.numbers("map_calls") if math.isfinite(n)), default=0)
    perturbed = f"{samples:,} perturbations" if isinstance(samples, int) and calls else ""
    left = f"the first {MOST} of {count:,} rows" if count > MOST and run.command != "renyi" else ""
    return ", ".join(filter(None, [model or run.path.name, perturbed, left])).replace("$", r"\$")
