"""Compiled depth-first search over programs, on values in lanes."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

from thesis_cli.base.arrays import Bools, Ints
from thesis_cli.base.compiled import ONE, ZERO, helper, kernel
from thesis_cli.synthesis.language.lanes import examples_of, inlined, length_of, same
from thesis_cli.synthesis.language.operation_kernels import GIVES_INT, apply, has_room
from thesis_cli.synthesis.language.packing import Bounds, Lanes
from thesis_cli.synthesis.search.last_line_kernels import may_give
from thesis_cli.synthesis.search.moves_kernels import UNUSED, LineRules, next_lines

REPEATED, IMPOSSIBLE, UNFIT = 8, 16, 64
"""Prunings of the search by values, as bits; `depth_first.Pruning` describes them."""

DONE, PAUSED, ENOUGH = range(3)
"""Why the search returned."""


class SearchProblem(NamedTuple):
    """The programs of one length T that are examined.

    Attributes
    ----------
    pool : values of the inputs, of the T lines (written), and of the required output, shape (inputs
        + T + 1, .).
    bounds : range and rounding, as `apply` takes them.
    types : whether a variable is a number, shape (inputs + T,); those of lines are written.
    result_is_int : whether the output is a number.
    rules : rules for lines.
    probe : example on which last lines are compared before they are run.
    lazily : whether last lines are run on an example only if lengths allow that they fit, and they
        fit those before it; otherwise on all of them.
    costs : costs of the operations of `rules.order`, ascending; the cost of a program is that of
        its lines but the last.
    least, most : programs are examined whose cost is at least the first and below the second.
    """

    pool: Lanes
    bounds: Bounds
    types: Bools
    result_is_int: bool
    rules: LineRules
    probe: int
    lazily: bool
    costs: Ints
    least: int
    most: int


class SearchState(NamedTuple):
    """Position of the search; all is updated.

    Attributes
    ----------
    counts : depth, lines tried, programs of length T examined and programs found so far. All 0 at
        first.
    cursor, sizes : choice that comes next, and number of choices (-1: not listed yet), shape (T,).
        sizes[0] is -1 at first.
    uses : how often a variable is taken by the lines so far, shape (inputs + T,). All 0 at first.
    valid : whether lines have values down to each depth, shape (T + 1,). valid[0] is true.
    choices : room for what the lines can be, shape (T, ., 3).
    chosen : chosen lines, shape (T, 3).
    variables : room for `next_lines`, shape (4, inputs + T + 1).
    ends, known : room for what last lines can be, shape (4 (inputs + T), ., 3), and their numbers.
    short : room for whether a variable is a list shorter than the output, shape (inputs + T,).
    found : operation and arguments of each line of the programs found, shape (count, T, 3).
    spent : cost of the lines down to each depth, shape (T + 1,). spent[0] is 0.
    """

    counts: Ints
    cursor: Ints
    sizes: Ints
    uses: Ints
    valid: Bools
    choices: Ints
    chosen: Ints
    variables: Ints
    ends: Ints
    known: Ints
    short: Bools
    found: Ints
    spent: Ints


@helper()
def _list(rules, types, state, depth, lines):
    """List what the line at `depth` can be, whatever it costs; returns the number."""
    _, _, _, uses, _, _, chosen, variables, _, _, _, _, _ = state
    return next_lines(rules, types, uses, chosen, depth, variables, lines)


@inlined
def _ends(problem, state, depth):
    """List what the last line can be, unless that is known.

    It takes all results that no line takes: that of the line above, and at most one other. So what
    it can be depends on that other one, on the type of the line above, and on whether a line is
    fresh. It is the same for many of the lines that the line above can be.

    Returns
    -------
    Rows as `next_lines` makes them, and their number.
    """
    _, _, types, _, rules, _, _, _, _, _ = problem
    _, _, _, uses, _, choices, chosen, _, ends, known, _, _, _ = state
    if depth == 0 or not rules.pruning & UNUSED:
        return choices[depth], _list(rules, types, state, depth, choices[depth])
    inputs, line = rules.inputs, rules.inputs + depth
    other, new = 0, 0
    for v in range(inputs, line - 1):
        if uses[v] == 0:
            if other > 0:
                return ends[0], 0
            other = v
    for above in range(depth):
        new |= rules.fresh[chosen[above, 0]]
    key = 4 * other + 2 * types[line - 1] + new
    if known[key] < 0:
        known[key] = _list(rules, types, state, depth, ends[key])
    return ends[key], known[key]


@helper()
def _choose_last(problem, state, depth):
    """List what the last line can be, if it may give the output of the probe; all that it can be
    count as examined.

    Returns
    -------
    Number of choices.
    """
    pool, bounds, types, _, rules, probe, _, _, _, _ = problem
    counts, _, _, _, valid, choices, _, _, _, _, _, _, _ = state
    target, order, lines = types.size, rules.order, choices[depth]
    ends, size = _ends(problem, state, depth)
    compared = rules.pruning & UNFIT != 0 and valid[depth]
    n = 0
    for k in range(size):
        place, x, y = ends[k, 0], ends[k, 1], ends[k, 2]
        if not compared or may_give(order[place], pool, x, y, target, probe, bounds):
            lines[n, 0] = place
            lines[n, 1] = x
            lines[n, 2] = y
            n += 1
    counts[1] += size - n  # those listed are counted when they are run
    counts[2] += size
    return n


@inlined
def _affordable(problem, state, depth, n):
    """Keep the choices for a line but the last whose program cost can fall in [least, most).

    Returns
    -------
    Their number.
    """
    costs, lines, after = problem.costs, state.choices[depth], problem.rules.length - 2 - depth
    spent, kept = state.spent[depth], 0
    for k in range(n):
        cost = spent + costs[lines[k, 0]]
        if cost + after * costs[0] < problem.most and cost + after * costs[-1] >= problem.least:
            lines[kept, 0], lines[kept, 1], lines[kept, 2] = lines[k, 0], lines[k, 1], lines[k, 2]
            kept += 1
    return kept


@inlined
def _is_shorter(pool, x, y):
    """Whether a list is shorter than another one on an example."""
    shorter = False
    for m in range(examples_of(pool)):
        shorter |= length_of(pool, x, m) < length_of(pool, y, m)
    return shorter


@inlined
def _lengthy(problem, state, depth, n):
    """Keep the choices for the last line but one after which the last one may give lists as long as
    the output.

    A list that is shorter than the output, like all that come of it, is of use only to a line that
    makes a number of it, which TAKE or DROP then takes.

    Returns
    -------
    Their number.
    """
    pool, _, types, _, rules, _, _, _, _, _ = problem
    _, _, _, uses, _, choices, _, _, _, _, short, _, _ = state
    order, lines, line = rules.order, choices[depth], rules.inputs + depth
    idle = 0
    for v in range(line):
        short[v] = not types[v] and _is_shorter(pool, v, types.size)
        idle += short[v] and v >= rules.inputs and uses[v] == 0
    kept = 0
    for k in range(n):
        place, x, y = lines[k, 0], lines[k, 1], lines[k, 2]
        if GIVES_INT[order[place]]:
            fits = idle == 0 or (idle == 1 and short[y] and y >= rules.inputs and uses[y] == 0)
        else:
            fits = idle == 0 and not short[x] and not short[y]
        if fits:
            lines[kept, 0], lines[kept, 1], lines[kept, 2] = place, x, y
            kept += 1
    return kept


@inlined
def _choose(problem, state, depth):
    """List what the line at `depth` can be; returns the number of choices."""
    _, _, types, result_is_int, rules, _, _, _, _, _ = problem
    _, _, _, _, valid, choices, _, _, _, known, _, _, _ = state
    if depth == rules.length - 1:
        return _choose_last(problem, state, depth)
    n = _affordable(problem, state, depth, _list(rules, types, state, depth, choices[depth]))
    if depth < rules.length - 2:
        return n
    for key in range(known.size):
        known[key] = -1
    if result_is_int or not valid[depth] or rules.pruning & UNFIT == 0 or rules.pruning & UNUSED == 0:
        return n
    return _lengthy(problem, state, depth, n)


@inlined
def _drop(state, depth):
    """Take the line at `depth` back."""
    state.uses[state.chosen[depth, 1]] -= 1
    state.uses[state.chosen[depth, 2]] -= 1


@inlined
def _repeats(problem, line):
    """Whether a line has the values of a variable above it, on all examples."""
    pool, types = problem.pool, problem.types
    examples = examples_of(pool)
    for v in range(line):
        if types[v] == types[line] and same(pool, v, line, ZERO, ONE) and same(pool, v, line, ONE, examples):
            return True
    return False


@kernel(_nrt=False)
def search(problem: SearchProblem, state: SearchState, budget: int) -> int:
    """Examine programs of one length T, depth first; go on from where the last call stopped.

    The last line but one is first run on the probe alone. If no last line can follow it there, it
    is left at that.

    Parameters
    ----------
    problem, state : programs to examine, and the position of the search.
    budget : lines to try in this call.

    Returns
    -------
    DONE, PAUSED (the budget is spent) or ENOUGH (`found` is full).
    """
    pool, bounds, types, result_is_int, rules, probe, lazily, costs, _, _ = problem
    counts, cursor, sizes, uses, valid, choices, chosen, _, _, _, _, found, spent = state
    order, pruning, length, inputs = rules.order, rules.pruning, rules.length, rules.inputs
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
            _drop(state, depth)
            continue
        at = cursor[depth]
        cursor[depth] += 1
        counts[1] += 1
        place, x, y = choices[depth, at, 0], choices[depth, at, 1], choices[depth, at, 2]
        chosen[depth, 0], chosen[depth, 1], chosen[depth, 2] = place, x, y
        id, line = order[place], inputs + depth
        ok = valid[depth]
        if depth == length - 1:
            ok = ok and GIVES_INT[id] == result_is_int and not (lazily and not has_room(id, pool, x, y, target))
            step = ONE if lazily else examples
            for m in range(0, examples, step):
                ok = ok and apply(id, pool, x, y, line, (m, m + step), bounds)
                ok = ok and same(pool, line, target, m, m + step)
            if ok:
                for i in range(length):
                    found[counts[3], i, 0] = order[chosen[i, 0]]
                    found[counts[3], i, 1] = chosen[i, 1]
                    found[counts[3], i, 2] = chosen[i, 2]
                counts[3] += 1
                if counts[3] == found.shape[0]:
                    return ENOUGH
            continue
        types[line] = GIVES_INT[id]
        uses[x] += 1
        uses[y] += 1
        cursor[depth + 1], sizes[depth + 1] = 0, -1
        valid[depth + 1] = ok
        spent[depth + 1] = spent[depth] + costs[place]
        fits = True
        if ok and depth == length - 2 and pruning & UNFIT:
            ok = apply(id, pool, x, y, line, (probe, probe + 1), bounds)
            if ok:
                short = not types[line] and length_of(pool, line, probe) < length_of(pool, target, probe)
                fits = not (short and pruning & UNUSED and not result_is_int)
                if fits:
                    sizes[depth + 1] = _choose(problem, state, depth + 1)
                    fits = sizes[depth + 1] > 0
        ok = ok and fits and apply(id, pool, x, y, line, (ZERO, examples), bounds)
        valid[depth + 1] = ok
        if not fits or (not ok and pruning & IMPOSSIBLE) or (ok and pruning & REPEATED and _repeats(problem, line)):
            _drop(state, depth)
            continue
        depth += 1
        counts[0] = depth
    return PAUSED
