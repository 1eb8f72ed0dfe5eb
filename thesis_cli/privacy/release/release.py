r"""A private release, in two stages that share only a record.

`private_record` reads the table and draws the noise; the record that it returns is public.
`release_rows.synthetic` makes rows from that record alone.

Five methods: kernels of columns and of pairs of columns, in adaptive stages (`copula`); random
features (Thesis Algorithm 3); the span of public points (Algorithm 2); the exponential mechanism
over all small tables (section 4.3.4); and noisy marginals (`marginals`), for comparison.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Protocol, cast

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.copula import copula
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms import mechanism
from thesis_cli.privacy.mechanisms.mechanism import Budget, Choice, Noise, NoiseName, OpenDPGaussian, OpenDPLaplace
from thesis_cli.privacy.mechanisms.units import LARGEST, ROWS, Totals, Unit
from thesis_cli.privacy.release import exponential, marginals
from thesis_cli.privacy.release.record import (
    Algorithm,
    Favour,
    KernelRecord,
    Method,
    Promise,
    Record,
    SmallTable,
)
from thesis_cli.privacy.release.rows import (
    PUBLIC,
    Weights,
    check_rows,
    default_rows,
    digest,
    drawn_features,
    release_features,
    synthetic,
    uniform_rows,
)
from thesis_cli.privacy.release.staged import OpenDPStages, Passes, StageNoise, Stages, release_stages
from thesis_cli.privacy.release.subspace import Subspace, counted_blocks
from thesis_cli.privacy.release.unit_stages import SecretStages, mean_stages
from thesis_cli.privacy.tables.schema import Schema

__all__ = [
    "ReleaseRequest",
    "Weights",
    "check_rows",
    "default_rows",
    "private_record",
    "release_features",
    "synthetic",
    "uniform_rows",
]

Spend = Callable[[Budget, float | None], None]
"""Called with the budget, and rho if the release has one, just before the noise is drawn."""

SIZES: dict[Method, int] = {"features": 1000, "subspace": 1000, "exponential": 3}
"""Default numbers of random features, of points drawn from the schema, and of rows of a small
table; the other methods have no such number.
"""

NOISES: dict[NoiseName, Callable[[], Noise]] = {"gaussian": OpenDPGaussian, "laplace": OpenDPLaplace}

BASES: dict[Method, str] = {
    "copula": "kernels of columns and of pairs of columns",
    "marginals": "counts of columns and of pairs of columns",
    "features": "random features",
    "subspace": "points drawn uniformly over the schema",
    "exponential": "all tables of so many rows",
}
DIAMETERS: Mapping[Method, float] = {"features": 2.0, "subspace": math.sqrt(2)}
"""Largest distance of the vectors of two rows; no kernel value of a subspace is negative."""


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
    unit : what neighbouring tables differ in.
    entropy : seed of the public random draws (features, points, starts). They are not part of the
        noise: the promise holds for any value, and the record contains it.
    """

    schema: Schema
    budget: Budget
    method: Method = "features"
    noise: NoiseName = "gaussian"
    size: int = SIZES["features"]
    public: Rows | None = None
    unit: Unit = ROWS
    entropy: int = field(default_factory=lambda: secrets.randbits(128))
    favour: Favour = "balance"
    algorithm: Algorithm = "mst"

    @property
    def passes(self) -> int:
        """Number of passes over the rows."""
        return copula.Plan(self.schema, 1, 1.0, self.favour).stages if self.method == "copula" else 1

    def embedding(self) -> Embedding:
        """Public embedding of the methods that add noise to a vector."""
        if self.method == "features":
            return drawn_features(self.schema, self.size, self.entropy)
        points = uniform_rows(self.schema, self.size, self.entropy) if self.public is None else self.public
        return Subspace.of(self.schema.kernel(), points)


