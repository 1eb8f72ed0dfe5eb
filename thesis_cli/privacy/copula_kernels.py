"""Compiled counts of pairs of bins, and the search for rows with given tables of pairs.

Plain references stand in the tests.
"""

from __future__ import annotations

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel


@kernel()
def count_pairs(bins: Ints, pairs: Ints, total: Ints) -> None:
    """Add the rows in each pair of bins to `total`.

    Parameters
    ----------
    bins : bins of the rows, shape (n, columns).
    pairs : numbers of two columns, shape (P, 2).
    total : counts, shape (P, B, B); updated.
    """
    for n in range(bins.shape[0]):
        row = bins[n]
        for p in range(pairs.shape[0]):
            total[p, row[pairs[p, 0]], row[pairs[p, 1]]] += 1


@kernel(fastmath={"reassoc", "contract", "nsz"})
def sweep(bins: Ints, sizes: Ints, excess: Floats, ones: Floats, weight: float, order: Ints) -> int:
    """Set each bin of each row to the one that lowers the squared distance to the tables most.

    Parameters
    ----------
    bins : bins of M rows, shape (M, d); updated.
    sizes : number of bins of each column, shape (d,).
    excess : shares of the rows less the target, [i, j, b, a] for bin a of i and b of j, both ways
        round, shape (d, d, B, B); updated.
    ones : the same for single columns, shape (d, B); updated.
    weight : weight of a single column, relative to that of a pair.
    order : order of the columns, shape (d,).

    Returns
    -------
    changed : number of bins that changed.
    """
    rows, columns = bins.shape
    width = excess.shape[3]
    unit = 1.0 / rows
    least = unit * (columns - 1 + weight)
    cost = ones[0].copy()
    changed = 0
    for n in range(rows):
        row = bins[n]
        for at in range(columns):
            i = order[at]
            if sizes[i] > 1:
                single = ones[i]
                for a in range(width):
                    cost[a] = weight * single[a]
                for j in range(columns):
                    table = excess[i, j, row[j]]
                    for a in range(width):
                        cost[a] += table[a]
                old = row[i]
                new = old
                best = cost[old] - least
                for a in range(sizes[i]):
                    if cost[a] < best:
                        best = cost[a]
                        new = a
                if new != old:
                    changed += 1
                    row[i] = new
                    single[old] -= unit
                    single[new] += unit
                    for j in range(columns):
                        if j != i:
                            b = row[j]
                            excess[i, j, b, old] -= unit
                            excess[i, j, b, new] += unit
                            excess[j, i, old, b] -= unit
                            excess[j, i, new, b] += unit
    return changed
