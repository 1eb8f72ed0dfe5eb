r"""The release method `exponential`: the exponential mechanism over all small tables (Thesis section
4.3.4; the SmallDB of Blum et al. 2008).

The mechanism chooses a synthetic table R of M rows of a finite domain X by its score s(D, R) =
-|mu_D - mu_R|. It is exact: every multiset of M rows is scored, so that the cost is their number,
C(|X| + M - 1, M).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Codes, RowKernel, Rows
from thesis_cli.privacy.mechanisms import mechanism
from thesis_cli.privacy.mechanisms.mechanism import Budget, Choice
from thesis_cli.privacy.mechanisms.stages import counted_blocks
from thesis_cli.privacy.release.record import Record, Release, uniform_weights
from thesis_cli.privacy.release.release import (
    Errors,
    ExpectedStage,
    Implementation,
    PrivateRows,
    Released,
    ReleasePlan,
    RowSettings,
    linear_errors,
)
from thesis_cli.privacy.tables.column import Column
from thesis_cli.privacy.tables.schema import Schema


@dataclass(frozen=True)
class Selection:
    """Choice of a small table by the exponential mechanism.

    Attributes
    ----------
    points, domain, candidates : rows of each small table, rows of the domain, and number of small
        tables.
    mechanism : name of the mechanism that chose.
    scale : scale of its noise.
    epsilon, delta : privacy that it proves.
    sensitivity : sensitivity of each score.
    """

    points: int
    domain: int
    candidates: int
    mechanism: str
    scale: float
    epsilon: float
    delta: float
    sensitivity: float


@dataclass(frozen=True)
class SmallTable:
    """Encoded rows that the exponential mechanism chose: `Rows` as JSON holds them."""

    reals: tuple[tuple[float, ...], ...]
    codes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rows: Rows) -> SmallTable:
        """Rows as JSON holds them."""
        return cls(tuple(map(tuple, rows.reals.tolist())), tuple(map(tuple, rows.codes.tolist())))

    def rows(self) -> Rows:
        """Encoded rows, M of them."""
        return Rows(np.array(self.reals, np.float64), np.array(self.codes, np.int64))


@dataclass(frozen=True)
class ChosenRows:
    """The small table that the mechanism chose."""

    rows: SmallTable


Choose = Callable[[Floats, float, float], Choice]
"""Function from scores (S,), their sensitivity and epsilon to a choice, like `mechanism.choose`."""

LARGEST_DOMAIN = 500
"""Largest number of rows; their kernel matrix is factored, and multiplied with every candidate."""
CANDIDATES = 10**6
BLOCK = 2**21
"""Numbers per block of the candidates' counts."""


def databases(domain_size: int, count: int) -> int:
    """Number C(|X| + M - 1, M) of candidates: multisets of M = `count` rows out of |X| =
    `domain_size`.
    """
    return math.comb(domain_size + count - 1, count)


def enumerate_domain(schema: Schema, limit: int = LARGEST_DOMAIN) -> Rows:
    """Every row that the schema allows, encoded; the last column varies fastest.

    Raises
    ------
    InputError : a column is real, or there are more than `limit` rows.
    """
    size = math.prod(map(_values_of, schema.encoded))
    if size > limit:
        problem = f"the schema allows {size:,} rows"
        raise InputError(problem, f"it may allow {limit:,}: use fewer columns, levels or whole numbers")
    every = zip(*itertools.product(*(column.domain() for column in schema.encoded)), strict=True)
    columns = {}
    for name, values in zip(schema.names_read, every, strict=True):
        columns[name] = np.empty(size, object)
        columns[name][:] = values
    return schema.encode(columns)


def _values_of(column: Column) -> int:
    """Number of values that a column allows."""
    if column.size is None:
        problem = f"column {column.name!r} is {column.kind}"
        raise InputError(problem, "all columns must be categories, booleans or integers")
    return column.size + len(column.beyond) + column.missing


