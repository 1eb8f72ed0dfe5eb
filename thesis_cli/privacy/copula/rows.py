"""Rows whose tables of pairs of columns are near given ones: post-processing of public numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.copula.bins import Tree
from thesis_cli.privacy.copula.cells import Cells
from thesis_cli.privacy.kernels import Rows

SWEEPS = 30
STILL = 0.002
"""The search ends when a sweep changes a smaller share of the bins."""


def starting_bins(
    cells: Sequence[Cells], trees: Sequence[Tree], masses: Sequence[Floats], scores: Floats, rng: np.random.Generator
) -> Ints:
    """Bins of rows by the ranks of their scores, shape (M, columns); each has its mass, up to
    rounding.

    Values are missing in random rows.
    """
    bins = np.zeros(scores.shape, np.int64)
    count = len(scores)
    for i, (column, tree, own) in enumerate(zip(cells, trees, masses, strict=True)):
        found = np.sort(systematic(own, count, rng))
        ranked = scores[:, i]
        if column.gap and tree.count > 1 and tree.bins[-1] != tree.bins[-2]:
            ranked = ranked.copy()
            ranked[rng.permutation(count)[: np.count_nonzero(found == tree.bins[-1])]] = np.inf
        bins[np.argsort(ranked, kind="stable"), i] = found
    return bins


def search(trees: Sequence[Tree], bins: Ints, pairs: Ints, tables: Floats, rng: np.random.Generator) -> Ints:
    """Bins of rows, shape (M, columns), with tables of pairs near the given ones.

    Bins of the given rows are changed only where that brings their tables nearer to the target, in
    a kernel of the scales of the trees.
    """
    from thesis_cli.privacy.copula.kernels import sweep

    sizes = np.array([tree.count for tree in trees])
    (count, d), width = bins.shape, int(sizes.max())
    bins = bins.copy()
    alike = np.zeros((d, width, width))
    for own, tree in zip(alike, trees, strict=True):
        own[: tree.count, : tree.count] = tree.alike()
    excess = np.zeros((d, d, width, width))
    for (i, j), table in zip(pairs, tables, strict=True):
        now = np.bincount(bins[:, i] * width + bins[:, j], minlength=width**2).reshape(width, width) / count
        excess[i, j] = alike[j] @ (now - table).T @ alike[i]
        excess[j, i] = excess[i, j].T
    for _ in range(SWEEPS):
        changed = sweep(bins, sizes, alike, excess, rng.permutation(d))
        if changed <= STILL * bins.size:
            break
    return bins


def systematic(shares: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Numbers of `count` cells in random order; each occurs as often as its share of count, up to
    one.
    """
    at = (np.arange(count) + rng.random()) / count * shares.sum()
    found = np.minimum(np.searchsorted(np.cumsum(shares), at, "right"), np.flatnonzero(shares)[-1])
    return np.asarray(rng.permutation(found))


def placed(
    cells: Sequence[Cells],
    trees: Sequence[Tree],
    shares: Sequence[Floats],
    bins: Ints,
    scores: Floats,
    rng: np.random.Generator,
) -> Rows:
    """Encoded rows in given bins; the cells within a bin have their shares, up to rounding, and the
    order of the rows' scores.
    """
    reals, codes = (sum(getattr(c, kind) >= 0 for c in cells) for kind in ("real", "code"))
    rows = Rows(np.zeros((len(bins), reals)), np.zeros((len(bins), codes), np.int64))
    for i, (column, tree, own) in enumerate(zip(cells, trees, shares, strict=True)):
        found = np.zeros(len(bins), np.int64)
        for b in range(tree.count):
            inside = np.flatnonzero(bins[:, i] == b)
            if len(inside):
                within = np.where(tree.bins == b, own, 0.0)
                within = within if within.sum() > 0 else 1.0 * (tree.bins == b)
                order = np.argsort(scores[inside, i], kind="stable")
                found[inside[order]] = np.sort(systematic(within, len(inside), rng))
        column.write(found, rows)
    return rows
