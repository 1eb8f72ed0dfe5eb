"""Compiled growth of extremely randomised trees of several outputs, and the leaves that rows come to."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel

CONSTANT = 4
"""Features drawn for each candidate, at most, where some are constant at a node."""


@kernel()
def grow(
    rng: np.random.Generator,
    inputs: Floats,
    targets: Floats,
    rows: Ints,
    tries: int,
    least: int,
    feature: Ints,
    threshold: Floats,
    left: Ints,
    values: Floats,
) -> int:
    """Grow a tree, and return its number of nodes; node 0 is the root.

    A node is split by the best of some random features, each at a uniform threshold (Geurts, Ernst and
    Wehenkel 2006): the one that leaves the least sum of squared differences from the means of its sides.

    Parameters
    ----------
    rng : draws features and thresholds.
    inputs, targets : shapes (m, p) and (m, k).
    rows : rows of the sample, with repetitions, shape (n,); sorted by leaves on return.
    tries : splits that are compared at a node.
    least : fewest rows of a leaf.
    feature : feature of each node, -1 for a leaf; written, shape (2 n,).
    threshold : rows up to it go left; written, shape (2 n,).
    left : left child, the right one is the next; written, shape (2 n,).
    values : means of the targets; written, shape (2 n, k).
    """
    p, k = inputs.shape[1], targets.shape[1]
    first, last = np.zeros(2 * rows.size, np.int64), np.zeros(2 * rows.size, np.int64)
    total, part, column = np.empty(k), np.empty(k), np.empty(rows.size)
    nodes, last[0] = 1, rows.size
    node = 0
    while node < nodes:
        begin, end = first[node], last[node]
        count, squares, explained = end - begin, 0.0, 0.0
        for c in range(k):
            total[c] = 0.0
        for at in range(begin, end):
            y = targets[rows[at]]
            for c in range(k):
                total[c] += y[c]
                squares += y[c] * y[c]
        for c in range(k):
            values[node, c] = total[c] / count
            explained += total[c] * total[c] / count
        feature[node], best = -1, explained + 1e-12 * (1.0 + squares)
        found = 0
        for _ in range(CONSTANT * tries):
            if count < 2 * least or squares <= best or found == tries:
                break
            f = min(p - 1, int(rng.random() * p))
            low = high = inputs[rows[begin], f]
            for at in range(count):
                x = inputs[rows[begin + at], f]
                column[at] = x
                low, high = min(low, x), max(high, x)
            cut = low + rng.random() * (high - low)
            if not low <= cut < high:
                continue
            found += 1
            before = 0
            for c in range(k):
                part[c] = 0.0
            for at in range(count):
                if column[at] <= cut:
                    before += 1
                    y = targets[rows[begin + at]]
                    for c in range(k):
                        part[c] += y[c]
            if before < least or count - before < least:
                continue
            score = 0.0
            for c in range(k):
                rest = total[c] - part[c]
                score += part[c] * part[c] / before + rest * rest / (count - before)
            if score > best:
                best, feature[node], threshold[node] = score, f, cut
        if feature[node] >= 0:
            middle, at = begin, begin
            while at < end:
                row = rows[at]
                if inputs[row, feature[node]] <= threshold[node]:
                    rows[at], rows[middle] = rows[middle], row
                    middle += 1
                at += 1
            left[node] = nodes
            first[nodes], last[nodes], first[nodes + 1], last[nodes + 1] = begin, middle, middle, end
            nodes += 2
        node += 1
    return nodes


@kernel()
def leaf_means(
    inputs: Floats, roots: Ints, feature: Ints, threshold: Floats, left: Ints, values: Floats, used: Ints, found: Floats
) -> None:
    """Mean over trees of the values of the leaves that rows come to.

    Parameters
    ----------
    inputs : shape (n, p).
    roots : number of the root of each tree, and the number of nodes, shape (trees + 1,).
    feature, threshold, left, values : the trees one after the other, as `grow` writes each.
    used : 0 where a tree does not count for a row, shape (trees, n); shape (0, 0) if all do.
    found : written, shape (n, k); zeros for a row for which no tree counts.
    """
    n, k = found.shape
    for row in range(n):
        trees = 0
        for c in range(k):
            found[row, c] = 0.0
        for tree in range(roots.size - 1):
            if used.size and not used[tree, row]:
                continue
            trees += 1
            node = roots[tree]
            while feature[node] >= 0:
                right = inputs[row, feature[node]] > threshold[node]
                node = roots[tree] + left[node] + right
            for c in range(k):
                found[row, c] += values[node, c]
        for c in range(k):
            found[row, c] /= max(trees, 1)
