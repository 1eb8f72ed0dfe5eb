"""Compiled passes over many small tables; `reduction` says what they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel

if TYPE_CHECKING:
    from thesis_cli.inference.enumeration import FlatTables

DEPENDS, DETERMINED = np.int64(1), np.int64(2)
"""Results of `relations`: the table depends on the variable; the others leave it one state at
most."""


@kernel()
def prune(t: FlatTables, users: Ints, first_user: Ints, offsets: Ints, kept: Ints) -> bool:
    """Set `kept` to 0 for every state that some table rules out, given the states kept of the
    other variables, until nothing changes; False if a variable has no state left.

    Parameters
    ----------
    users, first_user : those that name variable v are users[first_user[v] : first_user[v + 1]].
    offsets : the states of variable v are kept[offsets[v] : offsets[v + 1]].
    """
    count = t.first.size - 1
    queue = np.arange(count)
    waiting = np.ones(count, np.int64)
    support = np.empty(kept.size, np.int64)
    digits = np.zeros(64, np.int64)  # NumPy has no more axes
    head = 0
    left = count
    while left > 0:
        f = queue[head]
        head = head + 1 if head + 1 < count else 0
        left -= 1
        waiting[f] = 0
        low, high = t.first[f], t.first[f + 1]
        for p in range(low, high):
            v = t.scopes[p]
            digits[p - low] = 0
            for s in range(offsets[v], offsets[v + 1]):
                support[s] = 0
        for e in range(t.places[f], t.places[f + 1]):
            if t.tables[e] > -np.inf:
                possible = True
                for p in range(low, high):
                    if kept[offsets[t.scopes[p]] + digits[p - low]] == 0:
                        possible = False
                        break
                if possible:
                    for p in range(low, high):
                        support[offsets[t.scopes[p]] + digits[p - low]] = 1
            for p in range(high - 1, low - 1, -1):
                digits[p - low] += 1
                if digits[p - low] < t.sizes[t.scopes[p]]:
                    break
                digits[p - low] = 0
        for p in range(low, high):
            v = t.scopes[p]
            fewer = False
            some = False
            for s in range(offsets[v], offsets[v + 1]):
                if kept[s] == 1 and support[s] == 0:
                    kept[s] = 0
                    fewer = True
                if kept[s] == 1:
                    some = True
            if not some:
                return False
            if fewer:
                for q in range(first_user[v], first_user[v + 1]):
                    g = users[q]
                    if waiting[g] == 0 and g != f:
                        waiting[g] = 1
                        at = head + left
                        queue[at if at < count else at - count] = g
                        left += 1
    return True


@kernel()
def restrict(t: FlatTables, offsets: Ints, kept: Ints, at_first: Ints, out: Floats) -> None:
    """Write the entries of each table whose states are all kept, in order; of a variable with
    `at_first`, those of its first state alone.

    Parameters
    ----------
    at_first : shape of `t.scopes`.
    """
    digits = np.zeros(64, np.int64)
    o = 0
    for f in range(t.first.size - 1):
        low, high = t.first[f], t.first[f + 1]
        for p in range(low, high):
            digits[p - low] = 0
        for e in range(t.places[f], t.places[f + 1]):
            inside = True
            for p in range(low, high):
                d = digits[p - low]
                if kept[offsets[t.scopes[p]] + d] == 0 or (at_first[p] == 1 and d > 0):
                    inside = False
                    break
            if inside:
                out[o] = t.tables[e]
                o += 1
            for p in range(high - 1, low - 1, -1):
                digits[p - low] += 1
                if digits[p - low] < t.sizes[t.scopes[p]]:
                    break
                digits[p - low] = 0


@kernel()
def relations(t: FlatTables, found: Ints, levels: Floats) -> None:
    """Relations of each table to each of its variables, and whether it is only a constraint.

    Parameters
    ----------
    found : out, shape of `t.scopes`: `DEPENDS`, `DETERMINED`, both or 0.
    levels : out, one a table: the value of all its possible entries, or NaN if they differ.
    """
    for f in range(t.first.size - 1):
        start, stop = t.places[f], t.places[f + 1]
        level = -np.inf
        for e in range(start, stop):
            if t.tables[e] > -np.inf:
                if level == -np.inf:
                    level = t.tables[e]
                elif t.tables[e] != level:
                    level = np.nan
                    break
        levels[f] = level
        stride = 1
        for p in range(t.first[f + 1] - 1, t.first[f] - 1, -1):
            k = t.sizes[t.scopes[p]]
            depends = False
            determined = True
            for block in range(start, stop, stride * k):
                for low in range(block, block + stride):
                    possible = 0
                    for d in range(k):
                        value = t.tables[low + d * stride]
                        if value > -np.inf:
                            possible += 1
                        if value != t.tables[low]:
                            depends = True
                    if possible > 1:
                        determined = False
                if depends and not determined:
                    break
            found[p] = (DEPENDS if depends else 0) + (DETERMINED if determined else 0)
            stride *= k
