"""Neighbouring tables that a release tells apart as well as any, found by a search.

For methods that add noise to a vector, the search goes over public draws (features, points, public
rows, nearly dependent points among them) and pairs of rows of the schema; the best pair has vectors
whose distance comes nearest to the sensitivity. For several stages it goes over all rows of a small
domain, with the outcome of the noise held. For the exponential mechanism it goes over small
domains, and the probabilities of all outputs are exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, NoiseName, l1_sensitivity
from thesis_cli.privacy.mechanisms.stages import NoisyStage, OpenDPStages, StageNoise
from thesis_cli.privacy.release import exponential
from thesis_cli.privacy.release.copula import noisy_stages
from thesis_cli.privacy.release.methods import METHODS
from thesis_cli.privacy.release.record import Record
from thesis_cli.privacy.release.release import ReleasePlan, private_record
from thesis_cli.privacy.release.vectors import vector_method
from thesis_cli.privacy.tables.schema import Category, Integer, Real, Schema, Values

Table = Mapping[str, Values]
"""A table as it is read: an array for each column."""

SCHEMA = Schema((Real("x", 0.0, 1.0, missing=True), Category("c", ("a", "b", "c"))))
STAGED = Schema((Integer("x", 0, 1), Integer("y", 0, 2)))
STAGED_ROWS = 601
"""A small table of a release by copula, and rows that are balanced over both levels of x and the
last two values of y. The first value of y is so rare that the second stage has it in one bin with the
next, so that two rows may differ in both columns in the first stage, and in the sign of the
product in the second.
"""
ROWS = 3
"""Rows of each table: more than one, so that a sensitivity that forgets them shows."""
SIZES: dict[NoiseName, int] = {"gaussian": 4, "laplace": 2}
"""Features or points. The L1 norm of an L2 sensitivity is reached in few dimensions only."""
DRAWS, SAMPLES, STEPS = 12, 60, 200
"""Public draws, rows tried for each of them, and steps that improve the best pair of all."""
NEAR = 1e-3
"""Distance of public points that are nearly dependent."""
DOMAINS = 1, 2, 3, 4, 6, 8, 12, 16
"""Numbers of rows of a small domain, besides the one that is missing."""
MOST_CANDIDATES = 200
"""Small tables of such a domain; every run scores all of them."""


@dataclass(frozen=True)
class Pair:
    """Two tables that differ in one row, and the public settings under which they are released.

    Attributes
    ----------
    reach : distance of their vectors, or of their scores, over the sensitivity that the method
        claims; above 1 it contradicts the claim.
    """

    plan: ReleasePlan
    tables: tuple[Table, Table]
    reach: float

    @property
    def rows(self) -> int:
        """Number of rows of each table."""
        return len(next(iter(self.tables[0].values())))


def vector_pair(method: str, noise: NoiseName, budget: Budget) -> Pair:
    """The pair of tables whose vectors are farthest apart, relative to the claimed sensitivity.

    Parameters
    ----------
    method, noise, budget : settings of the releases.
    """
    rng = np.random.default_rng(0)
    rows = _sample(rng, SAMPLES)
    found = [_farthest(plan, rows) for plan in _plans(method, noise, budget, rows)]
    return _improved(*max(found, key=lambda entry: entry[2])[:2], rows[:1], rng)


def staged_pair(method: str, budget: Budget) -> Pair:
    """The pair of tables that the stages of a release by copula tell apart best, given the noisy
    vectors of one release.
    """
    domain = exponential.enumerate_domain(STAGED)
    common = np.flatnonzero(domain.reals[:, 1] > 0)
    rest = domain[np.tile(common, STAGED_ROWS // len(common))]
    tables = [STAGED.decode(Rows.concatenate([domain[i : i + 1], rest])) for i in range(len(domain))]
    plan = ReleasePlan(STAGED, budget, method, entropy=0)
    stages = noisy_stages(by_record(tables[0], plan))
    vectors = [replayed(table, plan, stages)[1] for table in tables]

    def apart(pair: tuple[int, int]) -> list[float]:
        """Distances in all stages, in units of the noise."""
        every = zip(*(vectors[i] for i in pair), stages, strict=True)
        return [float(np.linalg.norm(one - other)) / stage.scale for one, other, stage in every]

    i, j = max(itertools.combinations(range(len(domain)), 2), key=lambda pair: math.hypot(*apart(pair)))
    reach = max(d * stage.scale / stage.sensitivity for d, stage in zip(apart((i, j)), stages, strict=True))
    return Pair(plan, (tables[i], tables[j]), reach)


class _Held(OpenDPStages):
    """Noise whose outcome is known already; it keeps the vectors without noise."""

    def __init__(self, stages: Sequence[NoisyStage]) -> None:
        self._stages, self.vectors = stages, list[Floats]()

    def add(self, vector: Floats, scale: float, granularity: float) -> Floats:
        stage = self._stages[len(self.vectors)]
        self.vectors.append(vector)
        return np.array(stage.vector)


def replayed(table: Table, plan: ReleasePlan, stages: Sequence[NoisyStage]) -> tuple[Record, list[Floats]]:
    """The record of a table if the noisy vectors were these, and its vectors without noise."""
    held = _Held(stages)
    return by_record(table, plan, held), held.vectors


def by_record(table: Table, plan: ReleasePlan, noise: StageNoise | None = None) -> Record:
    """The entry point of the library: encodes the table and draws the noise."""
    rows = plan.schema.encode(table)
    return private_record([rows], len(rows), plan, lambda budget, rho: None, noise=noise)


def distance(plan: ReleasePlan, one: Floats, other: Floats) -> float:
    """Distance of two vectors of shape (F,) in the norm of the noise."""
    return float(np.linalg.norm(one - other, _norm(plan)))


def _plans(method: str, noise: NoiseName, budget: Budget, rows: Rows) -> Iterator[ReleasePlan]:
    """Public draws; also public rows for a method that takes some, of which the last two are nearly the
    same.
    """
    size = SIZES[noise]
    for entropy in range(DRAWS):
        yield ReleasePlan(SCHEMA, budget, method, noise, size, entropy=entropy)
    if "public" in METHODS[method].options:
        for start in range(0, SAMPLES - size, size):
            public = rows[start : start + size]
            yield ReleasePlan(SCHEMA, budget, method, noise, size, public, entropy=0)
            last = Rows(np.abs(public.reals[-2:-1] - NEAR), public.codes[-2:-1])
            yield ReleasePlan(SCHEMA, budget, method, noise, size, Rows.concatenate([public[:-1], last]), entropy=0)


def _farthest(plan: ReleasePlan, rows: Rows) -> tuple[ReleasePlan, Rows, float]:
    """The two rows, or points of the release, whose vectors are farthest apart, and how far that is
    of the sensitivity of a table of one row.
    """
    embedding = vector_method(plan.method).embedding(plan)
    points = getattr(embedding, "points", None)
    if points is not None:
        rows = Rows.concatenate([_canonical(points), rows])
    vectors = np.stack([embedding.mean([rows[i : i + 1]]) for i in range(len(rows))])
    apart = np.stack([np.linalg.norm(vectors - vector, _norm(plan), 1) for vector in vectors])
    pair = rows[np.array(np.unravel_index(apart.argmax(), apart.shape))]
    return plan, pair, float(apart.max()) / _sensitivity(plan, vectors.shape[1], embedding.l2_sensitivity(1))


def _improved(plan: ReleasePlan, pair: Rows, other: Rows, rng: np.random.Generator) -> Pair:
    """Tables of the two rows, moved by random steps that increase the distance, and of other
    rows.
    """
    embedding, best = vector_method(plan.method).embedding(plan), 0.0
    for step in range(STEPS):
        moved = Rows(pair.reals.copy(), pair.codes)
        moved.reals[step % 2] += rng.normal(size=SCHEMA.reals) * 0.3 * 0.97**step * (step > 1)
        moved = _canonical(moved)
        reached = distance(plan, *(embedding.mean([moved[i : i + 1]]) for i in range(2)))
        if reached > best:
            best, pair = reached, moved
    one, other_table = (SCHEMA.decode(Rows.concatenate([pair[i : i + 1], *[other] * (ROWS - 1)])) for i in range(2))
    means = [embedding.mean([SCHEMA.encode(table)]) for table in (one, other_table)]
    claimed = _sensitivity(plan, means[0].size, embedding.l2_sensitivity(ROWS))
    return Pair(plan, (one, other_table), distance(plan, *means) / claimed)


def _norm(plan: ReleasePlan) -> int:
    return 1 if plan.noise == "laplace" else 2


def _sensitivity(plan: ReleasePlan, size: int, l2_sensitivity: float) -> float:
    """Sensitivity of a vector of F = `size` coordinates in the norm of the noise."""
    return float(l1_sensitivity(size, l2_sensitivity) if _norm(plan) == 1 else l2_sensitivity)


def _sample(rng: np.random.Generator, count: int) -> Rows:
    """Rows of the schema, half of their numbers at the bounds."""
    reals = rng.random((count, SCHEMA.reals))
    ends = rng.random(reals.shape) < 0.5
    reals[ends] = np.rint(reals[ends])
    return _canonical(Rows(reals, rng.integers(0, SCHEMA.cardinalities, (count, len(SCHEMA.cardinalities)))))


def _canonical(rows: Rows) -> Rows:
    """The rows as a table that holds them is encoded."""
    return SCHEMA.encode(SCHEMA.decode(rows))


@dataclass(frozen=True)
class Choices:
    """Exact probabilities of the choices of the exponential mechanism between candidates.

    Attributes
    ----------
    scaled : scores over the scale 2 sensitivity / epsilon, of both tables, shape (2, S).
    """

    scaled: Floats

    def probabilities(self, factor: float = 1.0) -> Floats:
        """Probability of each candidate for either table, shape (2, S), where the scale is
        multiplied by a factor.

        Permute-and-flip visits the candidates in random order and takes r with probability q_r =
        exp(scaled score - the best one). With places as uniform times u, P(r) = q_r int_0^1 prod_{s
        != r} (1 - u q_s) du, which Gauss-Legendre quadrature integrates.
        """
        places, weights = np.polynomial.legendre.leggauss(self.scaled.shape[1] // 2 + 1)
        times = (places + 1) / 2
        found = []
        for scaled in self.scaled / factor:
            q = np.exp(scaled - scaled.max())
            misses = np.log1p(-np.multiply.outer(times, q))
            others = np.exp(misses.sum(1, keepdims=True) - misses)
            found.append(q * (weights / 2 @ others))
        total: Floats = np.stack(found)
        total /= total.sum(1, keepdims=True)
        return total


def choice_pairs(method: str, budget: Budget) -> Iterator[tuple[Pair, Choices]]:
    """Pairs of tables over small domains, on which epsilon shows to different degrees.

    One row is missing and the others are nearly alike, so that replacing it moves the table along a
    line: all scores change by the sensitivity, up or down.
    """
    for others in DOMAINS:
        schema = _domain_schema(others)
        domain = exponential.enumerate_domain(schema)
        vectors = exponential.images(schema.kernel(), domain)
        size = len(domain)
        squared = (vectors**2).sum(1)
        diameter = math.sqrt(float((np.add.outer(squared, squared) - 2 * vectors @ vectors.T).max()))
        for rows, count in ((1, 1), (2, 1), (2, 2)):
            if exponential.databases(size, count) > MOST_CANDIDATES:
                continue
            ideal, claimed = diameter / rows, exponential.score_sensitivity(vectors, rows)
            for kept in range(rows):
                base = np.full(rows, size - 1)
                base[:kept] = 0
                one, other = base.copy(), base.copy()
                other[-1] = 0
                both = [
                    exponential.scores(vectors, np.bincount(table, minlength=size), count) for table in (one, other)
                ]
                plan = ReleasePlan(schema, budget, method, size=count, entropy=0)
                tables = tuple(schema.decode(domain[table]) for table in (one, other))
                reach = float(np.abs(both[0] - both[1]).max()) / claimed
                scaled = np.stack(both) * budget.epsilon / (2 * ideal)
                yield Pair(plan, (tables[0], tables[1]), reach), Choices(scaled)


@cache
def _domain_schema(others: int) -> Schema:
    """A schema of that many rows that are nearly alike, and one that is like none of them."""
    if others == 1:
        return Schema((Category("c", ("a", "b"), rho=0.0),))
    return Schema((Integer("x", 0, others - 1, missing=True, gamma=1e-6, rho=0.0),))


def with_entropy(plan: ReleasePlan, entropy: int) -> ReleasePlan:
    """The same settings with other public draws."""
    return plan if plan.entropy == entropy else replace(plan, entropy=entropy)
