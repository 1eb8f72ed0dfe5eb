r"""Noise that makes a vector private (Thesis section 4.2.1).

OpenDP draws the noise of a release, from the operating system's randomness: no seed exists. It rounds each coordinate
to a multiple of a granularity g first, so two neighbours that were D apart in L2 are up to D + sqrt(F) g apart; its
map counts that, and the scale is the least for which the map stays within the budget. OpenDP proves its discrete
Gaussian rho-zCDP and turns rho into (epsilon, delta). That costs 7 to 10 % more noise at delta = 1e-6 than the
analytic scale (Balle and Wang 2018), which is proven for continuous noise only and is reported, not used.

Noise of a seeded generator, for experiments, is in `seeded`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from types import ModuleType
from typing import Any, Literal, Protocol

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError

Measurement = Any
"""A measurement of OpenDP."""
NoiseName = Literal["gaussian", "laplace"]

GRANULARITY_BITS = 40
"""Rounding adds 2^-40 of itself to a sensitivity, and two draws are next to never the same."""
LEAST_EXPONENT = -1074
"""Every double is a multiple of 2^-1074."""


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta) of differential privacy (Thesis eq. 4.1).

    Raises
    ------
    InputError : unless epsilon is above 0 and finite and delta from 0 to below 1.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise InputError(f"epsilon is {self.epsilon:g}", "a number above 0 is wanted")
        if not 0 <= self.delta < 1:
            raise InputError(f"delta is {self.delta:g}", "a number from 0 to below 1 is wanted")


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Noise that fits a budget. Nothing in it comes from private data.

    Attributes
    ----------
    mechanism : what draws the noise, and how its scale was found.
    scale : standard deviation of Gaussian noise, scale b of Laplace noise, per coordinate.
    granularity : the noise and what it is added to are multiples of it; 0 if neither is rounded.
    epsilon, delta : what the map says of this scale, at most the budget.
    sensitivity : of the vector before it is rounded.
    norm : of that sensitivity, 1 or 2.
    rho : of zero-concentrated differential privacy, as the map has it; None if the noise is not Gaussian.
    analytic_scale : the scale by Balle and Wang (2018), for comparison; None if the noise is not Gaussian.
    classical_scale : sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, for comparison; None at epsilon >= 1 too.
    """

    mechanism: str
    scale: float
    granularity: float
    epsilon: float
    delta: float
    sensitivity: float
    norm: int = 2
    rho: float | None = None
    analytic_scale: float | None = None
    classical_scale: float | None = None

    @property
    def noise(self) -> NoiseName:
        """Law of the noise."""
        return "laplace" if self.norm == 1 else "gaussian"

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on each coordinate."""
        return self.scale * (math.sqrt(2) if self.norm == 1 else 1)


@dataclass(frozen=True)
class Noised:
    """A vector with noise on it, shape (F,), and the noise's calibration."""

    values: Floats
    calibration: Calibration


class Noise(Protocol):
    """Adds noise to a vector.

    The sensitivity is in L2, between neighbours, and covers whatever floating-point error went into the vector. Raises
    InputError for a sensitivity that is not above 0 and finite, for a vector that is empty or not finite, and for a
    budget that does not fit the noise. No message repeats a coordinate.
    """

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        """The noise that `add` puts on a vector of F = `size` coordinates."""

    def add(self, vector: Floats, l2_sensitivity: float, budget: Budget) -> Noised:
        """`vector`, shape (F,), with noise."""


class Adding(ABC):
    """`Noise` whose `add` is what `_draw` makes of the vector, by what `calibrate` says."""

    @abstractmethod
    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        """As `Noise.calibrate`."""

    @abstractmethod
    def _draw(self, vector: Floats, found: Calibration) -> Floats:
        """`vector` with noise as calibrated."""

    def add(self, vector: Floats, l2_sensitivity: float, budget: Budget) -> Noised:
        checked = _checked(vector)
        found = self.calibrate(checked.size, l2_sensitivity, budget)
        return Noised(self._draw(checked, found), found)


