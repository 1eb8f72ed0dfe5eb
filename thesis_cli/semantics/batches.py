"""Expansions of one expression in many environments at once.

An environment gives a value to each variable in scope. In environment w an expression denotes the expansion
sum_n weights[w, n] Phi(points[w, n]). What holds in all environments alike has one row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.embeddings.kernels import Kernel
from thesis_cli.semantics.ranges import REALS, Interval, Operand, times


@dataclass(frozen=True)
class Limit:
    """An upper bound, or why there is none.

    Attributes
    ----------
    value : one number for each environment, or one for all; inf if there is no bound.
    reason : why it is infinite; empty if it is not.
    """

    value: Floats
    reason: str = ""

    @classmethod
    def of(cls, value: float | Floats, reason: str = "") -> Limit:
        """A bound; the reason counts only if some value is infinite."""
        values = np.atleast_1d(np.asarray(value, np.float64))
        return cls(values, reason if np.isinf(values).any() else "")

    def __add__(self, other: Limit) -> Limit:
        return Limit(self.value + other.value, self.reason or other.reason)

    def scaled(self, factor: float | Floats, reason: str = "") -> Limit:
        """The bound times a factor, which is infinite for a reason; 0 times infinity is 0."""
        found = np.atleast_1d(np.asarray(times(np.asarray(factor, np.float64), self.value), np.float64))
        why = (reason if np.isinf(factor).any() else "") or self.reason
        return Limit(found, why if np.isinf(found).any() else "")

    @property
    def largest(self) -> float:
        """The largest bound of all environments."""
        return float(self.value.max())


NONE = Limit(np.zeros(1))
"""The bound 0."""


@dataclass(frozen=True)
class Batch:
    """The denotation of an expression in each environment.

    Attributes
    ----------
    points, weights : shapes (W, n) or (1, n) each; a point is NaN where the expression has no value.
    error : bound on the W1 distance from the exact distribution in each environment, given the values of
        the variables.
    range : interval that holds the exact values in all environments.
    slopes : bound on the W1 distance that a change of a variable by 1 makes, by variable.
    undefined : places and reasons of points that are NaN; empty if none is.
    embedded : bound on the RKHS distance from the exact embedding, if no variable matters; inf if
        there is none.
    kernel : the kernel of that RKHS.
    """

    points: Floats
    weights: Floats
    error: Limit = NONE
    range: Interval = REALS
    slopes: Mapping[str, Limit] = field(default_factory=dict)
    undefined: str = ""
    embedded: float = math.inf
    kernel: Kernel | None = None

    @property
    def closed(self) -> bool:
        """Whether no variable matters."""
        return self.environments == 1 and not any(limit.value.any() for limit in self.slopes.values())

    @property
    def environments(self) -> int:
        """Number of environments, 1 if all are alike."""
        return max(len(self.points), len(self.weights))

    @property
    def count(self) -> int:
        """Number n of points in an environment."""
        return int(self.points.shape[1])

    @property
    def operand(self) -> Operand:
        """Range, and E|X| in each environment."""
        sizes = (np.abs(self.weights) * np.abs(self.points)).sum(1) + self.error.value
        return Operand(self.range, np.where(np.isnan(sizes), math.inf, sizes))

    @property
    def widest(self) -> Operand:
        """Range, and E|X| for all values of the variables; known where none matters."""
        if not self.closed:
            return Operand(self.range)
        moment = self.operand.moment
        return Operand(self.range, float(np.max(moment)))

    def full(self, environments: int) -> tuple[Floats, Floats]:
        """Points and weights of shape (environments, n) each."""
        shape = environments, self.count
        return np.broadcast_to(self.points, shape), np.broadcast_to(self.weights, shape)


def strata(environments: int, count: int, rng: np.random.Generator) -> Floats:
    """Uniform numbers of shape (environments, count), evenly spread in each row and in each column.

    Each number is uniform on (0, 1). A row has one number in each of `count` equal parts, in random
    order, and their places within the parts are evenly spread over the rows.
    """
    rows = np.tile(np.arange(count), (environments, 1))
    part = rng.permuted(rows, axis=1)
    return (part + offsets(environments, count, rng)) / count


def offsets(environments: int, count: int, rng: np.random.Generator) -> Floats:
    """Uniform numbers of shape (environments, count), evenly spread in each column."""
    columns = np.tile(np.arange(environments)[:, np.newaxis], (1, count))
    places = rng.permuted(columns, axis=0)
    return np.asarray((places + rng.random((environments, count))) / environments)


def chosen(batch: Batch, shares: Floats) -> tuple[Floats, Floats]:
    """Points of an expansion at some shares of its absolute weight.

    Parameters
    ----------
    shares : numbers in (0, 1), shape (environments, m).

    Returns
    -------
    points : shape (environments, m).
    factors : sign of each point's weight times the total absolute weight of its environment, so that the
        mean of factors times features estimates the expansion.
    """
    alike = batch.environments == 1
    points, weights = batch.full(batch.environments)
    order = np.argsort(points, axis=1, kind="stable")
    points, weights = np.take_along_axis(points, order, 1), np.take_along_axis(weights, order, 1)
    sums = np.cumsum(np.abs(weights), axis=1)
    totals = sums[:, -1:]
    sums = sums / np.where(totals > 0, totals, 1.0)
    if alike:
        at = np.minimum(np.searchsorted(sums[0], shares, side="right"), batch.count - 1)
        return points[0, at], np.sign(weights[0, at]) * totals[0]
    rows = np.arange(batch.environments)[:, np.newaxis]
    keys = np.searchsorted((sums + rows).ravel(), (shares + rows).ravel(), side="right").reshape(shares.shape)
    at = np.clip(keys - rows * batch.count, 0, batch.count - 1)
    return np.take_along_axis(points, at, 1), np.sign(np.take_along_axis(weights, at, 1)) * totals


@dataclass(frozen=True)
class Combined:
    """Independent expressions side by side.

    Attributes
    ----------
    columns : values of each, shape (W, n) each.
    weights : shape (W, n).
    sampled : whether a sample of the combinations of their points stands for all.
    """

    columns: Sequence[Floats]
    weights: Floats
    sampled: bool


def combined(parts: Sequence[Batch], pool: int, rng: np.random.Generator, spread: bool = True) -> Combined:
    """All combinations of the points of independent expressions in each environment, or a sample.

    Parameters
    ----------
    pool : largest number of combinations in all environments together. Of more, a sample is taken: evenly
        spread in each expression, in random combinations, and at least one in each environment.
    spread : whether a sample is evenly spread; otherwise it is independent.
    """
    environments = max(part.environments for part in parts)
    most = max(1, pool // environments)
    total = math.prod(part.count for part in parts)
    if total <= most:
        shape = tuple(part.count for part in parts)
        columns, weights = [], np.ones((1, *shape))
        for axis, part in enumerate(parts):
            sides = tuple(part.count if axis == k else 1 for k in range(len(parts)))
            columns.append(part.points.reshape(-1, *sides))
            weights = weights * part.weights.reshape(-1, *sides)
        wide = (max(environments, len(weights)), *shape)
        return Combined(
            [np.broadcast_to(column, wide).reshape(environments, total) for column in columns],
            weights.reshape(len(weights), total),
            False,
        )
    columns, weights = [], np.full((1, most), 1 / most)
    for part in parts:
        if part.count == 1:
            columns.append(np.broadcast_to(part.points, (environments, most)))
            weights = weights * part.weights
            continue
        shares = strata(environments, most, rng) if spread else rng.random((environments, most))
        points, factors = chosen(part, shares)
        columns.append(points)
        weights = weights * factors
    return Combined(columns, weights, True)


def thinned(batch: Batch, environments: int, pool: int, rng: np.random.Generator) -> Batch:
    """A batch with at most `pool` points in some environments together, evenly spread in each."""
    if environments * batch.count <= pool:
        return batch
    found = combined([batch, Batch(np.zeros((environments, 1)), np.ones((1, 1)))], pool, rng)
    error = Limit.of(math.inf, f"{batch.count} points in each of {environments} environments were sampled")
    return replace(batch, points=found.columns[0], weights=found.weights, error=batch.error + error)
