"""Labellings of grids and other networks by alpha-expansion (Boykov, Veksler and Zabih, 2001).

A labelling maximises sum_i unary_i(l_i) - sum_ij cost_ij [l_i != l_j]. An expansion offers one
label to all nodes at once, and a minimum cut finds which of them should take it. Where no expansion
helps, the cost over the best labels of single nodes is at most twice the least one.
"""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.inference.graph_cut.maximum_flow import Network

ROUNDS = 20
"""Most times that each label is offered."""


class Expansion:
    """Labellings of one network under changing unary scores.

    Parameters
    ----------
    arcs : pairs of nodes, shape (A, 2).
    costs : cost of different labels of a pair, at least 0, shape (A,).
    nodes : number of nodes.
    """

    def __init__(self, arcs: Ints, costs: Floats, nodes: int) -> None:
        self._arcs, self._costs = arcs, costs
        self._network = Network(arcs, np.zeros(arcs.shape), np.zeros((nodes, 2), np.bool_))

    def maximise(self, unary: Floats) -> Ints:
        """A labelling that no expansion improves, from the best label of each node; shape (nodes,).

        Parameters
        ----------
        unary : scores of the labels of each node, shape (nodes, labels).
        """
        count = unary.shape[1]
        labels: Ints = np.argmax(unary, axis=1).astype(np.int64)
        best, unchanged = self.score(unary, labels), 0
        for turn in range(ROUNDS * count):
            offered = turn % count
            tried = np.where(self._takers(unary, labels, offered), offered, labels)
            found = self.score(unary, tried)
            unchanged += 1
            if found > best:
                labels, best, unchanged = tried, found, 0
            if unchanged == count:
                break
        return labels

    def score(self, unary: Floats, labels: Ints) -> float:
        """The score of a labelling."""
        different = labels[self._arcs[:, 0]] != labels[self._arcs[:, 1]]
        return float(unary[np.arange(len(labels)), labels].sum() - self._costs[different].sum())

    def _takers(self, unary: Floats, labels: Ints, offered: int) -> Bools:
        """The nodes that should take a label, given that the others keep theirs.

        The cost of a pair is written as a constant, costs of its nodes, and one for the first that
        keeps its label where the second takes the one offered.
        """
        first, second = self._arcs.T
        kept = self._costs * (labels[first] != labels[second])
        keeps_first, keeps_second = (self._costs * (labels[nodes] != offered) for nodes in (first, second))
        own = unary[np.arange(len(labels)), labels] - unary[:, offered]
        own += np.bincount(first, keeps_second - kept, len(labels)) - np.bincount(second, keeps_second, len(labels))
        capacities = np.stack([keeps_first + keeps_second - kept, np.zeros(len(kept))], axis=1)
        return np.asarray(self._network.with_capacities(capacities).labels(own[None])[0] == 1)
