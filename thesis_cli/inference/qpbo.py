"""Partial optimality and an upper bound for any binary pairwise model, by roof duality."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.graph_cut import BinaryModel, CutForm, Network, noise_columns
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph

SWEEPS = 100
"""Most passes over the unlabelled variables when they are completed."""


class QPBO:
    """Quadratic pseudo-Boolean optimisation (Hammer, Hansen and Simeone, 1984; Rother et al.,
    2007): a `MapSolver`.

    Every variable gets a second node that stands for its complement; a minimum cut of the two is
    twice a lower bound of -max phi, and where the nodes of a variable disagree, all maximisers have
    that state.

    Parameters
    ----------
    graph : the model; may have `-inf` and variables with one state.

    Raises
    ------
    UnsuitableModel : a variable of three states or more, or a factor of three variables or more.
    """

    name = "QPBO"
    guarantee: Guarantee = "approximate"

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self._model = BinaryModel.of(graph)
        self._form = form = CutForm.of(self._model)
        self._columns = noise_columns(graph)
        n = len(graph.cardinalities)
        i, j = form.edges.T
        heads = np.concatenate([j + n * form.repulsive, j + n * ~form.repulsive])
        self._network = Network(
            np.stack([np.concatenate([i, i + n]), heads], axis=1),
            np.concatenate([form.capacities, form.capacities[:, ::-1]]),
            np.concatenate([form.forbidden, form.forbidden[:, ::-1]]),
        )
        i, j = self._model.edges.T
        tables = np.concatenate([self._model.tables.swapaxes(1, 2), self._model.tables])
        order = np.argsort(np.concatenate([i, j]), kind="stable")
        self._starts = np.searchsorted(np.concatenate([i, j])[order], np.arange(n + 1))
        self._others = np.concatenate([j, i])[order]
        # What a neighbour in state 0, in state 1 and (index -1) in none adds to the two states of a
        # variable.
        self._shares = np.concatenate([tables, np.zeros((len(tables), 1, 2))], axis=1)[order]

    def persistent(self, noise: Floats) -> tuple[Ints, Floats]:
        """The part of the maximisers that the roof dual determines.

        Parameters
        ----------
        noise : as for `MapSolver.maximise`, shape (batch, sum of cardinalities).

        Returns
        -------
        states : those that all maximisers share (strong persistency, up to rounding), -1 where
            unlabelled, shape (batch, n).
        bounds : the roof dual, at least max_x {phi(x) + sum_i noise_i(x_i)}, shape (batch,); `-inf`
            only if no configuration is possible.
        """
        batch, n = len(noise), len(self.graph.cardinalities)
        states, bounds = np.full((batch, n), -1, np.int64), np.full(batch, -np.inf)
        if not self._network.possible:
            return states, bounds
        for row in range(batch):
            zero, one = noise[row, self._columns].T
            log_odds = self._form.log_odds + one - zero
            cost, labels = self._network.cut(np.concatenate([-log_odds, log_odds]))
            # Rounding can put both nodes of a variable on one side; it is unlabelled then.
            states[row, labels[:n] > labels[n:]] = 1
            states[row, labels[n:] > labels[:n]] = 0
            bounds[row] = self._form.constant + zero.sum() + (log_odds.sum() - cost) / 2
        return states, bounds

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """See `MapSolver.maximise`; the maximum itself if every variable is labelled.

        The others are completed greedily in their order, each by its best state given the
        neighbours that have one, then changed one at a time while that gains (iterated conditional
        modes).
        """
        states, _ = self.persistent(noise)
        values = np.empty(len(noise))
        for rows in self._model.blocks(len(noise)):
            pairs = noise[rows][:, self._columns]
            self._complete(states[rows], pairs)
            values[rows] = self._model.values(states[rows], pairs)
        return values, states

    def _complete(self, states: Ints, noise: Floats) -> None:
        """Replace each -1 in `states`, shape (batch, n), under `noise`, shape (batch, n, 2)."""
        unlabelled = states < 0
        for _ in range(SWEEPS):
            before = states.copy()
            for i in np.flatnonzero(unlabelled.any(axis=0)):
                rows = np.flatnonzero(unlabelled[:, i])
                near = np.arange(self._starts[i], self._starts[i + 1])
                shares = self._shares[near, states[rows[:, None], self._others[near]]]
                zero, one = (self._model.unary[i] + noise[rows, i] + shares.sum(axis=1)).T
                kept = np.maximum(states[rows, i], 0)
                states[rows, i] = np.where(one > zero, 1, np.where(zero > one, 0, kept))
            if (states == before).all():
                break
