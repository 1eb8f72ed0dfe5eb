"""The number in a release that tells two known tables apart best.

For noise on a vector it is the likelihood ratio of both tables, whose vectors without noise are
known (Neyman and Pearson): for Gaussian noise the inner product with their difference. A second
score learns how the noise is correlated, which tells more if coordinates share noise or one has
none. For the exponential mechanism it is the exact likelihood ratio of what was chosen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.audit_bounds import CHOOSING, clopper_pearson_lower_bound
from thesis_cli.privacy.audit_pairs import Choices, Pair, choice_pairs, vector_pair, with_entropy
from thesis_cli.privacy.exponential import candidate, enumerate_domain
from thesis_cli.privacy.mechanism import Budget, NoiseName, analytic_scale
from thesis_cli.privacy.release import ReleaseRequest
from thesis_cli.privacy.release_record import Method, Record, SmallTable

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

    @abstractmethod
    def add(self, record: Record, side: int) -> None:
        """Keep what a release of table `side` shows."""

    @abstractmethod
    def scores(self, factor: float = 1.0) -> Scores:
        """Scores of the releases kept, or of what they would be if the noise were multiplied by a
        factor.
        """

    @abstractmethod
    def anew(self, request: ReleaseRequest) -> Subject:
        """The same tables under other settings, without releases."""

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
        values, calibration = record.noisy_vector
        means = self._means(record.entropy)
        if len(values) != len(means[0]):
            raise InputError("a released vector has another length than its embedding", "they must be of one release")
        self.seen[side].append(Reading(np.array(values), means, calibration.scale, calibration.granularity))

    def anew(self, request: ReleaseRequest) -> NoisyVectors:
        return NoisyVectors(self.name, self.budget, replace(self.pair, request=request), self.mu)

    def scores(self, factor: float = 1.0) -> Scores:
        residuals, shifts = [], []
        width = max(reading.vector.size for readings in self.seen for reading in readings)
        for side, readings in enumerate(self.seen):
            scale = np.array([[reading.scale] for reading in readings])
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

        found, expected = 0, 0.0
        grids: dict[tuple[float, float], list[Floats]] = {}
        for side, readings in enumerate(self.seen):
            for reading in readings:
                steps = np.rint((reading.vector - reading.means[side]) / reading.granularity)
                grids.setdefault((reading.scale, reading.granularity), []).append(steps)
        for (scale, granularity), parts in grids.items():
            ordered = np.sort(np.concatenate(parts))
            found += int((np.diff(ordered) <= 1).sum())
            width = (4 if self.mu is None else 2 * math.sqrt(math.pi)) * scale
            expected += ordered.size * (ordered.size - 1) / 2 * 3 * granularity / width
        return found, math.ceil(pdtrik(confidence, expected))

    def _means_of(self, entropy: int) -> tuple[Floats, Floats]:
        request = with_entropy(self.pair.request, entropy)
        embedding = request.embedding()
        one, other = (embedding.mean([request.schema.encode(table)]) for table in self.pair.tables)
        return one, other


@dataclass(frozen=True)
class Reading:
    """A released vector, both tables' vectors without noise, and scale and grid of the noise."""

    vector: Floats
    means: tuple[Floats, Floats]
    scale: float
    granularity: float


@dataclass
class SmallTables(Subject):
    """Small tables that the exponential mechanism chose."""

    name: str
    budget: Budget
    pair: Pair
    choices: Choices
    seen: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def __post_init__(self) -> None:
        request, self._places = self.pair.request, {}
        domain = enumerate_domain(request.schema)
        for index in range(self.choices.scaled.shape[1]):
            rows = domain[candidate(index, len(domain), request.size)]
            self._places[SmallTable.of(rows)] = index

    def add(self, record: Record, side: int) -> None:
        if record.rows is None:
            raise InputError("a release by exponential has no small table", "it must have one")
        self.seen[side].append(self._places[record.rows])

    def anew(self, request: ReleaseRequest) -> SmallTables:
        return SmallTables(self.name, self.budget, replace(self.pair, request=request), self.choices)

    def scores(self, factor: float = 1.0) -> Scores:
        planted = self.choices.probabilities(factor)
        chosen = self.seen if factor == 1 else invented(planted, [len(x) for x in self.seen])
        ratios = _ratios(self.choices)
        return ratios[np.newaxis, chosen[0]], ratios[np.newaxis, chosen[1]]


def _stacked(vectors: list[Floats], width: int) -> Floats:
    """Vectors as rows, with zeros where one has fewer coordinates: public draws may differ."""
    found = np.zeros((len(vectors), width))
    for row, vector in zip(found, vectors, strict=True):
        row[: vector.size] = vector
    return found


def subject(method: Method, noise: NoiseName, budget: Budget, runs: int, confidence: float) -> Subject:
    """The worst pair that a search finds for a method and budget.

    Parameters
    ----------
    runs, confidence : releases of each table, and the confidence of their bound, by which pairs for
        the exponential mechanism are compared.
    """
    if method == "exponential":
        pair, choices = max(choice_pairs(budget), key=lambda entry: _expected(entry[1], runs, confidence))
        return SmallTables(method, budget, pair, choices)
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
