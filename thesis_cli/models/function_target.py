"""A continuous target from a plain function: a log-density on a box, with a bound of its slope."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.models.proposals import Uniform


class FunctionTarget:
    """An unnormalised log-density f on a box, with the uniform proposal; Z is the integral of
    exp(f).

    f is finite in the whole box. Its bound on a smaller box is f at the centre plus `slope` times
    the sum of half the sides.

    Parameters
    ----------
    function : f, of a point of shape (D,).
    low, high : corners of the box, D = 1 to 4 numbers each.
    slope : largest absolute derivative of f along any axis, anywhere in the box.

    Raises
    ------
    InputError : corners that make no box, or a slope that is negative or not finite.
    """

    def __init__(self, function: Callable[[Floats], Any], low: Sequence[float], high: Sequence[float], slope: float):
        self.proposal = Uniform(np.array(low, float), np.array(high, float))
        if not 0 <= slope < math.inf:
            raise InputError(f"the slope is {slope:g}", "it must be finite and 0 or more")
        self._function, self._slope = function, slope
        self._log_volume = float(np.log(self.proposal.high - self.proposal.low).sum())

    def log_ratio(self, x: Floats) -> Any:
        """f - ln q at a point of shape (D,)."""
        return self._function(x) + self._log_volume

    def bound(self, low: Floats, high: Floats) -> Any:
        """An upper bound of `log_ratio` in the box from low to high, shape (D,) each."""
        centre = (low + high) / 2
        level = self.log_ratio(centre)
        if np.size(level) == 1 and not np.isfinite(level).all():
            raise InputError(f"the function is {np.ravel(level)[0]:g} at {centre.tolist()}", "it must be finite")
        return level + self._slope * (high - low).sum() / 2
