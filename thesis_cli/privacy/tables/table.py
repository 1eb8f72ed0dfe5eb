"""Private tables, opened, read in parts of constant size, and encoded by a schema; of a table with several
rows for a person, at most K count.

Which rows of a person count depends on that person's identifier and rows alone, and on a public key: so a
person who is replaced, added or removed changes no other person's rows. The identifiers are read, and used
for nothing else.

Cells that the schema refuses (`bad_cells`) are named by their places, which depend on private values, and never
by their values: they are for people who may see the table.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.column import MISSING_TEXTS, Column, Values
from thesis_cli.privacy.tables.schema import Schema, Unknown
from thesis_cli.privacy.tables.table_kinds import (
    CHUNK,
    STANDARD_INPUT,
    CsvTable,
    FrameTable,
    ParquetTable,
    QueryTable,
    Table,
    given_delimiter,
)

if TYPE_CHECKING:
    import pandas as pd


_URL = re.compile(r"\w+(\+\w+)?://|(sqlite|postgres\w*)(\+\w+)?:")
_PARQUET = (".parquet", ".pq")


def open_table(
    source: str | Path | pd.DataFrame, query: str | None = None, *, names: Sequence[str] = (), delimiter: str = ""
) -> Table:
    """Open a CSV file (with a header; plain or in gzip), a Parquet file (*.parquet, *.pq), a
    database query, or a DataFrame.

    Parameters
    ----------
    source : a path, `-` for CSV on standard input, a URL sqlite:///FILE or
        postgresql://USER:PASSWORD@HOST/DATABASE, or a DataFrame.
    query : SELECT to read; only for a database.
    names : columns of the schema, as for `CsvTable`.
    delimiter : character between the cells of a CSV file, as for `CsvTable`; other tables ignore
        it.

    Raises
    ------
    InputError : there is no such table, it cannot be read, or a package is not installed; never has
        a password.
    """
    given_delimiter(delimiter)
    if not isinstance(source, str | Path):
        return FrameTable(source, query)
    source = str(source)
    if _URL.match(source):
        return QueryTable(source, query)
    if query is not None:
        raise InputError("--query is for a database", "give a URL such as sqlite:///FILE", source=source)
    if source == STANDARD_INPUT:
        return CsvTable(source, names, delimiter)
    path = Path(source)
    if not path.is_file():
        problem = "it is not a file" if path.exists() else "no such file"
        raise InputError(problem, "give a CSV or Parquet file, - or the URL of a database", source=source)
    return ParquetTable(source) if path.suffix.lower() in _PARQUET else CsvTable(source, names, delimiter)


def is_csv(source: object) -> bool:
    """Whether `open_table` reads a source as CSV."""
    if not isinstance(source, str | Path):
        return False
    return not _URL.match(str(source)) and Path(source).suffix.lower() not in _PARQUET


def encoded_rows(table: Table, schema: Schema, chunk: int = CHUNK, unknown: Unknown = "error") -> Iterator[Rows]:
    """Encoded rows of the table, at most `chunk` at a time; only the schema's columns are read.

    Raises
    ------
    InputError : the table lacks a column (at once); what `Table.chunks` and `Schema.encode` raise
        (while it is read).
    """
    return (rows for _, rows in encoded_blocks(table, schema, chunk, unknown))


def encoded_blocks(
    table: Table, schema: Schema, chunk: int = CHUNK, unknown: Unknown = "error", beside: tuple[str, ...] = ()
) -> Iterator[tuple[dict[str, Values], Rows]]:
    """Parts of a table: values as stored, by column, and encoded rows; raises as `encoded_rows`.

    Parameters
    ----------
    chunk : largest number of rows of a part.
    unknown : treatment of values that cannot be read, as for `Schema.encode`.
    beside : further columns to return, which need not be in the schema.
    """
    try:
        schema.check_names(table.columns)
    except InputError as error:
        raise error.at(table.source) from None
    return _encoded(table, schema, chunk, unknown, beside)


def _encoded(
    table: Table, schema: Schema, chunk: int, unknown: Unknown, beside: tuple[str, ...]
) -> Iterator[tuple[dict[str, Values], Rows]]:
    first_row = 1
    for block in table.chunks(chunk, (*schema.names_read, *beside)):
        try:
            encoded = schema.encode(block, first_row, unknown)
        except InputError as error:
            raise error.at(table.source) from None
        yield block, encoded
        first_row += len(encoded)


def person_rows(
    table: Table, schema: Schema, person: str, chunk: int = CHUNK, unknown: Unknown = "error"
) -> Iterator[tuple[list[str], Rows]]:
    """Identifiers and encoded rows of the table, at most `chunk` at a time.

    Identifiers are equal if their texts are, to the letter: `07` and `7` are two persons, and so
    are `a` and `A`.

    Raises
    ------
    InputError : the table has no such column, or the schema has it, which would release it (at
        once); a row has no identifier, named by its place, or what `encoded_rows` raises (while it
        is read).
    """
    if person in schema.names:
        problem = f"the schema has the column {person!r} of persons"
        raise InputError(problem, "a release would show it; leave it out of the schema", source=table.source)
    if person not in table.columns:
        raise InputError(f"the table has no column {person!r}", "--person must name a column", source=table.source)
    return _person_rows(table, schema, person, chunk, unknown)


def _person_rows(
    table: Table, schema: Schema, person: str, chunk: int, unknown: Unknown
) -> Iterator[tuple[list[str], Rows]]:
    first_row = 1
    for block, rows in encoded_blocks(table, schema, chunk, unknown, (person,)):
        texts = _identifiers(block[person])
        for place, text in enumerate(texts, first_row):
            if text.strip() in MISSING_TEXTS:
                problem = f"column {person!r}: row {place} has no value"
                raise InputError(problem, "each row must name its person", source=table.source)
        yield texts, rows
        first_row += len(rows)


def _identifiers(values: Values) -> list[str]:
    return ["" if value is None else str(value) for value in values.tolist()]


class Rereadable:
    """Blocks of a table that are read anew each time that they are iterated over."""

    def __init__(self, read: Callable[[], Iterator[Rows]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Rows]:
        return self._read()


def columns_read(schema: Schema, person: str | None) -> tuple[str, ...]:
    """Columns that `rows_that_count` reads, in that order."""
    return (*schema.names_read, *(() if person is None else (person,)))


def rows_that_count(
    table: Table,
    schema: Schema,
    person: str | None,
    contribution_bound: int | None,
    entropy: int,
    unknown: Unknown = "error",
) -> tuple[Iterable[Rows], int]:
    """The rows of a table that a release protects, and their number, which only people who may see the
    table may know.

    Parameters
    ----------
    person : column of persons; None if each row counts.
    contribution_bound : largest number of rows of a person that count.
    entropy : public entropy of the release.
    """
    if person is None:
        return Rereadable(lambda: encoded_rows(table, schema, unknown=unknown)), table.count()
    assert contribution_bound is not None
    parts = person_rows(table, schema, person, unknown=unknown)
    rows = list(bounded_rows(parts, contribution_bound, public_key(entropy)))
    return rows, sum(map(len, rows))


def public_key(entropy: int) -> bytes:
    """Key of the choice of rows, from the public entropy of a release."""
    return hashlib.sha256(f"persons {entropy}".encode()).digest()


def bounded_rows(
    parts: Iterable[tuple[Sequence[str], Rows]], most: int, key: bytes, chunk: int = CHUNK
) -> Iterator[Rows]:
    """At most K = `most` rows of each person; memory holds these rows.

    A person's rows are a uniform sample of theirs without replacement (Vitter 1985, Algorithm R),
    whose random numbers are a hash of the key, the identifier and the number of the row among the
    person's own. The order of persons, and of rows of different persons, does not matter.

    Parameters
    ----------
    parts : identifiers and rows, in the order of the table.
    key : public key of the hash; at most 64 bytes.
    chunk : largest number of rows of a block that is returned.
    """
    slots: dict[str, list[int]] = {}  # of a person: the number of rows so far, and the places of those kept
    kept, used = Rows(np.zeros((0, 0)), np.zeros((0, 0), np.int64)), 0
    for identifiers, rows in parts:
        places: dict[int, int] = {}  # place of a kept row: its number in this part
        for n, identifier in enumerate(identifiers):
            own = slots.setdefault(identifier, [0])
            own[0] += 1
            if own[0] <= most:
                own.append(used)
                used += 1
                places[own[-1]] = n
            elif (chosen := _draw(key, identifier, own[0])) < most:
                places[own[1 + chosen]] = n
        kept = _grown(kept, rows, used)
        targets, sources = np.array(list(places), np.int64), np.array(list(places.values()), np.int64)
        kept.reals[targets], kept.codes[targets] = rows.reals[sources], rows.codes[sources]
    for start in range(0, used, chunk):
        yield kept[start : min(start + chunk, used)]


def _draw(key: bytes, identifier: str, number: int) -> int:
    """Random number from 0 to `number` - 1, of a person's row of this number, 1 or more."""
    message = f"{number} {identifier}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(message, key=key, digest_size=16).digest()) % number


