"""Evaluation of probabilistic expressions as weighted points, with standard errors and bounds.

The values of an expression at the points of a net, with exact weights, are an expansion sum_i a_i Phi(x_i) of it. Its
error is estimated from a few smaller nets. Where the composition of section 3 of the source has a bound, so has the
expansion: that bound, plus how far the two are apart, which is computed exactly.

The points of a net go where the weights are. Where conditions make few points count, as after a sharp observation or a
rare event, each coordinate is mapped by a piecewise linear map, so that the points are dense where pilot runs found the
weight (Lepage 1978). Weights are divided by the density, so that they stay exact. Pilot runs approach what is rare in
steps: first the points nearest to an event, or a power of the weights below 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, total_of
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion, wasserstein
from thesis_cli.embeddings.kernels import Gaussian, Kernel
from thesis_cli.embeddings.reductions import GaussCells
from thesis_cli.semantics.batches import NONE, Limit
from thesis_cli.semantics.composition import compose
from thesis_cli.semantics.conditioning import monotone
from thesis_cli.semantics.conditions import Solver, distinct, fewer_names, is_draw, parts_of
from thesis_cli.semantics.denotation import MOST as MOST_SIZE
from thesis_cli.semantics.denotation import JointTable, Settings
from thesis_cli.semantics.linear import ROUNDING, kernel_error
from thesis_cli.semantics.nets import Net
from thesis_cli.semantics.plans import Plan
from thesis_cli.semantics.queries import Query, quantile, tail_index
from thesis_cli.semantics.runs import MOST_TAILS, Law, Run, Tilt, enumerated
from thesis_cli.semantics.syntax import LARGEST, Call, Expression, Let, Place

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


FEWEST, MOST = 2**10, 2**21
"""Least and largest number of values that are computed."""
REPLICATES, SMALLER = 8, 16
"""Number of smaller nets, and how many times smaller they are."""
NEARBY, STEPS, PRECISION = 0.01, 8, 1e-7
"""Largest difference of the shares that a slope of quantiles is taken from, most steps of the secant method, and the
step that is the last, in units of the distance of the two quantiles.
"""
ORDERS, HEAVY = {"mean": 1, "var": 2, "sd": 2}, 0.9
"""Orders of moments, and the largest product with the index of the tails at which a moment is taken to be finite."""
FEW = 10
"""Fewest values beyond a quantile of random numbers."""
MEDIAN_OF = 200
"""Number of points that the median distance is taken among."""
CELLS = 2**11
"""Parts of the values that quadratures stand for in a bound."""
COARSE, LARGEST_COARSE, LONGEST = 8, 256, 200
"""Sizes of the composition that shows whether there is a bound, and of the largest one, and its most operations."""


@dataclass(frozen=True)
class Evaluated:
    """An expression as weighted points.

    Attributes
    ----------
    sample : all values that were computed, with their weights.
    expansion : at most `size` points that stand for them.
    kernel : kernel of the RKHS.
    error : bound on the W1 distance of the values from the exact distribution, and why there is none.
    rkhs_error : bound on their RKHS distance, inf with the same reason.
    replicates : values of smaller nets; none if a condition holds at no point of one.
    share : share of the absolute weight of a table whose rows have a value; 1 without a table.
    projected : RKHS distance by which negative weights were moved for the expansion.
    """

    sample: Sample
    expansion: Expansion
    kernel: Kernel
    error: Limit
    rkhs_error: float
    replicates: tuple[Sample, ...] = ()
    share: float = 1.0
    projected: float = 0.0

    @property
    def values(self) -> Expansion:
        """All values in increasing order, with their weights."""
        return self.sample.values

    @cached_property
    def tail_index(self) -> float:
        """How heavy the tails are; 0 if the values are bounded."""
        return tail_index(self.values) if self.sample.heavy else 0.0

    def answer(self, query: Query) -> tuple[float, float]:
        """A statistic and its standard error, NaN if that is unknown. Moments are NaN too if they may be infinite, and
        quantiles of a share beyond which there are few values.

        The error is the standard deviation over the smaller nets, scaled as that of independent points would be,
        which is more than that of evenly spread ones. Where a draw can be integrated out, so it is for quantiles
        and probabilities: for quantiles by steps of the secant method.
        """
        finite = query.statistic == "mean" and math.isfinite(self.error.largest)
        if not finite and ORDERS.get(query.statistic, 0) * self.tail_index > HEAVY:
            return math.nan, math.nan
        value, below = query.of(self.values), self.sample.below
        if any(each.below is None for each in self.replicates):
            below = None
        if below and query.statistic == "prob" and query.relation not in ("==", "!="):
            share = float(below(np.array([query.argument]))[0])
            return 1 - share if query.relation in (">", ">=") else share, self._spread(_up_to(query.argument))
        if query.statistic in ("median", "quantile"):
            beyond = min(query.share, 1 - query.share) * self.sample.computed
            if self.sample.drawn and beyond < FEW and not self._is_atom(value):
                return math.nan, math.nan
            return self._quantile(value, query.share, below) if below else (value, self._width(value, query.share))
        return value, self._spread(lambda each: query.of(each.values))

    def _is_atom(self, value: float) -> bool:
        """Whether more values than a few are this one."""
        return self.values.probability(self.values.points[:, 0] == value) * self.sample.computed >= FEW

    def _quantile(self, value: float, share: float, below: Callable[[Floats], Floats]) -> tuple[float, float]:
        """A quantile and its standard error, by the secant method from that of the values; its last step counts too."""
        width = min(NEARBY, share / 2, (1 - share) / 2)
        low, high = (quantile(self.values, share + sign * width) for sign in (-1, 1))
        slope = (high - low) / (2 * width) if width else 0.0
        found, moved, seen = value, math.inf, math.nan
        for _ in range(STEPS):
            if abs(moved) <= PRECISION * (high - low):
                break
            here = float(below(np.array([found]))[0])
            if here != seen and math.isfinite(moved):
                slope = moved / (here - seen)
            found, moved, seen = found + (share - here) * slope, (share - here) * slope, here
        if not low <= found <= high:  # the density is nearly 0 there
            return value, self._width(value, share)
        return found, math.hypot(abs(slope) * self._spread(_up_to(found)), moved)

    def _width(self, value: float, share: float) -> float:
        """Standard error of a quantile: that of the smaller nets, but no less than the quantiles move with the error of
        the share, as where it is nearly the share up to one value of a discrete law.
        """
        apart = self._spread(lambda each: each.values.probability(each.values.points[:, 0] <= value))
        apart += 1 / self.sample.computed
        low, high = (quantile(self.values, min(max(share + move, 0.0), 1.0)) for move in (-apart, apart))
        return max(self._spread(lambda each: quantile(each.values, share)), (high - low) / 2)

    def _spread(self, statistic: Callable[[Sample], float]) -> float:
        """Standard error of a statistic of samples."""
        if not self.replicates or self.sample.regressed:  # whose error is mostly a bias
            return math.nan
        found = [statistic(each) for each in self.replicates]
        return float(np.std(found, ddof=1) / math.sqrt(self.sample.computed / self.replicates[0].computed))


def _up_to(level: float) -> Callable[[Sample], float]:
    """Finds the share of a sample up to a level, one draw integrated out."""

    def share(sample: Sample) -> float:
        assert sample.below is not None
        return float(sample.below(np.array([level]))[0])

    return share


def evaluate(expression: Expression, settings: Settings, seed: int = 0, table: JointTable | None = None) -> Evaluated:
    """Evaluate an expression as weighted points. Raises InputError if an operation has no value, a parameter is not
    allowed, or a condition never holds; the error names line and column.

    Parameters
    ----------
    expression : all its free variables must be columns of the table.
    settings : about 2 size^2 values are computed.
    seed : seed of the nets.
    """
    share = 1.0
    if table is not None:
        table, share = table.present(expression.free)
    count = min(MOST, max(FEWEST, 1 << (2 * settings.size**2 - 1).bit_length()))
    first, *others = (np.random.default_rng(each) for each in np.random.SeedSequence(seed).spawn(1 + REPLICATES))
    sampler = Sampler(expression, table)
    sample = sampler.sample(count, first)
    try:
        replicates = tuple(sampler.sample(count // SMALLER, rng) for rng in others)
    except InputError:  # what holds at few points may hold at none of fewer
        replicates = ()
    values = sample.values
    positive = monotone(values) if (values.weights < 0).any() else values
    width = settings.kernel_for(_few(positive, MEDIAN_OF)).bandwidth
    settings = replace(settings, bandwidth=min(max(width, 1 / LARGEST), LARGEST))
    kernel = settings.kernel_for(positive)
    projected = 0.0 if positive is values else kernel.distance(values, positive)
    error, rkhs_error = _bounds(expression, values, settings, table)
    return Evaluated(sample, _few(positive, settings.size), kernel, error, rkhs_error, replicates, share, projected)


def _few(values: Expansion, size: int) -> Expansion:
    """At most so many points that stand for values."""
    return values if len(values) <= size else GaussCells.of(values, size // 2).expansion


def _bounds(
    expression: Expression, values: Expansion, settings: Settings, table: JointTable | None
) -> tuple[Limit, float]:
    """Bounds on the W1 and RKHS distances of values from the exact distribution."""
    nodes = [expression]
    for node in nodes:  # grows while it is walked
        nodes.extend(parts_of(node))
        if isinstance(node, Let) and node.observations:
            place = node.observations[0].place
            return Limit.of(math.inf, f"none is known for the conditioning at {place}"), math.inf
    calls = sum(isinstance(node, Call) for node in nodes)
    if calls > LONGEST:
        return Limit.of(math.inf, f"none is composed of more than {LONGEST} operations"), math.inf
    least = COARSE if table is None else max(COARSE, len(table.weights) // 8 + 1)  # so that no row is sampled
    size = max(2, min(settings.size // 2, LARGEST_COARSE))
    try:
        coarse = compose(expression, replace(settings, size=min(least, MOST_SIZE)), table=table)
        if math.isinf(coarse.rkhs_error):
            return coarse.error, math.inf
        composed = coarse if size <= least else compose(expression, replace(settings, size=size), table=table)
    except InputError as refused:
        return Limit.of(math.inf, refused.problem), math.inf
    apart = wasserstein(values, composed.expansion)
    error = composed.error + (NONE if apart is None else Limit.of(apart))
    if apart is None:
        error = Limit.of(math.inf, "some weights are negative")
    distance = _distance(values, composed.expansion, composed.kernel)
    return error, min(composed.rkhs_error + distance, kernel_error(composed.kernel, error.largest))


def _distance(values: Expansion, other: Expansion, kernel: Kernel) -> float:
    """RKHS distance of many values from few points, or a bound just above it."""
    if len(values) <= 2 * CELLS or (values.weights < 0).any() or not isinstance(kernel, Gaussian):
        return kernel.distance(values, other) + ROUNDING
    cells = GaussCells.of(values, CELLS)
    return kernel.distance(cells.expansion, other) + cells.rkhs_error(kernel.bandwidth) + ROUNDING
