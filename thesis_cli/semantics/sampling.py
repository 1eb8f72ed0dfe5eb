"""Weighted values of an expression, from nets whose points go where the weights are.

Where conditions make few points count, as after a sharp observation or a rare event, each coordinate is mapped by a
piecewise linear map, so that the points are dense where pilot runs found the weight (Lepage 1978). Weights are divided
by the density, so that they stay exact. Pilot runs approach what is rare in steps: first the points nearest to an
event, or a power of the weights below 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, total_of
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.semantics.conditions import Solver, distinct, fewer_names, is_draw
from thesis_cli.semantics.denotation import JointTable
from thesis_cli.semantics.nets import Net
from thesis_cli.semantics.plans import Plan
from thesis_cli.semantics.runs import MOST_TAILS, Law, Run, Tilt, enumerated
from thesis_cli.semantics.syntax import Expression, Let, Place

PILOT, ROUNDS, IDLE = 2**12, 30, 4
"""Points of a pilot run, largest number of pilot runs, and number of those without progress after which they end."""
GOOD = 0.5
"""Effective share of the points that ends the pilot runs."""
STEP = 0.1
"""Least effective share of the points that a pilot run learns from."""
LEAST_POWER = 1e-6
"""Least power of the weights that a pilot run learns from."""
PARTS, OUTSIDE, WIDER = 48, 0.005, 4.0 ** np.arange(-2, 6)
"""Parts of a map in the core of the weight, share of the weight on either side of the core, and ends of the parts
beyond it, in units of its length.
"""
NESTED = 16
"""Factor by which there are fewer points if a part is computed for each of them."""


@dataclass(frozen=True)
class Sample:
    """Weighted values of an expression.

    Attributes
    ----------
    values : the values in increasing order, with their weights.
    computed, effective : number of values that were computed, and of those of equal weight that would count as much.
    below : finds shares up to some levels, with one draw integrated out exactly; None if none can be.
    regressed : place of an observation that a regression stands for; None if there is none.
    drawn : whether some number is drawn.
    heavy : whether the tails may be heavy: some number is drawn, and the values are not known to be bounded.
    """

    values: Expansion
    computed: int
    effective: float
    below: Callable[[Floats], Floats] | None
    regressed: Place | None
    drawn: bool
    heavy: bool


class Sampler:
    """Computes weighted values of an expression, again and again with other points.

    Parameters
    ----------
    expression : its free variables are columns of the table.
    table : rows of joint values; None if there is no free variable.
    """

    def __init__(self, expression: Expression, table: JointTable | None = None) -> None:
        root = fewer_names(distinct(expression, {}, [0]))
        self._plan = Plan.of(root, Solver.of(root))
        self._table = table
        self._tilts: dict[int, list[Tilt]] = {}

    def sample(self, count: int, rng: np.random.Generator) -> Sample:
        """Compute about so many values, or one for each row of a longer table."""
        if self._plan.nested:
            count = max(1, count // NESTED)
        laws = self._laws(self._plan, count, rng)
        run, rows = self._run(self._plan, laws, count, rng, self._table)
        law = _law(self._plan, run, rows)
        values = Expansion(law.points, law.weights if law.weights is not None else np.zeros(0))

        again, rows = self._run(self._plan, laws, count, rng, self._table)
        drawn = bool(run.coordinates)
        heavy = drawn and not all(map(math.isfinite, self._plan.solver.span(self._plan.root)))
        effective = run.points * _effective(np.abs(run.weights() * rows))
        return Sample(values, run.points, effective, again.below(rows), run.regressed, drawn, heavy)

    def _laws(self, plan: Plan, count: int, rng: np.random.Generator) -> dict[int, Law]:
        """The distributions of all parts of a plan."""
        found = dict[int, Law]()
        for node, part in plan.parts.items():
            found.update(self._laws(part, count, rng))
            found[node] = _law(part, *self._run(part, found, count, rng))
        for inner in plan.nested.values():
            found.update(self._laws(inner, count, rng))
        return found

    def _run(
        self, plan: Plan, laws: Mapping[int, Law], count: int, rng: np.random.Generator, table: JointTable | None = None
    ) -> tuple[Run, Floats]:
        """A run of a plan, and the weights of the table's rows at its points, 1 without a table."""
        counts = enumerated(plan, laws, count)
        copies = math.prod(counts.values())
        rows = 1 if table is None else len(table.weights)
        each = 1 << max(0, (count // (rows * copies)).bit_length() - 1)
        if plan.conditioned and table is None and id(plan.root) not in self._tilts:
            self._tilts[id(plan.root)] = self._learnt(plan, laws, counts, rng)
        outer = {} if table is None else {name: np.repeat(x, each) for name, x in table.columns.items()}
        tilts = self._tilts.get(id(plan.root), [])
        tails = plan is self._plan and table is None and sum(map(is_draw, plan.own())) <= MOST_TAILS
        run = Run(plan, laws, Net(rows * each, rng), counts, tilts, outer, tails)
        if table is None:
            return run, np.ones(())
        return run, np.repeat(table.weights / (each * copies), each * copies)

    def _learnt(
        self, plan: Plan, laws: Mapping[int, Law], counts: Mapping[int, int], rng: np.random.Generator
    ) -> list[Tilt]:
        """Maps of the coordinates under which the weights vary little."""
        best: tuple[float, list[Tilt]] = (-1.0, [])
        tilts: list[Tilt] = []
        idle = 0
        for _ in range(ROUNDS):
            run = Run(plan, laws, Net(PILOT, rng), counts, tilts, pilot=True)
            run.values()
            weights = _summed(run.log_weights(), 1.0)
            share = _effective(weights)
            idle = idle + 1 if 0 < share < 1.1 * best[0] else 0
            if share > best[0]:
                best = share, tilts
            if share >= GOOD or idle == IDLE:
                break
            power = 1.0
            if run.holds.mean() < STEP:
                run.holds = run.gap <= np.quantile(run.gap, STEP)
            while share < STEP / 2 and power > LEAST_POWER:
                weights = _summed(run.log_weights(), power)
                share, power = _effective(weights), power / 2
            old = [*tilts, *[Tilt(np.linspace(0.0, 1.0, PARTS + 1))] * (len(run.coordinates) - len(tilts))]
            tilts = [_sharper(tilt, u, weights) for tilt, u in zip(old, run.coordinates, strict=True)]
        return best[1]


def _law(plan: Plan, run: Run, rows: Floats) -> Law:
    """The distribution of the values of a run, whose weights have the sum of those of the rows, or 1.

    Parameters
    ----------
    rows : further weights of the points, shape (points,), or ().
    """
    values, weights = run.values(), run.weights() * rows
    if not weights.any():
        raise _never(plan)
    kept = weights != 0
    lost = kept & np.isnan(values)
    if lost.any():
        place, what = run.undefined or (plan.root.place, "there is no value")
        share = 100 * float(np.abs(weights[lost]).sum() / np.abs(weights).sum())
        remedy = "condition by given, choose values by if, or change the size"
        raise place.wrong(f"{what} ({share:.3g} % of the weight)", remedy)
    if not rows.ndim and (weights == weights[0]).all():
        return Law.of(values, None)
    weights = weights[kept]
    total = float(rows.sum())
    return Law.of(values[kept], weights * (total / weights.sum()))


def _summed(logs: Floats, power: float) -> Floats:
    """Powers of the weights of the points of a pilot run, each over its enumerated values."""
    top = logs.max()
    found = np.exp(power * (logs - top)) if top > -np.inf else np.zeros_like(logs)
    return np.asarray(np.broadcast_to(found, max(PILOT, found.size)).reshape(PILOT, -1).sum(1))


def _effective(weights: Floats) -> float:
    """(sum w)^2 / (n sum w^2), the share of points that count; 0 if none does."""
    squares = total_of(weights, weights)
    return float(weights.sum()) ** 2 / (len(weights) * squares) if squares > 0 else 0.0


def _sharper(tilt: Tilt, u: Floats, weights: Floats) -> Tilt:
    """A map that sends equal parts to parts of equal weight, in the core of the weight; and on either side of it to
    parts that are wider and wider, so that no point there has a large weight.
    """
    at = np.clip(np.searchsorted(tilt.edges, u, side="right") - 1, 0, len(tilt.edges) - 2)
    found = np.bincount(at, weights, len(tilt.edges) - 1)
    if not found.sum() > 0:
        return tilt
    sums = np.append(0.0, np.cumsum(np.convolve(np.pad(found, 1, mode="edge"), [0.25, 0.5, 0.25], "valid")))
    core = np.interp(np.linspace(OUTSIDE, 1 - OUTSIDE, PARTS + 1), sums / sums[-1], tilt.edges)
    beyond = (core[-1] - core[0]) * WIDER
    edges = np.concatenate([[0.0], (core[0] - beyond)[::-1], core, core[-1] + beyond, [1.0]])
    edges = np.unique(np.clip(edges, 0.0, 1.0))
    return Tilt(edges) if len(edges) > PARTS // 2 else tilt


def _never(plan: Plan) -> InputError:
    """An error about conditions that no point meets."""
    place = next(
        (node.observations[0].place for node in plan.own() if isinstance(node, Let) and node.observations),
        plan.root.place,
    )
    return place.wrong("the condition holds at no point", "give one that is possible, or a larger size")
