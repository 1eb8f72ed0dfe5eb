"""Partitions of d elements: equivalence relations (Vembu et al. section 5, correlation clustering)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.structured.lattice import Lattice, LatticeSpace, Level, Subsets
from thesis_cli.structured.local_search import best_partition
from thesis_cli.structured.pairs import as_matrices, bit_rows, inner_masses, inner_sums
from thesis_cli.structured.space import Maxima

LARGEST_PARTITION = 14
"""Elements for which sums and maxima are exact."""


class BlockLattice(Lattice):
    """Node S stands for the partitions of S; an edge adds the block of the largest element of S.

    Labels are blocks as bits. There are (3^d - 1) / 2 edges.
    """

    def __init__(self, elements: int) -> None:
        self.elements = elements
        self.subsets = Subsets(elements)
        self.nodes = self.labels = 2**elements
        self.levels, self.edges = elements, (3**elements - 1) // 2
        counts = np.diff(self.subsets.starts)
        self.largest = int(max(int(counts[size]) << (size - 1) for size in range(1, elements + 1)))

    def level(self, number: int) -> Level:
        size = number + 1
        numbers = self.subsets.of_size(size)
        bits = 1 << self.subsets.members(numbers, size)
        blocks = bits[:, :-1] @ bit_rows(np.arange(2 ** (size - 1)), size - 1).T + bits[:, -1:]
        sources = self.subsets.rank[numbers[:, None] ^ blocks]
        return Level(int(self.subsets.starts[size]), sources, blocks)

    def sets(self, nodes: Ints) -> Ints:
        return np.asarray(self.subsets.numbers[nodes])


@lru_cache(maxsize=8)
def block_lattice(elements: int) -> BlockLattice:
    """The lattice of partitions."""
    return BlockLattice(elements)


def canonical(labels: Ints) -> Ints:
    """Restricted growth strings of rows of block labels: blocks are numbered as they first occur."""
    first = (labels[:, :, None] == labels[:, None, :]).argmax(axis=2)
    new = first == np.arange(labels.shape[1])
    return np.asarray(np.take_along_axis(np.cumsum(new, axis=1) - 1, first, axis=1))


class Partitions(LatticeSpace):
    """Restricted growth strings with the features 1 if i and j share a block, i < j, in the order of
    `pair_table`.

    Parameters
    ----------
    elements : number of elements d.
    """

    name = "partitions"

    def __init__(self, elements: int) -> None:
        self.elements = self.width = elements
        self.dimension = elements * (elements - 1) // 2
        self.radius = self.dimension**0.5

    def size(self) -> int:
        return _completions(self.elements)[0]

    def text(self, structure: Ints, names: Sequence[str]) -> str:
        row = structure.tolist()
        blocks = (", ".join(n for n, b in zip(names, row, strict=True) if b == k) for k in range(max(row) + 1))
        return " ".join(f"{{{block}}}" for block in blocks)

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Uniform partitions: each element joins a block, or founds one, in proportion to the number
        of partitions that this leaves for the remaining elements.
        """
        found = np.zeros((count, self.elements), np.int64)
        blocks = np.zeros(count, np.int64)
        joins = _completions(self.elements)[1]
        for element in range(self.elements):
            uniform = rng.random(count)
            at = np.minimum(uniform / joins[element, blocks], blocks).astype(np.int64)
            found[:, element] = at
            blocks += at == blocks
        return found

    def features(self, structures: Ints) -> Floats:
        first, second = np.triu_indices(self.elements, 1)
        return np.asarray((structures[:, first] == structures[:, second]).astype(float))

    def valid(self, structures: Ints) -> Bools:
        highest = np.maximum.accumulate(structures, axis=1)
        grows = (structures[:, 1:] <= highest[:, :-1] + 1).all(axis=1)
        return np.asarray(grows & (structures[:, 0] == 0) & (structures >= 0).all(axis=1))

    def blocks(self, rows: int = 2**14) -> Iterator[Ints]:
        row, block = [0] * self.elements, []
        while True:
            block.append(row.copy())
            if len(block) == rows:
                yield np.array(block, dtype=np.int64)
                block = []
            at = self.elements - 1
            while at > 0 and row[at] > max(row[:at]):
                at -= 1
            if at <= 0:
                break
            row[at] += 1
            row[at + 1 :] = [0] * (self.elements - at - 1)
        if block:
            yield np.array(block, dtype=np.int64)

    def maximise(self, weights: Floats) -> Maxima:
        """A best partition: exact up to 14 elements, beyond that the best of a local search."""
        weights = self.checked(weights)
        if self.elements > LARGEST_PARTITION:
            values, best = np.empty(len(weights)), np.empty((len(weights), self.width), np.int64)
            for row, matrix in enumerate(as_matrices(weights, self.elements)):
                best[row] = canonical(best_partition(matrix)[None])[0]
                values[row] = self.scores(best[row : row + 1], weights[row])[0]
            return Maxima(values, best, exact=False)
        return self._best_paths(weights)

    def _lattice(self) -> BlockLattice:
        self.check_exact(LARGEST_PARTITION, "elements")
        return block_lattice(self.elements)

    def _labelled(self, weights: Floats) -> Floats:
        return inner_sums(as_matrices(weights, self.elements))

    def _unlabelled(self, masses: Floats) -> Floats:
        return inner_masses(masses)

    def _decoded(self, sets: Ints) -> Ints:
        """Restricted growth strings of what paths cover: an element's block is the first step that
        covers it.
        """
        covered = (sets[:, :, None] >> np.arange(self.elements)) & 1
        return canonical(covered.argmax(axis=1))


@lru_cache(maxsize=8)
def _completions(elements: int) -> tuple[int, Floats]:
    """Number of partitions, and chances of a uniform one.

    The second array has at [e, k] the chance that element e joins a given one of the k blocks of
    the elements before it: the ways to go on from e + 1 elements in k blocks over those from e. The
    ways W(e, k) = k W(e + 1, k) + W(e + 1, k + 1) are exact integers.
    """
    chances = np.zeros((elements, elements))
    then = [1] * (elements + 1)
    for placed in range(elements - 1, -1, -1):
        now = [k * then[k] + then[k + 1] for k in range(placed + 1)]
        chances[placed, : placed + 1] = [a / b for a, b in zip(then, now, strict=False)]
        then = now
    chances.flags.writeable = False
    return then[0], chances
