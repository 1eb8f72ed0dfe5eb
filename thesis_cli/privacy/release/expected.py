"""Noise and errors of a release before it is made: from its settings and the number of rows alone.

No table is read and nothing is spent. The errors are those of the best linear estimate of a share
or a mean from the noisy vector. Its weights a minimise E (f(x) - a . phi(x))^2 + s^2 |a|^2 over rows
x drawn uniformly from the schema, where s is the deviation of the noise: the second term is the
noise, the first what the embedding cannot resolve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.copula import copula
from thesis_cli.privacy.copula.cells import cells_of
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.units import Totals
from thesis_cli.privacy.release import exponential, marginals
from thesis_cli.privacy.release.release import DIAMETERS, NOISES, ReleaseRequest, uniform_rows
from thesis_cli.privacy.release.staged import OpenDPStages, StagePlan, total_rho
from thesis_cli.privacy.release.unit_stages import effective
from thesis_cli.privacy.tables.schema import Schema

PARTS = 4
"""Equal parts of the range of a number; the share of the rows in each is estimated."""
SAMPLE = 500


@dataclass(frozen=True)
class ExpectedStage:
    """Noise of one stage of a release.

    Attributes
    ----------
    name : what the stage releases.
    size : number of coordinates of its vector.
    sensitivity : sensitivity of the vector, in L2 unless the noise is Laplace.
    scale : scale of the noise on each coordinate.
    noise : root mean square norm of the noise.
    bound : bound on the norm of the vector without noise, or on its distances; a `noise` near it
        drowns the signal.
    """

    name: str
    size: int
    sensitivity: float
    scale: float
    noise: float
    bound: float = 1.0

    @property
    def drowned(self) -> bool:
        """Whether the noise is as large as the signal, so that rows would show little of the
        table.
        """
        return self.noise >= self.bound


Errors = Callable[[], tuple[float, float | None]]
"""Computes errors of shares and of means."""


@dataclass(frozen=True)
class Expected:
    """Noise of each stage, and root mean square errors over the columns.

    Attributes
    ----------
    share : error of the share of rows with one level, or in one of `PARTS` parts of a range.
    mean : error of the mean of a number, as a share of its range; None without numbers.
    """

    stages: tuple[ExpectedStage, ...]
    share: float
    mean: float | None


def expected(request: ReleaseRequest, count: int) -> Expected:
    """What a release of N = `count` rows would be like; they are the rows that count.

    Raises
    ------
    InputError : a budget or a size that does not fit the method, as in `private_record`.
    """
    stages, errors = _noise(request, count)
    return Expected(stages, *errors())


def expected_stages(request: ReleaseRequest, count: int) -> tuple[ExpectedStage, ...]:
    """Noise of each stage, as in `expected`, in less time."""
    return _noise(request, count)[0]


def _noise(request: ReleaseRequest, count: int) -> tuple[tuple[ExpectedStage, ...], Errors]:
    if request.unit.secret:
        count = _effective(request, count)
    if request.method == "copula":
        return _copula(request, count)
    if request.method == "marginals":
        return _marginals(request, count)
    if request.method == "exponential":
        domain = exponential.enumerate_domain(request.schema)
        candidates = exponential.databases(len(domain), request.size)
        vectors = exponential.images(request.schema.kernel(), domain)
        sensitivity = exponential.score_sensitivity(vectors, count)
        scale = 2 * sensitivity / request.budget.epsilon
        # The chosen table is at most this much farther away than the nearest one, on average.
        noise = scale * math.log(candidates)
        stage = ExpectedStage("choice", candidates, sensitivity, scale, noise)
        products = request.schema.kernel().matrix(domain, domain)
        return (stage,), lambda: _errors(request.schema, domain, products, noise)
    embedding = request.embedding()
    found = NOISES[request.noise]().calibrate(embedding.count, embedding.l2_sensitivity(count), request.budget)
    noise = found.deviation * math.sqrt(embedding.count)
    stage = ExpectedStage("embedding", embedding.count, found.sensitivity, found.scale, noise)

    def errors() -> tuple[float, float | None]:
        rows = _sample(request)
        vectors = embedding.embed(rows)
        return _errors(request.schema, rows, vectors @ vectors.T, found.deviation)

    return (stage,), errors


def _effective(request: ReleaseRequest, count: int) -> int:
    """Number of rows that would have as much noise if it were public, each of another person."""
    if request.method == "copula":
        return effective(count, request.unit)
    return Totals(request.embedding(), request.unit, DIAMETERS[request.method]).effective(count)


def _sample(request: ReleaseRequest) -> Rows:
    """Public rows as they are read from a table: missing values have no number."""
    schema = request.schema
    return schema.encode(schema.decode(uniform_rows(schema, SAMPLE, request.entropy)))


def _copula(request: ReleaseRequest, count: int) -> tuple[tuple[ExpectedStage, ...], Errors]:
    """Later stages depend on the noisy vectors before them: those of uniform rows stand for them.

    Shares and means are estimated from the first stage, which counts the columns.
    """
    rho, rows = total_rho(request.budget), _sample(request)
    plan, vectors = copula.Plan(request.schema, count, rho, request.favour), list[Floats]()
    stages, maps = list[ExpectedStage](), list[StagePlan]()
    while (stage := plan.stage(tuple(vectors))) is not None:
        sensitivity = stage.l2_sensitivity(count)
        scale, _, _ = OpenDPStages().calibrate(stage.count, sensitivity, rho * stage.share)
        noise = scale * math.sqrt(stage.count)
        stages.append(ExpectedStage(stage.name, stage.count, sensitivity, scale, noise, sensitivity * count))
        maps.append(stage)
        vectors.append(stage.mean([rows]))

    def errors() -> tuple[float, float | None]:
        each = np.stack([maps[0].mean([rows[i : i + 1]]) for i in range(SAMPLE)])
        return _errors(request.schema, rows, each @ each.T, stages[0].scale)

    return tuple(stages), errors


def _marginals(request: ReleaseRequest, count: int) -> tuple[tuple[ExpectedStage, ...], Errors]:
    """Half of rho is for the counts of single columns, and these are known; which pairs are counted
    is not.
    """
    rho = total_rho(request.budget)
    sizes = marginals.sizes_of(request.schema).values()
    sensitivity = marginals.REPLACED / count
    scale = sensitivity * math.sqrt(len(sizes) / rho)
    noise, bound = scale * math.sqrt(sum(sizes)), math.sqrt(len(sizes))
    stage = ExpectedStage("columns", sum(sizes), sensitivity, scale, noise, bound)

    def errors() -> tuple[float, float | None]:
        rows = _sample(request)
        cells = cells_of(marginals.marginal_cells(request.schema), rows)
        products = (cells[:, None] == cells[None]).sum(2).astype(np.float64)
        return _errors(request.schema, rows, products, scale)

    return (stage,), errors


def _errors(schema: Schema, rows: Rows, products: Floats, deviation: float) -> tuple[float, float | None]:
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