def small_database(
    kernel: RowKernel,
    domain: Rows,
    blocks: Iterable[Rows],
    rows: int,
    count: int,
    epsilon: float,
    *,
    choose: Choose = mechanism.choose,
    limit: int = CANDIDATES,
) -> tuple[Rows, Selection]:
    """Choose a table of M = `count` rows of the domain, epsilon-privately, by its distance to the
    private one.

    Parameters
    ----------
    kernel, domain : public kernel and domain of X distinct rows.
    blocks, rows : private table, and its number N of rows, which is public.
    choose : mechanism, which receives the scores of all candidates and their sensitivity.
    limit : largest number of candidates.

    Returns
    -------
    rows : the chosen M rows, sorted as the domain is.
    selection : public account of the choice.

    Raises
    ------
    InputError : the table has no rows, another number of them than `rows`, or one that is not in
        the domain; there are more candidates than `limit`; the domain is too large or has a row
        twice.
    """
    if rows < 1:
        raise InputError(f"the table has {rows} rows", "it must have at least one")
    if count < 1:
        raise InputError(f"the number of released rows is {count}", "it must be at least 1")
    size = len(domain)
    if not 1 <= size <= LARGEST_DOMAIN:
        raise InputError(f"the domain has {size:,} rows", f"it must have 1 to {LARGEST_DOMAIN:,}")
    candidates = databases(size, count)
    if candidates > limit:
        problem = f"{count} rows of a domain of {size} make {candidates:,} candidates"
        raise InputError(problem, f"there may be {limit:,}: use fewer rows or a smaller domain")
    vectors = images(kernel, domain)
    sensitivity = score_sensitivity(vectors, rows)
    histogram = _histogram(domain, counted_blocks(blocks, rows))
    choice = choose(scores(vectors, histogram, count), sensitivity, epsilon)
    found = Selection(
        points=count,
        domain=size,
        candidates=candidates,
        mechanism=choice.mechanism,
        scale=choice.scale,
        epsilon=choice.epsilon,
        delta=0.0,
        sensitivity=sensitivity,
    )
    return domain[candidate(choice.index, size, count)], found


def images(kernel: RowKernel, domain: Rows) -> Floats:
    """Vectors a_x that stand for k(x, .), shape (X, X): a_x . a_y = k(x, y), up to rounding.

    Distances of embeddings are norms of differences of such vectors. (Squared distances computed as
    differences of means of the kernel's matrix would lose all digits near 0, and the root would
    make that an error of 1e-8.)
    """
    values, vectors = np.linalg.eigh(kernel.matrix(domain, domain))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def score_sensitivity(vectors: Floats, rows: int) -> float:
    r"""Bound on the difference of the computed scores of two tables of N = `rows` rows that differ
    in one.

    By the triangle inequality |s(D, R) - s(D', R)| <= |mu_D - mu_D'| <= max |a_x - a_y| / N: the
    diameter of the domain over N, which is at most sqrt(2) / N (`RowKernel`) and which R = D reaches.
    The diameter is that of the computed vectors, so that their own rounding does not matter. Later
    rounding, with u = 2^-53 and vectors of norm 1:

    - a mean of vectors: (X + 2) u, in the matrix product and the division, for either table and the
      candidate;
    - their difference, of norm at most 2: 2 u;
    - its norm: (X / 2 + 2) u times 2.

    This makes (3 X + 10) u for a score and twice that for two; the bound has it twice, because
    norms are 1 only up to rounding. The same holds for the rounding of the squared diameter, at
    most (4 X + 8) u, with (a + b)^(1/2) <= a^(1/2) + b^(1/2).
    """
    size, unit = len(vectors), 2.0**-53
    squared = (vectors**2).sum(1)
    apart = float((np.add.outer(squared, squared) - 2 * (vectors @ vectors.T)).max())
    diameter = math.sqrt(max(apart, 0.0) + 2 * (4 * size + 8) * unit)
    return diameter * (1 + 4 * unit) / rows + 4 * (3 * size + 10) * unit


