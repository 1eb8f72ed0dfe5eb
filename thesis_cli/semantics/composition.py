"""Composition of expansions by the rules of the source (Scibior and Schoelkopf section 3), with bounds on the error.

An expression without free variables denotes an expansion of at most `size` points: whatever has
more is reduced at once, and the reduction's error is measured. Below a `let`, an expression denotes
one expansion for each point of the bound variable, all evaluated together, with at most size^2
points in sum.

`let v = e1 in e` denotes sum_i a_i [[e[x_i / v]]] over the points x_i of e1. With `given`, the weights
a_i are those of the conditional distribution of the bound variables. An event c multiplies them by
its probability in each environment, which is exact. An observed value `e == r` makes them those of a
conditional mean embedding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.embeddings.expansion import Expansion, wasserstein
from thesis_cli.embeddings.kernels import Kernel
from thesis_cli.embeddings.reductions import Reduced, reduce
from thesis_cli.semantics.batches import NONE, Batch, Combined, Limit, combined, offsets, thinned
from thesis_cli.semantics.conditioning import conditional_weights, monotone
from thesis_cli.semantics.denotation import Composed, JointTable, Settings, Step
from thesis_cli.semantics.distributions import DISTRIBUTIONS, Distribution, cell_means, drawn
from thesis_cli.semantics.functions import FUNCTIONS
from thesis_cli.semantics.linear import ROUNDING, composed, is_linear, kernel_error, kernels_of_arguments, of_law
from thesis_cli.semantics.ranges import Interval, Operand, Slopes
from thesis_cli.semantics.syntax import LARGEST, Call, Expression, Let, Number, Place, Variable

UNSIGNED = ("quantiles", "frank-wolfe", "atoms", "herding")
"""Reductions for weights of 0 or more. Expansions with other weights are replaced by a distribution
nearby.
"""
TOTAL = 1e-13
"""Difference of two sums of weights that is rounding."""
PILOT = 50
"""Size of the coarse evaluation that sets a bandwidth."""
FEW = 8
"""Number of points in an environment from which they are means of cells, and not drawn."""


@dataclass(frozen=True)
class Environments:
    """Values of the variables in scope.

    Attributes
    ----------
    count : number of environments.
    values : values of each variable, shape (count,).
    ranges : range of each variable.
    undefined : places and reasons of values that are NaN, by variable.
    """

    count: int = 1
    values: Mapping[str, Floats] = field(default_factory=dict)
    ranges: Mapping[str, Interval] = field(default_factory=dict)
    undefined: Mapping[str, str] = field(default_factory=dict)

    def bound(self, name: str, batch: Batch) -> Environments:
        """An environment for each environment and each point of a batch, which the name is bound to."""
        points, _ = batch.full(self.count)
        values = {other: np.repeat(found, batch.count) for other, found in self.values.items()}
        ranges = {**self.ranges, name: batch.range}
        undefined = {**self.undefined, name: batch.undefined}
        return Environments(self.count * batch.count, {**values, name: points.ravel()}, ranges, undefined)


CLOSED = Environments()
"""The one environment of an expression without free variables."""


def compose(expression: Expression, settings: Settings, seed: int = 0, table: JointTable | None = None) -> Composed:
    """The denotation of an expression, as an expansion of at most `settings.size` points. Raises
    InputError if an operation has no value, a parameter is not allowed, or nothing remains; the
    error names line and column.

    Parameters
    ----------
    expression : all its free variables must be columns of the table.
    seed : seed of points that are drawn; with draws "cells" many expressions draw none.
    """
    evaluator = Evaluator(settings, np.random.default_rng(seed), 0 if table is None else len(table.weights))
    share = 1.0
    if table is None:
        batch = evaluator.value(expression, CLOSED, _kernel(expression, settings, seed))
    else:
        batch, share = _over(evaluator, expression, table)
    expansion = Expansion(batch.points[0], batch.weights[0])
    kernel = batch.kernel or settings.kernel_for(expansion)
    bound = min(batch.embedded, kernel_error(kernel, batch.error.largest))
    steps, moved = tuple(evaluator.steps), evaluator.projected
    return Composed(expansion, kernel, batch.error, bound, steps, evaluator.evaluations, share, moved)


def _kernel(expression: Expression, settings: Settings, seed: int) -> Kernel | None:
    """The kernel that a linear expression is measured with: with the bandwidth that is set, or that
    suits the result of a coarse evaluation. None for any other expression.
    """
    if settings.bandwidth is not None:
        return settings.kernel_for(Expansion(np.zeros(1)))
    if not is_linear(expression):
        return None
    coarse = replace(settings, size=min(PILOT, settings.size), method="quantiles")
    evaluator = Evaluator(coarse, np.random.default_rng(seed))
    found = evaluator.value(expression, CLOSED)
    return settings.kernel_for(Expansion(found.points[0], found.weights[0]))


def _over(evaluator: Evaluator, expression: Expression, table: JointTable) -> tuple[Batch, float]:
    """The denotation over the rows of a table, and the share of their weight that has a value."""
    table, share = table.present(expression.free)
    values, weights = table.columns, table.weights
    ranges = {name: (float(column.min()), float(column.max())) for name, column in values.items()}
    batch = evaluator.value(expression, Environments(len(weights), values, ranges))
    points, inner = batch.full(len(weights))
    size = np.abs(weights)[:, np.newaxis]
    error = Limit.of(float((size[:, 0] * batch.error.value).sum()), batch.error.reason)
    flat = Batch(points.reshape(1, -1), (weights[:, np.newaxis] * inner).reshape(1, -1), error, batch.range)
    flat = replace(flat, undefined=batch.undefined)
    return evaluator.settled(flat, expression), share


class Evaluator:
    """The four rules of section 3, and conditioning.

    Parameters
    ----------
    least_pool : number of points of an operation that is always allowed.
    """

    def __init__(self, settings: Settings, rng: np.random.Generator, least_pool: int = 0) -> None:
        self.settings, self.rng = settings, rng
        self.pool = max(settings.pool, least_pool)
        self.steps: list[Step] = []
        self.projected = 0.0
        self.evaluations = 0

    def value(self, node: Expression, environments: Environments, kernel: Kernel | None = None) -> Batch:
        """The denotation of an expression in each environment; in all alike if it has no free variable.

        Parameters
        ----------
        kernel : kernel that the error is measured with, if the expression has no free variable;
            None for one that suits the points.
        """
        if environments.values and not node.free:
            environments = CLOSED
        match node:
            case Number():
                return Batch(np.array([[node.value]]), np.ones((1, 1)), range=(node.value, node.value), embedded=0.0)
            case Variable():
                values = environments.values[node.name][:, np.newaxis]
                slopes, why = {node.name: Limit.of(1.0)}, environments.undefined.get(node.name, "")
                span = environments.ranges[node.name]
                return Batch(values, np.ones((1, 1)), range=span, slopes=slopes, undefined=why)
            case Let():
                return self.settled(bound(self, node, environments), node, kernel)
        wanted = kernels_of_arguments(node, kernel)
        parts = [self.value(part, environments, one) for part, one in zip(node.arguments, wanted, strict=True)]
        if node.name in FUNCTIONS:
            return self.settled(self._function(node, parts, kernel), node, kernel)
        return self.settled(self._distribution(node, parts), node, kernel)

    def settled(self, batch: Batch, node: Expression, kernel: Kernel | None = None) -> Batch:
        """A batch that no variable matters to, its equal points merged and, if there are more than
        the size, reduced; any other batch as it is.
        """
        if not batch.closed:
            return batch
        points, weights = batch.points[0], batch.full(1)[1][0]
        if np.isnan(points).any():
            raise _undefined(batch, float(np.abs(weights[np.isnan(points)]).sum() / np.abs(weights).sum()))
        expansion, error, embedded = Expansion(points, weights).merged(), batch.error, batch.embedded
        if self.settings.method in UNSIGNED and expansion.total > 0 and not (expansion.weights >= 0).all():
            given, expansion = expansion, monotone(expansion)
            self.projected = max(self.projected, self.settings.kernel_for(given).distance(given, expansion))
            reason = f"negative weights of {_name(node)} at {node.place} are replaced"
            error, embedded = error + Limit.of(math.inf, reason), math.inf
        kernel = kernel or self.settings.kernel_for(expansion)
        embedded = min(embedded, kernel_error(kernel, error.largest), of_law(node, expansion, kernel))
        if len(expansion) > self.settings.size:
            found = self._reduced(expansion, node, kernel, batch.range)
            reason = f"{self.settings.method} gave {_name(node)} at {node.place} weights below 0 or of another sum"
            error = error + Limit.of(math.inf if found.wasserstein is None else found.wasserstein, reason)
            embedded = min(embedded + found.rkhs_error + ROUNDING, kernel_error(kernel, error.largest))
            expansion = found.expansion
        points, weights = expansion.points.T, expansion.weights[np.newaxis]
        return replace(batch, points=points, weights=weights, error=error, embedded=embedded, kernel=kernel)

    def _reduced(self, expansion: Expansion, node: Expression, kernel: Kernel, span: Interval) -> Reduced:
        """A reduction with its measured errors.

        Points that left the range of the values move back, and the weights get the sum that they had.
        """
        try:
            found = reduce(expansion, self.settings.size, self.settings.method, kernel, self.rng)
        except InputError as refused:
            raise node.place.wrong(refused.problem, refused.remedy) from None
        small = found.expansion
        outside = small.points.min() < span[0] or small.points.max() > span[1]
        if outside or (abs(small.total - expansion.total) > TOTAL and small.total > 0):
            weights = small.weights * (expansion.total / small.total)
            small = Expansion(np.clip(small.points, *span), weights).merged()
            found = Reduced(small, kernel.distance(expansion, small), wasserstein(expansion, small))
        counts = len(expansion), len(small)
        self.steps.append(Step(node.place, _name(node), *counts, found.rkhs_error, found.wasserstein))
        return found

    def together(self, parts: list[Batch]) -> Combined:
        """The combinations of the points of some expressions."""
        return combined(parts, self.pool, self.rng, self.settings.draws == "cells")

    def _function(self, node: Call, parts: list[Batch], kernel: Kernel | None) -> Batch:
        """f(e1, ..., en): sum_ij a_i b_j Phi(f(x_i, y_j)), with a bound of the error that `kernel` measures
        unless a sample stands for the sum.
        """
        function = FUNCTIONS[node.name]
        found = self.together(parts)
        with np.errstate(all="ignore"):
            values = np.asarray(function.apply(*found.columns), np.float64)
            values = np.where(np.abs(values) <= LARGEST, values, math.nan)
        self.evaluations += values.size
        undefined = ""
        if np.isnan(values).any():
            undefined = next((part.undefined for part in parts if part.undefined), "")
        if not undefined and np.isnan(values).any():
            first = np.unravel_index(int(np.argmax(np.isnan(values))), values.shape)
            at = ", ".join(f"{column[first]:.6g}" for column in found.columns)
            undefined = f"{node.place}: {node.name} has no finite value at {at}"
        error, slopes = self._limits(node, parts, function.sloping, function.jumps)
        if found.sampled:
            error = error + Limit.of(
                math.inf, f"combinations of the arguments of {node.name} at {node.place} are sampled"
            )
        batch = Batch(values, found.weights, error, function.ranging([p.operand for p in parts]), slopes, undefined)
        if kernel is None or found.sampled or not batch.closed:
            return batch
        return replace(batch, embedded=composed(node, parts, kernel))

    def _distribution(self, node: Call, parts: list[Batch]) -> Batch:
        """D(e1, ..., en): sum_ij a_i b_j mu(D(x_i, y_j))."""
        family = DISTRIBUTIONS[node.name]
        found = self.together(parts)
        for part, column in zip(parts, found.columns, strict=True):
            if part.undefined and np.isnan(column).any():
                raise _undefined(part)
        bad = ~family.valid(*found.columns)
        if bad.any():
            first = np.unravel_index(int(np.argmax(bad)), bad.shape)
            at = ", ".join(f"{column[first]:.6g}" for column in found.columns)
            raise node.place.wrong(f"{node.name}({at}) is no distribution", f"{family.condition} at every point")
        error, slopes = self._limits(node, parts, family.sloping, False)
        if found.sampled:
            error = error + Limit.of(
                math.inf, f"combinations of the arguments of {node.name} at {node.place} are sampled"
            )
        values = family.ranging([p.operand for p in parts])
        if family.probabilities is not None:
            shares = (family.probabilities(*found.columns) * found.weights[..., np.newaxis]).sum(1)
            self.evaluations += shares.size
            return Batch(np.arange(shares.shape[1], dtype=np.float64)[np.newaxis], shares, error, values, slopes)
        with np.errstate(all="ignore"):
            points, weights, added = self._points(family, found, node.place)
        if not (np.abs(points) <= LARGEST).all():
            problem = f"{node.name} has values that are no numbers up to {LARGEST:g} in size"
            raise node.place.wrong(problem, "take other parameters")
        points = np.clip(points, *values)  # means of cells leave the range by rounding
        return Batch(points, weights, error + added, values, slopes)

    def _points(self, family: Distribution, found: Combined, place: Place) -> tuple[Floats, Floats, Limit]:
        """Points and weights of a mixture of continuous distributions, and their W1 error."""
        environments, combinations = found.columns[0].shape
        count = int(max(1, min(self.settings.size, self.pool // (environments * combinations))))
        parameters = [np.asarray(column, np.float64) for column in found.columns]
        assert family.quantile is not None
        if self.settings.draws == "random":
            wide = [p[..., np.newaxis] for p in parameters]
            points = family.quantile(self.rng.random((environments, combinations, count)), *wide)
            added = Limit.of(math.inf, f"the points of {family.name} at {place} are random")
        else:
            if count >= FEW:
                points, errors = cell_means(family, count, parameters)
            else:
                places = offsets(environments * combinations, count, self.rng).reshape(
                    environments, combinations, count
                )
                points, errors = drawn(family, count, places, parameters)
            added = Limit.of((np.abs(found.weights) * errors).sum(1))
        self.evaluations += points.size
        weights = np.repeat(found.weights / count, count, axis=1)
        return points.reshape(environments, combinations * count), weights, added

    def _limits(
        self, node: Call, parts: list[Batch], sloping: Callable[..., Slopes], jumps: bool
    ) -> tuple[Limit, dict[str, Limit]]:
        """The errors of the arguments in the result, and how far it moves with each variable."""
        what = "continuous" if jumps else "Lipschitz"
        spans = ", ".join(f"[{p.range[0]:.4g}, {p.range[1]:.4g}]" for p in parts)
        reason = f"{node.name} at {node.place} is not {what} on {spans}"
        error, slopes = NONE, dict[str, Limit]()
        for part, constant in zip(parts, sloping([p.operand for p in parts]), strict=True):
            error = error + part.error.scaled(constant, reason)
        widest: list[Operand] = [p.widest for p in parts]
        for part, constant in zip(parts, sloping(widest), strict=True):
            for name, slope in part.slopes.items():
                slopes[name] = slopes.get(name, NONE) + slope.scaled(constant, reason)
        return error, slopes


def _name(node: Expression) -> str:
    """Name of an expression in errors."""
    return "let" if isinstance(node, Let) else node.name if isinstance(node, Call | Variable) else "the number"


def _undefined(batch: Batch, share: float | None = None) -> InputError:
    """An error about points without a value."""
    place, _, what = batch.undefined.partition(": ")
    about = "" if share is None else f" ({100 * share:.3g} % of the weight)"
    return InputError(f"{what}{about}", "condition by given, choose values by if, or change the size", source=place)


ROWS = 40_000
"""Largest number of rows of a conditional mean embedding."""


def bound(evaluator: Evaluator, node: Let, outer: Environments) -> Batch:
    """The denotation of a `let` in each environment.

    Raises
    ------
    InputError : an event never holds, no point is near an observed value, or an observed value
        depends on what is conditioned.
    """
    inner, stages = outer, list[tuple[str, Batch]]()
    weights = np.ones((outer.count, 1))
    pool = min(evaluator.pool, ROWS) if node.observations else evaluator.pool
    for name, expression in node.bindings:
        batch = thinned(evaluator.value(expression, inner), inner.count, max(pool, inner.count), evaluator.rng)
        stages.append((name, batch))
        _, own = batch.full(inner.count)
        weights = (weights[:, :, np.newaxis] * own.reshape(outer.count, -1, batch.count)).reshape(outer.count, -1)
        inner = inner.bound(name, batch)
    if node.observations:
        weights = _conditioned(evaluator, node, (outer, inner), weights)
    if node.body.free.isdisjoint(name for name, _ in stages):
        return evaluator.value(node.body, outer)
    body = evaluator.value(node.body, inner)
    error, slopes = _limits(node, stages, body, outer.count)
    points, own = body.full(inner.count)
    flat = Batch(
        points.reshape(outer.count, -1),
        (weights.reshape(-1, 1) * own).reshape(outer.count, -1),
        error,
        body.range,
        slopes,
        body.undefined,
    )
    if body.undefined:
        flat = _dropped(flat)
    return flat


def _dropped(batch: Batch) -> Batch:
    """The batch with points without a value at 0 where their weight is 0."""
    points, weights = batch.full(batch.environments)
    idle = np.isnan(points) & (weights == 0)
    return replace(batch, points=np.where(idle, 0.0, points), undefined=batch.undefined)


def _limits(node: Let, stages: list[tuple[str, Batch]], body: Batch, outer: int) -> tuple[Limit, dict[str, Limit]]:
    """The W1 error of a `let`, and how far it moves with each outer variable.

    W1 of sum_i a_i K(x_i) from the exact integral of K is at most the mean error of the K(x_i), plus
    the error of the bound variable times the slope of K.
    """
    error, slopes = body.error, dict(body.slopes)
    counts = [batch.count for _, batch in stages]
    for k in range(len(stages) - 1, -1, -1):
        name, batch = stages[k]
        slope = slopes.pop(name, NONE)
        environments = outer * math.prod(counts[:k])
        if len(error.value) > 1:
            _, weights = batch.full(environments)
            shaped = error.value.reshape(environments, -1)
            with np.errstate(invalid="ignore"):
                sums = np.where(weights == 0, 0.0, np.abs(weights) * shaped).sum(1)
            error = Limit.of(sums, error.reason)
        error = error + batch.error.scaled(slope.largest, slope.reason)
        for other, own in batch.slopes.items():
            slopes[other] = slopes.get(other, NONE) + own.scaled(slope.largest, slope.reason)
    if node.observations:
        place = node.observations[0].place
        error = Limit.of(math.inf, f"none is known for the conditioning at {place}")
        slopes = {name: Limit.of(math.inf, error.reason) for name in node.free}
    return error, slopes


def _conditioned(evaluator: Evaluator, node: Let, scopes: tuple[Environments, Environments], weights: Floats) -> Floats:
    """Weights of the bound variables given all observations, shape (outer environments, points)."""
    outer, inner = scopes
    values = [c for c in node.observations if isinstance(c, Call) and c.name == "=="]
    for condition in node.observations:
        if condition not in values:
            weights = weights * _probability(evaluator, condition, inner).reshape(-1, weights.shape[1])
            weights = _normalised(weights, condition)
    parts = [(value, evaluator.value(value.arguments[0], inner)) for value in values]
    fixed = [(value, part) for value, part in parts if part.count == 1]
    # Observations are independent given the bound variables, so one may follow another. What is a
    # function of these variables comes last and together: its weights alternate in sign.
    for group in (*([each] for each in parts if each[1].count > 1), *([fixed] if fixed else ())):
        weights = _normalised(np.maximum(weights, 0.0), group[0][0])
        at = [_observed(evaluator, value, outer, [name for name, _ in node.bindings]) for value, _ in group]
        observed = [part for _, part in group]
        weights = _embedded(evaluator, (node, group[0][0]), (outer, inner), weights, (observed, np.stack(at, axis=-1)))
    return weights


def _embedded(
    evaluator: Evaluator,
    nodes: tuple[Let, Call],
    scopes: tuple[Environments, Environments],
    weights: Floats,
    observation: tuple[list[Batch], Floats],
) -> Floats:
    """Weights by conditional mean embedding, shape (outer environments, points).

    Parameters
    ----------
    nodes : the `let`, and the first condition.
    scopes : outer environments and inner ones, those with the bound variables.
    observation : what is observed in each inner environment, and the observed values, shape (1 or outer
        environments, observed).
    """
    outer, inner = scopes
    parts, at = observation
    found = combined(parts, ROWS, evaluator.rng)
    rows = found.columns[0].shape[1]
    shape = (inner.count, rows)
    observed = np.stack([np.broadcast_to(c, shape).reshape(outer.count, -1) for c in found.columns], axis=-1)
    own = np.broadcast_to(found.weights, shape).reshape(outer.count, -1, rows)
    joint = weights[:, :, np.newaxis] * np.maximum(own, 0.0)
    names = dict.fromkeys(name for name, _ in nodes[0].bindings)
    predicted = np.stack([inner.values[name].reshape(outer.count, -1) for name in names], axis=-1)
    if np.isnan(observed).any() or np.isnan(predicted).any():
        problem = "a value that is observed or conditioned is undefined at some point"
        raise nodes[1].place.wrong(problem, "choose values by if")
    result = np.empty_like(weights)
    for environment in range(outer.count):
        place = at[min(environment, len(at) - 1)]
        targets = np.repeat(predicted[environment], rows, axis=0)
        given = conditional_weights(joint[environment].ravel(), observed[environment], place, targets)
        if given is None:
            low, high = observed[environment].min(0), observed[environment].max(0)
            spans = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True))
            shown = ", ".join(f"{value:g}" for value in place)
            raise nodes[1].place.wrong(f"no point is near the observed {shown}", f"the points are from {spans}")
        result[environment] = given.reshape(-1, rows).sum(1)
    return result


def _probability(evaluator: Evaluator, condition: Expression, inner: Environments) -> Floats:
    """Probability of an event in each environment, shape (environments,)."""
    batch = evaluator.value(condition, inner)
    points, weights = batch.full(inner.count)
    return np.asarray(np.where(np.isnan(points) | (points == 0), 0.0, weights).sum(1), np.float64)


def _normalised(weights: Floats, condition: Expression) -> Floats:
    """Weights of sum 1 in each environment."""
    totals = weights.sum(1, keepdims=True)
    if not (totals > 0).all():
        remedy = "give one that is possible at every value of the outer variables, or a larger size"
        raise condition.place.wrong("the condition holds at no point", remedy)
    return np.asarray(weights / totals, np.float64)


def _observed(evaluator: Evaluator, value: Call, outer: Environments, names: list[str]) -> Floats:
    """The observed value r of `e == r` in each outer environment, or one for all."""
    side = value.arguments[1]
    if not side.free.isdisjoint(names):
        name = next(name for name in names if name in side.free)
        remedy = "write given e - other == 0 if both sides vary"
        raise side.place.wrong(f"the observed value depends on {name}, which is conditioned", remedy)
    batch = evaluator.value(side, outer)
    if batch.count > 1:
        remedy = "the right side of == must be one number; bind it by an outer let"
        raise side.place.wrong("the observed value is random", remedy)
    return batch.points[:, 0]
