"""Weighted values of an expression, from nets whose points go where the weights are.

Where conditions make few points count, as after a sharp observation or a rare event, each coordinate is mapped by a
piecewise linear map, so that the points are dense where pilot runs found the weight (Lepage 1978). Weights are divided
by the density, so that they stay exact. Pilot runs approach what is rare in steps: first the points nearest to an
event, or a power of the weights below 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.semantics.conditions import Solver, distinct, fewer_names
from thesis_cli.semantics.denotation import Table
from thesis_cli.semantics.nets import Net
from thesis_cli.semantics.plans import Plan
from thesis_cli.semantics.runs import Law, Run, Tilt, enumerated
from thesis_cli.semantics.syntax import Expression, Let, Place

PILOT, ROUNDS = 2**12, 16
"""Points of a pilot run, and largest number of pilot runs."""
GOOD = 0.5
"""Effective share of the points that ends the pilot runs."""
STEP = 0.1
"""Least effective share of the points that a pilot run learns from."""
PARTS, DEFENCE = 32, 0.1
"""Parts of a map, and share of the points that stay where they would be without it."""
NESTED = 16
"""Factor by which there are fewer points if a part is computed for each of them."""


class Sampler:
    """Computes weighted values of an expression, again and again with other points.

    Parameters
    ----------
    expression : its free variables are columns of the table.
    table : rows of joint values; None if there is no free variable.

    Attributes
    ----------
    regressed : place of an observation that a regression stands for; None if there is none.
    computed : number of values that were computed last.
    """

    def __init__(self, expression: Expression, table: Table | None = None) -> None:
        root = fewer_names(distinct(expression, {}, [0]))
        self._plan = Plan.of(root, Solver.of(root))
        self._table = table
        self._tilts: dict[int, list[Tilt]] = {}
        self.regressed: Place | None = None
        self.computed = 0

    def values(self, count: int, rng: np.random.Generator) -> Expansion:
        """Values of the expression with their weights, in increasing order.

        Parameters
        ----------
        count : about how many values are computed, unless a table has more rows.
        """
        if self._plan.nested:
            count = max(1, count // NESTED)
        laws = self._laws(self._plan, count, rng)
        points, weights = self._computed(self._plan, laws, count, rng, self._table)
        law = Law.of(points, weights)
        return Expansion(law.points, law.weights if law.weights is not None else np.zeros(0))

    def _laws(self, plan: Plan, count: int, rng: np.random.Generator) -> dict[int, Law]:
        """The distributions of all parts of a plan."""
        found = dict[int, Law]()
        for node, part in plan.parts.items():
            found.update(self._laws(part, count, rng))
            found[node] = Law.of(*self._computed(part, found, count, rng)).even()
        for inner in plan.nested.values():
            found.update(self._laws(inner, count, rng))
        return found

    def _computed(
        self, plan: Plan, laws: Mapping[int, Law], count: int, rng: np.random.Generator, table: Table | None = None
    ) -> tuple[Floats, Floats | None]:
        """Values of a plan's expression where the weight is not 0, and weights; None if they are equal."""
        counts = enumerated(plan, laws)
        rows = 1 if table is None else len(table.weights)
        each = max(1, count // (rows * int(np.prod([*counts.values()], dtype=np.int64))))
        each = 1 << (each.bit_length() - 1)
        if plan.conditioned and table is None and id(plan.root) not in self._tilts:
            self._tilts[id(plan.root)] = self._learnt(plan, laws, counts, rng)
        outer = {} if table is None else {name: np.repeat(x, each) for name, x in table.columns.items()}
        tilts = self._tilts.get(id(plan.root), [])
        run = Run(plan, laws, Net(rows * each, rng), rows * each, rng, counts, tilts, outer)
        values, weights = run.values(), run.weights()
        self.regressed, self.computed = self.regressed or run.regressed, run.points
        if table is None and run.log_weight.ndim == 0 and run.sign.ndim == 0:
            weights = np.ones(1)  # all are equal
        total = 1.0
        if table is not None:
            total = float(table.weights.sum())
            weights = np.repeat(table.weights, run.points // rows) * weights
        if not weights.any():
            raise _never(plan)
        kept = np.broadcast_to(weights != 0, values.shape)
        if np.isnan(values[kept]).any():
            lost = np.abs(np.broadcast_to(weights, values.shape)[np.isnan(values)]).sum() / np.abs(weights).sum()
            place, what = run.undefined or (plan.root.place, "there is no value")
            share = lost if weights.size > 1 else lost / values.size
            remedy = "condition by given, choose values by if, or change the size"
            raise place.wrong(f"{what} ({100 * share:.3g} % of the weight)", remedy)
        if weights.size == 1:
            return values, None
        values, weights = values[kept], weights[kept]
        return values, weights * (total / weights.sum())

    def _learnt(
        self, plan: Plan, laws: Mapping[int, Law], counts: Mapping[int, int], rng: np.random.Generator
    ) -> list[Tilt]:
        """Maps of the coordinates under which the weights vary little."""
        best: tuple[float, list[Tilt]] = (-1.0, [])
        tilts: list[Tilt] = []
        for _ in range(ROUNDS):
            run = Run(plan, laws, Net(PILOT, rng), PILOT, rng, counts, tilts, pilot=True)
            run.values()
            logs = np.broadcast_to(run.log_weight, run.points)
            weights = _summed(logs, 1.0)
            share = _effective(weights)
            if share > best[0]:
                best = share, tilts
            if share >= GOOD:
                break
            if (logs > -np.inf).mean() < STEP and run.gap.ndim:
                near = np.broadcast_to(run.gap, run.points) <= np.quantile(run.gap, STEP)
                weights = _summed(np.where(near, 0.0, -np.inf), 1.0)
            else:
                power = 1.0
                while _effective(weights) < STEP and power > 1e-6:
                    power /= 2
                    weights = _summed(logs, power)
            old = [*tilts, *[Tilt(np.linspace(0.0, 1.0, PARTS + 1))] * (len(run.coordinates) - len(tilts))]
            tilts = [_sharper(tilt, u, weights) for tilt, u in zip(old, run.coordinates, strict=True)]
        return best[1]


def _summed(logs: Floats, power: float) -> Floats:
    """Weights of the points of a pilot run, each over its enumerated values."""
    top = logs.max()
    found = np.exp(power * (logs - top)) if top > -np.inf else np.zeros(len(logs))
    return np.asarray(found.reshape(PILOT, -1).sum(1))


def _effective(weights: Floats) -> float:
    """(sum w)^2 / (n sum w^2), the share of points that count; 0 if none does."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / (len(weights) * squares) if squares > 0 else 0.0


def _sharper(tilt: Tilt, u: Floats, weights: Floats) -> Tilt:
    """A map that sends equal parts to parts of equal weight."""
    at = np.clip(np.searchsorted(tilt.edges, u, side="right") - 1, 0, PARTS - 1)
    found = np.bincount(at, weights, PARTS)
    if not found.sum() > 0:
        return tilt
    mass = np.convolve(np.pad(found, 1, mode="edge"), [0.25, 0.5, 0.25], "valid")
    mass = (1 - DEFENCE) * mass / mass.sum() + DEFENCE * np.diff(tilt.edges)
    sums = np.append(0.0, np.cumsum(mass))
    edges = np.interp(np.linspace(0.0, 1.0, PARTS + 1), sums / sums[-1], tilt.edges)
    return Tilt(edges) if (np.diff(edges) > 0).all() else tilt


def _never(plan: Plan) -> InputError:
    """An error about conditions that no point meets."""
    place = next(
        (node.observations[0].place for node in plan.own() if isinstance(node, Let) and node.observations),
        plan.root.place,
    )
    return place.wrong("the condition holds at no point", "give one that is possible, or a larger size")
