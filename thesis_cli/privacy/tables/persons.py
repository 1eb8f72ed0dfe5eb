"""Tables with several rows for a person, of which at most K count.

Which rows of a person count depends on that person's identifier and rows alone, and on a public
key: so a person who is replaced, added or removed changes no other person's rows. The identifiers
are read, and used for nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.column import MISSING_TEXTS, Values
from thesis_cli.privacy.tables.schema import Schema, Unknown
from thesis_cli.privacy.tables.table import encoded_blocks, encoded_rows
from thesis_cli.privacy.tables.table_kinds import CHUNK, Table


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
