"""`let v = e1 in e`: sum_i a_i [[e[x_i / v]]] (Scibior and Schoelkopf section 3), and conditioning.

With `given`, the weights a_i are those of the conditional distribution of the bound variables. An
event c multiplies them by its probability in each world, which is exact. An observed value `e == r`
makes them those of a conditional mean embedding.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.semantics.batches import NONE, Batch, Limit, combined, thinned
from thesis_cli.semantics.conditioning import conditional_weights
from thesis_cli.semantics.syntax import Call, Expression, Let

if TYPE_CHECKING:
    from thesis_cli.semantics.evaluate import Evaluator, Worlds

ROWS = 40_000
"""Largest number of rows of a conditional mean embedding."""


def bound(evaluator: Evaluator, node: Let, outer: Worlds) -> Batch:
    """The denotation of a `let` in each world. Raises InputError if an event never holds, no point
    is near an observed value, or an observed value depends on what is conditioned."""
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
    points, weights = batch.full(batch.worlds)
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
        worlds = outer * math.prod(counts[:k])
        if len(error.value) > 1:
            _, weights = batch.full(worlds)
            shaped = error.value.reshape(worlds, -1)
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


def _conditioned(evaluator: Evaluator, node: Let, scopes: tuple[Worlds, Worlds], weights: Floats) -> Floats:
    """Weights of the bound variables given all observations, shape (outer worlds, points)."""
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
    scopes: tuple[Worlds, Worlds],
    weights: Floats,
    observation: tuple[list[Batch], Floats],
) -> Floats:
    """Weights by conditional mean embedding, shape (outer worlds, points).

    Parameters
    ----------
    nodes : the `let`, and the first condition.
    scopes : outer worlds and inner ones, those with the bound variables.
    observation : observation in each inner world, and the observed values, shape (1 or outer
        worlds, observed).
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
    for world in range(outer.count):
        place = at[min(world, len(at) - 1)]
        targets = np.repeat(predicted[world], rows, axis=0)
        given = conditional_weights(joint[world].ravel(), observed[world], place, targets)
        if given is None:
            low, high = observed[world].min(0), observed[world].max(0)
            spans = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True))
            shown = ", ".join(f"{value:g}" for value in place)
            raise nodes[1].place.wrong(f"no point is near the observed {shown}", f"the points are from {spans}")
        result[world] = given.reshape(-1, rows).sum(1)
    return result


def _probability(evaluator: Evaluator, condition: Expression, inner: Worlds) -> Floats:
    """Probability of an event in each world, shape (worlds,)."""
    batch = evaluator.value(condition, inner)
    points, weights = batch.full(inner.count)
    return np.asarray(np.where(np.isnan(points) | (points == 0), 0.0, weights).sum(1), np.float64)


def _normalised(weights: Floats, condition: Expression) -> Floats:
    """Weights of sum 1 in each world."""
    totals = weights.sum(1, keepdims=True)
    if not (totals > 0).all():
        remedy = "give one that is possible at every value of the outer variables, or a larger size"
        raise condition.place.wrong("the condition holds at no point", remedy)
    return np.asarray(weights / totals, np.float64)


def _observed(evaluator: Evaluator, value: Call, outer: Worlds, names: list[str]) -> Floats:
    """The observed value r of `e == r` in each outer world, or one for all."""
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
