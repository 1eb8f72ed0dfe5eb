"""Confidence bounds on the mean of weights in [0, 1], by bets that would make money if the mean lay beyond them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from thesis_cli.base.arrays import Floats

MOST_STAKE = 0.9
"""Largest stake, as a share of the one that may lose all."""

LOWER_SHARE = 0.6
"""Share of the probability of an error that the lower bound may take."""

FIRST = 64
"""Weights at the first stake; then stakes change whenever the number of weights has doubled."""

EXACT = 1e-9
"""Accuracy of the logarithm of a bound, by which bounds are moved outwards."""


class Ratios:
    """Weights over their bound, by logarithms, with running sums.

    If the mean is at most m, a fortune that gains the share stake * (w / m - 1) of itself with each weight w grows
    in expectation never, and so exceeds 1 / error with probability `error` at most (Ville). The stake may depend on
    earlier weights. The lower bound is the largest m that half of the fortune at such stakes and half of w / m,
    averaged, refute (Waudby-Smith and Ramdas 2024); the upper bound is made from the opposite bets, and from
    prod (1 - w) / (1 - m).

    Parameters
    ----------
    error : probability with which one of the bounds may fail.
    planned : number of weights that stakes are chosen for.
    stake : of the first weights.
    """

    def __init__(self, error: float, planned: float, stake: float = 0.0) -> None:
        self.planned = planned
        self.count, self._top = 0, -math.inf
        self._sum = self._squares = 0.0  # of exp(ratio - top)
        self._errors = LOWER_SHARE * error, (1 - LOWER_SHARE) * error
        self._first = stake
        self._epochs: list[tuple[float, list[Floats]]] = []  # stake, and ln of the weights
        self._close = 0

    def add(self, logs: Floats) -> None:
        """Take more of them."""
        while logs.size:
            if self.count == self._close:
                self._epochs.append((self.stake() if self.count else self._first, []))
                self._close = max(FIRST, 2 * self.count)
            part, logs = np.split(logs, [self._close - self.count])
            self._add(part)

    def _add(self, logs: Floats) -> None:
        self._epochs[-1][1].append(logs)
        self.count += logs.size
        if (top := float(logs.max())) > self._top:
            shrink = math.exp(self._top - top)
            self._sum, self._squares, self._top = self._sum * shrink, self._squares * shrink**2, top
        if self._top > -math.inf:
            relative = np.exp(logs - self._top)
            self._sum += float(relative.sum())
            self._squares += float(relative @ relative)

    def stake(self) -> float:
        """The stake that wins most if weights go on as they were."""
        if not self._sum:
            return 0.0
        variance = max(self.count * self._squares / self._sum**2 - 1, 1 / self.count)
        return min(MOST_STAKE, math.sqrt(2 * math.log(2 / min(self._errors)) / self.planned / variance))

    @property
    def log_mean(self) -> float:
        """ln of the mean weight."""
        return self._top + math.log(self._sum / self.count) if self._sum else -math.inf

    @property
    def effective(self) -> float:
        """Number of equal weights that would have the same error."""
        return self._sum**2 / self._squares if self._sum else 0.0

    @property
    def relative_error(self) -> float:
        """Standard error of the mean, over the mean; inf if it cannot be told."""
        if not self._sum or self.count < 2:
            return math.inf
        mean = self._sum / self.count
        variance = max(0.0, self._squares - self.count * mean**2) / (self.count - 1)
        return math.sqrt(variance / self.count) / mean

    def low(self) -> float:
        """ln of the lower bound."""
        if not self._sum:
            return -math.inf
        level = math.log(2 / self._errors[0])
        epochs = self._joined()

        def excess(log_m: float) -> float:
            with np.errstate(over="ignore"):
                won = math.fsum(float(np.log1p(stake * np.expm1(logs - log_m)).sum()) for stake, logs in epochs)
            return float(np.logaddexp(won, self.log_mean - log_m)) - level

        return _root(excess, self.log_mean - level, self.log_mean) - EXACT

    def high(self) -> float:
        """ln of the upper bound, at most 0."""
        level = math.log(2 / self._errors[1])
        epochs = self._joined()
        with np.errstate(divide="ignore"):
            rest = math.fsum(float(np.log1p(-np.exp(logs)).sum()) for _, logs in epochs)

        def excess(log_m: float) -> float:
            m = math.exp(log_m)
            most = MOST_STAKE * m / (1 - m)
            won = math.fsum(float(np.log1p(-min(stake, most) * np.expm1(logs - log_m)).sum()) for stake, logs in epochs)
            return float(np.logaddexp(won, rest - self.count * math.log1p(-m))) - level

        least = max(self.log_mean, -math.log(self.count))
        if least > -EXACT or excess(-EXACT) < 0:
            return 0.0
        return min(0.0, _root(lambda log_m: -excess(log_m), least, -EXACT) + EXACT)

    def _joined(self) -> list[tuple[float, Floats]]:
        return [(stake, np.concatenate(parts)) for stake, parts in self._epochs]


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function that is above 0 at `low`, perhaps, is 0 up to `EXACT`; an end if it is on one side."""
    from scipy.optimize import brentq

    if function(low) <= 0:
        return low
    if function(high) >= 0:
        return high
    return float(brentq(function, low, high, xtol=EXACT / 2))
