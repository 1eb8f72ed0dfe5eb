"""A private release: its plan, what a method implements, the two steps, and what is expected of them.

`private_record` reads the table and draws the noise; the record that it returns is public.
`synthetic` makes rows from that record alone: the two steps share only a record. `METHODS` are the
methods, and the file of each defines `METHOD`, an `Implementation`.

`expected` tells noise and errors from the plan and the number of rows alone; no table is read and nothing
is spent. The errors are those of the best linear estimate of a share or a mean from the noisy vector. Its
weights a minimise E (f(x) - a . phi(x))^2 + s^2 |a|^2 over rows x drawn uniformly from the schema, where s
is the deviation of the noise: the second term is the noise, the first what the embedding cannot resolve.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, presentation
from thesis_cli.base.modules import named
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import NOISES, Budget, Calibration, NoiseName, versions
from thesis_cli.privacy.mechanisms.stages import ROWS, Counted, Unit
from thesis_cli.privacy.release.methods import METHODS, DPMethod, listed, methods_where
from thesis_cli.privacy.release.record import WEIGHT, KernelRecord, PrivacyGuarantee, Proof, Record, Release
from thesis_cli.privacy.tables.schema import Schema, drawn, obey

if TYPE_CHECKING:
    from thesis_cli.privacy.embedding.features import Features
    from thesis_cli.privacy.embedding.points import ObjectiveTick

Favour = Literal["relations", "balance", "marginals", "correlations", "rows"]
"""Statistics that the rows of a release should keep best."""
Algorithm = Literal["mst", "aim"]
"""Choice of the marginals that a release by marginals measures."""
Weights = Literal["uniform", "simplex", "l1", "raw"]
Spend = Callable[[Budget, float | None], None]
"""Called with the budget, and rho if the release has one, just before the noise is drawn."""

PUBLIC = "rows of a public file, SHA-256 "


@dataclass(frozen=True)
class ReleasePlan:
    """Settings of a release; all of them are public and chosen without the table.

    Attributes
    ----------
    method : name of a row of `METHODS`.
    size : number J of random features, of public points if they are drawn from the schema, or of
        rows of a small table (exponential).
    public : public rows whose span the subspace method takes, instead of points drawn from the
        schema.
    unit : difference between neighbouring tables.
    entropy : seed of the public random draws (features, points, starts). They are not part of the
        noise: the privacy guarantee holds for any value, and the record contains it.
    favour : statistics that the rows should keep best (copula).
    algorithm : choice of the marginals (marginals).
    known : distributions of the last columns, if these are public, as in `CopulaStages` (copula).
    pair : neighbouring pairs of linked tables, in words; empty for a single table.
    """

    schema: Schema
    budget: Budget
    method: str = "features"
    noise: NoiseName = "gaussian"
    size: int = METHODS["features"].size
    public: Rows | None = None
    unit: Unit = ROWS
    entropy: int = field(default_factory=lambda: secrets.randbits(128))
    favour: Favour = "relations"
    algorithm: Algorithm = "mst"
    known: tuple[tuple[float, ...], ...] = ()
    pair: str = ""

    @property
    def neighbours(self) -> str:
        """Pairs of tables that are neighbours, in words."""
        return self.pair or self.unit.text

    @property
    def row(self) -> DPMethod:
        """Row of the method."""
        return METHODS[self.method]

    @property
    def basis(self) -> str:
        """The map from a table to the vector or choice, in words."""
        return self.row.basis if self.public is None else f"{PUBLIC}{digest(self.public)}"


def check_rows(
    schema: Schema, method: str, weights: Weights, weight_bound: float = 1.0, time_limit: float | None = None
) -> None:
    """Refuse what `synthetic` would refuse (`InputError`), before a budget is spent; parameters as there."""
    if weights not in METHODS[method].weights:
        known = " or ".join(METHODS[method].weights)
        raise InputError(f"a release by {method} has no {weights} weights", f"they must be {known}")
    if weights != "uniform" and WEIGHT in schema.names:
        raise InputError(f"the schema has a column {WEIGHT!r}", "release rows without weights, or rename it")
    if not 1 <= weight_bound < math.inf:
        raise InputError(f"the bound on the sum of absolute weights is {weight_bound:g}", "it must be at least 1")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit is {time_limit:g} s", "it must be above 0")
    if schema.rules and weights in ("l1", "raw"):
        raise InputError(f"rows with {weights} weights obey no rules", "give other --weights, or leave the rules out")
    if schema.rules:
        drawn(schema)


def uniform_rows(schema: Schema, count: int, entropy: int) -> Rows:
    """Public points, drawn uniformly from the schema's box."""
    rng = generator(entropy, "points")
    codes = rng.integers(0, schema.cardinalities, (count, len(schema.cardinalities)))
    return Rows(rng.random((count, schema.reals)), codes)


