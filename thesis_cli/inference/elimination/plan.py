"""Plan of the tables that an elimination reads and writes, before any of them exists."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.elimination.kernels import StepArrays
from thesis_cli.inference.elimination.order import Clique
from thesis_cli.inference.elimination.tree import Room
from thesis_cli.models.factor_graph import Factor

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
    cardinalities : of all variables.
    """

    order: list[int]
    cliques: list[Clique]
    steps: StepArrays
    groups: list[Group]
    group_at: Ints
    consumers: list[int]
    cardinalities: Sequence[int]

    @cached_property
    def sizes(self) -> list[int]:
        """Entries of the table of each step."""
        return [math.prod([self.cardinalities[i] for i in clique]) for clique in self.cliques]

    @cached_property
    def sent(self) -> list[int]:
        """Entries of the message of each step."""
        sizes = zip(self.sizes, self.cliques, strict=True)
        return [size // self.cardinalities[clique[-1]] for size, clique in sizes]

    @cached_property
    def arriving(self) -> list[list[int]]:
        """Steps whose messages each step takes."""
        found: list[list[int]] = [[] for _ in self.order]
        for j, consumer in enumerate(self.consumers):
            if consumer >= 0:
                found[consumer].append(j)
        return found

    @cached_property
    def places(self) -> tuple[Ints, int]:
        """Start of each message, shape (steps,), if the places of messages that are used up are taken
        again, and the length of the array.
        """
        room, sent, arriving = Room(), self.sent, self.arriving
        at = [0] * len(sent)
        for j, length in enumerate(sent):
            at[j] = room.take(length)
            for k in arriving[j]:
                room.give(at[k], sent[k])
            if self.consumers[j] < 0:
                room.give(at[j], length)
        return np.array(at, np.int64), room.size

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
        fast = set(clique[inner:])
        own = _group([scopes[f] for f in used[j]], used[j], max(BLOCK, size // SHARE), cardinalities)
        tables = [laid[k][:-1] for k in arriving[j]]
        for members, _ in own:
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
            whole.append(int(by.keys() >= fast))
        dims += shape
        owners += [at[i] for i in clique]
        axes.append(len(dims))
        inputs.append(len(sources))
        blocks.append(block)
        rows.append(size // block)
    steps = StepArrays(
        *(np.array(a, np.int64) for a in (axes, dims, blocks, rows, inputs, sources, starts, strides, whole, owners))
    )
    sizes = [math.prod(cardinalities[i] for i in group.axes) for group in groups]
    group_at = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    return Plan(order, laid, steps, groups, group_at, consumers, cardinalities)


def _group(
    scopes: Sequence[Clique], factors: Sequence[int], most: int, cardinalities: Sequence[int]
) -> list[tuple[set[int], list[int]]]:
    """Factors of a step in groups whose tables have at most `most` entries where that is possible."""

    if len(scopes) < 2:
        return [(set(scope), [f]) for scope, f in zip(scopes, factors, strict=True)]

    def size(members: set[int]) -> int:
        return math.prod([cardinalities[i] for i in members])

    found: list[tuple[set[int], list[int]]] = []
    for scope, f in sorted(zip(scopes, factors, strict=True), key=lambda each: len(each[0])):
        sizes = [size(members.union(scope)) for members, _ in found]
        best = min(range(len(found)), key=sizes.__getitem__, default=-1)
        if best >= 0 and (sizes[best] <= most or sizes[best] <= size(found[best][0])):
            found[best][0].update(scope)
            found[best][1].append(f)
        else:
            found.append((set(scope), [f]))
    return found
