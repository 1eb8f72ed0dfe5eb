"""Orders of items as paths through the sets of items placed so far: lattices, and sums over those
orders that agree with what is known of a ranking.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.lattice import Lattice, Level, Subsets
from thesis_cli.structured.observations import Known

LEAST = -550.0
"""ln of the least sum, of potentials up to 1, that keeps its digits in a double."""

FORBIDDEN = -1e12
"""Score of an edge on no path that counts."""


def sums_over_orders(scores: Floats, row_of: Ints, known: Known | None = None) -> tuple[Floats, Floats]:
    """ln of the sum over all orders of d items that agree with what is known, of exp of the sum of
    their scores, and its gradient.

    Parameters
    ----------
    scores : scores of the items that follow a set of items, shape (n, rows, d).
    row_of : row of each set, by its bits, shape (2^d,).
    known : what is known of each ranking; None if any order counts.

    Returns
    -------
    Shapes (n,) and (n, rows, d).
    """
    from thesis_cli.structured.sum_kernels import order_sums

    before = np.zeros((len(scores), scores.shape[2]), np.int64) if known is None else known.before
    log_z, masses = np.empty(len(scores)), np.empty(scores.shape)
    highest = scores.max(axis=1)  # each item is added once
    order_sums(np.ascontiguousarray(np.exp(scores - highest[:, None])), row_of, before, log_z, masses)
    far = log_z < LEAST
    log_z += highest.sum(axis=1)
    if far.any():
        log_z[far], masses[far] = sums_in_logs(scores[far], row_of, before[far])
    return log_z, masses


def sums_in_logs(scores: Floats, row_of: Ints, before: Ints) -> tuple[Floats, Floats]:
    """The same for scores of any size, from the items that come before each, as bits, shape (n, d)."""
    lattice, sets = orders(scores.shape[2]), np.arange(len(row_of))
    log_z, masses = np.empty(len(scores)), np.zeros(scores.shape)
    for row, known in enumerate(before):
        edges = scores[row, row_of] + np.where(known & ~sets[:, None], FORBIDDEN, 0.0)
        log_z[row] = lattice.log_partition(edges.reshape(1, -1))[0]
        np.add.at(masses[row], row_of, lattice.mean_labels(edges.reshape(1, -1)).reshape(edges.shape))
    return log_z, masses


def by_size(masses: Floats) -> Floats:
    """Sums of masses of items that follow sets over the sets of each size; (n, 2^d, d) to (n, d, d)."""
    subsets = Subsets(masses.shape[2])
    return np.asarray(np.add.reduceat(masses[:, subsets.numbers[:-1]], subsets.starts[:-2], axis=1))


def added(sets: Ints) -> Ints:
    """The element that each step of a path adds to a set of bits, shape (count, steps)."""
    steps = sets[:, 1:] ^ sets[:, :-1]
    return np.asarray(np.log2(np.maximum(steps, 1)).round().astype(np.int64))


class SubsetLattice(Lattice):
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


class Assignments(SubsetLattice):
    """Item 0, 1, ... gets one position after the other; label item * d + position.

    The sum over all paths is the permanent of the matrix of the exponentials of the scores.
    """

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.labels = elements * elements

    def _labels(self, size: int, before: Ints, added: Ints) -> Ints:
        return (size - 1) * self.elements + added


class Orders(SubsetLattice):
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
