"""Noise and errors of a release before it is made: from its settings and the number of rows alone.

No table is read and nothing is spent. The errors are those of the best linear estimate of a share
or a mean from the noisy vector. Its weights a minimise E (f(x) - a . phi(x))^2 + s^2 |a|^2 over rows
x drawn uniformly from the schema, where s is the deviation of the noise: the second term is the
noise, the first what the embedding cannot resolve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import NOISES, Calibration
from thesis_cli.privacy.release.implementation import Errors, ExpectedStage, implementation_of
from thesis_cli.privacy.release.plan import ReleasePlan, uniform_rows
from thesis_cli.privacy.tables.schema import Schema

PARTS = 4
"""Equal parts of the range of a number; the share of the rows in each is estimated."""
SAMPLE = 500


@dataclass(frozen=True)
class ExpectedErrors:
    """Noise of each stage, and root mean square errors over the columns.

    Attributes
    ----------
    share : error of the share of rows with one level, or in one of `PARTS` parts of a range.
    mean : error of the mean of a number, as a share of its range; None without numbers.
    """

    stages: tuple[ExpectedStage, ...]
    share: float
    mean: float | None


def expected(plan: ReleasePlan, count: int) -> ExpectedErrors:
    """Noise and errors of a release of N = `count` rows; they are the rows that count.

    Raises
    ------
    InputError : a budget or a size that does not fit the method, as in `private_record`.
    """
    stages, errors = _noise(plan, count)
    return ExpectedErrors(stages, *errors())


def expected_stages(plan: ReleasePlan, count: int) -> tuple[ExpectedStage, ...]:
    """Noise of each stage, as in `expected`, in less time."""
    return _noise(plan, count)[0]


def _noise(plan: ReleasePlan, count: int) -> tuple[tuple[ExpectedStage, ...], Errors]:
    method = implementation_of(plan.method)
    return method.expected(plan, method.effective(plan, count) if plan.unit.secret else count)


def calibrated(plan: ReleasePlan, size: int, l2_sensitivity: float) -> Calibration:
    """Noise of OpenDP that the plan names, for a vector."""
    return NOISES[plan.noise]().calibrate(size, l2_sensitivity, plan.budget)


def sample(plan: ReleasePlan) -> Rows:
    """Public rows as they are read from a table: missing values have no number."""
    schema = plan.schema
    return schema.encode(schema.decode(uniform_rows(schema, SAMPLE, plan.entropy)))


def linear_errors(schema: Schema, rows: Rows, products: Floats, deviation: float) -> tuple[float, float | None]:
    """Errors by the inner products of the rows' vectors, for noise of some deviation."""
    size = len(rows)
    values, vectors = np.linalg.eigh(products / size)
    squared = min(deviation, 1e100) ** 2  # of noise beyond all signals
    left = squared / (np.maximum(values, 0) + squared)  # of f^2 along each eigenvector

    def error(functions: list[Floats]) -> float:
        parts = vectors.T @ np.stack([f - f.mean() for f in functions], 1)
        return math.sqrt(float((left @ parts**2).mean()) / size)

    numbers = list(rows.reals.T)
    return error(list(_indicators(schema, rows))), error(numbers) if numbers else None


def _indicators(schema: Schema, rows: Rows) -> Iterator[Floats]:
    for codes, levels in zip(rows.codes.T, schema.cardinalities, strict=True):
        yield from ((codes == level).astype(np.float64) for level in range(levels))
    for reals in rows.reals.T:
        parts = np.minimum(reals * PARTS, PARTS - 1).astype(np.int64)
        yield from ((parts == part).astype(np.float64) for part in range(PARTS))
