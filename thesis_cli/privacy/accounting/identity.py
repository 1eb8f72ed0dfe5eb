r"""What tells private tables apart in a ledger: names of accounts, and the content of tables.

Two names are one account if their keys are equal (`account_key`). Names with other keys that a reader
could take for one another have equal skeletons (`skeleton`), after UTS 39 of Unicode; the ledger asks
before it opens an account beside one that looks the same.

The content is kept as keyed digests, by which a copy is recognised. Every cell has a digest of its value, and
a row is the sum of its cells', so that neither names
nor order of columns count, nor how a number, a date or a text is written. Three things are kept:

* the digest of the rows, which no order of rows changes;
* bottom-k sketches of the distinct rows (Beyer et al. 2007), of all columns and of all but one: the
  k least keyed digests of a table are a uniform sample of its distinct rows, and of those of two
  tables the share that both have is an estimate of how many they share;
* a digest of the values of each column.

The key is random and lies in the ledger. Who has both can test whether a row is in the table: a
ledger is as private as its tables.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.privacy.tables.column import MISSING_TEXTS

IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Code points that are invisible: Default_Ignorable_Code_Point of Unicode 16."""

_LOOK = {
    "a": "\u0430\u03b1\u0251",
    "b": "\u042c\u044c\u03b2\u0432",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u03b5\u0454\u0511",
    "g": "\u0261\u0581",
    "h": "\u04bb\u043d\u0570",
    "i": "1l|\u0456\u03b9\u04cf\u0131\u0269\u01c0",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "m": "\u043c\u03bc",
    "n": "\u043f\u03b7\u0578",
    "o": "0\u043e\u03bf\u03c3\u0585\u0ed0",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "r": "\u0433",
    "s": "\u0455\ua731",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d",
    "v": "\u03bd\u0475",
    "w": "\u051d\u03c9\u0461",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af",
    "z": "\u03b6",
    "-": "_.,\u00b7\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
}
_SCRIPTS = {
    "abcdefghijklmnoprstuvwxyz": "\ua4ee\ua4d0\ua4da\ua4d3\ua4f0\ua4dd\ua4d6\ua4e7\ua4f2\ua4d9\ua4d7\ua4e1\ua4df"
    "\ua4e0\ua4f3\ua4d1\ua4e3\ua4e2\ua4d4\ua4f4\ua4e6\ua4ea\ua4eb\ua4ec\ua4dc",
    "drtiajewmhygzbvslcpkbe": "\u13a0\u13a1\u13a2\u13a5\u13aa\u13ab\u13ac\u13b3\u13b7\u13bb\u13bd\u13c0\u13c3\u13cf"
    "\u13d9\u13da\u13de\u13df\u13e2\u13e6\u13f4\u212e",
}
_LATIN = re.compile("LATIN (?:SMALL LETTER|LETTER SMALL CAPITAL) (?:[A-Z]+ )?([A-Z])(?: WITH .*)?")
"""Names of the variants of a Latin letter: with strokes and hooks, turned, as small capitals."""
LOOKALIKES = str.maketrans(
    {other: letter for letter, others in _LOOK.items() for other in others}
    | {other: letter for letters, others in _SCRIPTS.items() for letter, other in zip(letters, others, strict=True)}
    | {" ": None}
)
"""Latin letter for each look-alike: the lower-case letters of Cyrillic, Greek and Armenian that look like
Latin ones in lower or upper case, letters of Lisu and Cherokee, digits 0 and 1, dashes and points; the space
is left out. Other scripts have no entry.
"""


def account_key(name: str) -> str:
    """Name of an account for comparisons: compatibility forms (full width, ligatures), case, space at its
    ends and invisible characters count for nothing.
    """
    text = IGNORABLE.sub("", unicodedata.normalize("NFKC", name))
    text = IGNORABLE.sub("", unicodedata.normalize("NFKC", text.casefold()))
    return " ".join(unicodedata.normalize("NFKC", text.casefold()).split())


