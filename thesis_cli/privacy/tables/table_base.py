"""Base of all kinds of private tables: passes over the rows, counts, and notice of changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.tables.column import UNREADABLE_VALUE, Values

CHUNK = 8192
"""Rows of a part of a table: as Python's objects, some MB of it are in memory at a time."""

REFUSALS = (ValueError, ArithmeticError, TypeError, LookupError, RuntimeError, AttributeError)
"""Errors that packages raise about a value that they cannot convert; the messages may quote it."""

Block = tuple[int, dict[str, Values]]  # number of rows, and the array of each column


class Table(ABC):
    """A table that can be read several times, and that notices changes between two passes.

    Attributes
    ----------
    source : name of the table in errors, without passwords.
    columns : storage type by name: `real`, `integer`, `boolean`, `date`, `datetime`, or `text` for
        anything else. It comes from the header of the file or of the query's result, not from
        values; all columns of a CSV file are `text`.
    """

    def __init__(self, source: str, columns: dict[str, str]) -> None:
        self.source, self.columns = source, columns
        self._rows: int | None = None
        self._digests: dict[tuple[str, ...], int] = {}
        self._watched: tuple[str, ...] = ()

    def chunks(self, size: int = CHUNK, names: Sequence[str] | None = None) -> Iterator[dict[str, Values]]:
        """Rows in order, at most `size` at a time: an array for each of the named columns (by
        default, all).

        Values are as stored: texts in a CSV file (so that 01 stays 01), numbers if the storage has
        numbers.

        Raises
        ------
        InputError : the table cannot be read, or a pass ends with other rows than an earlier pass.
            Their order may differ: a database guarantees none.
        """
        chosen = tuple(self.columns if names is None else names)
        digests = dict.fromkeys({chosen, self._watched} if set(self._watched) <= set(chosen) else {chosen}, 0)
        rows = 0
        for count, block in self._blocks(size, chosen):
            rows += count
            cells = {name: block[name].tolist() for name in chosen}
            for found in digests:
                digests[found] += _digest(zip(*(cells[name] for name in found), strict=True))
            if chosen:
                yield block
        if self._rows not in (None, rows) or any(self._digests.get(key, x) != x for key, x in digests.items()):
            raise self.changed()
        self._rows = rows
        self._digests |= digests

    def watch(self, names: Sequence[str]) -> None:
        """Note what is in the named columns in each pass that reads them and others, too, so that a later
        pass over the named ones alone ends if they changed.
        """
        self._watched = tuple(names)

    def changed(self) -> InputError:
        """The error that two passes see other tables."""
        return InputError("the table changed while it was read", "read one that does not change", source=self.source)

    def count(self) -> int:
        """Number of rows; the table is read unless a pass has counted them."""
        if self._rows is None:
            for _ in self.chunks(names=()):
                pass
        assert self._rows is not None
        return self._rows

    @abstractmethod
    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        """Blocks of one pass over the named columns."""


def unique_columns(columns: dict[str, str], names: Sequence[str], source: str) -> dict[str, str]:
    """The columns; `InputError` if there are none, or two have one name."""
    if not columns or len(columns) < len(names):
        problem = "two columns have one name" if columns else "the table has no columns"
        raise InputError(problem, "it must have columns of different names", source=source)
    return columns


def objects(values: list[Any]) -> Values:
    """Array of objects, shape (N,)."""
    found = np.empty(len(values), object)
    found[:] = values
    return found


def converted(whole: Callable[[], list[Any]], one: Callable[[int], Any], count: int) -> Values:
    """Values that a package converts, as objects; those that it refuses are unreadable.

    Parameters
    ----------
    whole : converts all values.
    one : converts the value of an index, if `whole` refuses some value.
    count : number of values.
    """
    try:
        return objects(whole())
    except REFUSALS:
        pass  # one by one below, so that an error can name the row
    found = []
    for index in range(count):
        try:
            found.append(one(index))
        except REFUSALS:
            found.append(UNREADABLE_VALUE)
    return objects(found)


def _digest(rows: Iterable[tuple[Any, ...]]) -> int:
    """Sum of the hashes of rows; of their texts, because each NaN has its own hash."""
    total = 0
    for row in rows:
        try:
            total += hash(repr(row))
        except REFUSALS:  # a whole number of more digits than Python writes, or an object without text
            total += hash(tuple(hex(x) if isinstance(x, int) else type(x).__name__ for x in row))
    return total
