"""Exact sum and maximum over a factor graph by variable elimination."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.errors import ModelTooLarge
from thesis_cli.models.factor_graph import FactorGraph, Floats

Ints = npt.NDArray[np.int64]

DEFAULT_MEMORY = 2**31
"""Bytes for the tables of one elimination."""


@dataclass(frozen=True)
class _Step:
    """Eliminating one variable.

    Attributes
    ----------
    variable : the one that goes.
    scope : those its neighbours leave behind, ascending.
    base : sum of the factors that are used up here, shape (1, *scope, variable), 1 for what none of them names.
    messages : earlier steps whose results are used up here, and their shapes over (batch, *scope, variable).
    """

    variable: int
    scope: tuple[int, ...]
    base: Floats
    messages: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]


class Elimination:
    """A factor graph made ready to be summed or maximised over, any number of times.

    Parameters
    ----------
    graph : what is summed over.
    memory : bytes that the tables of one elimination may take.

    Attributes
    ----------
    guarantee : `exact`.
    order : the elimination order.
    width : number of variables in the largest table, less one.

    Raises
    ------
    ModelTooLarge : the order found needs a table beyond `memory`; says the width.
    """

    guarantee = "exact"

    def __init__(self, graph: FactorGraph, memory: int = DEFAULT_MEMORY) -> None:
        self.graph, self._memory = graph, memory
        self.order, cliques = elimination_order(graph.cardinalities, [f.scope for f in graph.factors])
        self.width = max(map(len, cliques)) - 1
        self._cost = _bytes_needed(graph.cardinalities, self.order, cliques)
        if self._cost > memory:
            raise ModelTooLarge(
                f"elimination needs {_bytes(self._cost)} at width {self.width}",
                f"raise the memory from {_bytes(memory)}, or use a method that approximates",
            )
        self._steps, self._constant = self._plan(cliques)
        self._offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)])

    def log_partition_function(self) -> float:
        """Exact ln Z in nats; `-inf` when no configuration is possible."""
        messages: dict[int, Floats] = {}
        total = self._constant
        for j, step in enumerate(self._steps):
            table = self._table(step, messages)
            top = table.max(axis=-1, keepdims=True)
            shift = np.where(top == -np.inf, 0.0, top)
            with np.errstate(divide="ignore"):
                messages[j] = np.log(np.exp(table - shift).sum(axis=-1)) + shift[..., 0]
            if not step.scope:
                total += float(messages.pop(j)[0])
        return total

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """MAP under perturbed unary tables.

        Parameters
        ----------
        noise : added to the unary log-potentials, shape (batch, sum of cardinalities): the states of variable 0,
            then those of variable 1, ...

        Returns
        -------
        values : max_x {phi(x) + sum_i noise_i(x_i)}, shape (batch,).
        states : a maximiser of each, shape (batch, n).
        """
        batch = noise.shape[0]
        chunk = max(1, self._memory // self._cost)
        parts = [self._maximise(noise[start : start + chunk]) for start in range(0, batch, chunk)]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        batch = noise.shape[0]
        messages: dict[int, Floats] = {}
        choices: list[npt.NDArray[np.unsignedinteger]] = []
        values = np.full(batch, self._constant)
        for j, step in enumerate(self._steps):
            own = noise[:, self._offsets[step.variable] : self._offsets[step.variable + 1]]
            table = self._table(step, messages) + own.reshape(batch, *[1] * len(step.scope), -1)
            choices.append(table.argmax(axis=-1).astype(_index_type(table.shape[-1])))
            messages[j] = table.max(axis=-1)
            if not step.scope:
                values += messages.pop(j)
        states = np.empty((batch, len(self.order)), np.int64)
        rows = np.arange(batch)
        for step, choice in zip(reversed(self._steps), reversed(choices), strict=True):
            states[:, step.variable] = choice[(rows, *(states[:, i] for i in step.scope))]
        return values, states

    def _table(self, step: _Step, messages: dict[int, Floats]) -> Floats:
        """Everything that names the variable, shape (batch or 1, *scope, variable)."""
        table = step.base
        for j, axes, shape in step.messages:
            message = messages.pop(j)
            table = table + message.transpose(0, *(a + 1 for a in axes)).reshape(-1, *shape)
        return np.broadcast_to(table, (table.shape[0], *self._shape(step)))

    def _shape(self, step: _Step) -> tuple[int, ...]:
        return tuple(self.graph.cardinalities[i] for i in (*step.scope, step.variable))

    def _plan(self, cliques: Sequence[tuple[int, ...]]) -> tuple[list[_Step], float]:
        """Lay out which tables meet at which step."""
        factors = [f for f in self.graph.factors if f.scope]
        constant = float(sum(f.table for f in self.graph.factors if not f.scope))
        pending: dict[int, tuple[int, ...]] = {}
        steps = []
        for j, (variable, clique) in enumerate(zip(self.order, cliques, strict=True)):
            scope = tuple(i for i in clique if i != variable)
            axes = (*scope, variable)
            base = np.zeros((1, *[1] * len(scope), self.graph.cardinalities[variable]))
            for factor in (f for f in factors if variable in f.scope):
                perm, shape = _align(factor.scope, axes, self.graph.cardinalities)
                base = base + factor.table.transpose(perm).reshape(1, *shape)
            factors = [f for f in factors if variable not in f.scope]
            used = [k for k, s in pending.items() if variable in s]
            messages = tuple((k, *_align(pending.pop(k), axes, self.graph.cardinalities)) for k in used)
            if scope:
                pending[j] = scope
            steps.append(_Step(variable, scope, base, messages))
        return steps, constant


def _align(
    scope: tuple[int, ...], axes: tuple[int, ...], cardinalities: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How to lay a table over `scope` along `axes`: a permutation of its axes, then a shape with ones."""
    perm = tuple(sorted(range(len(scope)), key=lambda a: axes.index(scope[a])))
    return perm, tuple(cardinalities[i] if i in scope else 1 for i in axes)


