"""Noise of a seeded generator, and Algorithm 2 as one call (Thesis section 4.4).

Seeded noise protects nothing: its mechanism is named NOT PRIVATE.

One release has a kernel that is Lipschitz and no smoother (Thesis Propositions 10, 11 and Lemma 5):
k(x, y) = exp(-|x - y|), and X takes few values. A value at distance r from the nearest synthetic
point is then missed by about sqrt(2 r), the order that the proof of Lemma 5 allows. (A Gaussian
kernel is smooth: its projection error is far below the noise.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import (
    Adding,
    Budget,
    Calibration,
    Noise,
    OpenDPGaussian,
    analytic_scale,
    check_gaussian,
    check_sizes,
    classical_scale,
)
from thesis_cli.privacy.mechanisms.stages import counted_blocks
from thesis_cli.privacy.release.subspace import Constraint, Subspace, reweighted

Formula = Literal["opendp", "analytic", "classical"]

NOT_PRIVATE = "NOT PRIVATE"


@dataclass(frozen=True)
class SeededGaussian(Adding):
    """Gaussian noise of a seeded generator, for experiments: NOT PRIVATE.

    Attributes
    ----------
    formula : scale of the noise: "opendp" as `OpenDPGaussian`, "analytic" or "classical" (see
        `Calibration`).
    published : whether the classical formula is allowed at epsilon >= 1, where it is not proven, as
        in the published runs.

    Raises
    ------
    InputError : the formula is classical at epsilon >= 1, and not `published`.
    """

    rng: np.random.Generator | np.random.RandomState
    formula: Formula = "opendp"
    published: bool = False

    def calibrate(self, size: int, l2_sensitivity: float, budget: Budget) -> Calibration:
        """See `Noise.calibrate`."""
        check_sizes(size, l2_sensitivity)
        check_gaussian(budget)
        if self.formula == "opendp":
            scale = OpenDPGaussian().calibrate(size, l2_sensitivity, budget).scale
        elif self.formula == "analytic":
            scale = analytic_scale(l2_sensitivity, budget)
        elif self.published or budget.epsilon < 1:
            scale = classical_scale(l2_sensitivity, budget)
        else:
            raise InputError(f"the classical formula has epsilon = {budget.epsilon:g}", "it is proven below 1 only")
        return Calibration(
            mechanism=f"{NOT_PRIVATE}: seeded Gaussian, {self.formula} scale",
            scale=scale,
            granularity=0.0,
            epsilon=budget.epsilon,
            delta=budget.delta,
            sensitivity=l2_sensitivity,
        )

    def _draw(self, vector: Floats, found: Calibration) -> Floats:
        return vector + found.scale * self.rng.standard_normal(vector.size)


@dataclass(frozen=True)
class SubspaceRelease:
    """The element sum_m w_m k(z_m, .).

    Attributes
    ----------
    points, weights : z and w, M of each.
    record : public account of the noise and of the settings.
    """

    points: Rows
    weights: Floats
    record: dict[str, Any]


def subspace_release(
    kernel: RowKernel,
    points: Rows,
    blocks: Iterable[Rows],
    count: int,
    noise: Noise,
    budget: Budget,
    weights: Constraint = "raw",
    most: float = 1.0,
) -> SubspaceRelease:
    """Release a table in the span of public points.

    Parameters
    ----------
    kernel, points : public kernel and M public points.
    blocks, count : private table and its number N of rows, which is public.
    noise, budget : mechanism, which receives the coordinates and their sensitivity.
    weights : "raw" as published, "l1" with sum |w_m| <= `most` (Theorem 13), "simplex" nonnegative
        of sum 1.
    most : C >= 1 of Theorem 13.

    Raises
    ------
    InputError : no points, no rows, another number of rows than `count`, or a C below 1.
    """
    if not 1 <= most < math.inf:
        raise InputError(f"the bound on the sum of absolute weights is {most:g}", "it must be at least 1")
    if count < 1:
        raise InputError(f"the table has {count} rows", "it must have at least one")
    space = Subspace.of(kernel, points)
    noised = noise.add(space.mean(counted_blocks(blocks, count)), space.l2_sensitivity(count), budget)
    record = {"points": len(points), "basis": space.count, "weights": weights, **asdict(noised.calibration)}
    return SubspaceRelease(points, reweighted(kernel, points, space.basis, noised.values, weights, most), record)


class Errors(NamedTuple):
    """RKHS distances of one release, the terms of Thesis eq. C.14.

    Attributes
    ----------
    total : distance of the release to mu_X.
    sample : distance of the table's embedding to mu_X.
    projection : distance of the table's embedding to its projection.
    privacy : distance of the projection to the release.
    """

    total: float
    sample: float
    projection: float
    privacy: float


def kernel_matrix(a: Floats, b: Floats) -> Floats:
    """k(x, y) = exp(-|x - y|) of all pairs of rows, shape (len(a), len(b))."""
    from scipy.spatial.distance import cdist

    return np.asarray(np.exp(-cdist(a, b)))


def rough_release(
    points: Floats, values: Floats, shares: Floats, count: int, budget: Budget, rng: np.random.Generator
) -> Errors:
    """Errors of Algorithm 2 on a fresh table of N = `count` rows, with the noise that it prints.

    Parameters
    ----------
    points : synthetic points z, different from each other, shape (M, D).
    values, shares : values of X, shape (K, D), and their probabilities, shape (K,).
    """
    from scipy.linalg import cholesky, solve_triangular

    sampled = rng.multinomial(count, shares) / count
    factor = cholesky(kernel_matrix(points, points), lower=True)
    across = solve_triangular(factor, kernel_matrix(points, values), lower=True)
    gram = kernel_matrix(values, values)
    missed = gram - across.T @ across  # what the span lacks of k(x, .), x a value of X
    noise = classical_scale(2 / count, budget) * rng.standard_normal(len(points))
    apart = across @ (sampled - shares) + noise

    def norm(weights: Floats, matrix: Floats) -> float:
        return math.sqrt(max(0.0, float(weights @ matrix @ weights)))

    return Errors(
        total=math.hypot(norm(shares, missed), float(np.linalg.norm(apart))),
        sample=norm(sampled - shares, gram),
        projection=norm(sampled, missed),
        privacy=float(np.linalg.norm(noise)),
    )
