"""Algorithm 2 as one call (Thesis section 4.4), private through the `Noise` that it is given.

`thesis_cli.privacy.release.release` makes the same release in two stages that share a record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Kernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, Noise
from thesis_cli.privacy.mechanisms.units import counted_blocks
from thesis_cli.privacy.release.subspace import Constraint, Subspace, reweighted


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
    kernel: Kernel,
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
