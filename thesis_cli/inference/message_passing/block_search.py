"""A configuration improved by moves of blocks: annealing in regions and as a whole, by the exact maximum over a random
tree under noise.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.message_passing.belief_propagation import messages_of
from thesis_cli.inference.pairwise import pairwise
from thesis_cli.models.factor_graph import Factor, FactorGraph

FIRST_VISITS = 1000
"""Visits of variables before the time is looked at first."""

COLDEST, LEAST = 2.0**-7, 1e-6
"""Share of the usual temperature from which regions begin at least, and nats that it is at least."""

WALL = 0.5
"""Share of the cost of an impossible entry that is the highest temperature, so that searches get past it."""

LEAST_ROUND, MOST_ROUND, ROUND = 128, 1024, 0.25
"""Visits of each variable in a round, between which a random number is drawn, uniform in its logarithm; the most grows
to this share of all visits so far.
"""

MELTED = 8.0
"""A restart begins at the usual temperature over this at least."""

INTERVAL = 2.0
"""Most seconds between two looks at the time."""

_SEED = 20231123


class BlockSearch:
    """Local search over configurations of a pairwise model.

    The maximum over the variables of a tree given the others, under Gumbel noise at a temperature, moves many of
    them at once (perturb-and-MAP on trees; without noise Hamze and de Freitas 2004). A region around a random
    variable is cooled so, from a random temperature, and each connected part of what has changed is kept if it
    gains. In turns with the best configuration, one that annealing of all variables began anew is improved for as
    long.

    Parameters
    ----------
    graph : a model without factors of three or more variables. An impossible entry costs more than all
        others together.
    seed : seed of all random numbers.

    Raises
    ------
    UnsuitableModel : a factor has three or more variables.
    """

    name = "block moves"

    def __init__(self, graph: FactorGraph, seed: int = _SEED) -> None:
        from thesis_cli.inference.message_passing.block_kernels import Block

        self.graph = graph
        form = pairwise(graph)
        tables = *np.split(form.unary, form.offsets[1:-1]), *form.tables
        penalty = 1 + sum(_span(table) for table in tables)
        self._model = messages_of(replace(form, tables=tuple(_finite(table, penalty) for table in form.tables)))
        self._unary = _finite(form.unary, penalty)
        degree = 2 * len(form.tables) / max(1, len(form.cardinalities))
        usual = LEAST + float(np.mean([_spread(table) for table in form.tables] or [0.0])) * max(1.0, degree) ** 0.5
        self._usual, self._wall = usual, 0.0 if form.soft else WALL * penalty
        self._mean = form.constant + sum(_mean(table) for table in tables)
        self._freedom = float(np.log(form.cardinalities).sum())
        n = len(form.cardinalities)
        states = self._unary.size
        self._block = Block(
            np.zeros(n, np.int64),
            np.full(n, -2, np.int64),
            np.zeros(n, np.int64),
            np.zeros(2 * len(form.tables) + 1, np.int64),
            np.zeros(states),
            np.zeros(n, np.int64),
            np.zeros(n, np.bool_),
            np.zeros(n, np.int64),
        )
        self._stream, self._rng = np.uint64(seed), np.random.default_rng(seed)
        self._hot = self._usual
        self._rate = 0.0  # visits in a second
        self._visits = 0  # so far
        self._end, self._last = np.inf, np.inf  # the time and the number of visits at which to end

    def improve(self, states: Ints, *, seconds: float = np.inf, visits: float = np.inf) -> tuple[float, Ints]:
        """The log-potential, with its configuration, after so many seconds or visits of variables.

        Parameters
        ----------
        states : where to start, shape (n,); it may be impossible.
        """
        self._end, self._last = time.monotonic() + seconds, self._visits + visits
        best = np.ascontiguousarray(states, np.int64).copy()
        value = self._value(best)
        self._hot = max(self._usual, self._wall, self._melting(value))
        while True:
            least = LEAST_ROUND * best.size
            most = max(MOST_ROUND * best.size, ROUND * self._visits)
            turn = int(least * (most / least) ** self._rng.random())
            self._polish(best, turn)
            if self._left() < 1:
                break
            rival = self._anew(turn)
            self._polish(rival, turn)
            if self._value(rival) > self._value(best):
                best = rival
        found = self._value(best)
        return (found, best) if found >= value else (value, states)

    def _polish(self, states: Ints, turn: int) -> None:
        """Anneal regions for so many visits, as long as there are any left."""
        from thesis_cli.inference.message_passing.block_kernels import search

        while turn > 0 and (step := int(min(turn, self._left()))) > 0:
            began = time.monotonic()
            heat = COLDEST * self._usual, self._hot
            self._stream = np.uint64(search(self._model, self._unary, *heat, step, self._stream, states, self._block))
            self._count(step, began)
            turn -= step

    def _anew(self, turn: int) -> Ints:
        """Anneal all variables by so many visits, as far as there are any left, from a random temperature."""
        from thesis_cli.inference.message_passing.block_kernels import anneal

        coldest = self._usual / MELTED
        start, step = coldest * (self._hot / coldest) ** self._rng.random(), int(min(turn, self._left()))
        began = time.monotonic()
        self._stream = np.uint64(anneal(self._model, self._unary, start, step, self._stream, self._block))
        self._count(step, began)
        return self._block.states.copy()

    def _left(self) -> float:
        """Visits until the next look at the time, or until the end."""
        if not np.isfinite(self._end):
            return self._last - self._visits
        seconds = self._end - time.monotonic()
        return max(FIRST_VISITS, self._rate * min(INTERVAL, seconds / 2)) if seconds > 0 else 0.0

    def _count(self, visits: int, began: float) -> None:
        self._visits += visits
        self._rate = visits / max(time.monotonic() - began, 1e-6)

    def _value(self, states: Ints) -> float:
        return float(self.graph.log_potential(states[None])[0])

    def _melting(self, value: float) -> float:
        """Temperature at which what a configuration gains on the mean of all outweighs their entropy, for a normal
        distribution of phi (Derrida 1981); 0 if it gains nothing.
        """
        gain = value - self._mean
        return 2 * gain / self._freedom if gain > 0 and self._freedom > 0 else 0.0


def prepare() -> None:
    """Call both kernels, so that they are compiled."""
    search = BlockSearch(FactorGraph([2, 2], [Factor((0, 1), np.eye(2))]))
    search.improve(np.zeros(2, np.int64), visits=4 * MOST_ROUND)


def _span(table: Floats) -> float:
    finite = table[np.isfinite(table)]
    return float(np.ptp(finite)) if finite.size else 0.0


def _mean(table: Floats) -> float:
    """Mean of the finite entries."""
    finite = table[np.isfinite(table)]
    return float(finite.mean()) if finite.size else 0.0


def _spread(table: Floats) -> float:
    """Standard deviation of the finite entries."""
    finite = table[np.isfinite(table)]
    return float(finite.std()) if finite.size else 0.0


def _finite(table: Floats, penalty: float) -> Floats:
    """The table with impossible entries at a cost below the least of the others."""
    lowest = float(table[np.isfinite(table)].min(initial=0.0))
    return np.where(np.isfinite(table), table, lowest - penalty)