def digest(rows: Rows) -> str:
    """SHA-256 of encoded rows."""
    return hashlib.sha256(rows.reals.tobytes() + rows.codes.tobytes()).hexdigest()


def generator(entropy: int, use: str) -> np.random.Generator:
    """Source of public random draws, for one use."""
    return np.random.default_rng([entropy, *use.encode()])


@dataclass(frozen=True)
class PrivateRows:
    """The rows that count of a private table, and what a method is given to read and protect them.

    Attributes
    ----------
    blocks, count : rows, and their number N if the unit makes it public. A method of several passes
        reads a large table once a stage (`stages.Passes`).
    spend : called after the table has been read and before noise is drawn; if it raises, nothing is
        released.
    noise, choose : source of the noise, or of the choice or the noisy marginals; OpenDP if None.
    jobs : threads.
    progress : called with the number of rows just done.
    """

    blocks: Iterable[Rows]
    count: int | None
    spend: Spend
    noise: object = None
    choose: object = None
    jobs: int = 1
    progress: Tick | None = None

    @property
    def public_count(self) -> int:
        """The number of rows of a method for which it is always public."""
        assert self.count is not None
        return self.count


@dataclass(frozen=True)
class Released:
    """Output of a mechanism, ready to be published.

    Attributes
    ----------
    mechanism, output, counted : as in `Record`.
    size : number of coordinates, points or rows.
    """

    mechanism: Proof
    output: object
    size: int
    counted: Counted | None = None


@dataclass(frozen=True)
class NoisyMean:
    """A vector of a record: the mean over the rows of a public map, with noise.

    Attributes
    ----------
    mean : the mean over the rows of some blocks, without noise.
    vector, scale : noisy mean, and scale of the noise on each coordinate.
    """

    mean: Callable[[Iterable[Rows]], Floats]
    vector: Floats
    scale: float


@dataclass(frozen=True)
class RowSettings:
    """Settings of synthetic rows, as `synthetic` takes them."""

    count: int
    weights: Weights
    weight_bound: float
    public: Rows | None = None
    time_limit: float | None = None
    jobs: int = 1
    progress: ObjectiveTick | None = None


@dataclass(frozen=True)
class ExpectedStage:
    """Noise of one stage of a release.

    Attributes
    ----------
    name : the vector that the stage releases.
    size : number of coordinates of its vector.
    sensitivity : sensitivity of the vector, in L2 unless the noise is Laplace.
    scale : scale of the noise on each coordinate.
    noise : root mean square norm of the noise.
    bound : bound on the norm of the vector without noise, or on its distances; a vector whose
        `noise` is near it is noise-dominated.
    """

    name: str
    size: int
    sensitivity: float
    scale: float
    noise: float
    bound: float = 1.0

    @property
    def noise_dominated(self) -> bool:
        """Whether the noise is as large as the signal, so that rows would show little of the
        table.
        """
        return self.noise >= self.bound


@dataclass(frozen=True)
class Needs:
    """What a release takes beside one pass over the table, roughly.

    Attributes
    ----------
    seconds : seconds of one core, for the statistics and the synthetic rows.
    memory : bytes, of the table that is held and of the synthetic rows.
    passes : further passes over the table.
    """

    seconds: float
    memory: int
    passes: int = 0


