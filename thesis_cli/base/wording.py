"""Parts of messages: numbers with their units, and the nearest of some names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_PASSWORD = re.compile(r"^([a-z][\w+]*://[^:/@]*):.*@", re.IGNORECASE | re.DOTALL)
_PARAMETERS = re.compile(r"^([a-z][\w+]*://[^?]*)\?.*", re.IGNORECASE | re.DOTALL)
_MALFORMED = re.compile(r"^((?:sqlite|postgres\w*)(?:\+\w+)?):(?!//).*", re.IGNORECASE | re.DOTALL)

LISTED = 8
"""Names that a message lists."""


def counted(number: float, what: str, form: str = ",") -> str:
    """`1 state`, `1,000 states`."""
    text = format(number, form)
    return f"{text} {what}{'s' * (text != '1')}"


def nearest(name: str, names: Iterable[str], otherwise: str = "it must be one of") -> str:
    """A remedy that names the likeliest of some names, or lists them where none is like."""
    known = list(names)
    lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), lower, 1)
    more = ", ..." if len(known) > LISTED else ""
    return f"{lower[close[0]]!r} is nearest" if close else f"{otherwise} {', '.join(map(repr, known[:LISTED]))}{more}"


def without_secrets(text: str) -> str:
    """The text; if it is the URL of a database, `***` for its password and for its parameters.

    >>> without_secrets("postgresql://reader:secret@host/survey?sslkey=k")
    'postgresql://reader:***@host/survey?***'
    """
    found = _PARAMETERS.sub(r"\1?***", _PASSWORD.sub(r"\1:***@", text))
    return _MALFORMED.sub(r"\1:***", found)
