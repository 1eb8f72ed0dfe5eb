"""Compiled pass of random parity constraints over configurations, and a plain reference."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel


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


def hashed_maxima_reference(values: Floats, start: int, columns: Ints, offsets: Ints, best: Floats) -> None:
    """`hashed_maxima` in plain NumPy, from the columns of A, shape (T, n), and b, shape (T,)."""
    levels = columns.shape[1]
    index = start + np.arange(len(values))
    for t, (column, offset) in enumerate(zip(columns, offsets, strict=True)):
        code = np.full(len(values), offset)
        for j in range(levels):
            code ^= np.where(index >> j & 1, column[j], 0)
        zeros = np.cumprod((code[:, None] >> np.arange(levels)) & 1 ^ 1, axis=1).sum(axis=1)
        np.maximum.at(best[t], zeros, values)
