r"""A private release, in two stages that share only a record.

`private_record` reads the table and draws the noise; the record that it returns is public.
`synthetic` makes rows from that record alone. It is post-processing: it may be repeated with other
settings, and it costs no privacy.

Five methods: kernels of columns and of pairs of columns, in adaptive stages (`copula`); random
features (Thesis Algorithm 3); the span of public points (Algorithm 2); the exponential mechanism
over all small tables (section 4.3.4); and noisy marginals (`marginals`), for comparison.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, Literal, Protocol, cast

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy import copula, exponential, marginals, mechanism
from thesis_cli.privacy.features import Features, draw_features
from thesis_cli.privacy.kernels import Codes, Rows
from thesis_cli.privacy.mechanism import Budget, Choice, Noise, NoiseName, OpenDPGaussian, OpenDPLaplace
from thesis_cli.privacy.points import Effort, ObjectiveTick, synthesise
from thesis_cli.privacy.release_files import WEIGHT, Release
from thesis_cli.privacy.release_record import (
    Algorithm,
    Favour,
    KernelRecord,
    Method,
    Promise,
    Record,
    SmallTable,
    Staged,
)
from thesis_cli.privacy.schema import Schema
from thesis_cli.privacy.staged import OpenDPStages, Passes, StageNoise, release_stages
from thesis_cli.privacy.subspace import Subspace, counted_blocks, reweighted, uniform_weights

Weights = Literal["uniform", "simplex", "l1", "raw"]
Spend = Callable[[Budget, float | None], None]
"""Called with the budget, and rho if the release has one, just before the noise is drawn."""

SIZES: dict[Method, int] = {"features": 1000, "subspace": 1000, "exponential": 3}
"""Default numbers of random features, of points drawn from the schema, and of rows of a small
table; the other methods have no such number.
"""

NOISES: dict[NoiseName, Callable[[], Noise]] = {"gaussian": OpenDPGaussian, "laplace": OpenDPLaplace}

WEIGHTS: dict[Method, tuple[Weights, ...]] = {
    "copula": ("uniform",),
    "features": ("uniform", "simplex"),
    "marginals": ("uniform",),
    "subspace": ("uniform", "simplex", "l1", "raw"),
    "exponential": ("uniform",),
}

BASES: dict[Method, str] = {
    "copula": "kernels of columns and of pairs of columns",
    "marginals": "counts of columns and of pairs of columns",
    "features": "random features",
    "subspace": "points drawn uniformly over the schema",
    "exponential": "all tables of so many rows",
}
PUBLIC = "rows of a public file, SHA-256 "


class Embedding(Protocol):
    """Public map from a row to a vector; a table goes to the mean of its rows' vectors."""

    @property
    def count(self) -> int:
        """Length of the vector."""

    def embed(self, rows: Rows) -> Floats:
        """Vectors of public rows."""

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Vector of a private table."""

    def l2_sensitivity(self, rows: int) -> float:
        """Sensitivity of the mean of N = `rows` rows, rounding included."""


@dataclass(frozen=True)
class ReleaseRequest:
    """Settings of a release; all of them are public and chosen without the table.

    Attributes
    ----------
    size : number J of random features, of public points if they are drawn from the schema, or of
        rows of a small table (exponential).
    favour : what the rows should keep best (copula).
    algorithm : choice of the marginals (marginals).
    public : public rows whose span the subspace method takes, instead of points drawn from the
        schema.
    entropy : seed of the public random draws (features, points, starts). They are not part of the
        noise: the promise holds for any value, and the record contains it.
    """

    schema: Schema
    budget: Budget
    method: Method = "features"
    noise: NoiseName = "gaussian"
    size: int = SIZES["features"]
    public: Rows | None = None
    entropy: int = field(default_factory=lambda: secrets.randbits(128))
    favour: Favour = "balance"
    algorithm: Algorithm = "mst"

    def embedding(self) -> Embedding:
        """Public embedding of the methods that add noise to a vector."""
        if self.method == "features":
            return _features(self.schema, self.size, self.entropy)
        points = uniform_rows(self.schema, self.size, self.entropy) if self.public is None else self.public
        return Subspace.of(self.schema.kernel(), points)


def private_record(
    blocks: Iterable[Rows],
    count: int,
    request: ReleaseRequest,
    spend: Spend,
    *,
    noise: Noise | StageNoise | None = None,
    choose: exponential.Choose | marginals.Measure | None = None,
    jobs: int = 1,
    progress: Tick | None = None,
) -> Record:
    """Embed the table and make the embedding private.

    Parameters
    ----------
    blocks, count : private table, and its number N of rows, which is public. A release by copula
        reads it once a stage if it is large (`staged.Passes`).
    spend : called after the table has been read and before noise is drawn; if it raises, nothing is
        released.
    noise, choose : source of the noise (a `StageNoise` for copula), or of the exponential
        mechanism's choice or the noisy marginals; OpenDP by default.
    jobs : threads.
    progress : called with the number of rows just done.

    Returns
    -------
    record : public; only its vector (or rows), the output of the mechanism, depends on the table.

    Raises
    ------
    InputError : no rows, another number of rows than `count`, or a budget or a size that does not
        fit.
    """
    if count < 1:
        raise InputError(f"the table has {count} rows", "it must have at least one")
    kernel, versions = request.schema.kernel(), _versions(request.method)
    size, basis = request.size, BASES[request.method]
    if request.public is not None:
        size, basis = len(request.public), f"{PUBLIC}{_digest(request.public)}"
    made: dict[str, Any]
    if request.method == "copula":
        made = _copula(blocks, count, request, spend, cast("StageNoise | None", noise), jobs, progress)
        size = sum(len(stage.vector) for stage in made["stages"])
    elif request.method == "marginals":
        measure = cast("marginals.Measure | None", choose)
        counted, budget = counted_blocks(blocks, count), request.budget
        how, counts = marginals.private_marginals(
            counted, request.schema, budget, request.algorithm, spend, measure, progress
        )
        size, made = sum(len(m.counts) for m in counts), {"mechanism": how, "marginals": counts}
    elif request.method == "exponential":
        chosen = cast(exponential.Choose, choose or mechanism.choose)
        made = _small_table(counted_blocks(blocks, count), count, request, spend, chosen)
    else:
        source = cast(Noise, noise or NOISES[request.noise]())
        made = _embedded(counted_blocks(blocks, count), count, request, spend, source, jobs, progress)
    return Record(
        promise=_promise(request, count),
        method=request.method,
        size=size,
        basis=basis,
        entropy=request.entropy,
        kernel=KernelRecord(tuple(kernel.gamma.tolist()), tuple(kernel.rho.tolist())),
        schema_text=request.schema.to_toml(),
        public=(
            "the schema: columns, types, bounds, levels, kernel",
            "the number of rows of the table",
            "the budget, the method and its size, the entropy of public random draws, public rows if there are any",
        ),
        versions=versions,
        **made,
    )


def synthetic(
    record: Record,
    count: int = 1000,
    weights: Weights = "uniform",
    *,
    most: float = 1.0,
    public: Rows | None = None,
    time_limit: float | None = None,
    jobs: int = 1,
    progress: ObjectiveTick | None = None,
) -> Release:
    """Make rows from a record. This is post-processing, without the table.

    Parameters
    ----------
    count : number of rows. A subspace release with weights ignores it: it has one row for each
        public point.
    weights : "uniform" for plain rows, "simplex" for probabilities; for a subspace release also
        "l1" with sum |w| <= `most` (Theorem 13), or "raw" as published.
    public : public rows of a subspace release that was made with some.
    time_limit : seconds, after which the best rows so far are taken.
    progress : called with the squared distance to the private embedding.

    Raises
    ------
    InputError : weights that the method does not have; other public rows than the release was made
        with.
    """
    schema = record.schema
    check_rows(schema, record.method, weights, most, time_limit)
    if record.rows is not None:
        points = record.rows.rows()
        return Release(schema, points, uniform_weights(points), record)
    rng = _generator(record.entropy, "rows")
    if record.stages is not None or record.marginals is not None:
        points = _copula_rows(record, count, rng, jobs) if record.stages else _marginal_rows(record, count, rng)
        return Release(schema, points, uniform_weights(points), record)
    values, noise = record.noisy_vector
    vector = np.array(values)
    if record.method == "subspace":
        space = Subspace.of(schema.kernel(), _public_points(record, public))
        constraint = "simplex" if weights == "uniform" else weights
        found = reweighted(space.kernel, space.points, space.basis, vector, constraint, most)
        if weights == "uniform":
            points = space.points[_systematic(found, count, rng)]
            return Release(schema, points, uniform_weights(points), record)
        return Release(schema, space.points, found, record)
    made = synthesise(
        vector,
        release_features(record),
        np.tile([0.0, 1.0], (schema.reals, 1)),
        count,
        rng,
        noise=noise.deviation,
        uniform=weights == "uniform",
        effort=Effort(time_limit, jobs, progress),
    )
    return Release(schema, made.rows, made.weights, replace(record, objective=made.objective))


def check_rows(
    schema: Schema, method: Method, weights: Weights, most: float = 1.0, time_limit: float | None = None
) -> None:
    """Refuse what `synthetic` would refuse (`InputError`), before a budget is spent."""
    if weights not in WEIGHTS[method]:
        known = " or ".join(WEIGHTS[method])
        raise InputError(f"a release by {method} has no {weights} weights", f"they must be {known}")
    if weights != "uniform" and WEIGHT in schema.names:
        raise InputError(f"the schema has a column {WEIGHT!r}", "release rows without weights, or rename it")
    if not 1 <= most < math.inf:
        raise InputError(f"the bound on the sum of absolute weights is {most:g}", "it must be at least 1")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit is {time_limit:g} s", "it must be above 0")


def _copula_rows(record: Record, count: int, rng: np.random.Generator, jobs: int) -> Rows:
    assert isinstance(record.mechanism, Staged)
    assert record.stages is not None
    plan = copula.Plan(record.schema, record.promise.rows, record.mechanism.total, record.favour or "balance")
    return plan.fit([np.array(stage.vector) for stage in record.stages], count, rng, jobs)


def _marginal_rows(record: Record, count: int, rng: np.random.Generator) -> Rows:
    assert record.marginals is not None
    schema = record.schema
    model = marginals.network(marginals.sizes_of(schema), record.marginals, record.promise.rows)
    return marginals.placed_rows(schema, marginals.draw(model, count, rng), rng)


def release_features(record: Record) -> Features:
    """Random features of a release by features, drawn from its public entropy."""
    return _features(record.schema, record.size, record.entropy)


def _features(schema: Schema, size: int, entropy: int) -> Features:
    return draw_features(schema.kernel(), schema.cardinalities, size, _generator(entropy, "features"))


def _embedded(
    blocks: Iterable[Rows],
    count: int,
    request: ReleaseRequest,
    spend: Spend,
    noise: Noise,
    jobs: int,
    progress: Tick | None,
) -> dict[str, Any]:
    embedding = request.embedding()
    sensitivity = embedding.l2_sensitivity(count)
    calibration = noise.calibrate(embedding.count, sensitivity, request.budget)
    mean = embedding.mean(blocks, jobs, progress)
    spend(request.budget, calibration.rho)
    noised = noise.add(mean, sensitivity, request.budget)
    return {"mechanism": noised.calibration, "vector": tuple(noised.values.tolist())}


def _copula(
    blocks: Iterable[Rows],
    count: int,
    request: ReleaseRequest,
    spend: Spend,
    noise: StageNoise | None,
    jobs: int,
    progress: Tick | None,
) -> dict[str, Any]:
    schema = request.schema
    table = Passes(blocks, count, schema.reals + len(schema.cardinalities))
    how, stages = release_stages(
        lambda rho: copula.Plan(schema, count, rho, request.favour),
        table,
        count,
        request.budget,
        spend,
        noise or OpenDPStages(),
        lambda plan, rows: plan.mean(rows, jobs, progress),
    )
    return {"mechanism": how, "stages": stages, "favour": request.favour}


def _small_table(
    blocks: Iterable[Rows], count: int, request: ReleaseRequest, spend: Spend, choose: exponential.Choose
) -> dict[str, Any]:
    def chosen(scores: Floats, sensitivity: float, epsilon: float) -> Choice:
        spend(Budget(request.budget.epsilon), None)
        return choose(scores, sensitivity, epsilon)

    domain = exponential.enumerate_domain(request.schema)
    kernel, epsilon = request.schema.kernel(), request.budget.epsilon
    found, how = exponential.small_database(kernel, domain, blocks, count, request.size, epsilon, choose=chosen)
    return {"mechanism": how, "rows": SmallTable.of(found)}


def _versions(method: Method) -> dict[str, str]:
    names = ("thesis-cli", "opendp", "numpy", *(marginals.PACKAGES if method == "marginals" else ()))
    return {name: version(name) for name in names}


def _promise(request: ReleaseRequest, count: int) -> Promise:
    pure = request.method == "exponential" or request.noise == "laplace"
    neighbours = "tables of the same number of rows that differ in one row"
    return Promise(request.budget.epsilon, 0.0 if pure else request.budget.delta, neighbours, count)


def _public_points(record: Record, public: Rows | None) -> Rows:
    if not record.basis.startswith(PUBLIC):
        return uniform_rows(record.schema, record.size, record.entropy)
    if public is None:
        raise InputError("the release is in the span of public rows", "--public must name their file")
    if record.basis != PUBLIC + _digest(public):
        raise InputError("these are not the public rows of the release", "--public must name their file")
    return public


def uniform_rows(schema: Schema, count: int, entropy: int) -> Rows:
    """Public points, drawn uniformly from the schema's box."""
    rng = _generator(entropy, "points")
    codes = rng.integers(0, schema.cardinalities, (count, len(schema.cardinalities)))
    return Rows(rng.random((count, schema.reals)), codes)


def _digest(rows: Rows) -> str:
    return hashlib.sha256(rows.reals.tobytes() + rows.codes.tobytes()).hexdigest()


def _generator(entropy: int, use: str) -> np.random.Generator:
    return np.random.default_rng([entropy, *use.encode()])


def _systematic(weights: Floats, count: int, rng: np.random.Generator) -> Codes:
    """Indices, `count` of them; each occurs as often as its share of `count`, up to rounding."""
    ends = np.cumsum(weights) / weights.sum()
    return np.minimum(np.searchsorted(ends, (np.arange(count) + rng.random()) / count), len(weights) - 1)
