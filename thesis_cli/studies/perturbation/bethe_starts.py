"""Sum-product belief propagation from chosen messages, to see how much its fixed point depends on them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.message_passing.belief_propagation import (
    BetheResult,
    Schedule,
    messages_of,
    soft_binary,
    up_and_down,
)
from thesis_cli.inference.pairwise import pairwise
from thesis_cli.models.factor_graph import FactorGraph

PULL = 5.0
"""Nats by which the first messages favour a state."""


def bethe_from(graph: FactorGraph, states: Ints, *, damping: float = 0.3, max_sweeps: int = 3_000) -> BetheResult:
    """Bethe's ln Z at the fixed point that belief propagation reaches from messages which favour a
    configuration; otherwise as `bethe_log_partition_function`, in one attempt.

    Parameters
    ----------
    graph : a binary model of factors of one or two variables, without hard constraints.
    states : the configuration, shape (n,).
    """
    from thesis_cli.inference.message_passing import belief_kernels

    form = pairwise(graph)
    if not soft_binary(form):
        raise ValueError("the model must be binary, without hard constraints")
    layout = messages_of(form)
    messages = np.zeros(layout.starts[-1])
    messages[layout.starts[:-1] + states[layout.target]] = PULL
    schedule = Schedule(damping, 1e-9, max_sweeps)
    order = up_and_down(form.edges)
    rest = layout, form.unary, order, np.uint64(0), schedule, True, messages
    converged, sweeps = belief_kernels.propagate_binary(*rest)
    marginals: Floats = np.empty(form.unary.size)
    value = form.constant + belief_kernels.bethe(layout, form.unary, messages, marginals)
    return BetheResult(value, converged, sweeps, marginals)


def best_bethe(graph: FactorGraph, starts: Iterable[Ints], found: BetheResult) -> BetheResult:
    """The highest of Bethe's values at converged messages: `found`, or from one of some starts.

    Of an attractive model each is a lower bound on ln Z (Ruozzi 2012), so the highest is the best.
    """
    every = [found, *(bethe_from(graph, states) for states in starts)]
    return max(every, key=lambda result: (result.converged, result.value))
