"""Quadratic minimisation on the simplex, and descent in a box by L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Floats

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


def simplex_weights(gram: Floats, linear: Floats, start: Floats | None = None) -> Floats:
    """Minimiser of w . gram w - 2 linear . w over w >= 0 of sum 1, by active sets, exact up to
    rounding.

    Parameters
    ----------
    gram : positive semidefinite matrix with a diagonal of order 1, shape (M, M).
    linear : linear part, shape (M,).
    start : weights to start from; the result is no worse.
    """
    from scipy.linalg import cho_factor, cho_solve

    rounding = 1e-12 * (1 + float(np.abs(linear).max()))
    weights = np.zeros(len(linear))
    if start is None:
        weights[(2 * linear - gram.diagonal()).argmax()] = 1.0
    else:
        weights[:] = start
    support = np.flatnonzero(weights)
    for _ in range(10 * len(linear) + 10):
        while True:
            factor = cho_factor(gram[np.ix_(support, support)] + rounding * np.eye(len(support)))
            free, shift = cho_solve(factor, np.stack([linear[support], np.ones(len(support))], 1)).T
            level = (free.sum() - 1) / shift.sum()
            ideal = free - level * shift
            if (ideal > 0).all():
                break
            held = weights[support]
            share = np.where(ideal > 0, np.inf, held / np.maximum(held - ideal, 1e-300))
            weights[support] = np.maximum(held + share.min() * (ideal - held), 0.0)
            weights[support[share.argmin()]] = 0.0
            support = support[weights[support] > 0]
        weights[support] = ideal
        gain = linear - gram[:, support] @ ideal - level
        gain[support] = -np.inf
        best = int(gain.argmax())
        if gain[best] <= 10 * rounding:
            break
        support = np.append(support, best)
    return np.asarray(weights / weights.sum(), np.float64)


def minimise(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    low: Floats,
    high: Floats,
    steps: int,
    watch: Callable[[float], bool] | None = None,
) -> Floats:
    """Minimise by L-BFGS in a box.

    Parameters
    ----------
    objective : called with a vector; returns the value and its gradient.
    start, low, high : first vector, and ends of the box, of one shape (n,).
    steps : largest number of steps.
    watch : called with the value after each step; returns whether to stop.
    """
    from scipy.optimize import Bounds, minimize

    def step(intermediate_result: OptimizeResult) -> None:
        if watch and watch(float(intermediate_result.fun)):
            raise StopIteration

    if not start.size:
        return start
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(low, high),
        callback=step,
        options={"maxiter": steps, "maxfun": 10 * steps, "maxcor": 20, "ftol": 0.0, "gtol": 0.0},
    )
    return np.asarray(found.x, np.float64)
