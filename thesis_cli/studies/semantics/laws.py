"""Expressions whose exact laws are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaincinv, lambertw, ndtr, ndtri

from thesis_cli.base.arrays import Floats
from thesis_cli.studies.semantics.rates import FunctionOfTwo, Quantile

GRID = 200_001
"""Places at which a distribution function is tabulated, to be inverted."""


def inverse(cdf: Callable[[Floats], Floats], low: float, high: float) -> Quantile:
    """Quantile function of a law on [low, high], from its continuous distribution function."""
    places = np.linspace(low, high, GRID)
    levels = cdf(places)
    return lambda level: np.interp(level, levels, places)


def normal(mean: float, sd: float) -> Quantile:
    return lambda level: mean + sd * ndtri(level)


def uniform(low: float, high: float) -> Quantile:
    return lambda level: low + (high - low) * level


def exponential(rate: float) -> Quantile:
    return lambda level: -np.log1p(-level) / rate


def cauchy(level: Floats) -> Floats:
    """Quantiles of a quotient of two standard normal variables."""
    return np.asarray(np.tan(math.pi * (level - 0.5)))


def product_of_uniforms(level: Floats) -> Floats:
    """Quantiles z of the product of two variables uniform on [0, 1]: z (1 - ln z) is the level."""
    return np.asarray(np.exp(1 + lambertw(-level / math.e, k=-1).real))


def sum_of_uniforms(count: int) -> Quantile:
    """Quantiles of the sum of variables uniform on [0, 1] (Irwin and Hall)."""

    def below_the_middle(x: Floats) -> Floats:
        terms = ((-1) ** k * math.comb(count, k) * np.maximum(x - k, 0.0) ** count for k in range(count + 1))
        return np.asarray(sum(terms)) / math.factorial(count)

    def cdf(x: Floats) -> Floats:
        part = below_the_middle(np.minimum(x, count - x))
        return np.where(x < count / 2, part, 1 - part)

    return inverse(cdf, 0.0, float(count))


@dataclass(frozen=True)
class Conditioned:
    """A conditioned expression."""

    text: str
    quantile: Quantile = field(repr=False)


CONDITIONED = {
    "normal": Conditioned("let m = normal(0, 1), y = normal(m, 0.5) given y == 1.2 in m", normal(0.96, math.sqrt(0.2))),
    "two normal": Conditioned(
        "let m = normal(0, 1), y = normal(m, 1), z = normal(m, 1) given y == 1, z == 0.5 in m",
        normal(0.5, math.sqrt(1 / 3)),
    ),
    "gamma": Conditioned(
        "let r = gamma(2, 1), y = exponential(1 / r) given y == 1.5 in r",
        lambda level: np.asarray(gammaincinv(3, level) / 2.5),
    ),
    "beta": Conditioned("let p = uniform(0, 1), k = bernoulli(p) given k == 1 in p", np.sqrt),
    "event": Conditioned(
        "let x = normal(0, 1) given x > 1 in x", lambda level: np.asarray(-ndtri((1 - level) * ndtr(-1)))
    ),
}
"""Conditioned expressions with conjugate laws, by name: three observed values, a coin and an event."""

PAIRS = {
    "X + Y": FunctionOfTwo(np.add, normal(0, 1), normal(1, 0.5), normal(1, math.sqrt(1.25))),
    "X Y": FunctionOfTwo(np.multiply, uniform(0, 1), uniform(0, 1), product_of_uniforms),
    "X / Y": FunctionOfTwo(np.divide, normal(0, 1), normal(0, 1), cauchy),
    "X > Y": FunctionOfTwo(
        lambda x, y: np.asarray(x > y, np.float64),
        normal(0, 1),
        normal(1, 1),
        lambda level: np.asarray(level > 1 - ndtr(-1 / math.sqrt(2)), np.float64),
    ),
}
"""Functions of two variables: smooth, with heavy tails, and not continuous."""
