"""What the steps of an elimination read and write, and where, before any table exists; and which of them
are products of matrices, which BLAS multiplies.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.elimination.kernels import Steps, Tables, extremes
from thesis_cli.inference.elimination.order import Clique
from thesis_cli.models.factor_graph import Factor

STATES = 3
"""A variable of fewer states is summed out by the kernel, which then waits for memory alone."""

LEAST = 2**15
"""Entries of a table from which a step is a product of matrices."""

GAIN = 8
"""The two factors together have that many times fewer entries than their product before it is summed."""

SIDE = 64
"""Entries of each of the matrices that a product makes, at least."""


@dataclass(frozen=True)
class Operand:
    """A factor of a product: some inputs of a step, multiplied.

    Attributes
    ----------
    axes : variables, in the order of the step's.
    inputs : numbers and axes of the tables.
    """

    axes: Clique
    inputs: list[tuple[int, Clique]]


@dataclass(frozen=True)
class Contraction:
    """A step as batched products of matrices: rows of `left`, columns of `right`, summed over the last
    axis of the step.

    Attributes
    ----------
    shared, rows, columns : axes of both, of `left` alone and of `right` alone.
    scope : axes of the message.
    entries : of the largest arrays that the product makes.
    """

    left: Operand
    right: Operand
    shared: Clique
    rows: Clique
    columns: Clique
    scope: Clique
    entries: int


def contraction(
    clique: Clique, inputs: Sequence[tuple[int, Clique]], cardinalities: Sequence[int]
) -> Contraction | None:
    """The step that sums over the last of `clique` as a product of matrices, if that is quicker."""

    def size(axes: set[int] | Clique) -> int:
        return math.prod(cardinalities[i] for i in axes)

    entries = size(clique)
    if cardinalities[clique[-1]] < STATES or entries < LEAST or len(inputs) < 2:
        return None
    ordered = sorted(inputs, key=lambda each: -size(each[1]))
    sides: list[set[int]] = [set(ordered[0][1]), {clique[-1]}]
    parts: list[list[tuple[int, Clique]]] = [[ordered[0]], []]
    for each in ordered[1:]:
        into = min((0, 1), key=lambda s: (size(sides[s] | set(each[1])) - size(sides[s]), s))
        sides[into] |= set(each[1])
        parts[into].append(each)
    a, b = sides
    if GAIN * (size(a) + size(b)) > entries or size(a ^ b) < SIDE or not (a - b and b - a):
        return None

    def chosen(members: set[int]) -> Clique:
        return tuple(i for i in clique[:-1] if i in members)

    left, right = (
        Operand(tuple(i for i in clique if i in side), part) for side, part in zip(sides, parts, strict=True)
    )
    needed = 2 * (size(a) + size(b)) + entries // cardinalities[clique[-1]]
    return Contraction(left, right, chosen(a & b), chosen(a - b), chosen(b - a), clique[:-1], needed)


def contract(
    step: Contraction, tables: Tables, steps: int, cardinalities: Sequence[int], out: Floats
) -> tuple[float, float]:
    """Write the message of a step, one of so many `steps`, to `out`; returns its largest entry, and its
    smallest positive one.
    """

    def size(axes: Clique) -> int:
        return math.prod(cardinalities[i] for i in axes)

    last = step.left.axes[-1]
    left = _multiplied(step.left, (*step.shared, *step.rows, last), tables, steps, cardinalities)
    right = _multiplied(step.right, (*step.shared, last, *step.columns), tables, steps, cardinalities)
    batch, k = size(step.shared), cardinalities[last]
    product = np.matmul(left.reshape(batch, -1, k), right.reshape(batch, k, -1))
    found = (*step.shared, *step.rows, *step.columns)
    laid = product.reshape([cardinalities[i] for i in found]).transpose([found.index(i) for i in step.scope])
    out.reshape(laid.shape)[...] = laid
    high, least = extremes(out, 0, out.size, -math.inf, math.inf)
    return float(high), float(least)


def _multiplied(operand: Operand, axes: Clique, tables: Tables, steps: int, cardinalities: Sequence[int]) -> Floats:
    """The product of the inputs of an operand, each divided by its top, along `axes`."""
    total = np.ones([cardinalities[i] for i in axes])
    for source, own in operand.inputs:
        data = tables.messages if source < steps else tables.groups
        start = int(tables.at[source])
        shape = [cardinalities[i] for i in own]
        table = data[start : start + math.prod(shape)].reshape(shape)
        there = sorted(range(len(own)), key=lambda a: axes.index(own[a]))
        total *= (
            (table / tables.tops[source]).transpose(there).reshape([cardinalities[i] if i in own else 1 for i in axes])
        )
    return total


BLOCK = 1024
"""Entries of the fastest axes that are worked on at once, at most, unless one variable has more."""

SHARE = 256
"""Factors of a step are multiplied into one table if it is that many times smaller than the step's."""


