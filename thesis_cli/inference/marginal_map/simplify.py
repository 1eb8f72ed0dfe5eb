"""A marginal MAP problem in smaller ones that have no variable in common."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.inference.zeros.leaves import without_leaves
from thesis_cli.inference.zeros.reduction import Reduction, reduced
from thesis_cli.models.factor_graph import Factor, FactorGraph


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
