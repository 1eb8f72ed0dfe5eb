r"""Two private tables that a key links: households, one row each, and persons, of which at most B count.

Neighbouring pairs of tables differ in one household h: its key, its row, and all its persons. Two tables
are made of the pair and released, and no bit of an output depends on the pair but through them:

1. `sized`: the row of each household, and the number of its persons that count. Which persons count
   depends on their household's key, their order within it and a public key (`table.bounded_rows`), and
   so the row depends on its own household alone. h changes one row of this table.
2. `joined`: the persons that count, each with the row of its household in 1. h changes at most B rows.

So the first is released for a unit of one row, the second for a unit of B rows (`mechanisms.stages.Unit`). The
key is compared with other keys and goes nowhere else: neither table has it, and what a release reads of a
table, sums and counts of rows, has no bit that depends on their order. A key that occurs twice, or that
no household has, ends the release before anything is spent; like that of any cell, the message is for
people who may see the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.column import first_double
from thesis_cli.privacy.tables.columns import Integer
from thesis_cli.privacy.tables.schema import Schema, Unknown
from thesis_cli.privacy.tables.table import bounded_rows, person_rows, public_key
from thesis_cli.privacy.tables.table_kinds import Table

SIZE = "size"
"""Name of the column of the number of persons that count."""


@dataclass(frozen=True)
class Link:
    """Public description of two linked tables.

    Attributes
    ----------
    key : column of both tables that says whose row it is; in neither schema.
    most : largest number B of persons of a household that count.
    persons, households : schemas of the tables.

    Raises
    ------
    InputError : two columns of the released tables would have one name.
    """

    key: str
    most: int
    persons: Schema
    households: Schema

    def __post_init__(self) -> None:
        names = [*self.persons.names, *self.households.names, SIZE]
        twice = first_double(names)
        if self.key in names:
            raise InputError(f"the key {self.key!r} is a column that would be released", "leave it out of the schemas")
        if twice == SIZE:
            raise InputError(f"a schema has a column {SIZE!r}, as the number of persons is called", "leave it out")
        if twice is not None:
            raise InputError(f"both schemas have the column {twice!r}", "leave it out of one of them")

    @cached_property
    def sized(self) -> Schema:
        """Columns of the households and their size."""
        own = self.households
        return Schema((*own.columns, Integer(SIZE, 0, self.most)), own.gamma, own.rho, own.rules)

    @cached_property
    def joined(self) -> Schema:
        """Columns of the persons, then those of their households."""
        own = self.persons
        return Schema((*own.columns, *self.sized.encoded), own.gamma, own.rho, own.rules)

    def rows(self, tables: Sequence[Table], entropy: int, unknown: Unknown = "error") -> tuple[Rows, Rows]:
        """Encoded rows of the households, by `sized`, and of the persons that count, by `joined`.

        Parameters
        ----------
        tables : the persons, then the households.
        entropy : public entropy of the release.

        Raises
        ------
        InputError : a household has two rows, a person has no household, or as for `person_rows`.
        """
        (persons, households), places = tables, dict[str, int]()
        found = list(self._households(households, places, unknown))
        parts = self._placed(persons, households.source, places, unknown)
        kept = _rows(list(bounded_rows(parts, self.most, public_key(entropy))), self.persons, 1)
        place = kept.codes[:, -1]
        sizes = np.bincount(place, minlength=len(places))
        sized = _beside(_rows(found, self.households), Schema(self.sized.columns[-1:]).encode({SIZE: sizes}))
        return sized, _beside(Rows(kept.reals, kept.codes[:, :-1]), sized[place])

    def _households(self, table: Table, places: dict[str, int], unknown: Unknown) -> Iterator[Rows]:
        """Encoded rows; their places by key are added to `places`."""
        for keys, rows in person_rows(table, self.households, self.key, unknown=unknown):
            for key in keys:
                if key in places:
                    problem = f"column {self.key!r}: row {len(places) + 1} has the key of an earlier row"
                    raise InputError(problem, "each household must have one row", source=table.source)
                places[key] = len(places)
            yield rows

    def _placed(
        self, table: Table, source: str, places: dict[str, int], unknown: Unknown
    ) -> Iterator[tuple[Sequence[str], Rows]]:
        """Keys, and encoded rows with the place of their household as one more code."""
        before = 0
        for keys, rows in person_rows(table, self.persons, self.key, unknown=unknown):
            found = np.array([places.get(key, -1) for key in keys], np.int64)
            if found.min(initial=0) < 0:
                problem = f"column {self.key!r}: row {before + 1 + int(found.argmin())} has a key that no row has"
                raise InputError(f"{problem} of {source}", "each person must have a household", source=table.source)
            before += len(keys)
            yield keys, Rows(rows.reals, np.column_stack([rows.codes, found]))


def _rows(parts: list[Rows], schema: Schema, codes: int = 0) -> Rows:
    """All rows of the parts, which have so many codes more than the schema; there may be none."""
    width = len(schema.cardinalities) + codes
    return Rows.concatenate([Rows(np.zeros((0, schema.reals)), np.zeros((0, width), np.int64)), *parts])


def _beside(one: Rows, other: Rows) -> Rows:
    """Rows with the coordinates of two tables of as many rows."""
    return Rows(np.hstack([one.reals, other.reals]), np.hstack([one.codes, other.codes]))
