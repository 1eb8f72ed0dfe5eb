"""Exact sum, maximum, marginals and samples of a factor graph by variable elimination."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.inference.cost import Cost
from thesis_cli.inference.elimination_order import best_order, bytes_needed, cliques_of, index_type
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import Factor, FactorGraph

IMPOSSIBLE = -1e300
"""A log-weight whose exponential is 0, in place of -inf where products are taken: 0 * 1e300 is 0.
"""


SECONDS_AN_ENTRY = 2e-8
"""Time that an entry of a table takes."""


@dataclass(frozen=True)
class _Step:
    """Eliminating one variable.

    Attributes
    ----------
    variable : the variable that is eliminated.
    scope : the neighbours that its message depends on, ascending.
    base : sum of the factors that this step uses, shape (1, *scope, variable), 1 along variables
        that no factor names.
    messages : earlier steps whose messages this step uses, and their shapes over
        (batch, *scope, variable).
    """

    variable: int
    scope: tuple[int, ...]
    base: Floats
    messages: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]


class Elimination:
    """A factor graph prepared for any number of sums, maximisations or samples.

    Parameters
    ----------
    graph : the model.
    memory : bytes that the tables of one elimination may take.

    Attributes
    ----------
    name, guarantee : `elimination`, `exact`.
    order : the elimination order.
    width : number of variables in the largest table, less one.
    cost : predicted time and memory of one partition function.

    Raises
    ------
    ModelTooLarge : the order found needs a table larger than `memory`; the message gives the width.
    """

    name = "elimination"
    guarantee: Guarantee = "exact"

    def __init__(self, graph: FactorGraph, memory: int = DEFAULT_MEMORY) -> None:
        self.graph, self._memory = graph, memory
        self._factors = [_squeezed(f, graph.cardinalities) for f in graph.factors]
        scopes = [f.scope for f in self._factors]
        ordering = best_order(graph.cardinalities, scopes)
        self.order, self.width = ordering.order, ordering.width
        if ordering.bits > 50:
            self._check_memory(1 << math.ceil(ordering.bits + 4), "elimination needs")
        cliques = cliques_of(self.order, scopes)
        self._cost = bytes_needed(graph.cardinalities, self.order, cliques)
        self._check_memory(self._cost, "elimination needs")
        self.cost = Cost(2.0**ordering.bits * SECONDS_AN_ENTRY, self._cost)
        self._steps, self._constant = self._plan(cliques)
        self._offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)])

    def _check_memory(self, cost: int, what: str) -> None:
        if cost > self._memory:
            raise ModelTooLarge(
                f"{what} {bytes_text(cost)} at width {self.width}",
                f"raise the memory from {bytes_text(self._memory)}, or use a method that approximates",
            )

    def log_partition_function(self) -> float:
        """Exact ln Z in nats; `-inf` when no configuration is possible."""
        return self._sum_out({}, keep=False)

    def _sum_out(self, messages: dict[int, Floats], *, keep: bool) -> float:
        """Sum the variables out in order and return ln Z; `messages` keeps the message of each step
        if `keep`.
        """
        total = self._constant
        for j, step in enumerate(self._steps):
            messages[j] = _log_sum(self._table(step.base, step, messages, keep=keep))
            if not step.scope:
                total += float(messages.pop(j)[0])
        return total

    def _backward(self) -> tuple[float, Iterator[tuple[int, Floats]]]:
        """ln Z, and the steps from last to first, each with exp(table - its maximum), shape
        (*scope, variable).

        Raises
        ------
        ModelTooLarge : the messages of all steps together do not fit into the memory.
        NoConfiguration : no configuration is possible.
        """
        sizes = [math.prod(self._shape(step)) for step in self._steps]
        sent = sum(size // self.graph.cardinalities[i] for size, i in zip(sizes, self.order, strict=True))
        self._check_memory(8 * sent + 24 * max(sizes), "a backward pass needs")
        messages: dict[int, Floats] = {}
        total = self._sum_out(messages, keep=True)
        if total == -np.inf:
            raise NoConfiguration()

        def steps() -> Iterator[tuple[int, Floats]]:
            for j in reversed(range(len(self._steps))):
                yield j, _weights(self._table(self._steps[j].base, self._steps[j], messages))[0][0]

        return total, steps()

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
        ModelTooLarge : the messages of all steps together do not fit into the memory.
        NoConfiguration : no configuration is possible.
        """
        states = np.zeros((count, len(self.order)), np.int64)
        for j, weights in self._backward()[1]:
            step = self._steps[j]
            cumulative = weights.reshape(-1, weights.shape[-1])
            np.cumsum(cumulative, axis=1, out=cumulative)
            rows = np.zeros(count, np.int64)
            for i in step.scope:
                rows = rows * self.graph.cardinalities[i] + states[:, i]
            states[:, step.variable] = _first_above(cumulative, rows, rng.random(count) * cumulative[rows, -1])
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
        log_z, steps = self._backward()
        found = np.empty(self._offsets[-1])
        outer: dict[int, Floats] = {}  # P(scope) of the steps to come, from the table that used their messages
        for j, belief in steps:
            step = self._steps[j]
            total = belief.sum(axis=-1, keepdims=True)
            np.divide(belief, total, out=belief, where=total > 0)
            belief *= np.expand_dims(outer.pop(j, np.ones(())), -1)
            own = belief.reshape(-1, belief.shape[-1]).sum(axis=0)
            found[self._offsets[step.variable] : self._offsets[step.variable + 1]] = own
            for k, axes, _ in step.messages:
                others = [a for a, i in enumerate((*step.scope, step.variable)) if i not in self._steps[k].scope]
                outer[k] = belief.sum(axis=tuple(others)).transpose(np.argsort(axes))
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
        ModelTooLarge : the tables of an entropy, three times those of an elimination, do not fit
            into the memory.
        NoConfiguration : no configuration is possible.
        """
        self._check_memory(3 * self._cost, "an entropy needs")
        excess = alpha - 1
        log_z, entropy = self._constant, 0.0
        messages: dict[int, Floats] = {}
        entropies: dict[int, Floats] = {}
        for j, step in enumerate(self._steps):
            table = self._table(step.base, step, messages)
            messages[j] = _log_sum(table)
            norm = np.where(messages[j] == -np.inf, 0.0, messages[j])
            log_q = table - norm[..., np.newaxis]
            np.maximum(log_q, IMPOSSIBLE, out=log_q)
            values = log_q - self._table(np.zeros((1,) * log_q.ndim), step, entropies)
            if excess:
                values *= excess
                entropies[j] = np.log1p(weighted_expm1(log_q, values).sum(axis=-1)) / -excess
            else:
                values *= np.exp(log_q)
                entropies[j] = -values.sum(axis=-1)
            if not step.scope:
                log_z += float(messages.pop(j)[0])
                entropy += float(entropies.pop(j)[0])
        if log_z == -np.inf:
            raise NoConfiguration()
        return log_z, entropy

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
            table = self._table(step.base, step, messages) + own.reshape(batch, *[1] * len(step.scope), -1)
            choices.append(table.argmax(axis=-1).astype(index_type(table.shape[-1])))
            messages[j] = table.max(axis=-1)
            if not step.scope:
                values += messages.pop(j)
        states = np.empty((batch, len(self.order)), np.int64)
        rows = np.arange(batch)
        for step, choice in zip(reversed(self._steps), reversed(choices), strict=True):
            states[:, step.variable] = choice[(rows, *(states[:, i] for i in step.scope))]
        return values, states

    def _table(self, base: Floats, step: _Step, messages: dict[int, Floats], *, keep: bool = False) -> Floats:
        """`base` plus the incoming messages of a step, dropped unless `keep`: (batch or 1, *scope,
        variable).
        """
        table = base
        for j, axes, shape in step.messages:
            message = messages[j] if keep else messages.pop(j)
            table = table + message.transpose(0, *(a + 1 for a in axes)).reshape(-1, *shape)
        return np.broadcast_to(table, (table.shape[0], *self._shape(step)))

    def _shape(self, step: _Step) -> tuple[int, ...]:
        return tuple(self.graph.cardinalities[i] for i in (*step.scope, step.variable))

    def _plan(self, cliques: Sequence[tuple[int, ...]]) -> tuple[list[_Step], float]:
        """Assign factors and messages to steps."""
        at = {variable: j for j, variable in enumerate(self.order)}
        constant = float(sum(f.table for f in self._factors if not f.scope))
        factors: list[list[Factor]] = [[] for _ in cliques]  # used up at each step: the first that names a variable
        for f in self._factors:
            if f.scope:
                factors[min(at[i] for i in f.scope)].append(f)
        arriving: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in cliques]
        steps = []
        for j, (variable, clique) in enumerate(zip(self.order, cliques, strict=True)):
            scope = tuple(i for i in clique if i != variable)
            axes = (*scope, variable)
            base = np.zeros((1, *[1] * len(scope), self.graph.cardinalities[variable]))
            for factor in factors[j]:
                perm, shape = _align(factor.scope, axes, self.graph.cardinalities)
                base = base + factor.table.transpose(perm).reshape(1, *shape)
            messages = tuple((k, *_align(sent, axes, self.graph.cardinalities)) for k, sent in arriving[j])
            if scope:
                arriving[min(at[i] for i in scope)].append((j, scope))
            steps.append(_Step(variable, scope, base, messages))
        return steps, constant


def _squeezed(factor: Factor, cardinalities: Sequence[int]) -> Factor:
    """A factor without its variables of one state."""
    scope = tuple(i for i in factor.scope if cardinalities[i] > 1)
    return Factor(scope, factor.table.reshape([cardinalities[i] for i in scope]))


def _weights(table: Floats) -> tuple[Floats, Floats]:
    """exp(table - top) and top, the largest of each row of the last axis; 0 for a row that is
    impossible.
    """
    top = table.max(axis=-1, keepdims=True)
    top = np.where(top == -np.inf, 0.0, top)
    weights = table - top
    return np.exp(weights, out=weights), top[..., 0]


def _log_sum(table: Floats) -> Floats:
    """ln of the sum of exp(table) over the last axis."""
    weights, top = _weights(table)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights.sum(axis=-1)) + top)


def weighted_expm1(log_weights: Floats, exponents: Floats) -> Floats:
    """e^w (e^u - 1) to full relative accuracy, where e^u may overflow but e^(w + u) does not; both
    are finite.
    """
    found = np.maximum(exponents, 0.0)
    found += log_weights
    np.exp(found, out=found)
    shrink = np.abs(exponents)
    np.negative(shrink, out=shrink)
    found *= np.expm1(shrink, out=shrink)
    return np.copysign(found, exponents, out=found)


def _first_above(cumulative: Floats, rows: Ints, levels: Floats) -> Ints:
    """The first column of `cumulative` that exceeds the level in each of `rows`, by bisection."""
    low = np.zeros(rows.size, np.int64)
    high = np.full(rows.size, cumulative.shape[1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        beyond = cumulative[rows, middle] <= levels
        low, high = np.where(beyond, middle + 1, low), np.where(beyond, high, middle)
    return low


def _align(
    scope: tuple[int, ...], axes: tuple[int, ...], cardinalities: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How to lay a table over `scope` along `axes`: a permutation of its axes, then a shape with
    ones.
    """
    perm = tuple(sorted(range(len(scope)), key=lambda a: axes.index(scope[a])))
    return perm, tuple(cardinalities[i] if i in scope else 1 for i in axes)
