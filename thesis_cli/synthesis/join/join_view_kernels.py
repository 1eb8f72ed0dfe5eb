"""The lists of a bank, packed for joins and found by hashes.

A view is the part of each list that is compared, K numbers side by side. The hash of a row is
linear, sum_k x_k m_k modulo 2^64 with odd random m, so that the hash of a sum or difference of two
rows is that of their hashes.
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
def pack(pool: Lanes, kinds: Bools, part: Part, rows: Ints, packed: Lanes, keys: Words, seen: Places) -> int:
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
