"""Perturbed maxima of `order` phi of a continuous target, for differential entropies (Thesis
section 3.3.2).

A* sampling solves each order with its own Gumbel process, so no noise is shared and a control
variate cannot help. A differential entropy may be negative. H_0, the logarithm of the volume of the
support, is not an integral of phi.
"""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.entropy.estimators import MOST_VALUES, EntropyMaxima, check_orders, too_many
from thesis_cli.entropy.exact import AS_INFINITE
from thesis_cli.models.quadrature import log_densities
from thesis_cli.models.targets import Target, tempered
from thesis_cli.perturbation.a_star.a_star import a_star
from thesis_cli.perturbation.a_star.boxes import BUDGET


def continuous_maxima(
    target: Target,
    orders: Floats,
    count: int,
    seed: np.random.SeedSequence,
    *,
    highest: float | None = None,
    jobs: int = 1,
    budget: int = BUDGET,
    progress: Tick | None = None,
) -> EntropyMaxima:
    """Perturbed maxima of a continuous target, from which the estimators compute differential
    entropies. Raises InputError for too many perturbations for the memory, an order that is 0,
    negative or NaN; or as for `a_star`; WorkFailed or NoConfiguration as for `a_star`.

    Parameters
    ----------
    target : phi.
    orders : above 0, shape (A,). Order 1 is always solved, and orders from `AS_INFINITE` on need no
        noise: both are left out of the result's `orders`.
    count : number M of perturbations at each order.
    highest : sup phi, if it is known. Otherwise a local search from the best of all points drawn
        finds a local maximum; only H_inf depends on it.
    """
    check_orders(orders)
    if (orders == 0).any():
        raise InputError("the order is 0", "the order of a differential entropy must be above 0")
    finite = np.unique(orders[(orders < AS_INFINITE) & (orders != 1)])
    if count * (finite.size + 4) > MOST_VALUES:
        raise too_many(count, finite.size)
    runs = [
        a_star(tempered(target, order), count, child, jobs=jobs, budget=budget, progress=progress)
        for order, child in zip((1.0, *finite.tolist()), seed.spawn(1 + finite.size), strict=True)
    ]
    if highest is None:
        highest = _climb(target, np.concatenate([run.locations[[run.potentials.argmax()]] for run in runs]))
    values = np.empty((count, finite.size))
    for column, run in zip(values.T, runs[1:], strict=True):
        column[:] = run.values
    return EntropyMaxima(finite, values, runs[0].values, runs[0].potentials, highest, np.inf, np.arange(count))


def _climb(target: Target, points: Floats) -> float:
    """The local maximum of phi reached from the best of some points, shape (K, D)."""
    from scipy.optimize import minimize

    def depth(x: Floats) -> float:
        return -float(log_densities(target, x[np.newaxis])[0])

    level = log_densities(target, points)
    start: Floats = points[level.argmax()]
    ends = list(zip(target.proposal.low.tolist(), target.proposal.high.tolist(), strict=True))
    found = minimize(depth, start, method="Nelder-Mead", bounds=ends, tol=1e-10)
    return max(float(level.max()), -float(found.fun))
