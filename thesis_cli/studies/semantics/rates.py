"""Errors of embeddings of functions of two variables, from samples (Scibior and Schoelkopf section
4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.embeddings.expansion import Expansion, push_forward
from thesis_cli.embeddings.kernels import Kernel

LEVELS = 50_000
"""Points of the expansion that stands for an exact law."""

Quantile = Callable[[Floats], Floats]
"""Quantile function of a law: levels in (0, 1) -> values."""


def dense(quantile: Quantile, count: int = LEVELS) -> Expansion:
    """Law as `count` points of equal weight, its quantiles at the middles of parts of equal
    probability.
    """
    return Expansion(quantile((np.arange(count) + 0.5) / count))


class TargetEmbedding:
    """Embedding of a law that many expansions are compared with."""

    def __init__(self, law: Expansion, kernel: Kernel) -> None:
        self._sums, self.kernel = kernel.prepared(law), kernel
        self._squared = kernel.inner(law, law)

    def monte_carlo(self, count: int) -> float:
        """Root mean square distance of `count` independent values of equal weight from the law,
        exact: sqrt((1 - |mu|^2) / count).
        """
        return math.sqrt((1 - self._squared) / count)

    def distance(self, expansion: Expansion) -> float:
        """RKHS distance of an expansion on the line, accurate to about 1e-7."""
        cross = float(expansion.weights @ self._sums.at(expansion.points[:, 0])[0])
        return math.sqrt(max(0.0, self.kernel.inner(expansion, expansion) - 2 * cross + self._squared))


@dataclass(frozen=True)
class FunctionOfTwo:
    """A function f(X, Y) of independent variables, with all laws known.

    Attributes
    ----------
    function : f, of arrays of values.
    first, second, law : quantile functions of X, Y and f(X, Y).
    """

    function: Callable[[Floats, Floats], Floats] = field(repr=False)
    first: Quantile = field(repr=False)
    second: Quantile = field(repr=False)
    law: Quantile = field(repr=False)

    def expansion(self, alpha: Floats, beta: Floats, rng: np.random.Generator) -> Expansion:
        """sum_ij alpha_i beta_j Phi(f(x_i, y_j)) for independent samples x_i and y_j, which the
        weights do not depend on.
        """
        x, y = self.first(rng.random(len(alpha))), self.second(rng.random(len(beta)))
        return push_forward(self.function, Expansion(x, alpha), Expansion(y, beta))

    def chosen(self, count: int, rng: np.random.Generator) -> Expansion:
        """The same with equal weights on the samples x_i above the median of X and none on the
        others: weights that depend on the samples.
        """
        level = rng.random(count)
        y = self.second(rng.random(count))
        above = (level > 0.5).astype(np.float64)
        alpha = above / above.sum() if above.any() else np.full(count, 1 / count)
        return push_forward(self.function, Expansion(self.first(level), alpha), Expansion(y))


def equal(count: int) -> Floats:
    """Weights 1/m (Theorem 1)."""
    return np.full(count, 1 / count)


def signed(count: int) -> Floats:
    """Weights 3/m and -1/m by turns, for an even number m: a sum of squares of 5/m."""
    return np.where(np.arange(count) % 2, -1.0, 3.0) / count


def decaying(count: int) -> Floats:
    """Weights in proportion to i^-0.7, whose squares add up to about m^-0.6."""
    found = np.arange(1.0, count + 1) ** -0.7
    return np.asarray(found / found.sum())


def uneven(count: int) -> Floats:
    """Half of the weight on the first sqrt(m) points, m >= 2, so that the squares add up to about
    m^-0.5 / 4.
    """
    heavy = max(1, math.isqrt(count))
    found = np.full(count, 0.5 / max(1, count - heavy))
    found[:heavy] = 0.5 / heavy
    return found


WEIGHTS = {"equal": equal, "signed": signed, "decaying": decaying, "uneven": uneven}


def spread(weights: Floats) -> float:
    """sqrt(sum alpha_i^2), the rate of Theorem 2 that one variable adds."""
    return math.sqrt(float(weights @ weights))


@dataclass(frozen=True)
class Slope:
    """Slope of ln y against ln x, with its standard error."""

    value: float
    standard_error: float


def log_slope(x: Floats, y: Floats, errors: Floats) -> Slope:
    """Least squares on logarithms, weighted by the standard errors of y.

    Parameters
    ----------
    x, y, errors : positive, shape (n,) each, for at least two different x.
    """
    weights = (y / errors) ** 2
    at = np.log(x)
    at = at - weights @ at / weights.sum()
    scale = weights @ at**2
    return Slope(float(weights @ (at * np.log(y)) / scale), float(1 / math.sqrt(scale)))


def mean_errors(
    pair: FunctionOfTwo, kernel: Kernel, weights: str, sizes: list[int], repeats: int, rng: np.random.Generator
) -> list[tuple[float, float, float]]:
    """Rate sqrt(sum alpha^2) + sqrt(sum beta^2), mean error and its standard error, for each number m
    of samples.

    Parameters
    ----------
    weights : name in `WEIGHTS`, or `chosen` for those of `FunctionOfTwo.chosen`.
    repeats : number of independent expansions of each size, 2 or more.
    """
    target = TargetEmbedding(dense(pair.law), kernel)
    found = []
    for size in sizes:
        if weights == "chosen":
            made = (pair.chosen(size, rng) for _ in range(repeats))
            rate = math.sqrt(2 / size) + math.sqrt(1 / size)  # about half of the samples have weight
        else:
            alpha = WEIGHTS[weights](size)
            made = (pair.expansion(alpha, alpha, rng) for _ in range(repeats))
            rate = 2 * spread(alpha)
        errors = np.array([target.distance(expansion) for expansion in made])
        found.append((rate, float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(repeats))))
    return found
