"""Names of accounts: which are the same name, and which only look the same.

Two names are one account if their keys are equal (`account_key`). Names with other keys that a reader
could take for one another have equal skeletons (`skeleton`), after UTS 39 of Unicode; the ledger asks
before it opens an account beside one that looks the same.
"""

from __future__ import annotations

import re
import unicodedata

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
