"""Subtrees of a rooted tree that contain its root (Vembu et al. section 4, hierarchical classification)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import expit

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.structured.space import Maxima, Space


class Subtrees(Space):
    """Rows of bits, one for each node: the root is 1, and a node is 1 only where its parent is.

    The features are the bits. All sums are those of one recursion over the tree: with g(v) the sum
    over subtrees of v's branch that contain v, g(v) = exp(w_v) prod over children c of (1 + g(c)),
    the 1 for leaving c out. So g counts nonempty subtrees if w = 0. Equation 2 of Vembu et al.,
    f(r) = 1 + prod f(c), is 1 + g(r): it counts the empty tree as well. Raises InputError if the
    parents make no tree with root 0.

    Parameters
    ----------
    parents : parent of each node, -1 for node 0, the root.
    """

    name, word = "subtrees", "node"

    def __init__(self, parents: Sequence[int]) -> None:
        self.parents = np.array(parents, dtype=np.int64)
        self.elements = self.width = self.dimension = len(self.parents)
        self.radius = self.elements**0.5
        self._order = _topological(self.parents)
        self._counts = self._count_branches()

    def size(self) -> int:
        return self._counts[0]

    def extensions(self, subtree: Ints) -> int:
        """Number of subtrees that contain a subtree, given as bits: the subtrees with it as prefix.

        It is the product of 1 + g(c) over the children c that hang off the subtree. The formula of
        Vembu et al. section 4, prod f(v) - |L| over the leaves v, is another number.
        """
        found = 1
        for node in range(1, self.elements):
            if subtree[self.parents[node]] and not subtree[node]:
                found *= 1 + self._counts[node]
        return found

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Uniform subtrees: given its parent, node v is in with probability g(v) / (1 + g(v))."""
        chances = np.array([size / (size + 1) if size < 2**1000 else 1.0 for size in self._counts])
        return self._grown(chances, count, rng)

    def features(self, structures: Ints) -> Floats:
        return structures.astype(float)

    def valid(self, structures: Ints) -> Bools:
        bits = ((structures == 0) | (structures == 1)).all(axis=1) & (structures[:, 0] == 1)
        return np.asarray(bits & (structures[:, 1:] <= structures[:, self.parents[1:]]).all(axis=1))

    def blocks(self, rows: int = 2**14) -> Iterator[Ints]:
        """All subtrees by counting: the next one adds the last node that can be added and drops what
        comes after it in the order of the nodes from the root.
        """
        order = self._order.tolist()
        parents = self.parents.tolist()
        bits = [0] * self.elements
        bits[0] = 1
        block: list[list[int]] = []
        more = True
        while more:
            block.append(bits.copy())
            if len(block) == rows:
                yield np.array(block, dtype=np.int64)
                block = []
            more = False
            for node in order[:0:-1]:
                if not bits[node] and bits[parents[node]]:
                    bits[node], more = 1, True
                    break
                bits[node] = 0
        if block:
            yield np.array(block, dtype=np.int64)

    def log_partition(self, weights: Floats) -> Floats:
        return np.asarray(self._branches(self.checked(weights))[0].copy())

    def mean_features(self, weights: Floats) -> Floats:
        present = expit(self._branches(self.checked(weights)))
        present[0] = 1.0
        for node in self._order[1:]:
            present[node] *= present[self.parents[node]]
        return np.ascontiguousarray(present.T)

    def maximise(self, weights: Floats) -> Maxima:
        weights = self.checked(weights)
        best = self._branches(weights, best=True)
        structures = (best > 0).astype(np.int64)
        structures[0] = 1
        for node in self._order[1:]:
            structures[node] &= structures[self.parents[node]]
        return Maxima(best[0].copy(), np.ascontiguousarray(structures.T), exact=True)

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        return self._grown(expit(self._branches(self.checked(weights[None]))[:, 0]), count, rng)

    def _branches(self, weights: Floats, best: bool = False) -> Floats:
        """ln g of each node (or the best subtree of its branch), shape (nodes, n)."""
        found = weights.T.copy()
        for node in self._order[:0:-1]:
            branch = found[node]
            found[self.parents[node]] += np.maximum(branch, 0.0) if best else np.logaddexp(0.0, branch)
        return found

    def _grown(self, chances: Floats, count: int, rng: np.random.Generator) -> Ints:
        """Subtrees whose nodes are in with the given chances if their parents are."""
        bits = (rng.random((self.elements, count)) < chances[:, None]).astype(np.int64)
        bits[0] = 1
        for node in self._order[1:]:
            bits[node] &= bits[self.parents[node]]
        return np.ascontiguousarray(bits.T)

    def _count_branches(self) -> list[int]:
        counts = [1] * self.elements
        for node in self._order[:0:-1].tolist():
            counts[self.parents[node]] *= 1 + counts[node]
        return counts


def _topological(parents: Ints) -> Ints:
    """The nodes so that each comes after its parent."""
    count = len(parents)
    if parents.ndim != 1 or not count:
        raise InputError("the tree has no nodes", "give the parent of each node, -1 for node 0, the root")
    if parents[0] != -1:
        raise InputError(f"node 0 has the parent {parents[0]}", "node 0 is the root and has the parent -1")
    wrong = np.flatnonzero((parents[1:] < 0) | (parents[1:] >= count)) + 1
    if wrong.size:
        raise InputError(
            f"node {wrong[0]} has the parent {parents[wrong[0]]}", f"must be a node, from 0 to {count - 1}"
        )
    children: list[list[int]] = [[] for _ in range(count)]
    for node in range(1, count):
        children[parents[node]].append(node)
    order = [0]
    for node in order:
        order.extend(children[node])
    if len(order) < count:
        lost = min(set(range(count)) - set(order))
        raise InputError(f"node {lost} does not descend from node 0", "the parents have a cycle")
    return np.array(order)