class _OpenDPNoise(Adding):
    def _draw(self, vector: Floats, found: Calibration) -> Floats:
        exponent = math.frexp(found.granularity)[1] - 1
        return np.array(_measurement(vector.size, found.norm, found.scale, exponent)(vector.tolist()), np.float64)

    def repeat(self, value: float, l2_sensitivity: float, budget: Budget, runs: int) -> Noised:
        """`runs` releases of one number, each of which spends the budget: for audits, on a number that is nobody's.

        One call of OpenDP draws them all: its noise is independent between coordinates, and the scale is that of F = 1.
        """
        found = self.calibrate(1, l2_sensitivity, budget)
        return Noised(self._draw(_checked(np.full(runs, float(value))), found), found)


class OpenDPGaussian(_OpenDPNoise):
    """Discrete Gaussian noise: (epsilon, delta)-private through rho = D^2 / (2 scale^2), D counting the rounding."""

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        check_sizes(size, l2_sensitivity)
        check_gaussian(budget)
        return _gaussian(size, float(l2_sensitivity), budget)


class OpenDPLaplace(_OpenDPNoise):
    """Discrete Laplace noise: epsilon-private; it leaves the budget's delta unspent.

    Its sensitivity is in L1, at most sqrt(F) times that in L2: 2 sqrt(F) / N where 2 / N bounds the latter. (The
    published code of chapter 4 has 2 / sqrt(N).)
    """

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        check_sizes(size, l2_sensitivity)
        return _laplace(size, l1_sensitivity(size, l2_sensitivity), budget)


@dataclass(frozen=True)
class Choice:
    """What `choose` chose: an index, with the noise scale and the epsilon that OpenDP's map gives it."""

    index: int
    scale: float
    epsilon: float
    mechanism: str


def choose(scores: Floats, sensitivity: float, epsilon: float) -> Choice:
    """An index of a high score, epsilon-privately, by permute-and-flip (McKenna and Sheldon 2020).

    The exponential mechanism's guarantee at the same scale, 2 sensitivity / epsilon; the expected score is never lower.

    Parameters
    ----------
    scores : shape (S,).
    sensitivity : of each score, between neighbours.

    Raises
    ------
    InputError : as `Noise`.
    """
    budget, checked = Budget(epsilon), _checked(scores)
    check_sizes(checked.size, sensitivity)
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    scale = math.nextafter(2 * sensitivity / budget.epsilon, math.inf)
    measurement = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)
    found = f"{_name()} make_noisy_max, permute-and-flip"
    return Choice(measurement(checked.tolist()), scale, measurement.map(float(sensitivity)), found)


@cache
def opendp() -> ModuleType:
    """OpenDP, imported when it is first needed: that takes seconds."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Least delta of Gaussian noise whose scale is 1 / mu sensitivities (Balle and Wang 2018, Theorem 8).

    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu); of any mu-GDP mechanism too (Dong et al. 2022).
    """
    from scipy.special import log_ndtr

    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(first) * -math.expm1(min(0.0, second - first))


def analytic_scale(l2_sensitivity: float, budget: Budget) -> float:
    """Least scale of continuous Gaussian noise that fits the budget (Balle and Wang 2018)."""
    from scipy.optimize import brentq

    low = high = 1.0
    while gaussian_delta(low, budget.epsilon) > budget.delta:
        low /= 2
    while gaussian_delta(high, budget.epsilon) <= budget.delta:
        high *= 2
    mu = brentq(lambda m: gaussian_delta(m, budget.epsilon) - budget.delta, low, high, xtol=1e-13 * low, rtol=1e-14)
    return l2_sensitivity / float(mu)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon at this delta of rho-zCDP, by OpenDP's map."""
    dp = opendp()
    # Gaussian noise of scale 1 on one number has rho = D^2 / 2; the root is rounded up.
    number = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0)
    found = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(number), delta)
    return float(found.map(math.nextafter(math.sqrt(2 * rho), math.inf))[0])


def classical_scale(l2_sensitivity: float, budget: Budget) -> float:
    """sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, proven at epsilon < 1 (Thesis section 4.2.1)."""
    return l2_sensitivity * math.sqrt(2 * math.log(1.25 / budget.delta)) / budget.epsilon


def l1_sensitivity(size: int, l2_sensitivity: float) -> float:
    """Of F = `size` coordinates: sqrt(F) times that in L2."""
    return math.sqrt(size) * l2_sensitivity * (1 + 2**-50)  # both products rounded up