@dataclass(frozen=True)
class Group:
    """Factors that become one input of a step.

    Attributes
    ----------
    axes : variables, the slowest first.
    factors : numbers of the factors.
    """

    axes: Clique
    factors: list[int]


@dataclass(frozen=True)
class Plan:
    """The steps of an elimination.

    Attributes
    ----------
    order : variables in the order of elimination, without those that no factor names.
    cliques : axes of each step, slowest first; the last is the variable of the step.
    steps : the same as arrays.
    groups : groups of factors.
    group_at : where each begins, and their total size.
    consumers : the step that takes the message of each step; -1 if none.
    contractions : steps that are products of matrices.
    cardinalities : of all variables.
    """

    order: list[int]
    cliques: list[Clique]
    steps: Steps
    groups: list[Group]
    group_at: Ints
    consumers: list[int]
    contractions: dict[int, Contraction]
    cardinalities: Sequence[int]

    def sizes(self) -> list[int]:
        """Entries of the table of each step."""
        return [math.prod(self.cardinalities[i] for i in clique) for clique in self.cliques]

    def sent(self) -> list[int]:
        """Entries of the message of each step."""
        return [math.prod(self.cardinalities[i] for i in clique[:-1]) for clique in self.cliques]

    def arriving(self) -> list[list[int]]:
        """Steps whose messages each step takes."""
        found: list[list[int]] = [[] for _ in self.order]
        for j, consumer in enumerate(self.consumers):
            if consumer >= 0:
                found[consumer].append(j)
        return found

    def log_groups(self, factors: Sequence[Factor], held: Mapping[int, int]) -> Floats:
        """Log-potentials of all groups, one after the other, with some variables held at a state."""
        found = np.zeros(int(self.group_at[-1]))
        for group, start, stop in zip(self.groups, self.group_at[:-1], self.group_at[1:], strict=True):
            at = {i: a for a, i in enumerate(group.axes)}
            shape = [self.cardinalities[i] for i in group.axes]
            table = found[start:stop].reshape(shape)
            for f in group.factors:
                factor = factors[f]
                values, scope = factor.table, factor.scope
                if held:
                    values = values[tuple(held.get(i, slice(None)) for i in scope)]
                    scope = tuple(i for i in scope if i not in held)
                perm = sorted(range(len(scope)), key=lambda a: at[scope[a]])
                there = [1] * len(shape)
                for i in scope:
                    there[at[i]] = self.cardinalities[i]
                table += values.transpose(perm).reshape(there)
        return found