def earlier_key(name: str) -> str:
    """Key of a name in ledgers before format 3."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", " ".join(name.split())).casefold())


def skeleton(name: str) -> str:
    """Shape of a name: without accents and dashes at its ends, and with Latin letters for their look-alikes."""
    bare = (c for c in unicodedata.normalize("NFKD", account_key(name)) if not unicodedata.combining(c))
    latin = "".join(map(_base, bare)).translate(LOOKALIKES)
    return latin.strip("-").replace("rn", "m").replace("vv", "w")


def _base(character: str) -> str:
    """Latin letter of which a character is a variant; any other is itself."""
    found = _LATIN.fullmatch(unicodedata.name(character, ""))
    return found[1].lower() if found else character


Digests = npt.NDArray[np.uint64]

LARGE, SMALL = 1024, 128
"""Digests of a sketch of all columns, and of all but one."""
MOST_VIEWS = 64
"""Largest number of columns with sketches of all but one."""
SHARED = 0.5
"""Share of the distinct rows of the smaller table from which two tables are one."""
LEAST = 3
"""Fewest equal rows in two sketches, or equal columns of two tables, that say so."""
DIGITS = 4
"""Significant digits of a number that is not whole."""
REMEMBERED = 2**20
"""Values of a column whose digests are held in memory."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII)
_MISSING = frozenset(text.casefold() for text in MISSING_TEXTS)


