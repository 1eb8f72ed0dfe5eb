"""A table as plain columns: CSV text without pandas, and a DataFrame for those who ask for one."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 100_000
"""Cells that are made into text at a time."""


class Columns(Mapping[str, Any]):
    """Columns of equal length by name: arrays, or lists of plain values.

    The CSV text is the one that pandas writes of `frame()`: whole numbers beside reals, or beside
    None, are reals; None and nan are empty.

    Parameters
    ----------
    source : columns by name, or the rows, each a mapping; a row may lack columns.
    whole : names of columns of whole numbers that stay whole beside None.
    """

    def __init__(self, source: Mapping[str, Any] | Sequence[Mapping[str, Any]], whole: Sequence[str] = ()) -> None:
        self.source = source
        self.whole = tuple(whole)

    @cached_property
    def _values(self) -> dict[str, Any]:
        source = self.source
        if isinstance(source, Mapping):
            columns = dict(source)
        else:
            columns = {name: [row.get(name) for row in source] for row in source for name in row}
        return {
            name: list(values) if name in self.whole else values if hasattr(values, "tolist") else _alike(values)
            for name, values in columns.items()
        }

    def __getitem__(self, name: str) -> Any:
        """A column: an array, or a list in which nan stands for a number that is missing."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        """Number of columns."""
        return len(self._values)

    @property
    def count(self) -> int:
        """Number of rows."""
        return next((len(values) for values in self._values.values()), 0)

    def records(self) -> list[dict[str, Any]]:
        """The rows, with None for what is missing."""
        columns = [_listed(values) for values in self._values.values()]
        return [
            {name: None if _missing(value) else value for name, value in zip(self, row, strict=True)}
            for row in zip(*columns, strict=True)
        ]

    def replacing(self, texts: Mapping[str, str]) -> Columns:
        """The same columns with other text in the cells that hold one of some texts."""
        return Columns(
            {
                name: values
                if hasattr(values, "tolist")
                else [texts.get(value, value) if isinstance(value, str) else value for value in values]
                for name, values in self.items()
            },
            self.whole,
        )

    def frame(self) -> pd.DataFrame:
        """The table as a DataFrame."""
        import pandas as pd

        source: Any = self.source
        return pd.DataFrame(source).astype(dict.fromkeys(self.whole, "Int64"))

    def csv(self) -> str:
        """The table as CSV, with all digits of its numbers."""
        return "".join(self.csv_parts())

    def csv_parts(self) -> Iterator[str]:
        """`csv` in parts of bounded length."""
        rows = _Lines()
        writer = csv.writer(rows, lineterminator="\r\n")  # which quotes a cell that has either
        writer.writerow(self)
        columns = list(self._values.values())
        size = max(1, BLOCK // max(1, len(columns)))
        for start in range(0, self.count, size):
            block = [_texts(_listed(values[start : start + size])) for values in columns]
            writer.writerows(zip(*block, strict=True))
            yield rows.taken()
        yield rows.taken()


class _Lines(list[str]):
    """A file that keeps what is written, row by row."""

    write = list.append

    def taken(self) -> str:
        """Text of the rows that it kept, of which it keeps none."""
        found = "".join(row[:-2] + "\n" for row in self)
        self.clear()
        return found


def _alike(values: Sequence[Any]) -> list[Any]:
    """Values of a list, with all numbers reals if one is or if one is missing."""
    found = list(values)
    present = [value for value in found if not _missing(value)]
    if not present or any(isinstance(value, bool) or not isinstance(value, int | float) for value in present):
        return found
    if len(present) == len(found) and all(isinstance(value, int) for value in present):
        return found
    return [float("nan") if _missing(value) else float(value) for value in found]


def _texts(values: list[Any]) -> list[Any]:
    return ["" if _missing(value) else value for value in values]


def _listed(values: Any) -> list[Any]:
    found: list[Any] = values.tolist() if hasattr(values, "tolist") else values
    return found


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)
