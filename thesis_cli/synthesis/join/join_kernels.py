"""Compiled joins: pairs of lists of a bank to which ZIPWITH gives what is sought.

A view is the part of each list that is compared, K numbers side by side. The hash of a row is
linear, sum_k x_k m_k modulo 2^64 with odd random m. So the hash of the partner of a row under (+) or
(-) is a difference of hashes, and a join costs a few nanoseconds a row. For (*), MIN and MAX each
row of a pair can be tested by itself; few pass, and they are paired by the hash of their quotient,
or by the places where they equal what is sought.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Ints, Words
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.synthesis.language.lanes import inlined
from thesis_cli.synthesis.language.packing import WIDTH, Lanes
from thesis_cli.synthesis.search.bottom_up_kernels import Places


class Part(NamedTuple):
    """The compared part of the lists.

    Attributes
    ----------
    columns : columns of the compared numbers in the pool, shape (K,).
    needs : least length on each example, shape (M,).
    exact : whether it matters that a list is not longer.
    multipliers : odd, for the hash, shape (K,).
    """

    columns: Ints
    needs: Ints
    exact: bool
    multipliers: Words


class View(NamedTuple):
    """Lists of a bank that reach as far as needed, with the part that is compared.

    Attributes
    ----------
    packed : the compared numbers, shape (N, K).
    hashes : linear hashes of them, shape (N,).
    ends : bits of the examples on which the list ends with them, shape (N,).
    sizes : operations of each, rising, shape (N,).
    heads, nexts : first row by hash, next row of the same place, -1 at the end; shapes (a power of
        2,) and (N,).
    bits : which hashes there may be, a bit each; shape (a power of 2,).
    multipliers : odd, shape (K,).
    """

    packed: Lanes
    hashes: Words
    ends: Words
    sizes: Ints
    heads: Places
    nexts: Places
    bits: Words
    multipliers: Words


@helper()
def hash_of(row, multipliers):
    h = np.uint64(0)
    for k in range(row.size):
        h += np.uint64(np.int64(row[k])) * multipliers[k]
    return h


@kernel()
def pack_lists(pool: Lanes, kinds: Bools, part: Part, rows: Ints, packed: Lanes, keys: Words, seen: Places) -> int:
    """Gather the compared numbers of the lists that are long enough; of equal ones the first.

    Parameters
    ----------
    pool, kinds : rows of the bank that are in use, without the first.
    part : columns to compare.
    rows : row of the bank of each list, at least as many as rows of the bank; written.
    packed : likewise the compared numbers, shape (., K); written.
    keys : likewise their hashes, and on which of the first 64 examples the list ends with them
        (all, if that does not matter), shape (., 2); written.
    seen : -1 everywhere, shape (a power of 2 above the rows of the bank,); written.

    Returns
    -------
    Number of lists.
    """
    columns, needs, exact, multipliers = part
    size, base, mask = columns.size, WIDTH * needs.size, seen.size - 1
    n = 0
    for row in range(1, kinds.size):
        ok = not kinds[row]
        for m in range(needs.size):
            ok &= pool[row, base + m] >= needs[m]
        if not ok:
            continue
        for k in range(size):
            packed[n, k] = pool[row, columns[k]]
        ends = np.uint64(0)
        for m in range(min(needs.size, 64)):
            ends |= np.uint64(not exact or pool[row, base + m] == needs[m]) << np.uint64(m)
        keys[n, 0], keys[n, 1] = hash_of(packed[n], multipliers), ends
        place = np.int64(spread(keys[n, 0] ^ spread(ends)) >> np.uint64(30)) & mask
        while seen[place] >= 0:
            other = seen[place]
            if keys[other, 0] == keys[n, 0] and keys[other, 1] == ends:
                break
            place = (place + 1) & mask
        if seen[place] < 0:
            seen[place] = n
            rows[n] = row
            n += 1
    return n


@inlined
def spread(h):
    return (h ^ (h >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)


@helper()
def fill(hashes, heads, nexts, bits):
    """Enter hashes, last to first, so that earlier rows come first."""
    for i in range(heads.size):
        heads[i] = -1
    for i in range(bits.size):
        bits[i] = np.uint64(0)
    for i in range(hashes.size - 1, -1, -1):
        s = spread(hashes[i])
        place = np.int64(s >> np.uint64(40)) & (heads.size - 1)
        nexts[i] = heads[place]
        heads[place] = i
        bits[np.int64(s >> np.uint64(20)) & (bits.size - 1)] |= np.uint64(1) << (s & np.uint64(63))


@inlined
def first_of(heads, bits, h):
    """First row whose hash may be h, or -1."""
    s = spread(h)
    if not (bits[np.int64(s >> np.uint64(20)) & (bits.size - 1)] >> (s & np.uint64(63))) & np.uint64(1):
        return np.int64(-1)
    return np.int64(heads[np.int64(s >> np.uint64(40)) & (heads.size - 1)])


@kernel()
def index(view: View) -> None:
    """Fill the tables that find rows by their hashes."""
    fill(view.hashes, view.heads, view.nexts, view.bits)


PLUS, MINUS, TIMES, LEAST, MOST = range(5)
"""The lambdas of ZIPWITH: (+), (-), (*), MIN and MAX."""

ALONE = -1
"""Stands for no ZIPWITH."""

MOST_ROWS = 2**15
"""Rows that are paired for (*), MIN or MAX; the first ones that differ in what matters."""

MOST_PAIRS = 2**22
"""Pairs of rows that are tested for MIN or MAX."""

FOUND = 7
"""Columns of a hit: what `Search.outer` has; inner lambda, and its two rows."""


class Search(NamedTuple):
    """Goals of a join and the pairs found.

    Attributes
    ----------
    goals : numbers that a pair is to give, shape (G, K).
    outside : rows that an outer ZIPWITH takes, shape (A, K).
    bounds : least and greatest number, and greatest number of operations of a pair, besides its
        ZIPWITH; shape (3,).
    found : hits, shape (F, `FOUND`); written.
    state : hits so far, and rows looked at, shape (2,); updated.
    outer : the outer lambda or `ALONE`, its row, whether that row comes second, and the goal, shape
        (4,); written.
    """

    goals: Lanes
    outside: Lanes
    bounds: Ints
    found: Ints
    state: Ints
    outer: Ints


@inlined
def _of(f, x, y):
    if f == PLUS:
        return x + y
    if f == MINUS:
        return x - y
    if f == TIMES:
        return x * y
    if f == LEAST:
        return min(x, y)
    return max(x, y)


@helper()
def _offer(view, search, inner, i, j):
    """Record a hit if its numbers are right and it is small enough."""
    outer, a, second, goal = search.outer[0], search.outer[1], search.outer[2], search.outer[3]
    packed, goals = view.packed, search.goals
    low, high, most = search.bounds[0], search.bounds[1], search.bounds[2]
    size = view.sizes[i] + (view.sizes[j] if inner != ALONE else -1)
    if size > most or search.state[0] == search.found.shape[0]:
        return
    for k in range(packed.shape[1]):
        z = np.int64(packed[i, k])
        if inner != ALONE:
            z = _of(inner, z, np.int64(packed[j, k]))
        if z < low or z > high:
            return
        if outer != ALONE:
            x = np.int64(search.outside[a, k])
            z = _of(outer, z, x) if second else _of(outer, x, z)
        if z != goals[goal, k]:
            return
    hit = search.found[search.state[0]]
    hit[0], hit[1], hit[2], hit[3], hit[4], hit[5], hit[6] = outer, a, second, goal, inner, i, j
    search.state[0] += 1


@helper()
def _linear(view, search, h, hashes, heads, nexts, bits):
    """Pairs under (+) and (-) by the hash h of what they are to give; `hashes` may be those of a
    part of the numbers."""
    for i in range(hashes.size):
        wanted = h - hashes[i]
        j = first_of(heads, bits, wanted)
        while j >= 0:
            if hashes[j] == wanted and j >= i:
                _offer(view, search, PLUS, i, j)
            j = np.int64(nexts[j])
        wanted = hashes[i] - h
        j = first_of(heads, bits, wanted)
        while j >= 0:
            if hashes[j] == wanted:
                _offer(view, search, MINUS, i, j)
            j = np.int64(nexts[j])


@helper()
def _room(view):
    """Most rows that are paired, and a power of 2 above twice their number."""
    most = min(view.packed.shape[0], MOST_ROWS)
    slots = 64
    while slots < 2 * most:
        slots *= 2
    return most, slots


@helper()
def _quotients(view, search, sought, places):
    """Pairs under (*) whose product is `sought` at some places.

    Where it is not 0, one number determines the other. Where it is 0, one of the two is 0; the first
    64 such places are compared before the numbers are.
    """
    packed = view.packed
    most, slots = _room(view)
    chosen, zeros = np.empty(most, np.int64), np.empty(most, np.uint64)
    keys, hashes, wanted = (
        np.empty(most, np.uint64),
        np.empty(most, np.uint64),
        np.empty(most, np.uint64),
    )
    seen = np.full(slots, np.int32(-1))
    full, n = np.uint64(0), 0
    for i in range(packed.shape[0]):
        ok = True
        for k in places:
            x, y = packed[i, k], sought[k]
            if y != 0 and (x == 0 or y % x != 0):
                ok = False
                break
        if not ok:
            continue
        h, partner, key, zero, bit = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(1)
        for k in places:
            x, y = np.int64(packed[i, k]), np.int64(sought[k])
            if y != 0:
                h += np.uint64(x) * view.multipliers[k]
                partner += np.uint64(y // x) * view.multipliers[k]
            else:
                key += np.uint64(x == 0) * view.multipliers[k]
                zero |= bit * np.uint64(x == 0)
                full |= bit
                bit <<= np.uint64(1)
        key = spread(h ^ spread(key ^ spread(view.ends[i])))
        place = np.int64(key >> np.uint64(30)) & (seen.size - 1)
        while seen[place] >= 0 and keys[seen[place]] != key:
            place = (place + 1) & (seen.size - 1)
        if seen[place] < 0:
            seen[place] = n
            chosen[n], zeros[n], keys[n], hashes[n], wanted[n] = i, zero, key, h, partner
            n += 1
            if n == most:
                break
    if n == 0:
        return
    heads, nexts, bits = np.empty(slots, np.int32), np.empty(n, np.int32), np.empty(slots >> 2, np.uint64)
    fill(hashes[:n], heads, nexts, bits)
    for c in range(n):
        d = first_of(heads, bits, wanted[c])
        while d >= 0:
            if hashes[d] == wanted[c] and d >= c and zeros[c] | zeros[d] == full:
                _offer(view, search, TIMES, chosen[c], chosen[d])
            d = np.int64(nexts[d])


@helper()
def _by_count(counts, most):
    """Places of some counts, each up to `most`, the highest first."""
    starts = np.zeros(most + 2, np.int64)
    for c in range(counts.size):
        starts[most - counts[c] + 1] += 1
    for k in range(most + 1):
        starts[k + 1] += starts[k]
    order = np.empty(counts.size, np.int64)
    for c in range(counts.size):
        order[starts[most - counts[c]]] = c
        starts[most - counts[c]] += 1
    return order


@helper()
def _covers(view, search, sought, places, sign):
    """Pairs under MIN (sign 1) or MAX (sign -1) that give `sought` at some places.

    Both numbers of a pair are on the right side of what is sought everywhere, and one of them
    equals it at each place.
    """
    packed = view.packed
    most, slots = _room(view)
    words = (places.size + 63) >> 6
    chosen, counts = np.empty(most, np.int64), np.empty(most, np.int64)
    masks = np.empty((most, words), np.uint64)
    seen = np.full(slots, np.int32(-1))
    n = 0
    for i in range(packed.shape[0]):
        ok = True
        for k in places:
            if sign * (np.int64(packed[i, k]) - np.int64(sought[k])) < 0:
                ok = False
                break
        if not ok:
            continue
        for w in range(words):
            masks[n, w] = np.uint64(0)
        count, h = np.int64(0), spread(view.ends[i])
        for at in range(places.size):
            equal = packed[i, places[at]] == sought[places[at]]
            masks[n, at >> 6] |= np.uint64(equal) << np.uint64(at & 63)
            h += np.uint64(equal) * view.multipliers[at]
            count += equal
        place = np.int64(spread(h) >> np.uint64(30)) & (seen.size - 1)
        while seen[place] >= 0:
            alike = view.ends[chosen[seen[place]]] == view.ends[i]
            for w in range(words):
                alike &= masks[seen[place], w] == masks[n, w]
            if alike:
                break
            place = (place + 1) & (seen.size - 1)
        if seen[place] < 0:
            seen[place] = n
            chosen[n], counts[n] = i, count
            n += 1
            if n == most:
                break
    order = _by_count(counts[:n], places.size)
    left = MOST_PAIRS
    for c in range(n):
        if 2 * counts[order[c]] < places.size or left < 0:
            break
        for d in range(c, n):
            left -= 1
            if counts[order[c]] + counts[order[d]] < places.size or left < 0:
                break
            whole = True
            for w in range(words):
                ends = places.size - (w << 6)
                full = ~np.uint64(0) if ends >= 64 else (np.uint64(1) << np.uint64(ends)) - np.uint64(1)
                if (masks[order[c], w] | masks[order[d], w]) != full:
                    whole = False
                    break
            if whole:
                _offer(view, search, LEAST if sign > 0 else MOST, chosen[order[c]], chosen[order[d]])


@helper()
def _pairs(view, search, sought, places, scratch):
    """All pairs that give `sought` at some places."""
    n = view.packed.shape[0]
    whole = places.size == view.packed.shape[1]
    hashes, heads, nexts, bits = scratch
    if whole:
        h = hash_of(sought, view.multipliers)
        _linear(view, search, h, view.hashes, view.heads, view.nexts, view.bits)
    else:
        h = np.uint64(0)
        for k in places:
            h += np.uint64(np.int64(sought[k])) * view.multipliers[k]
        for i in range(n):
            part = np.uint64(0)
            for k in places:
                part += np.uint64(np.int64(view.packed[i, k])) * view.multipliers[k]
            hashes[i] = part
        fill(hashes, heads, nexts, bits)
        _linear(view, search, h, hashes, heads, nexts, bits)
    _quotients(view, search, sought, places)
    _covers(view, search, sought, places, np.int64(1))
    _covers(view, search, sought, places, np.int64(-1))
    search.state[1] += n


@helper()
def _scratch(view):
    n = view.packed.shape[0]
    return (
        np.empty(n, np.uint64),
        np.empty(view.heads.size, np.int32),
        np.empty(n, np.int32),
        np.empty(view.bits.size, np.uint64),
    )


@kernel()
def join(view: View, search: Search, first: int, last: int) -> None:
    """Rows, and pairs of rows, that give the goals `first` to `last` - 1."""
    places = np.arange(view.packed.shape[1])
    scratch = _scratch(view)
    for goal in range(first, last):
        search.outer[0], search.outer[3] = ALONE, goal
        h = hash_of(search.goals[goal], view.multipliers)
        i = first_of(view.heads, view.bits, h)
        while i >= 0:
            if view.hashes[i] == h:
                _offer(view, search, ALONE, i, i)
            i = np.int64(view.nexts[i])
        _pairs(view, search, search.goals[goal], places, scratch)


@inlined
def _left(kind, x, z):
    """Number that the inner list must have at a place where the row outside has x and the goal z.

    Returns
    -------
    The number, whether it is known, and whether there can be one.
    """
    if kind == 0:
        return z - x, True, True
    if kind == 1:
        return x - z, True, True
    if kind == 2:
        return z + x, True, True
    if kind == 3:
        return (z // x, True, z % x == 0) if x != 0 else (z, False, z == 0)
    if kind == 4:
        return z, x > z, x >= z
    return z, x < z, x <= z


@kernel()
def join_twice(view: View, search: Search, first: int, last: int) -> None:
    """Pairs of rows, beside a row outside, to which two ZIPWITH give a goal.

    The outer one takes the row outside and the result of the inner one. What that must be is known
    where the outer lambda determines it; a place is left open where a factor is 0, or where the row
    is itself the minimum or maximum. A row that leaves more than half of the places open is left
    out.

    Parameters
    ----------
    first, last : the first case and the one after the last, goal by goal: row a outside for goal g
        is case g A + a of A rows.
    """
    size, outside = view.packed.shape[1], search.outside.shape[0]
    low, high = search.bounds[0], search.bounds[1]
    scratch = _scratch(view)
    sought, room = np.empty(size, np.int16), np.empty(size, np.int64)
    for case in range(first, last):
        goal, a = case // outside, case % outside
        row, y = search.outside[a], search.goals[goal]
        for kind in range(6):  # (+), (-) with the row first, (-) with it second, (*), MIN, MAX
            n = 0
            ok = True
            for k in range(size):
                v, known, ok = _left(kind, np.int64(row[k]), np.int64(y[k]))
                if known and (v < low or v > high):
                    ok = False
                if not ok:
                    break
                sought[k] = np.int16(v if known else 0)
                if known:
                    room[n] = k
                    n += 1
            if ok and 2 * n >= size and n > 0:
                search.outer[0] = kind if kind < 2 else kind - 1
                search.outer[1], search.outer[2], search.outer[3] = a, kind == 2, goal
                _pairs(view, search, sought, room[:n], scratch)