VALUE_BYTES = 60
"""Bytes of memory for a value of a synthetic row, at the peak."""

Errors = Callable[[], tuple[float, float | None]]
"""Computes errors of shares and of means."""


class Implementation(ABC):
    """A release method.

    Attributes
    ----------
    proof, output : types of `mechanism` and `output` of its records; dataclasses.
    """

    proof: ClassVar[type]
    output: ClassVar[type]

    @abstractmethod
    def release(self, plan: ReleasePlan, private: PrivateRows) -> Released:
        """Read the table, spend the budget and draw the noise; the only access to private rows.

        Raises
        ------
        InputError : another number of rows than `count`, or a budget or a size that does not fit.
        """

    @abstractmethod
    def expected(self, plan: ReleasePlan, count: int) -> tuple[tuple[ExpectedStage, ...], Errors]:
        """Noise of each stage for N = `count` rows, each of another person, and a function that computes
        errors.
        """

    @abstractmethod
    def rows(self, record: Record, settings: RowSettings, rng: np.random.Generator) -> Release:
        """Rows that may break the rules of the schema: post-processing of the record."""

    @abstractmethod
    def check(self, record: Record) -> None:
        """Refuse (`InputError`) a record from a file whose output does not fit its schema and settings."""

    @presentation
    def noise_lines(self, record: Record) -> list[tuple[str, str]]:
        """Label and scale of each noise, for people."""
        return []

    def needs(self, plan: ReleasePlan, count: int, made: int) -> Needs:
        """Time and memory for N = `count` rows that count and `made` synthetic rows."""
        return Needs(made * plan.size * plan.row.seconds, made * len(plan.schema.columns) * VALUE_BYTES)

    def passes(self, plan: ReleasePlan) -> int:
        """Number of passes over the rows."""
        return 1

    def effective(self, plan: ReleasePlan, count: int) -> int:
        """Number of rows that would have as much noise as `count` rows under the plan's unit, if the
        number were public and each row of another person.
        """
        return count

    def versions(self) -> Mapping[str, str]:
        """Versions of libraries that this method alone uses."""
        return {}

    def means(self, plan: ReleasePlan, record: Record) -> Sequence[NoisyMean]:
        """Noisy means that a record has.

        Raises
        ------
        InputError : the method releases none.
        """
        raise InputError(f"a release by {record.method} has no noisy means", "give another method")

    def features(self, record: Record) -> Features | None:
        """Random features of which the record has the noisy mean, if that is its vector."""
        return None

    def simulated(self, record: Record, rows: Rows, rng: np.random.Generator) -> Record:
        """Record of a release of public rows with the settings of `record`, and seeded noise.

        Raises
        ------
        InputError : the method's releases cannot be simulated.
        """
        known = listed(methods_where(lambda row: row.replicates is not None), " or ")
        raise InputError(f"a release by {record.method} cannot be simulated", f"it must be by {known}")


def implementation_of(method: str) -> Implementation:
    """The implementation of a row of `METHODS`; only its module is imported."""
    found: Implementation = named(METHODS[method].implementation)
    return found


@presentation
def noise_text(scale: float, size: int, sensitivity: float) -> str:
    """Scale and sensitivity of the noise on a vector."""
    return f"scale {scale:.4g} on each of {size} coordinates; sensitivity {sensitivity:.4g}"


def check_size(key: str, count: int, expected: int) -> None:
    """Refuse (`InputError`) a list of a record, under `key`, that has `count` numbers and not those
    `expected`.
    """
    if count != expected:
        raise InputError(f"{key} has {count:,} numbers", f"it must have {expected:,} of them")


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


FITTED, LARGEST = 1000, 100_000
"""Default number of rows of methods that fit each row, and largest default of the others."""


