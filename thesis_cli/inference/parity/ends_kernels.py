"""Compiled sweep over the solutions of parity constraints; tests compare it with plain NumPy."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel
from thesis_cli.inference.enumeration_kernels import Layout


@kernel()
def sweep(first: int, basis: Ints, shifts: Ints, rows: Ints, layout: Layout, best: Floats) -> None:
    """Let the solutions of some constraints compete at the levels of further ones that they reach.

    Parameters
    ----------
    first : a solution, its bits packed into an integer.
    basis : vectors whose sums take a solution to all others, packed, shape (d,); they are added in
        the order of a Gray code, one at a time.
    shifts : the lowest bit of each variable, shape (n,).
    rows : further constraints, the row of A packed and the right side in bit 62, shape (levels,).
    layout : of the model.
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
