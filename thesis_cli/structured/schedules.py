"""Cooling schedules 0 = beta_0 < ... < beta_l = 1, and how many samples each ratio needs (Vembu et al. 2.2).

Ratio i is the mean of f_i = exp((beta_{i-1} - beta_i) <phi(y), theta>) under the weights beta_i theta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge

MOST_RATIOS = 10**6
"""Longest schedule."""


@dataclass(frozen=True)
class Schedule:
    """Inverse temperatures at which partition functions are compared.

    Attributes
    ----------
    betas : inverse temperatures from 0 to 1, shape (ratios + 1,).
    name : how they were chosen.
    """

    betas: Floats
    name: str

    @property
    def ratios(self) -> int:
        """Number of ratios l."""
        return len(self.betas) - 1

    @property
    def steps(self) -> Floats:
        """beta_i - beta_{i-1}, shape (ratios,); negative where a schedule turns back."""
        return np.diff(self.betas)

    def variance_bounds(self, span: float) -> Floats:
        """Bounds sinh((beta_i - beta_{i-1}) span / 2)^2 on Var f_i / (E f_i)^2, shape (ratios,).

        A variable in [a, b] has variance at most (b - E f)(E f - a), and that over (E f)^2 is largest
        at E f = 2ab / (a + b). It is then (b - a)^2 / (4ab), in which only b / a = exp(step span) enters.

        Parameters
        ----------
        span : largest difference of two log-potentials, in nats; 2BR at most.
        """
        with np.errstate(over="ignore"):
            found: Floats = np.sinh(self.steps * span / 2) ** 2
        return found


def corrected_schedule(p: float, radius: float) -> Schedule:
    """Equal steps 1 / q, q = p radius, and a last one that is not longer: every f_i is in
    exp(+-1/p). Raises InputError if p is not positive, or the radius is negative; either is not
    finite; ModelTooLarge if there would be more than a million steps.

    Parameters
    ----------
    p : how many steps there are to one nat.
    radius : bound on |<phi(y), theta>|: R |theta|, or half of the span of the log-potentials, since a
        constant that is added to all of them changes no relative variance.
    """
    q = check_steps(p, radius)
    count = max(1, math.ceil(q * (1 - 1e-12)))  # no step for the rounding of a whole number
    return Schedule(np.append(np.arange(count) / (q or 1.0), 1.0), "equal")


def check_steps(p: float, radius: float) -> float:
    """q = p radius, the number of equal steps from 0 to 1. Raises InputError or ModelTooLarge as
    for `corrected_schedule`."""
    if not (p > 0 and math.isfinite(p)):
        raise InputError(f"p is {p:g}", "the number of steps to a nat must be positive")
    if not (radius >= 0 and math.isfinite(radius)):
        raise InputError(f"the bound on log-potentials is {radius:g}", "it must be finite and not negative")
    if p * (radius + 1) > MOST_RATIOS:
        raise ModelTooLarge(
            f"log-potentials of {radius:.4g} nats need {p * radius:.3g} steps", f"at most {MOST_RATIOS:,} are taken"
        )
    return p * radius


def printed_samples(ratios: int, p: float, error: float) -> int:
    """S = ceil(65 l exp(2/p) / epsilon^2) samples of each ratio (Vembu et al. Theorem 2.5). Raises
    InputError if the error is not between 0 and 1."""
    return math.ceil(65 * ratios * math.exp(2 / p) / _error(error) ** 2)


def printed_distance(ratios: int, p: float, error: float) -> float:
    """epsilon / (5 l exp(2/p)), the total variation distance of approximate samples (Theorem A.1)."""
    return _error(error) / (5 * ratios * math.exp(2 / p))


def relative_variance(error: float, confidence: float = 0.75, bias: float = 0.0) -> float:
    """Var X / (E X)^2 at which 1 / X is in (1 +- epsilon) / E X with some probability, by Chebyshev.

    1 / X is in that range where X deviates by at most epsilon / (1 + epsilon) of its mean. Theorem
    2.5 asks for epsilon / 4 instead, and so for up to 16 times as many samples. Raises InputError
    if the error or the confidence is not between 0 and 1.

    Parameters
    ----------
    error : epsilon, between 0 and 1.
    confidence : the probability.
    bias : share of ln(1 + epsilon) that is left to a bias of E X.
    """
    if not 0 < confidence < 1:
        raise InputError(f"the confidence is {confidence:g}", "it must be between 0 and 1")
    deviation = -math.expm1((bias - 1) * math.log1p(_error(error)))
    return deviation * deviation * (1 - confidence)


def needed_samples(variances: Floats, target: float, costs: Floats | None = None) -> Ints:
    """Samples of each ratio with which the product of the means has a relative variance of at most `target`.

    The product has the relative variance prod (1 + v_i / S_i) - 1, which is at most target if the
    sum of v_i / S_i is at most ln(1 + target). Least cost: S_i in proportion to sqrt(v_i / c_i).
    Raises ModelTooLarge if a number of samples is beyond 2^53.

    Parameters
    ----------
    variances : bounds or estimates v_i of Var f_i / (E f_i)^2, shape (ratios,).
    target : relative variance, from `relative_variance`.
    costs : cost c_i of a sample of each ratio; None for equal ones.
    """
    prices = np.ones(len(variances)) if costs is None else np.asarray(costs, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.sqrt(variances / prices) * np.sqrt(variances * prices).sum() / math.log1p(target)
    if not (found < 2.0**53).all():
        raise ModelTooLarge("a ratio needs more than 2^53 samples", "take shorter steps")
    return np.asarray(np.maximum(1, np.ceil(found)).astype(np.int64))


def _error(error: float) -> float:
    if not 0 < error < 1:
        raise InputError(f"the error is {error:g}", "it must be between 0 and 1")
    return error


def adaptive_schedule(
    pilot: Callable[[float], Floats], target: float = 0.5, most: int = MOST_RATIOS
) -> tuple[Schedule, Floats]:
    """Steps from 1 down to 0, each as long as a pilot sample says that its variance allows.

    Stefankovic, Vempala and Vigoda choose temperatures so that neighbouring distributions overlap
    by a constant share; the relative variance of f_i, which says so, rises with the length of a
    step. Raises ModelTooLarge if the schedule would be longer.

    Parameters
    ----------
    pilot : beta -> log-potentials <phi(y), theta> of samples under the weights beta theta, shape (n,).
    target : Var f_i / (E f_i)^2 that a step may have in its pilot sample.
    most : longest schedule.

    Returns
    -------
    The schedule, and the relative variances measured in the pilot samples, shape (ratios,). They are
    estimates: rare structures that a pilot sample misses make them too small.
    """
    betas, variances = [1.0], []
    while betas[-1] > 0:
        if len(betas) > most:
            raise ModelTooLarge(f"the schedule has more than {most:,} steps", "raise the variance of a step")
        potentials = pilot(betas[-1])
        step = _longest_step(potentials, betas[-1], target)
        variances.append(step_variance(potentials, step))
        betas.append(max(0.0, betas[-1] - step))
    return Schedule(np.array(betas[::-1]), "adaptive"), np.array(variances[::-1])


def step_variance(potentials: Floats, step: float) -> float:
    """Var f / (E f)^2 of f = exp(-step potential) in a sample."""
    factors = np.exp(-step * (potentials - potentials.min()))
    mean = factors.mean()
    return float(((factors - mean) ** 2).mean() / mean**2)


def _longest_step(potentials: Floats, beta: float, target: float) -> float:
    """Longest step up to beta whose variance in the sample is at most the target, to 1 in 1,000."""
    if step_variance(potentials, beta) <= target:
        return beta
    low, high = 0.0, beta
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if step_variance(potentials, middle) <= target else (low, middle)
    return low