@lru_cache(maxsize=256)
def _gaussian(size: int, sensitivity: float, budget: Budget) -> Calibration:
    dp, exponent = opendp(), _exponent(sensitivity / math.sqrt(size))
    analytic = analytic_scale(sensitivity, budget)
    # rho + 2 sqrt(rho ln(1/delta)) bounds epsilon (Bun and Steinke 2016), so the scale of this rho is enough.
    root = math.sqrt(math.log(1 / budget.delta))
    enough = sensitivity * (math.hypot(root, math.sqrt(budget.epsilon)) + root) / budget.epsilon / math.sqrt(2)

    def fixed(scale: float) -> Measurement:
        noise = _measurement(size, 2, scale, exponent)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(noise), budget.delta)

    scale = _least(fixed, sensitivity, (budget.epsilon, budget.delta), (0.9 * analytic, 1.01 * enough))
    epsilon, delta = fixed(scale).map(sensitivity)
    return Calibration(
        mechanism=f"{_name()} make_gaussian, make_zCDP_to_approxDP",
        scale=scale,
        granularity=math.ldexp(1.0, exponent),
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        rho=_measurement(size, 2, scale, exponent).map(sensitivity),
        analytic_scale=analytic,
        classical_scale=classical_scale(sensitivity, budget) if budget.epsilon < 1 else None,
    )


@lru_cache(maxsize=256)
def _laplace(size: int, sensitivity: float, budget: Budget) -> Calibration:
    exponent, about = _exponent(sensitivity / size), sensitivity / budget.epsilon

    def noise(scale: float) -> Measurement:
        return _measurement(size, 1, scale, exponent)

    scale = _least(noise, sensitivity, budget.epsilon, (0.9 * about, 1.01 * about))
    return Calibration(
        mechanism=f"{_name()} make_laplace",
        scale=scale,
        granularity=math.ldexp(1.0, exponent),
        epsilon=noise(scale).map(sensitivity),
        delta=0.0,
        sensitivity=sensitivity,
        norm=1,
    )


def _least(
    make: Callable[[float], Measurement],
    sensitivity: float,
    budget: float | tuple[float, float],
    bounds: tuple[float, float],
) -> float:
    """The least scale whose map fits the budget."""
    dp = opendp()
    try:
        return float(dp.binary_search_param(make, d_in=sensitivity, d_out=budget, bounds=bounds))
    except (dp.OpenDPException, ValueError) as error:
        raise InputError("OpenDP finds no scale of noise for this budget", "a less extreme one is wanted") from error


@lru_cache(maxsize=64)
def _measurement(size: int, norm: int, scale: float, exponent: int) -> Measurement:
    """Noise on a vector, which is rounded to multiples of 2^exponent."""
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
    metric, make = (dp.l1_distance, dp.m.make_laplace) if norm == 1 else (dp.l2_distance, dp.m.make_gaussian)
    return make(domain, metric(T=float), scale=scale, k=exponent)


def _exponent(rounding: float) -> int:
    """Of the granularity: at most 2^-GRANULARITY_BITS of what F coordinates may add to a sensitivity, each."""
    return max(LEAST_EXPONENT, math.frexp(rounding)[1] - 1 - GRANULARITY_BITS)


def _name() -> str:
    return f"OpenDP {version('opendp')}"


def check_gaussian(budget: Budget) -> None:
    """Refuse a delta of 0 (`InputError`)."""
    if budget.delta == 0:
        raise InputError("delta is 0 with Gaussian noise", "a delta above 0, or Laplace noise")


def check_sizes(size: int, sensitivity: float) -> None:
    """Refuse an empty vector, and a sensitivity that is not above 0 and finite (`InputError`)."""
    if size < 1:
        raise InputError("the vector to be released is empty", "one coordinate or more is wanted")
    if not 0 < sensitivity < math.inf:
        raise InputError(f"the sensitivity is {sensitivity:g}", "a number above 0 is wanted")


def _checked(vector: Floats) -> Floats:
    """OpenDP takes NaN for 0, and infinity for the largest double."""
    found = np.asarray(vector, np.float64)
    if found.ndim != 1 or not found.size:
        raise InputError(f"a vector of shape {found.shape} to be released", "one coordinate or more is wanted")
    if not np.isfinite(found).all():
        raise InputError("the vector to be released is not finite", "finite numbers are wanted")
    return found