def private_record(
    blocks: Iterable[Rows],
    count: int | None,
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
    blocks, count : private table, and its number N of rows if the unit makes it public. Of a table
        with several rows of a person, the rows that count (`persons.bounded_rows`). A release by
        copula reads a large table once a stage (`staged.Passes`).
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
    if request.unit.secret != (count is None):
        raise ValueError("the number of rows must be None if the unit keeps it secret, and only then")
    if count is not None and count < 1:
        raise InputError(f"the table has {count} rows", "it must have at least one")
    if count is None and request.method in ("marginals", "exponential"):
        problem = f"a release by {request.method} has a public number of rows, each of another person"
        raise InputError(problem, "release by copula or features")
    kernel = request.schema.kernel()
    size, basis = request.size, BASES[request.method]
    if request.public is not None:
        size, basis = len(request.public), f"{PUBLIC}{digest(request.public)}"
    made: dict[str, Any]
    if request.method == "copula":
        made = _copula(blocks, count, request, spend, cast("StageNoise | None", noise), jobs, progress)
        size = sum(len(stage.vector) for stage in made["stages"])
    elif request.method == "marginals":
        assert count is not None
        measure = cast("marginals.Measure | None", choose)
        counted, budget = counted_blocks(blocks, count), request.budget
        how, counts = marginals.private_marginals(
            counted, request.schema, budget, request.algorithm, spend, measure, progress
        )
        size, made = sum(len(m.counts) for m in counts), {"mechanism": how, "marginals": counts}
    elif request.method == "exponential":
        assert count is not None
        chosen = cast(exponential.Choose, choose or mechanism.choose)
        made = _small_table(counted_blocks(blocks, count), count, request, spend, chosen)
    else:
        source = cast(Noise, noise or NOISES[request.noise]())
        made = _embedded(blocks, count, request, spend, source, jobs, progress)
    return Record(
        promise=_promise(request, count),
        method=request.method,
        size=size,
        basis=basis,
        entropy=request.entropy,
        kernel=KernelRecord(tuple(kernel.gamma.tolist()), tuple(kernel.rho.tolist())),
        schema_text=request.schema.to_toml(),
        public=(
            "the schema: columns, types, bounds, levels, kernel" + ", rules" * bool(request.schema.rules),
            f"the neighbours: {request.unit.text}" if count is None else "the number of rows of the table",
            "the budget, the method and its size, the entropy of public random draws, public rows if there are any",
        ),
        versions=_versions(request.method),
        **made,
    )


def _embedded(
    blocks: Iterable[Rows],
    count: int | None,
    request: ReleaseRequest,
    spend: Spend,
    noise: Noise,
    jobs: int,
    progress: Tick | None,
) -> dict[str, Any]:
    """Noisy mean vector; a noisy number of rows beside it, if `count` does not give the number."""
    embedding = request.embedding()
    totals = Totals(embedding, request.unit, DIAMETERS[request.method])
    if count is None:
        size, sensitivity, read = totals.count, totals.l2_sensitivity(), totals.vector
    else:
        size, sensitivity, read = embedding.count, embedding.l2_sensitivity(count), embedding.mean
        blocks = counted_blocks(blocks, count)
    calibration = noise.calibrate(size, sensitivity, request.budget)
    vector = read(blocks, jobs, progress)
    spend(request.budget, calibration.rho)
    noised, counted = noise.add(vector, sensitivity, request.budget), None
    if count is None:
        noised, counted = totals.means(noised)
    return {"mechanism": noised.calibration, "vector": tuple(noised.values.tolist()), "counted": counted}


def _copula(
    blocks: Iterable[Rows],
    count: int | None,
    request: ReleaseRequest,
    spend: Spend,
    noise: StageNoise | None,
    jobs: int,
    progress: Tick | None,
) -> dict[str, Any]:
    schema = request.schema

    def plan(rows: int, rho: float) -> copula.Plan:
        return copula.Plan(schema, rows, rho, request.favour)

    plans: Callable[[float], Stages]
    table: Iterable[Rows]
    if count is None:
        plans, table = partial(SecretStages, plan, request.unit), list(blocks)
    else:
        plans, table = partial(plan, count), Passes(blocks, count, schema.reals + len(schema.cardinalities))
    how, stages = release_stages(
        plans,
        table,
        count or LARGEST,
        request.budget,
        spend,
        noise or OpenDPStages(),
        lambda plan, rows: plan.mean(rows, jobs, progress),
    )
    counted = None
    if count is None:
        counted, stages = mean_stages(stages, request.unit)
    return {"mechanism": how, "stages": stages, "favour": request.favour, "counted": counted}


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


@cache
def _versions(method: Method) -> dict[str, str]:
    """Versions of this program and of its libraries."""
    found = {name: version(name) for name in ("thesis-cli", "opendp", "numpy")}
    return {**found, **(marginals.versions() if method == "marginals" else {})}


def _promise(request: ReleaseRequest, count: int | None) -> Promise:
    pure = request.method == "exponential" or request.noise == "laplace"
    neighbours = request.unit.text
    if request.public is not None:
        neighbours += "; public rows are published as they are, without a promise"
    return Promise(request.budget.epsilon, 0.0 if pure else request.budget.delta, neighbours, count)
