r"""Noise that makes a vector private (Thesis section 4.2.1).

OpenDP draws the noise of a release from the operating system's randomness; there is no seed. It
first rounds each coordinate to a multiple of a granularity g, so that two neighbours at L2 distance
D may end up D + sqrt(F) g apart. Its privacy map accounts for that, and the scale is the least one
for which the map stays within the budget. OpenDP proves that its discrete Gaussian is rho-zCDP, and
turns rho into (epsilon, delta). At delta = 1e-6 that costs 7 to 10 % more noise than the analytic
scale (Balle and Wang 2018), which is proven for continuous noise only; it is reported, not used.

The meaning of a budget for an attacker (`best_guess`). Two neighbouring tables are equally likely before
one is released. The best guess of which is right with probability (1 + TV) / 2, with TV the total
variation distance of the two laws of the release. (epsilon, delta)-differential privacy bounds it by TV <=
(e^epsilon - 1 + 2 delta) / (e^epsilon + 1) (Kairouz, Oh and Viswanath 2015, Theorem 3.4), which randomised
response that tells the truth with probability delta attains. rho-zCDP bounds the relative entropy by rho
(Bun and Steinke 2016), and so TV <= sqrt(rho / 2) (Pinsker) and TV <= sqrt(1 - e^-rho) (Bretagnolle and
Huber 1979); Gaussian noise has TV = 2 Phi(sqrt(rho / 2)) - 1, which is sqrt(2 / pi) of Pinsker's bound for
small rho.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, Literal, Protocol

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, presentation
from thesis_cli.base.modules import extra

Measurement = Any
"""A measurement of OpenDP."""
NoiseName = Literal["gaussian", "laplace"]

GRANULARITY_BITS = 40
"""Rounding adds at most 2^-40 of a sensitivity to it, and two draws are hardly ever equal."""
LEAST_EXPONENT = -1074
"""Every double is a multiple of 2^-1074."""
NARROW = 1e-11
"""Relative distance of bounds within which OpenDP searches a scale."""


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta) of differential privacy (Thesis eq. 4.1).

    Raises
    ------
    InputError : epsilon is not above 0 and finite, or delta is not at least 0 and below 1.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise InputError(f"epsilon is {self.epsilon:g}", "it must be above 0 and finite")
        if not 0 <= self.delta < 1:
            raise InputError(f"delta is {self.delta:g}", "it must be at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Noise that fits a budget; nothing in it comes from private data.

    Attributes
    ----------
    mechanism : source of the noise, and how its scale was found.
    scale : standard deviation of Gaussian noise, or scale b of Laplace noise, per coordinate.
    granularity : the noise and the rounded vector are multiples of it; 0 if neither is rounded.
    epsilon, delta : privacy of this scale by OpenDP's map, at most the budget.
    sensitivity : sensitivity of the vector before it is rounded.
    norm : norm of that sensitivity, 1 or 2.
    rho : rho of zero-concentrated differential privacy, by the map; None if the noise is not
        Gaussian.
    analytic_scale : scale of Balle and Wang (2018), for comparison; None if the noise is not
        Gaussian.
    classical_scale : sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, for comparison; None too if
        epsilon >= 1.
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
    """Source of noise for a vector.

    The sensitivity is in L2, between neighbours, and includes the floating-point errors in the
    vector. The methods raise InputError for a sensitivity that is not above 0 and finite, for a
    vector that is empty or not finite, and for a budget that does not fit the noise. No error
    repeats a coordinate.
    """

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        """Noise that `add` puts on a vector of F = `size` coordinates."""

    def add(self, vector: Floats, l2_sensitivity: float, budget: Budget) -> Noised:
        """The vector, shape (F,), with noise."""


class Adding(ABC):
    """`Noise` whose `add` passes the checked vector and its calibration to `_draw`."""

    @abstractmethod
    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        """See `Noise.calibrate`."""

    @abstractmethod
    def _draw(self, vector: Floats, found: Calibration) -> Floats:
        """The vector with noise as calibrated."""

    def add(self, vector: Floats, l2_sensitivity: float, budget: Budget) -> Noised:
        """See `Noise.add`."""
        checked = check_finite(vector)
        found = self.calibrate(checked.size, l2_sensitivity, budget)
        return Noised(self._draw(checked, found), found)


class _OpenDPNoise(Adding):
    def _draw(self, vector: Floats, found: Calibration) -> Floats:
        exponent = math.frexp(found.granularity)[1] - 1
        return np.array(measurement(vector.size, found.norm, found.scale, exponent)(vector.tolist()), np.float64)


class OpenDPGaussian(_OpenDPNoise):
    """Discrete Gaussian noise: (epsilon, delta)-private by rho = D^2 / (2 scale^2), where D
    includes the rounding.
    """

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        check_sizes(size, l2_sensitivity)
        check_gaussian(budget)
        return _gaussian(size, float(l2_sensitivity), budget)


class OpenDPLaplace(_OpenDPNoise):
    """Discrete Laplace noise: epsilon-private; it does not spend the budget's delta.

    Its sensitivity is in L1, at most sqrt(F) times that in L2: 2 sqrt(F) / N if the latter is at
    most 2 / N. (The published code of chapter 4 has 2 / sqrt(N).)
    """

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        check_sizes(size, l2_sensitivity)
        return _laplace(size, l1_sensitivity(size, l2_sensitivity), budget)


NOISES: dict[NoiseName, Callable[[], Noise]] = {"gaussian": OpenDPGaussian, "laplace": OpenDPLaplace}


@dataclass(frozen=True)
class Choice:
    """Result of `choose`: an index, with the noise scale and its epsilon by OpenDP's map."""

    index: int
    scale: float
    epsilon: float
    mechanism: str


