"""Arrays that count as one, without a copy: those of the shards of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Chained:
    """Arrays one after the other along their first axis; only what is asked for is copied.

    Indices are those of NumPy: rows first (a number, a slice, numbers or booleans), then what each
    row is indexed by. `numpy.asarray` copies everything.

    Parameters
    ----------
    arrays : at least one, of one type; all axes but the first are alike.
    """

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = list(arrays)
        self._views = [np.asarray(array) for array in arrays]  # quicker to index than maps of files
        self.starts = np.cumsum([0, *map(len, arrays)])
        self.dtype = arrays[0].dtype
        self.shape: tuple[int, ...] = (int(self.starts[-1]), *arrays[0].shape[1:])
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.concatenate(self.arrays).astype(dtype or self.dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        rows, *rest = key if isinstance(key, tuple) else (key,)
        if isinstance(rows, slice) and rows.step in (None, 1):
            first, last, _ = rows.indices(len(self))
            spans = zip(self._views, self.starts, strict=False)
            return np.concatenate([a[(slice(max(first - s, 0), max(last - s, 0)), *rest)] for a, s in spans])
        found = self._places(rows)
        places = np.atleast_1d(found)
        shards = np.searchsorted(self.starts, places, side="right") - 1
        order = np.argsort(shards, kind="stable")
        ends = np.searchsorted(shards, np.arange(len(self.arrays) + 1), sorter=order)
        out = np.empty((len(places), *self._views[0][(places[:0], *rest)].shape[1:]), dtype=self.dtype)
        for view, start, first, last in zip(self._views, self.starts, ends, ends[1:], strict=False):
            if first < last:
                here = order[first:last]
                out[here] = view[(places[here] - start, *rest)]
        return out if np.ndim(found) else out[0]

    def _places(self, rows: Any) -> npt.NDArray[np.int64]:
        """Rows as numbers from 0.

        Raises
        ------
        IndexError : there is no such row.
        """
        if isinstance(rows, slice):
            return np.arange(*rows.indices(len(self)))
        found = np.asarray(rows)
        if found.dtype == np.bool_:
            if found.shape != (len(self),):
                raise IndexError(f"{found.shape} booleans for {len(self)} rows")
            return np.flatnonzero(found)
        found = np.where(found < 0, found + len(self), found).astype(np.int64)
        if found.size and not 0 <= found.min() <= found.max() < len(self):
            raise IndexError(f"a row is out of bounds for {len(self)} rows")
        return found
