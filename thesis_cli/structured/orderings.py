"""Lattices of permutations: node S stands for the set of items, or positions, that are filled."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

from thesis_cli.base.arrays import Ints
from thesis_cli.structured.lattice import Lattice, Level, Subsets


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
        found: Ints = self.subsets.numbers[nodes]
        return found

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
