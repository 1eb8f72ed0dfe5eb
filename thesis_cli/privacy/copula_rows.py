"""Rows whose tables of pairs of columns are near given ones: post-processing of public numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.copula_bins import Tree
from thesis_cli.privacy.copula_cells import Cells
from thesis_cli.privacy.kernels import Rows

SWEEPS = 30
STILL = 0.002
"""The search ends when a sweep changes a smaller share of the bins."""
SINGLE = 4.0
"""Weight of a single column's distribution, in pairs with every other column."""


def search(masses: Sequence[Floats], pairs: Ints, tables: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Bins of M = `count` rows, shape (M, columns), with masses of bins and tables of pairs near the
    given ones.

    Rows start with the right share of each bin and independent columns, and are changed only where
    that brings a table nearer to its target.
    """
    from thesis_cli.privacy.copula_kernels import sweep

    sizes = np.array([len(own) for own in masses])
    d, width = len(masses), int(sizes.max())
    bins = np.stack([systematic(own, count, rng) for own in masses], 1)
    excess = np.zeros((d, d, width, width))
    ones = np.zeros((d, width))
    for i, own in enumerate(masses):
        ones[i] = np.bincount(bins[:, i], minlength=width) / count
        ones[i, : len(own)] -= own
    for (i, j), table in zip(pairs, tables, strict=True):
        now = np.bincount(bins[:, i] * width + bins[:, j], minlength=width**2).reshape(width, width) / count
        excess[j, i] = now - table
        excess[i, j] = excess[j, i].T
    for _ in range(SWEEPS):
        changed = sweep(bins, sizes, excess, ones, SINGLE * d, rng.permutation(d))
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
    cells: tuple[Cells, ...], trees: tuple[Tree, ...], shares: list[Floats], bins: Ints, rng: np.random.Generator
) -> Rows:
    """Encoded rows in given bins; the cells within a bin have their shares, up to rounding."""
    reals, codes = (sum(getattr(c, kind) >= 0 for c in cells) for kind in ("real", "code"))
    rows = Rows(np.zeros((len(bins), reals)), np.zeros((len(bins), codes), np.int64))
    for column, tree, own, members in zip(cells, trees, shares, bins.T, strict=True):
        found = np.zeros(len(bins), np.int64)
        for b in range(tree.count):
            inside = np.flatnonzero(members == b)
            within = np.where(tree.bins == b, own, 0.0)
            if len(inside):
                found[inside] = systematic(within if within.sum() > 0 else 1.0 * (tree.bins == b), len(inside), rng)
        column.write(found, rows)
    return rows
