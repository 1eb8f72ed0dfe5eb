"""Vertices of a hypercube: any subset of d labels (Vembu et al. section 4, multi-label classification)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
from scipy.special import expit, logsumexp

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.structured.observations import Known
from thesis_cli.structured.pairs import (
    as_matrices,
    bit_rows,
    chunks,
    inner_masses,
    inner_sums,
    member_sums,
    subset_sums,
)
from thesis_cli.structured.space import Maxima, Space

LARGEST_PAIRS = 20
"""Labels for which all subsets are summed exactly."""

REACH = {np.float32: 70.0, np.float64: 690.0, None: np.inf}
"""Sum of positive weights up to which no sum overflows, by the type of potentials; None for logarithms. The
empty set has potential 1, so that one that underflows does not count."""

STARTS = 20
"""Random starts of a local search."""


class Hypercube(Space):
    """Rows of bits with the features y_i: bits are independent given the weights.

    Parameters
    ----------
    elements : number of labels d.
    """

    name, word = "hypercube", "label"

    def __init__(self, elements: int) -> None:
        self.elements = self.width = self.dimension = elements
        self.radius = elements**0.5

    def size(self) -> int:
        return int(2**self.elements)

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        return rng.integers(0, 2, (count, self.elements))

    def features(self, structures: Ints) -> Floats:
        return structures.astype(float)

    def valid(self, structures: Ints) -> Bools:
        return np.asarray(((structures == 0) | (structures == 1)).all(axis=1))

    def blocks(self, rows: int = 2**14) -> Iterator[Ints]:
        for part in chunks(self.size(), 1, rows):
            yield bit_rows(np.arange(part.start, part.stop), self.elements)

    def log_partition(self, weights: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, self.checked(weights)).sum(axis=1))

    def mean_features(self, weights: Floats) -> Floats:
        return np.asarray(expit(self.checked(weights)))

    def maximise(self, weights: Floats) -> Maxima:
        weights = self.checked(weights)
        return Maxima(np.maximum(weights, 0.0).sum(axis=1), (weights > 0).astype(np.int64), exact=True)

    def best(self, weights: Floats, count: int) -> tuple[Floats, Ints]:
        """From the best subset, labels are changed whose weights together are smallest."""
        weights, count = self.checked(weights), min(count, self.size())
        values, found = np.empty((len(weights), count)), np.empty((len(weights), count, self.width), np.int64)
        for row, vector in enumerate(weights):
            order = np.argsort(np.abs(vector), kind="stable")
            losses = np.abs(vector)[order].tolist()
            highest, bits = np.maximum(vector, 0.0).sum(), (vector > 0).astype(np.int64)
            heap: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
            for place in range(count):
                loss, changed = heapq.heappop(heap)
                values[row, place], found[row, place] = highest - loss, bits
                found[row, place, order[np.array(changed, np.int64)]] ^= 1
                after = changed[-1] + 1 if changed else 0
                if after < len(losses):
                    heapq.heappush(heap, (loss + losses[after], (*changed, after)))
                    if changed:
                        heapq.heappush(heap, (loss - losses[after - 1] + losses[after], (*changed[:-1], after)))
        return values, found

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        chances = expit(self.checked(weights[None])[0])
        return np.asarray((rng.random((count, self.elements)) < chances).astype(np.int64))


class PairHypercube(Hypercube):
    """Rows of bits with the features y_i, then y_i y_j for i < j in the order of `pair_table`.

    Sums over all subsets are exact up to 20 labels. Log-potentials of all 2^d subsets come from
    those without the highest label, so that one costs two additions.

    Parameters
    ----------
    elements : number of labels d.
    rough : whether `sums` may have six digits, in half the time.
    """

    diagonal = True

    def __init__(self, elements: int, rough: bool = False) -> None:
        super().__init__(elements)
        self._kinds = list(REACH) if rough else list(REACH)[1:]
        self.precision = np.float32 if rough else np.float64
        self.dimension = elements + elements * (elements - 1) // 2
        self.radius = self.dimension**0.5

    def features(self, structures: Ints) -> Floats:
        first, second = np.triu_indices(self.elements, 1)
        return np.asarray(np.hstack([structures, structures[:, first] * structures[:, second]]).astype(float))

    def scores(self, structures: Ints, weights: Floats) -> Floats:
        single, matrices = self._parts(weights[None])
        bits = structures.astype(float)
        return np.asarray(bits @ single[0] + ((bits @ matrices[0]) * bits).sum(axis=1) / 2)

    def log_partition(self, weights: Floats) -> Floats:
        weights = self.checked(weights)
        self._check_labels()
        found = np.empty(len(weights))
        for part in chunks(len(weights), self.size()):
            found[part] = logsumexp(self._all_scores(weights[part]), axis=1)
        return found

    def mean_features(self, weights: Floats) -> Floats:
        weights = self.checked(weights)
        self._check_labels()
        found = np.empty((len(weights), self.dimension))
        for part in chunks(len(weights), self.size()):
            scores = self._all_scores(weights[part])
            masses = np.exp(scores - logsumexp(scores, axis=1)[:, None])
            found[part, : self.elements] = member_sums(masses)
            found[part, self.elements :] = inner_masses(masses)
        return found

    def rough(self) -> PairHypercube:
        return PairHypercube(self.elements, rough=True)

    def surrogate(self) -> ConditionalPairs:
        return ConditionalPairs(self.elements, rough=True)

    def sums(self, weights: Floats) -> tuple[Floats, Floats]:
        from thesis_cli.structured.sum_kernels import pair_sums

        weights = np.ascontiguousarray(self.checked(weights))
        self._check_labels()
        log_z, mean = np.empty(len(weights)), np.empty(weights.shape)
        highest, done = np.maximum(weights, 0.0).sum(axis=1), np.zeros(len(weights), bool)
        for kind in self._kinds:
            here = np.flatnonzero(~done & (highest <= REACH[kind]))
            done[here] = True
            if kind is None and here.size:
                log_z[here], mean[here] = self.log_partition(weights[here]), self.mean_features(weights[here])
            elif here.size:
                pair_sums(weights, here, self.elements, np.empty((2, self.size()), kind), log_z, mean)
        return log_z, mean

    def maximise(self, weights: Floats) -> Maxima:
        """A best subset: exact up to 20 labels, beyond that the best of a local search."""
        weights = self.checked(weights)
        if self.elements > LARGEST_PAIRS:
            return self._climb(weights)
        values, found = self.best(weights, 1)
        return Maxima(values[:, 0], found[:, 0], exact=True)

    def best(self, weights: Floats, count: int) -> tuple[Floats, Ints]:
        from thesis_cli.structured.sum_kernels import best_subsets

        weights, count = self.checked(weights), min(count, self.size())
        self._check_labels()
        values, found = np.empty((len(weights), count)), np.empty((len(weights), count), np.int64)
        best_subsets(np.ascontiguousarray(weights), self.elements, values, found)
        return values, bit_rows(found.ravel(), self.elements).reshape(len(weights), count, -1)

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        weights = self.checked(weights[None])
        self._check_labels()
        scores = self._all_scores(weights)[0]
        chances = np.cumsum(np.exp(scores - scores.max()))
        at = np.searchsorted(chances, rng.random(count) * chances[-1], side="right")
        return bit_rows(at, self.elements)

    def factor_graph(self, weights: Floats) -> FactorGraph:
        """One weight vector, shape (dimension,), as a factor graph of a bit a label, with tables of the weights
        that are not 0."""
        (single,), (matrix,) = self._parts(self.checked(weights[None]))
        one, both = np.eye(2)[1], np.diag([0.0, 1.0])
        factors = [Factor((i,), one * single[i]) for i in np.flatnonzero(single).tolist()]
        factors += [Factor((i, j), both * matrix[i, j]) for i, j in np.argwhere(np.triu(matrix)).tolist()]
        return FactorGraph((2,) * self.elements, factors)

    def _parts(self, weights: Floats) -> tuple[Floats, Floats]:
        return weights[:, : self.elements], as_matrices(weights[:, self.elements :], self.elements)

    def _all_scores(self, weights: Floats) -> Floats:
        single, matrices = self._parts(weights)
        return subset_sums(single) + inner_sums(matrices)

    def _check_labels(self) -> None:
        self.check_exact(LARGEST_PAIRS, "labels")

    def _climb(self, weights: Floats) -> Maxima:
        """Flip the best bit while that helps, from the empty set, the full set and random starts."""
        rng = np.random.default_rng(0)
        starts = np.vstack([np.zeros(self.elements), np.ones(self.elements), self.sample(STARTS, rng)])
        values, best = np.empty(len(weights)), np.empty((len(weights), self.width), np.int64)
        for row, (single, matrix) in enumerate(zip(*self._parts(weights), strict=True)):
            bits = starts.copy()
            while True:
                gains = (1 - 2 * bits) * (single + bits @ matrix)
                at = gains.argmax(axis=1)
                better = np.flatnonzero(gains[np.arange(len(bits)), at] > 1e-12)
                if not better.size:
                    break
                bits[better, at[better]] = 1 - bits[better, at[better]]
            rows = bits.astype(np.int64)
            scores = self.scores(rows, weights[row])
            values[row], best[row] = scores.max(), rows[scores.argmax()]
        return Maxima(values, best, exact=False)


class ConditionalPairs(PairHypercube):
    """Rows of bits with the weights of `PairHypercube`, and their pseudo-likelihood (Besag 1975) for the likelihood:
    the product of the probabilities of each label given all others, whose sum over subsets is not 1."""

    linear = False

    def sums(self, weights: Floats) -> tuple[Floats, Floats]:
        return np.zeros(len(weights)), np.zeros(weights.shape)

    def seen(self, weights: Floats, structures: Ints, known: Known | None = None) -> tuple[Floats, Floats]:
        from thesis_cli.structured.sum_kernels import conditional_sums

        weights = np.ascontiguousarray(self.checked(weights))
        values, slopes = np.empty(len(weights)), np.empty(weights.shape)
        conditional_sums(weights, np.ascontiguousarray(structures), values, slopes)
        return values, slopes
