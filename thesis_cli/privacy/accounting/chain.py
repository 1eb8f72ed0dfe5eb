"""Entries of a privacy ledger and the chain of digests that links them: a file's text, and back.

Each entry holds the SHA-256 of the entry before it and of its own content. The digest of the last
entry is the head. An entry that is edited, inserted, moved or removed breaks the chain after it,
and whoever noted a head elsewhere can see whether the file still continues the history up to it.
There is no key: whoever may write the file can compute a whole new chain, cut off its end, or put
an older copy in its place. Only a head that is noted elsewhere shows that, and nothing shows a
release that was never charged.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, cast, get_args

from thesis_cli.privacy.accounting.account import UNIT, Rule, Spend, account_key, upgraded_rule
from thesis_cli.privacy.mechanisms.mechanism import Budget

FORMAT = "thesis-cli privacy ledger 2"
FORMAT_1 = "thesis-cli privacy ledger 1"
"""Format without a chain: a list of spends for each table."""
FIRST = "0" * 64
"""Digest before the first entry."""


@dataclass(frozen=True)
class LedgerEntry:
    """One line of the ledger.

    Attributes
    ----------
    table : name of the table, as it was given.
    limit : limit of the table, the same in all its entries.
    rule : rule of composition of the table's account, the same in all its entries.
    spend : budget that was spent.
    file : digest of the identity of the table's file (device, number, time of change), or None.
    unit : unit of privacy of the table's account, the same in all its entries (`Unit.name`).
    """

    table: str
    limit: Budget
    rule: Rule
    spend: Spend
    file: str | None = None
    unit: str = UNIT

    @property
    def key(self) -> str:
        """Name by which the account is found."""
        return account_key(self.table)


@dataclass(frozen=True)
class Book:
    """Content of a ledger's file.

    Attributes
    ----------
    entries : in the order in which they were written.
    digests : digest of each entry, as the file has them; none in format 1.
    breaks : faults of the chain, in words; empty if it is whole.
    chained : whether the file has a chain; format 1 has none.
    """

    entries: tuple[LedgerEntry, ...] = ()
    digests: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    chained: bool = True

    @property
    def head(self) -> str:
        """Digest of the last entry; empty if the ledger is empty or has no chain."""
        return self.digests[-1] if self.digests else ""

    def extended(self, entry: LedgerEntry) -> Book:
        """The same with one more entry, of this format."""
        book = self if self.chained else Book.of(self.entries)
        previous = book.head or FIRST
        return replace(
            book,
            entries=(*book.entries, entry),
            digests=(*book.digests, digest(_content(entry, len(book.entries) + 1, previous))),
        )

    @classmethod
    def of(cls, entries: tuple[LedgerEntry, ...]) -> Book:
        """A new chain of some entries."""
        book = cls()
        for entry in entries:
            book = book.extended(entry)
        return book

    def to_json(self) -> str:
        """Text of the ledger's file."""
        entries, previous = [], FIRST
        for number, (entry, found) in enumerate(zip(self.entries, self.digests, strict=True), start=1):
            entries.append({**_content(entry, number, previous), "digest": found})
            previous = found
        content = {"format": FORMAT, "entries": entries, "head": self.head}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def digest(content: dict[str, Any]) -> str:
    """SHA-256 of an entry's content, in hexadecimal."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def parse(content: Any) -> Book:
    """Read a ledger's JSON; other JSON raises any of KeyError, TypeError, AttributeError,
    ValueError.
    """
    if content["format"] == FORMAT_1:
        return Book(_parse_format_1(content["tables"]), chained=False)
    if content["format"] != FORMAT or set(content) != {"format", "entries", "head"}:
        raise ValueError
    entries, digests, breaks, previous = [], [], [], FIRST
    for number, found in enumerate(content["entries"], start=1):
        stored = found["digest"]
        entry = _entry(**{key: value for key, value in found.items() if key not in ("number", "previous", "digest")})
        if not isinstance(stored, str):
            raise TypeError
        if found["number"] != number or found["previous"] != previous:
            breaks.append(f"entry {number} does not follow the one before it: an entry was edited, added or removed")
        if digest({key: value for key, value in found.items() if key != "digest"}) != stored:
            breaks.append(f"entry {number} was edited after it was written")
        entries.append(entry)
        digests.append(stored)
        previous = stored
    if content["head"] != (previous if entries else ""):
        breaks.append("the head is not the digest of the last entry: entries were removed from the end, or added")
    known: dict[str, LedgerEntry] = {}
    for number, entry in enumerate(entries, start=1):
        first = known.setdefault(entry.key, entry)
        if (first.limit, first.rule, first.unit) != (entry.limit, entry.rule, entry.unit):
            breaks.append(f"entry {number} has another limit, rule or unit than the account of table {first.table}")
    return Book(tuple(entries), tuple(digests), tuple(breaks))


def _content(entry: LedgerEntry, number: int, previous: str) -> dict[str, Any]:
    """Content that the digest of an entry covers; the default unit is left out, as in older ledgers."""
    return {
        "number": number,
        "table": entry.table,
        **asdict(entry.spend),
        "limit": asdict(entry.limit),
        "rule": entry.rule,
        "file": entry.file,
        **({} if entry.unit == UNIT else {"unit": entry.unit}),
        "previous": previous,
    }


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object of JSON; `ValueError` if a key occurs twice, since people and programs would read
    different values.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _entry(
    table: str, limit: dict[str, float], rule: str, file: str | None, unit: str = UNIT, **spend: Any
) -> LedgerEntry:
    if not isinstance(unit, str):
        raise TypeError
    if not isinstance(table, str) or not account_key(table) or not isinstance(file, str | None):
        raise TypeError
    if rule not in get_args(Rule):
        raise ValueError
    return LedgerEntry(table, Budget(**limit), cast("Rule", rule), _spend(**spend), file, unit)


def _spend(epsilon: float, delta: float, rho: float | None, note: str, time: str) -> Spend:
    if not isinstance(note, str) or not isinstance(time, str):
        raise TypeError
    return Spend(epsilon, delta, rho, note, time)


def _parse_format_1(tables: dict[str, Any]) -> tuple[LedgerEntry, ...]:
    """Entries of all tables, by table. Names that are now one name share one account, whose limit
    is the smaller one; the rule is the one under which the account is within its limit.
    """
    spends: dict[str, list[tuple[str, Spend]]] = {}
    limits: dict[str, Budget] = {}
    for name, account in tables.items():
        key, limit = account_key(name), Budget(**account["limit"])
        known = limits.get(key, limit)
        limits[key] = Budget(min(known.epsilon, limit.epsilon), min(known.delta, limit.delta))
        spends.setdefault(key, []).extend((name, _spend(**spend)) for spend in account["spent"])
    found = []
    for key, named in spends.items():
        rule = upgraded_rule(limits[key], tuple(spend for _, spend in named))
        found += [LedgerEntry(name, limits[key], rule, spend) for name, spend in named]
    return tuple(found)
