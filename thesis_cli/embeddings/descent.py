"""Descent in a box by L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Floats

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


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
