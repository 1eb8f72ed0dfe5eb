"""Structures as the paths of a lattice: sums, gradients, maxima and draws over all of them.

A node stands for what is built so far, an edge for what is added, and a path from node 0 to the
last one for a structure. Every term is positive, so that nothing cancels: a permanent by a sum over
subsets takes as many multiplications as Ryser's signed formula and keeps all digits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.pairs import bit_rows, chunks
from thesis_cli.structured.space import Maxima, Space

KEPT_EDGES = 2**21
"""Lattices of more edges are listed anew for each pass."""


class Level(NamedTuple):
    """Consecutive nodes that have equally many edges into them, all from earlier nodes.

    Attributes
    ----------
    first : number of the first of the nodes.
    sources : nodes from which their edges come, shape (nodes, edges).
    labels : which score each edge has, shape (nodes, edges).
    """

    first: int
    sources: Ints
    labels: Ints


class Lattice(ABC):
    """Nodes in levels.

    Attributes
    ----------
    nodes : number of nodes; 0 is the source, and the last one, alone in its level, is the sink.
    labels : number of scores.
    levels : number of levels, without that of the source.
    edges : number of edges.
    largest : most edges of a level.
    """

    nodes: int
    labels: int
    levels: int
    edges: int
    largest: int

    @abstractmethod
    def level(self, number: int) -> Level:
        """A level, numbers from 0."""

    @abstractmethod
    def sets(self, nodes: Ints) -> Ints:
        """Elements that each of the nodes has covered, as the bits of a number."""

    @cached_property
    def _kept(self) -> list[Level]:
        return [self.level(number) for number in range(self.levels)]

    def _each(self, backward: bool = False) -> Iterator[Level]:
        numbers = range(self.levels)[::-1] if backward else range(self.levels)
        for number in numbers:
            yield self._kept[number] if self.edges <= KEPT_EDGES else self.level(number)

    def parts(self, count: int) -> Iterator[slice]:
        """Slices of a batch of so many weight vectors that fit into memory."""
        return chunks(count, max(self.nodes, self.labels, self.largest))

    def forward(self, scores: Floats, best: bool = False) -> Floats:
        """Log of the sum (or the largest, if `best`) over all paths from the source to each node.

        Parameters
        ----------
        scores : scores of edges, shape (n, labels).
        best : whether the largest path counts alone.

        Returns
        -------
        Shape (n, nodes).
        """
        found = np.zeros((len(scores), self.nodes))
        for level in self._each():
            terms = found[:, level.sources] + scores[:, level.labels]
            highest = terms.max(axis=2)
            if not best:
                terms -= highest[:, :, None]
                highest += np.log(np.exp(terms, out=terms).sum(axis=2))
            found[:, level.first : level.first + len(level.sources)] = highest
        return found

    def log_partition(self, scores: Floats) -> Floats:
        """Log of the sum over all paths, shape (n,), for scores of shape (n, labels)."""
        return np.asarray(self.forward(scores)[:, -1].copy())

    def mean_labels(self, scores: Floats) -> Floats:
        """Expected number of edges of each label on a path, shape (n, labels)."""
        forward = self.forward(scores)
        masses, found = np.zeros_like(forward), np.zeros((len(scores), self.labels))
        masses[:, -1] = 1.0
        for level in self._each(backward=True):
            here = slice(level.first, level.first + len(level.sources))
            terms = forward[:, level.sources] + scores[:, level.labels] - forward[:, here, None]
            np.exp(terms, out=terms)
            terms *= masses[:, here, None]
            _scatter(masses, level.sources, terms)
            _scatter(found, level.labels, terms)
        return found

    def best_paths(self, scores: Floats) -> tuple[Floats, Ints]:
        """Largest sum of scores of a path, shape (n,), and what such a path covers step by step.

        The second array has shape (n, levels + 1): bits at the source, then after each level; where
        a path passes no node of a level, what it covered before.
        """
        forward = self.forward(scores, best=True)

        def choose(at: Ints, level: Level, local: Ints) -> Ints:
            terms = forward[at[:, None], level.sources[local]] + scores[at[:, None], level.labels[local]]
            return np.asarray(terms.argmax(axis=1))

        return forward[:, -1].copy(), self._trace(len(scores), choose)

    def draws(self, scores: Floats, count: int, rng: np.random.Generator) -> Ints:
        """Elements that independent random paths cover step by step, as in `best_paths`, shape
        (count, levels + 1), for one vector of scores."""
        forward = self.forward(scores[None])[0]

        def choose(at: Ints, level: Level, local: Ints) -> Ints:
            uniform = rng.random(len(at))
            if len(level.sources) == 1:
                sums = _running_masses(forward[level.sources] + scores[level.labels])[0]
                return np.searchsorted(sums, uniform, side="right")
            found = np.empty(len(at), np.int64)
            for part in chunks(len(at), level.sources.shape[1]):
                into = local[part]
                sums = _running_masses(forward[level.sources[into]] + scores[level.labels[into]])
                found[part] = (sums <= uniform[part, None]).sum(axis=1)
            return found

        return self._trace(count, choose)

    def _trace(self, count: int, choose: Callable[[Ints, Level, Ints], Ints]) -> Ints:
        """Walk so many paths back from the sink; `choose` gets the numbers of the paths at a level,
        the level, and the node of each path within the level.
        """
        at = np.full(count, self.nodes - 1)
        found = np.empty((count, self.levels + 1), np.int64)
        for number, level in zip(range(self.levels, 0, -1), self._each(backward=True), strict=True):
            found[:, number] = self.sets(at)
            here = np.flatnonzero(at >= level.first)
            if here.size:
                local = at[here] - level.first
                at[here] = level.sources[local, choose(here, level, local)]
        found[:, 0] = self.sets(at)
        return found


def _running_masses(terms: Floats) -> Floats:
    """Cumulative probabilities along the last axis; the last one is above 1, so that no uniform
    number exceeds it.
    """
    sums = np.cumsum(np.exp(terms - terms.max(axis=-1, keepdims=True)), axis=-1)
    sums /= sums[..., -1:].copy()
    sums[..., -1] = 2.0
    return sums


def _scatter(totals: Floats, places: Ints, masses: Floats) -> None:
    """Add masses (n, nodes, edges) to totals (n, size) at places (nodes, edges)."""
    count, size = totals.shape
    shifted = (np.arange(count)[:, None] * size + places.ravel()).ravel()
    totals += np.bincount(shifted, masses.ravel(), minlength=count * size).reshape(count, size)


class Subsets:
    """All subsets of a set, sorted by their sizes.

    Parameters
    ----------
    elements : size of the set.

    Attributes
    ----------
    numbers : the subsets as bits, those of equal size in ascending order, shape (2^elements,).
    rank : place of each number in `numbers`.
    starts : place of the first subset of each size, and the number of all.
    """

    def __init__(self, elements: int) -> None:
        self.elements = elements
        everyone = np.arange(2**elements)
        sizes = np.zeros(len(everyone), np.int64)
        for bit in range(elements):
            sizes += (everyone >> bit) & 1
        self.numbers = np.argsort(sizes, kind="stable")
        self.rank = np.empty_like(self.numbers)
        self.rank[self.numbers] = everyone
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(sizes))])

    def of_size(self, size: int) -> Ints:
        """The subsets of a size."""
        return self.numbers[self.starts[size] : self.starts[size + 1]]

    def members(self, numbers: Ints, size: int) -> Ints:
        """Members of subsets of one size in ascending order, shape (count, size)."""
        return np.nonzero(bit_rows(numbers, self.elements))[1].reshape(len(numbers), size)


class LatticeSpace(Space):
    """Exact sums, gradients, maxima and draws by a lattice; subclasses say how features label its edges.

    Attributes
    ----------
    paths : number of paths of each structure.
    """

    paths = 1

    def log_partition(self, weights: Floats) -> Floats:
        weights = self.checked(weights)
        lattice = self._lattice()
        parts = [lattice.log_partition(self._labelled(weights[part])) for part in lattice.parts(len(weights))]
        return np.concatenate([np.empty(0), *parts]) - math.log(self.paths)

    def mean_features(self, weights: Floats) -> Floats:
        weights = self.checked(weights)
        lattice = self._lattice()
        found = np.empty((len(weights), self.dimension))
        for part in lattice.parts(len(weights)):
            found[part] = self._unlabelled(lattice.mean_labels(self._labelled(weights[part])))
        return found

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        scores = self._labelled(self.checked(weights[None]))[0]
        return self._decoded(self._lattice().draws(scores, count, rng))

    def _best_paths(self, weights: Floats) -> Maxima:
        """Maxima by the lattice, for weights that were checked."""
        lattice = self._lattice()
        values, best = np.empty(len(weights)), np.empty((len(weights), self.width), np.int64)
        for part in lattice.parts(len(weights)):
            values[part], sets = lattice.best_paths(self._labelled(weights[part]))
            best[part] = self._decoded(sets)
        return Maxima(values, best, exact=True)

    @abstractmethod
    def _lattice(self) -> Lattice:
        """The lattice of the features, if it is not too large."""

    @abstractmethod
    def _labelled(self, weights: Floats) -> Floats:
        """Scores of the labels of the lattice, shape (n, labels)."""

    @abstractmethod
    def _unlabelled(self, masses: Floats) -> Floats:
        """Features of masses of labels, shape (n, dimension); the adjoint of `_labelled`."""

    @abstractmethod
    def _decoded(self, sets: Ints) -> Ints:
        """Structures of what paths cover step by step."""
