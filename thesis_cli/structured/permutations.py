"""Permutations of d items, and their lattices (Vembu et al. section 4, label ranking).

In a structure y, y_i is the position of item i.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from scipy.optimize import linear_sum_assignment

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.structured.lattice import Lattice, LatticeSpace, Level, Subsets
from thesis_cli.structured.local_search import best_order
from thesis_cli.structured.pairs import as_matrices, member_sums, pair_table, subset_sums
from thesis_cli.structured.space import Maxima

LARGEST_PERMANENT = 22
"""Items for which permanents are summed exactly."""

LARGEST_ORDER = 18
"""Items for which sums and maxima over orders are exact."""


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

    def _decoded(self, sets: Ints) -> Ints:
        """Positions of items from the items at positions."""
        return np.argsort(added(sets), axis=1)


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
