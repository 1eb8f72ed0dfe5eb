"""Compiled sweeps of chains from all states at once; tests compare them with enumeration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel


class Neighbours(NamedTuple):
    """The tables of each variable, as one argument of kernels.

    Attributes
    ----------
    offsets : where the states of each variable start, shape (n + 1,).
    unary : log-potentials of the states, flat.
    first : variable i is in the uses first[i]:first[i + 1], shape (n + 1,).
    starts, strides : of each use, where its table starts, and the distance of two states of the variable.
    others : use q has the other variables variables[others[q]:others[q + 1]].
    variables, steps : those variables, and the distance of two states of each in the table.
    tables : log-potentials of all tables, flat, finite.
    """

    offsets: Ints
    unary: Floats
    first: Ints
    starts: Ints
    strides: Ints
    others: Ints
    variables: Ints
    steps: Ints
    tables: Floats


@kernel(_nrt=False)
def coupled_sweep(
    model: Neighbours,
    noise: Floats,
    slack: float,
    possible: Ints,
    counts: Ints,
    states: Ints,
    places: Ints,
    ends: Ints,
    totals: Floats,
) -> None:
    """Draw each variable anew given the others, in one chain and in all chains at once, by the same noise.

    The new state is the one whose log-potential plus noise is largest (the Gumbel trick). In all chains at once, it may
    be any state that no other one beats, whichever possible states the others have.

    Parameters
    ----------
    noise : Gumbel noise on each state of each variable, flat.
    slack : difference of two sums that rounding cannot make.
    possible, counts : 1 for each state that some chain may be in, flat, and their number for each variable.
    states : the states of one chain, each of them possible, shape (n,).
    places, ends, totals : scratch; for as many places of joint states of the others as are compared, for most uses of
        a variable, and for most states.
    """
    (offsets, unary, first, starts, strides, others, variables, steps, tables) = model
    for v in range(states.size):
        low, k = offsets[v], offsets[v + 1] - offsets[v]
        top, winner, open_ = -np.inf, 0, False
        for x in range(k):
            totals[x] = unary[low + x] + noise[low + x]
        for q in range(first[v], first[v + 1]):
            place = starts[q]
            for o in range(others[q], others[q + 1]):
                place += steps[o] * states[variables[o]]
                open_ = open_ or counts[variables[o]] > 1
            for x in range(k):
                totals[x] += tables[place + x * strides[q]]
        for x in range(k):
            possible[low + x] = 0
            if totals[x] > top:
                top, winner = totals[x], x
        states[v] = winner
        possible[low + winner] = counts[v] = 1
        if not open_:
            continue
        filled, fits = 0, True
        for q in range(first[v], first[v + 1]):
            size = 1
            for o in range(others[q], others[q + 1]):
                size *= counts[variables[o]]
            fits = filled + size <= places.size
            if not fits:
                break
            places[filled] = starts[q]
            size = 1
            for o in range(others[q], others[q + 1]):
                w, seen = variables[o], 0
                for s in range(offsets[w + 1] - offsets[w] - 1, -1, -1):
                    if possible[offsets[w] + s]:
                        seen += 1
                        shift = (counts[w] - seen) * size
                        for p in range(filled, filled + size):
                            places[p + shift] = places[p] + s * steps[o]
                size *= counts[w]
            filled += size
            ends[q - first[v]] = filled
        top, best = -np.inf, 0  # the state whose least total is largest
        for x in range(k):
            total, start = unary[low + x] + noise[low + x], 0
            for q in range(first[v], first[v + 1] if fits else first[v]):
                least = np.inf
                for p in range(start, ends[q - first[v]]):
                    least = min(least, tables[places[p] + x * strides[q]])
                total, start = total + least, ends[q - first[v]]
            if total > top:
                top, best = total, x
        for turn in range(2):  # beside that state, then beside all that are left
            for x in range(k):
                if turn and not possible[low + x]:
                    continue
                beaten = unary[low + x] == -np.inf
                for y in range(k):
                    if beaten:
                        break
                    if y == x or not fits or (y != best and turn == 0) or (turn and not possible[low + y]):
                        continue
                    gap, start = unary[low + x] + noise[low + x] - unary[low + y] - noise[low + y], 0
                    for q in range(first[v], first[v + 1]):
                        most = -np.inf
                        for p in range(start, ends[q - first[v]]):
                            at = places[p]
                            most = max(most, tables[at + x * strides[q]] - tables[at + y * strides[q]])
                        gap, start = gap + most, ends[q - first[v]]
                    beaten = gap < -slack
                possible[low + x] = 0 if beaten else 1
        counts[v] = 0
        for x in range(k):
            counts[v] += possible[low + x]
