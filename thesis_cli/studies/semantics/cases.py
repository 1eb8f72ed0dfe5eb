"""Expressions whose laws are known in closed form, with a program that samples each: the cases on which
`kernel-eval` is measured beside weighted Monte Carlo.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from scipy.special import gammaincinv, lambertw, ndtr, ndtri

from thesis_cli.base.arrays import Floats
from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.studies.semantics.rates import FunctionOfTwo, Quantile

if TYPE_CHECKING:
    from scipy.stats.distributions import rv_frozen

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


Simulator = Callable[[np.random.Generator, int], "Floats | tuple[Floats, Floats]"]

SHARES = (0.05, 0.5, 0.95)
"""Shares of the quantiles that are asked, beside mean and standard deviation."""
QUERY = "mean, sd, quantile(0.05), median, quantile(0.95)"


@dataclass(frozen=True)
class Case:
    """An expression, its law, and a program that samples it.

    Attributes
    ----------
    mean, sd : moments of the law; NaN if they are infinite or undefined.
    sample : independent values from a generator and their number; of a conditioned expression, values and their
        weights, as plain weighted Monte Carlo computes them.
    smooth : whether the value is an analytic function of independent variables, and its moments are finite.
    """

    text: str
    quantile: Quantile = field(repr=False)
    mean: float
    sd: float
    sample: Simulator = field(repr=False)
    smooth: bool = False

    @cached_property
    def truth(self) -> Floats:
        """Exact mean, standard deviation and quantiles of `SHARES`; NaN where there is none."""
        return np.array([self.mean, self.sd, *self.quantile(np.array(SHARES))])

    @cached_property
    def scale(self) -> float:
        """Standard deviation, or half the distance of the outer quantiles if there is none."""
        low, _, high = self.truth[2:]
        return float(self.sd if math.isfinite(self.sd) else (high - low) / 2)

    def error(self, answers: Floats) -> float:
        """Root mean square error of mean, standard deviation and quantiles, in units of `scale`."""
        return float(np.sqrt(np.nanmean(((answers - self.truth) / self.scale) ** 2)))

    def monte_carlo(self, rng: np.random.Generator, count: int) -> Expansion:
        """Weighted Monte Carlo with a number of values."""
        found = self.sample(rng, count)
        values, weights = found if isinstance(found, tuple) else (found, np.ones(count))
        return Expansion(values, weights / weights.sum())


def answers(values: Expansion) -> Floats:
    """Mean, standard deviation and quantiles of weighted values, as a short program computes them."""
    x, w = values.points[:, 0], values.weights
    mean = w @ x
    order = np.argsort(x)
    at = np.searchsorted(np.cumsum(w[order]), SHARES)
    return np.array([mean, math.sqrt(w @ (x - mean) ** 2), *x[order[np.minimum(at, len(x) - 1)]]])


def _case(text: str, law: rv_frozen[Any, Any], sample: Simulator, smooth: bool = False) -> Case:
    """A case whose law is one of `scipy.stats`."""
    return Case(text, law.ppf, float(law.mean()), float(law.std()), sample, smooth)


def _density(x: Floats, deviation: float) -> Floats:
    return np.asarray(np.exp(-0.5 * (x / deviation) ** 2))


def _observed(deviation: float, *values: float) -> Simulator:
    """A standard normal variable, weighted by the density of observations of it."""

    def sample(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
        x = rng.normal(0, 1, count)
        return x, np.prod([_density(x - value, deviation) for value in values], axis=0)

    return sample


def _walk(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(rng.normal(rng.normal(rng.normal(0, 1, n), 1), 1))


def _share(rng: np.random.Generator, n: int) -> Floats:
    a, b = rng.gamma(2, 1, n), rng.gamma(3, 1, n)
    return np.asarray(a / (a + b))


def _coins(rng: np.random.Generator, n: int) -> Floats:
    return np.asarray(rng.binomial(1, rng.beta(2, 3, n), (3, n)).sum(0), np.float64)


def _mixture(rng: np.random.Generator, n: int) -> Floats:
    return np.where(rng.random(n) < 0.3, rng.normal(-2, 1, n), rng.normal(2, 0.5, n))


def _branch(rng: np.random.Generator, n: int) -> Floats:
    x = rng.normal(0, 1, n)
    return np.where(x > 0, x, -x / 2)


def _rate(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    r = rng.gamma(2, 1, n)
    return r, r * np.exp(-1.5 * r)


def _coin(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    p = rng.random(n)
    return p, p


def _above(least: float) -> Simulator:
    def sample(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        x = rng.normal(0, 1, n)
        return x, (x > least).astype(np.float64)

    return sample


def _sum_above(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    s = rng.normal(0, 1, n) + rng.normal(0, 1, n)
    return s, (s > 5).astype(np.float64)


def _observed_sum(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    x = rng.normal(0, 1, n)
    return x, _density(2 - x, 2)


def _long_sum(rng: np.random.Generator, n: int) -> Floats:
    found = np.zeros(n)
    for _ in range(400):
        found += rng.exponential(1, n)
    return found


def _ascents(rng: np.random.Generator, n: int) -> Floats:
    x = rng.random((9, n))
    return np.asarray((x[1:] > x[:-1]).sum(0), np.float64)


def _shifts(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    m, steps = rng.normal(0, 1, n), rng.normal(0, 1, (8, n))
    return m, np.asarray(np.exp(-0.5 * ((m + steps - 1.0) / 0.1) ** 2).prod(0))


_NAMES = "abcdefghi"
_ASCENTS = " + ".join(f"({low} < {high})" for low, high in pairwise(_NAMES))
_EULERIAN = (1, 502, 14608, 88234, 156190, 88234, 14608, 502, 1)
"""Numbers of permutations of nine numbers with so many ascents."""
_BRANCH = inverse(lambda x: np.asarray(ndtr(x) + ndtr(2 * x) - 1), 0.0, 9.0)
_MIXTURE = inverse(lambda x: np.asarray(0.3 * ndtr(x + 2) + 0.7 * ndtr((x - 2) / 0.5)), -9.0, 7.0)
_ROOT = math.sqrt(2)

CASES = {
    "sum": _case("normal(0, 1) + normal(1, 2)", stats.norm(1, math.sqrt(5)),
        lambda rng, n: rng.normal(0, 1, n) + rng.normal(1, 2, n), True),
    "product": Case("uniform(0, 1) * uniform(0, 1)", product_of_uniforms, 1 / 4, math.sqrt(7) / 12,
        lambda rng, n: rng.random(n) * rng.random(n), True),
    "square": Case("let x = normal(0, 1) in x * x", lambda level: np.asarray(ndtri((1 + level) / 2) ** 2), 1.0, _ROOT,
        lambda rng, n: rng.normal(0, 1, n) ** 2, True),
    "exponential": _case("exp(normal(0, 1))", stats.lognorm(1), lambda rng, n: np.exp(rng.normal(0, 1, n)), True),
    "waiting": _case("exponential(1) + exponential(1) + exponential(1)", stats.gamma(3),
        lambda rng, n: rng.exponential(1, n) + rng.exponential(1, n) + rng.exponential(1, n), True),
    "hierarchy": _case("normal(normal(0, 1), 1)", stats.norm(0, _ROOT),
        lambda rng, n: rng.normal(rng.normal(0, 1, n), 1), True),
    "walk": _case("let x = normal(0, 1), y = normal(x, 1), z = normal(y, 1) in z", stats.norm(0, math.sqrt(3)),
        _walk, True),
    "deep sum": Case(" + ".join(["uniform(0, 1)"] * 8), sum_of_uniforms(8), 4.0, math.sqrt(2 / 3),
        lambda rng, n: rng.random((8, n)).sum(0), True),
    "long sum": _case(" + ".join(["exponential(1)"] * 400), stats.gamma(400), _long_sum, True),
    "random rate": _case("exponential(1 / gamma(3, 1))", stats.lomax(3),
        lambda rng, n: rng.exponential(1 / rng.gamma(3, 1, n)), True),
    "share": _case("let a = gamma(2, 1), b = gamma(3, 1) in a / (a + b)", stats.beta(2, 3), _share, True),
    "sine": _case("sin(uniform(-pi / 2, pi / 2))", stats.arcsine(-1, 2),
        lambda rng, n: np.sin(rng.uniform(-math.pi / 2, math.pi / 2, n)), True),
    "quotient": Case("normal(0, 1) / normal(0, 1)", cauchy, math.nan, math.nan,
        lambda rng, n: rng.normal(0, 1, n) / rng.normal(0, 1, n)),
    "maximum": _case("max(uniform(0, 1), uniform(0, 1), uniform(0, 1))", stats.beta(3, 1),
        lambda rng, n: np.maximum(rng.random(n), np.maximum(rng.random(n), rng.random(n)))),
    "branch": Case("let x = normal(0, 1) in if(x > 0, x, -x / 2)", _BRANCH, 0.75 * math.sqrt(2 / math.pi),
        math.sqrt(0.625 - 1.125 / math.pi), _branch),
    "comparison": _case("normal(0, 1) > normal(1, 1)", stats.bernoulli(float(ndtr(-1 / _ROOT))),
        lambda rng, n: (rng.normal(0, 1, n) > rng.normal(1, 1, n)).astype(np.float64)),
    "coins": _case("let p = beta(2, 3) in bernoulli(p) + bernoulli(p) + bernoulli(p)",
        stats.betabinom(3, 2, 3), _coins),
    "mixture": Case("if(bernoulli(0.3), normal(-2, 1), normal(2, 0.5))", _MIXTURE, 0.8,
        math.sqrt(0.3 * 5 + 0.7 * 4.25 - 0.64), _mixture),
    "ascents": _case(
        f"let {', '.join(f'{name} = uniform(0, 1)' for name in _NAMES)} in {_ASCENTS}",
        stats.rv_discrete(values=(range(9), np.array(_EULERIAN) / math.factorial(9)))(), _ascents),
    "shifts": _case(
        f"let m = normal(0, 1), {', '.join(f'{name} = normal(0, 1)' for name in _NAMES[:8])} given "
        + ", ".join(f"normal(m + {name}, 0.1) == 1" for name in _NAMES[:8]) + " in m",
        stats.norm(8 / 9.01, math.sqrt(1.01 / 9.01)), _shifts),
    "rounding": _case("floor(exponential(2))", stats.geom(-math.expm1(-0.5), -1),
        lambda rng, n: np.floor(rng.exponential(2, n))),
    "observation": _case("let m = normal(0, 1) given normal(m, 0.5) == 1.2 in m", stats.norm(0.96, math.sqrt(0.2)),
        _observed(0.5, 1.2), True),
    "two observations": _case("let m = normal(0, 1), y = normal(m, 1), z = normal(m, 1) given y == 1, z == 0.5 in m",
        stats.norm(0.5, math.sqrt(1 / 3)), _observed(1.0, 1.0, 0.5), True),
    "sharp observation": _case("let m = normal(0, 1) given normal(m, 0.01) == 1.2 in m",
        stats.norm(1.2 / 1.0001, 0.01 / math.sqrt(1.0001)), _observed(0.01, 1.2), True),
    "observed sum": _case("let x = normal(0, 1), y = normal(0, 2) given x + y == 2 in x",
        stats.norm(0.4, math.sqrt(0.8)), _observed_sum, True),
    "rate": _case("let r = gamma(2, 1), y = exponential(1 / r) given y == 1.5 in r", stats.gamma(3, scale=0.4), _rate,
        True),
    "coin": _case("let p = uniform(0, 1) given bernoulli(p) == 1 in p", stats.beta(2, 1), _coin, True),
    "event": _case("let x = normal(0, 1) given x > 1 in x", stats.truncnorm(1, math.inf), _above(1.0)),
    "rare event": _case("let x = normal(0, 1) given x > 3 in x", stats.truncnorm(3, math.inf), _above(3.0)),
    "rare sum": _case("let x = normal(0, 1), y = normal(0, 1) given x + y > 5 in x + y",
        stats.truncnorm(5 / _ROOT, math.inf, scale=_ROOT), _sum_above),
}  # fmt: skip
"""Cases by name."""

_MAXIMUM = "max(uniform(0, 1), max(uniform(0, 1), uniform(0, 1)))"
EXAMPLES = {
    **{name: CASES[name] for name in ("sum", "product", "square", "exponential")},
    "maximum": replace(CASES["maximum"], text=_MAXIMUM, quantile=np.cbrt),
    **{name: CASES[name] for name in ("waiting", "hierarchy", "quotient", "branch", "deep sum")},
}
"""The ten of them whose embeddings are measured, by name."""
