"""Permutations of d items, and their lattices (Vembu et al. section 4, label ranking).

In a structure y, y_i is the position of item i.
"""

from __future__ import annotations

import heapq
import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.structured.lattice import Lattice, LatticeSpace
from thesis_cli.structured.local_search import best_order
from thesis_cli.structured.observations import Known
from thesis_cli.structured.orderings import added, assignments, by_size, orders, sums_over_orders
from thesis_cli.structured.pairs import as_matrices, chunks, member_sums, pair_table, subset_sums
from thesis_cli.structured.space import Maxima, Space

LARGEST_PERMANENT = 22
"""Items for which permanents are summed exactly."""

LARGEST_ORDER = 18
"""Items for which sums and maxima over orders are exact."""


LARGEST_PATHS = 12
"""Items up to which the best orders are found as paths through sets where swaps find them, too."""


class Permutations(Space):
    """Permutations whose log-potentials are those of a subclass.

    Attributes
    ----------
    largest : most items of exact sums over sets of items.
    by_swaps : whether the log-potential never falls when two neighbours are put in their order in the best
        permutation.

    Parameters
    ----------
    elements : number of items d.
    """

    name, word = "permutations", "item"
    largest = LARGEST_PERMANENT
    by_swaps: ClassVar[bool] = False

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

    def sums(self, weights: Floats, known: Known | None = None) -> tuple[Floats, Floats]:
        """ln of the sum over all permutations, or over those that agree with what is known of them,
        for each weight vector, and its gradient; shapes (n,), (n, dimension).

        Parameters
        ----------
        weights : shape (n, dimension).
        known : what is known of each permutation; None if any counts.
        """
        weights = self.checked(weights)
        self.check_exact(self.largest, "items")
        log_z, mean = np.empty(len(weights)), np.empty((len(weights), self.dimension))
        for part in chunks(len(weights), self.elements * int(self._row_of.max() + 1)):
            seen = None if known is None else known[part]
            log_z[part], masses = sums_over_orders(self._scored(weights[part]), self._row_of, seen)
            mean[part] = self._gathered(masses)
        return log_z, mean

    def seen(self, weights: Floats, structures: Ints, known: Known | None = None) -> tuple[Floats, Floats]:
        values, slopes = super().seen(weights, structures)
        if known is not None and known.partly.any():
            partly = known.partly
            values[partly], slopes[partly] = self.sums(weights[partly], known[partly])
        return values, slopes

    def best(self, weights: Floats, count: int) -> tuple[Floats, Ints]:
        from thesis_cli.structured.sum_kernels import best_orders

        weights, count = self.checked(weights), min(count, self.size())
        items = np.empty((len(weights), count, self.elements), np.int64)
        if self.by_swaps and self.elements > LARGEST_PATHS:
            for row, order in enumerate(np.argsort(self.maximise(weights).structures, axis=1)):
                items[row] = self._swapped(weights[row], order, count)
            return self._valued(weights, items)
        self.check_exact(self.largest, "items")
        for part in chunks(len(weights), self.elements * int(self._row_of.max() + 1)):
            scores = np.ascontiguousarray(self._scored(weights[part]))
            best_orders(scores, self._row_of, np.empty((len(scores), count)), items[part])
        return self._valued(weights, items)

    def _valued(self, weights: Floats, items: Ints) -> tuple[Floats, Ints]:
        """Log-potentials and positions of orders of items."""
        found = np.argsort(items, axis=2)
        values = self.seen(np.repeat(weights, items.shape[1], axis=0), found.reshape(-1, self.width))[0]
        return values.reshape(items.shape[:2]), found

    def _swapped(self, vector: Floats, order: Ints, count: int) -> Ints:
        """The best orders of items under one weight vector, shape (count, d).

        Every other order comes from one that is no worse, by a swap of the neighbours that are the last ones
        not to be in the order of the best.

        Parameters
        ----------
        order : the best one.
        """
        places, pushed = np.arange(self.elements), itertools.count()
        heap, found = [(0.0, next(pushed), places)], np.empty((count, self.elements), np.int64)
        for at in range(count):
            _, _, places = heapq.heappop(heap)
            found[at] = order[places]
            rises = np.append(places[:-1] < places[1:], [True, True])
            later = np.logical_and.accumulate(rises[::-1])[::-1][2:]
            firsts = np.flatnonzero(rises[:-2] & np.append(places[:-2] < places[2:], True) & later[: len(places) - 1])
            after = np.tile(places, (len(firsts), 1))
            rows = np.arange(len(firsts))
            after[rows, firsts], after[rows, firsts + 1] = places[firsts + 1], places[firsts]
            scores = self.scores(np.argsort(order[after], axis=1), vector)
            for score, swapped in zip(scores.tolist(), after, strict=True):
                heapq.heappush(heap, (-score, next(pushed), swapped))
        return found

    def chances(self, weights: Floats) -> Floats:
        """Probability of each item at each position, shape (n, d, d). Raises ModelTooLarge as for
        `log_partition`."""
        weights, d = self.checked(weights), self.elements
        self.check_exact(self.largest, "items")
        found = np.zeros((len(weights), d, d))
        for part in chunks(len(weights), d * int(self._row_of.max() + 1)):
            masses = sums_over_orders(self._scored(weights[part]), self._row_of)[1]
            found[part] = (masses if masses.shape[1] == d else by_size(masses)).transpose(0, 2, 1)
        return found

    def expected_positions(self, weights: Floats) -> Floats:
        """Expected position of each item, shape (n, d). Raises ModelTooLarge as for `chances`."""
        return np.asarray(self.chances(weights) @ np.arange(self.elements))

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


class LatticePermutations(Permutations, LatticeSpace):
    """Permutations whose log-potentials are linear in the weights."""

    def _lattice(self) -> Lattice:
        self.check_exact(self.largest, "items")
        return assignments(self.elements)

    def _decoded(self, sets: Ints) -> Ints:
        """The element that each level of a path adds: positions of items 0, 1, ..."""
        return added(sets)


class PositionPermutations(LatticePermutations):
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

    def _labelled(self, weights: Floats) -> Floats:
        return weights

    def _unlabelled(self, masses: Floats) -> Floats:
        return masses

    def _scored(self, weights: Floats) -> Floats:
        return weights.reshape(-1, self.elements, self.elements).transpose(0, 2, 1)

    def _gathered(self, masses: Floats) -> Floats:
        return masses.transpose(0, 2, 1).reshape(len(masses), -1)


class RankPermutations(LatticePermutations):
    """The features are positions as numbers from 0, the first, to 1, the last: a score for each
    item. The maximum sorts the scores.
    """

    by_swaps = True

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

    def _labelled(self, weights: Floats) -> Floats:
        return np.asarray((weights[:, :, None] * self._places).reshape(len(weights), -1))

    def _unlabelled(self, masses: Floats) -> Floats:
        return np.asarray(masses.reshape(-1, self.elements, self.elements) @ self._places)

    def _scored(self, weights: Floats) -> Floats:
        return np.asarray(weights[:, None, :] * self._places[:, None])

    def _gathered(self, masses: Floats) -> Floats:
        return np.asarray(self._places @ masses)


class OrderPermutations(LatticePermutations):
    """The features are d(d - 1)/2 indicators that item i comes before item j, i < j, in the order of
    `pair_table`.
    """

    largest = LARGEST_ORDER

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
