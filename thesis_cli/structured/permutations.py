"""Permutations of d items, and their lattices (Vembu et al. section 4, label ranking).

In a structure y, y_i is the position of item i.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import linear_sum_assignment

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.structured.lattice import Lattice, LatticeSpace, Level, Subsets
from thesis_cli.structured.local_search import best_order
from thesis_cli.structured.pairs import as_matrices, chunks, member_sums, pair_table, subset_sums
from thesis_cli.structured.space import Maxima

LARGEST_PERMANENT = 22
"""Items for which permanents are summed exactly."""

LARGEST_ORDER = 18
"""Items for which sums and maxima over orders are exact."""

LEAST = -550.0
"""ln of the least sum, of potentials up to 1, that keeps its digits in a double."""

FORBIDDEN = -1e12
"""Score of an edge on no path that counts."""


class Permutations(LatticeSpace):
    """Permutations whose features are those of a subclass.

    Parameters
    ----------
    elements : number of items d.
    """

    name, word = "permutations", "item"
    largest = LARGEST_PERMANENT

    def __init__(self, elements: int) -> None:
        self.elements = self.width = elements

    def size(self) -> int:
        return math.factorial(self.elements)

    def text(self, structure: Ints, names: Sequence[str]) -> str:
        return " > ".join(names[k] for k in np.argsort(structure))

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        return np.asarray(rng.permuted(np.tile(np.arange(self.elements), (count, 1)), axis=1))

    def valid(self, structures: Ints) -> Bools:
        return np.asarray((np.sort(structures, axis=1) == np.arange(self.elements)).all(axis=1))

    def blocks(self, rows: int = 2**14) -> Iterator[Ints]:
        everyone = itertools.permutations(range(self.elements))
        while block := list(itertools.islice(everyone, rows)):
            yield np.array(block, dtype=np.int64)

    def sums(self, weights: Floats, before: Ints | None = None) -> tuple[Floats, Floats]:
        """ln of the sum over all permutations, or over those that respect what is known of them,
        for each weight vector, and its gradient; shapes (n,), (n, dimension).

        Parameters
        ----------
        weights : shape (n, dimension).
        before : items that come before each, as bits of a number, shape (n, d); None if any
            permutation counts.
        """
        from thesis_cli.structured.sum_kernels import order_sums

        weights = self.checked(weights)
        self._lattice()  # refuses what is too large
        before = np.zeros((len(weights), self.elements), np.int64) if before is None else before
        log_z, mean = np.empty(len(weights)), np.empty((len(weights), self.dimension))
        for part in chunks(len(weights), self.elements * int(self._row_of.max() + 1)):
            scores = self._scored(weights[part])
            highest = scores.max(axis=1)  # each item is added once
            found, masses = np.empty(len(scores)), np.empty(scores.shape)
            factors = np.ascontiguousarray(np.exp(scores - highest[:, None]))
            order_sums(factors, self._row_of, before[part], found, masses)
            far = found < LEAST
            found += highest.sum(axis=1)
            if far.any():
                found[far], masses[far] = self._sums_in_logs(scores[far], before[part][far])
            log_z[part], mean[part] = found, self._gathered(masses)
        return log_z, mean

    def seen(self, weights: Floats, structures: Ints, before: Ints | None = None) -> tuple[Floats, Floats]:
        values, slopes = super().seen(weights, structures)
        if before is not None:
            partly = ~is_complete(before)
            values[partly], slopes[partly] = self.sums(weights[partly], before[partly])
        return values, slopes

    def _sums_in_logs(self, scores: Floats, before: Ints) -> tuple[Floats, Floats]:
        """What `order_sums` finds, of any scores."""
        lattice, sets = orders(self.elements), np.arange(2**self.elements)
        log_z, masses = np.empty(len(scores)), np.zeros_like(scores)
        for row, known in enumerate(before):
            edges = scores[row, self._row_of] + np.where(known & ~sets[:, None], FORBIDDEN, 0.0)
            edges = edges.reshape(1, -1)
            log_z[row] = lattice.log_partition(edges)[0]
            np.add.at(masses[row], self._row_of, lattice.mean_labels(edges).reshape(len(sets), -1))
        return log_z, masses

    @cached_property
    def _row_of(self) -> Ints:
        """Row of `_scored` for each set that items follow: its size."""
        return np.minimum(np.bitwise_count(np.arange(2**self.elements)), self.elements - 1).astype(np.int64)

    @abstractmethod
    def _scored(self, weights: Floats) -> Floats:
        """Scores of the items that follow sets, shape (n, rows, d)."""

    @abstractmethod
    def _gathered(self, masses: Floats) -> Floats:
        """Features of masses of such items, shape (n, dimension); the adjoint of `_scored`."""

    def _decoded(self, sets: Ints) -> Ints:
        """The element that each level of a path adds: positions of items 0, 1, ..."""
        return added(sets)


class PositionPermutations(Permutations):
    """The features are the d * d indicators that item i is at position p, at i * d + p.

    ln Z is the logarithm of a permanent, and the maximum is an assignment.
    """

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.dimension = elements * elements
        self.radius = elements**0.5

    def features(self, structures: Ints) -> Floats:
        found = np.zeros((len(structures), self.dimension))
        np.put_along_axis(found, structures + self.elements * np.arange(self.elements), 1.0, axis=1)
        return found

    def scores(self, structures: Ints, weights: Floats) -> Floats:
        return np.asarray(weights[structures + self.elements * np.arange(self.elements)].sum(axis=1))

    def maximise(self, weights: Floats) -> Maxima:
        weights = self.checked(weights)
        best = np.empty((len(weights), self.elements), np.int64)
        for row, matrix in enumerate(weights.reshape(-1, self.elements, self.elements)):
            best[row] = linear_sum_assignment(matrix, maximize=True)[1]
        values = np.take_along_axis(weights, best + self.elements * np.arange(self.elements), axis=1).sum(axis=1)
        return Maxima(values, best, exact=True)

    def _lattice(self) -> Lattice:
        self.check_exact(LARGEST_PERMANENT, "items")
        return assignments(self.elements)

    def _labelled(self, weights: Floats) -> Floats:
        return weights

    def _unlabelled(self, masses: Floats) -> Floats:
        return masses

    def _scored(self, weights: Floats) -> Floats:
        return weights.reshape(-1, self.elements, self.elements).transpose(0, 2, 1)

    def _gathered(self, masses: Floats) -> Floats:
        return masses.transpose(0, 2, 1).reshape(len(masses), -1)


class RankPermutations(Permutations):
    """The features are positions as numbers from 0, the first, to 1, the last: a score for each
    item. The maximum sorts the scores.
    """

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.dimension = elements
        self._places = np.arange(elements) / max(1, elements - 1)
        self.radius = float(np.linalg.norm(self._places))

    def features(self, structures: Ints) -> Floats:
        return np.asarray(self._places[structures])

    def maximise(self, weights: Floats) -> Maxima:
        weights = self.checked(weights)
        best = np.argsort(np.argsort(weights, axis=1, kind="stable"), axis=1, kind="stable")
        return Maxima((weights * self._places[best]).sum(axis=1), best, exact=True)

    def _lattice(self) -> Lattice:
        self.check_exact(LARGEST_PERMANENT, "items")
        return assignments(self.elements)

    def _labelled(self, weights: Floats) -> Floats:
        return np.asarray((weights[:, :, None] * self._places).reshape(len(weights), -1))

    def _unlabelled(self, masses: Floats) -> Floats:
        return np.asarray(masses.reshape(-1, self.elements, self.elements) @ self._places)

    def _scored(self, weights: Floats) -> Floats:
        return np.asarray(weights[:, None, :] * self._places[:, None])

    def _gathered(self, masses: Floats) -> Floats:
        return np.asarray(self._places @ masses)


class OrderPermutations(Permutations):
    """The features are d(d - 1)/2 indicators that item i comes before item j, i < j, in the order of
    `pair_table`.
    """

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.dimension = elements * (elements - 1) // 2
        self.radius = self.dimension**0.5

    def features(self, structures: Ints) -> Floats:
        first, second = np.triu_indices(self.elements, 1)
        return np.asarray((structures[:, first] < structures[:, second]).astype(float))

    def maximise(self, weights: Floats) -> Maxima:
        """A best order: exact up to 18 items, beyond that the best of a local search."""
        weights = self.checked(weights)
        if self.elements > LARGEST_ORDER:
            before = np.triu(as_matrices(weights, self.elements))
            best = np.array([np.argsort(best_order(matrix)) for matrix in before], dtype=np.int64)
            best = best.reshape(-1, self.width)
            found = [self.scores(row[None], vector)[0] for row, vector in zip(best, weights, strict=True)]
            return Maxima(np.array(found), best, exact=False)
        return self._best_paths(weights)

    def _lattice(self) -> Lattice:
        self.check_exact(LARGEST_ORDER, "items")
        return orders(self.elements)

    def _labelled(self, weights: Floats) -> Floats:
        before = np.triu(as_matrices(weights, self.elements))
        found = np.empty((len(weights), 2**self.elements, self.elements))
        for item in range(self.elements):
            found[:, :, item] = subset_sums(before[:, :, item])
        return found.reshape(len(weights), -1)

    def _unlabelled(self, masses: Floats) -> Floats:
        masses = masses.reshape(len(masses), -1, self.elements)
        table, found = pair_table(self.elements), np.empty((len(masses), self.dimension))
        for item in range(1, self.elements):
            found[:, table[:item, item]] = member_sums(masses[:, :, item])[:, :item]
        return found

    @cached_property
    def _row_of(self) -> Ints:
        return np.arange(2**self.elements)

    def _scored(self, weights: Floats) -> Floats:
        return self._labelled(weights).reshape(len(weights), -1, self.elements)

    def _gathered(self, masses: Floats) -> Floats:
        return self._unlabelled(masses)

    def _decoded(self, sets: Ints) -> Ints:
        """Positions of items from the items at positions."""
        return np.argsort(added(sets), axis=1)


def is_complete(before: Ints) -> Bools:
    """Whether the items known to come before each, as bits, determine the permutation; (n, d) to (n,)."""
    d = before.shape[1]
    return np.asarray(np.bitwise_count(before).sum(axis=1) == d * (d - 1) // 2)


def added(sets: Ints) -> Ints:
    """The element that each step of a path adds to a set of bits, shape (count, steps)."""
    steps = sets[:, 1:] ^ sets[:, :-1]
    return np.asarray(np.log2(np.maximum(steps, 1)).round().astype(np.int64))


class _SubsetLattice(Lattice):
    """One node for each subset; an edge adds one element."""

    def __init__(self, elements: int) -> None:
        self.elements = elements
        self.subsets = Subsets(elements)
        self.nodes, self.levels = 2**elements, elements
        self.edges = elements * 2 ** (elements - 1)
        starts = self.subsets.starts
        self.largest = int(max(size * (starts[size + 1] - starts[size]) for size in range(1, elements + 1)))

    def level(self, number: int) -> Level:
        size = number + 1
        numbers = self.subsets.of_size(size)
        added = self.subsets.members(numbers, size)
        before = numbers[:, None] ^ (1 << added)
        return Level(int(self.subsets.starts[size]), self.subsets.rank[before], self._labels(size, before, added))

    def sets(self, nodes: Ints) -> Ints:
        return np.asarray(self.subsets.numbers[nodes])

    @abstractmethod
    def _labels(self, size: int, before: Ints, added: Ints) -> Ints:
        """Labels of the edges into the sets of a size, from the sets `before` by the elements `added`."""


class Assignments(_SubsetLattice):
    """Item 0, 1, ... gets one position after the other; label item * d + position.

    The sum over all paths is the permanent of the matrix of the exponentials of the scores.
    """

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.labels = elements * elements

    def _labels(self, size: int, before: Ints, added: Ints) -> Ints:
        return (size - 1) * self.elements + added


class Orders(_SubsetLattice):
    """One position after the other gets an item; label S * d + item for the set S before it."""

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.labels = elements * self.nodes

    def _labels(self, size: int, before: Ints, added: Ints) -> Ints:
        return before * self.elements + added


@lru_cache(maxsize=8)
def assignments(elements: int) -> Assignments:
    """The lattice of assignments of items to positions."""
    return Assignments(elements)


@lru_cache(maxsize=8)
def orders(elements: int) -> Orders:
    """The lattice of orders of items."""
    return Orders(elements)