def _grown(kept: Rows, like: Rows, size: int) -> Rows:
    """The rows with room for `size` of them; twice the size whenever it is too small."""
    room = len(kept)
    if room >= size:
        return kept
    larger = max(size, 2 * room)
    reals = np.empty((larger, like.reals.shape[1]))
    codes = np.empty((larger, like.codes.shape[1]), np.int64)
    if room:
        reals[:room], codes[:room] = kept.reals, kept.codes
    return Rows(reals, codes)


LISTED = 20
"""Places that are listed; all are counted."""


@dataclass(frozen=True)
class BadCell:
    """A cell that the schema refuses: its row, from 1 on, its column, and what is wrong."""

    row: int
    column: str
    problem: str


@dataclass(frozen=True)
class BadCells:
    """The refused cells of a table.

    Attributes
    ----------
    total : their number.
    first : the first of them, at most `LISTED`, by row.
    rows : number of rows of the table.
    """

    total: int
    first: tuple[BadCell, ...]
    rows: int


def bad_cells(table: Table, schema: Schema, unknown: Unknown = "error", chunk: int = CHUNK) -> BadCells:
    """Read a table once and collect what its schema refuses.

    Raises
    ------
    InputError : the table lacks a column, or cannot be read as a table.
    """
    try:
        schema.check_names(table.columns)
    except InputError as error:
        raise error.at(table.source) from None
    first: list[BadCell] = []
    total, row = 0, 1
    for block in table.chunks(chunk, schema.names_read):
        found = [list(_refused(column, block[column.name], row, unknown)) for column in schema.encoded]
        total += sum(map(len, found))
        here = sorted((cell for cells in found for cell in cells), key=lambda cell: cell.row)
        if not here:
            try:
                schema.encode(block, row, unknown)  # what concerns several columns
            except InputError as error:
                here, total = [BadCell(row, "", error.problem)], total + 1
        first += here[: LISTED - len(first)]
        row += len(next(iter(block.values())))
    return BadCells(total, tuple(first), row - 1)


def _refused(column: Column, values: Values, first_row: int, unknown: Unknown) -> Iterator[BadCell]:
    found = column.read(np.asarray(values))
    gaps, wrong = np.isnan(found), found < 0
    if column.missing:
        gaps[:] = False
        wrong &= unknown != "missing"
    for at in np.flatnonzero(gaps | wrong).tolist():
        problem = f"cannot be read; it must be {column.content}" if wrong[at] else "has no value"
        yield BadCell(first_row + at, column.name, problem)