@dataclass(frozen=True)
class Content:
    """Keyed digests of a table.

    Attributes
    ----------
    digest : digest of all rows.
    rows : number of rows.
    columns : digest of the values of each column that has more than one value.
    sketch : least digests of distinct rows.
    views : the same without each of the columns in turn; none for very many columns.
    """

    digest: str
    rows: int
    columns: tuple[int, ...]
    sketch: Digests
    views: tuple[Digests, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for a ledger."""
        return {
            "digest": self.digest,
            "rows": self.rows,
            "columns": [f"{column:016x}" for column in self.columns],
            "sketch": _text(self.sketch),
            "views": [_text(view) for view in self.views],
        }

    @classmethod
    def from_json(cls, digest: str, rows: int, columns: list[str], sketch: str, views: list[str]) -> Content:
        """Content that a ledger has; other JSON raises TypeError or ValueError."""
        if not isinstance(digest, str) or not isinstance(rows, int):
            raise TypeError
        read = tuple(int(column, 16) for column in columns)
        return cls(digest, rows, read, _digests(sketch), tuple(_digests(view) for view in views))


def content_of(blocks: Iterable[Mapping[str, npt.NDArray[Any]]], key: bytes) -> Content:
    """Content of a table under a key.

    Parameters
    ----------
    blocks : parts of the table, each an array of shape (rows,) for each column.
    """
    salts = np.frombuffer(hashlib.blake2b(b"salts", key=key, digest_size=24).digest(), np.uint64)
    memory: list[dict[Any, int]] = []
    sums, total, count = np.zeros(0, np.uint64), np.zeros(2, np.uint64), 0
    first: list[int | None] = []
    sketches: list[Digests] = []
    several: list[bool] = []
    with np.errstate(over="ignore"):
        for block in blocks:
            cells = list(block.values())
            if not memory:
                memory, sums = [{} for _ in cells], np.zeros(len(cells), np.uint64)
                first, several = [None] * len(cells), [False] * len(cells)
                sketches = [np.zeros(0, np.uint64)] * (1 + (len(cells) if 2 < len(cells) <= MOST_VIEWS else 0))
            found = np.stack([_cells(values, known, key) for values, known in zip(cells, memory, strict=True)])
            count += found.shape[1]
            if not found.shape[1]:
                continue
            for i, column in enumerate(found):
                start = first[i] = int(column[0]) if first[i] is None else first[i]
                several[i] |= bool((column != np.uint64(start or 0)).any())
            sums += _mixed(found ^ salts[2]).sum(1, dtype=np.uint64)
            rows = _mixed(found).sum(0, dtype=np.uint64)
            total += np.array([_mixed(rows ^ salt).sum(dtype=np.uint64) for salt in salts[:2]])
            for i in range(len(sketches)):
                view = rows if not i else rows - _mixed(found[i - 1])
                sketches[i] = _least(np.append(sketches[i], _mixed(view ^ salts[0])), SMALL if i else LARGE)
    text = f"{count} {len(memory)} {total[0]} {total[1]}".encode()
    digest = hashlib.blake2b(text, key=key, digest_size=16).hexdigest()
    columns = tuple(sorted(int(s) for s, varies in zip(sums, several, strict=True) if varies))
    sketch, *views = sketches or [np.zeros(0, np.uint64)]
    return Content(digest, count, columns, sketch, tuple(views))


def united(contents: Sequence[Content]) -> Content:
    """Content of several tables that are released together, which is like that of each of them."""
    if len(contents) == 1:
        return contents[0]
    sketch = _least(np.concatenate([one.sketch for one in contents]), LARGE)
    return Content(
        "+".join(one.digest for one in contents),
        sum(one.rows for one in contents),
        tuple(sorted(column for one in contents for column in one.columns)),
        sketch,
        tuple(view for one in contents for view in one.views),
    )


def likeness(one: Content, other: Content) -> tuple[float, str]:
    """Share that two tables have in common, and what they share, in words; 0 if they are two tables.

    Tables of one digest are the same rows. Otherwise it is the estimated share of the distinct rows of
    the smaller table that the other has too, with all columns or without one of either; or the share of
    columns whose values are those of a column of the other.
    """
    if one.digest == other.digest:
        return 1.0, "has the rows of"
    rows = _shared(one.sketch, other.sketch, LARGE)
    sides = (one.sketch[:SMALL], *one.views), (other.sketch[:SMALL], *other.views)
    several = len(one.views) > 3 and len(other.views) > 3  # two rows without a column of few are often equal
    pairs = [(view, other.sketch) for view in sides[0][1:]] + [(one.sketch, view) for view in sides[1][1:]]
    pairs += [(a, b) for a in sides[0][1:] for b in sides[1][1:]] if several else []
    most = max((_shared(a[:SMALL], b[:SMALL], SMALL) for a, b in pairs), default=0.0)
    same = len(set(one.columns) & set(other.columns))
    columns = same / max(1, min(len(one.columns), len(other.columns))) if same >= LEAST else 0.0
    kinds = (
        (rows, f"shares about {rows:.0%} of its rows with"),
        (most, f"shares about {most:.0%} of its rows, up to a column, with"),
        (columns, f"shares {same} columns with"),
    )
    return next((kind for kind in kinds if kind[0] >= SHARED), (0.0, ""))


def _shared(one: Digests, other: Digests, most: int) -> float:
    """Estimated share of the distinct rows of the smaller table that the other one has."""
    both = _least(np.concatenate([one, other]), most)
    common = int(np.isin(both, one).astype(int) @ np.isin(both, other))
    sizes = [_distinct(x, most) for x in (one, other)]
    if not common or (common < LEAST and len(both) >= most):
        return 0.0
    return min(1.0, common / len(both) * _distinct(both, most) / min(sizes))


def _distinct(sketch: Digests, most: int) -> float:
    """Number of distinct rows that a sketch stands for."""
    return float(len(sketch)) if len(sketch) < most else (most - 1) * 2.0**64 / (float(sketch[-1]) + 1)


def _least(digests: Digests, most: int) -> Digests:
    return np.unique(digests)[:most]


def _mixed(x: Digests) -> Digests:
    """Bijective mixture of the bits (splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(x ^ (x >> np.uint64(31)))


def _cells(values: npt.NDArray[Any], known: dict[Any, int], key: bytes) -> Digests:
    """Keyed digests of the values of a column; `known` remembers them by value."""
    if len(known) > REMEMBERED:
        known.clear()
    found = []
    for value in values.tolist():
        name = (type(value), value)  # 1, 1.0 and True are equal
        try:
            digest = known.get(name)
        except TypeError:  # an object that has no hash
            name, digest = (str, repr(value)), None
        if digest is None:
            text = _canonical(value).encode("utf-8", "surrogatepass")
            digest = int.from_bytes(hashlib.blake2b(text, key=key, digest_size=8).digest())
            known[name] = digest
        found.append(digest)
    return np.array(found, np.uint64)


def _canonical(value: object) -> str:
    """Text of a value that is the same in all files: of a number, `DIGITS` digits unless it is whole."""
    if value is None:
        return ""
    if isinstance(value, float):
        return _number(value)
    text = IGNORABLE.sub("", unicodedata.normalize("NFKC", str(value))).strip().casefold()
    if text in _MISSING:
        return ""
    if not text.isascii():  # decimal digits of other scripts
        text = "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)
    if _NUMBER.fullmatch(text.replace(",", ".", 1)) and len(text) < 300:
        return _number(float(text.replace(",", ".", 1)))
    return re.sub(r"[t ]00:00:00(\.0+)?$", "", text)


def _number(x: float) -> str:
    if not math.isfinite(x):
        return "" if math.isnan(x) else str(x)
    return str(int(x)) if x == int(x) else f"{x:.{DIGITS}g}"


def _text(digests: Sequence[int] | Digests) -> str:
    return base64.b64encode(np.asarray(digests, "<u8").tobytes()).decode("ascii")


def _digests(text: str) -> Digests:
    return np.frombuffer(base64.b64decode(text, validate=True), "<u8").astype(np.uint64)
