"""The sum over some variables for given states of all the others."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.inference.mini_bucket.passes import check_time, log_sum
from thesis_cli.inference.mini_bucket.plan import Planner, Scope
from thesis_cli.models.factor_graph import Factor, FactorGraph, squeezed


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