def private_record(
    blocks: Iterable[Rows],
    count: int | None,
    plan: ReleasePlan,
    spend: Spend,
    *,
    noise: object = None,
    choose: object = None,
    jobs: int = 1,
    progress: Tick | None = None,
) -> Record:
    """Embed the table and make the embedding private.

    Parameters
    ----------
    blocks, count : private table, and its number N of rows if the unit makes it public. Of a table
        with several rows of a person, the rows that count (`table.bounded_rows`). A release by
        copula reads a large table once a stage (`stages.Passes`).
    spend : called after the table has been read and before noise is drawn; if it raises, nothing is
        released.
    noise, choose : source of the noise (a `StageNoise` for copula), or of the exponential
        mechanism's choice or the noisy marginals; OpenDP by default.
    jobs : threads.
    progress : called with the number of rows just done.

    Returns
    -------
    record : public; only its output, that of the mechanism, depends on the table.

    Raises
    ------
    InputError : no rows, another number of rows than `count`, or a budget or a size that does not
        fit.
    """
    if plan.unit.secret != (count is None):
        raise ValueError("the number of rows must be None if the unit keeps it secret, and only then")
    if count is not None and count < 1:
        raise InputError(f"the table has {count} rows", "it must have at least one")
    if count is None and not plan.row.secret_rows:
        problem = f"a release by {plan.method} has a public number of rows, each of another person"
        raise InputError(problem, f"release by {listed(methods_where(lambda row: row.secret_rows), ' or ')}")
    method, kernel = implementation_of(plan.method), plan.schema.kernel()
    released = method.release(plan, PrivateRows(blocks, count, spend, noise, choose, jobs, progress))
    return Record(
        promise=_guarantee(plan, count),
        method=plan.method,
        size=released.size,
        basis=plan.basis,
        entropy=plan.entropy,
        kernel=KernelRecord(tuple(kernel.gamma.tolist()), tuple(kernel.rho.tolist())),
        schema_text=plan.schema.to_toml(),
        public=(
            "the schema: columns, types, bounds, levels, kernel" + ", rules" * bool(plan.schema.rules),
            f"the neighbours: {plan.neighbours}" if count is None else "the number of rows of the table",
            "the budget, the method and its size, the entropy of public random draws, public rows if there are any",
        ),
        versions={**versions(), **method.versions()},
        mechanism=released.mechanism,
        counted=released.counted,
        output=released.output,
    )


def _guarantee(plan: ReleasePlan, count: int | None) -> PrivacyGuarantee:
    neighbours = plan.neighbours
    if plan.public is not None:
        neighbours += "; public rows are published as they are, without a promise"
    return PrivacyGuarantee(plan.budget.epsilon, plan.row.delta(plan.noise, plan.budget.delta), neighbours, count)


def default_rows(method: str, count: float) -> int:
    """Number of rows that `synthetic` makes by default: about those of the table, N = `count`, if rows are
    cheap.
    """
    return FITTED if METHODS[method].fits_rows else min(round(count), LARGEST)


def synthetic(
    record: Record,
    count: int | None = None,
    weights: Weights = "uniform",
    *,
    weight_bound: float = 1.0,
    public: Rows | None = None,
    time_limit: float | None = None,
    jobs: int = 1,
    progress: ObjectiveTick | None = None,
) -> Release:
    """Make rows from a record. This is post-processing, without the table: it may be repeated with
    other settings, and costs no privacy.

    Parameters
    ----------
    count : number of rows; `default_rows` by default. A subspace release with weights ignores it:
        it has one row for each public point.
    weights : "uniform" for plain rows, "simplex" for probabilities; for a subspace release also
        "l1" with sum |w| <= `weight_bound` (Theorem 13), or "raw" as published.
    public : public rows of a subspace release that was made with some.
    time_limit : seconds, after which the best rows so far are taken.
    progress : called with the squared distance to the private embedding.

    Raises
    ------
    InputError : weights that the method does not have; other public rows than the release was made
        with.
    """
    check_rows(record.schema, record.method, weights, weight_bound, time_limit)
    count = default_rows(record.method, record.count.rows) if count is None else count
    settings = RowSettings(count, weights, weight_bound, public, time_limit, jobs, progress)
    made = implementation_of(record.method).rows(record, settings, generator(record.entropy, "rows"))
    return replace(made, points=obey(made.schema, made.points))
