"""Compiled depth-first branch and bound on the tables of mini-buckets; a test compares it with a plain one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel

DEPTH: Any = np.int64(0)
LEAVES: Any = np.int64(1)


class BoundTree(NamedTuple):
    """Bounds on what each state of each variable loses, as one argument of kernels.

    Attributes
    ----------
    variables, sizes : the variable of each depth, and its number of states.
    first : tables first[d]:first[d + 1] belong to depth d.
    starts, strides : of each table: its first entry, and how many entries apart the states of its own
        variable are.
    scopes : the other variables of table r are others[scopes[r]:scopes[r + 1]], of lesser depths.
    others, steps : those variables, and how many entries apart their states are.
    losses : entries of all tables, each 0 or less.
    """

    variables: Ints
    sizes: Ints
    first: Ints
    starts: Ints
    strides: Ints
    scopes: Ints
    others: Ints
    steps: Ints
    losses: Floats


class Stack(NamedTuple):
    """Place at which a search stands.

    Attributes
    ----------
    at : depth (-1 at the end), and number of leaves that wait.
    states : of all variables, on the path.
    bounds, choices : of each depth, the bounds of its states and the states, the largest bound first.
    turns : how many states of each depth were tried.
    leaves, values : configurations that wait, and their bounds.
    """

    at: Ints
    states: Ints
    bounds: Floats
    choices: Ints
    turns: Ints
    leaves: Ints
    values: Floats


@kernel()
def enter(tree: BoundTree, stack: Stack, d: int, bound: float) -> None:
    """Bounds of the states of depth d, in order, below a path of this bound."""
    k = tree.sizes[d]
    for x in range(k):
        total = bound
        for r in range(tree.first[d], tree.first[d + 1]):
            place = tree.starts[r] + x * tree.strides[r]
            for s in range(tree.scopes[r], tree.scopes[r + 1]):
                place += tree.steps[s] * stack.states[tree.others[s]]
            total += tree.losses[place]
        at = x
        while at > 0 and stack.bounds[d, at - 1] < total:
            stack.bounds[d, at] = stack.bounds[d, at - 1]
            stack.choices[d, at] = stack.choices[d, at - 1]
            at -= 1
        stack.bounds[d, at] = total
        stack.choices[d, at] = x
    stack.turns[d] = 0


@kernel()
def descend(tree: BoundTree, stack: Stack, floor: float, slack: float, exact: bool, budget: int) -> float:
    """Search on until the budget of nodes is spent, the leaves are full or all is pruned; returns the floor.

    Parameters
    ----------
    floor, slack : paths of a bound up to floor + slack are pruned.
    exact : whether the bound of a leaf is its value: the floor then rises to it, and one leaf is kept.
    """
    d = stack.at[DEPTH]
    last, room = tree.variables.size - 1, stack.values.size
    while d >= 0 and budget > 0:
        turn = stack.turns[d]
        if turn == tree.sizes[d] or not stack.bounds[d, turn] > floor + slack:
            d -= 1
            continue
        budget -= 1
        bound = stack.bounds[d, turn]
        stack.states[tree.variables[d]] = stack.choices[d, turn]
        stack.turns[d] = turn + 1
        if d < last:
            d += 1
            enter(tree, stack, d, bound)
            continue
        count = 0 if exact else stack.at[LEAVES]
        for i in range(stack.states.size):
            stack.leaves[count, i] = stack.states[i]
        stack.values[count] = bound
        stack.at[LEAVES] = count + 1
        if exact:
            floor = bound
        elif count + 1 == room:
            break
    stack.at[DEPTH] = d
    return floor


@kernel()
def open_bound(tree: BoundTree, stack: Stack) -> float:
    """The largest bound of a path that was not tried yet; -inf at the end."""
    best = -np.inf
    for d in range(stack.at[DEPTH] + 1):
        if stack.turns[d] < tree.sizes[d]:
            best = max(best, stack.bounds[d, stack.turns[d]])
    return best
