"""Exact marginal MAP: a problem divided into smaller ones that have no variable in common, variable
elimination in which all sums come before all maxima, and the sum for given maximising states.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.inference.elimination.order import index_type
from thesis_cli.inference.mini_bucket.passes import check_time, log_sum
from thesis_cli.inference.mini_bucket.plan import MiniBucketPlan, Planner, Scope
from thesis_cli.inference.zeros.leaves import without_leaves
from thesis_cli.inference.zeros.reduction import Reduction, reduced
from thesis_cli.models.factor_graph import Factor, FactorGraph, squeezed


def eliminated(plan: MiniBucketPlan, over: Collection[int], variables: int) -> tuple[float, Ints]:
    """The maximum over some variables of the sum over the others, and maximising states.

    Parameters
    ----------
    plan : elimination in which no bucket is divided and variables to maximise over come last.
    over : variables to maximise over.
    variables : number of variables of the model; those to sum over keep state 0.
    """
    messages: list[Floats] = [np.empty(0)] * len(plan.nodes)
    choices: dict[int, Ints] = {}
    total = plan.constant
    for j, node in enumerate(plan.nodes):
        parts = [(node.base_scope, node.base)]
        parts += [(plan.nodes[c].scope[1:], messages[c]) for c in node.children]
        table = np.zeros(node.shape)
        for own, values in parts:
            table += values.reshape([k if i in own else 1 for i, k in zip(node.scope, node.shape, strict=True)])
        for c in node.children:
            messages[c] = np.empty(0)
        rows = table.reshape(node.shape[0], -1)
        if node.scope[0] in over:
            choices[j] = rows.argmax(axis=0).astype(index_type(node.shape[0]))
            messages[j] = rows.max(axis=0)
        else:
            messages[j] = log_sum(rows)
        if node.parent < 0:
            total += float(messages[j][0])
    return total, _traced(plan, choices, variables)


def _traced(plan: MiniBucketPlan, choices: dict[int, Ints], variables: int) -> Ints:
    """The states that the choices of the steps lead to, the last step first."""
    states = np.zeros(variables, np.int64)
    for j in sorted(choices, reverse=True):
        node = plan.nodes[j]
        place = np.ravel_multi_index([states[i] for i in node.scope[1:]], node.shape[1:]) if node.scope[1:] else 0
        states[node.scope[0]] = choices[j][int(place)]
    return states


class ConditionalSums:
    """Sums over some variables for many configurations of the others at once, by elimination.

    Parameters
    ----------
    graph : the model.
    over : variables whose states are given.
    limit : most entries of a table for one configuration.

    Attributes
    ----------
    entries : of all tables for one configuration.

    Raises
    ------
    ModelTooLarge : a table is larger than the limit.
    """

    def __init__(self, graph: FactorGraph, over: Collection[int], limit: float) -> None:
        factors = [squeezed(f, graph.cardinalities) for f in graph.factors]
        left = [Factor(s, np.zeros([graph.cardinalities[i] for i in s])) for s in (_without(f, over) for f in factors)]
        plan = Planner(FactorGraph.unchecked(graph.cardinalities, left), over).plan(limit)
        if not plan.exact or max((node.size for node in plan.nodes), default=1) > limit:
            raise ModelTooLarge("the sum for given states needs too large tables", "bound it")
        self.entries = plan.entries + 1
        self._free = plan.constant
        self._sizes = dict(enumerate(graph.cardinalities))
        at = {i: step for step, i in enumerate(plan.order)}
        self._factors: list[tuple[Scope, Scope, Floats]] = []  # given variables, others in order, table
        self._alone: list[int] = []  # factors of given variables alone
        self._users: list[list[int]] = [[] for _ in plan.order]  # tables of each step: factors, then messages
        self._scopes = [node.scope for node in plan.nodes]
        for f, factor in enumerate(factors):
            given = tuple(i for i in factor.scope if i in over)
            others = tuple(sorted(_without(factor, over), key=at.__getitem__))
            axes = [factor.scope.index(i) for i in (*given, *others)]
            self._factors.append((given, others, factor.table.transpose(axes)))
            (self._users[at[others[0]]] if others else self._alone).append(f)
        for step, scope in enumerate(self._scopes):
            if len(scope) > 1:
                self._users[at[scope[1]]].append(len(factors) + step)

    def of(self, states: Ints, deadline: float | None = None) -> Floats:
        """ln of the sum for each row of `states`, shape (batch, variables) -> (batch,).

        Raises
        ------
        OutOfTime : the deadline passed.
        """
        count = len(states)
        tables: list[tuple[Scope, Floats]] = []
        total = np.full(count, self._free)
        for given, others, table in self._factors:
            picked = table[tuple(states[:, i] for i in given)] if given else table[np.newaxis]
            tables.append((others, picked))
        for f in self._alone:
            total = total + tables[f][1]
        for step, scope in enumerate(self._scopes):
            check_time(deadline)
            table = np.zeros([count, *(self._sizes[i] for i in scope)])
            for t in self._users[step]:
                own, values = tables[t]
                table += values.reshape(len(values), *(self._sizes[i] if i in own else 1 for i in scope))
            rows = np.moveaxis(table, 1, 0)
            message = log_sum(rows)
            if len(scope) == 1:
                total = total + message
            tables.append((scope[1:], message))
        return total


def _without(factor: Factor, over: Collection[int]) -> Scope:
    return tuple(i for i in factor.scope if i not in over)


@dataclass(frozen=True)
class Part:
    """Variables that factors connect with each other and with no other variable.

    Attributes
    ----------
    graph : these variables alone.
    over : those to maximise over; the others are summed over.
    variables : their numbers in the simplified model.
    """

    graph: FactorGraph
    over: frozenset[int]
    variables: Ints


class Simplified:
    """A smaller model with the same marginal MAP, in parts.

    Zeros remove states, and make one variable of two that determine each other: one to maximise over
    if either is. Variables to sum over that one factor alone names are summed out.

    Attributes
    ----------
    parts : the smallest first.
    constant : nats that the answer is larger than the sum of those of the parts.

    Raises
    ------
    NoConfiguration : the zeros leave no configuration.
    """

    def __init__(self, graph: FactorGraph, over: Collection[int]) -> None:
        self.constant = 0.0
        self._steps: list[tuple[Reduction, list[int], int]] = []
        chosen = np.zeros(len(graph.cardinalities), np.bool_)
        chosen[list(over)] = True
        used: list[int] = []
        while True:
            small = reduced(graph)
            chosen, free = small.stands_for(chosen)
            self.constant += small.potential + free
            left = without_leaves(small.graph, frozenset(np.flatnonzero(chosen).tolist()))
            size = len(small.graph.cardinalities)
            if left is None:
                self._steps.append((small, list(range(size)), size))
                break
            graph, gained, used = left
            self.constant += gained
            self._steps.append((small, used, size))
            chosen = chosen[used] if used else np.zeros(1, np.bool_)
        self._size = len(small.graph.cardinalities)
        self.parts = [_part(small.graph, members, chosen.tolist()) for members in small.components]
        self.parts.sort(key=lambda part: len(part.graph.cardinalities))

    def original_states(self, found: Sequence[Ints]) -> Ints:
        """States of all variables of the first model, from those of each part; the states of variables
        that are summed over mean nothing.
        """
        states = np.zeros(self._size, np.int64)
        for part, own in zip(self.parts, found, strict=True):
            states[part.variables] = own
        for small, used, size in reversed(self._steps):
            whole = np.zeros(size, np.int64)
            whole[used] = states[: len(used)]
            states = small.original_states(whole[np.newaxis])[0]
        return states


def _part(graph: FactorGraph, members: Ints, chosen: Sequence[bool]) -> Part:
    number = {v: i for i, v in enumerate(members.tolist())}
    factors = [f for f in graph.factors if f.scope and f.scope[0] in number]
    own = FactorGraph(
        [graph.cardinalities[v] for v in number],
        [Factor(tuple(number[v] for v in f.scope), f.table) for f in factors],
    )
    return Part(own, frozenset(i for v, i in number.items() if chosen[v]), members)
