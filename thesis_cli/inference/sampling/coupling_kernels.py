"""Compiled sweeps of chains from all states at once; tests compare them with enumeration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import helper, kernel


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


class Coupled(NamedTuple):
    """One chain, and what is known of all chains from anywhere.

    Attributes
    ----------
    states : the states of the one chain, each of them possible, shape (n,).
    possible, counts : 1 for each state that some chain may be in, flat, and their number for each variable.
    """

    states: Ints
    possible: Ints
    counts: Ints


class Scratch(NamedTuple):
    """Room for what is known of one variable.

    Attributes
    ----------
    places, ends : places in the tables of the joint states that the others may have, those of one use after those of
        another, and where each use ends.
    totals : one number for each state.
    """

    places: Ints
    ends: Ints
    totals: Floats


@kernel(_nrt=False)
def coupled_sweep(model: Neighbours, noise: Floats, slack: float, chains: Coupled, scratch: Scratch) -> None:
    """Draw each variable anew given the others, in one chain and in all chains at once, by the same noise.

    The new state is the one whose log-potential plus noise is largest (the Gumbel trick). In all chains at once, it may
    be any state that no other one beats, whichever possible states the others have.

    Parameters
    ----------
    noise : Gumbel noise on each state of each variable, flat.
    slack : difference of two sums that rounding cannot make.
    """
    for v in range(chains.states.size):
        if _move(model, noise, v, chains, scratch.totals):
            fits = _list_places(model, v, chains, scratch)
            _keep_possible(model, noise, slack, v, fits, chains.possible, scratch)
            low, high = model.offsets[v], model.offsets[v + 1]
            chains.counts[v] = 0
            for x in range(low, high):
                chains.counts[v] += chains.possible[x]


@helper()
def _move(model: Neighbours, noise: Floats, v: int, chains: Coupled, totals: Floats) -> bool:
    """Draw a variable in the one chain, as if all others were there too; returns whether they may be elsewhere."""
    low, k = model.offsets[v], model.offsets[v + 1] - model.offsets[v]
    top, winner, open_ = -np.inf, 0, False
    for x in range(k):
        totals[x] = model.unary[low + x] + noise[low + x]
    for q in range(model.first[v], model.first[v + 1]):
        place = model.starts[q]
        for o in range(model.others[q], model.others[q + 1]):
            place += model.steps[o] * chains.states[model.variables[o]]
            open_ = open_ or chains.counts[model.variables[o]] > 1
        for x in range(k):
            totals[x] += model.tables[place + x * model.strides[q]]
    for x in range(k):
        chains.possible[low + x] = 0
        if totals[x] > top:
            top, winner = totals[x], x
    chains.states[v] = winner
    chains.possible[low + winner] = chains.counts[v] = 1
    return open_


@helper()
def _list_places(model: Neighbours, v: int, chains: Coupled, scratch: Scratch) -> bool:
    """Fill in `places` and `ends` for a variable; returns whether there was room."""
    places, filled = scratch.places, 0
    for q in range(model.first[v], model.first[v + 1]):
        size = 1
        for o in range(model.others[q], model.others[q + 1]):
            size *= chains.counts[model.variables[o]]
        if filled + size > places.size:
            return False
        places[filled] = model.starts[q]
        size = 1
        for o in range(model.others[q], model.others[q + 1]):
            w, seen = model.variables[o], 0
            low = model.offsets[w]
            for s in range(model.offsets[w + 1] - low - 1, -1, -1):
                if chains.possible[low + s]:
                    seen += 1
                    shift = (chains.counts[w] - seen) * size
                    for p in range(filled, filled + size):
                        places[p + shift] = places[p] + s * model.steps[o]
            size *= chains.counts[w]
        filled += size
        scratch.ends[q - model.first[v]] = filled
    return True


@helper()
def _keep_possible(
    model: Neighbours, noise: Floats, slack: float, v: int, fits: bool, possible: Ints, scratch: Scratch
) -> None:
    """Keep the states of a variable that none beats for certain: first not the one whose least total is largest, then
    none of those that are left. Without room for places all states stay.
    """
    low, k = model.offsets[v], model.offsets[v + 1] - model.offsets[v]
    for x in range(k):
        possible[low + x] = 1 if model.unary[low + x] > -np.inf else 0
    if not fits:
        return
    best, top = 0, -np.inf
    for x in range(k):
        total, start = model.unary[low + x] + noise[low + x], 0
        for q in range(model.first[v], model.first[v + 1]):
            least, end = np.inf, scratch.ends[q - model.first[v]]
            for p in range(start, end):
                least = min(least, model.tables[scratch.places[p] + x * model.strides[q]])
            total, start = total + least, end
        if total > top:
            best, top = x, total
    for x in range(k):
        if x != best and possible[low + x] and _lead(model, noise, v, x, best, scratch) < -slack:
            possible[low + x] = 0
    for x in range(k):
        for y in range(k):
            both = x != y and possible[low + x] and possible[low + y]
            if both and _lead(model, noise, v, x, y, scratch) < -slack:
                possible[low + x] = 0


@helper()
def _lead(model: Neighbours, noise: Floats, v: int, x: int, y: int, scratch: Scratch) -> float:
    """A bound from above on how far state x of a variable leads over state y, whichever states the others have."""
    a, b = model.offsets[v] + x, model.offsets[v] + y
    lead, start = model.unary[a] + noise[a] - model.unary[b] - noise[b], 0
    for q in range(model.first[v], model.first[v + 1]):
        most, end = -np.inf, scratch.ends[q - model.first[v]]
        for p in range(start, end):
            at = scratch.places[p]
            most = max(most, model.tables[at + x * model.strides[q]] - model.tables[at + y * model.strides[q]])
        lead, start = lead + most, end
    return float(lead)
