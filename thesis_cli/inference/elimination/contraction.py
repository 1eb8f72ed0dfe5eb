"""Exact sums, maxima, marginals and samples of a factor graph by contractions of pairs of tables along a
tree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY, Cost, bytes_text
from thesis_cli.base.parallel import Threads
from thesis_cli.inference.elimination.kernels import SAFE, extremes
from thesis_cli.inference.elimination.order import Clique
from thesis_cli.inference.elimination.pair_kernels import max_sums, sum_exponentials, sum_products
from thesis_cli.inference.elimination.passes import back_pass
from thesis_cli.inference.elimination.planners import Sliced, fitted, planned, with_pass
from thesis_cli.inference.elimination.tree import Axes, Layout, Move, PairTree, Step, Task
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import Factor, FactorGraph, squeezed

LARGE = 2**22
"""Products of a step from which threads share it."""

ROWS = 2**20
"""Weights of the states of summed variables that are drawn from at once, and entries that are shifted at once."""


@dataclass
class ScaledTable:
    """Entries of a table.

    Attributes
    ----------
    entries : weights, or logarithms relative to the largest.
    logs : whether they are logarithms.
    top : the largest weight, by which the entries are divided when they are used; 1 for logarithms.
    low : ln of the smallest weight above 0, over the largest.
    """

    entries: Floats
    logs: bool
    top: float
    low: float

    def as_logs(self) -> Floats:
        """The entries as logarithms, from now on."""
        if not self.logs:
            with np.errstate(divide="ignore"):
                np.log(self.entries, out=self.entries)
            self.entries -= math.log(self.top)
            self.logs, self.top = True, 1.0
        return self.entries


def table_of_logs(entries: Floats) -> tuple[ScaledTable, float]:
    """Return a table made from logarithms, and the largest of them.

    Parameters
    ----------
    entries : logarithms, shape (entries,); overwritten.
    """
    top = float(entries.max())
    if top == -np.inf:
        return ScaledTable(entries, True, 1.0, 0.0), top
    entries -= top
    low = float(np.min(entries, where=entries > -np.inf, initial=0.0))
    logs = low < SAFE
    if not logs:
        np.exp(entries, out=entries)
    return ScaledTable(entries, logs, 1.0, low), top


def multiplied(
    axes: Axes, step: Step, left: ScaledTable, right: ScaledTable, out: Floats, scratch: Floats, jobs: int = 1
) -> tuple[ScaledTable, float]:
    """Return the product of two tables, summed, and ln of its largest entry.

    Parameters
    ----------
    axes, step : axes of all tables, and which of them the product keeps and sums over.
    out : entries of the product, to be written, shape (entries,).
    scratch : room for `step.scratch` entries.
    """
    logs = left.logs or right.logs or left.low + right.low < SAFE
    if step.blas and not logs:
        return _by_matrices(axes, step, left, right, out, scratch)
    pair = axes.pair(step)
    rows = math.prod(pair.dims.tolist())
    parts = min(4 * jobs, rows) if jobs > 1 and step.terms >= LARGE else 1
    cuts = [rows * part // parts for part in range(parts + 1)]
    if logs:
        one, two = left.as_logs(), right.as_logs()

        def work(start: int, stop: int) -> tuple[float, float]:
            return sum_exponentials(pair, one, two, start, stop, out)
    else:
        scale = 1 / left.top / right.top

        def work(start: int, stop: int) -> tuple[float, float]:
            return sum_products(pair, left.entries, right.entries, scale, start, stop, out)

    with Threads(jobs if parts > 1 else 1) as threads:
        found = list(threads.map(work, cuts[:-1], cuts[1:]))
    high, least = max(each[0] for each in found), min(each[1] for each in found)
    if logs:
        return table_of_logs(out)
    return _made(out, high, least)


def _made(out: Floats, high: float, least: float) -> tuple[ScaledTable, float]:
    if high == 0:
        return ScaledTable(out, False, 1.0, 0.0), -math.inf
    return ScaledTable(out, False, high, math.log(least / high)), math.log(high)


def _by_matrices(
    axes: Axes, step: Step, left: ScaledTable, right: ScaledTable, out: Floats, scratch: Floats
) -> tuple[ScaledTable, float]:
    """The same by products of matrices."""
    matrices = axes.matrices(step.left, step.right, step.made)
    count, rows, columns, states = matrices.sizes
    used = 0

    def room(entries: Floats, own: Clique, order: Clique) -> Floats:
        """New places of the entries: none if they lie as they should."""
        nonlocal used
        if own == order:
            return entries
        used += entries.size
        return scratch[used - entries.size : used]

    def move(entries: Floats, own: Clique, order: Clique, to: Floats) -> None:
        if own != order:
            laid = entries.reshape(axes.shape(own)).transpose([own.index(i) for i in order])
            to.reshape(axes.shape(order))[...] = laid

    tables = []
    for table, (own, order) in zip((left, right), matrices.moves, strict=False):
        tables.append(room(table.entries, own, order))
        move(table.entries, own, order, tables[-1])
    product = room(out, *matrices.moves[2])
    one, two = tables[0].reshape(count, rows, states), tables[1].reshape(count, states, columns)
    np.matmul(one, two, out=product.reshape(count, rows, columns))
    own, order = matrices.moves[2]
    move(product, order, own, out)
    out *= 1 / left.top / right.top
    return _made(out, *map(float, extremes(out, 0, out.size, 0.0, math.inf)))


class Contraction:
    """A factor graph prepared for sums, maxima, marginals and samples along a tree.

    If the tables do not fit into the memory, the model is solved in slices, in each of which some
    variables are held at a state.

    Parameters
    ----------
    graph : the model.
    memory : bytes that the tables may take.
    jobs : threads of one sum; its bits do not depend on them.

    Attributes
    ----------
    name, guarantee : `contraction`, `exact`.
    plan : the tree of one slice, and what is held.
    cost : predicted time and memory of one partition function.

    Raises
    ------
    ModelTooLarge : no tree fits into the memory.
    """

    name = "contraction"
    guarantee: Guarantee = "exact"

    def __init__(self, graph: FactorGraph, memory: int = DEFAULT_MEMORY, *, jobs: int = 1) -> None:
        self.graph, self._memory, self._jobs = graph, memory, jobs
        factors = [squeezed(f, graph.cardinalities) for f in graph.factors]
        self._factors = [f for f in factors if f.scope]
        self._constant = math.fsum(float(f.table) for f in factors if not f.scope)
        self.plan = planned(graph.cardinalities, [f.scope for f in self._factors], memory)
        self.cost = self.plan.cost
        self._check(self.plan, "contraction needs")
        named = {i for f in self._factors for i in f.scope}
        self._free = [i for i in range(len(graph.cardinalities)) if i not in named]
        self._log_free = math.fsum(math.log(graph.cardinalities[i]) for i in self._free)
        self._offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)])

    @property
    def width(self) -> int:
        """Number of variables in the largest table."""
        return self.plan.tree.width

    @property
    def slices(self) -> int:
        """Number of slices."""
        return self.plan.slices

    def _check(self, found: Sliced, what: str) -> None:
        if found.cost.memory > self._memory:
            needed = f"{what} {bytes_text(found.cost.memory)} at width {found.tree.width}"
            raise ModelTooLarge(
                f"{needed}, and is predicted to take {found.cost.seconds:.2g} s with as much",
                f"raise the memory from {bytes_text(self._memory)}, or use a method that approximates",
                memory=found.cost.memory,
                seconds=found.cost.seconds,
                width=found.tree.width,
            )

    @cached_property
    def back(self) -> Sliced:
        """The slices of a pass there and back that gives marginals.

        Raises
        ------
        ModelTooLarge : its tables do not fit into the memory.
        """
        return self._with_pass("marginals", "a pass back needs")

    @cached_property
    def drawn(self) -> Sliced:
        """The same of a pass that gives samples."""
        return self._with_pass("samples", "draws along a tree need")

    def _with_pass(self, task: Task, what: str) -> Sliced:
        plan, layout = self.plan, back_pass(self.plan.tree, task)
        assert layout
        found = with_pass(plan.tree, plan.held, plan.slices, layout)
        if layout.memory > self._memory:
            found = planned(self.graph.cardinalities, [f.scope for f in self._factors], self._memory, task)
        self._check(found, what)
        return found

    @cached_property
    def maximum(self) -> Sliced:
        """The tree of a slice of a maximum, which keeps the choices of all tables.

        Raises
        ------
        ModelTooLarge : they do not fit into the memory.
        """
        first, found = self.plan, fitted(self.plan.tree, self._memory, "maximum")
        cost = Cost(first.slices * found.cost.seconds, found.cost.memory)
        found = replace(found, held=(*first.held, *found.held), slices=first.slices * found.slices, cost=cost)
        self._check(found, "the maximum along a tree needs")
        return found

    def _slices(self, plan: Sliced) -> Iterator[_Slice]:
        room = np.empty(plan.layout.size)
        for states in itertools.product(*(range(self.graph.cardinalities[i]) for i in plan.held)):
            held = dict(zip(plan.held, states, strict=True))
            yield _Slice(plan.tree, plan.layout, self._factors, held, self._jobs, room)

    def _log_z_of_slices(self, plan: Sliced) -> Floats:
        constant = self._constant + self._log_free
        return np.array([each.forward() + constant for each in self._slices(plan)])

    def log_partition_function(self) -> float:
        """Exact ln Z in nats; `-inf` when no configuration is possible."""
        parts = self._log_z_of_slices(self.plan)
        return float(np.logaddexp.reduce(parts) if parts.size > 1 else parts[0])

    def marginals(self) -> tuple[float, Floats]:
        """ln Z, and P(x_i) of every state of every variable.

        Returns
        -------
        log_z : nats.
        probabilities : shape (sum of cardinalities,): those of variable 0, then those of variable 1, ...

        Raises
        ------
        ModelTooLarge : the tables of a pass back do not fit into the memory.
        NoConfiguration : no configuration is possible.
        """
        total, found = -math.inf, np.zeros(self._offsets[-1])
        for each in self._slices(self.back):
            own = each.forward()
            if own == -math.inf:
                continue
            total, before = float(np.logaddexp(total, own)), total
            found *= math.exp(before - total)
            weight = math.exp(own - total)
            for i, state in each.held.items():
                found[self._offsets[i] + state] += weight
            for i, probabilities in each.marginals():
                found[self._offsets[i] : self._offsets[i + 1]] += weight * probabilities
        if total == -math.inf:
            raise NoConfiguration()
        for i in self._free:
            found[self._offsets[i] : self._offsets[i + 1]] = 1 / self.graph.cardinalities[i]
        return total + self._constant + self._log_free, found

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """MAP under perturbed unary tables.

        Parameters
        ----------
        noise : added to the unary log-potentials, shape (batch, sum of cardinalities).

        Returns
        -------
        values : max_x {phi(x) + sum_i noise_i(x_i)}, shape (batch,).
        states : a maximiser of each, shape (batch, n).

        Raises
        ------
        ModelTooLarge : the choices of all tables do not fit into the memory.
        """
        plan = self.maximum
        parts = [noise[:, low:high] for low, high in pairwise(self._offsets)]
        values = np.full(len(noise), -np.inf)
        states = np.zeros((len(noise), len(parts)), np.int64)
        for each in self._slices(plan):
            for row in range(len(noise)):
                value, found = each.maximum([part[row] for part in parts])
                if value > values[row]:
                    values[row], states[row] = value, found
        values += self._constant
        for i in self._free:
            states[:, i] = parts[i].argmax(axis=1)
            values += parts[i].max(axis=1)
        return values, states

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Independent exact draws from the Gibbs distribution, shape (count, n), from the root of the
        tree to its leaves.

        Raises
        ------
        ModelTooLarge, NoConfiguration : as `marginals`.
        """
        plan = self.drawn
        parts = self._log_z_of_slices(plan)
        if parts.max() == -np.inf:
            raise NoConfiguration()
        cumulative = np.cumsum(np.exp(parts - parts.max()))
        chosen = np.zeros(count, np.int64)
        if parts.size > 1:
            chosen = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
        states = np.zeros((count, len(self.graph.cardinalities)), np.int64)
        for s, each in enumerate(self._slices(plan)):
            rows = np.flatnonzero(chosen == s)
            if rows.size:
                each.forward()
                states[rows] = each.sample(rows.size, len(self.graph.cardinalities), rng)
        for i in self._free:
            states[:, i] = rng.integers(self.graph.cardinalities[i], size=count)
        return states