def choose(scores: Floats, sensitivity: float, epsilon: float) -> Choice:
    """Choose the index of a high score, epsilon-privately, by permute-and-flip (McKenna and Sheldon
    2020).

    It has the guarantee of the exponential mechanism at the same scale, 2 sensitivity / epsilon,
    and an expected score that is never lower.

    Parameters
    ----------
    scores : scores, shape (S,).
    sensitivity : sensitivity of each score, between neighbours.

    Raises
    ------
    InputError : as for `Noise`.
    """
    budget, checked = Budget(epsilon), check_finite(scores)
    check_sizes(checked.size, sensitivity)
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    scale = math.nextafter(2 * sensitivity / budget.epsilon, math.inf)
    measurement = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)
    found = f"{opendp_name()} make_noisy_max, permute-and-flip"
    return Choice(measurement(checked.tolist()), scale, measurement.map(float(sensitivity)), found)


@cache
def opendp() -> SimpleNamespace:
    """The parts of OpenDP that releases use, imported when first needed.

    Its prelude imports scikit-learn too, which takes ten times as long as the rest.

    Raises
    ------
    InputError : it is not installed.
    """
    found: dict[str, Any] = {}
    for part in ("mod", "domains", "metrics", "measures"):
        found |= vars(extra(f"opendp.{part}"))
    found |= {"m": extra("opendp.measurements"), "c": extra("opendp.combinators")}
    found["enable_features"]("contrib")
    return SimpleNamespace(**found)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Least delta of Gaussian noise whose scale is 1 / mu sensitivities (Balle and Wang 2018,
    Theorem 8).

    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu); it holds for any mu-GDP mechanism
    (Dong et al. 2022).
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


@lru_cache(maxsize=256)
def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zCDP at a delta, by OpenDP's map; infinity where that is no double."""
    if rho == 0:
        return 0.0
    dp = opendp()
    # Gaussian noise of scale 1 on one number has rho = D^2 / 2; the root is rounded up.
    number = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0)
    found = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(number), delta)
    try:
        # A rho below 1e-300 would overflow in the map; it counts as 1e-300.
        return float(found.map(math.nextafter(math.sqrt(2 * max(rho, 1e-300)), math.inf))[0])
    except dp.OpenDPException:
        return math.inf


