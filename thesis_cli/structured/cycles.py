"""Undirected cycles of the complete graph of d vertices (Vembu et al. section 2.1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.structured.lattice import Lattice, LatticeSpace, Level, Subsets
from thesis_cli.structured.local_search import best_cycle
from thesis_cli.structured.orderings import added
from thesis_cli.structured.pairs import as_matrices, pair_table
from thesis_cli.structured.space import Maxima

LARGEST_CYCLE = 18
"""Vertices for which sums and maxima are exact."""


class CycleLattice(Lattice):
    """Paths that start at their largest vertex and close; node (S, v) has visited S and is at v.

    Labels are edges of the graph. Each cycle has two paths, one for each direction.

    Parameters
    ----------
    vertices : number of vertices d.
    every_vertex : whether only cycles through all vertices count.
    """

    def __init__(self, vertices: int, every_vertex: bool) -> None:
        self.vertices, self.every_vertex = vertices, every_vertex
        self.subsets = Subsets(vertices)
        self.labels = vertices * (vertices - 1) // 2
        self.levels = vertices
        self._sets = {size: self._of_size(size) for size in range(2, vertices + 1)}
        self._place = np.zeros(2**vertices, np.int64)
        self._first = {2: 1}
        for size, numbers in self._sets.items():
            self._place[numbers] = np.arange(len(numbers))
            self._first[size + 1] = self._first[size] + len(numbers) * (size - 1)
        self.nodes = self._first[vertices + 1] + 1
        into = [len(numbers) * (size - 1) * max(1, size - 2) for size, numbers in self._sets.items()]
        closing = self.nodes - 1 - self._first[self._closed]
        self.edges, self.largest = sum(into) + closing, max(*into, closing)
        sets = [np.repeat(numbers, size - 1) for size, numbers in self._sets.items()]
        self._node_sets = np.concatenate([[0], *sets, [0]])

    @property
    def _closed(self) -> int:
        """Fewest vertices of a cycle."""
        return self.vertices if self.every_vertex else 3

    def _of_size(self, size: int) -> Ints:
        numbers = self.subsets.of_size(size)
        return numbers[numbers >> (self.vertices - 1) == 1] if self.every_vertex else numbers

    def level(self, number: int) -> Level:
        table, size = pair_table(self.vertices), number + 2
        if size > self.vertices:
            ends = [self._labelled_ends(size) for size in range(self._closed, self.vertices + 1)]
            sources = np.arange(self._first[self._closed], self.nodes - 1)
            return Level(self.nodes - 1, sources[None], np.concatenate(ends)[None])
        numbers = self._sets[size]
        members = self.subsets.members(numbers, size)
        if size == 2:
            return Level(1, np.zeros((len(numbers), 1), np.int64), table[members[:, :1], members[:, 1:]])
        here, other = _distinct(size - 1)
        sources = numbers[:, None] ^ (1 << members[:, :-1])  # without the vertex that was added
        starts = self._first[size - 1] + self._place[sources] * (size - 2)
        nodes = starts[:, :, None] + (other - (other > here[:, None]))
        labels = table[members[:, :-1, None], members[:, other]]
        return Level(self._first[size], nodes.reshape(-1, size - 2), labels.reshape(-1, size - 2))

    def sets(self, nodes: Ints) -> Ints:
        return np.asarray(self._node_sets[nodes])

    def _labelled_ends(self, size: int) -> Ints:
        members = self.subsets.members(self._sets[size], size)
        return np.asarray(pair_table(self.vertices)[members[:, :-1], members[:, -1:]].ravel())


def _distinct(count: int) -> tuple[Ints, Ints]:
    """0, ..., count - 1, and for each of them the others, shape (count, count - 1)."""
    here = np.arange(count)
    other = np.tile(here, (count, 1))[~np.eye(count, dtype=bool)].reshape(count, count - 1)
    return here, other


@lru_cache(maxsize=4)
def cycle_lattice(vertices: int, every_vertex: bool) -> CycleLattice:
    """The lattice of cycles."""
    return CycleLattice(vertices, every_vertex)


def canonical(cycles: Ints) -> Ints:
    """Rows of vertices, padded with -1, so that the smallest is first and the second is below the last."""
    lengths = (cycles >= 0).sum(axis=1)[:, None]
    places = np.arange(cycles.shape[1])
    start = np.where(cycles < 0, np.iinfo(np.int64).max, cycles).argmin(axis=1)[:, None]
    inside = places < lengths
    turned = np.take_along_axis(cycles, np.where(inside, (start + places) % lengths, places), axis=1)
    last = np.take_along_axis(turned, lengths - 1, axis=1)
    back = inside & (turned[:, 1:2] > last)
    return np.asarray(np.take_along_axis(turned, np.where(back, -places % lengths, places), axis=1))


class CycleSets(LatticeSpace):
    """Cycles over any three or more of d vertices; the features are their edges, as `pair_table`
    numbers pairs.

    A row lists the vertices from the smallest one in the direction of its smaller neighbour, then -1.

    Parameters
    ----------
    elements : number of vertices d, at least 3.
    """

    name, word, in_order = "cycle-sets", "vertex", True
    every_vertex = False
    paths = 2  # the directions of a cycle

    def __init__(self, elements: int) -> None:
        self.elements = self.width = elements
        self.dimension = elements * (elements - 1) // 2
        self.radius = elements**0.5

    def size(self) -> int:
        return sum(self._sizes().values())

    def text(self, structure: Ints, names: Sequence[str]) -> str:
        return " - ".join(names[k] for k in structure.tolist() if k >= 0)

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Uniform cycles: first their number of vertices, then the vertices in random order."""
        sizes, all_cycles = self._sizes(), self.size()
        chances = np.array([cycles / all_cycles for cycles in sizes.values()])
        lengths = rng.choice(np.array(list(sizes)), size=count, p=chances / chances.sum())
        rows = rng.permuted(np.tile(np.arange(self.elements), (count, 1)), axis=1)
        rows[np.arange(self.elements) >= lengths[:, None]] = -1
        return canonical(rows)

    def features(self, structures: Ints) -> Floats:
        found = np.zeros((len(structures), self.dimension))
        edges, present = self._edges(structures)
        rows = np.broadcast_to(np.arange(len(structures))[:, None], edges.shape)
        found[rows[present], edges[present]] = 1.0
        return found

    def scores(self, structures: Ints, weights: Floats) -> Floats:
        edges, present = self._edges(structures)
        return np.asarray(np.where(present, weights[edges], 0.0).sum(axis=1))

    def valid(self, structures: Ints) -> Bools:
        inside = structures >= 0
        lengths = inside.sum(axis=1)
        shape = (inside == (np.arange(self.width) < lengths[:, None])).all(axis=1)
        ordered = np.sort(structures, axis=1)
        distinct = ((np.diff(ordered, axis=1) > 0) | (ordered[:, 1:] < 0)).all(axis=1)
        long = lengths == self.width if self.every_vertex else lengths >= 3
        found: Bools = shape & distinct & long & (structures >= -1).all(axis=1) & (ordered[:, -1] < self.elements)
        found[found] = (canonical(structures[found]) == structures[found]).all(axis=1)
        return found

    def blocks(self, rows: int = 2**14) -> Iterator[Ints]:
        everyone = self._listed()
        while block := list(itertools.islice(everyone, rows)):
            yield np.array(block, dtype=np.int64)

    def maximise(self, weights: Floats) -> Maxima:
        """A best cycle: exact up to 18 vertices, beyond that the best of a local search."""
        weights = self.checked(weights)
        if self.elements > LARGEST_CYCLE:
            values, best = np.empty(len(weights)), np.full((len(weights), self.width), -1)
            for row, matrix in enumerate(as_matrices(weights, self.elements)):
                cycle = best_cycle(matrix, self.every_vertex)
                best[row, : len(cycle)] = cycle
                values[row] = self.scores(best[row : row + 1], weights[row])[0]
            return Maxima(values, canonical(best), exact=False)
        return self._best_paths(weights)

    def _lattice(self) -> CycleLattice:
        self.check_exact(LARGEST_CYCLE, "vertices")
        return cycle_lattice(self.elements, self.every_vertex)

    def _labelled(self, weights: Floats) -> Floats:
        return weights

    def _unlabelled(self, masses: Floats) -> Floats:
        return masses

    def _sizes(self) -> dict[int, int]:
        """Number of cycles by their number of vertices."""
        found, arrangements = {}, self.elements * (self.elements - 1)
        for length in range(3, self.elements + 1):
            arrangements *= self.elements - length + 1
            found[length] = arrangements // (2 * length)
        return found

    def _edges(self, structures: Ints) -> tuple[Ints, Bools]:
        """Numbers of the edges of each row, and which of them are there."""
        present = structures >= 0
        lengths = present.sum(axis=1)[:, None]
        places = np.arange(self.width)
        after = np.take_along_axis(structures, np.where(places < lengths, (places + 1) % lengths, places), axis=1)
        return pair_table(self.elements)[structures, after], present

    def _decoded(self, sets: Ints) -> Ints:
        """Cycles of what paths have visited, the first step two vertices, of which the larger one is
        the start; sets of the sink are empty.
        """
        first = np.log2(sets[:, 1]).astype(np.int64)
        visited = np.concatenate([1 << first[:, None], sets[:, 1:-1]], axis=1)
        moves = added(visited)
        moves[visited[:, 1:] == visited[:, :-1]] = -1
        return canonical(np.concatenate([first[:, None], moves], axis=1))

    def _listed(self) -> Iterator[tuple[int, ...]]:
        for length in self._sizes():
            for vertices in itertools.combinations(range(self.elements), length):
                for rest in itertools.permutations(vertices[1:]):
                    if rest[0] < rest[-1]:
                        yield (vertices[0], *rest, *(-1,) * (self.elements - length))


class HamiltonianCycles(CycleSets):
    """Cycles through all of d vertices, with the features and rows of `CycleSets`."""

    name = "cycles"
    every_vertex = True

    def _sizes(self) -> dict[int, int]:
        return {self.elements: math.factorial(self.elements - 1) // 2}
