"""Relatives of the Gumbel trick with low-rank noise, as bounds on and estimators of Renyi entropies
(Thesis section 3.3.2).

U(b) and L(b) of the potential a phi bound ln Z_a (Thesis eqs. 2.8, 2.14), and with ln Z known they
bound H_a = (ln Z_a - a ln Z) / (1 - a). The side changes where 1 - a changes its sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.inference.choose import map_solver
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.low_rank.low_rank import LowRankMaxima, Scale, low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.studies.perturbation.concentration import log_sobolev_deviation, poincare_deviation
from thesis_cli.studies.perturbation.low_rank_mse import mse_curve, sample_variance

TAIL = 0.1
"""Probability with which a mean may exceed its expectation by more than the deviation."""

Row = tuple[str, float, float, float]
"""Quantity, trick b, value, standard error."""


@dataclass(frozen=True)
class TemperedModel:
    """A model at one order a: a phi, and the entropy to bound.

    Attributes
    ----------
    graph : a phi.
    order : a.
    log_z : ln Z of phi, known to the estimators.
    entropy : H_a, nats.
    """

    graph: FactorGraph
    order: float
    log_z: float
    entropy: float

    @property
    def log_z_at_order(self) -> float:
        """ln Z_a."""
        return (1 - self.order) * self.entropy + self.order * self.log_z

    def maxima(self, count: int, seed: np.random.SeedSequence, scale: Scale = "sum") -> LowRankMaxima:
        """Maxima of a phi and low-rank noise."""
        return low_rank_maxima(map_solver(self.graph, exact=True)[0], count, seed, scale=scale)


def tempered(graph: FactorGraph, order: float) -> TemperedModel:
    """The model with potential `graph`, at an order other than 0, 1 and inf."""
    exact = exact_entropies(graph, [order])
    return TemperedModel(graph.tempered(order), order, exact.log_z, float(exact.entropies[0]))


def bound_rows(model: TemperedModel, tricks: Floats, count: int, seed: np.random.SeedSequence) -> Iterator[Row]:
    """Upper and lower bounds on H_a by each trick b, less H_a, nats.

    Parameters
    ----------
    tricks : b of U(b) and L(b); 0 is the Gumbel trick, shape (B,).
    count : number of MAP problems for U and as many for L.
    """
    factor = 1 / (1 - model.order)
    yield "entropy", math.nan, model.entropy, 0.0
    for child, scale in zip(seed.spawn(2), ("sum", "average"), strict=True):
        maxima = model.maxima(count, child, "sum" if scale == "sum" else "average")
        divisor = 1 if scale == "sum" else maxima.terms
        bounds, errors = power_bounds(divisor * maxima.values, maxima.terms, tricks)
        name = "upper" if (scale == "sum") == (factor > 0) else "lower"
        for b, bound, error in zip(tricks, bounds / divisor, errors / divisor, strict=True):
            yield name, b, factor * (bound - model.log_z_at_order), abs(factor) * error


def error_rows(
    model: TemperedModel, tricks: Floats, estimators: int, samples: int, seed: np.random.SeedSequence
) -> Iterator[Row]:
    """Errors of each trick's bound, from M = `samples` maxima, as an estimate of H_a; and the
    spread of the maxima.

    `mse` is the mean squared error over K = `estimators` repetitions, nats^2, and `saving` is 1 - MSE
    over that of the Gumbel trick. `variance` is that of the maxima in units of the bound 4 n of Hazan
    et al. Corollary 8. `deviation` is exceeded by a mean of M maxima, less their expectation, with
    the probability `TAIL`, in units of the smaller bound of their Corollaries 10 and 12.

    Parameters
    ----------
    tricks : b of U(b), 0 among them, shape (B,).
    estimators, samples : K and M.
    """
    maxima = model.maxima(estimators * samples, seed)
    values, n = maxima.values.reshape(estimators, samples), maxima.terms
    curve, factor = mse_curve(values, n, model.log_z_at_order, tricks), (1 - model.order) ** 2
    for i, b in enumerate(tricks):
        yield "mse", b, curve.mse[i] / factor, curve.mse_error[i] / factor
        yield "saving", b, curve.saving[i], curve.saving_error[i]
    variance, error = sample_variance(maxima.values)
    yield "variance", math.nan, float(variance) / (4 * n), float(error) / (4 * n)
    above = np.sort(values.mean(axis=1) - maxima.values.mean())[::-1]
    spread = math.sqrt(estimators * TAIL * (1 - TAIL))
    places = [min(max(round(estimators * TAIL + k * spread), 0), estimators - 1) for k in (-1, 0, 1)]
    high, middle, low = above[places]
    bound = min(f(math.sqrt(n), samples, TAIL) for f in (poincare_deviation, log_sobolev_deviation))
    yield "deviation", math.nan, float(middle) / bound, float(high - low) / 2 / bound
