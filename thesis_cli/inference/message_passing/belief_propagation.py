"""Max-product and sum-product belief propagation on any factor graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.parallel import Threads
from thesis_cli.inference.enumeration import starts
from thesis_cli.inference.message_passing.message_arrays import Decoded, Messages, UpdateSchedule
from thesis_cli.inference.pairwise import Pairwise, lifted, pairwise
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph

SPREAD = 0.01
"""Spread of the initial log-messages of sum-product, in nats."""


def messages_of(form: Pairwise) -> Messages:
    """The layout of the messages of a model."""
    cardinalities = np.array(form.cardinalities, np.int64)
    source, target = form.edges.reshape(-1), form.edges[:, ::-1].reshape(-1)
    laid = [t.reshape(-1) for table in form.tables for t in (table.T, table)]
    return Messages(
        form.offsets,
        source,
        np.ascontiguousarray(target),
        starts(cardinalities[target]),
        np.concatenate([np.empty(0), *laid]),
        starts(cardinalities[source] * cardinalities[target])[:-1],
        starts(np.bincount(target, minlength=cardinalities.size)),
        np.argsort(target, kind="stable"),
    )


def soft_binary(form: Pairwise) -> bool:
    """Whether variables have at most two states and no configuration is forbidden.

    A message is then a finite log-ratio.
    """
    return max(form.cardinalities) <= 2 and form.soft


def up_and_down(edges: Ints) -> Ints:
    """Numbers of messages along edges, shape (edges, 2): those to higher variables in the order of their
    sources, then those to lower ones in reverse order."""
    return np.concatenate([np.arange(0, 2 * len(edges), 2), 1 + 2 * np.argsort(-edges[:, 1], kind="stable")])


def perturbed_values(graph: FactorGraph, noise: Floats, states: Ints) -> Floats:
    """phi(x) + sum_i noise_i(x_i) of one configuration for each row of noise, shape (batch,)."""
    offsets = starts(np.array(graph.cardinalities, np.int64))[:-1]
    values: Floats = graph.log_potential(states) + np.take_along_axis(noise, states + offsets, axis=1).sum(axis=1)
    return values


def over_rows(work: Callable[[slice], None], batch: int, jobs: int) -> None:
    """Call `work` on slices that cover the rows of a batch, `jobs` of them at a time."""
    size = max(1, min(1024, math.ceil(batch / (4 * jobs))))
    parts = [slice(start, min(start + size, batch)) for start in range(0, batch, size)]
    with Threads(jobs) as threads:
        for _ in threads.map(work, parts):
            pass


class MaxProduct:
    """Max-product belief propagation with random sequential updates (Thesis section 2.5.3).

    A sweep recomputes every log-message once, in a new random order, from the newest of the others:
    m_ij(x_j) <- damping m_ij(x_j) + (1 - damping) max_x_i {theta_ij(x_i, x_j) + theta_i(x_i) +
    sum_k!=j m_ki(x_i)}, and shifts the maximum of each message to 0. Variables are then decoded
    breadth first, each given its neighbours that are already decoded, so that ties are broken
    consistently. On a forest the result is exact once converged.

    Parameters
    ----------
    graph : any model; a factor of three or more variables sends and receives messages as in a
        factor graph.
    damping, tolerance, max_sweeps : as for `UpdateSchedule`; the sweeps are those of one row.
    seed : seed of the orders of updates, which depend on it and on the noise of the row, not on the
        row's place.
    jobs : threads that share the rows of a batch; the results do not depend on it.

    Attributes
    ----------
    converged : whether each row of the last call converged, shape (batch,).
    sweeps : number of sweeps of each row of the last call, shape (batch,).
    """

    name = "max-product belief propagation"
    guarantee: Guarantee = "approximate"

    def __init__(
        self,
        graph: FactorGraph,
        *,
        damping: float = 0.5,
        tolerance: float = 1e-9,
        max_sweeps: int = 10_000,
        seed: int | np.random.SeedSequence = 0,
        jobs: int = 1,
    ) -> None:
        self.graph = graph
        self._form = pairwise(lifted(graph))
        self._messages = messages_of(self._form)
        self._schedule = UpdateSchedule(float(damping), float(tolerance), max_sweeps)
        self._jobs = jobs
        self._order = _breadth_first(self._messages)
        self._hash = np.random.default_rng(seed).integers(2**64, size=sum(graph.cardinalities), dtype=np.uint64) | 1
        self._binary = soft_binary(self._form)
        self.converged: Bools = np.empty(0, np.bool_)
        self.sweeps: Ints = np.empty(0, np.int64)

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """See `MapSolver.maximise`."""
        from thesis_cli.inference.message_passing import belief_kernels

        noise = np.ascontiguousarray(noise, np.float64)
        batch, given = noise.shape
        states = np.zeros((batch, len(self._form.cardinalities)), np.int64)
        converged, sweeps = np.empty(batch, np.bool_), np.empty(batch, np.int64)

        def work(rows: slice) -> None:
            unary = np.repeat(self._form.unary[None], rows.stop - rows.start, axis=0)
            unary[:, :given] += noise[rows]
            streams = (noise[rows].view(np.uint64) * self._hash).sum(axis=1)
            found = Decoded(states[rows], converged[rows], sweeps[rows])
            model = self._messages, self._order, self._binary
            belief_kernels.max_product(*model, unary, streams, self._schedule, found)

        over_rows(work, batch, self._jobs)
        self.converged, self.sweeps = converged, sweeps
        found = np.ascontiguousarray(states[:, : len(self.graph.cardinalities)])
        return perturbed_values(self.graph, noise, found), found


def _breadth_first(messages: Messages) -> Ints:
    """All variables, breadth first in each component from its lowest."""
    order: list[int] = []
    seen: set[int] = set()
    for root in range(messages.first.size - 1):
        if root in seen:
            continue
        seen.add(root)
        order.append(root)
        for v in (queue := [root]):
            for d in messages.incoming[messages.first[v] : messages.first[v + 1]]:
                if (u := int(messages.source[d])) not in seen:
                    seen.add(u)
                    order.append(u)
                    queue.append(u)
    return np.array(order, np.int64)


@dataclass(frozen=True)
class BetheResult:
    """The Bethe approximation of ln Z.

    Attributes
    ----------
    value : approximation in nats; exact on forests, and a stationary point of the Bethe free energy
        only if `converged`.
    converged : whether the messages reached a fixed point.
    sweeps : number of sweeps in all attempts.
    marginals : beliefs of the variables at the last messages, those of variable 0 first, shape (sum
        of cardinalities,).
    """

    value: float
    converged: bool
    sweeps: int
    marginals: Floats


def bethe_log_partition_function(
    graph: FactorGraph,
    *,
    damping: float = 0.3,
    tolerance: float = 1e-9,
    max_sweeps: int = 3_000,
    seed: int | np.random.SeedSequence = 0,
) -> BetheResult:
    """Bethe approximation of ln Z by sum-product belief propagation (Yedidia, Freeman and Weiss
    2005).

    Messages, damping and tolerance are those of `MaxProduct`, with a sum instead of the maximum. A
    sweep goes up the variables in order and down again. If `max_sweeps` sweeps do not converge, it
    continues up to twice with the same messages and half of 1 - damping.

    Parameters
    ----------
    seed : seed of the initial log-messages, which are small and random. Equal messages of a
        symmetric model would stay at an unstable fixed point.

    Returns
    -------
    The result; its value is `-inf` if the messages prove that no configuration is possible.
    """
    from thesis_cli.inference.message_passing import belief_kernels

    form = pairwise(lifted(graph))
    layout, order = messages_of(form), up_and_down(form.edges)
    propagate = belief_kernels.propagate_binary if soft_binary(form) else belief_kernels.propagate
    messages = np.random.default_rng(seed).uniform(0, SPREAD, layout.starts[-1])
    sweeps, converged = 0, False
    for attempt in range(3):
        schedule = UpdateSchedule(1 - (1 - damping) / 2**attempt, float(tolerance), max_sweeps)
        converged, spent = propagate(layout, form.unary, order, np.uint64(0), schedule, True, messages)
        sweeps += spent
        if converged:
            break
    marginals = np.empty(form.unary.size)
    value = form.constant + belief_kernels.bethe(layout, form.unary, messages, marginals)
    return BetheResult(value, converged, sweeps, marginals[: sum(graph.cardinalities)])
