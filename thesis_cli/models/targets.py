"""Continuous targets: an unnormalised log-density phi = ln q + o with a proposal q and bounds of o on boxes.

Thesis section 2.5.1; Lost Relatives section 5.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.models.proposals import MOST_DIMENSIONS, NORMAL, Normal, Proposal, Uniform, family

Compiled = tuple[int, int, float, float, Floats, Floats, Floats, Floats, Floats, Floats]
"""What the kernels take. Kind of target and family of proposal; power and shift: o is power times what the kind
defines, plus shift; place and scale of the proposal (D,); four arrays of the kind."""

REGRESSION, MIXTURE = 0, 1
"""Kinds of targets that are compiled."""

LANES = 32
"""Points whose factors are multiplied side by side; data are padded to a multiple of it with points of residual 0."""

MOST_SCALES, MOST_RESPONSE = 1e14, 1e150
"""Limits on x w and y in scales of the noise: a posterior narrower than the distance of two numbers; overflow."""

TIE = 1e-9
"""A dimension is preferred for a gain larger than this, relative to the bound, so that rounding decides nothing."""


class Target(Protocol):
    """phi(x) = ln q(x) + o(x). Any object with these three names is one.

    Attributes
    ----------
    proposal : q.
    """

    @property
    def proposal(self) -> Proposal: ...

    def log_ratio(self, x: Floats) -> float:
        """o at a point of shape (D,): a number, or -inf where the target vanishes."""

    def bound(self, low: Floats, high: Floats) -> float:
        """No less than o anywhere in the box from low to high, shape (D,); the tighter, the cheaper a sample."""


class Regression:
    """Linear regression with Cauchy noise and a normal prior on the weights w, which is the proposal.

    o(w) = -sum_i ln(1 + ((y_i - x_i w) / scale)^2), without the constant -n ln(pi scale) (Thesis section 2.5.1). There
    is no intercept; a column of ones in x makes one.

    Parameters
    ----------
    x : features, shape (n, D) or, with one feature, (n,); D = 1 to 4.
    y : responses, shape (n,).
    prior_scale : standard deviation of each weight, of mean 0.
    scale : of the noise.
    names : of the features; x1, x2, ... by default.

    Raises
    ------
    InputError : shapes that do not fit, no rows, more features than 4, a number that is not finite.
    """

    def __init__(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        prior_scale: float = 2.0,
        scale: float = 1.0,
        names: Sequence[str] | None = None,
    ) -> None:
        features, response = np.asarray(x, float), np.asarray(y, float)
        features = features[:, np.newaxis] if features.ndim == 1 else features
        if features.ndim != 2 or response.shape != features.shape[:1] or not features.size:
            raise InputError(
                f"x has shape {np.shape(x)}, y has shape {np.shape(y)}", "(n, D) and (n,) are wanted, n at least 1"
            )
        if features.shape[1] > MOST_DIMENSIONS:
            raise InputError(f"{features.shape[1]} features", f"at most {MOST_DIMENSIONS} are wanted")
        bad = np.argwhere(~np.isfinite(np.column_stack((features, response))))
        if bad.size:
            raise InputError(f"row {bad[0, 0] + 1} of x and y has a number that is not finite", "drop the row")
        if not (math.isfinite(scale) and scale > 0):
            raise InputError(f"the scale of the noise is {scale:g}", "it is finite and above 0")
        sizes = ("x", np.abs(features).max() * prior_scale, MOST_SCALES), ("y", np.abs(response).max(), MOST_RESPONSE)
        for what, size, most in sizes:
            if size > most * scale:
                raise InputError(
                    f"{what} is up to {size:.0e}, noise of scale {scale:g}", f"at most {most:.0e} times that"
                )
        self.x, self.y, self.scale = features, response, scale
        dimension = features.shape[1]
        self.names = tuple(names or (f"x{d + 1}" for d in range(dimension)))
        self.proposal = Normal(np.zeros(dimension), np.full(dimension, float(prior_scale)))
        self._x, self._y = features / scale, response / scale
        self._gram = np.abs(self._x.T @ self._x)

    def log_ratio(self, x: Floats) -> float:
        r = self._y - self._x @ x
        return float(-np.log1p(r * r).sum())

    def bound(self, low: Floats, high: Floats) -> float:
        """The lower of two bounds.

        Each residual lies in an interval, of which the point nearest to 0 counts; that is tight for large residuals
        and large boxes. And about the centre of the box, ln(1 + r^2) has curvature -1/4 at least; its error falls
        with the square of the sides.
        """
        centre, half = (low + high) / 2, (high - low) / 2
        r = self._y - self._x @ centre
        near = np.maximum(np.abs(r) - np.abs(self._x) @ half, 0)
        slope = 2 * (r / (1 + r * r)) @ self._x
        curved = -np.log1p(r * r).sum() + np.abs(slope) @ half + half @ self._gram @ half / 8
        return float(min(-np.log1p(near * near).sum(), curved))

    @cached_property
    def compiled(self) -> Compiled:
        """What the kernels take."""
        n, dimension = self._x.shape
        padded = np.zeros((dimension + 1, -(-n // LANES) * LANES))
        padded[:-1, :n], padded[-1, :n] = self._x.T, self._y
        most = np.abs(padded).max(axis=1)
        p = self.proposal
        return REGRESSION, NORMAL, 1.0, 0.0, p.mean, p.scale, padded[:-1].copy(), self._gram, padded[-1], most


class Mixture:
    """exp(phi) = sum_k weight_k Normal(mean_k, scale_k), with independent coordinates.

    Parameters
    ----------
    weights : above 0, shape (K,); ln Z is the logarithm of their sum.
    means, scales : shape (K, D).
    proposal : a normal one is wider than every component, which bounds o = ln sum_k exp(height_k - narrowness_k
        (x - top_k)^2).

    Raises
    ------
    InputError : shapes that do not fit, weights or scales that are not above 0, or a proposal that is too narrow.
    """

    def __init__(
        self, weights: npt.ArrayLike, means: npt.ArrayLike, scales: npt.ArrayLike, proposal: Normal | Uniform
    ) -> None:
        w, m, s = np.asarray(weights, float), np.asarray(means, float), np.asarray(scales, float)
        if m.shape != s.shape or m.shape != (w.size, proposal.low.size) or not min(w.min(), s.min()) > 0:
            raise InputError(
                f"a mixture of shapes {w.shape}, {m.shape}, {s.shape}",
                "(K,), (K, D), (K, D), weights and scales above 0",
            )
        self.proposal = proposal
        self.log_z = math.log(w.sum())
        if isinstance(proposal, Normal):
            more = proposal.scale**2 - s**2
            if not (more > 0).all():
                raise InputError("a component is as wide as the proposal", "a wider proposal is wanted")
            self._narrowness = more / (2 * s**2 * proposal.scale**2)
            self._top = (m * proposal.scale**2 - proposal.mean * s**2) / more
            heights = np.log(proposal.scale / s) + (m - proposal.mean) ** 2 / (2 * more)
        else:
            self._narrowness, self._top = 1 / (2 * s**2), m
            heights = np.log((proposal.high - proposal.low) / (s * math.sqrt(2 * math.pi)))
        self._height = np.log(w) + heights.sum(axis=1)

    def log_ratio(self, x: Floats) -> float:
        return self.bound(x, x)

    def bound(self, low: Floats, high: Floats) -> float:
        """Every component at its own maximum in the box."""
        away = np.clip(self._top, low, high) - self._top
        return float(np.logaddexp.reduce(self._height - (self._narrowness * away**2).sum(axis=1)))

    @cached_property
    def compiled(self) -> Compiled:
        """What the kernels take."""
        number, place, scale = family(self.proposal)
        none = np.zeros(0)
        return MIXTURE, number, 1.0, 0.0, place, scale, self._narrowness, self._top, self._height, none


@dataclass(frozen=True)
class Tempered:
    """alpha phi, with q^alpha normalised as its proposal: the target of ln Z_alpha (Thesis section 3.3.2).

    Attributes
    ----------
    base : phi.
    alpha : above 0.
    """

    base: Target
    alpha: float
    proposal: Proposal = field(init=False)
    shift: float = field(init=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise InputError(f"alpha is {self.alpha:g}", "a power of a density is finite and above 0")
        proposal, shift = self.base.proposal.power(self.alpha)
        object.__setattr__(self, "proposal", proposal)
        object.__setattr__(self, "shift", shift)

    def log_ratio(self, x: Floats) -> float:
        return self.alpha * self.base.log_ratio(x) + self.shift

    def bound(self, low: Floats, high: Floats) -> float:
        return self.alpha * self.base.bound(low, high) + self.shift

    @cached_property
    def compiled(self) -> Compiled | None:
        """What the kernels take, if they take the base."""
        base = compiled(self.base)
        if base is None:
            return None
        kind, _, power, shift, _, _, *arrays = base
        number, place, scale = family(self.proposal)
        a, b, c, e = arrays
        return kind, number, self.alpha * power, self.alpha * shift + self.shift, place, scale, a, b, c, e


def tempered(target: Target, alpha: float) -> Target:
    """The target alpha phi: its ln Z is ln of the integral of exp(alpha phi).

    Raises
    ------
    InputError : alpha is not above 0.
    """
    return target if alpha == 1 else Tempered(target, alpha)


def compiled(target: Target) -> Compiled | None:
    """The target as the kernels take it; None if it is Python alone."""
    found: Compiled | None = getattr(target, "compiled", None)
    return found


def log_ratios(target: Target, points: Floats) -> Floats:
    """o of many points, shape (K, D), shape (K,)."""
    arrays = compiled(target)
    if arrays is None:
        return np.array([target.log_ratio(x) for x in points])
    from thesis_cli.models import target_kernels

    values = np.empty(len(points))
    target_kernels.log_ratios(arrays, np.ascontiguousarray(points), values)
    return values


def split_dimension(target: Target, low: Floats, high: Floats, halvings: npt.NDArray[np.int64]) -> int:
    """The dimension that loosens the bound of a box most.

    That is the one in which o would fall furthest, were the box flat there, at a quartile; at both in turn, on average.
    (A maximum may be at the median, and a look at two halves would miss a maximum in each.) Of equals, the one that
    was halved least.
    """
    if low.size == 1:
        return 0
    quartiles = [target.proposal.quantile(np.full(low.size, u), low, high) for u in (0.25, 0.75)]
    best, at = math.inf, -1
    for d in np.argsort(halvings, kind="stable"):
        level = 0.0
        for quartile in quartiles:
            flat_low, flat_high = low.copy(), high.copy()
            flat_low[d] = flat_high[d] = quartile[d]
            level += 0.5 * target.bound(flat_low, flat_high)
        if at < 0 or level < best - TIE * (1 + abs(best)):
            best, at = level, int(d)
    return at


def published_regression(seed: int = 0) -> Regression:
    """The data of Figure 2.3a: 1000 points, whose posterior has a mode at w = 0 and one at w = -2.

    NumPy's legacy generator gives 500 features, then 500 noises. The responses of the first half are those of
    w* = 2 with noise 0.1, negated; the second half repeats the features with responses 0. At seed 0,
    ln Z = -532.4153167492; the published -532.4139431339 is of quadrature that let 1e-231 pass for 0.
    """
    legacy = np.random.RandomState(seed)
    x, noise = legacy.randn(500), legacy.randn(500)
    return Regression(np.tile(x, 2), np.concatenate((-(2 * x + 0.1 * noise), np.zeros(500))))
