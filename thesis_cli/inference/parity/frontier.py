"""Exact maxima under parity constraints by one pass over the variables of a narrow model.

The table of the pass has an axis for each variable that a later factor needs, and one for the parity
so far of each constraint that has begun and not ended. A constraint over neighbouring bits of the
order is open for a short while, so that many of them fit into a table that a few dense ones fill.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.models.factor_graph import Factor, FactorGraph


class Constraints(NamedTuple):
    """The configurations x with A x = right (mod 2), of bits of the variables.

    Attributes
    ----------
    matrix : A, shape (constraints, bits); the bits are those of the first variable of the order,
        lowest first, then those of the second, ...
    right : shape (constraints,).
    """

    matrix: Bools
    right: Bools


class Open(NamedTuple):
    """An axis of the table: of a variable, or of the parity of a constraint."""

    constraint: bool
    member: int


class Frontier:
    """A factor graph prepared for maxima under constraints.

    Parameters
    ----------
    graph : any model; it should be narrow in the order of its variables, or by breadth.

    Attributes
    ----------
    order : the variables as the pass takes them.
    widths : bits of each variable in that order: those of the number of its states less one.
    log_entries : log2 of the entries of the largest table without constraints.
    """

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        orders = (np.arange(len(graph.cardinalities)), _by_breadth(graph))
        tried = [_needed_until(graph, order) for order in orders]
        sizes = [_log_entries(graph, order, last) for order, last in zip(orders, tried, strict=True)]
        best = int(np.argmin(sizes))
        self.order, self.log_entries = orders[best], sizes[best]
        self._last = tried[best]
        states = np.array(graph.cardinalities)[self.order]
        self.widths = np.array([int(k - 1).bit_length() for k in states.tolist()])
        self._first_bit = np.concatenate([[0], np.cumsum(self.widths)])
        self._constant = float(sum(f.table for f in graph.factors if not f.scope))
        self._factors: list[list[Factor]] = [[] for _ in states]
        position = np.argsort(self.order)
        for factor in graph.factors:
            if factor.scope:
                self._factors[int(position[list(factor.scope)].max())].append(factor)

    @property
    def bits(self) -> int:
        """Bits of all variables."""
        return int(self._first_bit[-1])

    def maximum(self, constraints: Constraints) -> float:
        """The largest log-potential of a configuration that satisfies all constraints, in nats; -inf if none does."""
        starts, ends = self._spans(constraints.matrix)
        axes: list[Open] = []
        table = np.zeros(())
        for step, variable in enumerate(self.order.tolist()):
            own = constraints.matrix[:, self._first_bit[step] : self._first_bit[step + 1]]
            starting = np.flatnonzero(starts == step).tolist()
            ending = np.flatnonzero((ends == step) & (starts < step)).tolist()
            single = [r for r in starting if ends[r] == step]
            starting = [r for r in starting if ends[r] > step]
            retired = [a for a in axes if not a.constraint and self._last[a.member] <= step]
            kept = [a for a in axes if a not in retired and not (a.constraint and a.member in ending)]
            stays = bool(self._last[variable] > step)
            states = self.graph.cardinalities[variable]
            shape = [2] * len(starting) + [self._states(a) for a in kept]
            found = np.full(([states] if stays else []) + shape, -np.inf)
            for state in range(states):
                odd = parities(own, state)
                if any(odd[r] != constraints.right[r] for r in single):
                    continue
                part = self._moved(table, axes, odd, constraints.right, ending)
                left = [a for a in axes if not (a.constraint and a.member in ending)]
                part = self._with_factors(part, left, step, variable, state)
                gone = tuple(k for k, a in enumerate(left) if a in retired)
                part = part.max(axis=gone) if gone else part
                at = ((state,) if stays else ()) + tuple(int(odd[r]) for r in starting)
                found[at] = np.maximum(found[at], part)
            axes = [Open(False, variable)] * stays + [Open(True, r) for r in starting] + kept
            table = found
        return float(table) + self._constant

    def _states(self, axis: Open) -> int:
        return 2 if axis.constraint else self.graph.cardinalities[axis.member]

    def _spans(self, matrix: Bools) -> tuple[Ints, Ints]:
        """Steps at which each constraint begins and ends; one without bits is open at step 0."""
        owner = np.repeat(np.arange(len(self.widths)), self.widths)
        if not matrix.size:
            return np.zeros(len(matrix), np.int64), np.zeros(len(matrix), np.int64)
        last = matrix.shape[1] - 1 - matrix[:, ::-1].argmax(axis=1)
        some = matrix.any(axis=1)
        return np.where(some, owner[matrix.argmax(axis=1)], 0), np.where(some, owner[last], 0)

    def _moved(self, table: Floats, axes: list[Open], odd: Bools, right: Bools, ending: list[int]) -> Floats:
        """The table in terms of parities that include a state's bits; constraints that end are met."""
        index: list[slice | int] = []
        for axis in axes:
            if axis.constraint and axis.member in ending:
                index.append(int(right[axis.member] != odd[axis.member]))
            else:
                index.append(slice(None, None, -1 if axis.constraint and odd[axis.member] else None))
        return table[tuple(index)]

    def _with_factors(self, table: Floats, axes: list[Open], step: int, variable: int, state: int) -> Floats:
        """Add the factors that end with a variable in a state."""
        place = {a.member: k for k, a in enumerate(axes) if not a.constraint}
        total = np.zeros([1] * len(axes))
        for factor in self._factors[step]:
            others = [i for i in factor.scope if i != variable]
            part = np.take(factor.table, state, axis=factor.scope.index(variable))
            part = part.transpose(np.argsort([place[i] for i in others]))
            shape = [1] * len(axes)
            for i in others:
                shape[place[i]] = self.graph.cardinalities[i]
            total = total + part.reshape(shape)
        return np.asarray(table + total)


def parities(own: Bools, state: int) -> Bools:
    """Parity of a state's bits in each constraint, from their columns, shape (constraints, bits)."""
    code = state >> np.arange(own.shape[1]) & 1
    return np.asarray((own & code.astype(bool)).sum(axis=1) % 2 == 1)


def _by_breadth(graph: FactorGraph) -> Ints:
    """Variables in the order of a reverse Cuthill-McKee search."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    pairs = [(i, j) for f in graph.factors for i in f.scope for j in f.scope]
    n = len(graph.cardinalities)
    rows, columns = np.array([*pairs, *((i, i) for i in range(n))]).T
    matrix = coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)).tocsr()
    return np.asarray(reverse_cuthill_mckee(matrix, symmetric_mode=True), np.int64)


def _needed_until(graph: FactorGraph, order: Ints) -> Ints:
    """The last step of a factor of each variable, shape (n,); its own step if it has none."""
    position = np.argsort(order)
    last = position.copy()
    for factor in graph.factors:
        if factor.scope:
            scope = list(factor.scope)
            last[scope] = np.maximum(last[scope], position[scope].max())
    return last


def _log_entries(graph: FactorGraph, order: Ints, last: Ints) -> float:
    """log2 of the entries of the largest table after a step."""
    logs = np.log2(np.array(graph.cardinalities, float))
    change = np.zeros(len(order) + 1)
    for step, variable in enumerate(order.tolist()):
        change[step] += logs[variable]
        change[last[variable]] -= logs[variable]
    return float(max(0.0, np.cumsum(change).max()))
