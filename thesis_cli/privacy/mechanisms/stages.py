r"""Vectors of a table that a release protects: the unit of privacy, totals, and adaptive stages.

Units (`Unit`). Neighbouring tables differ in one unit (Thesis Definition 4.1 has rows), which is a row, or a
person with at most K rows. The default, that one row is replaced, makes the number N of rows public, and a
release is a noisy mean. All other units keep N secret, and so a release is the noise of a pair of totals,

    T = (sum_n phi(x_n), c N),  |phi(x)| <= 1,

over the rows that count; c is public. What follows from T with noise, such as the quotient of its parts, is
post-processing.

Sensitivity of T (`Unit.factor`). Let one unit have s rows in one table and s' in the other, both from 0 to
K, and let all other rows be equal. The difference of the totals is that of the unit's own rows.

* Add or remove (s' = 0): |T - T'|^2 <= s^2 + c^2 s^2 <= K^2 (1 + c^2).
* Replace: |T - T'|^2 <= (s + s')^2 + c^2 (s - s')^2. This is convex in (s, s'), so its largest value is at a
  corner of [0, K]^2: 4 K^2 if both are K, (1 + c^2) K^2 if one is 0. It is 4 K^2 for c^2 <= 3, as if N had not
  been released at all. A kernel of no negative value has <phi(x), phi(y)> >= 0, and the first term is s^2 +
  s'^2: the corners are 2 K^2 and (1 + c^2) K^2, and the largest is 2 K^2 for c^2 <= 1.

In general, with D = 2 or sqrt(2) the largest distance of two rows, c^2 = D^2 - 1 is free. Because the corner
s' = 0 is covered, replacing also protects whether a person is in the table.

Choice of c for add or remove. Gaussian noise of J + 1 coordinates has a scale proportional to sqrt(1 + c^2).
The quotient's error is nearly (Z - z mean / c) / N, where Z and z are the noise of the two parts and |mean| <=
1; its square is in proportion to (1 + c^2)(J + 1 / c^2), which is least at c = J^(-1/4). That is 1 + 2 /
sqrt(J) times the error with a public N, 6 % more for 1,000 features.

Stages (`release_stages`). Each is the noisy mean of bounded features of the rows. The features of a stage may
depend on the noisy vectors of earlier stages, and otherwise on public settings alone. Each stage is rho_k-zCDP
by OpenDP's map for its noise; adaptive stages add up to sum_k rho_k (Bun and Steinke 2016), and OpenDP converts
the largest sum that is within the budget.

Every stage reads the table. Its sensitivity rests on the number N of rows and on the features of a
single row, so that the privacy guarantee covers a person whose row is replaced in all passes, even if the
table changes between two of them. The rows of a pass are counted. A small table is held in memory
and read once; a larger one is read again, and `Table.chunks` ends the release if it has changed.

Stages of a secret number of rows (`SecretStages`) protect any unit. The first stage is the noisy number n of
the rows that count; a unit changes it by at most K. Later stages release sums of features, and the plan of a
stage sees them divided by n, together with the number of rows at which a mean with a public number would have
noise of that scale. A plan uses the number of rows for the scale of its noise alone, so all that it decides
comes from noisy vectors.

Let D be the plan's bound on the distance of two rows' vectors. Their norm must be at most D /
sqrt(2), as it is wherever two rows of that norm have no positive inner product. One unit then moves
the sum by at most K D / sqrt(2) if it is added or removed, and by at most K D if it is replaced: of
s >= s' rows, s' pairs are at most D apart, and s - s' single ones have norms below D.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Literal, Protocol

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import (
    Budget,
    Noised,
    check_finite,
    check_gaussian,
    check_sizes,
    exponent_of,
    least_scale,
    measurement,
    opendp_name,
    zcdp_epsilon,
)

Neighbours = Literal["replace", "add-remove"]

LARGEST = 2**24
"""Largest number of rows whose total is released; a public bound on the rounding of totals needs
one.
"""

SCALED = ("scale", "granularity", "sensitivity", "analytic_scale", "classical_scale")
"""Lengths of a calibration, in the units of the vector."""

SPARE = 4
"""Factor by which the rounding in `Totals.l2_sensitivity` exceeds that of the largest table."""


@dataclass(frozen=True)
class Unit:
    """Unit of privacy: the difference between two neighbouring tables.

    Attributes
    ----------
    neighbours : whether a unit is replaced by another one, or is in one of the tables only.
    contribution_bound : largest number K of rows of a person that count; None if each row is a unit.

    Raises
    ------
    InputError : `contribution_bound` is below 1.
    """

    neighbours: Neighbours = "replace"
    contribution_bound: int | None = None

    def __post_init__(self) -> None:
        if self.contribution_bound is not None and self.contribution_bound < 1:
            raise InputError(
                f"the largest number of rows of a person is {self.contribution_bound}", "it must be at least 1"
            )

    @property
    def secret(self) -> bool:
        """Whether the number N of rows is secret."""
        return self.neighbours == "add-remove" or self.contribution_bound is not None

    def name(self, person: str | None) -> str:
        """Name of the unit in a ledger; `person` is the column of persons, if there is one.

        The largest number of rows that count is left out: each release protects all rows of a
        person, whatever that number.
        """
        return f"{'row' if person is None else f'person {person}'}, {self.neighbours}"

    @property
    def text(self) -> str:
        """Pairs of tables that are neighbours, in words."""
        bound = self.contribution_bound
        if bound is None:
            if self.neighbours == "replace":
                return "tables of the same number of rows that differ in one row"
            return "tables of which one lacks one row"
        each = (
            "one row of each person counts"
            if self.contribution_bound == 1
            else f"at most {self.contribution_bound} rows of each person count"
        )
        if self.neighbours == "replace":
            return f"tables that differ in all rows of one person; {each}"
        return f"tables of which one lacks all rows of one person; {each}"

    def count_weight(self, size: int, diameter: float = 2.0) -> float:
        """Weight c of the number of rows beside J = `size` features, whose rows are at most
        `diameter` apart.
        """
        return math.sqrt(diameter**2 - 1) if self.neighbours == "replace" else size**-0.25

    def factor(self, weight: float, diameter: float = 2.0) -> float:
        """Sensitivity of the totals in L2, for a weight c of the number of rows."""
        norm = math.sqrt(1 + weight**2)
        return (self.contribution_bound or 1) * (max(diameter, norm) if self.neighbours == "replace" else norm)


def steps_between(release: str, account: str) -> int | None:
    """Number of steps, each to a neighbour of a release's unit, that reach any neighbour of an account's;
    None if no number does. Both are names (`Unit.name`).

    A unit that is replaced may also be absent (the corner s' = 0 above), except a row, whose number N is
    public. A replaced unit is one removed and one added. A row whose person stays is some of that
    person's rows, so that a guarantee to persons is one to rows.
    """
    (protected, neighbours), (wanted, others) = (name.rsplit(", ", 1) for name in (release, account))
    if protected != wanted and wanted != "row":
        return None
    if neighbours == "add-remove":
        return 1 if (protected, neighbours) == (wanted, others) else 2
    return None if protected == "row" and others == "add-remove" else 1


ROWS = Unit()
"""One row is replaced, and the number of rows is public."""


@dataclass(frozen=True)
class Counted:
    """Number of private rows that count.

    Attributes
    ----------
    rows : the number with noise, at least 1; without noise if it is public.
    deviation : standard deviation of the noise.
    contribution_bound : largest number of rows of a person that count; 1 if each row is a person.
    effective : number of rows with one for each person and a public number whose means would have
        noise of the same scale.
    """

    rows: float
    deviation: float
    contribution_bound: int = field(metadata={"key": "most"})
    effective: int


class MeanVector(Protocol):
    """A public map of rows to vectors, as totals and stages take it."""

    @property
    def count(self) -> int:
        """Length J of the vector."""

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Mean vector of a private table; no order of rows and no number of threads changes a bit."""

    def l2_sensitivity(self, rows: int) -> float:
        """Bound on the distance of the computed means of two tables of N = `rows` rows that differ in one."""


@dataclass(frozen=True)
class Totals:
    """Map from a table to (sum of its rows' vectors, c times their number).

    Attributes
    ----------
    embedding : map of the rows, to vectors of norm at most 1.
    unit : difference between neighbours.
    diameter : largest distance of two rows' vectors; sqrt(2) only if no inner product is negative.
    """

    embedding: MeanVector
    unit: Unit
    diameter: float = 2.0

    @property
    def count(self) -> int:
        """Number J + 1 of coordinates."""
        return self.embedding.count + 1

    @property
    def weight(self) -> float:
        """Weight c of the number of rows."""
        return self.unit.count_weight(self.embedding.count, self.diameter)

    def vector(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Totals of a private table, shape (J + 1,); all are 0 for a table without rows.

        Raises
        ------
        InputError : the table has more than LARGEST rows.
        """
        total, count = summed(self.embedding, blocks, jobs, progress)
        return np.append(total, self.weight * count)

    def l2_sensitivity(self) -> float:
        """Sensitivity of the totals, rounding included, for tables of at most LARGEST rows.

        N times the embedding's bound for the means of N rows is `diameter` plus a rounding that
        grows with N: a table with N rows has totals N times as uncertain as its means. Multiplying
        by N and by c adds less than as much again; SPARE covers both, and that the rounding of two
        tables is not less than `diameter` times that of one.
        """
        rows = SPARE * LARGEST
        rounding = self.embedding.l2_sensitivity(rows) * rows / self.diameter
        return self.unit.factor(self.weight, self.diameter) * rounding

    def effective(self, rows: float) -> int:
        """Number of rows with one for each person and a public number whose mean has noise of the
        same scale as that of `rows` rows.
        """
        return max(1, int(rows * self.diameter / self.unit.factor(self.weight, self.diameter)))

    def means(self, noised: Noised) -> tuple[Noised, Counted]:
        """Mean vector and number of rows out of noisy totals, by post-processing.

        The calibration is that of the mean: the sum's, divided by the noisy number of rows, which
        counts as at least 1.
        """
        found, rows = noised.calibration, max(1.0, float(noised.values[-1]) / self.weight)
        scaled = {key: value / rows for key in SCALED if (value := getattr(found, key)) is not None}
        counted = Counted(rows, found.deviation / self.weight, self.unit.contribution_bound or 1, self.effective(rows))
        return Noised(noised.values[:-1] / rows, replace(found, **scaled)), counted


def counted_blocks(blocks: Iterable[Rows], count: int) -> Iterator[Rows]:
    """The same blocks; `InputError` at their end if they had another number of rows."""
    seen = 0
    for block in blocks:
        seen += len(block)
        yield block
    if seen != count:
        raise InputError(f"the table has {seen} rows and not {count}", "it must not change while it is read")


def blocks_within(blocks: Iterable[Rows]) -> Iterator[Rows]:
    """The same blocks; `InputError` once they have more than LARGEST rows."""
    seen = 0
    for block in blocks:
        seen += len(block)
        if seen > LARGEST:
            raise InputError(f"the table has more than {LARGEST:,} rows", "their number must be public")
        yield block


def summed(
    embedding: MeanVector, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None
) -> tuple[Floats, int]:
    """Sum of the rows' vectors, and the number of rows; 0 without rows.

    Raises
    ------
    InputError : the table has more than LARGEST rows.
    """
    present = (block for block in blocks if len(block))
    first, count = next(present, None), 0
    if first is None:
        return np.zeros(embedding.count), 0

    def counted() -> Iterator[Rows]:
        nonlocal count
        for block in blocks_within(chain([first], present)):
            count += len(block)
            yield block

    mean = embedding.mean(counted(), jobs, progress)
    return mean * count, count


HELD = 2**28
"""Most bytes of a table that is held in memory: 256 MiB."""
STEPS = 50
COUNT_SHARE = 0.02
"""Share of the total rho that the number of rows gets."""


@dataclass(frozen=True)
class NoisyStage:
    """One noisy vector of several.

    Attributes
    ----------
    name, share : name of the vector, and its share of the rho of the budget.
    sensitivity : L2 sensitivity of the vector before it is rounded.
    scale, granularity, rho : noise on each coordinate, as in `Calibration`.
    vector : noisy vector.
    """

    name: str
    share: float
    sensitivity: float
    scale: float
    granularity: float
    rho: float
    vector: tuple[float, ...]


@dataclass(frozen=True)
class StagedNoise:
    """Gaussian noise on several vectors, each of which may depend on the noisy ones before it.

    Attributes
    ----------
    mechanism : source of the noise, and the composition of the stages.
    total : rho of the budget, which the stages share.
    rho : sum of the rhos of the stages, at most `total`.
    epsilon, delta : privacy of that sum, by OpenDP's conversion.
    """

    mechanism: str
    total: float
    rho: float
    epsilon: float
    delta: float


class StageFeatures(MeanVector, Protocol):
    """Features of one stage: public, given the noisy vectors of earlier stages.

    Attributes
    ----------
    name : the vector that the stage releases.
    share : share of the total rho; the shares of all stages add up to at most 1.
    """

    @property
    def name(self) -> str: ...

    @property
    def share(self) -> float: ...


class Stages(Protocol):
    """Plans of all stages of a release."""

    def stage(self, vectors: Sequence[Floats]) -> StageFeatures | None:
        """The stage after those with these noisy vectors; None after the last."""


class StageNoise(Protocol):
    """Gaussian noise for one stage."""

    def calibrate(self, size: int, l2_sensitivity: float, rho: float) -> tuple[float, float, float]:
        """Scale, granularity and rho, which is at most the given one."""

    def add(self, vector: Floats, scale: float, granularity: float) -> Floats:
        """The vector, shape (F,), with noise."""


class OpenDPStages:
    """OpenDP's discrete Gaussian noise at the least scale whose map stays within rho."""

    def calibrate(self, size: int, l2_sensitivity: float, rho: float) -> tuple[float, float, float]:
        """See `StageNoise.calibrate`."""
        check_sizes(size, l2_sensitivity)
        if not 0 < rho < math.inf:
            raise InputError(f"the rho of a stage is {rho:g}", "it must be above 0 and finite")
        return _calibrated(size, float(l2_sensitivity), rho)

    def add(self, vector: Floats, scale: float, granularity: float) -> Floats:
        """See `StageNoise.add`."""
        exponent = math.frexp(granularity)[1] - 1
        return np.array(measurement(vector.size, 2, scale, exponent)(vector.tolist()), np.float64)


@lru_cache(maxsize=256)
def _calibrated(size: int, sensitivity: float, rho: float) -> tuple[float, float, float]:
    exponent, about = exponent_of(sensitivity / math.sqrt(size)), sensitivity / math.sqrt(2 * rho)
    scale = least_scale(lambda s: measurement(size, 2, s, exponent), sensitivity, rho, (0.9 * about, 1.1 * about))
    return scale, math.ldexp(1.0, exponent), measurement(size, 2, scale, exponent).map(sensitivity)


@lru_cache(maxsize=64)
def total_rho(budget: Budget) -> float:
    """Largest rho, to some 1e-12, whose zCDP OpenDP converts to within (epsilon, delta).

    Raises
    ------
    InputError : delta is 0.
    """
    check_gaussian(budget)

    def fits(rho: float) -> bool:
        return zcdp_epsilon(rho, budget.delta) <= budget.epsilon

    # rho + 2 sqrt(rho ln(1/delta)) bounds epsilon (Bun and Steinke 2016).
    root = math.sqrt(math.log(1 / budget.delta))
    low = high = (budget.epsilon / (math.hypot(root, math.sqrt(budget.epsilon)) + root)) ** 2
    while not fits(low):
        low /= 2
    while fits(high):
        high *= 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def is_held(count: int | None, width: int) -> bool:
    """Whether a table of so many rows, each of `width` bytes, is held in memory: see `Passes`."""
    return count is None or count * width <= HELD


class Passes:
    """A private table for several passes, as the stages see its rows.

    Parameters
    ----------
    blocks : encoded rows.
    count : their number in each pass, which is public. None if it is secret: the table is then held in
        memory, and so is any of at most `HELD` bytes. Others are read once a pass.
    width : bytes of a packed row.
    packed : what the stages need of a block.

    Raises
    ------
    InputError : (in a pass) another number of rows; a large table that can be read only once.
    """

    def __init__(
        self, blocks: Iterable[Rows], count: int | None, width: int, packed: Callable[[Rows], Rows] = lambda rows: rows
    ) -> None:
        self._blocks, self._count, self._packed = blocks, count, packed
        self._small = is_held(count, width)
        self._held: list[Rows] | None = None
        self._passes = 0

    def __iter__(self) -> Iterator[Rows]:
        if self._held is not None:
            yield from self._held
            return
        if self._passes and isinstance(self._blocks, Iterator):
            raise InputError("the table can be read only once", "give one that can be read again")
        self._passes += 1
        kept: list[Rows] = []
        blocks = map(self._packed, self._blocks)
        for block in blocks if self._count is None else counted_blocks(blocks, self._count):
            if self._small:
                kept.append(block)
            yield block
        if self._small:
            self._held = kept


def release_stages(
    stages: Callable[[float], Stages],
    table: Iterable[Rows],
    count: int,
    budget: Budget,
    spend: Callable[[Budget, float | None], None],
    noise: StageNoise,
    read: Callable[[StageFeatures, Iterable[Rows]], Floats],
) -> tuple[StagedNoise, tuple[NoisyStage, ...]]:
    """Release the vectors of all stages under one budget.

    Parameters
    ----------
    stages : function from the total rho to the plans of the stages.
    table, count : private table, and its number N of rows, which is public; the stages of a table
        whose number is secret ignore it (`SecretStages`).
    spend : called once, with the budget and the total rho, after the table was read for the first
        stage and before any noise is drawn.
    read : computes the vector of a stage.

    Raises
    ------
    InputError : a budget that Gaussian noise does not fit.
    """
    total, found = total_rho(budget), list[NoisyStage]()
    running, left, vectors = stages(total), Fraction(total), list[Floats]()
    while (plan := running.stage(tuple(vectors))) is not None:
        rho = min(total * plan.share, _below(left))
        if rho <= 0 or total * plan.share > rho * (1 + 1e-9):
            raise ValueError("the shares of the stages must be above 0 and add up to at most 1")
        sensitivity = plan.l2_sensitivity(count)
        scale, granularity, spent = noise.calibrate(plan.count, sensitivity, rho)
        left -= Fraction(spent)
        if left < 0:
            raise ValueError("the noise of a stage exceeds its share")
        vector = check_finite(read(plan, table))
        if vector.size != plan.count:
            raise ValueError("the vector of a stage has another size than its plan")
        if not found:
            spend(budget, total)
        vectors.append(noise.add(vector, scale, granularity))
        values = tuple(vectors[-1].tolist())
        found.append(NoisyStage(plan.name, plan.share, sensitivity, scale, granularity, spent, values))
    rho = _above(Fraction(total) - left)
    epsilon = zcdp_epsilon(rho, budget.delta)
    assert epsilon <= budget.epsilon  # rho is at most `total`, and OpenDP's map is monotonic
    name = f"{opendp_name()} make_gaussian, {len(found)} adaptive stages, make_zCDP_to_approxDP"
    return StagedNoise(name, total, rho, epsilon, budget.delta), tuple(found)


def _below(value: Fraction) -> float:
    """Largest double that is not above a value."""
    found = float(value)
    return math.nextafter(found, -math.inf) if Fraction(found) > value else found


def _above(value: Fraction) -> float:
    return -_below(-value)


@dataclass(frozen=True)
class SecretStages:
    """Stages of a table whose number of rows is secret.

    Attributes
    ----------
    plan : stages with a public number of rows, from that number and the total rho.
    unit : difference between neighbours.
    rho : total rho.
    """

    plan: Callable[[int, float], Stages]
    unit: Unit
    rho: float

    def stage(self, vectors: Sequence[Floats]) -> StageFeatures | None:
        """The stage after those with these noisy vectors; None if there is no further one."""
        if not vectors:
            return CountStage(self.unit.contribution_bound or 1)
        rows = _rows(float(vectors[0][0]))
        plan = self.plan(effective(rows, self.unit), self.rho * (1 - COUNT_SHARE))
        found = plan.stage([vector / rows for vector in vectors[1:]])
        return None if found is None else SumStage(found, self.unit)


@dataclass(frozen=True)
class CountStage:
    """Number of rows; a person has at most `contribution_bound`."""

    contribution_bound: int
    name: str = "number of rows"
    share: float = COUNT_SHARE
    count: int = 1

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """The number, exactly, shape (1,)."""
        return np.array([float(sum(map(len, blocks)))])

    def l2_sensitivity(self, rows: int) -> float:
        """Largest number of rows of a unit."""
        return float(self.contribution_bound)


@dataclass(frozen=True)
class SumStage:
    """A stage that releases the sum of its features, not their mean."""

    plan: StageFeatures
    unit: Unit

    @property
    def name(self) -> str:
        """Name of the stage."""
        return self.plan.name

    @property
    def share(self) -> float:
        """Share of the total rho, of which the number of rows has one too."""
        return self.plan.share * (1 - COUNT_SHARE)

    @property
    def count(self) -> int:
        """Length of the vector."""
        return self.plan.count

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Sum of the features over a private table."""
        return summed(self.plan, blocks, jobs, progress)[0]

    def l2_sensitivity(self, rows: int) -> float:
        """Sensitivity of the sum, rounding included, for tables of at most LARGEST rows: see
        `Totals.l2_sensitivity`.
        """
        return _factor(self.unit) * self.plan.l2_sensitivity(SPARE * LARGEST) * SPARE * LARGEST


def mean_stages(stages: Sequence[NoisyStage], unit: Unit) -> tuple[Counted, tuple[NoisyStage, ...]]:
    """Number of rows, and the later stages as those of means, by post-processing."""
    first, *rest = stages
    rows = _rows(first.vector[0])
    counted = Counted(rows, first.scale, unit.contribution_bound or 1, effective(rows, unit))
    return counted, tuple(
        replace(
            stage,
            sensitivity=stage.sensitivity / rows,
            scale=stage.scale / rows,
            granularity=stage.granularity / rows,
            vector=tuple(value / rows for value in stage.vector),
        )
        for stage in rest
    )


def _factor(unit: Unit) -> float:
    """Sensitivity of a sum for one of D between two rows."""
    return (unit.contribution_bound or 1) * (1 if unit.neighbours == "replace" else math.sqrt(0.5))


def _rows(noisy: float) -> float:
    return max(1.0, noisy)


def effective(rows: float, unit: Unit) -> int:
    """Number of rows with one for each person and a public number whose means have noise of the
    same scale as those of `rows` rows.
    """
    return max(1, int(rows / _factor(unit)))
