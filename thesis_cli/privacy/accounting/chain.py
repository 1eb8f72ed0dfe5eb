"""Entries of a privacy ledger and the chain of digests that links them: as JSON, and back.

Each entry holds the SHA-256 of the entry before it and of its own content. The digest of the last
entry is the head. An entry that is edited, inserted, moved or removed breaks the chain after it,
and whoever noted a head elsewhere can see whether the file still continues the history up to it.
There is no key: whoever may write the ledger can compute a whole new chain, cut off its end, or put
an older copy in its place. Only a head that is noted elsewhere shows that, and nothing shows a
release that was never charged.

Format 3 has a random key, and its entries name the content of the table (`identity`); entries of
format 2 keep their digests, so that heads that were noted stay heads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast, get_args

from thesis_cli.privacy.accounting.account import UNIT, Rule, Spend, upgraded_rule
from thesis_cli.privacy.accounting.identity import Content, account_key, earlier_key
from thesis_cli.privacy.mechanisms.mechanism import Budget

FORMAT = "thesis-cli privacy ledger 3"
FORMAT_2 = "thesis-cli privacy ledger 2"
"""Format without a key, which knows tables by their names and files only."""
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
    stronger : unit of the release, if it is another one that implies that of the account; the spend is
        then what it implies.
    content : content of the table, or None.
    """

    table: str
    limit: Budget
    rule: Rule
    spend: Spend
    file: str | None = None
    unit: str = UNIT
    stronger: str = ""
    content: Content | None = None

    @property
    def key(self) -> str:
        """Name by which the account is found."""
        return account_key(self.table)

    @property
    def terms(self) -> tuple[Budget, Rule, str]:
        """Fields that are the same in all entries of an account."""
        return self.limit, self.rule, self.unit


@dataclass(frozen=True)
class Book:
    """Content of a ledger.

    Attributes
    ----------
    entries : in the order in which they were written.
    digests : digest of each entry, as they are stored; none in format 1.
    breaks : faults of the chain, in words; empty if it is whole.
    chained : whether there is a chain; format 1 has none.
    key : secret key of the contents, in hexadecimal; empty before the first entry of format 3.
    """

    entries: tuple[LedgerEntry, ...] = ()
    digests: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    chained: bool = True
    key: str = ""

    @property
    def head(self) -> str:
        """Digest of the last entry; empty if the ledger is empty or has no chain."""
        return self.digests[-1] if self.digests else ""

    def extended(self, entry: LedgerEntry) -> Book:
        """The same with one more entry, of this format."""
        book = self if self.chained else Book.of(self.entries, self.key)
        content = _content(entry, len(book.entries) + 1, book.head or FIRST, book.key, book.contents)
        return replace(book, entries=(*book.entries, entry), digests=(*book.digests, digest(content)))

    @property
    def contents(self) -> set[str]:
        """Digests of all known contents."""
        return {entry.content.digest for entry in self.entries if entry.content}

    @classmethod
    def of(cls, entries: tuple[LedgerEntry, ...], key: str = "") -> Book:
        """A new chain of some entries."""
        book = cls(key=key)
        for entry in entries:
            book = book.extended(entry)
        return book

    def stored(self) -> list[dict[str, Any]]:
        """Entries as a ledger keeps them."""
        entries, previous, known = list[dict[str, Any]](), FIRST, set[str]()
        for number, (entry, found) in enumerate(zip(self.entries, self.digests, strict=True), start=1):
            entries.append({**_content(entry, number, previous, self.key, known), "digest": found})
            previous = found
            known |= {entry.content.digest} if entry.content else set()
        return entries

    def to_json(self) -> str:
        """Text of the ledger's file."""
        content = {"format": FORMAT, "key": self.key, "entries": self.stored(), "head": self.head}
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
    key = content.get("key", "")
    if content["format"] not in (FORMAT, FORMAT_2) or not isinstance(key, str):
        raise ValueError
    if set(content) != {"format", "entries", "head"} | ({"key"} if content["format"] == FORMAT else set()):
        raise ValueError
    entries, digests, breaks, previous = [], [], [], FIRST
    contents: dict[str, Content] = {}
    for number, found in enumerate(content["entries"], start=1):
        stored = found["digest"]
        given = {name: value for name, value in found.items() if name not in ("number", "previous", "digest")}
        own = given.pop("content", None)
        entry = replace(_entry(**given), content=_known(own, contents))
        if own is not None and own["key"] != key_name(key):
            breaks.append(f"the key of the ledger is not that of entry {number}")
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
    breaks += _changed_terms(entries)
    return Book(tuple(entries), tuple(digests), tuple(breaks), key=key)