def scores(vectors: Floats, histogram: Codes, count: int) -> Floats:
    """Scores -|mu_D - mu_R| of the table of these counts (X,) and every candidate R of M = `count`
    rows, shape (S,).
    """
    size = len(vectors)
    target = (histogram @ vectors) / histogram.sum()
    candidates, found = _candidates(size, count), []
    while block := list(itertools.islice(candidates, max(1, BLOCK // size))):
        found.append(-np.linalg.norm(_counts(block, size, count) @ vectors / count - target, axis=1))
    return np.concatenate(found)


def candidate(index: int, size: int, count: int) -> Codes:
    """Rows of the domain, of X = `size` rows, in candidate `index` of `scores`: ascending numbers,
    shape (M,).
    """
    chosen = next(itertools.islice(_candidates(size, count), index, None))
    return np.repeat(np.arange(size), _counts([chosen], size, count)[0].astype(np.int64))


def _candidates(size: int, count: int) -> Iterator[tuple[int, ...]]:
    """Candidates, as their M rows or as the places of X - 1 bars among M stars, whichever is
    shorter.
    """
    if count < size:
        return itertools.combinations_with_replacement(range(size), count)
    return itertools.combinations(range(size + count - 1), size - 1)


def _counts(block: Sequence[tuple[int, ...]], size: int, count: int) -> Floats:
    """Count of each row of the domain in each of these candidates, shape (S, X)."""
    flat = np.fromiter(itertools.chain.from_iterable(block), np.int64)
    numbers = flat.reshape(len(block), -1)
    if count < size:
        at = numbers + size * np.arange(len(block))[:, np.newaxis]
        found = np.bincount(at.reshape(-1), minlength=size * len(block)).reshape(len(block), size)
    else:
        found = np.diff(numbers, axis=1, prepend=-1, append=size + count - 1) - 1
    return found.astype(np.float64)


def _histogram(domain: Rows, blocks: Iterable[Rows]) -> Codes:
    """Count of each row of the domain in the table, shape (X,)."""
    places = {key: i for i, key in enumerate(_keys(domain))}
    if len(places) < len(domain):
        raise InputError("the domain has a row twice", "it must have every row once")
    found = np.zeros(len(domain), np.int64)
    for block in blocks:
        distinct, counts = np.unique(_table(block), axis=0, return_counts=True)
        for row, times in zip(distinct, counts, strict=True):
            place = places.get(row.tobytes())
            if place is None:
                raise InputError("the table has a row that is not in the domain", "the domain must have all rows")
            found[place] += times
    return found


def _keys(rows: Rows) -> list[bytes]:
    return [row.tobytes() for row in _table(rows)]


def _table(rows: Rows) -> Floats:
    """Coordinates and codes side by side; -0.0 becomes 0.0."""
    return np.column_stack([rows.reals, rows.codes.astype(np.float64)]) + 0.0


class ExponentialMethod(Implementation):
    """The choice of a table of a few rows among all."""

    proof = Selection
    output = ChosenRows

    def release(self, plan: ReleasePlan, private: PrivateRows) -> Released:
        """Choose the rows; `choose` is a `Choose`."""
        source, epsilon = cast(Choose, private.choose or mechanism.choose), plan.budget.epsilon

        def choose(scores: Floats, sensitivity: float, epsilon: float) -> Choice:
            private.spend(Budget(plan.budget.epsilon), None)
            return source(scores, sensitivity, epsilon)

        domain, kernel, count = enumerate_domain(plan.schema), plan.schema.kernel(), private.public_count
        blocks = counted_blocks(private.blocks, count)
        found, proof = small_database(kernel, domain, blocks, count, plan.size, epsilon, choose=choose)
        return Released(proof, ChosenRows(SmallTable.of(found)), plan.size)

    def expected(self, plan: ReleasePlan, count: int) -> tuple[tuple[ExpectedStage, ...], Errors]:
        """The chosen table is at most the `noise` farther away than the nearest one, on average."""
        domain, kernel = enumerate_domain(plan.schema), plan.schema.kernel()
        candidates = databases(len(domain), plan.size)
        sensitivity = score_sensitivity(images(kernel, domain), count)
        scale = 2 * sensitivity / plan.budget.epsilon
        noise = scale * math.log(candidates)
        stage = ExpectedStage("choice", candidates, sensitivity, scale, noise)
        return (stage,), lambda: linear_errors(plan.schema, domain, kernel.matrix(domain, domain), noise)

    def rows(self, record: Record, settings: RowSettings, rng: np.random.Generator) -> Release:
        """The chosen rows."""
        points = chosen_rows(record).rows()
        return Release(record.schema, points, uniform_weights(points), record)

    def check(self, record: Record) -> None:
        """The rows must be rows of the schema."""
        chosen, schema = chosen_rows(record), record.schema
        reals, codes = chosen.reals, chosen.codes
        widths = {(len(r), len(c)) for r, c in zip(reals, codes, strict=False)}
        if len(reals) != len(codes) or widths != {(schema.reals, len(schema.cardinalities))}:
            raise InputError("rows do not fit the schema", "each must have all coordinates of the schema")
        if any(code >= size for row in codes for code, size in zip(row, schema.cardinalities, strict=True)):
            problem = "rows has a code that the schema does not have"
            raise InputError(problem, "each must be below the number of levels")
        if any(not 0 <= x <= 1 for row in reals for x in row):
            raise InputError("rows has a coordinate outside [0, 1]", "each must be within the bounds of its column")


def chosen_rows(record: Record) -> SmallTable:
    """The small table of a release by exponential.

    Raises
    ------
    InputError : the release is by another method.
    """
    if not isinstance(record.output, ChosenRows):
        raise InputError("a release by exponential has no small table", "it must have one")
    return record.output.rows


METHOD = ExponentialMethod()
