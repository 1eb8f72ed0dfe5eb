"""Compiled growth of extremely randomised trees of several outputs, and the leaves that rows come to."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import helper, kernel

CONSTANT = 4
"""Features drawn for each candidate, at most, where some are constant at a node."""


@kernel()
def grow(
    rng: np.random.Generator, inputs: Floats, targets: Floats, rows: Ints, tries: int, least: int
) -> tuple[Ints, Floats, Ints, Floats]:
    """Grow a tree; node 0 is the root.

    A node is split by the best of some random features, each at a uniform threshold (Geurts, Ernst and
    Wehenkel 2006): the one that leaves the least sum of squared differences from the means of its sides.

    Parameters
    ----------
    rng : draws features and thresholds.
    inputs, targets : shapes (m, p) and (m, k).
    rows : rows of the sample, with repetitions, shape (n,); sorted by leaves on return.
    tries : splits that are compared at a node.
    least : fewest rows of a leaf.

    Returns
    -------
    feature : feature of each node, -1 for a leaf, shape (nodes,).
    threshold : rows up to it go left, shape (nodes,).
    left : left child, the right one is the next, shape (nodes,).
    values : means of the targets, shape (nodes, k).
    """
    most, k = 2 * rows.size, targets.shape[1]
    first, last, left = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    feature, threshold, values = np.full(most, -1), np.zeros(most), np.zeros((most, k))
    nodes, last[0] = 1, rows.size
    node = 0
    while node < nodes:
        here = rows[first[node] : last[node]]
        squares = 0.0
        for row in here:
            for c in range(k):
                values[node, c] += targets[row, c]
                squares += targets[row, c] ** 2
        feature[node], threshold[node] = _split(rng, inputs, targets, here, tries, least, values[node], squares)
        for c in range(k):
            values[node, c] /= here.size
        if feature[node] >= 0:
            middle = 0
            for at in range(here.size):
                row = here[at]
                if inputs[row, feature[node]] <= threshold[node]:
                    here[at], here[middle] = here[middle], row
                    middle += 1
            middle += first[node]
            left[node] = nodes
            first[nodes], last[nodes], first[nodes + 1], last[nodes + 1] = first[node], middle, middle, last[node]
            nodes += 2
        node += 1
    return feature[:nodes], threshold[:nodes], left[:nodes], values[:nodes]


@helper()
def _split(
    rng: np.random.Generator,
    inputs: Floats,
    targets: Floats,
    rows: Ints,
    tries: int,
    least: int,
    total: Floats,
    squares: float,
) -> tuple[int, float]:
    """The best of some splits of the rows of a node, by feature and threshold; -1 if none is of use.

    Parameters
    ----------
    total, squares : sums of the targets, shape (k,), and of all their squares.
    """
    count, p, k = rows.size, inputs.shape[1], targets.shape[1]
    part, column, chosen = np.empty(k), np.empty(count), np.empty(count, np.int64)
    feature, threshold, explained, found = -1, 0.0, 0.0, 0
    for c in range(k):
        explained += total[c] * total[c] / count
    best = explained + 1e-12 * (1.0 + squares)
    for _ in range(CONSTANT * tries):
        if count < 2 * least or squares <= best or found == tries:
            break
        f = min(p - 1, int(rng.random() * p))
        low = high = inputs[rows[0], f]
        for at in range(count):
            x = inputs[rows[at], f]
            column[at] = x
            low, high = min(low, x), max(high, x)
        cut = low + rng.random() * (high - low)
        if not low <= cut < high:
            continue
        found += 1
        before = 0
        for c in range(k):
            part[c] = 0.0
        for at in range(count):  # rows of the left side from the front, of the right one from the back
            chosen[before] = chosen[count - 1 - at + before] = rows[at]
            before += column[at] <= cut
        after = count - before
        if before < least or after < least:
            continue
        few = min(before, after)
        start = 0 if few == before else before
        for at in range(start, start + few):
            for c in range(k):
                part[c] += targets[chosen[at], c]
        score = 0.0
        for c in range(k):
            rest = total[c] - part[c]
            score += part[c] * part[c] / few + rest * rest / (count - few)
        if score > best:
            best, feature, threshold = score, f, cut
    return feature, threshold


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
