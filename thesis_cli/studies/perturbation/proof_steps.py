"""Numbers on which the proofs of Hazan et al. IV-B to IV-D and of its appendix rest.

Each is the worst case of one step over a grid; see `proof_steps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.studies.perturbation import concentration as bounds

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
    gumbel = np.maximum(bounds.gumbel_moment(u), bounds.gumbel_moment(-u))
    return {
        "Corollary 9, ratio": float((bounds.poincare_moment(u) / gumbel).min()),
        "Corollary 9, factor": float(np.exp(bounds.poincare_moment(u) - gumbel).max()),
        "Corollary 11, ratio": float((bounds.log_sobolev_moment(u) / gumbel).min()),
        "Corollary 9, lambda = -1/2": float(-math.log(3) - bounds.gumbel_moment(np.array(-0.5))),
        "Corollary 11, lambda < 0": float((bounds.log_sobolev_moment(-u) - bounds.gumbel_moment(-u)).min()),
        "moments cross": _root(lambda x: float(bounds.log_sobolev_moment(x) - bounds.poincare_moment(x)), 0.1, 0.9),
        "Lemma 3, ratio": float(
            (bounds.lemma_3(u) / np.maximum(bounds.entropy_ratio(u), bounds.entropy_ratio(-u))).min()
        ),
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
    means = np.array([[bounds.gumbel_moment(sign * u * s) for u in grid] for sign in moments])
    ends = np.array([[bounds.gumbel_moment(np.array(sign * u)) for u in grid] for sign in moments])
    rates = np.array([[bounds.weighted_square(np.array(sign * u)) for u in grid] for sign in moments])
    weight = 4 * ((1 + grid) / (1 - grid)) ** 2
    primitive = np.array([2 * u * (w * ((1 + u * s) / (1 - u * s)) ** 2).sum() for u in grid[:8]])
    return {
        "(70), ratio": float((weight / rates).min()),
        "(72), ratio": float((np.exp(ends) / 2 / (w * s * np.exp(means)).sum(axis=2)).min()),
        "(75), integral": float(np.abs(grid[:8] * primitive / bounds.log_sobolev_moment(grid[:8]) - 1).max()),
        "z ln z - z - 1": float((z * np.log(z) - z - 1).min()),
        "z ln z - z + 1": float((z * np.log(z) - z + 1).min()),
        "Lemma 3, integral": float(np.abs(integral - (f * np.exp(f) - np.exp(f) + 1)).max()),
    }


def _lemma_4() -> dict[str, float]:
    """V is the product without its first factor; x = 1 is the end of the range."""
    slack = bounds.poincare_moment(GRID) - bounds.product_moment(GRID)
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
    optimum = [float((bounds.poincare_moment(rates) - 2 * v * rates).min()) for v in y[::500]]
    return {
        "Corollary 10, optimum": float(np.abs(first[::500] - optimum).max()),
        "(62) to (64), slack": float(min((second - first).min(), (third - second).min())),
        "Corollary 10, a million samples": bounds.poincare_deviation(1.0, 10**6, 0.1),
    }


def _corollary_12() -> dict[str, float]:
    x = np.arange(1, 800) / 400
    loosened = 2 * GRID**2 * (GRID**2 + GRID + 2) / ((1 - GRID) * (2 - GRID))
    r = np.arange(1, 4001) / 100
    best = np.minimum(r / 16, EDGE)
    tiny = np.array([1e-6])
    return {
        "ln(1 - x), slack": float((-2 * GRID / (2 - GRID) - np.log1p(-GRID)).min()),
        "Corollary 12, first step": float((loosened - bounds.log_sobolev_moment(GRID)).min()),
        "quotient at 13/25": float(quotient(np.array(EDGE))),
        "largest rate": _root(lambda u: float(quotient(u)) - 8, 0.1, 0.9),
        "Corollary 12, optimum": float((-np.minimum(r / 4, r**2 / 32) - (8 * best**2 - best * r)).min()),
        "junction": _better(2.0) - 1,
        "deviations, ratio": 1 / max(_better(v) for v in x),
        "deviations, ratio beyond": _better(3.0),
        "Corollary 12 over Chernoff": bounds.log_sobolev_deviation(1.0, 1, math.exp(-tiny[0]))
        / float(bounds.chernoff_deviation(bounds.log_sobolev_moment, tiny)[0]),
    }


def _better(x: float) -> float:
    """Corollary 12 over Corollary 10 at x = ln(1/delta) / M."""
    return bounds.log_sobolev_deviation(1.0, 1, math.exp(-x)) / bounds.poincare_deviation(1.0, 1, math.exp(-x))


def _root(f: Callable[[Floats], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda x: f(np.array(x)), low, high))