class _Slice:
    """The tables of one slice, in which the variables of `held` are held at a state."""

    def __init__(
        self, tree: PairTree, layout: Layout, factors: list[Factor], held: dict[int, int], jobs: int, room: Floats
    ) -> None:
        self.held = held
        self._tree, self._layout, self._jobs, self._room = tree, layout, jobs, room
        self._leaves: list[tuple[Clique, Floats]] = []  # logarithms, with the variables that are summed at once
        for f in factors:
            values, scope = f.table, f.scope
            if held:
                values = values[tuple(held.get(i, slice(None)) for i in scope)]
                scope = tuple(i for i in scope if i not in held)
            axes = tree.axes.laid(scope)
            self._leaves.append((axes, values.transpose([scope.index(i) for i in axes])))
        self._tables: dict[int, ScaledTable] = {}

    def _place(self, at: int, length: int) -> Floats:
        return self._room[at : at + length]

    def forward(self) -> float:
        """ln of the sum."""
        logs = []
        for move in self._layout.there:
            logs.append(self._follow(move))
            if logs[-1] == -math.inf:
                return -math.inf
        return math.fsum(logs)

    def _follow(self, move: Move) -> float:
        """Make or shift a table; returns ln of the largest entry of one that is made."""
        if move.kind == "shift":
            self._shift(move)
            return 0.0
        tree, first = self._tree, len(self._leaves)
        k = move.table % len(tree.sizes)
        entries = self._place(move.at, tree.sizes[k])
        if k < move.table:
            self._tables[move.table], top = self._outside(k, entries, move)
        elif k < first:
            axes, values = self._leaves[k]
            private = len(axes) - len(tree.tables[k])  # the slowest axes
            summed = np.logaddexp.reduce(values.reshape(-1, *values.shape[private:]), axis=0) if private else values
            entries.reshape(summed.shape)[...] = summed
            self._tables[k], top = table_of_logs(entries)
        else:
            self._tables[k], top = self._multiplied(tree.steps[k - first], tree.pairs[k - first], entries, move)
        return top

    def _outside(self, k: int, entries: Floats, move: Move) -> tuple[ScaledTable, float]:
        """What is outside of table k, and ln of its largest entry."""
        tree, made = self._tree, self._tree.parents[k]
        if made < 0:
            entries[:] = 1.0
            return ScaledTable(entries, False, 1.0, 0.0), 0.0
        other = sum(tree.pairs[made - len(self._leaves)]) - k
        return self._multiplied(tree.back_steps[k], (len(tree.sizes) + made, other), entries, move)

    def _multiplied(self, step: Step, pair: tuple[int, int], entries: Floats, move: Move) -> tuple[ScaledTable, float]:
        left, right = (self._tables[k] for k in pair)
        scratch = self._place(move.other, step.scratch)
        return multiplied(self._tree.axes, step, left, right, entries, scratch, self._jobs)

    def _shift(self, move: Move) -> None:
        """Move entries to an earlier place, which may overlap."""
        table = self._tables[move.table]
        old, table.entries = table.entries, self._place(move.at, table.entries.size)
        for low in range(0, old.size, ROWS):
            table.entries[low : low + ROWS] = old[low : low + ROWS]

    def maximum(self, noise: list[Floats]) -> tuple[float, Ints]:
        """The largest log-potential with noise on each variable, and where it is."""
        tree, moves, first = self._tree, self._layout.there, len(self._leaves)
        leaves, tables, choices = [], [], []
        for f, (axes, values) in enumerate(self._leaves):
            for i in tree.read[f]:
                values = values + noise[i].reshape([-1 if i == other else 1 for other in axes])
            private = len(axes) - len(tree.tables[f])
            leaves.append(values.reshape(-1, *values.shape[private:]))
            tables.append(self._place(moves[f].at, tree.sizes[f]))
            leaves[f].max(axis=0, out=tables[f].reshape(leaves[f].shape[1:]))
        for j, (a, b) in enumerate(tree.pairs):
            step, size = tree.steps[j], tree.sizes[first + j]
            tables.append(self._place(moves[first + j].at, size))
            choices.append(np.empty(size if step.choices else 0, step.choices or np.uint8))
            pair = tree.axes.pair(step)
            max_sums(pair, tables[a], tables[b], math.prod(pair.dims.tolist()), tables[-1], choices[j])
        value = float(tables[-1][0]) if tables else 0.0
        states = np.zeros(len(noise), np.int64)
        for i, state in self.held.items():
            states[i] = state
            value += float(noise[i][state])

        def take(variables: Clique, choice: int) -> None:
            for i, state in zip(variables, np.unravel_index(choice, tree.axes.shape(variables)), strict=True):
                states[i] = state

        for j in reversed(range(len(tree.pairs))):
            step = tree.steps[j]
            if step.summed:
                strides = tree.axes.strides(step.made, step.made)
                place = sum(int(states[i]) * stride for i, stride in zip(step.made, strides, strict=True))
                take(step.summed, int(choices[j][place]))
        for f, (axes, _) in enumerate(self._leaves):
            if alone := axes[: len(axes) - len(tree.tables[f])]:
                take(alone, int(leaves[f][:, *(states[i] for i in tree.tables[f])].argmax()))
        return value, states

    def marginals(self) -> Iterator[tuple[int, Floats]]:
        """Each variable of the slice and its marginal, after `forward` in a layout that goes back."""
        count = len(self._tree.sizes)
        for move in self._layout.back:
            self._follow(move)
            if move.kind == "make" and count <= move.table < count + len(self._leaves):
                yield from self._beliefs(move.table - count, self._tables[move.table])

    def _beliefs(self, f: int, outside: ScaledTable) -> Iterator[tuple[int, Floats]]:
        """The variables that are read from a leaf and their marginals."""
        axes, values = self._leaves[f]
        beliefs = values + outside.as_logs().reshape(self._tree.axes.shape(self._tree.tables[f]))
        beliefs = np.exp(beliefs - beliefs.max())
        for i in self._tree.read[f]:
            found = beliefs.sum(axis=tuple(a for a, other in enumerate(axes) if other != i))
            yield i, found / found.sum()

    def sample(self, count: int, variables: int, rng: np.random.Generator) -> Ints:
        """States of the variables of the slice, after `forward` in a layout that goes back."""
        tree, axes = self._tree, self._tree.axes
        states = np.zeros((count, variables), np.int64)
        for i, state in self.held.items():
            states[:, i] = state
        for move in self._layout.back:
            if move.kind != "draw":
                self._follow(move)
                continue
            j = move.table - len(self._leaves)
            step = tree.steps[j]
            parts = [
                (self._tables[k].as_logs(), axes.strides(own, step.made), axes.strides(own, step.summed))
                for k, own in zip(tree.pairs[j], (step.left, step.right), strict=True)
            ]
            _draw(parts, step.made, step.summed, axes, states, rng)
        for f, (own, values) in enumerate(self._leaves):
            private = own[: len(own) - len(tree.tables[f])]
            if private:
                table = np.ascontiguousarray(values).reshape(-1)
                parts = [(table, axes.strides(own, tree.tables[f]), axes.strides(own, private))]
                _draw(parts, tree.tables[f], private, axes, states, rng)
        return states