def classical_scale(l2_sensitivity: float, budget: Budget) -> float:
    """Scale sensitivity sqrt(2 ln(1.25 / delta)) / epsilon, proven for epsilon < 1 (Thesis section
    4.2.1).
    """
    return l2_sensitivity * math.sqrt(2 * math.log(1.25 / budget.delta)) / budget.epsilon


def l1_sensitivity(size: int, l2_sensitivity: float) -> float:
    """L1 sensitivity of F = `size` coordinates: sqrt(F) times that in L2, rounded up."""
    return math.sqrt(size) * l2_sensitivity * (1 + 2**-50)  # rounds both products up


@lru_cache(maxsize=256)
def _gaussian(size: int, sensitivity: float, budget: Budget) -> Calibration:
    dp, exponent = opendp(), exponent_of(sensitivity / math.sqrt(size))
    analytic = analytic_scale(sensitivity, budget)
    # rho + 2 sqrt(rho ln(1/delta)) bounds epsilon (Bun and Steinke 2016), so the scale of this rho
    # is enough.
    root = math.sqrt(math.log(1 / budget.delta))
    enough = sensitivity * (math.hypot(root, math.sqrt(budget.epsilon)) + root) / budget.epsilon / math.sqrt(2)

    def fixed(scale: float) -> Measurement:
        noise = measurement(size, 2, scale, exponent)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(noise), budget.delta)

    scale = least_scale(fixed, sensitivity, (budget.epsilon, budget.delta), (0.9 * analytic, 1.01 * enough))
    epsilon, delta = fixed(scale).map(sensitivity)
    return Calibration(
        mechanism=f"{opendp_name()} make_gaussian, make_zCDP_to_approxDP",
        scale=scale,
        granularity=math.ldexp(1.0, exponent),
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        rho=measurement(size, 2, scale, exponent).map(sensitivity),
        analytic_scale=analytic,
        classical_scale=classical_scale(sensitivity, budget) if budget.epsilon < 1 else None,
    )


@lru_cache(maxsize=256)
def _laplace(size: int, sensitivity: float, budget: Budget) -> Calibration:
    exponent, about = exponent_of(sensitivity / size), sensitivity / budget.epsilon

    def noise(scale: float) -> Measurement:
        return measurement(size, 1, scale, exponent)

    scale = least_scale(noise, sensitivity, budget.epsilon, (0.9 * about, 1.01 * about))
    return Calibration(
        mechanism=f"{opendp_name()} make_laplace",
        scale=scale,
        granularity=math.ldexp(1.0, exponent),
        epsilon=noise(scale).map(sensitivity),
        delta=0.0,
        sensitivity=sensitivity,
        norm=1,
    )


def least_scale(
    make: Callable[[float], Measurement],
    sensitivity: float,
    budget: float | tuple[float, float],
    bounds: tuple[float, float],
) -> float:
    """Least scale whose map stays within the budget.

    Parameters
    ----------
    make : measurement of a scale.
    sensitivity : distance of neighbours, in the metric of the measurement.
    budget : largest value that its map may have: epsilon, rho, or (epsilon, delta).
    bounds : scales between which the least one lies.

    Raises
    ------
    InputError : OpenDP finds none.
    """
    dp = opendp()
    try:
        narrow = _narrowed(make, sensitivity, budget, bounds)
        return float(dp.binary_search_param(make, d_in=sensitivity, d_out=budget, bounds=narrow))
    except (dp.OpenDPException, ValueError) as error:
        raise InputError("OpenDP finds no scale of noise for this budget", "give a less extreme one") from error


