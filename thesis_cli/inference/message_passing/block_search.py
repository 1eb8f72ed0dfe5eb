"""A configuration improved by moves of blocks: annealing in regions, by the exact maximum over a random tree under
noise.
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

INTERVAL = 0.2
"""Seconds between two looks at the time."""

_SEED = 20231123


class BlockSearch:
    """Local search over configurations of a pairwise model.

    The maximum over the variables of a tree given the others, under Gumbel noise at a temperature, moves many of
    them at once (perturb-and-MAP on trees; without noise Hamze and de Freitas 2004). A region around a random variable
    is cooled so, from a random temperature, and keeps the states that it ends in if they are better.

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
        spans = [_span(table) for table in (*np.split(form.unary, form.offsets[1:-1]), *form.tables)]
        penalty = 1 + sum(spans)
        self._model = messages_of(replace(form, tables=tuple(_finite(table, penalty) for table in form.tables)))
        self._unary = _finite(form.unary, penalty)
        degree = 2 * len(form.tables) / max(1, len(form.cardinalities))
        usual = LEAST + float(np.mean([_spread(table) for table in form.tables] or [0.0])) * max(1.0, degree) ** 0.5
        self._heat = COLDEST * usual, usual if form.soft else max(usual, WALL * penalty)
        n = len(form.cardinalities)
        states = self._unary.size
        self._block = Block(
            np.zeros(n, np.int64),
            np.full(n, -2, np.int64),
            np.zeros(n, np.int64),
            np.zeros(2 * len(form.tables) + 1, np.int64),
            np.zeros(states),
            np.zeros(states),
            np.zeros(n, np.int64),
            np.zeros(n, np.bool_),
            np.zeros(n, np.int64),
        )
        self._stream = np.uint64(seed)
        self._rate = 0.0  # visits in a second

    def improve(self, states: Ints, *, seconds: float = np.inf, visits: int | None = None) -> tuple[float, Ints]:
        """The log-potential, with its configuration, after so many seconds or visits of variables.

        Parameters
        ----------
        states : where to start, shape (n,); it may be impossible.
        """
        from thesis_cli.inference.message_passing.block_kernels import search

        best = np.ascontiguousarray(states, np.int64).copy()
        self._block.states[:] = best
        end = time.monotonic() + seconds
        while True:
            began = time.monotonic()
            step = visits or max(FIRST_VISITS, int(self._rate * min(INTERVAL, end - began)))
            self._stream = np.uint64(
                search(self._model, self._unary, *self._heat, step, self._stream, best, self._block)
            )
            now = time.monotonic()
            self._rate = step / max(now - began, 1e-6)
            if visits or now >= end:
                return float(self.graph.log_potential(best[None])[0]), best


def prepare() -> None:
    """Call the kernel, so that it is compiled."""
    BlockSearch(FactorGraph([2, 2], [Factor((0, 1), np.eye(2))])).improve(np.zeros(2, np.int64), visits=1)


def _span(table: Floats) -> float:
    finite = table[np.isfinite(table)]
    return float(np.ptp(finite)) if finite.size else 0.0


def _spread(table: Floats) -> float:
    """Standard deviation of the finite entries."""
    finite = table[np.isfinite(table)]
    return float(finite.std()) if finite.size else 0.0


def _finite(table: Floats, penalty: float) -> Floats:
    """The table with impossible entries at a cost below the least of the others."""
    lowest = float(table[np.isfinite(table)].min(initial=0.0))
    return np.where(np.isfinite(table), table, lowest - penalty)
