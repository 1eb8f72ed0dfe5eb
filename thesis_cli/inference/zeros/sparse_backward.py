"""What follows a sparse elimination: its joins in reverse give marginals, or a maximiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.zeros.sparse_tables import Joiner, SparseTable


@dataclass(frozen=True)
class Step:
    """One join of an elimination.

    Attributes
    ----------
    taken : one or two tables, with logarithms as weights.
    made : their product, summed or maximised over some variables.
    """

    taken: Sequence[SparseTable]
    made: SparseTable


def marginals(steps: Sequence[Step], joiner: Joiner, states: Sequence[int]) -> Floats:
    """P(x_i) of every state of every variable, from all joins of an elimination.

    P(taken) is the product of the tables taken, over the table made, times P(made): what follows a
    step sees its variables only through the table that it makes.
    """
    offsets = np.concatenate([[0], np.cumsum(states)])
    found = np.ones(offsets[-1])
    open_variables = {v for v, k in enumerate(states) if k > 1}
    beliefs: dict[int, SparseTable] = {}  # by identity of the table
    for step in reversed(steps):
        joint = _product(step.taken, joiner)
        if step.made.fields:
            belief = beliefs.pop(id(step.made))
            inverse = SparseTable(step.made.fields, step.made.keys, -step.made.weights)
            share = joiner.join(belief, inverse, belief.fields)
            joint = joiner.join(joint, share, joint.fields)
        weights = joint.weights - joint.weights.max()
        joint = SparseTable(joint.fields, joint.keys, weights - np.log(np.exp(weights).sum()))
        for v in joint.fields.keys() & open_variables:
            own = np.bincount(joint.states_of(v), np.exp(joint.weights), states[v])
            found[offsets[v] : offsets[v + 1]] = own
            open_variables.discard(v)
        for table in step.taken:
            beliefs[id(table)] = joiner.join(joint, joiner.unit(), table.fields)
    return found


def best_states(steps: Sequence[Step], joiner: Joiner, count: int) -> Ints:
    """A configuration of the largest weight, shape (count,), from all joins of an elimination."""
    known: dict[int, int] = {}
    for step in reversed(steps):
        joint = _product([_consistent(table, known) for table in step.taken], joiner)
        best = int(joint.weights.argmax())
        for v in joint.fields.keys() - known.keys():
            known[v] = int(joint.states_of(v)[best])
    return np.array([known.get(v, 0) for v in range(count)])


def _product(tables: Sequence[SparseTable], joiner: Joiner) -> SparseTable:
    if len(tables) == 1:
        return tables[0]
    return joiner.join(tables[0], tables[1], tables[0].fields.keys() | tables[1].fields.keys())


def _consistent(table: SparseTable, known: Mapping[int, int]) -> SparseTable:
    """The rows of a table that agree with what is known."""
    rows = np.ones(table.size, bool)
    for v in table.fields.keys() & known.keys():
        rows &= table.states_of(v) == known[v]
    return SparseTable(table.fields, table.keys[rows], table.weights[rows])
