"""Exact MAP of attractive binary pairwise models by minimum cuts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import UnsuitableModel
from thesis_cli.inference.graph_cut.maximum_flow import Network
from thesis_cli.inference.pairwise import pairwise
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph

BLOCK = 2**16
"""Numbers in one temporary array of a batch: few enough to stay in the cache."""


@dataclass(frozen=True)
class BinaryModel:
    """phi(x) = constant + sum_i unary_i(x_i) + sum_e table_e(x_i, x_j), e = (i, j), x_i in {0, 1}.

    Attributes
    ----------
    unary : log-potentials, shape (n, 2).
    edges : distinct pairs of variables, i < j, shape (E, 2).
    tables : log-potentials of the edges, shape (E, 2, 2).
    constant : nats.
    """

    unary: Floats
    edges: Ints
    tables: Floats
    constant: float = 0.0

    @classmethod
    def of(cls, graph: FactorGraph) -> BinaryModel:
        """A factor graph in this form; a variable with one state gets a second one that is
        impossible.

        Raises
        ------
        UnsuitableModel : a variable has three states or more, or a factor three variables or more.
        """
        for i, k in enumerate(graph.cardinalities):
            if k > 2:
                raise UnsuitableModel(
                    f"variable {i} has {k} states, and graph cuts take two", "elimination and TRW-S take more"
                )
        form = pairwise(graph)
        unary = form.unary[noise_columns(graph)]
        unary[np.array(graph.cardinalities) == 1, 1] = -np.inf
        return cls(unary, form.edges, np.array(form.tables).reshape(-1, 2, 2), form.constant)

    def values(self, states: Ints, noise: Floats) -> Floats:
        """phi(x) + sum_i noise_i(x_i); shapes (batch, n), (batch, n, 2) -> (batch,)."""
        field = self.unary + noise
        own = np.where(states == 1, field[..., 1], field[..., 0])
        entries = 2 * states[:, self.edges[:, 0]] + states[:, self.edges[:, 1]] + 4 * np.arange(len(self.edges))
        return np.asarray(self.constant + own.sum(axis=1) + self.tables.reshape(-1)[entries].sum(axis=1))

    def blocks(self, batch: int) -> Iterator[slice]:
        """Rows of a batch whose temporary arrays are of bounded size."""
        rows = max(1, BLOCK // (2 * len(self.unary) + len(self.edges)))
        return (slice(start, min(start + rows, batch)) for start in range(0, batch, rows))


def noise_columns(graph: FactorGraph) -> Ints:
    """Columns of the two states of each variable in a row of noise, shape (n, 2); a single state
    counts twice.
    """
    ends = np.cumsum(graph.cardinalities)
    return np.stack([ends - graph.cardinalities, ends - 1], axis=1)


@dataclass(frozen=True)
class CutForm:
    """phi(x) = constant + sum_i log_odds_i x_i - sum_e cost_e(x_i, y_j) over the x without a
    forbidden state.

    y_j is x_j, or 1 - x_j if e is repulsive. Edge e costs `capacities[e, 0]` at x_i = 0, y_j = 1,
    `capacities[e, 1]` at x_i = 1, y_j = 0, and nothing where the two agree.

    Attributes
    ----------
    constant : nats.
    log_odds : finite, shape (n,).
    forbidden : states that are impossible whatever the neighbours, shape (n, 2).
    edges : those that couple their variables, shape (C, 2).
    repulsive : which of them favour unlike states, shape (C,).
    capacities : nats, at least 0; inf where the pair of states is impossible, shape (C, 2).
    """

    constant: float
    log_odds: Floats
    forbidden: Bools
    edges: Ints
    repulsive: Bools
    capacities: Floats

    @classmethod
    def of(cls, model: BinaryModel) -> CutForm:
        """Split each table into two unary ones and the cost of disagreement.

        A table [[a, b], [c, d]] over x_i and y = y_j is
        a + x_i (c - a + d - b) / 2 + y (b - a + d - c) / 2 - [x_i != y] (a + d - b - c) / 2.
        """
        n = len(model.unary)
        i, j = model.edges.T
        forbidden = model.unary == -np.inf
        tables = model.tables
        for axis, variable in ((2, i), (1, j)):
            # A row (column) of -inf forbids a state of one variable; the other row then stands in
            # for it.
            gone = (tables == -np.inf).all(axis=axis)
            edge, state = np.nonzero(gone)
            forbidden[variable[edge], state] = True
            tables = np.where(np.expand_dims(gone, axis), np.flip(tables, 3 - axis), tables)
        tables = np.where(tables.max(axis=(1, 2), keepdims=True) == -np.inf, 0.0, tables)
        # Any -inf left is on one diagonal only: no inf - inf.
        repulsive = tables[:, 0, 0] + tables[:, 1, 1] < tables[:, 0, 1] + tables[:, 1, 0]
        a, b, c, d = np.where(repulsive[:, None, None], tables[..., ::-1], tables).reshape(-1, 4).T
        hard = np.stack([b, c], axis=1) == -np.inf
        both = hard.all(axis=1)
        b, c = np.where(both, a, b), np.where(both, d, c)
        b, c = np.where(b == -np.inf, a + d - c, b), np.where(c == -np.inf, a + d - b, c)
        coupling = a + d - b - c
        of_i, of_j = (c - a + d - b) / 2, (b - a + d - c) / 2
        unary = np.where(model.unary == -np.inf, model.unary[:, ::-1], model.unary)
        unary = np.where(unary == -np.inf, 0.0, unary)
        log_odds = unary[:, 1] - unary[:, 0]
        log_odds += np.bincount(i, of_i, n) + np.bincount(j, np.where(repulsive, -of_j, of_j), n)
        constant = model.constant + unary[:, 0].sum() + a.sum() + of_j[repulsive].sum()
        # A table that is the sum of two unary ones has a coupling of the size of its rounding.
        rounding = 4 * np.finfo(np.float64).eps * np.abs([a, b, c, d]).max(axis=0)
        kept = hard.any(axis=1) | (coupling > rounding)
        capacities = np.where(hard, np.inf, np.maximum(coupling, 0.0)[:, None] / 2)
        return cls(float(constant), log_odds, forbidden, model.edges[kept], repulsive[kept], capacities[kept])


class MinimumCut:
    """Exact MAP of a binary pairwise model whose edges are attractive once some variables are
    flipped.

    Attributes
    ----------
    flips : the variables that are flipped, shape (n,).

    Raises
    ------
    UnsuitableModel : a cycle of edges stays frustrated whatever is flipped; the message names one
        of its edges.
    """

    def __init__(self, model: BinaryModel) -> None:
        form = CutForm.of(model)
        self.model = model
        self.flips = _flips(len(model.unary), form.edges, form.repulsive)
        self._log_odds = form.log_odds
        capacities, forbidden = form.capacities, form.forbidden
        turned = self.flips[form.edges[:, 0], None]
        self._network = Network(
            form.edges,
            np.where(turned, capacities[:, ::-1], capacities),
            np.where(self.flips[:, None], forbidden[:, ::-1], forbidden),
        )

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """`MapSolver.maximise` for noise of shape (batch, n, 2)."""
        batch, n, _ = noise.shape
        values, states = np.full(batch, -np.inf), np.zeros((batch, n), np.int64)
        if not self._network.possible:
            return values, states
        signs = np.where(self.flips, 1.0, -1.0)
        for rows in self.model.blocks(batch):
            costs = signs * (self._log_odds + noise[rows, :, 1] - noise[rows, :, 0])
            states[rows] = self._network.labels(costs) ^ self.flips
            values[rows] = self.model.values(states[rows], noise[rows])
        return values, states


class GraphCut:
    """Exact MAP of attractive (supermodular) binary pairwise models: a `MapSolver`.

    The maximum of phi is a minimum cut if table[0, 0] + table[1, 1] >= table[0, 1] + table[1, 0] on
    every edge, perhaps after some variables have been flipped (Greig, Porteous and Seheult, 1989;
    Kolmogorov and Zabih, 2004).

    Parameters
    ----------
    graph : the model; may have `-inf` and variables with one state.

    Raises
    ------
    UnsuitableModel : a variable of three states or more, a factor of three variables or more, or a
        frustrated cycle.
    """

    name = "graph cut"
    guarantee: Guarantee = "exact"

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self._cut = MinimumCut(BinaryModel.of(graph))
        self._columns = noise_columns(graph)

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """See `MapSolver.maximise`."""
        return self._cut.maximise(noise[:, self._columns])


def _flips(n: int, edges: Ints, repulsive: Bools) -> Bools:
    """Variables to flip so that no edge is repulsive: two colours that differ across the repulsive
    edges.
    """
    if not repulsive.any():
        return np.zeros(n, np.bool_)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

    def square(size: int, i: Ints, j: Ints, data: Floats) -> Any:
        return coo_array((data, (i, j)), shape=(size, size))

    i, j = edges.T
    forest = minimum_spanning_tree(square(n, i, j, np.where(repulsive, 2.0, 1.0))).tocoo()
    unlike = forest.data == 2.0
    # Each variable twice, as it is and flipped: a tree falls into two copies, one for each
    # colouring.
    heads = np.concatenate([forest.col + n * unlike, forest.col + n * ~unlike])
    tails = np.concatenate([forest.row, forest.row + n])
    _, copies = connected_components(square(2 * n, tails, heads, np.ones(len(tails))), directed=False)
    flips: Bools = copies[:n] > copies[n:]
    frustrated = (flips[i] ^ flips[j]) != repulsive
    if frustrated.any():
        first = tuple(edges[frustrated.argmax()].tolist())
        raise UnsuitableModel(
            f"a cycle through the edge {first} is frustrated, so that the model is not attractive after any flips",
            "elimination takes it if its width is small, TRW-S approximately",
        )
    return flips
