"""Bounds on moments and deviations of Lipschitz functions of Gumbel noise (Hazan et al. IV-B to IV-D).

A function f of independent Gumbel(-c) variables with |grad f| <= a has a moment generating function
Lambda(lambda) = E[e^{lambda (f - E f)}]. The functions here take the rate u = lambda a and return its
logarithm or a bound of it. Among functions of one variable with |f'| <= 1 those of largest Lambda are
the variable itself, for u > 0, and its negative, for u < 0.

`proof_steps` has the numbers on which the proofs of these sections and of the appendix rest, each the
worst case of one step over a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thesis_cli.base.arrays import Floats

RATES = 1 / (1 + np.exp(-np.linspace(-16, 16, 8001)))
"""Rates u in (0, 1) at which deviations are minimised."""
SPACING = 0.02
"""Step between the frequencies at which a distribution function is inverted; the result repeats
after 2 pi over this."""


def poincare_moment(rates: Floats) -> Floats:
    """ln((1 + u) / (1 - u)), for 0 <= u < 1 (Corollary 9)."""
    return np.asarray(np.log1p(rates) - np.log1p(-rates))


def log_sobolev_moment(rates: Floats) -> Floats:
    """2 u^2 (5 - u) / (1 - u) + 8 u ln(1 - u), for 0 <= u < 1 (Corollary 11)."""
    return np.asarray(2 * rates**2 * (5 - rates) / (1 - rates) + 8 * rates * np.log1p(-rates))


def product_moment(rates: Floats) -> Floats:
    """ln of the product over i >= 0 of (1 - u^2 / 4^i)^{-2^i}, from which Lemma 4 derives Corollary 9."""
    found = np.zeros_like(rates)
    for i in range(60):
        found -= 2.0**i * np.log1p(-(rates**2) / 4.0**i)
    return found


def gumbel_moment(rates: Floats, terms: int = 1) -> Floats:
    """n (ln Gamma(1 - v) - c v), v = u / sqrt(n): the sum of n Gumbel variables over sqrt(n), a = 1.

    No perturbed maximum of n noise terms over sqrt(n) has more (docs/low-rank.md, U(alpha) never
    falls). For u < 0 it is the negative of the sum.
    """
    from scipy.special import gammaln

    v = rates / math.sqrt(terms)
    return np.asarray(terms * (gammaln(1 - v) - np.euler_gamma * v))


def entropy_ratio(rates: Floats) -> Floats:
    """Ent(e^f) / E[e^f] of f = u t, t a Gumbel variable, u < 1: the left side of Lemma 3 over the
    expectation on its right."""
    from scipy.special import digamma

    return np.asarray(rates * (-digamma(1 - rates) - np.euler_gamma) - gumbel_moment(rates))


def weighted_square(rates: Floats) -> Floats:
    """E[t^2 e^{u t}] / E[e^{u t}], t a Gumbel variable, u < 1: the two sides of (70) are u^2 times
    this and u^2 times a constant."""
    from scipy.special import digamma, polygamma

    return np.asarray(polygamma(1, 1 - rates) + (digamma(1 - rates) + np.euler_gamma) ** 2)


def lemma_3(rates: Floats, constant: float = 4.0) -> Floats:
    """a^2 C / 2 ((2 + a sqrt(C)) / (2 - a sqrt(C)))^2 at a = u, a bound on `entropy_ratio` (Lemma 3)."""
    root = rates * math.sqrt(constant)
    return np.asarray(root**2 / 2 * ((2 + root) / (2 - root)) ** 2)


def chernoff_deviation(moment: Callable[[Floats], Floats], exponents: Floats, most: float = 1.0) -> Floats:
    """The least (ln Lambda(u) + x) / u over 0 < u < `most` for each x = ln(1/delta) / M.

    The mean of M values exceeds its expectation by a times as much with probability at most delta,
    by Markov's inequality.
    """
    rates = most * RATES
    return np.asarray(((moment(rates) + exponents[:, np.newaxis]) / rates).min(axis=1))


def log_moment(values: Floats, rates: Floats) -> tuple[Floats, Floats]:
    """ln of the mean of e^{u (f - mean f)} over samples of f, and its standard errors by the delta method."""
    centred = values - values.mean()
    exponents = np.multiply.outer(rates, centred)
    powers = np.exp(exponents)
    means = powers.mean(axis=1)
    influence = powers / means[:, np.newaxis] - 1 - exponents
    return np.log(means), influence.std(axis=1) / math.sqrt(values.size)


def exceeds(count: int, distance: float) -> float:
    """P(mean of `count` Gumbel(-c) variables > distance), by Gil-Pelaez inversion of the
    characteristic function, to 1e-12."""
    from scipy.special import loggamma

    frequencies = SPACING * (np.arange(1500) + 0.5)
    log_characteristic = count * (loggamma(1 - 1j * frequencies) - 1j * np.euler_gamma * frequencies)
    waves = np.exp(log_characteristic - 1j * frequencies * count * distance)
    return float(0.5 + SPACING / math.pi * (waves.imag / frequencies).sum())


def exact_deviation(count: int, tail: float, sign: int = 1) -> float:
    """The r with P(mean of `count` Gumbel variables > r) = tail, or with `sign` -1 of their negatives.

    For tails from 1e-4 to 1/2 and up to 100 variables.
    """
    from scipy.optimize import brentq

    def miss(r: float) -> float:
        above = exceeds(count, sign * r)
        return (above if sign == 1 else 1 - above) - tail

    return float(brentq(miss, -1 / math.sqrt(count), 12 / math.sqrt(count), xtol=1e-12))


def poincare_deviation(gradient: float, count: int, tail: float) -> float:
    """2 a (1 + sqrt(ln(1/delta) / 2M))^2, above 2a for every M (Hazan et al. Corollary 10).

    Parameters
    ----------
    gradient : a.
    count : number M of values.
    tail : delta, a bound on the probability that the mean exceeds its expectation by more; the same
        bound holds for falling short by more.
    """
    return 2 * gradient * (1 + math.sqrt(math.log(1 / tail) / (2 * count))) ** 2


def log_sobolev_deviation(gradient: float, count: int, tail: float) -> float:
    """a max(4 ln(1/delta) / M, sqrt(32 ln(1/delta) / M)) (Hazan et al. Corollary 12)."""
    rate = math.log(1 / tail) / count
    return gradient * max(4 * rate, math.sqrt(32 * rate))


def deviation(gradient: float, count: int, confidence: float) -> float:
    """The double-sided bound of section IV-E: the better of the two corollaries, with half of 1 -
    confidence on each side."""
    tail = (1 - confidence) / 2
    return min(bound(gradient, count, tail) for bound in (poincare_deviation, log_sobolev_deviation))


EDGE = 13 / 25
"""Largest rate in the proof of Corollary 12."""
GRID = np.arange(1, 200) / 200


def quotient(rates: Floats) -> Floats:
    """2 (u^2 + u + 2) / ((1 - u) (2 - u)), which the proof of Corollary 12 bounds by 8."""
    return np.asarray(2 * (rates**2 + rates + 2) / ((1 - rates) * (2 - rates)))


def proof_steps() -> dict[str, float]:
    """The worst case of each step, a = 1.

    `slack` is the right side less the left of an inequality, `ratio` the larger side over the
    smaller; both are the least over a grid.
    """
    u = GRID
    gumbel = np.maximum(gumbel_moment(u), gumbel_moment(-u))
    return {
        "Corollary 9, ratio": float((poincare_moment(u) / gumbel).min()),
        "Corollary 9, factor": float(np.exp(poincare_moment(u) - gumbel).max()),
        "Corollary 11, ratio": float((log_sobolev_moment(u) / gumbel).min()),
        "Corollary 9, lambda = -1/2": float(-math.log(3) - gumbel_moment(np.array(-0.5))),
        "Corollary 11, lambda < 0": float((log_sobolev_moment(-u) - gumbel_moment(-u)).min()),
        "moments cross": _root(lambda x: float(log_sobolev_moment(x) - poincare_moment(x)), 0.1, 0.9),
        "Lemma 3, ratio": float((lemma_3(u) / np.maximum(entropy_ratio(u), entropy_ratio(-u))).min()),
        **_lemma_3(),
        **_lemma_4(),
        **_corollary_10(),
        **_corollary_12(),
    }


def _lemma_3() -> dict[str, float]:
    z = np.arange(1, 4001) / 1000
    f = np.array([-3.0, -1.0, -0.1, 0.1, 1.0, 3.0])
    nodes, weights = np.polynomial.legendre.leggauss(40)
    s, w = (nodes + 1) / 2, weights / 2
    # The same nodes serve the integrals over s in (72) and (75).
    integral = f**2 * (w * s * np.exp(np.multiply.outer(f, s))).sum(axis=1)
    grid, moments = np.arange(1, 10) / 10, (1, -1)
    means = np.array([[gumbel_moment(sign * u * s) for u in grid] for sign in moments])
    ends = np.array([[gumbel_moment(np.array(sign * u)) for u in grid] for sign in moments])
    rates = np.array([[weighted_square(np.array(sign * u)) for u in grid] for sign in moments])
    weight = 4 * ((1 + grid) / (1 - grid)) ** 2
    primitive = np.array([2 * u * (w * ((1 + u * s) / (1 - u * s)) ** 2).sum() for u in grid[:8]])
    return {
        "(70), ratio": float((weight / rates).min()),
        "(72), ratio": float((np.exp(ends) / 2 / (w * s * np.exp(means)).sum(axis=2)).min()),
        "(75), integral": float(np.abs(grid[:8] * primitive / log_sobolev_moment(grid[:8]) - 1).max()),
        "z ln z - z - 1": float((z * np.log(z) - z - 1).min()),
        "z ln z - z + 1": float((z * np.log(z) - z + 1).min()),
        "Lemma 3, integral": float(np.abs(integral - (f * np.exp(f) - np.exp(f) + 1)).max()),
    }


def _lemma_4() -> dict[str, float]:
    """V is the product without its first factor; x = 1 is the end of the range."""
    slack = poincare_moment(GRID) - product_moment(GRID)
    i = np.arange(1, 60)
    return {
        "Lemma 4, slack": float(slack.min()),
        "Lemma 4, largest slack": float(slack.max()),
        "ln V at the end": float(-(2.0**i * np.log1p(-(4.0**-i))).sum()),
    }


def _corollary_10() -> dict[str, float]:
    """The three sides of the chain (62) to (64), per sample, at r = 2 a y."""
    y = 1 + np.arange(1, 5001) / 100
    s = np.sqrt(1 - 1 / y)
    first = 2 * np.arctanh(s) - 2 * y * s
    second = 2 * np.sqrt(y - 1) * (1 - np.sqrt(y))
    third = -2 * (np.sqrt(y) - 1) ** 2
    rates = np.linspace(0, 1, 200_001)[1:-1]
    optimum = [float((poincare_moment(rates) - 2 * v * rates).min()) for v in y[::500]]
    return {
        "Corollary 10, optimum": float(np.abs(first[::500] - optimum).max()),
        "(62) to (64), slack": float(min((second - first).min(), (third - second).min())),
        "Corollary 10, a million samples": poincare_deviation(1.0, 10**6, 0.1),
    }


def _corollary_12() -> dict[str, float]:
    x = np.arange(1, 800) / 400
    loosened = 2 * GRID**2 * (GRID**2 + GRID + 2) / ((1 - GRID) * (2 - GRID))
    r = np.arange(1, 4001) / 100
    best = np.minimum(r / 16, EDGE)
    tiny = np.array([1e-6])
    return {
        "ln(1 - x), slack": float((-2 * GRID / (2 - GRID) - np.log1p(-GRID)).min()),
        "Corollary 12, first step": float((loosened - log_sobolev_moment(GRID)).min()),
        "quotient at 13/25": float(quotient(np.array(EDGE))),
        "largest rate": _root(lambda u: float(quotient(u)) - 8, 0.1, 0.9),
        "Corollary 12, optimum": float((-np.minimum(r / 4, r**2 / 32) - (8 * best**2 - best * r)).min()),
        "junction": _better(2.0) - 1,
        "deviations, ratio": 1 / max(_better(v) for v in x),
        "deviations, ratio beyond": _better(3.0),
        "Corollary 12 over Chernoff": log_sobolev_deviation(1.0, 1, math.exp(-tiny[0]))
        / float(chernoff_deviation(log_sobolev_moment, tiny)[0]),
    }


def _better(x: float) -> float:
    """Corollary 12 over Corollary 10 at x = ln(1/delta) / M."""
    return log_sobolev_deviation(1.0, 1, math.exp(-x)) / poincare_deviation(1.0, 1, math.exp(-x))


def _root(f: Callable[[Floats], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda x: f(np.array(x)), low, high))
