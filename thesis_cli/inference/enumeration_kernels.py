"""Compiled pass over the configurations of a factor graph; tests compare it with `FactorGraph.log_potential`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel


class FlatFactors(NamedTuple):
    """The factors of a graph as flat arrays, sorted by the last variable of their scope.

    Attributes
    ----------
    cardinalities : shape (n,).
    constant : sum of the factors without variables, nats.
    first_factor : first factor of each variable, shape (n + 1,): those whose scope ends with it.
    first_axis : first entry of each factor in `variables` and `strides`, shape (m + 1,).
    variables, strides : scope of each factor, and how far one state of a variable moves in its
        table.
    first_entry : first entry of each factor in `tables`, shape (m + 1,).
    tables : log-potentials of all factors.
    """

    cardinalities: Ints
    constant: float
    first_factor: Ints
    first_axis: Ints
    variables: Ints
    strides: Ints
    first_entry: Ints
    tables: Floats


@kernel()
def fill(start: int, out: Floats, layout: FlatFactors) -> None:
    """Write phi of configurations start, start + 1, ... (last variable fastest) into `out`.

    prefix[v] sums the factors whose scope ends before v, so that counting up recomputes only the
    variables from the one that moved on: fewer than two a configuration on average, if each has two
    states.
    """
    cardinalities, constant, first_factor, first_axis, variables, strides, first_entry, tables = layout
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