def make_plan(
    cardinalities: Sequence[int], order: list[int], cliques: Sequence[Clique], scopes: Sequence[Clique]
) -> Plan:
    """Plan an elimination.

    Parameters
    ----------
    order, cliques : of the variables that factors name, as `cliques_of` gives them.
    scopes : of the factors; empty ones are left out.
    """
    at = {variable: j for j, variable in enumerate(order)}
    used: list[list[int]] = [[] for _ in order]
    for f, scope in enumerate(scopes):
        if scope:
            used[min(at[i] for i in scope)].append(f)
    laid = [tuple(sorted(clique, key=at.__getitem__, reverse=True)) for clique in cliques]
    consumers = [at[clique[-2]] if len(clique) > 1 else -1 for clique in laid]
    arriving: list[list[int]] = [[] for _ in order]
    for j, consumer in enumerate(consumers):
        if consumer >= 0:
            arriving[consumer].append(j)
    groups: list[Group] = []
    contractions: dict[int, Contraction] = {}
    axes, inputs, starts = [0], [0], [0]
    dims: list[int] = []
    owners: list[int] = []
    blocks: list[int] = []
    rows: list[int] = []
    sources: list[int] = []
    strides: list[int] = []
    whole: list[int] = []
    for j, clique in enumerate(laid):
        shape = [cardinalities[i] for i in clique]
        size = math.prod(shape)
        block, inner = shape[-1], len(clique) - 1
        while inner and block * shape[inner - 1] <= BLOCK:
            inner -= 1
            block *= shape[inner]
        fast = clique[inner:]
        own = _group([scopes[f] for f in used[j]], used[j], max(BLOCK, size // SHARE), cardinalities)
        tables = [laid[k][:-1] for k in arriving[j]]
        parts = [tuple(i for i in clique if i in members) for members, _ in own]
        numbers = range(len(order) + len(groups), len(order) + len(groups) + len(own))
        split = contraction(
            clique, [*zip(arriving[j], tables, strict=True), *zip(numbers, parts, strict=True)], cardinalities
        )
        if split:
            contractions[j] = split
        for members, _ in own if split is None else ():
            if math.prod(cardinalities[i] for i in members.union(fast)) <= max(BLOCK, size // SHARE):
                members.update(fast)
        sources += arriving[j]
        for members, factors in own:
            group = Group(tuple(i for i in clique if i in members), factors)
            sources.append(len(order) + len(groups))
            groups.append(group)
            tables.append(group.axes)
        for table in tables:
            by: dict[int, int] = {}
            step = 1
            for i in reversed(table):
                by[i] = step
                step *= cardinalities[i]
            strides += [by.get(i, 0) for i in clique]
            starts.append(len(strides))
            whole.append(int(all(i in by for i in fast)))
        dims += shape
        owners += [at[i] for i in clique]
        axes.append(len(dims))
        inputs.append(len(sources))
        blocks.append(block)
        rows.append(size // block)
    steps = Steps(
        *(np.array(a, np.int64) for a in (axes, dims, blocks, rows, inputs, sources, starts, strides, whole, owners))
    )
    sizes = [math.prod(cardinalities[i] for i in group.axes) for group in groups]
    group_at = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    return Plan(order, laid, steps, groups, group_at, consumers, contractions, cardinalities)


def _group(
    scopes: Sequence[Clique], factors: Sequence[int], most: int, cardinalities: Sequence[int]
) -> list[tuple[set[int], list[int]]]:
    """Factors of a step in groups whose tables have at most `most` entries where that is possible."""

    def size(members: set[int]) -> int:
        return math.prod(cardinalities[i] for i in members)

    found: list[tuple[set[int], list[int]]] = []
    for scope, f in sorted(zip(scopes, factors, strict=True), key=lambda each: len(each[0])):
        best = min(found, key=lambda group: size(group[0] | set(scope)), default=None)
        if best is not None and size(best[0] | set(scope)) <= max(most, size(best[0])):
            best[0].update(scope)
            best[1].append(f)
        else:
            found.append((set(scope), [f]))
    return found


class Room:
    """Places for tables in one array, each where enough room is free first."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (start, length), ascending

    def take(self, length: int) -> int:
        """The place of a new table."""
        for k, (start, room) in enumerate(self._free):
            if room >= length:
                del self._free[k]
                if room > length:
                    insort(self._free, (start + length, room - length))
                return start
        start = self.size
        if self._free and sum(self._free[-1]) == self.size:
            start = self._free.pop()[0]
        self.size = start + length
        return start

    def give(self, start: int, length: int) -> None:
        """Free a table's place."""
        insort(self._free, (start, length))
        merged: list[tuple[int, int]] = []
        for low, room in self._free:
            if merged and sum(merged[-1]) == low:
                merged[-1] = (merged[-1][0], merged[-1][1] + room)
            else:
                merged.append((low, room))
        self._free = merged


def places(plan: Plan) -> tuple[Ints, int]:
    """Where each message begins if the places of messages that are used up are taken again, and
    the length of the array.
    """
    room, sent = Room(), plan.sent()
    at = np.empty(len(sent), np.int64)
    arriving = plan.arriving()
    for j, length in enumerate(sent):
        at[j] = room.take(length)
        for k in arriving[j]:
            room.give(int(at[k]), sent[k])
        if plan.consumers[j] < 0:
            room.give(int(at[j]), length)
    return at, room.size
