"""Perturbed maxima of alpha phi of a continuous target, for differential entropies (Thesis section 3.3.2).

A* sampling solves each alpha by a Gumbel process of its own, so no noise is shared and there is no control variate to
gain by. A differential entropy may be negative, and H_0, the logarithm of the support's volume, is no integral of phi.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.entropy.exact import LIMIT
from thesis_cli.entropy.maxima import MOST_VALUES, EntropyMaxima, check_orders
from thesis_cli.models.quadrature import log_densities
from thesis_cli.models.targets import Target, tempered
from thesis_cli.perturbation.a_star import a_star
from thesis_cli.perturbation.boxes import BUDGET


def continuous_maxima(
    target: Target,
    alphas: Floats,
    count: int,
    seed: np.random.SeedSequence,
    *,
    highest: float | None = None,
    jobs: int = 1,
    budget: int = BUDGET,
    progress: Callable[[int], object] | None = None,
) -> EntropyMaxima:
    """What the estimators of entropies want to know of a continuous target.

    Parameters
    ----------
    target : phi.
    alphas : above 0, shape (A,); 1, which is always solved, and those from `LIMIT` on, which need no noise, are left
        out.
    count : number M of perturbations at each alpha.
    seed : root of the random streams.
    highest : sup phi, if it is known. Otherwise phi is climbed from the best of all points drawn: a local maximum,
        which H_inf alone depends on.
    jobs, budget, progress : as for `a_star`.

    Raises
    ------
    InputError : no perturbations, more than memory holds, an alpha that is 0, negative or NaN; or as for `a_star`.
    WorkFailed, NoConfiguration : as for `a_star`.
    """
    check_orders(alphas)
    if (alphas == 0).any():
        raise InputError("alpha is 0", "the order of a differential entropy is above 0")
    finite = np.unique(alphas[(alphas < LIMIT) & (alphas != 1)])
    if count * (finite.size + 4) > MOST_VALUES:
        raise InputError(f"{count:,} perturbations at {finite.size} alphas", f"at most {MOST_VALUES:,} maxima")
    runs = [
        a_star(tempered(target, alpha), count, child, jobs=jobs, budget=budget, progress=progress)
        for alpha, child in zip((1.0, *finite.tolist()), seed.spawn(1 + finite.size), strict=True)
    ]
    if highest is None:
        highest = _climb(target, np.concatenate([run.locations[[run.potentials.argmax()]] for run in runs]))
    values = np.empty((count, finite.size))
    for column, run in zip(values.T, runs[1:], strict=True):
        column[:] = run.values
    return EntropyMaxima(finite, values, runs[0].values, runs[0].potentials, highest, np.inf, np.arange(count))


def _climb(target: Target, points: Floats) -> float:
    """The local maximum of phi above the best of some points, shape (K, D)."""
    from scipy.optimize import minimize

    def depth(x: Floats) -> float:
        return -float(log_densities(target, x[np.newaxis])[0])

    level = log_densities(target, points)
    start: Floats = points[level.argmax()]
    ends = list(zip(target.proposal.low.tolist(), target.proposal.high.tolist(), strict=True))
    found = minimize(depth, start, method="Nelder-Mead", bounds=ends, tol=1e-10)
    return max(float(level.max()), -float(found.fun))
