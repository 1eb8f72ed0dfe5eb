"""Sequential tree-reweighted max-product: a configuration and an upper bound on the maximum."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.inference.message_passing.belief_propagation import (
    messages_of,
    over_rows,
    perturbed_values,
    soft_binary,
)
from thesis_cli.inference.message_passing.message_arrays import Bounded, Forests, Messages, Spins, StoppingRule
from thesis_cli.inference.message_passing.spins import Fields, forests_of, spins_of
from thesis_cli.inference.pairwise import Pairwise, lifted, pairwise
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph

SECONDS_AN_ENTRY, EDGE = 2e-8, 50
"""Time of an iteration for each entry of a table of a pair, as measured, and the entries that take
as long as what is done once a pair."""

SECONDS_A_SPIN = 4e-8
"""Time of an iteration and a round of search for each variable and pair of a binary model, as
measured."""


class TRWS:
    """TRW-S with monotonic chains in the order of the variables (Kolmogorov 2006).

    The model is a sum over chains. An iteration passes messages up and down the order, so that the
    sum of the chains' maxima, which is always an upper bound, never rises except by rounding. On
    the way, variables are decoded in order, each given those before it. Every `patience`
    iterations, and at the end, exact maximisation over one forest of variables after another, given
    the rest, improves the best configuration (after Hamze and de Freitas 2004) until no other state
    of a single variable is better. A row ends when it is certified, when its bound stalls, or at
    `max_iterations`.

    Where variables have two states and no configuration is forbidden, a message is one number, and
    the search goes on in rounds, one for each iteration and further ones, until it stalls too. A
    round disturbs the fields of a forest, ascends from there, and keeps each connected part of what
    has changed that gains; no edge links two parts, so that each is judged by itself.

    Parameters
    ----------
    graph : any model; a factor of three or more variables becomes a variable tied to those of its
        scope.
    tolerance : a row is certified, that is, optimal within this tolerance, when
        bound - value <= tolerance max(1, |bound|).
    progress : threshold in [0, 1). A bound has stalled if it fell in `patience` iterations by at most this
        share of bound - value, or by at most the tolerance. With 0, bounds run to their limit.
    patience : number of iterations between two such checks.
    max_iterations : largest number of iterations, and of rounds of search, for each row, 1 or more.
    jobs : threads that share the rows of a batch; the results do not depend on it.

    Attributes
    ----------
    certified : whether each row of the last call is certified, shape (batch,).
    iterations : number of iterations of each row of the last call, shape (batch,).
    """

    name = "TRW-S"
    guarantee: Guarantee = "approximate"

    def __init__(
        self,
        graph: FactorGraph,
        *,
        tolerance: float = 1e-9,
        progress: float = 0.01,
        patience: int = 10,
        max_iterations: int = 2000,
        jobs: int = 1,
    ) -> None:
        self.graph = graph
        self._form = pairwise(lifted(graph))
        self._model = _soft(self._form) if soft_binary(self._form) else messages_of(self._form)
        self._tolerance = float(tolerance)
        self._limits = StoppingRule(self._tolerance, float(progress), patience, max_iterations)
        self._jobs = jobs
        self.certified: Bools = np.empty(0, np.bool_)
        self.iterations: Ints = np.empty(0, np.int64)

    def limit(self, seconds: float) -> None:
        """Change the largest number of iterations to what is predicted to take so many seconds for
        each row, but no more than before.
        """
        tables = self._form.tables
        if isinstance(self._model, Messages):
            iteration = (sum(table.size for table in tables) + EDGE * len(tables)) * SECONDS_AN_ENTRY
        else:
            iteration = (self._form.unary.size + len(tables)) * SECONDS_A_SPIN
        most = max(1, int(min(seconds / max(iteration, SECONDS_AN_ENTRY), self._limits.max_iterations)))
        self._limits = self._limits._replace(max_iterations=most)

    def solve(self, noise: Floats) -> tuple[Floats, Ints, Floats]:
        """MAP under perturbed unary tables, with bounds.

        Parameters
        ----------
        noise : finite, added to the unary log-potentials, shape (batch, sum of cardinalities).

        Returns
        -------
        values : phi(x) + sum_i noise_i(x_i) of the configurations found, shape (batch,).
        states : the configurations, shape (batch, n).
        bounds : upper bounds on the maxima, shape (batch,); `-inf` proves that no configuration is
            possible.
        """
        batch, given = noise.shape
        states = np.zeros((batch, len(self._form.cardinalities)), np.int64)
        values, bounds, iterations = np.empty(batch), np.empty(batch), np.empty(batch, np.int64)

        def work(rows: slice) -> None:
            unary = np.repeat(self._form.unary[None], rows.stop - rows.start, axis=0)
            unary[:, :given] += noise[rows]
            part = Bounded(states[rows], bounds[rows], iterations[rows])
            if isinstance(self._model, Messages):
                self._by_tables(unary, part)
            else:
                values[rows] = self._by_spins(*self._model, unary, part)

        over_rows(work, batch, self._jobs)
        found = np.ascontiguousarray(states[:, : len(self.graph.cardinalities)])
        if isinstance(self._model, Messages):
            values = perturbed_values(self.graph, noise, found)
        scale = np.maximum(1, np.abs(np.where(bounds > -np.inf, bounds, 0)))
        self.certified = values >= bounds - self._tolerance * scale
        self.iterations = iterations
        return values, found, bounds

    def _by_tables(self, unary: Floats, found: Bounded) -> None:
        from thesis_cli.inference.message_passing.trws_kernels import trws

        assert isinstance(self._model, Messages)
        trws(self._model, self._form.constant, len(self.graph.cardinalities), unary, self._limits, found)

    def _by_spins(self, spins: Spins, fields: Fields, forests: Forests, unary: Floats, found: Bounded) -> Floats:
        """The values of the configurations."""
        from thesis_cli.inference.message_passing.spin_kernels import spin_trws

        placed = found._replace(states=np.empty_like(found.states))
        spin_trws(spins, forests, *fields.of(unary), self._limits, placed)
        found.states[:, spins.variables] = placed.states
        return fields.values(spins, unary, placed.states)

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """See `MapSolver.maximise`."""
        return self.solve(noise)[:2]


def _soft(form: Pairwise) -> tuple[Spins, Fields, Forests]:
    spins, fields = spins_of(form)
    return spins, fields, forests_of(spins)
