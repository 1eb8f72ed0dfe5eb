"""Compiled parts of the network for the next line: all but the matrix products."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Ints, Words
from thesis_cli.base.compiled import kernel
from thesis_cli.synthesis.language.operation_kernels import LIST, TAKES

Array = npt.NDArray[np.float32]


class States(NamedTuple):
    """S partial programs of a pool of B, with room for V variables and T lines each.

    Attributes
    ----------
    programs : places in the pool, shape (S,).
    words : values of all variables in lanes, as words of 64 bits, shape (B V, .).
    kinds : types of the variables, shape (B, V).
    sizes : number of variables, shape (B,).
    inputs : number of inputs, shape (B,).
    lines : shape (B, T, 3).
    task : shape (B,).
    digests : digests of the output and the number of examples of each task, shape (tasks,).
    """

    programs: Ints
    words: Words
    kinds: npt.NDArray[np.int8]
    sizes: Ints
    inputs: Ints
    lines: Ints
    task: Ints
    digests: Words


class EncodingTable(NamedTuple):
    """Places of the encodings of values by their digests; as long as a power of 2.

    Attributes
    ----------
    digests : 0 where there is none.
    places : places of the encodings.
    """

    digests: Words
    places: Ints


@kernel()
def look_up(
    states: States, table: EncodingTable, count: int, places: Ints, missing: Ints, used: Bools, unused: Ints
) -> int:
    """Find the encodings of all variables, and which lines take them.

    Parameters
    ----------
    states : the programs.
    table : places of the encodings; missing ones are entered, at the places from `count` on.
    count : number of encodings.
    places : places of the encodings, shape (S, V), written.
    missing : places in `words` of the values that are entered, shape (S V,), written.
    used : whether a line takes a variable, shape (S, V), written.
    unused : number of results that no line takes, shape (S,), written.

    Returns
    -------
    Number of encodings that are entered.
    """
    programs, words, kinds, sizes, inputs, lines, task, digests = states
    room = kinds.shape[1]
    mask = np.uint64(table.digests.size - 1)
    new = 0
    for s in range(programs.size):
        b = programs[s]
        for v in range(sizes[b]):
            used[s, v] = False
        for t in range(sizes[b] - inputs[b]):
            used[s, lines[b, t, 2]] = True
            if TAKES[lines[b, t, 0]] != LIST:
                used[s, lines[b, t, 1]] = True
        unused[s] = 0
        for v in range(sizes[b]):
            unused[s] += v >= inputs[b] and not used[s, v]
            row = b * room + v
            digest = digests[task[b]] ^ np.uint64(kinds[b, v])
            for i in range(words.shape[1]):
                digest = (digest ^ words[row, i]) * np.uint64(0x9E3779B97F4A7C15)
                digest ^= digest >> np.uint64(29)
            digest |= np.uint64(1)
            at = (digest >> np.uint64(20)) & mask
            while table.digests[at] != 0 and table.digests[at] != digest:
                at = (at + np.uint64(1)) & mask
            if table.digests[at] == 0:
                table.digests[at] = digest
                table.places[at] = count + new
                missing[new] = row
                new += 1
            places[s, v] = table.places[at]
    return new


@kernel()
def pool_parts(states: States, places: Ints, used: Bools, parts: Array, flags: Array, out: Array) -> None:
    """Mean and largest of the parts that the variables of each program have in its encoding.

    Parameters
    ----------
    states, places, used : arguments of `look_up`.
    parts : parts of all encodings, before flags are added, shape (., H).
    flags : parts added for a variable that a line takes, and for an input, shape (2, H).
    out : shape (S, 2 H), written.
    """
    units = parts.shape[1]
    for s in range(states.programs.size):
        b = states.programs[s]
        mean, most = out[s, :units], out[s, units:]
        for i in range(2 * units):
            out[s, i] = 0
        for v in range(states.sizes[b]):
            row = parts[places[s, v]]
            one, two = np.float32(used[s, v]), np.float32(v < states.inputs[b])
            for i in range(units):
                x = max(row[i] + one * flags[0, i] + two * flags[1, i], np.float32(0))
                mean[i] += x
                most[i] = max(most[i], x)
        share = np.float32(1) / states.sizes[b]
        for i in range(units):
            mean[i] *= share


@kernel()
def gather_own(
    states: States, places: Ints, used: Bools, own: Array, flags: Array, state: Array, firsts: Ints, out: Array
) -> None:
    """The first layer of the variables in their programs.

    Parameters
    ----------
    states, places, used : arguments of `look_up`.
    own : first layer of all encodings, before flags and state are added, shape (., H).
    flags : added parts, as in `pool_parts`.
    state : part that each program adds, shape (S, H).
    firsts : place in `out` of the first variable of each program, shape (S,).
    out : shape (sum of sizes, H), written.
    """
    for s in range(states.programs.size):
        b = states.programs[s]
        for v in range(states.sizes[b]):
            row, to = own[places[s, v]], out[firsts[s] + v]
            one, two = np.float32(used[s, v]), np.float32(v < states.inputs[b])
            for i in range(own.shape[1]):
                to[i] = max(row[i] + state[s, i] + one * flags[0, i] + two * flags[1, i], np.float32(0))


class Heads(NamedTuple):
    """Scores of S programs, which have R variables together.

    Attributes
    ----------
    operations : scores of operations, shape (S, 38).
    single : scores of operations of one argument, by variable, shape (R, .).
    first, second : operations of two arguments, by variable: a score, then factors; shape (R,
        operations times (1 + rank)).
    """

    operations: Array
    single: Array
    first: Array
    second: Array


@kernel()
def score_moves(
    heads: Heads, firsts: Ints, states: Ints, lines: Ints, column: Ints, commutes: Bools, rank: int, out: Array
) -> None:
    """Logarithms of the probabilities of lines.

    Parameters
    ----------
    heads : scores.
    firsts : place in `heads` of the first variable of each program, shape (S,).
    states : place of the program of each line, ascending, shape (N,).
    lines : operation and arguments, shape (N, 3).
    column : place of each operation among those with as many arguments, shape (38,).
    commutes : whether arguments can be swapped, shape (38,).
    rank : number of factors.
    out : shape (N,), written.
    """
    operations, single, first, second = heads
    begin = 0
    while begin < states.size:
        s = states[begin]
        base, end = firsts[s], begin
        most = np.float32(-np.inf)
        while end < states.size and states[end] == s:
            id, x, y = lines[end, 0], base + lines[end, 1], base + lines[end, 2]
            score = operations[s, id]
            at = column[id]
            if TAKES[id] == LIST:
                score += single[x, at]
            else:
                at *= rank + 1
                one = first[x, at] + second[y, at]
                for i in range(at + 1, at + 1 + rank):
                    one += first[x, i] * second[y, i]
                if commutes[id]:
                    one += first[y, at] + second[x, at]
                    for i in range(at + 1, at + 1 + rank):
                        one += first[y, i] * second[x, i]
                    one *= np.float32(0.5)
                score += one
            out[end] = score
            most = max(most, score)
            end += 1
        total = np.float32(0)
        for i in range(begin, end):
            total += np.exp(out[i] - most)
        norm = most + np.log(total)
        for i in range(begin, end):
            out[i] -= norm
        begin = end
