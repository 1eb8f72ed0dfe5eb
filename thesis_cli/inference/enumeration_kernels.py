"""Compiled sweep over the configurations of a factor graph; `enumeration.py` has the plain reference."""

from __future__ import annotations

import numpy as np
from numba import njit

from thesis_cli.base.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def fill(
    start: int,
    out: Floats,
    cardinalities: Ints,
    constant: float,
    first_factor: Ints,
    first_axis: Ints,
    variables: Ints,
    strides: Ints,
    first_entry: Ints,
    tables: Floats,
) -> None:
    """Write phi of configurations start, start + 1, ... (last variable fastest) into `out`.

    The factors are sorted by the last variable of their scope: those of variable v are
    first_factor[v] to first_factor[v + 1]. prefix[v] sums the factors whose scope ends before v, so
    that counting up recomputes only what lies behind the variables that moved: fewer than two
    variables a configuration on average, if each has two states.
    """
    n = cardinalities.size
    x = np.zeros(n, np.int64)
    rest = start
    for v in range(n - 1, -1, -1):
        x[v] = rest % cardinalities[v]
        rest //= cardinalities[v]
    prefix = np.empty(n + 1)
    prefix[0] = constant
    moved = 0
    for k in range(out.size):
        for v in range(moved, n):
            total = prefix[v]
            for f in range(first_factor[v], first_factor[v + 1]):
                entry = first_entry[f]
                for a in range(first_axis[f], first_axis[f + 1]):
                    entry += strides[a] * x[variables[a]]
                total += tables[entry]
            prefix[v + 1] = total
        out[k] = prefix[n]
        moved = n - 1
        while moved >= 0 and x[moved] == cardinalities[moved] - 1:
            x[moved] = 0
            moved -= 1
        if moved < 0:
            break
        x[moved] += 1
