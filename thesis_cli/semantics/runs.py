"""Values of an expression at the points of a net, with exact weights.

Each draw of a distribution is its quantile function at a coordinate of the net. Draws of few values take all of them,
weighted by their probabilities. Conditions weight the points: by the density of what is observed, by the probability of
the bounds of a draw, or by 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints, total_of
from thesis_cli.semantics.conditioning import conditional_weights
from thesis_cli.semantics.conditions import Guards, Solved, is_even
from thesis_cli.semantics.distributions import DISTRIBUTIONS, Distribution, quantiles
from thesis_cli.semantics.functions import FUNCTIONS
from thesis_cli.semantics.nets import Net
from thesis_cli.semantics.plans import Plan
from thesis_cli.semantics.syntax import LARGEST, Call, Expression, Let, Number, Place, Variable

FEW = 16
"""Largest number of values of a draw that are enumerated."""
COMBINATIONS, OTHERS = 64, 64
"""Largest number of combinations of enumerated values, and least number of points that each then has."""
PLAIN = 8
"""One of so many points is not mapped, so that no weight exceeds that of plain points so many times."""
LEAST = 2.0**-53
"""Least number, and least distance from 1, that a map leads to."""
SAME = 1e-9
"""Least distance of a number from a value of a discrete draw that is no rounding."""
INNER, MOST_INNER = 1024, 2**21
"""Most points of a conditioned part for each value of its free variables, and for all of them."""
PREDICTED = 8192
"""Largest number of points of a regression on an observed value that no draw solves."""


@dataclass(frozen=True)
class Law:
    """A distribution of weighted points.

    Attributes
    ----------
    points : in increasing order, shape (n,).
    weights : 0 or more and of sum 1, shape (n,); None if all are equal.
    """

    points: Floats
    weights: Floats | None = None

    @classmethod
    def of(cls, points: Floats, weights: Floats | None) -> Law:
        """The law of points in any order; equal points are one if there are few."""
        if weights is None:
            points = np.sort(points)
            if (points[1:] > points[:-1]).all() and len(points) > 1:
                return cls(points)
            weights = np.full(len(points), 1 / len(points))
        else:
            order = np.argsort(points)
            points, weights = points[order], weights[order]
        first = np.append(True, points[1:] > points[:-1])
        return cls(points[first], np.add.reduceat(weights, np.flatnonzero(first)))

    def quantile(self, u: Floats) -> Floats:
        """Values at shares of (0, 1)."""
        if self.weights is None:
            at = (u * len(self.points)).astype(np.int64)
        else:
            at = np.searchsorted(np.cumsum(self.weights), u)
        return np.asarray(self.points[np.minimum(at, len(self.points) - 1)])

    def share(self, x: Floats) -> Floats:
        """Probabilities of values up to x."""
        at = np.searchsorted(self.points, x, side="right")
        return np.asarray(at / len(self.points) if self.weights is None else np.append(0, self.weights.cumsum())[at])


class Coordinates(Protocol):
    """Where the coordinates of points come from, one after another.

    Attributes
    ----------
    count : number of points.
    rng : generator of what further nets are scrambled by.
    """

    count: int
    rng: np.random.Generator

    def column(self) -> Floats:
        """The next coordinate of all points, numbers in (0, 1)."""
        ...


class _Shifted:
    """A net for each point of another: the same for all, shifted by a further coordinate of the other."""

    def __init__(self, outer: Run, count: int, rng: np.random.Generator) -> None:
        self.count, self.rng = outer.points * count, rng
        self._outer, self._net = outer, Net(count, rng)

    def column(self) -> Floats:
        """The next coordinate, shape (self.count,)."""
        shifted = self._net.column() + self._outer.column()[:, np.newaxis]
        return np.asarray((shifted - np.floor(shifted)).ravel())


@dataclass(frozen=True)
class Tilt:
    """A map of (0, 1) onto itself that sends equal parts to parts of other lengths, each by a straight line.

    Attributes
    ----------
    edges : ends of the parts, from 0 to 1.
    """

    edges: Floats

    def of(self, t: Floats) -> tuple[Floats, Floats]:
        """Where numbers go, and the logarithms of the slopes there."""
        at = t * (len(self.edges) - 1)
        part = at.astype(np.int64)
        lengths = np.diff(self.edges)
        found = np.clip(self.edges[part] + (at - part) * lengths[part], LEAST, 1 - LEAST)
        return found, np.log(lengths * len(lengths))[part]

    def log_density(self, u: Floats) -> Floats:
        """Logarithms of the density of where evenly spread numbers go."""
        part = np.clip(np.searchsorted(self.edges, u, side="right") - 1, 0, len(self.edges) - 2)
        return np.asarray(-np.log(np.diff(self.edges) * (len(self.edges) - 1))[part])


_ENDS = 0.5 ** np.array([np.inf, 17, 11, 6])
TAILS = Tilt(np.concatenate([_ENDS[:-1], np.linspace(_ENDS[-1], 1 - _ENDS[-1], 59), 1 - _ENDS[-2::-1]]))
"""Map for draws without bounds: 3 of 64 points are in the outer 1/64 on either side, most of them far out. Moments, to
which the tails contribute much, are then far more accurate, and the other weights vary by little.
"""
MOST_TAILS = 4
"""Largest number of draws of an expression for which the map is used."""


@dataclass(frozen=True)
class _Bounds:
    """Where a draw lies: its bounds, and the probabilities below and above each."""

    low: Floats
    high: Floats
    below: tuple[Floats, Floats]
    above: tuple[Floats, Floats]


def enumerated(plan: Plan, laws: Mapping[int, Law], points: int) -> dict[int, int]:
    """Numbers of values of the draws and parts that are enumerated, by the id of the node; of so many points."""
    found, total = dict[int, int](), 1
    for node in plan.countable:
        if id(node) in laws:
            count = len(laws[id(node)].points)
        else:
            assert isinstance(node, Call)
            count = max(2, len(node.arguments))
        if count <= FEW and total * count <= min(COMBINATIONS, points // OTHERS):
            found[id(node)] = count
            total *= count
    return found


class Run:
    """The values of a plan's expression at some points.

    Parameters
    ----------
    plan : how the expression is computed.
    laws : distributions of the parts of all plans, by the id of the node.
    coordinates : coordinates of points; each stands for all combinations of enumerated values.
    counts : numbers of values of what is enumerated, as `enumerated` finds them.
    tilts : maps of the coordinates, in order; further ones stay as they are.
    outer : values of the free variables, by name, shape (coordinates.count,) each.
    tails : whether draws without bounds have the map `TAILS` if none is given.
    pilot : whether observed values that no draw solves are left out.

    Attributes
    ----------
    log_weight : logarithms of the weights from solved conditions and enumerated values, shape (points,) or ().
    holds : whether all events hold, shape (points,) or ().
    sign : further weights of any sign, shape (points,) or ().
    gap : how far events are from holding, shape (points,) or ().
    coordinates : the coordinates so far, shape (count,) each.
    undefined : place and description of the first value that is NaN; None if none is.
    regressed : place of a condition that a regression stands for; None if there is none.
    """

    def __init__(
        self,
        plan: Plan,
        laws: Mapping[int, Law],
        coordinates: Coordinates,
        counts: Mapping[int, int] | None = None,
        tilts: Sequence[Tilt] = (),
        outer: Mapping[str, Floats] | None = None,
        tails: bool = False,
        pilot: bool = False,
    ) -> None:
        self._plan, self._laws, self._source = plan, laws, coordinates
        self._tilts, self._tails, self._pilot = tilts, tails, pilot
        counts = counts or {}
        self._copies = math.prod(counts.values())
        self.points = coordinates.count * self._copies
        self._digits, stride = dict[int, Ints](), 1
        for node, values in counts.items():
            self._digits[node] = np.arange(self.points) // stride % values
            stride *= values
        self._variables = {name: np.repeat(values, self._copies) for name, values in (outer or {}).items()}
        self._drawn, self._set, self._bounds = dict[int, Floats](), dict[int, Floats](), dict[int, _Bounds]()
        self.log_weight, self.sign, self.gap = np.zeros(()), np.ones(()), np.zeros(())
        self.holds, self._log_density = np.ones((), bool), np.zeros(())
        self.coordinates: list[Floats] = []
        self.undefined: tuple[Place, str] | None = None
        self.regressed: Place | None = None

    def values(self) -> Floats:
        """The values of the plan's expression, shape (points,)."""
        with np.errstate(all="ignore"):
            return np.broadcast_to(self._value(self._plan.root), self.points)

    def weights(self) -> Floats:
        """Their weights, the largest 1 or less in size, shape (points,)."""
        logs = self.log_weights()
        top = logs.max()
        return np.broadcast_to(self.sign * np.exp(logs - (top if top > -math.inf else 0.0)), self.points)

    def log_weights(self) -> Floats:
        """Logarithms of the weights, also by events and maps, shape (points,) or ()."""
        mixed = np.logaddexp(-math.log(PLAIN), self._log_density + math.log(1 - 1 / PLAIN)) if self._tilts else 0.0
        return np.where(self.holds, self.log_weight - mixed, -math.inf)

    def below(self, rows: Floats) -> Callable[[Floats], Floats] | None:
        """A function that finds the shares of the values up to some levels, with the plan's integrated draw integrated
        out exactly. None if the plan has none, or only one of few values. The run computes nothing else.

        Parameters
        ----------
        rows : weights of the points before conditions, shape (points,) or ().
        """
        if self._plan.integrated is None:
            return None
        draw, steps = self._plan.integrated
        law = self._laws.get(id(draw))
        if law is not None and len(law.points) <= FEW:
            return None
        with np.errstate(all="ignore"):
            others = [[self._value(part) for k, part in enumerate(call.arguments) if k != at] for call, at in steps]
            shares = self._shares(draw) if law is None else law.share
        weights = np.broadcast_to(rows * self.weights(), self.points)

        def at_level(level: float) -> float:
            end, rising = np.array(level), np.ones(())
            for (call, at), aside in zip(steps, others, strict=True):
                inverse = FUNCTIONS[call.name].inverse
                assert inverse is not None
                step = inverse(at, end, aside)
                end, rising = step.argument, rising * step.direction
                if call.name == "/" and at == 1:  # of a divisor that has this sign
                    sign = self._plan.solver.sign(call.arguments[1])
                    end = np.where(end * sign > 0, end, sign * math.inf)
            share = shares(end)
            return total_of(weights, np.where(rising > 0, share, 1 - share))

        def at_levels(levels: Floats) -> Floats:
            with np.errstate(all="ignore"):
                return np.asarray([at_level(level) for level in levels] / weights.sum(), np.float64)

        return at_levels

    def _shares(self, draw: Call | Let) -> Callable[[Floats], Floats]:
        """The distribution function of a continuous draw at each point."""
        assert isinstance(draw, Call)
        family, parameters = self._parameters(draw)
        share = family.share
        assert share is not None
        return lambda x: share(x, *parameters)

    def _weigh(self, logs: Floats) -> None:
        self.log_weight = self.log_weight + np.where(np.isnan(logs), -math.inf, logs)

    def column(self, unbounded: bool = False) -> Floats:
        """The next coordinate, through its map."""
        found, plain = self._source.column(), self.points // self._copies // PLAIN
        if len(self.coordinates) < len(self._tilts):
            tilt = self._tilts[len(self.coordinates)]
            found = np.concatenate([found[:plain], tilt.of(found[plain:])[0]])
            self._log_density = self._log_density + self._repeated(tilt.log_density(found))
        elif unbounded and self._tails:
            found, logs = TAILS.of(found)
            self.log_weight = self.log_weight + self._repeated(logs)
        self.coordinates.append(found)
        return self._repeated(found)

    def _repeated(self, each: Floats) -> Floats:
        """Numbers of the net's points at the combinations of enumerated values."""
        return np.repeat(each, self._copies) if self._copies > 1 else each

    def _value(self, node: Expression) -> Floats:
        """Values of shape (points,), or () if they are all the same; NaN where there is none."""
        match node:
            case Number():
                return np.array(node.value)
            case Variable():
                if node.name not in self._variables:
                    self._variables[node.name] = self._value(self._plan.solver.bindings[node.name])
                return self._variables[node.name]
        apart = id(node) in self._plan.parts or id(node) in self._plan.nested
        if apart or isinstance(node, Let) or node.name in DISTRIBUTIONS:
            # conditions need some of them before their turn, and all have one value
            if id(node) not in self._drawn:
                self._drawn[id(node)] = self._random(node)
            return self._drawn[id(node)]
        return self._function(node, [self._value(part) for part in node.arguments])

    def _random(self, node: Call | Let) -> Floats:
        """Values of a draw, of a part or of a `let`, for the first time."""
        if id(node) in self._plan.parts:
            law = self._laws[id(node)]
            if id(node) not in self._digits:
                return law.quantile(self.column())
            assert law.weights is not None
            self._weigh(np.log(law.weights)[self._digits[id(node)]])
            return np.asarray(law.points[self._digits[id(node)]])
        if isinstance(node, Let):
            if id(node) in self._plan.nested:
                return self._nested(node)
            self._condition(node)
            return self._value(node.body)
        solver = self._plan.solver
        if id(node) in solver.passed:
            self._solve(solver.passed[id(node)])
            return self._drawn[id(node)]
        return self._solved_draw(node) if id(node) in solver.solved else self._draw(node)

    def _function(self, node: Call, arguments: list[Floats]) -> Floats:
        found = np.asarray(FUNCTIONS[node.name].apply(*arguments), np.float64)
        if not (np.abs(found) <= LARGEST).all():
            found = np.where(np.abs(found) <= LARGEST, found, math.nan)
            if not any(np.isnan(each).any() for each in arguments):
                at = _shown(arguments, np.isnan(found))
                self.undefined = self.undefined or (node.place, f"{node.name} has no finite value at {at}")
        return found

    def _parameters(self, node: Call) -> tuple[Distribution, list[Floats]]:
        """A family and its parameters, which are allowed wherever the weight is not 0."""
        family, parameters = DISTRIBUTIONS[node.name], [self._value(part) for part in node.arguments]
        bad = np.asarray(~family.valid(*parameters))
        if bad.any():
            bad = bad & (self.log_weights() > -math.inf)
        if bad.any():
            if self.undefined and any(np.isnan(each).any() for each in parameters):
                raise self.undefined[0].wrong(self.undefined[1], "condition by given, or choose values by if")
            at = _shown(parameters, bad)
            raise node.place.wrong(f"{node.name}({at}) is no distribution", f"{family.condition} at every point")
        return family, parameters

    def _draw(self, node: Call) -> Floats:
        family, parameters = self._parameters(node)
        if family.probabilities is None:
            found = quantiles(family, self.column(not family.bounded), parameters)
            if not (np.abs(found) <= LARGEST).all():
                problem = f"{node.name} has values that are no numbers up to {LARGEST:g} in size"
                raise node.place.wrong(problem, "take other parameters")
            return found
        shares = np.asarray(family.probabilities(*parameters))
        if id(node) in self._digits:
            digits = self._digits[id(node)]
            self._weigh(np.log(_chosen(shares, digits)))
            return digits.astype(np.float64)
        below = np.cumsum(shares, -1)[..., :-1] <= self.column()[:, np.newaxis]
        return np.asarray(below.sum(-1), np.float64)

    def _solved_draw(self, node: Call) -> Floats:
        """A draw that conditions set or bound."""
        self._solve(node)
        if id(node) in self._set:
            return self._set[id(node)]
        family, parameters = self._parameters(node)
        assert family.quantile is not None
        assert family.exceeded is not None
        bounds, share = self._bounds[id(node)], self.column()
        (low, high), (above_low, above_high) = bounds.below, bounds.above
        found = family.quantile(low + share * (high - low), *parameters)
        tail = low > 0.5
        if tail.any():  # from above, where shares below round to 1
            far = family.exceeded(above_low - share * (above_low - above_high), *parameters)
            found = np.where(tail, far, found)
        return np.clip(found, bounds.low, bounds.high)

    def _solve(self, node: Call) -> None:
        """Weight by what conditions set or bound a draw, once."""
        if id(node) in self._set or id(node) in self._bounds:
            return
        low, high, equation = np.array(-math.inf), np.array(math.inf), None
        for solved in self._plan.solver.solved[id(node)]:
            end, log_slope, direction = self._preimage(solved)
            if solved.relation == "==":
                equation = solved, end, log_slope
                continue
            upward = (direction > 0) == (solved.relation in (">", ">="))
            low = np.where(upward, np.maximum(low, end), low)
            high = np.where(upward, high, np.minimum(high, end))
        family, parameters = self._parameters(node)
        if equation is not None:
            solved, value, log_slope = equation
            shares = family.probabilities
            log_density = self._log_atom(value, shares(*parameters)) if shares else log_slope
            if family.log_density is not None:
                log_density = log_density + family.log_density(value, *parameters)
            self._fix(node, solved, value, np.where((low <= value) & (value <= high), log_density, -math.inf))
            return
        assert family.share is not None
        assert family.above is not None
        below = family.share(low, *parameters), family.share(high, *parameters)
        above = family.above(low, *parameters), family.above(high, *parameters)
        self._bounds[id(node)] = _Bounds(low, high, below, above)
        mass = np.where(below[0] > 0.5, above[0] - above[1], below[1] - below[0])
        self._weigh(np.log(np.maximum(mass, 0.0)))

    def _log_atom(self, value: Floats, shares: Floats) -> Floats:
        """Logarithms of the probabilities of values of a discrete draw, which may be off by rounding."""
        digits = np.clip(np.rint(np.nan_to_num(value)), 0, shares.shape[-1] - 1).astype(np.int64)
        return np.where(np.abs(digits - value) < SAME, np.log(_chosen(shares, digits)), -math.inf)

    def _fix(self, node: Call, solved: Solved, value: Floats, log_density: Floats) -> None:
        """Set a draw to a value, and weight by the density of what is observed; where its guards hold."""
        chosen = self._guarded(solved.guards)
        if (chosen & (log_density == math.inf) & (self.log_weights() > -math.inf)).any():
            problem = "the density is infinite at the observed value"
            raise solved.place.wrong(problem, "observe the variable itself, or that it is near the value")
        self._weigh(np.where(chosen, log_density, 0.0))
        if DISTRIBUTIONS[node.name].probabilities is not None:
            value = np.rint(value)
        elif not chosen.all():
            family, parameters = self._parameters(node)
            value = np.where(chosen, value, quantiles(family, self.column(), parameters))
        self._set[id(node)] = value

    def _preimage(self, solved: Solved) -> tuple[Floats, Floats, Floats]:
        """Value of a draw at which a condition's sides are equal, ln of its slope, and the sign of its effect."""
        value, log_slope, direction = self._value(solved.target), np.zeros(()), np.ones(())
        for call, at in solved.steps:
            if call.name in DISTRIBUTIONS:
                self._drawn[id(call)] = value
                value = value - self._noise(call)
                continue
            inverse = FUNCTIONS[call.name].inverse
            assert inverse is not None
            found = inverse(at, value, [self._value(part) for k, part in enumerate(call.arguments) if k != at])
            value, log_slope, direction = found.argument, log_slope + found.log_slope, direction * found.direction
            if is_even(call):
                value = np.where(self.column() < 0.5, -1.0, 1.0) * value
                log_slope = log_slope + math.log(2)
        return value, log_slope, direction

    def _guarded(self, guards: Guards) -> Bools:
        """Where conditions hold, or do not, as they must."""
        found = np.ones((), bool)
        for condition, holds in guards:
            value = self._value(condition)
            found = found & ~np.isnan(value) & ((value != 0) == holds)
        return found

    def _noise(self, node: Call) -> Floats:
        """Noise that a draw adds to its location."""
        family, parameters = DISTRIBUTIONS[node.name], [np.zeros(()), self._value(node.arguments[1])]
        if (~family.valid(*parameters) & (self.log_weights() > -math.inf)).any():
            raise node.place.wrong(f"a scale of {node.name} is not above 0", f"{family.condition} at every point")
        return quantiles(family, self.column(True), parameters)

    def _condition(self, node: Let) -> None:
        """Weight by the conditions of a `let`."""
        if not node.observations:
            return
        conditions = self._plan.solver.conditions[id(node)]
        for draw in conditions.draws:
            self._solve(draw)
        for event in conditions.events:
            holds, gap = self._event(event)
            self.holds = self.holds & holds
            far = gap[~holds]
            self.gap = self.gap + gap / (far.mean() if far.any() else 1.0)
        if conditions.observed and not self._pilot:
            self._regress(node, conditions.observed)

    def _event(self, node: Expression) -> tuple[Bools, Floats]:
        """Where a condition holds, and how far from it the others are, 0 or more."""
        if isinstance(node, Call) and node.name in ("and", "or", "not"):
            parts = [self._event(part) for part in node.arguments]
            if node.name == "not":
                return ~parts[0][0], np.where(parts[0][0], 1.0, 0.0)
            both, join = (np.logical_and, np.add) if node.name == "and" else (np.logical_or, np.minimum)
            return both(parts[0][0], parts[1][0]), join(parts[0][1], parts[1][1])
        if isinstance(node, Call) and len(node.arguments) == 2 and FUNCTIONS[node.name].jumps:
            left, right = (self._value(part) for part in node.arguments)
            holds = FUNCTIONS[node.name].apply(left, right) == 1
            return holds, np.where(holds, 0.0, np.nan_to_num(np.abs(left - right), nan=LARGEST))
        value = self._value(node)
        holds = (value != 0) & ~np.isnan(value)
        return holds, np.where(holds, 0.0, 1.0)

    def _regress(self, node: Let, observed: Sequence[Expression]) -> None:
        """Weights of a conditional mean embedding, at some of the points (section 5 of the source)."""
        place = observed[0].place
        if self._plan.inner:
            problem = "an observed value inside another let cannot be solved for one draw"
            raise place.wrong(problem, "bind all variables in one let")
        count = min(self.points, PREDICTED)
        names = [Variable(node.place, name) for name, _ in node.bindings]
        seen, wanted = (
            np.stack([np.broadcast_to(self._value(each), self.points)[:count] for each in group], axis=-1)
            for group in (observed, names)
        )
        if np.isnan(seen).any() or np.isnan(wanted).any():
            problem = "a value that is observed or conditioned is undefined at some point"
            raise place.wrong(problem, "choose values by if")
        weights = self.weights()[:count]
        found = None
        if weights.sum() > 0:
            found = conditional_weights(weights / weights.sum(), seen, np.zeros(len(observed)), wanted)
        if found is None:
            raise place.wrong("no point is near the observed value", "observe one that is more probable")
        self.regressed = place
        self.log_weight, self.sign = np.zeros(()), np.concatenate([found, np.zeros(self.points - count)])
        self.holds, self._log_density = np.ones((), bool), np.zeros(())

    def _nested(self, node: Let) -> Floats:
        """A value of a conditioned part for each value of its free variables, drawn by its weights."""
        count = max(8, min(INNER, MOST_INNER // self.points))
        outer = {
            name: np.repeat(np.broadcast_to(self._value(Variable(node.place, name)), self.points), count)
            for name in node.free
        }
        plan = self._plan.nested[id(node)]
        run = Run(plan, self._laws, _Shifted(self, count, self._source.rng), outer=outer)
        values = run.values().reshape(-1, count)
        self.undefined = self.undefined or run.undefined
        logs = np.broadcast_to(run.log_weights(), values.size).reshape(-1, count)
        top = logs.max(1, keepdims=True)
        if ((top[:, 0] == -math.inf) & (self.log_weights() > -math.inf)).any():
            remedy = "give one that is not rare at any value of the outer variables"
            raise node.observations[0].place.wrong("the condition holds at no point", remedy)
        order = np.argsort(values, axis=1)
        sums = np.cumsum(np.take_along_axis(np.exp(logs - top), order, 1), axis=1)
        at = np.minimum((sums < (self.column() * sums[:, -1])[:, np.newaxis]).sum(1), count - 1)
        rows = np.arange(len(values))
        return np.asarray(values[rows, order[rows, at]])


def _chosen(shares: Floats, digits: Ints) -> Floats:
    """Shares at digits of the last axis."""
    if shares.ndim == 1:
        return shares[digits]
    if digits.ndim == 0:
        return shares[:, digits]
    return np.take_along_axis(shares, digits[:, np.newaxis], 1)[:, 0]


def _shown(arguments: Sequence[Floats], bad: Bools) -> str:
    """The arguments at the first point of some."""
    first = int(np.argmax(bad))
    return ", ".join(f"{np.ravel(each)[first if each.ndim else 0]:.6g}" for each in arguments)
