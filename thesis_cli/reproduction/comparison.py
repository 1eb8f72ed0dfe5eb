"""Hold a table against another of the same rows: is it the same, up to rounding?"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from thesis_cli.base.errors import counted
from thesis_cli.reproduction.experiment import Tolerance

IDENTICAL: Final = "identical"
EQUAL: Final = "equal"
DIFFERS: Final = "differs"
DEFAULT = Tolerance()
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf|nan", re.IGNORECASE | re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


@dataclass(frozen=True)
class Cell:
    """A cell in two tables; rows count from 1, without the heading."""

    column: str
    row: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.column}, row {self.row}: {self.old or 'empty'}, now {self.new or 'empty'}"


@dataclass(frozen=True)
class Comparison:
    """Differences between two tables.

    Attributes
    ----------
    verdict : `identical`, `equal` or `differs`; `equal` if every difference is within the tolerance of its column.
    cells : number of cells that differ by more.
    largest : the one of these that exceeds its tolerance by the largest factor.
    shape : difference in columns or number of rows; cells are not compared then.
    wider : columns that are equal only by a tolerance wider than the default, and that tolerance.
    rows : tolerances of rows that are equal by these alone, and the number of such rows.
    """

    verdict: str
    cells: int = 0
    largest: Cell | None = None
    shape: str = ""
    wider: Mapping[str, Tolerance] = field(default_factory=dict)
    rows: Mapping[Tolerance, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.verdict == IDENTICAL:
            return IDENTICAL
        if self.shape:
            return f"{DIFFERS}: {self.shape}"
        if self.verdict == DIFFERS:
            return f"{DIFFERS} in {counted(self.cells, 'cell')} (largest: {self.largest})"
        apart = [f"{name} ({tolerance})" for name, tolerance in self.wider.items()]
        apart += [f"{counted(count, 'row')} ({tolerance})" for tolerance, count in self.rows.items()]
        return f"{EQUAL} {DEFAULT}" + (f", but for {', '.join(apart)}" if apart else "")


class NoTable(ValueError):
    """A text is no table: it has no heading, or rows of other lengths."""


def parse(text: str) -> tuple[list[str], list[list[str]]]:
    """The heading and the rows of a table.

    Raises
    ------
    NoTable : naming the line.
    """
    try:
        heading, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    except csv.Error as error:
        raise NoTable(str(error)) from None
    except ValueError:
        raise NoTable("it is empty") from None
    for number, row in enumerate(rows, 2):
        if len(row) != len(heading):
            raise NoTable(f"line {number} has {counted(len(row), 'cell')}, not {len(heading)}")
    return heading, rows


def compare(
    old: str,
    new: str,
    tolerances: Mapping[str, Tolerance] | None = None,
    rows: Callable[[Mapping[str, str]], Tolerance | None] = lambda row: None,
) -> Comparison:
    """Compare two tables (CSV text with a heading) cell by cell, each row with that in its place.

    Parameters
    ----------
    tolerances : tolerance of each named column. Other columns have 1e-9 of the larger number; their words and integers
        must be the same. Not a number is equal to itself, as is an empty cell.
    rows : cells by column -> wider tolerance of all cells of a row, in either table; None for none.

    Raises
    ------
    NoTable : one of the texts is no table.
    """
    if old == new:
        return Comparison(IDENTICAL)
    tolerances = tolerances or {}
    (heading, before), (columns, after) = parse(old), parse(new)
    if heading != columns:
        return Comparison(DIFFERS, shape=_other_columns(heading, columns))
    if len(before) != len(after):
        return Comparison(DIFFERS, shape=f"{counted(len(before), 'row')}, now {len(after):,}")
    count, worst = 0, 1.0
    largest: Cell | None = None
    wider: dict[str, Tolerance] = {}
    loose = dict[Tolerance, int]()
    for number, pair in enumerate(zip(before, after, strict=True), 1):
        cells = [cell for cell in zip(heading, *pair, strict=True) if cell[1] != cell[2]]
        by_columns = [_excess(a, b, tolerances.get(name)) for name, a, b in cells]
        whole = _of_row(rows, heading, pair) if any(excess > 1 for excess in by_columns) else None
        if whole:
            loose[whole] = loose.get(whole, 0) + 1
        for (name, a, b), by_column in zip(cells, by_columns, strict=True):
            excess = min(by_column, _excess(a, b, whole)) if whole else by_column
            if excess > 1:
                count += 1
                if largest is None or excess > worst:
                    largest, worst = Cell(name, number, a, b), excess
            elif not whole and name in tolerances and _excess(a, b, None) > 1:
                wider[name] = tolerances[name]
    return Comparison(DIFFERS if count else EQUAL, count, largest, wider=wider, rows=loose)


def _of_row(
    rows: Callable[[Mapping[str, str]], Tolerance | None], heading: Sequence[str], pair: Sequence[Sequence[str]]
) -> Tolerance | None:
    """The tolerance of a row, in either table."""
    found = (rows(dict(zip(heading, row, strict=True))) for row in pair)
    return next((tolerance for tolerance in found if tolerance), None)


def without_noise(text: str, tolerances: Mapping[str, Tolerance]) -> str:
    """The same table with 0 for numbers within half the absolute tolerance of their column.

    All other cells keep their text. Half, so that a number beside that bound, which another
    processor may round to the other side, stays equal to the 0 there.

    Raises
    ------
    NoTable : the text is no table.
    """
    if not any(tolerance.absolute > 0 for tolerance in tolerances.values()):
        return text
    heading, rows = parse(text)
    for place, name in enumerate(heading):
        bound = tolerances.get(name, DEFAULT).absolute / 2
        for row in rows if bound > 0 else ():
            if _NUMBER.fullmatch(row[place]) and abs(float(row[place])) <= bound:
                row[place] = "0"
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([heading, *rows])
    return out.getvalue()


def _excess(a: str, b: str, declared: Tolerance | None) -> float:
    """Difference of two unequal cells in units of the tolerance; inf where none would do."""
    tolerance = declared or DEFAULT
    if tolerance.relative == math.inf:
        return 0.0
    if not (_NUMBER.fullmatch(a) and _NUMBER.fullmatch(b)):
        return math.inf
    if declared is None and _INTEGER.fullmatch(a) and _INTEGER.fullmatch(b):
        return 0.0 if int(a) == int(b) else math.inf
    x, y = float(a), float(b)
    if x == y or (math.isnan(x) and math.isnan(y)):
        return 0.0
    if not (math.isfinite(x) and math.isfinite(y)):
        return math.inf
    allowed = tolerance.absolute + tolerance.relative * max(abs(x), abs(y))
    return abs(x - y) / allowed if allowed else math.inf


def _other_columns(old: Sequence[str], new: Sequence[str]) -> str:
    lost, added = [name for name in old if name not in new], [name for name in new if name not in old]
    parts = [f"{verb} {', '.join(names)}" for verb, names in (("without", lost), ("with", added)) if names]
    return f"its columns are now {' and '.join(parts) or 'in another order'}"