def _narrowed(
    make: Callable[[float], Measurement],
    sensitivity: float,
    budget: float | tuple[float, float],
    bounds: tuple[float, float],
) -> tuple[float, float]:
    """Bounds close together, of which OpenDP's map refuses the lower and allows the upper one; the given
    ones where they are not found. They halve the time of its search, which ends at the same scale.
    """
    from scipy.optimize import brentq

    allowed = budget[0] if isinstance(budget, tuple) else budget

    def excess(log_scale: float) -> float:
        spent = make(math.exp(log_scale)).map(sensitivity)
        return math.log((spent[0] if isinstance(spent, tuple) else spent) / allowed)

    try:
        about = brentq(excess, math.log(bounds[0]), math.log(bounds[1]), xtol=NARROW / 10)
        low, high = about - NARROW, about + NARROW
        return (math.exp(low), math.exp(high)) if excess(low) > 0 >= excess(high) else bounds
    except (opendp().OpenDPException, ValueError):  # the map overflows
        return bounds


@lru_cache(maxsize=64)
def measurement(size: int, norm: int, scale: float, exponent: int) -> Measurement:
    """Measurement that rounds a vector to multiples of 2^exponent and adds noise.

    Parameters
    ----------
    size : length F of the vector.
    norm : 1 for Laplace noise, 2 for Gaussian noise.
    scale : scale of the noise on each coordinate.
    """
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
    metric, make = (dp.l1_distance, dp.m.make_laplace) if norm == 1 else (dp.l2_distance, dp.m.make_gaussian)
    return make(domain, metric(T=float), scale=scale, k=exponent)


def exponent_of(rounding: float) -> int:
    """Exponent of the granularity: at most 2^-GRANULARITY_BITS of each coordinate's share of the
    sensitivity.
    """
    return max(LEAST_EXPONENT, math.frexp(rounding)[1] - 1 - GRANULARITY_BITS)


@cache
def versions() -> dict[str, str]:
    """Versions of this program and of the libraries of all releases."""
    return {name: version(name) for name in ("thesis-cli", "opendp", "numpy")}


def opendp_name() -> str:
    return f"OpenDP {versions()['opendp']}"


def check_gaussian(budget: Budget) -> None:
    """Refuse a delta of 0 (`InputError`)."""
    if budget.delta == 0:
        raise InputError("delta is 0 with Gaussian noise", "it must be above 0, or the noise Laplace")


def check_sizes(size: int, sensitivity: float) -> None:
    """Refuse an empty vector, and a sensitivity that is not above 0 and finite (`InputError`)."""
    if size < 1:
        raise InputError("the vector to be released is empty", "it must have at least one coordinate")
    if not 0 < sensitivity < math.inf:
        raise InputError(f"the sensitivity is {sensitivity:g}", "it must be above 0 and finite")


def check_finite(vector: Floats) -> Floats:
    """The vector, if it is finite: OpenDP would replace NaN by 0 and infinity by the largest
    double.
    """
    found = np.asarray(vector, np.float64)
    if found.ndim != 1 or not found.size:
        raise InputError(f"the vector to be released has shape {found.shape}", "it must have at least one coordinate")
    if not np.isfinite(found).all():
        raise InputError("the vector to be released is not finite", "all its numbers must be")
    return found


def best_guess(epsilon: float, delta: float = 0.0, rho: float | None = None) -> float:
    """Largest probability with which an attacker tells two neighbouring tables apart, equally likely
    before.

    Parameters
    ----------
    epsilon, delta : budget of the release.
    rho : rho of zero-concentrated differential privacy, if it is known.
    """
    decay = math.exp(-epsilon)
    variation = (1 - decay + 2 * delta * decay) / (1 + decay)
    if rho is not None:
        variation = min(variation, math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
    return (1 + min(1.0, variation)) / 2


@presentation
def risk_line(epsilon: float, delta: float, rho: float | None) -> tuple[str, str]:
    """Name and words of a line of a summary: the budget as the risk of an attack, rounded up.

    Parameters
    ----------
    epsilon, delta, rho : as for `best_guess`.
    """
    share = math.ceil(best_guess(epsilon, delta, rho) * 1000 - 1e-9) / 10
    words = "which of two neighbouring tables was released is guessed right no more often than"
    return "attack risk", f"{words} {share:g} % (50 % is a coin)"
