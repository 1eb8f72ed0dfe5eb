"""Compiled step of the random number generator of the GNU C library."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thesis_cli.base.compiled import kernel


@kernel()
def draw(state: npt.NDArray[np.uint32], oldest: int, out: npt.NDArray[np.int32]) -> int:
    """Fill `out` with the next numbers of `rand()`.

    They are r_i = r_{i-3} + r_{i-31} mod 2^32 without the last bit.

    Parameters
    ----------
    state : the last 31 words r, shape (31,); updated.
    oldest : position of the oldest of them in `state`.
    out : numbers from 0 to 2^31 - 1, shape (count,).

    Returns
    -------
    The new position of the oldest word.
    """
    near = oldest - 3 if oldest >= 3 else oldest + 28
    for k in range(out.size):
        state[oldest] += state[near]
        out[k] = state[oldest] >> 1
        oldest = oldest + 1 if oldest < 30 else 0
        near = near + 1 if near < 30 else 0
    return oldest
