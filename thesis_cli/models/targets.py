"""Continuous targets: log-densities phi = ln q + o with a proposal q and bounds of o on boxes; and the file of
a regression.

Thesis section 2.5.1; Lost Relatives section 5.1.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.models.proposals import (
    LANES,
    MIXTURE,
    MOST_DIMENSIONS,
    NORMAL,
    REGRESSION,
    TIE,
    CompiledTarget,
    Normal,
    Proposal,
    Uniform,
    family,
)
from thesis_cli.models.tokens import is_number

MOST_SCALES, MOST_RESPONSE = 1e14, 1e150
"""Limits on x w and y in scales of the noise, against rounding errors and overflow."""


class Target(Protocol):
    """An unnormalised log-density phi(x) = ln q(x) + o(x): any object with these three attributes.

    Attributes
    ----------
    proposal : normalised density q.
    """

    @property
    def proposal(self) -> Proposal: ...

    def log_ratio(self, x: Floats) -> float:
        """The log-ratio o at a point of shape (D,): a number, or -inf where the target vanishes."""

    def bound(self, low: Floats, high: Floats) -> float:
        """Upper bound of o on a box with corners of shape (D,); tight bounds make samples cheap."""


class Regression:
    """Linear regression with Cauchy noise; the proposal is a normal prior on the weights w.

    o(w) = -sum_i ln(1 + ((y_i - x_i w) / scale)^2), without the constant -n ln(pi scale) (Thesis
    section 2.5.1). The model has no intercept; a column of ones in x adds one.

    Parameters
    ----------
    x : features, shape (n, D) or, with one feature, (n,); D = 1 to 4.
    y : responses, shape (n,).
    prior_scale : standard deviation of the prior of each weight, whose mean is 0.
    scale : scale of the noise.
    names : names of the features; by default x1, x2, ...

    Raises
    ------
    InputError : the shapes do not fit, there are no rows or more than 4 features, or a number is
        not finite.
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
                f"x has shape {np.shape(x)}, y has shape {np.shape(y)}", "give (n, D) and (n,) with n at least 1"
            )
        if features.shape[1] > MOST_DIMENSIONS:
            raise InputError(f"x has {features.shape[1]} features", f"it may have {MOST_DIMENSIONS}")
        bad = np.argwhere(~np.isfinite(np.column_stack((features, response))))
        if bad.size:
            raise InputError(f"row {bad[0, 0] + 1} of x and y has a number that is not finite", "drop the row")
        if not (math.isfinite(scale) and scale > 0):
            raise InputError(f"the scale of the noise is {scale:g}", "it must be finite and above 0")
        widest, highest = float(np.abs(features).max()), float(np.abs(response).max())
        for what, size, most in ("x", widest * prior_scale, MOST_SCALES), ("y", highest, MOST_RESPONSE):
            if size > most * scale:
                raise InputError(
                    f"{what} is up to {size:.0e}, with noise of scale {scale:g}", f"it may be {most:.0e} times that"
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
        """The lower of two upper bounds.

        The first puts each residual into an interval and takes the point of the interval that is
        nearest to 0: it is tight for large residuals and large boxes. The second expands about the
        centre of the box, where the curvature of ln(1 + r^2) is at least -1/4: its error falls with
        the square of the sides.
        """
        centre, half = (low + high) / 2, (high - low) / 2
        r = self._y - self._x @ centre
        near = np.maximum(np.abs(r) - np.abs(self._x) @ half, 0)
        slope = 2 * (r / (1 + r * r)) @ self._x
        curved = -np.log1p(r * r).sum() + np.abs(slope) @ half + half @ self._gram @ half / 8
        return float(min(-np.log1p(near * near).sum(), curved))

    @cached_property
    def compiled(self) -> CompiledTarget:
        """The target as the kernels take it."""
        n, dimension = self._x.shape
        padded = np.zeros((dimension + 1, -(-n // LANES) * LANES))
        padded[:-1, :n], padded[-1, :n] = self._x.T, self._y
        most = np.abs(padded).max(axis=1)
        p = self.proposal
        features = padded[:-1].copy()
        return CompiledTarget(REGRESSION, NORMAL, 1.0, 0.0, p.mean, p.scale, features, self._gram, padded[-1], most)


class Mixture:
    """A mixture of normals with independent coordinates.

    exp(phi) = sum_k weight_k Normal(mean_k, scale_k).

    Parameters
    ----------
    weights : numbers above 0, shape (K,); ln Z is the logarithm of their sum.
    means, scales : parameters of the components, shape (K, D).
    proposal : density q; a normal one must be wider than every component, which bounds
        o = ln sum_k exp(height_k - narrowness_k (x - top_k)^2).

    Raises
    ------
    InputError : the shapes do not fit, a weight or scale is not above 0, or the proposal is too
        narrow.
    """

    def __init__(
        self, weights: npt.ArrayLike, means: npt.ArrayLike, scales: npt.ArrayLike, proposal: Normal | Uniform
    ) -> None:
        w, m, s = np.asarray(weights, float), np.asarray(means, float), np.asarray(scales, float)
        if m.shape != s.shape or m.shape != (w.size, proposal.low.size) or not min(w.min(), s.min()) > 0:
            raise InputError(
                f"a mixture has shapes {w.shape}, {m.shape}, {s.shape}",
                "give (K,), (K, D), (K, D), with weights and scales above 0",
            )
        self.proposal = proposal
        self.log_z = math.log(w.sum())
        if isinstance(proposal, Normal):
            more = proposal.scale**2 - s**2
            if not (more > 0).all():
                raise InputError("a component is as wide as the proposal", "give a wider proposal")
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
        """Upper bound of o: every component at its own maximum in the box."""
        away = np.clip(self._top, low, high) - self._top
        return float(np.logaddexp.reduce(self._height - (self._narrowness * away**2).sum(axis=1)))

    @cached_property
    def compiled(self) -> CompiledTarget:
        """The target as the kernels take it."""
        number, location, scale = family(self.proposal)
        arrays = self._narrowness, self._top, self._height, np.zeros(0)
        return CompiledTarget(MIXTURE, number, 1.0, 0.0, location, scale, *arrays)


@dataclass(frozen=True)
class Tempered:
    """The target alpha phi, whose ln Z is ln Z_alpha (Thesis section 3.3.2).

    Attributes
    ----------
    base : the target phi.
    alpha : exponent, above 0.
    proposal : q^alpha, normalised.
    shift : logarithm of the integral of q^alpha.
    """

    base: Target
    alpha: float
    proposal: Proposal = field(init=False)
    shift: float = field(init=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise InputError(f"alpha is {self.alpha:g}", "it must be finite and above 0")
        proposal, shift = self.base.proposal.power(self.alpha)
        object.__setattr__(self, "proposal", proposal)
        object.__setattr__(self, "shift", shift)

    def log_ratio(self, x: Floats) -> float:
        return self.alpha * self.base.log_ratio(x) + self.shift

    def bound(self, low: Floats, high: Floats) -> float:
        return self.alpha * self.base.bound(low, high) + self.shift

    @cached_property
    def compiled(self) -> CompiledTarget | None:
        """The target as the kernels take it; None if they do not take the base."""
        base = compiled(self.base)
        if base is None:
            return None
        number, location, scale = family(self.proposal)
        return base._replace(
            family=number,
            power=self.alpha * base.power,
            shift=self.alpha * base.shift + self.shift,
            location=location,
            scale=scale,
        )


def tempered(target: Target, alpha: float) -> Target:
    """The target alpha phi, whose ln Z is the logarithm of the integral of exp(alpha phi).

    Raises
    ------
    InputError : alpha is not above 0.
    """
    return target if alpha == 1 else Tempered(target, alpha)


def compiled(target: Target) -> CompiledTarget | None:
    """The target as the kernels take it; None if it has only Python methods."""
    found: CompiledTarget | None = getattr(target, "compiled", None)
    return found


def log_ratios(target: Target, points: Floats) -> Floats:
    """Compute o at points of shape (K, D); shape (K,)."""
    arrays = compiled(target)
    if arrays is None:
        return np.array([target.log_ratio(x) for x in points])
    from thesis_cli.models import target_kernels

    values = np.empty(len(points))
    target_kernels.log_ratios(arrays, np.ascontiguousarray(points), values)
    return values


def split_dimension(target: Target, low: Floats, high: Floats, halvings: npt.NDArray[np.int64]) -> int:
    """The dimension that makes the bound of a box loosest.

    For each dimension the box is made flat at its two quartiles in turn; the dimension with the
    smallest average bound is chosen. (A maximum may lie at the median, and two halves would both
    contain it.) Among equal dimensions the one that was halved least is chosen.

    Parameters
    ----------
    low, high : corners of the box, shape (D,).
    halvings : how often each dimension was halved, shape (D,).
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

    NumPy's legacy generator gives 500 features, then 500 noises. The responses of the first half
    are those of w* = 2 with noise 0.1, negated; the second half repeats the features with responses
    0. At seed 0, ln Z = -532.4153167492; the published -532.4139431339 is of quadrature that let
    1e-231 pass for 0.
    """
    legacy = np.random.RandomState(seed)
    x, noise = legacy.randn(500), legacy.randn(500)
    return Regression(np.tile(x, 2), np.concatenate((-(2 * x + 0.1 * noise), np.zeros(500))))


MAX_BYTES = 2**28
"""Size of the largest table that is read."""

_COLUMNS = f"give 1 to {MOST_DIMENSIONS} columns of features and one of responses"


def load_regression(path: str | Path, *, prior_scale: float = 2.0, scale: float = 1.0) -> Regression:
    """Read the data of a regression from a CSV file.

    The first line is a heading if it has a word that is no number. The response is the column `y`,
    or the last one.

    Parameters
    ----------
    path : the file; `-` reads standard input.
    prior_scale, scale : as for `Regression`.

    Raises
    ------
    InputError : the file cannot be read or holds no regression; the message gives file and line.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"the file is larger than {MAX_BYTES >> 20} MiB", "give a table of numbers")
        return _regression(data.decode("utf-8-sig"), prior_scale, scale)
    except OSError as error:
        problem = f"cannot be read ({(error.strerror or str(error)).lower()})"
        raise InputError(problem, "give a CSV file", source=name) from error
    except UnicodeDecodeError as error:
        raise InputError("not text", "a CSV file is text", source=name) from error
    except InputError as error:
        raise InputError(error.problem, error.remedy, source=name, line=error.line) from None


def _regression(text: str, prior_scale: float, scale: float) -> Regression:
    try:
        reader = csv.reader(io.StringIO(text, newline=""))
        rows = [(reader.line_num, [word.strip() for word in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise InputError(f"not a CSV file ({error})", _COLUMNS) from None
    heading = rows.pop(0)[1] if rows and not all(map(is_number, rows[0][1])) else None
    if heading and len(set(heading)) < len(heading):
        twice = next(word for word in heading if heading.count(word) > 1)
        raise InputError(f"two columns are named '{twice[:40]}'", "columns must have different names", line=1)
    if not rows:
        raise InputError("has no rows", "give one line of numbers for each point")
    columns = len(heading or rows[0][1])
    if not 2 <= columns <= MOST_DIMENSIONS + 1:
        raise InputError(f"has {columns} {'column' if columns == 1 else 'columns'}", _COLUMNS, line=1)
    for line, row in rows:
        if len(row) != columns:
            raise InputError(f"has {len(row)} values", f"it must have {columns}, as the first line", line=line)
        for word in row:
            if not is_number(word) or not math.isfinite(float(word)):
                raise InputError(f"'{word[:40]}' is no finite number", "drop the row, or fill it in", line=line)
    values = np.array([[float(word) for word in row] for _, row in rows])
    at = heading.index("y") if heading and "y" in heading else columns - 1
    names = [name for k, name in enumerate(heading) if k != at] if heading else None
    return Regression(np.delete(values, at, axis=1), values[:, at], prior_scale=prior_scale, scale=scale, names=names)
