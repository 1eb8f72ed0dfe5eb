"""Variables that determine each other, and so are one."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.models.factor_graph import Factor


class Classes:
    """Variables that determine each other: each with its representative, and its state for each
    state of that.
    """

    def __init__(self) -> None:
        self.parents: dict[int, tuple[int, Ints]] = {}
        self._members: dict[int, int] = {}

    def of(self, v: int) -> tuple[int, Ints]:
        """The representative of a variable that has another, and the states."""
        v, states = self.parents[v]
        while v in self.parents:
            v, above = self.parents[v]
            states = states[above]
        return v, states

    def join(self, x: int, y: int, states: Ints) -> None:
        """x is in `states` of the state of y, which is one to one."""
        if y in self.parents:
            y, of_y = self.of(y)
            states = states[of_y]
        if x in self.parents:
            x, of_x = self.of(x)
            states = np.argsort(of_x)[states]
        if x == y:
            return
        sizes = self._members.get(x, 1), self._members.get(y, 1)
        if sizes[0] > sizes[1]:
            x, y, states = y, x, np.argsort(states)
        self.parents[x] = y, states
        self._members[y] = sum(sizes)


def substituted(factor: Factor, roots: dict[int, tuple[int, Ints]]) -> Factor:
    """A factor with each variable replaced by its representative."""
    if not any(v in roots for v in factor.scope):
        return factor
    scope, table = list(factor.scope), factor.table
    for v in factor.scope:
        if v in roots:
            root, states = roots[v]
            axis = scope.index(v)
            table = table.take(states, axis=axis)
            if root in scope:
                other = scope.index(root)
                table = np.diagonal(table, axis1=other, axis2=axis)
                scope = [u for a, u in enumerate(scope) if a not in (other, axis)]
                scope.append(root)
            else:
                scope[axis] = root
    return Factor(tuple(scope), np.ascontiguousarray(table))
