"""The number in a release that tells two known tables apart best.

For noise on a vector it is the likelihood ratio of both tables, whose vectors without noise are
known (Neyman and Pearson): for Gaussian noise the inner product with their difference. A second
score learns how the noise is correlated, which tells more if coordinates share noise or one has
none. For the exponential mechanism it is the exact likelihood ratio of what was chosen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.modules import named
from thesis_cli.privacy.audit.bounds import CHOOSING, clopper_pearson_lower_bound
from thesis_cli.privacy.audit.pairs import (
    Choices,
    Pair,
    by_record,
    choice_pairs,
    replayed,
    staged_pair,
    vector_pair,
    with_entropy,
)
from thesis_cli.privacy.mechanisms.mechanism import Budget, NoiseName, analytic_scale
from thesis_cli.privacy.release.copula import noisy_stages
from thesis_cli.privacy.release.exponential import ChosenRows, SmallTable, candidate, chosen_rows, enumerate_domain
from thesis_cli.privacy.release.methods import METHODS
from thesis_cli.privacy.release.record import Record
from thesis_cli.privacy.release.release import ReleasePlan
from thesis_cli.privacy.release.vectors import NoisyVector, noisy_vector, vector_method

Scores = tuple[Floats, Floats]
"""Scores of the releases of either table, shapes (K, n) for K kinds of scores."""

RIDGE = 1e-12
"""Least variance of noise, relative to what the record claims, that the second score believes."""
WIDEST = 64
"""Most coordinates whose correlation is learned."""
DIGITS = 12
"""Digits of the likelihood ratio of Laplace noise, which is often at its maximum exactly."""
TRIED = 2
"""Seed of the invented choices by which pairs for the exponential mechanism are compared."""


class Subject(ABC):
    """Releases of a pair of tables by one method, and what they claim.

    Attributes
    ----------
    name : method, and the noise if it is not Gaussian.
    budget : the claim; delta is 0 for a method that does not spend it.
    mu : mu of Gaussian differential privacy that the budget allows; None without Gaussian noise.
    """

    name: str
    budget: Budget
    pair: Pair
    mu: float | None = None
    _reference: tuple[int, Record] | None = None

    @abstractmethod
    def add(self, record: Record, side: int) -> None:
        """Keep what a release of table `side` shows."""

    @abstractmethod
    def scores(self, factor: float = 1.0) -> Scores:
        """Scores of the releases kept, or of what they would be if the noise were multiplied by a
        factor.
        """

    @abstractmethod
    def anew(self, plan: ReleasePlan) -> Subject:
        """The same tables under other settings, without releases."""

    def difference(self, record: Record, side: int) -> str:
        """First difference of a record's public part from that of the other table's release by the
        library, with the same public draws; empty if nothing does.
        """
        if self._reference is None or self._reference[0] != record.entropy:
            plan = with_entropy(self.pair.plan, record.entropy)
            self._reference = record.entropy, public_part(by_record(self.pair.tables[1 - side], plan))
        return different(public_part(record), self._reference[1])

    def repeats(self, confidence: float) -> tuple[int, int]:
        """Number of values of the noise that occurred before, and the number that chance exceeds
        with probability at most 1 - confidence.
        """
        return 0, 0


@dataclass
class NoisyVectors(Subject):
    """Releases of vectors with noise.

    Attributes
    ----------
    seen : for each table, the released vectors and their noise; both with the vectors of both
        tables without noise and the scale.
    """

    name: str
    budget: Budget
    pair: Pair
    mu: float | None
    seen: tuple[list[Reading], list[Reading]] = field(default_factory=lambda: ([], []))

    def __post_init__(self) -> None:
        self._means = lru_cache(maxsize=8)(self._means_of)

    def add(self, record: Record, side: int) -> None:
        values, calibration = noisy_vector(record)
        means = self._means(record.entropy)
        if len(values) != len(means[0]):
            raise InputError("a released vector has another length than its embedding", "they must be of one release")
        noise = (np.full(len(values), x) for x in (calibration.scale, calibration.granularity))
        self.seen[side].append(Reading(np.array(values), means, *noise))

    def anew(self, plan: ReleasePlan) -> NoisyVectors:
        return NoisyVectors(self.name, self.budget, replace(self.pair, plan=plan), self.mu)

    def scores(self, factor: float = 1.0) -> Scores:
        residuals, shifts = [], []
        width = max(reading.vector.size for readings in self.seen for reading in readings)
        for side, readings in enumerate(self.seen):
            scale = _stacked([reading.scale for reading in readings], width, 1.0)
            one, other = (_stacked([reading.means[i] for reading in readings], width) / scale for i in range(2))
            released = _stacked([reading.vector for reading in readings], width) / scale
            residuals.append((released - (one, other)[side]) * factor)
            shifts.append(other - one)
        # Of table 0 the vectors are the residuals, of table 1 they lie a shift beyond.
        vectors = [residuals[0], residuals[1] + shifts[1]]
        if self.mu is None:
            ratios = [np.abs(x).sum(1) - np.abs(x - d).sum(1) for x, d in zip(vectors, shifts, strict=True)]
            first = [np.round(ratio, DIGITS) for ratio in ratios]
        else:
            first = [((x - d / 2) * d).sum(1) for x, d in zip(vectors, shifts, strict=True)]
        kinds = [first]
        if vectors[0].shape[1] <= WIDEST:
            noise = np.concatenate([x[::CHOOSING] for x in residuals])
            covariance = noise.T @ noise / len(noise) + RIDGE * np.eye(noise.shape[1])
            learned = [np.linalg.solve(covariance, d.T).T for d in shifts]
            kinds.append([((x - d / 2) * w).sum(1) for x, d, w in zip(vectors, shifts, learned, strict=True)])
        return np.stack([kind[0] for kind in kinds]), np.stack([kind[1] for kind in kinds])

    def repeats(self, confidence: float) -> tuple[int, int]:
        """See `Subject.repeats`. All coordinates of all releases of both tables count together.

        Two draws of density p on a grid of spacing g are within a grid point of each other with
        probability 3 g times the integral of p^2, which is 1 / (2 sqrt(pi) sigma) or 1 / (4 b).
        """
        from scipy.special import pdtrik

        readings = [(reading, side) for side in range(2) for reading in self.seen[side]]
        steps = np.concatenate([np.rint((x.vector - x.means[side]) / x.granularity) for x, side in readings])
        grids = np.concatenate([x.granularity for x, _ in readings])
        widths = np.concatenate([x.scale for x, _ in readings]) * (4 if self.mu is None else 2 * math.sqrt(math.pi))
        found, expected = 0, 0.0
        for width in np.unique(widths):
            same = widths == width
            ordered = np.sort(steps[same])
            found += int((np.diff(ordered) <= 1).sum())
            expected += ordered.size * (ordered.size - 1) / 2 * 3 * float(grids[same][0]) / float(width)
        return found, math.ceil(pdtrik(confidence, expected))

    def _means_of(self, entropy: int) -> tuple[Floats, Floats]:
        plan = with_entropy(self.pair.plan, entropy)
        embedding = vector_method(plan.method).embedding(plan)
        one, other = (embedding.mean([plan.schema.encode(table)]) for table in self.pair.tables)
        return one, other


@dataclass(frozen=True)
class Reading:
    """A released vector, both tables' vectors without noise, and scale and grid of the noise on
    each coordinate.
    """

    vector: Floats
    means: tuple[Floats, Floats]
    scale: Floats
    granularity: Floats


class StagedVectors(NoisyVectors):
    """Releases of several vectors with Gaussian noise, whose features depend on earlier ones.

    Given the noisy vectors of the stages before, the shift of a stage is known. The logarithm of
    the likelihood ratio is the sum of those of the stages. Both tables are released once more with
    the noisy vectors held; whole records must then be the same.
    """

    def add(self, record: Record, side: int) -> None:
        stages = noisy_stages(record)
        plan = with_entropy(self.pair.plan, record.entropy)
        both = [replayed(table, plan, stages) for table in self.pair.tables]
        self._others = [public_part(found) for found, _ in both]
        one, other = (np.concatenate(vectors) for _, vectors in both)
        values = np.concatenate([stage.vector for stage in stages])
        sizes = [len(stage.vector) for stage in stages]
        scale = np.repeat([stage.scale for stage in stages], sizes)
        granularity = np.repeat([stage.granularity for stage in stages], sizes)
        self.seen[side].append(Reading(values, (one, other), scale, granularity))

    def difference(self, record: Record, side: int) -> str:
        """See `Subject.difference`; of the record last added."""
        own = public_part(record)
        return next(filter(None, (different(own, other) for other in self._others)), "")

    def anew(self, plan: ReleasePlan) -> StagedVectors:
        return StagedVectors(self.name, self.budget, replace(self.pair, plan=plan), self.mu)


@dataclass
class SmallTables(Subject):
    """Small tables that the exponential mechanism chose."""

    name: str
    budget: Budget
    pair: Pair
    choices: Choices
    seen: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def __post_init__(self) -> None:
        plan, self._places = self.pair.plan, {}
        domain = enumerate_domain(plan.schema)
        for index in range(self.choices.scaled.shape[1]):
            rows = domain[candidate(index, len(domain), plan.size)]
            self._places[SmallTable.of(rows)] = index

    def add(self, record: Record, side: int) -> None:
        self.seen[side].append(self._places[chosen_rows(record)])

    def anew(self, plan: ReleasePlan) -> SmallTables:
        return SmallTables(self.name, self.budget, replace(self.pair, plan=plan), self.choices)

    def scores(self, factor: float = 1.0) -> Scores:
        planted = self.choices.probabilities(factor)
        chosen = self.seen if factor == 1 else invented(planted, [len(x) for x in self.seen])
        ratios = _ratios(self.choices)
        return ratios[np.newaxis, chosen[0]], ratios[np.newaxis, chosen[1]]


def _stacked(vectors: list[Floats], width: int, rest: float = 0.0) -> Floats:
    """Vectors as rows, filled up where one has fewer coordinates: public draws may differ."""
    found = np.full((len(vectors), width), rest)
    for row, vector in zip(found, vectors, strict=True):
        row[: vector.size] = vector
    return found


def public_part(record: Record) -> Record:
    """A record without the vector or rows that the mechanism returned, and without how rows were
    made from them.
    """
    output = record.output
    if isinstance(output, NoisyVector):
        output = NoisyVector((float(len(output.vector)),))
    elif isinstance(output, ChosenRows):
        output = ChosenRows(replace(output.rows, reals=(), codes=()))
    return replace(record, output=output, objective=None, made=None)


def different(one: Record, other: Record) -> str:
    """The first lines of the texts of two records that differ; empty if none do.

    Their repr shows as many digits as their files, and is made in less time.
    """
    if repr(one) == repr(other):
        return ""
    return first_difference(one.to_json(), other.to_json()) or f"{one} beside {other}"


def first_difference(one: str, other: str) -> str:
    """The first lines of two texts that differ; empty if none do."""
    pairs = zip(*([*text.splitlines(), ""] for text in (one, other)), strict=False)
    return next((f"{a.strip()} beside {b.strip()}" for a, b in pairs if a != b), "")


def subject(method: str, noise: NoiseName, budget: Budget, runs: int, confidence: float) -> Subject:
    """The worst pair that a search finds for a method and budget, by the function that the method's row
    names.

    Parameters
    ----------
    runs, confidence : releases of each table, and the confidence of their bound, by which pairs for
        a choice are compared.
    """
    find: Callable[..., Subject] = named(METHODS[method].audit)
    return find(method, noise, budget, runs, confidence)


def choice_subject(method: str, noise: NoiseName, budget: Budget, runs: int, confidence: float) -> SmallTables:
    """Small tables of a method that chooses one by the exponential mechanism.

    Parameters
    ----------
    runs, confidence : number of releases of each table, and confidence level; they decide the pair of
        tables, that with the largest bound to be expected.
    """
    pairs = choice_pairs(method, budget)
    pair, choices = max(pairs, key=lambda entry: _expected(entry[1], runs, confidence))
    return SmallTables(method, budget, pair, choices)


def staged_subject(method: str, noise: NoiseName, budget: Budget, runs: int, confidence: float) -> StagedVectors:
    """Noisy vectors of a method with several stages; `runs` and `confidence` change nothing, and `noise` is
    Gaussian.
    """
    return StagedVectors(method, budget, staged_pair(method, budget), 1 / analytic_scale(1.0, budget))


def vector_subject(method: str, noise: NoiseName, budget: Budget, runs: int, confidence: float) -> NoisyVectors:
    """Noisy vectors of a method with one; `runs` and `confidence` change nothing."""
    mu = 1 / analytic_scale(1.0, budget) if noise == "gaussian" else None
    name = method if noise == "gaussian" else f"{method}, {noise}"
    return NoisyVectors(name, budget, vector_pair(method, noise, budget), mu)


def _expected(choices: Choices, runs: int, confidence: float) -> float:
    """Bound on epsilon that invented choices give."""
    one, other = invented(choices.probabilities(), [runs, runs])
    ratios = _ratios(choices)
    return clopper_pearson_lower_bound(ratios[other], ratios[one], delta=0.0, confidence=confidence).epsilon


def invented(probabilities: Floats, runs: list[int]) -> tuple[list[int], list[int]]:
    """Choices of these probabilities, shape (2, S), from a fixed seed: never a release."""
    rng = np.random.default_rng(TRIED)
    one, other = (rng.choice(len(p), n, p=p).tolist() for p, n in zip(probabilities, runs, strict=True))
    return one, other


def _ratios(choices: Choices) -> Floats:
    """Logarithm of the likelihood ratio of each candidate."""
    one, other = choices.probabilities()
    found: Floats = np.log(other) - np.log(one)
    return found