def _changed_terms(entries: list[LedgerEntry]) -> list[str]:
    """Entries whose limit, rule or unit is not that of their account. Names that were two accounts before
    format 3 and are one now may begin with terms of their own (`merged`).
    """
    found = []
    firsts: dict[tuple[str, str], LedgerEntry] = {}
    accounts: dict[str, LedgerEntry] = {}
    for number, entry in enumerate(entries, start=1):
        first = firsts.setdefault((entry.key, earlier_key(entry.table)), entry)
        account = accounts[entry.key] = merged([accounts.get(entry.key, entry), entry])
        if entry.terms not in (first.terms, account.terms) or entry.unit != account.unit:
            found.append(f"entry {number} has another limit, rule or unit than the account of table {first.table}")
    return found


def merged(entries: Sequence[LedgerEntry]) -> LedgerEntry:
    """The first of some entries of an account, with the smaller limit of all; under basic composition
    unless all have one rule.
    """
    limits = [entry.limit for entry in entries]
    limit = Budget(min(x.epsilon for x in limits), min(x.delta for x in limits))
    rules = {entry.rule for entry in entries}
    return replace(entries[0], limit=limit, rule=entries[0].rule if len(rules) == 1 else "basic")


def key_name(key: str) -> str:
    """Name of a key, which does not tell it."""
    return hashlib.sha256(f"ledger {key}".encode()).hexdigest()[:16]


def _known(found: Any, contents: dict[str, Content]) -> Content | None:
    """Content that an entry names; the first one to name it describes it."""
    if found is None:
        return None
    rest = {name: value for name, value in found.items() if name != "key"}
    if len(rest) > 1:
        contents.setdefault(rest["digest"], Content.from_json(**rest))
    return contents[rest["digest"]]


def _content(entry: LedgerEntry, number: int, previous: str, key: str, known: set[str]) -> dict[str, Any]:
    """Content that the digest of an entry covers; what is new in this format is left out where it says
    nothing, as in older ledgers, and a content of those `known` is named only.
    """
    more: dict[str, Any] = {"stronger": entry.stronger} if entry.stronger else {}
    if entry.content:
        described = {"digest": entry.content.digest} if entry.content.digest in known else entry.content.to_json()
        more["content"] = {"key": key_name(key), **described}
    return {
        "number": number,
        "table": entry.table,
        **asdict(entry.spend),
        "limit": asdict(entry.limit),
        "rule": entry.rule,
        "file": entry.file,
        **({} if entry.unit == UNIT else {"unit": entry.unit}),
        **more,
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
    table: str,
    limit: dict[str, float],
    rule: str,
    file: str | None,
    unit: str = UNIT,
    stronger: str = "",
    **spend: Any,
) -> LedgerEntry:
    if not isinstance(unit, str) or not isinstance(stronger, str):
        raise TypeError
    if not isinstance(table, str) or not account_key(table) or not isinstance(file, str | None):
        raise TypeError
    if rule not in get_args(Rule):
        raise ValueError
    return LedgerEntry(table, Budget(**limit), cast("Rule", rule), _spend(**spend), file, unit, stronger)


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
