"""Observed structures, and rankings that are known in part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.names import Unranked
from thesis_cli.structured.orderings import Known


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
