r"""Whom a release protects: the unit in which neighbouring tables differ (Thesis Definition 4.1 has
rows).

A unit is a row, or a person with at most K rows. The default, that one row is replaced, makes the
number N of rows public, and a release is a noisy mean. All other units keep N secret, and so a
release is the noise of a pair of totals,

    T = (sum_n phi(x_n), c N),  |phi(x)| <= 1,

over the rows that count; c is public. What follows from T with noise, such as the quotient of its
parts, is post-processing.

Sensitivity of T (`Unit.factor`). Let one unit have s rows in one table and s' in the other, both
from 0 to K, and let all other rows be equal. The difference of the totals is that of the unit's own
rows.

* Add or remove (s' = 0): |T - T'|^2 <= s^2 + c^2 s^2 <= K^2 (1 + c^2).
* Replace: |T - T'|^2 <= (s + s')^2 + c^2 (s - s')^2. This is convex in (s, s'), so its largest value
  is at a corner of [0, K]^2: 4 K^2 if both are K, (1 + c^2) K^2 if one is 0. It is 4 K^2 for c^2 <=
  3, as if N had not been released at all. A kernel of no negative value has <phi(x), phi(y)> >= 0,
  and the first term is s^2 + s'^2: the corners are 2 K^2 and (1 + c^2) K^2, and the largest is 2
  K^2 for c^2 <= 1.

In general, with D = 2 or sqrt(2) the largest distance of two rows, c^2 = D^2 - 1 is free. Because
the corner s' = 0 is covered, replacing also protects whether a person is in the table.

Choice of c for add or remove. Gaussian noise of J + 1 coordinates has a scale proportional to
sqrt(1 + c^2). The quotient's error is nearly (Z - z mean / c) / N, where Z and z are the noise of
the two parts and |mean| <= 1; its square is in proportion to (1 + c^2)(J + 1 / c^2), which is least
at c = J^(-1/4). That is 1 + 2 / sqrt(J) times the error with a public N, 6 % more for 1,000
features.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, Protocol

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Noised

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
    """The part of an embedding, or of a stage, that totals need."""

    @property
    def count(self) -> int:
        """Length J of the vector."""

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Mean vector of a table."""

    def l2_sensitivity(self, rows: int) -> float:
        """Sensitivity of the mean of N = `rows` rows if one is replaced, rounding included."""


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
