"""The interface between a release and its method: what the file of a method defines as `METHOD`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, presentation
from thesis_cli.base.modules import named
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.stages import Counted
from thesis_cli.privacy.release.methods import METHODS, listed, methods_where
from thesis_cli.privacy.release.plan import ReleasePlan, Spend, Weights
from thesis_cli.privacy.release.record import Proof, Record, Release

if TYPE_CHECKING:
    from thesis_cli.privacy.embedding.features import Features
    from thesis_cli.privacy.embedding.points import ObjectiveTick


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
