"""Compiled passes of random parity constraints over configurations, and over the solutions of some."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel
from thesis_cli.inference.enumeration_kernels import FlatFactors


@kernel()
def hashed_maxima(values: Floats, start: int, steps: Ints, hashes: Ints, best: Floats) -> None:
    """Let the configurations of one block compete at the levels that their hashes reach.

    Configuration x has the hash A x + b (mod 2) of its index; bit i of it is 0 if constraint i
    holds. From x to x + 1 the lowest bits flip, up to the lowest 0 of x, so that one exclusive or
    with the sum of their columns gives the next hash.

    Parameters
    ----------
    values : log-potentials of consecutive configurations, shape (B,).
    start : index of the first of them.
    steps : exclusive or of the columns 0, ..., k of A, each column packed into an integer, shape
        (T, n) for T hashes.
    hashes : hash of configuration `start`, shape (T,); updated to that of the next block.
    best : largest value so far among the configurations whose first i constraints hold and whose
        constraint i does not, shape (T, n + 1); updated.
    """
    levels = steps.shape[1]
    for t in range(hashes.size):
        code = hashes[t]
        for k in range(values.size):
            value = values[k]
            if value > best[t, 0]:
                level = 0
                rest = code
                while level < levels and rest & 1 == 0:
                    rest >>= 1
                    level += 1
                if value > best[t, level]:
                    best[t, level] = value
            elif code & 1 == 0:
                level = 1
                rest = code >> 1
                while level < levels and rest & 1 == 0:
                    rest >>= 1
                    level += 1
                if value > best[t, level]:
                    best[t, level] = value
            moved = start + k + 1
            bit = 0
            while moved & 1 == 0:
                moved >>= 1
                bit += 1
            if bit < levels:
                code ^= steps[t, bit]
        hashes[t] = code


@kernel()
def listed_sweep(first: int, basis: Ints, shifts: Ints, rows: Ints, layout: FlatFactors, best: Floats) -> None:
    """Let the solutions of some constraints compete at the levels of further ones that they reach.

    Parameters
    ----------
    first : a solution, its bits packed into an integer.
    basis : vectors whose sums take a solution to all others, packed, shape (d,); they are added in
        the order of a Gray code, one at a time.
    shifts : the lowest bit of each variable, shape (n,).
    rows : further constraints, the row of A packed and the right side in bit 62, shape (levels,).
    layout : factors of the model.
    best : largest log-potential among the solutions that satisfy the first i further constraints
        and not the next, shape (levels + 1,); updated.
    """
    cardinalities, constant, first_factor, first_axis, variables, strides, first_entry, tables = layout
    n = cardinalities.size
    x = np.empty(n, np.int64)
    code = first
    masks = np.empty(n, np.int64)
    for v in range(n):
        mask = 1
        while mask < cardinalities[v]:
            mask <<= 1
        masks[v] = mask - 1
    for step in range(1, (1 << basis.size) + 1):
        possible = True
        for v in range(n):
            x[v] = (code >> shifts[v]) & masks[v]
            if x[v] >= cardinalities[v]:
                possible = False
        if possible:
            total = constant
            for f in range(first_factor[n]):
                entry = first_entry[f]
                for a in range(first_axis[f], first_axis[f + 1]):
                    entry += strides[a] * x[variables[a]]
                total += tables[entry]
            level = 0
            while level < rows.size:
                odd = (rows[level] & code) ^ (rows[level] & (1 << 62))
                odd ^= odd >> 32
                odd ^= odd >> 16
                odd ^= odd >> 8
                odd ^= odd >> 4
                odd ^= odd >> 2
                odd ^= odd >> 1
                if odd & 1:
                    break
                level += 1
            if total > best[level]:
                best[level] = total
        bit = 0
        while (step >> bit) & 1 == 0:
            bit += 1
        if bit < basis.size:
            code ^= basis[bit]
