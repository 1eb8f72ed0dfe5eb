"""Exact sums, maxima, marginals and samples of a small model by variable elimination in NumPy.

It compiles nothing, so a first answer on a new machine takes no longer than later ones. Compiled
elimination (`elimination.py`) is quicker where one model is solved many times.
"""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.base.memory import Cost
from thesis_cli.inference.elimination.entropy import elimination_entropy
from thesis_cli.inference.elimination.order import Clique, Ordering, cliques_of, small_order
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph, squeezed

VARIABLES, ENTRIES = 40, 2**21
"""Most variables of a small model, and most entries of all its tables."""

SECONDS_A_STEP, SECONDS_AN_ENTRY, BYTES_AN_ENTRY = 3e-5, 3e-8, 32
"""Seconds of a step, and of an entry of its table."""

BATCH = 2**18
"""Entries of a table for several rows of noise."""


def small_elimination(graph: FactorGraph, memory: int) -> SmallElimination | None:
    """The solver of a small model, whose tables fit into so many bytes of memory; None for another."""
    most = min(ENTRIES, memory // BYTES_AN_ENTRY)
    if len(graph.cardinalities) > VARIABLES or most < 1:
        return None
    ordering = small_order(
        graph.cardinalities, [squeezed(f, graph.cardinalities).scope for f in graph.factors], math.log2(most)
    )
    return SmallElimination(graph, ordering) if ordering else None


class SmallElimination:
    """A factor graph and an elimination order with small tables, all in log space.

    The interface is that of `Elimination`, and so are the random numbers that samples take.

    Attributes
    ----------
    name, guarantee : `elimination`, `exact`.
    entries : of all tables.
    width : number of variables in the largest table, less one.
    cost : predicted time and memory of one pass.
    """

    name = "elimination"
    guarantee: Guarantee = "exact"

    def __init__(self, graph: FactorGraph, ordering: Ordering) -> None:
        self.graph, k = graph, graph.cardinalities
        self._offsets = np.concatenate([[0], np.cumsum(k)])
        self._factors = [squeezed(f, k) for f in graph.factors]
        named = {i for f in self._factors for i in f.scope}
        self._order = [i for i in ordering.order if i in named]
        self._free = [i for i in range(len(k)) if i not in named]
        self._constant = math.fsum(float(f.table) for f in self._factors if not f.scope)
        at = {i: j for j, i in enumerate(self._order)}

        def laid(scope: Clique) -> Clique:
            return tuple(sorted(scope, key=at.__getitem__, reverse=True))

        cliques = cliques_of(self._order, [f.scope for f in self._factors])
        self._axes = [laid(clique) for clique in cliques]  # the axis that a step sums over is the last
        self._own = [np.zeros([k[i] for i in axes]) for axes in self._axes]  # tables of the factors of each step
        self._taken: list[list[int]] = [[] for _ in self._order]  # steps whose messages a step takes
        self._shapes: list[list[int]] = []  # of each message, with all axes of the step that takes it
        for factor in self._factors:
            if axes := laid(factor.scope):
                into = at[axes[-1]]
                table = factor.table.transpose([factor.scope.index(i) for i in axes])
                self._own[into] += table.reshape([k[i] if i in axes else 1 for i in self._axes[into]])
        for j, axes in enumerate(self._axes):
            into = at[axes[-2]] if len(axes) > 1 else -1
            self._shapes.append([k[i] if i in axes else 1 for i in self._axes[into]] if into >= 0 else [])
            if into >= 0:
                self._taken[into].append(j)
        self.entries = sum(table.size for table in self._own)
        self.width = max(map(len, self._axes), default=1) - 1
        seconds = SECONDS_A_STEP * len(self._order) + SECONDS_AN_ENTRY * self.entries
        self.cost = Cost(seconds, BYTES_AN_ENTRY * self.entries)

    def _forward(self) -> tuple[list[Floats], list[Floats]]:
        """Table and message of each step: logarithms of weights, and of their sums over the last axis."""
        tables: list[Floats] = []
        messages: list[Floats] = []
        for j, own in enumerate(self._own):
            tables.append(sum((messages[q].reshape(self._shapes[q]) for q in self._taken[j]), own))
            messages.append(np.logaddexp.reduce(tables[j], axis=-1))
        return tables, messages

    def _log_z(self, messages: list[Floats]) -> float:
        roots = [float(message) for message in messages if message.ndim == 0]
        free = [math.log(self.graph.cardinalities[i]) for i in self._free]
        parts = [self._constant, *roots, *free]
        return -math.inf if -math.inf in parts else math.fsum(parts)

    def log_partition_function(self) -> float:
        """Exact ln Z in nats; `-inf` when no configuration is possible."""
        return self._log_z(self._forward()[1])

    def _possible(self) -> tuple[list[Floats], list[Floats], float]:
        tables, messages = self._forward()
        log_z = self._log_z(messages)
        if log_z == -math.inf:
            raise NoConfiguration()
        return tables, messages, log_z

    def marginals(self) -> tuple[float, Floats]:
        """ln Z, and P(x_i) of every state of every variable, shape (sum of cardinalities,).

        Raises
        ------
        NoConfiguration : no configuration is possible.
        """
        tables, messages, log_z = self._possible()
        back = [np.zeros(message.shape) for message in messages]
        found = np.empty(self._offsets[-1])
        for i in self._free:
            found[self._offsets[i] : self._offsets[i + 1]] = 1 / self.graph.cardinalities[i]
        for j in reversed(range(len(self._order))):
            axes, inward = self._axes[j], back[j][..., np.newaxis]
            own = np.logaddexp.reduce(tables[j] + inward, axis=tuple(range(len(axes) - 1)))
            weights = np.exp(own - own.max())
            i = self._order[j]
            found[self._offsets[i] : self._offsets[i + 1]] = weights / weights.sum()
            for source in self._taken[j]:
                others = (messages[q].reshape(self._shapes[q]) for q in self._taken[j] if q != source)
                outward = sum(others, self._own[j] + inward)
                summed = tuple(a for a, i in enumerate(axes) if i not in self._axes[source])
                back[source] = np.logaddexp.reduce(outward, axis=summed)
        return log_z, found

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Independent draws from the Gibbs distribution, exact, shape (count, n).

        Raises
        ------
        NoConfiguration : no configuration is possible.
        """
        tables = self._possible()[0]
        states = np.zeros((count, len(self.graph.cardinalities)), np.int64)
        for j in reversed(range(len(self._order))):
            later = tuple(states[:, i] for i in self._axes[j][:-1])
            rows = tables[j][later] if later else tables[j][np.newaxis]
            cumulative = np.cumsum(np.exp(rows - rows.max(axis=1, keepdims=True)), axis=1)
            levels = rng.random(count) * cumulative[:, -1]
            states[:, self._order[j]] = (cumulative[:, :-1] <= levels[:, np.newaxis]).sum(axis=1)
        for i in reversed(self._free):
            k = self.graph.cardinalities[i]
            states[:, i] = np.minimum((rng.random(count) * k).astype(np.int64), k - 1)
        return states

    def renyi_entropy(self, alpha: float = 1.0) -> tuple[float, float]:
        """ln Z, and the Renyi entropy of an order near 1, as `Elimination.renyi_entropy`.

        Raises
        ------
        NoConfiguration : no configuration is possible.
        """
        log_z = self._possible()[2]
        order = [*self._free, *self._order]
        cliques = cliques_of(order, [f.scope for f in self._factors])
        return log_z, elimination_entropy(self.graph.cardinalities, self._factors, order, cliques, alpha)

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """MAP under perturbed unary tables, as `Elimination.maximise`."""
        rows = max(1, BATCH // max((table.size for table in self._own), default=1))
        found = [self._maximise(noise[low : low + rows]) for low in range(0, max(1, len(noise)), rows)]
        return np.concatenate([values for values, _ in found]), np.concatenate([states for _, states in found])

    def _maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """The same in one pass, whose tables have an axis for the rows of noise."""
        batch = np.arange(len(noise))
        parts = [noise[:, low:high] for low, high in zip(self._offsets[:-1], self._offsets[1:], strict=True)]
        values, states = np.full(len(noise), self._constant), np.zeros((len(noise), len(parts)), np.int64)
        messages: list[Floats] = []
        choices: list[Ints] = []
        for j, own in enumerate(self._own):
            unary = parts[self._order[j]]
            table = own + unary.reshape(len(noise), *[1] * (own.ndim - 1), -1)
            for q in self._taken[j]:
                table += messages[q].reshape(len(noise), *self._shapes[q])
            choices.append(table.argmax(axis=-1))
            messages.append(table.max(axis=-1))
            if own.ndim == 1:
                values += messages[j]
        for j in reversed(range(len(self._order))):
            later = (states[:, i] for i in self._axes[j][:-1])
            states[:, self._order[j]] = choices[j][batch, *later]
        for i in self._free:
            states[:, i] = parts[i].argmax(axis=1)
            values += parts[i].max(axis=1)
        return values, states
