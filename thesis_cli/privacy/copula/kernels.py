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


@kernel()
def add_triples(cost: Floats, i: int, size: int, row: Ints, triples: Ints, groups: Ints, beyond: Floats) -> int:
    """Add the differences of the triples that column i is in to the costs of its bins, shape (B,), at the other
    bins of a row.

    Returns
    -------
    count : number of these triples.
    """
    count = 0
    for t in range(triples.shape[0]):
        u, v, w = triples[t, 0], triples[t, 1], triples[t, 2]
        x, y, z = groups[u, row[u]], groups[v, row[v]], groups[w, row[w]]
        if i == u:
            count += 1
            for a in range(size):
                cost[a] += beyond[t, groups[i, a], y, z]
        elif i == v:
            count += 1
            for a in range(size):
                cost[a] += beyond[t, x, groups[i, a], z]
        elif i == w:
            count += 1
            for a in range(size):
                cost[a] += beyond[t, x, y, groups[i, a]]
    return count


@kernel()
def count_triples(i: int, row: Ints, triples: Ints, groups: Ints, beyond: Floats, share: float) -> None:
    """Add a share to the groups of a row in each triple that column i is in."""
    for t in range(triples.shape[0]):
        u, v, w = triples[t, 0], triples[t, 1], triples[t, 2]
        if i in (u, v, w):
            beyond[t, groups[u, row[u]], groups[v, row[v]], groups[w, row[w]]] += share


@kernel(fastmath={"reassoc", "contract", "nsz"})
def sweep(
    bins: Ints,
    sizes: Ints,
    alike: Floats,
    excess: Floats,
    order: Ints,
    triples: Ints,
    groups: Ints,
    beyond: Floats,
) -> int:
    """Set each bin of each row to the one that lowers the squared distance to the tables most.

    The distance of two tables of columns i and j is that of the kernel alike[i] times alike[j].

    Parameters
    ----------
    bins : bins of M rows, shape (M, d); updated.
    sizes : number of bins of each column, shape (d,).
    alike : kernel of the bins of each column, with 1 on the diagonal, shape (d, B, B).
    excess : shares of the rows less the target, summed with the kernel: [i, j, b, a] for bin a of i
        and b of j, both ways round, shape (d, d, B, B); updated.
    order : columns whose bins may change, in the order in which they do.
    triples : numbers of three columns, shape (T, 3).
    groups : group of each bin in a triple, shape (d, B).
    beyond : shares of the rows less the target in the groups of each triple, shape (T, G, G, G);
        updated. Its squares count like those of pairs.

    Returns
    -------
    changed : number of bins that changed.
    """
    rows, columns = bins.shape
    width = excess.shape[3]
    unit = 1.0 / rows
    least = unit * (columns - 1)
    cost, step = alike[0, 0].copy(), alike[0, 0].copy()
    changed = 0
    for n in range(rows):
        row = bins[n]
        for at in range(order.shape[0]):
            i = order[at]
            if sizes[i] > 1:
                for a in range(width):
                    cost[a] = 0.0
                for j in range(columns):
                    table = excess[i, j, row[j]]
                    for a in range(width):
                        cost[a] += table[a]
                old = row[i]
                three = add_triples(cost, i, sizes[i], row, triples, groups, beyond)
                new = old
                best = cost[old] - 1e-9 * unit
                for a in range(sizes[i]):
                    found = cost[a] + least * (1.0 - alike[i, old, a])
                    if three > 0 and groups[i, a] != groups[i, old]:
                        found += three * unit
                    if found < best:
                        best = found
                        new = a
                if new != old:
                    changed += 1
                    if three > 0 and groups[i, new] != groups[i, old]:
                        count_triples(i, row, triples, groups, beyond, -unit)
                        row[i] = new
                        count_triples(i, row, triples, groups, beyond, unit)
                    row[i] = new
                    for a in range(width):
                        step[a] = unit * (alike[i, new, a] - alike[i, old, a])
                    for j in range(columns):
                        if j != i:
                            near = alike[j, row[j]]
                            for b in range(width):
                                table = excess[i, j, b]
                                for a in range(width):
                                    table[a] += step[a] * near[b]
                            for a in range(width):
                                table = excess[j, i, a]
                                for b in range(width):
                                    table[b] += step[a] * near[b]
    return changed
