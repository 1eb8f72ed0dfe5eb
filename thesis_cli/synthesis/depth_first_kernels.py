"""Compiled depth-first search over programs, on values in lanes."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

from thesis_cli.base.arrays import Ints
from thesis_cli.base.compiled import ZERO, kernel
from thesis_cli.synthesis.lanes import Flags, Lanes, examples_of, inlined, same
from thesis_cli.synthesis.operation_kernels import COMMUTES, GIVES_INT, INT_LIST, LIST, TAKES, Bounds, apply, has_room

UNUSED, COMMUTED, PERMUTED, REPEATED, IMPOSSIBLE, MISTYPED = (1 << bit for bit in range(6))
"""Prunings of the search, as bits; `depth_first.Pruning` describes them."""

DONE, PAUSED, ENOUGH = range(3)
"""Why the search returned."""


class Problem(NamedTuple):
    """What programs of one length T are examined.

    Attributes
    ----------
    pool : values of the inputs, of the T lines (written), and of the required output, shape (inputs
        + T + 1, .).
    bounds : as `apply` takes them.
    types : whether a variable is a number, shape (inputs + T,); those of lines are written.
    result_is_int : whether the output is a number.
    order : ids of the operations to use, as they are to be tried.
    fresh : shape of `order`; every program has an operation for which this is true.
    pruning : bits of prunings.
    lazily : whether last lines are run on an example only if lengths allow that they fit, and they
        fit those before it; otherwise on all of them.
    """

    pool: Lanes
    bounds: Bounds
    types: Flags
    result_is_int: bool
    order: Ints
    fresh: Flags
    pruning: int
    lazily: bool


class State(NamedTuple):
    """How far the search has come; all is updated.

    Attributes
    ----------
    counts : depth, lines tried, programs of length T examined and programs found so far. All 0 at
        first.
    cursor, sizes : choice that comes next, and number of choices (-1: not listed yet), shape (T,).
        sizes[0] is -1 at first.
    uses : how often a variable is taken by the lines so far, shape (inputs + T,). All 0 at first.
    valid : whether lines have values down to each depth, shape (T + 1,). valid[0] is true.
    choices : room for what the lines can be, shape (T, ., 3).
    found : operation and arguments of each line of the programs found, shape (count, T, 3).
    """

    counts: Ints
    cursor: Ints
    sizes: Ints
    uses: Ints
    valid: Flags
    choices: Ints
    found: Ints


@inlined
def _choose(problem, state, depth):
    """List what the line at `depth` can be, as rows (place in the order, first argument, second
    argument).

    Returns
    -------
    Their number.
    """
    types, order, fresh, pruning = problem.types, problem.order, problem.fresh, problem.pruning
    cursor, uses, choices = state.cursor, state.uses, state.choices
    length = state.sizes.size
    inputs, after = types.size - length, length - depth - 1
    line = inputs + depth  # the variable that the line makes
    need = -after  # unused results that it must take, for each line after it takes two and leaves one
    new = after > 0
    for v in range(inputs, line):
        need += uses[v] == 0
        new |= fresh[choices[v - inputs, cursor[v - inputs] - 1, 0]]
    if not pruning & UNUSED:
        need = 0
    n = 0
    for place in range(order.size):
        id = order[place]
        if not (new or fresh[place]) or (after == 0 and pruning & MISTYPED and GIVES_INT[id] != problem.result_is_int):
            continue
        takes = TAKES[id]
        for x in range(line):
            if types[x] != (takes == INT_LIST):
                continue
            start = x if takes == LIST or (COMMUTES[id] and pruning & COMMUTED) else 0
            for y in range(start, x + 1 if takes == LIST else line):
                if types[y]:
                    continue
                taken = x >= inputs and uses[x] == 0
                if y != x:
                    taken += y >= inputs and uses[y] == 0
                if taken < need:
                    continue
                if pruning & PERMUTED and depth > 0 and x != line - 1 and y != line - 1:
                    above = cursor[depth - 1] - 1
                    earlier = place - choices[depth - 1, above, 0]
                    earlier = earlier if earlier != 0 else x - choices[depth - 1, above, 1]
                    earlier = earlier if earlier != 0 else y - choices[depth - 1, above, 2]
                    if earlier <= 0:
                        continue
                choices[depth, n, 0] = place
                choices[depth, n, 1] = x
                choices[depth, n, 2] = y
                n += 1
    return n


@kernel()
def search(problem: Problem, state: State, budget: int) -> int:
    """Examine programs of one length T, depth first; go on from where the last call stopped.

    Parameters
    ----------
    problem, state : what to examine, and how far that has come.
    budget : lines to try in this call.

    Returns
    -------
    DONE, PAUSED (the budget is spent) or ENOUGH (`found` is full).
    """
    pool, bounds, types, result_is_int, order, _, pruning, lazily = problem
    counts, cursor, sizes, uses, valid, choices, found = state
    length = sizes.size
    inputs = types.size - length
    target = inputs + length
    examples = examples_of(pool)
    depth, stop = counts[0], counts[1] + budget
    while counts[1] < stop:
        if sizes[depth] < 0:
            cursor[depth] = 0
            sizes[depth] = _choose(problem, state, depth)
        if cursor[depth] == sizes[depth]:
            if depth == 0:
                return DONE
            depth -= 1
            counts[0] = depth
            at = cursor[depth] - 1
            uses[choices[depth, at, 1]] -= 1
            uses[choices[depth, at, 2]] -= 1
            continue
        at = cursor[depth]
        cursor[depth] += 1
        counts[1] += 1
        id, x, y = order[choices[depth, at, 0]], choices[depth, at, 1], choices[depth, at, 2]
        line = inputs + depth
        last = depth == length - 1
        ok = valid[depth] and (not last or GIVES_INT[id] == result_is_int)
        step = examples
        if last and lazily:
            step = 1
            ok = ok and has_room(id, pool, x, y, target)
        for m in range(0, examples, step):
            if ok:
                ok = apply(id, pool, x, y, line, (m, m + step), bounds)
            if ok and last:
                ok = same(pool, line, target, m, m + step)
        if last:
            counts[2] += 1
            if ok:
                for i in range(length):
                    at = cursor[i] - 1
                    found[counts[3], i, 0] = order[choices[i, at, 0]]
                    found[counts[3], i, 1] = choices[i, at, 1]
                    found[counts[3], i, 2] = choices[i, at, 2]
                counts[3] += 1
                if counts[3] == found.shape[0]:
                    return ENOUGH
            continue
        if not ok and pruning & IMPOSSIBLE:
            continue
        types[line] = GIVES_INT[id]
        if ok and pruning & REPEATED:
            for v in range(line):
                ok &= types[v] != types[line] or not same(pool, v, line, ZERO, examples)
            if not ok:
                continue
        uses[x] += 1
        uses[y] += 1
        valid[depth + 1] = ok
        depth += 1
        counts[0] = depth
        sizes[depth] = -1
    return PAUSED