def elimination_order(
    cardinalities: Sequence[int], scopes: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[tuple[int, ...]]]:
    """The cheapest of three orders: greedy by least fill, greedy by least table, and the variables' own.

    Returns
    -------
    order : the variables.
    cliques : the variables of the table at each step, ascending, the eliminated one among them.
    """
    logs = [math.log(k) for k in cardinalities]

    def size(i: int, neighbours: list[set[int]]) -> float:
        return logs[i] + sum(logs[j] for j in neighbours[i])

    def fill(i: int, neighbours: list[set[int]]) -> float:
        return sum(len(neighbours[i] - neighbours[j]) - 1 for j in neighbours[i])

    rules: tuple[_Rule, ...] = (
        lambda i, near: (fill(i, near), size(i, near), i),
        lambda i, near: (size(i, near), fill(i, near), i),
        lambda i, near: (i,),
    )
    orders = [_greedy(len(cardinalities), scopes, rule) for rule in rules]
    return min(orders, key=lambda found: sum(math.prod(cardinalities[i] for i in clique) for clique in found[1]))


_Rule = Callable[[int, list[set[int]]], tuple[float, ...]]
"""(variable, neighbours of each) -> cost of eliminating it next."""


def _greedy(n: int, scopes: Sequence[tuple[int, ...]], rule: _Rule) -> tuple[list[int], list[tuple[int, ...]]]:
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for scope in scopes:
        for i in scope:
            neighbours[i].update(j for j in scope if j != i)
    costs = {i: rule(i, neighbours) for i in range(n)}
    order, cliques = [], []
    while costs:
        i = min(costs, key=costs.__getitem__)
        near = neighbours[i]
        order.append(i)
        cliques.append(tuple(sorted({i, *near})))
        for j in near:
            neighbours[j] |= near - {j}
            neighbours[j].discard(i)
        del costs[i]
        for j in near.union(*(neighbours[j] for j in near)):
            costs[j] = rule(j, neighbours)
    return order, cliques


def _bytes_needed(cardinalities: Sequence[int], order: Sequence[int], cliques: Sequence[tuple[int, ...]]) -> int:
    """Memory of one elimination: the two largest copies of a table, the messages that wait, and the choices."""
    waiting: dict[int, tuple[tuple[int, ...], int]] = {}
    peak = choices = 0
    for j, (variable, clique) in enumerate(zip(order, cliques, strict=True)):
        size = math.prod(cardinalities[i] for i in clique)
        left = size // cardinalities[variable]
        peak = max(peak, 16 * size + sum(s for _, s in waiting.values()))
        waiting = {k: w for k, w in waiting.items() if variable not in w[0]}
        waiting[j] = tuple(i for i in clique if i != variable), 8 * left
        choices += left * _index_type(cardinalities[variable])().itemsize
    return peak + choices


def _index_type(states: int) -> type[np.unsignedinteger]:
    return np.uint8 if states <= 2**8 else np.uint16 if states <= 2**16 else np.uint32


def _bytes(count: int) -> str:
    """`512 MiB`, however large."""
    power = max(0, (count.bit_length() - 1) // 10)
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    if power >= len(units):
        return f"2^{count.bit_length() - 1} bytes"
    return f"{count / 1024**power:.3g} {units[power]}"
