"""Partial optimality and an upper bound for any binary pairwise model, by roof duality."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel, CutForm, noise_columns
from thesis_cli.inference.graph_cut.maximum_flow import Network
from thesis_cli.inference.message_passing.trws import TRWS
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph


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

        TRW-S completes the others, with the labelled ones held.
        """
        states, _ = self.persistent(noise)
        open_rows = np.flatnonzero((states < 0).any(axis=1))
        if open_rows.size:
            labels = states[open_rows]
            completed = self._rest.solve(self._held(noise[open_rows], labels))[1]
            states[open_rows] = np.where(labels < 0, completed, labels)
        values = np.empty(len(noise))
        for rows in self._model.blocks(len(noise)):
            values[rows] = self._model.values(states[rows], noise[rows][:, self._columns])
        return values, states

    @cached_property
    def _rest(self) -> TRWS:
        return TRWS(self.graph)

    def _held(self, noise: Floats, labels: Ints) -> Floats:
        """Noise under which each labelled variable prefers its label whatever the others are."""
        model = self._model
        free = self._columns[:, 0] != self._columns[:, 1]
        rows, variables = np.nonzero((labels >= 0) & free)
        label = labels[rows, variables]
        own, other = self._columns[variables, label], self._columns[variables, 1 - label]
        held = noise.copy()
        if np.isfinite(model.tables).all() and np.isfinite(model.unary[free]).all():
            swings = np.ptp(model.tables.reshape(-1, 4), axis=1)
            reach = 1 + np.bincount(model.edges.reshape(-1), np.repeat(swings, 2), len(model.unary))
            better = model.unary[variables, label] - model.unary[variables, 1 - label]
            held[rows, other] = noise[rows, own] + better - reach[variables]
        else:
            held[rows, other] = -np.inf
        return held
