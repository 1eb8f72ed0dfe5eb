"""Compiled rules for the next line of a program: which operations, on which variables."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

from thesis_cli.base.arrays import Bools, Ints
from thesis_cli.base.compiled import kernel
from thesis_cli.synthesis.language.lanes import inlined
from thesis_cli.synthesis.language.operation_kernels import COMMUTES, SINGLE, TAKES_INT

UNUSED, COMMUTED, PERMUTED = (1 << bit for bit in range(3))
"""Prunings that need no values, as bits; `depth_first.Pruning` describes them."""

LISTS, NUMBERS, IDLE = 0, 1, 2
"""Rows of `variables` in `next_lines`; those of results that no line takes come after the others,
so they are `IDLE + LISTS` and `IDLE + NUMBERS`."""


class LineRules(NamedTuple):
    """Rules for the lines of a program, whatever the values.

    Attributes
    ----------
    inputs, length : numbers of inputs, and of lines T.
    order : ids of the operations to use, as they are to be tried.
    fresh : shape of `order`; every program has an operation for which this is true.
    ends : shape of `order`; whether the last line can have the operation.
    pruning : bits of prunings.
    """

    inputs: int
    length: int
    order: Ints
    fresh: Bools
    ends: Bools
    pruning: int


@inlined
def next_lines(rules, types, uses, chosen, depth, variables, lines):
    """List what the line at `depth` can be, as rows (place in the order, first argument, second
    argument), in order.

    Parameters
    ----------
    rules : rules for lines.
    types : whether a variable is a number, down to this line.
    uses : how often a variable is taken by the lines so far.
    chosen : the lines so far, as such rows.
    variables : room, shape (4, inputs + T + 1); it gets the variables by type and use, ascending
        from column 1, and their number in column 0.
    lines : room for the rows.

    Returns
    -------
    Their number.
    """
    _, _, order, fresh, ends, pruning = rules
    inputs, after = rules.inputs, rules.length - depth - 1
    line = inputs + depth  # the variable that the line makes
    for row in range(4):
        variables[row, 0] = 0
    need = -after  # unused results that it must take, for each line after it takes two and leaves one
    for v in range(line):
        row = NUMBERS if types[v] else LISTS
        variables[row, 0] += 1
        variables[row, variables[row, 0]] = v
        if v >= inputs and uses[v] == 0:
            need += 1
            variables[IDLE + row, 0] += 1
            variables[IDLE + row, variables[IDLE + row, 0]] = v
    if not pruning & UNUSED:
        need = min(need, 0)
    n = 0
    if need > 2:
        return n
    new = after > 0
    for above in range(depth):
        new |= fresh[chosen[above, 0]]
    for place in range(order.size):
        id = order[place]
        if not (new or fresh[place]) or (after == 0 and not ends[place]):
            continue
        single = SINGLE[id]
        ordered = COMMUTES[id] and pruning & COMMUTED
        firsts = NUMBERS if TAKES_INT[id, 0] else LISTS
        if need == 2 or (need == 1 and single):
            firsts += IDLE
        for j in range(1, variables[firsts, 0] + 1):
            x = variables[firsts, j]
            left = need - (x >= inputs and uses[x] == 0)
            seconds, begin = NUMBERS if TAKES_INT[id, 1] else LISTS, 1
            if single:
                seconds, begin = firsts, j
            elif left == 1:
                seconds += IDLE
            elif ordered and need < 2:
                begin = j
            end = variables[seconds, 0] + 1
            if single:
                end = j + (left <= 0)
            elif left > 1:
                end = begin
            for k in range(begin, end):
                y = variables[seconds, k]
                if (ordered and y < x) or (y == x and left == 1 and not single):
                    continue
                if pruning & PERMUTED and depth > 0 and x != line - 1 and y != line - 1:
                    earlier = place - chosen[depth - 1, 0]
                    earlier = earlier if earlier != 0 else x - chosen[depth - 1, 1]
                    earlier = earlier if earlier != 0 else y - chosen[depth - 1, 2]
                    if earlier <= 0:
                        continue
                lines[n, 0] = place
                lines[n, 1] = x
                lines[n, 2] = y
                n += 1
    return n


class Unfinished(NamedTuple):
    """B partial programs, with room for T lines and V variables each.

    Attributes
    ----------
    numbers : whether a variable is a number, shape (B, V).
    inputs : number of inputs of each, shape (B,).
    results : whether its output is to be a number, shape (B,), as 0 or 1.
    lines : operation and arguments of each line, -1 where there is none yet, shape (B, T, 3).
    going : whether to list its moves, shape (B,).
    """

    numbers: Bools
    inputs: Ints
    results: Ints
    lines: Ints
    going: Bools


class MoveRoom(NamedTuple):
    """Room for one program at a time: `next_lines` describes all but the rows.

    Attributes
    ----------
    uses : shape (V,).
    chosen : shape (T, 3).
    variables : shape (4, V + 1).
    rows : room for the next lines of a program, shape (., 3).
    """

    uses: Ints
    chosen: Ints
    variables: Ints
    rows: Ints


@kernel(_nrt=False)
def list_moves(batch: Unfinished, order: Ints, ends: Bools, pruning: int, room: MoveRoom, moves: Ints) -> int:
    """List what the next lines of partial programs can be.

    Parameters
    ----------
    batch : the programs.
    order : ids of the operations to use.
    ends : whether a last line can have an operation of `order`, for outputs that are lists and for
        those that are numbers; then true for all, as no operation is required; shape (3, .).
    pruning : bits of prunings.
    room : room for one program.
    moves : place of the program, operation and arguments of each move, shape (., 4), written; those
        that find no room are only counted.

    Returns
    -------
    Number of moves.
    """
    numbers, inputs, results, lines, going = batch
    uses, chosen, variables, rows = room
    length, total = lines.shape[1], 0
    for b in range(inputs.size):
        if not going[b]:
            continue
        depth = 0
        for v in range(uses.size):
            uses[v] = 0
        while depth < length and lines[b, depth, 0] >= 0:
            chosen[depth, 0] = -1
            for place in range(order.size):
                if order[place] == lines[b, depth, 0]:
                    chosen[depth, 0] = place
            chosen[depth, 1], chosen[depth, 2] = lines[b, depth, 1], lines[b, depth, 2]
            uses[chosen[depth, 1]] += 1
            uses[chosen[depth, 2]] += 1
            depth += 1
        if depth == length:
            continue
        rules = LineRules(inputs[b], length, order, ends[2], ends[results[b]], pruning)
        n = next_lines(rules, numbers[b], uses, chosen, depth, variables, rows)
        for k in range(n):
            if total < moves.shape[0]:
                moves[total, 0], moves[total, 1] = b, order[rows[k, 0]]
                moves[total, 2], moves[total, 3] = rows[k, 1], rows[k, 2]
            total += 1
    return total
