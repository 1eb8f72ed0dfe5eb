"""Poincare inequalities for log-concave measures on the line (Hazan et al. IV-A and IV-B).

A measure has the density q = exp(-Q), Q convex. Theorem 5 bounds the variance of f by
E[f'^2 / (Q'' + eta Q'^2)] / (1 - eta).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats

STEP = 0.01
_NODES = np.arange(-40, 70, STEP) + STEP / 2
"""None is 0, where the Laplace distribution has a kink."""


@dataclass(frozen=True)
class LogConcaveMeasure:
    """A log-concave measure at nodes of the line.

    Attributes
    ----------
    weights : probabilities, which sum to 1.
    slope, bend : Q' and Q''.
    """

    weights: Floats
    slope: Floats
    bend: Floats

    @property
    def nodes(self) -> Floats:
        """Equidistant."""
        return _NODES

    def mean(self, values: Floats) -> float:
        """Expectation of a function given at the nodes."""
        return float(self.weights @ np.where(self.weights > 0, values, 0.0))

    def variance(self, values: Floats) -> float:
        """Variance of a function given at the nodes."""
        return self.mean((values - self.mean(values)) ** 2)

    def bound(self, derivative: Floats, eta: float) -> float:
        """The right side of Theorem 5."""
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 where the weight is 0
            return self.mean(derivative**2 / (self.bend + eta * self.slope**2)) / (1 - eta)


def _measure(q: Floats, slope: Floats, bend: Floats) -> LogConcaveMeasure:
    return LogConcaveMeasure(q / q.sum(), slope, bend)


def measures() -> dict[str, LogConcaveMeasure]:
    """Standard Gumbel, logistic, Laplace and normal distributions, whose modes are at 0."""
    t = _NODES
    with np.errstate(over="ignore"):
        u = np.exp(-t)
        gumbel = np.exp(-t - u)
    logistic = 1 / (1 + np.exp(-np.abs(t)))
    density = np.exp(-np.abs(t)) * logistic**2
    return {
        "Gumbel": _measure(gumbel, np.where(gumbel > 0, 1 - u, -1.0), np.where(gumbel > 0, u, 1.0)),
        "logistic": _measure(density, np.tanh(t / 2), 2 * density),
        "Laplace": _measure(np.exp(-np.abs(t)), np.sign(t), np.zeros_like(t)),
        "normal": _measure(np.exp(-(t**2) / 2), t, np.ones_like(t)),
    }


def functions() -> dict[str, tuple[Floats, Floats]]:
    """Functions of the line and their derivatives at the nodes."""
    t = _NODES
    return {
        "t": (t, np.ones_like(t)),
        "tanh t": (np.tanh(t), 1 / np.cosh(t) ** 2),
        "sin t": (np.sin(t), np.cos(t)),
        "sqrt(1 + t^2)": (np.sqrt(1 + t**2), t / np.sqrt(1 + t**2)),
        "max(t - 1, 0)": (np.maximum(t - 1, 0), np.where(t > 1, 1.0, 0.0)),
        "exp(t / 4)": (np.exp(t / 4), np.exp(t / 4) / 4),
    }


Ratio = tuple[str, str, float, float]
"""Measure, function, eta, and the right side of Theorem 5 over the variance."""


def variance_ratios(etas: Floats) -> Iterator[Ratio]:
    """All measures and functions at each eta, and the normal distribution at 0."""
    for name, measure in measures().items():
        for function, (values, derivative) in functions().items():
            for eta in [*([0.0] if name == "normal" else []), *etas]:
                yield name, function, eta, measure.bound(derivative, eta) / measure.variance(values)


def misprints() -> Iterator[Ratio]:
    """Theorem 5 at eta = -1, right side less left of (45) for f = 1 under the Laplace distribution,
    and the bound for f = t at eta = 1/2 there."""
    found = measures()
    gumbel, laplace = found["Gumbel"], found["Laplace"]
    t, one = _NODES, np.ones_like(_NODES)
    ratio = gumbel.bound(np.where(t > 2, 1.0, 0.0), -1.0) / gumbel.variance(np.maximum(t - 2, 0))
    yield "Gumbel", "eta = -1", math.nan, ratio
    yield "Laplace", "second moment of 1", math.nan, -laplace.mean(one)
    yield "Laplace", "Laplace constant", math.nan, laplace.bound(one, 0.5)


def constant(eta: float) -> float:
    """The least C of Theorem 5 for the Gumbel distribution: 1 / (1 - eta) over the least of Q'' +
    eta Q'^2 = u + eta (1 - u)^2, u = exp(-t), on a fine grid."""
    u = np.arange(0, 20_001) / 10_000
    return float(1 / ((1 - eta) * (u + eta * (1 - u) ** 2).min()))


def printed_constant(eta: float) -> float:
    """The same by the proof of Corollary 8: 4 eta / ((4 eta - 1)(1 - eta)) from 1/2 on, 1 / (eta (1 - eta)) below."""
    return 4 * eta / ((4 * eta - 1) * (1 - eta)) if eta > 0.5 else 1 / (eta * (1 - eta))


def exponential_quotient(beta: float) -> float:
    """Var f / E[f'^2] of f = exp(beta t), t a Gumbel variable, 0 < beta < 1/2: tends to 4."""
    return (1 - math.exp(2 * math.lgamma(1 - beta) - math.lgamma(1 - 2 * beta))) / beta**2


def cut_constant(length: float, step: float = 0.02) -> float:
    """Poincare constant of the Gumbel distribution cut to [-4, length], by the second eigenvalue of
    -(q f')' = f q / C in finite differences."""
    from scipy.linalg import eigh_tridiagonal

    t = np.arange(-4, length, step)
    half = (t[1:] + t[:-1]) / 2
    at, middle = t + np.exp(-t), half + np.exp(-half)
    flows = np.exp(np.stack([at[:-1], at[1:]]) - middle) / step**2
    diagonal = np.zeros_like(t)
    diagonal[:-1] += flows[0]
    diagonal[1:] += flows[1]
    low = eigh_tridiagonal(diagonal, -np.sqrt(flows[0] * flows[1]), eigvals_only=True, select="i", select_range=(1, 1))
    return float(1 / low[0])
