"""Observed structures, and rankings that are known in part."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.structured.names import Unranked


@dataclass(frozen=True, eq=False)
class Known:
    """Rankings that are known in part.

    Attributes
    ----------
    levels : level of each item, shape (n, d): items of a lower level come first, in what order those
        of one level come is not known, and of an item of level -1 nothing is known.
    """

    levels: Ints

    def __getitem__(self, rows: slice | Ints | Bools) -> Known:
        return Known(self.levels[rows])

    @cached_property
    def before(self) -> Ints:
        """Items known to come before each, as bits of a number, shape (n, d)."""
        found = np.zeros(self.levels.shape, np.int64)
        for item in range(self.levels.shape[1]):
            level = self.levels[:, [item]]
            found |= ((level >= 0) & (level < self.levels)).astype(np.int64) << item
        return found

    @cached_property
    def partly(self) -> Bools:
        """Whether more than one order agrees, shape (n,)."""
        d = self.levels.shape[1]
        return np.asarray((np.sort(self.levels, axis=1) != np.arange(d)).any(axis=1))

    @cached_property
    def order(self) -> Ints:
        """Items by their levels, those of which nothing is known last, shape (n, d)."""
        return np.argsort(np.where(self.levels < 0, self.levels.shape[1], self.levels), axis=1, kind="stable")

    @cached_property
    def ranked(self) -> Ints:
        """Number of items of which something is known, shape (n,)."""
        return np.asarray((self.levels >= 0).sum(axis=1))

    @cached_property
    def drawn(self) -> Ints:
        """Number of items before those of the last level, shape (n,)."""
        return np.asarray(((self.levels >= 0) & (self.levels < self.levels.max(axis=1, keepdims=True))).sum(axis=1))

    @cached_property
    def tied(self) -> Bools:
        """Whether a level but the last has several items, shape (n,)."""
        levels = np.take_along_axis(self.levels, self.order, axis=1)
        early = np.arange(levels.shape[1] - 1) < self.drawn[:, None] - 1
        return np.asarray((early & (np.diff(levels, axis=1) == 0)).any(axis=1))

    def agreement(self, positions: Ints) -> tuple[Ints, Ints]:
        """Pairs of items that rankings order as it is known, less those that they order otherwise, and all
        pairs whose order is known; shapes (n,).

        Parameters
        ----------
        positions : a ranking for each row, shape (n, d).
        """
        i, j = np.triu_indices(self.levels.shape[1], 1)
        ranked = self.levels >= 0
        signs = np.sign(self.levels[:, i] - self.levels[:, j]) * (ranked[:, i] & ranked[:, j])
        return (signs * np.sign(positions[:, i] - positions[:, j])).sum(axis=1), np.abs(signs).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Observed:
    """Observations of structures in the rows of a table.

    Attributes
    ----------
    structures : rows of the space, shape (n, width); of rankings known in part, one that agrees.
    rows : row of the table of each observation, in ascending order, shape (n,).
    known : what is known of rankings; None if all are known whole.
    """

    structures: Ints
    rows: Ints
    known: Known | None = None

    @classmethod
    def ranked(cls, levels: Ints, unranked: Unranked, rows: Ints) -> Observed:
        """Rankings from levels of items, shape (n, d): items of a lower level come first, those of one level
        are tied. Rows that say nothing are left out.

        Parameters
        ----------
        unranked : where items of level -1 may be: `anywhere`, or `last`, as in a list of the best.
        rows : row of the table of each, shape (n,).
        """
        if unranked == "last":
            levels = np.where(levels < 0, levels.max(axis=1, keepdims=True) + 1, levels)
        order = np.argsort(levels, axis=1, kind="stable")
        steps = np.diff(np.take_along_axis(levels, order, axis=1), axis=1) > 0
        first = np.where(levels.min(axis=1) < 0, -1, 0)
        dense = np.empty_like(levels)
        np.put_along_axis(dense, order, np.column_stack([first, first[:, None] + np.cumsum(steps, axis=1)]), axis=1)
        told = dense.max(axis=1) > 0
        known = Known(dense[told])
        structures = np.argsort(known.order, axis=1)
        return cls(structures, rows[told], known if known.partly.any() else None)

    def expected_positions(self) -> Floats:
        """Expected position of each item in a uniform ranking that agrees, shape (n, d)."""
        if self.known is None:
            return self.structures.astype(float)
        levels, d = self.known.levels, self.structures.shape[1]
        ranked = levels >= 0
        before = ((levels[:, None, :] < levels[:, :, None]) & ranked[:, None, :]).sum(axis=2)
        beside = ((levels[:, None, :] == levels[:, :, None]) & ranked[:, None, :]).sum(axis=2) - 1
        places = (before + beside / 2 + 1) * (d + 1) / (self.known.ranked[:, None] + 1) - 1
        return np.asarray(np.where(ranked, places, (d - 1) / 2))
