"""Proposals of continuous targets: product densities that are sampled and halved within boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError

REGRESSION, MIXTURE = 0, 1
"""Kinds of targets that have compiled kernels."""


LANES = 32
"""Number of points that kernels handle side by side; points of residual 0 pad the data."""


TIE = 1e-9
"""Smallest gain, relative to the bound, that counts: rounding errors decide nothing."""


class CompiledTarget(NamedTuple):
    """A target as the compiled kernels take it.

    Attributes
    ----------
    kind : `REGRESSION` or `MIXTURE`.
    family : `NORMAL` or `UNIFORM`, the proposal.
    power, shift : o is `power` times the log-ratio of the kind, plus `shift`.
    location, scale : parameters of the proposal, shape (D,).
    first, second, third, fourth : of a regression, features in scales of the noise (D, n), Gram
        matrix (D, D), responses (n,) and largest absolute values (D + 1,); of a mixture, narrowness
        (K, D), tops (K, D), heights (K,) and an empty array.
    """

    kind: int
    family: int
    power: float
    shift: float
    location: Floats
    scale: Floats
    first: Floats
    second: Floats
    third: Floats
    fourth: Floats


MOST_DIMENSIONS = 4
"""Largest dimension of a target."""

REACH = 37.5
"""A normal proposal ends this many scales from its mean; a double cannot hold the mass beyond."""

NORMAL, UNIFORM = 0, 1
"""Families of proposals that have compiled kernels."""


class Proposal(Protocol):
    """A normalised density q whose coordinates are independent.

    Attributes
    ----------
    low, high : corners of the finite box that holds all its mass, shape (D,).
    """

    @property
    def low(self) -> Floats: ...

    @property
    def high(self) -> Floats: ...

    def log_density(self, x: Floats) -> Floats:
        """Compute ln q of points of shape (..., D); shape (...)."""

    def quantile(self, u: Floats, low: Floats, high: Floats) -> Floats:
        """Quantiles u of the coordinates given that they lie in [low, high]; all have shape (D,).

        The quantiles 1/2 halve the mass of a box; uniform u give a sample of q within the box.
        """

    def power(self, alpha: float) -> tuple[Proposal, float]:
        """The normalised density q^alpha, and the logarithm of the integral of q^alpha."""


@dataclass(frozen=True)
class Normal:
    """Independent normal distributions.

    Attributes
    ----------
    mean, scale : of each coordinate, shape (D,).
    low, high : corners of the box `REACH` scales about the mean, shape (D,).
    """

    mean: Floats
    scale: Floats

    def __post_init__(self) -> None:
        for name in ("mean", "scale"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        _check_sides(self.mean, self.scale, "the mean of a normal proposal", "the scale of a normal proposal")

    @cached_property
    def low(self) -> Floats:
        return self.mean - REACH * self.scale

    @cached_property
    def high(self) -> Floats:
        return self.mean + REACH * self.scale

    def log_density(self, x: Floats) -> Floats:
        z = (x - self.mean) / self.scale
        return np.asarray(-(z * z / 2 + np.log(self.scale * math.sqrt(2 * math.pi))).sum(axis=-1))

    def quantile(self, u: Floats, low: Floats, high: Floats) -> Floats:
        """Compute from the smaller tail, which is as precise far from the mean as near it."""
        from scipy.special import ndtr, ndtri

        a, b = (low - self.mean) / self.scale, (high - self.mean) / self.scale
        below, above = ndtr(a) * (1 - u) + ndtr(b) * u, ndtr(-a) * (1 - u) + ndtr(-b) * u
        z = np.where(below < above, 1.0, -1.0) * ndtri(np.minimum(below, above))
        return np.clip(self.mean + self.scale * z, low, high)

    def power(self, alpha: float) -> tuple[Normal, float]:
        spread = np.log(self.scale * math.sqrt(2 * math.pi)).sum()
        wide = Normal(self.mean, self.scale / math.sqrt(alpha))
        return wide, float((1 - alpha) * spread - 0.5 * self.mean.size * math.log(alpha))


@dataclass(frozen=True)
class Uniform:
    """The uniform distribution on a box.

    Attributes
    ----------
    low, high : corners of the box, shape (D,).
    """

    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        _check_sides(self.low, self.high - self.low, "a corner of a uniform proposal", "a side of a uniform proposal")

    def log_density(self, x: Floats) -> Floats:
        inside = ((x >= self.low) & (x <= self.high)).all(axis=-1)
        return np.where(inside, -np.log(self.high - self.low).sum(), -np.inf)

    def quantile(self, u: Floats, low: Floats, high: Floats) -> Floats:
        return np.clip(low + u * (high - low), low, high)

    def power(self, alpha: float) -> tuple[Uniform, float]:
        return self, float((1 - alpha) * np.log(self.high - self.low).sum())


def _check_sides(place: Floats, size: Floats, place_name: str, size_name: str) -> None:
    if place.ndim != 1 or place.shape != size.shape or not 1 <= place.size <= MOST_DIMENSIONS:
        raise InputError(
            f"a proposal has shapes {place.shape} and {size.shape}",
            f"give two vectors of 1 to {MOST_DIMENSIONS} numbers",
        )
    if not np.isfinite(place).all():
        raise InputError(f"{place_name} is {place[~np.isfinite(place)][0]:g}", "it must be finite")
    if not (np.isfinite(size) & (size > 0)).all():
        raise InputError(
            f"{size_name} is {size[~(np.isfinite(size) & (size > 0))][0]:g}", "it must be finite and above 0"
        )


def family(proposal: Proposal) -> tuple[int, Floats, Floats]:
    """Number of the family, and location and scale, shape (D,)."""
    if isinstance(proposal, Normal):
        return NORMAL, proposal.mean, proposal.scale
    return UNIFORM, proposal.low, proposal.high - proposal.low
