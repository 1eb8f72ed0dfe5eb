"""Exact sum, maximum, marginals and samples of a factor graph by variable elimination."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.inference.elimination.entropy import elimination_entropy
from thesis_cli.inference.elimination.order import bytes_needed, cliques_of, index_type
from thesis_cli.inference.elimination.slices import prepared
from thesis_cli.inference.elimination.sums import Held, Segments, SliceMaxima, Sum, segments
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph, squeezed


class Elimination:
    """A factor graph prepared for any number of sums, maximisations or samples.

    No table exists before the first of them. If the tables do not fit into the memory, the model is
    solved in slices, in each of which some variables are held at a state.

    Parameters
    ----------
    graph : the model.
    memory : bytes that the tables of one elimination may take.
    jobs : threads of a partition function; its bits do not depend on them.
    seconds : that the entries of its tables may take alone; what takes longer is refused before it is planned.

    Attributes
    ----------
    name, guarantee : `elimination`, `exact`.
    order : the elimination order; variables that are held come last.
    width : number of variables in the largest table, less one.
    slices : number of slices.
    entries : of the tables of all slices.
    cost : predicted time and memory of one partition function.

    Raises
    ------
    ModelTooLarge : the best order found needs more than `memory`, even in slices that take a
        reasonable time; the message gives the width.
    """

    name = "elimination"
    guarantee: Guarantee = "exact"

    def __init__(
        self, graph: FactorGraph, memory: int = DEFAULT_MEMORY, *, jobs: int = 1, seconds: float = math.inf
    ) -> None:
        self.graph, self._memory, self._jobs = graph, memory, jobs
        self._factors = [squeezed(f, graph.cardinalities) for f in graph.factors]
        found = prepared(graph.cardinalities, [f.scope for f in self._factors], memory, seconds)
        self._plan, self._held, self.slices = found.plan, found.held, found.slices
        self.width, self.entries, self.cost = found.width, found.entries, found.cost
        within = {*self._plan.order, *self._held}
        self._free = [i for i in range(len(graph.cardinalities)) if i not in within]
        self.order = [*self._free, *self._plan.order, *self._held]
        self._offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)])

    def _check_memory(self, cost: int, what: str) -> None:
        if cost > self._memory:
            raise ModelTooLarge(
                f"{what} {bytes_text(cost)} at width {self.width}",
                f"raise the memory from {bytes_text(self._memory)}, or use a method that approximates",
                memory=cost,
                width=self.width,
            )

    def _slices(self) -> Iterator[dict[int, int]]:
        """States of the variables that are held, one slice after the other."""
        for states in itertools.product(*(range(self.graph.cardinalities[i]) for i in self._held)):
            yield dict(zip(self._held, states, strict=True))

    def _constant(self, held: Held) -> float:
        """Sum of the factors that have no variable left."""
        empty = [f.table[tuple(held[i] for i in f.scope)] for f in self._factors if held.keys() >= set(f.scope)]
        return float(sum(empty))

    def _prepare(self, held: Held, at: Ints, messages: Floats) -> Sum:
        return Sum(self._plan, self._plan.log_groups(self._factors, held), at, messages, self._jobs)

    def _log_z_of_slices(self) -> Floats:
        """ln Z of each slice."""
        at, size = self._plan.places
        messages = np.empty(size)
        free = math.fsum(math.log(self.graph.cardinalities[i]) for i in self._free)
        found = []
        for held in self._slices():
            work = self._prepare(held, at, messages)
            work.forward(0, len(self._plan.order))
            found.append(work.log_z() + self._constant(held) + free)
        return np.array(found)

    def log_partition_function(self) -> float:
        """Exact ln Z in nats; `-inf` when no configuration is possible."""
        parts = self._log_z_of_slices()
        return float(np.logaddexp.reduce(parts) if parts.size > 1 else parts[0])

    def _weights_of_slices(self) -> tuple[float, Floats]:
        """ln Z, and the probability of each slice. Raises NoConfiguration if none is possible."""
        parts = self._log_z_of_slices()
        log_z = float(np.logaddexp.reduce(parts) if parts.size > 1 else parts[0])
        if log_z == -np.inf:
            raise NoConfiguration()
        return log_z, np.exp(parts - log_z)

    def _segments(self) -> Segments:
        """Segments of a backward pass over the sums of a slice."""
        found = segments(self._plan, self._memory, 8)
        self._check_memory(found.memory, "a backward pass needs")
        return found

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Independent draws from the Gibbs distribution, exact, by sampling the variables in
        reverse order.

        Parameters
        ----------
        count : number of draws.
        rng : source of the `count` uniforms of each variable.

        Returns
        -------
        Shape (count, n).

        Raises
        ------
        ModelTooLarge : the messages of a backward pass do not fit into the memory.
        NoConfiguration : no configuration is possible.
        """
        parts = self._segments()
        weights = self._weights_of_slices()[1]
        chosen = np.zeros(count, np.int64)
        if self.slices > 1:
            cumulative = np.cumsum(weights)
            chosen = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
        states = np.zeros((count, len(self.order)), np.int64)
        for s, held in enumerate(self._slices()):
            rows = np.flatnonzero(chosen == s)
            if rows.size:
                own = np.zeros((rows.size, len(self._plan.order)), np.int64)
                work = self._prepare(held, parts.forward_at, np.empty(0))
                for j in work.backward(parts):
                    work.draw(j, rng.random(rows.size), own)
                states[rows[:, np.newaxis], self._plan.order] = own
                for i, state in held.items():
                    states[rows, i] = state
        for i in reversed(self._free):
            k = self.graph.cardinalities[i]
            states[:, i] = np.minimum((rng.random(count) * k).astype(np.int64), k - 1)
        return states

    def marginals(self) -> tuple[float, Floats]:
        """ln Z, and P(x_i) of every state of every variable.

        Returns
        -------
        log_z : nats.
        probabilities : shape (sum of cardinalities,), laid out as the noise of `maximise`.

        Raises
        ------
        ModelTooLarge, NoConfiguration : as `sample`.
        """
        parts = self._segments()
        log_z, weights = self._weights_of_slices()
        found = np.zeros(self._offsets[-1])
        for i in self._free:
            found[self._offsets[i] : self._offsets[i + 1]] = 1 / self.graph.cardinalities[i]
        for weight, held in zip(weights, self._slices(), strict=True):
            if weight == 0:
                continue
            work = self._prepare(held, parts.forward_at, np.empty(0))
            for j in work.backward(parts, replacing=True):
                i = self._plan.order[j]
                own = work.send_back(j)
                found[self._offsets[i] : self._offsets[i + 1]] += weight * own / own.sum()
            for i, state in held.items():
                found[self._offsets[i] + state] += weight
        return log_z, found

    def renyi_entropy(self, alpha: float = 1.0) -> tuple[float, float]:
        """ln Z, and the Renyi entropy of an order near 1, which eq. 3.27 of the thesis would lose
        to cancellation.

        The chain rule writes p as the product over the steps of q(x_i | scope). The message of a
        step is the entropy of all variables summed out so far, given its scope: h = -M[ln q - sum
        of the incoming h], with the exponential mean M[v] = ln(sum_x q e^{(alpha - 1) v}) / (alpha
        - 1), which is the mean at alpha = 1. No terms cancel.

        Parameters
        ----------
        alpha : order, 1/2 or above, with |alpha - 1| ln |X| at most about 1; beyond, 1 + what is
            summed loses digits.

        Returns
        -------
        log_z : nats.
        entropy : H_alpha, nats, at least 0.

        Raises
        ------
        ModelTooLarge : the tables of an entropy, three times those of an elimination in log space,
            do not fit into the memory.
        NoConfiguration : no configuration is possible.
        """
        scopes = [f.scope for f in self._factors]
        cliques = cliques_of(self.order, scopes)
        self._check_memory(3 * bytes_needed(self.graph.cardinalities, self.order, cliques), "an entropy needs")
        log_z = self.log_partition_function()
        if log_z == -np.inf:
            raise NoConfiguration()
        return log_z, elimination_entropy(self.graph.cardinalities, self._factors, self.order, cliques, alpha)

    def maxima_segments(self) -> Segments:
        """Segments of a backward pass over the maxima of a slice.

        Raises
        ------
        ModelTooLarge : they do not fit into the memory.
        """
        found = segments(self._plan, self._memory, index_type(max(self.graph.cardinalities))().itemsize)
        self._check_memory(found.memory, "a backward pass needs")
        return found

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """MAP under perturbed unary tables.

        Parameters
        ----------
        noise : added to the unary log-potentials, shape (batch, sum of cardinalities): the states
            of variable 0, then those of variable 1, ...

        Returns
        -------
        values : max_x {phi(x) + sum_i noise_i(x_i)}, shape (batch,).
        states : a maximiser of each, shape (batch, n).

        Raises
        ------
        ModelTooLarge : the maximisers of a backward pass do not fit into the memory.
        """
        batch = noise.shape[0]
        kind = index_type(max(self.graph.cardinalities))
        parts = self.maxima_segments()
        noise_at = self._offsets[np.array(self._plan.order, np.int64)]
        noise = np.ascontiguousarray(noise, np.float64)
        values = np.full(batch, -np.inf)
        states = np.zeros((batch, len(self.order)), np.int64)
        rest = np.zeros(batch)
        for i in self._free:
            free = noise[:, self._offsets[i] : self._offsets[i + 1]]
            states[:, i] = free.argmax(axis=1)
            rest += free.max(axis=1)
        for s, held in enumerate(self._slices()):
            work = SliceMaxima(self._plan, self._plan.log_groups(self._factors, held), noise_at, parts, kind)
            found, own = work.of(noise)
            found += self._constant(held)
            for i, state in held.items():
                found += noise[:, self._offsets[i] + state]
            better = (found > values) | (s == 0)
            values[better] = found[better]
            for i, state in held.items():
                states[better, i] = state
            states[np.flatnonzero(better)[:, np.newaxis], self._plan.order] = own[better]
        return values + rest, states