def _draw(
    parts: list[tuple[Floats, list[int], list[int]]],
    given: Clique,
    drawn: Clique,
    axes: Axes,
    states: Ints,
    rng: np.random.Generator,
) -> None:
    """Draw variables given others in each row of `states`; their law is the product of tables, each with
    its logarithms and its strides along `given` and `drawn`.
    """
    shape = axes.shape(drawn)
    inner = [np.zeros(1, np.int64) for _ in parts]
    for p, (_, _, strides) in enumerate(parts):
        for k, stride in zip(shape, strides, strict=True):
            inner[p] = (inner[p][:, np.newaxis] + stride * np.arange(k)).reshape(-1)
    count = max(1, ROWS // math.prod(shape))
    for low in range(0, len(states), count):
        rows = states[low : low + count]
        logs = sum(
            table[(rows[:, given] @ np.array(strides, np.int64))[:, np.newaxis] + offsets]
            for (table, strides, _), offsets in zip(parts, inner, strict=True)
        )
        cumulative = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
        levels = rng.random(len(rows)) * cumulative[:, -1]
        found = (cumulative[:, :-1] <= levels[:, np.newaxis]).sum(axis=1)
        rows[:, drawn] = np.stack(np.unravel_index(found, shape), axis=1)


def prepare() -> None:
    """Call every kernel, so that it is compiled; potentials of 1000 are summed by their logarithms."""
    for scale in (1.0, 1000.0):
        ring = [Factor(tuple(sorted((i, (i + 1) % 5))), scale * np.eye(3)) for i in range(5)]
        model = Contraction(FactorGraph([3] * 5, ring))
        model.log_partition_function()
        model.maximise(np.zeros((1, 15)))
