"""Parts of messages: numbers with their units, and the nearest of some names; and a mark for code that only shows."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def presentation(method: Method) -> Method:
    """Mark a function or method that only prints or draws: stored results do not depend on it."""
    return method


_PASSWORD = re.compile(r"^([a-z][\w+]*://[^:/@]*):.*@", re.IGNORECASE | re.DOTALL)
_PARAMETERS = re.compile(r"^([a-z][\w+]*://[^?]*)\?.*", re.IGNORECASE | re.DOTALL)
_MALFORMED = re.compile(r"^((?:sqlite|postgres\w*)(?:\+\w+)?):(?!//).*", re.IGNORECASE | re.DOTALL)
_KEY = re.compile(r"""\b((?:ssl)?pass(?:word|wd)?|pwd)(\s*=\s*)('[^']*'|"[^"]*"|[^\s;&,)]+)""", re.IGNORECASE)
_END = r"(?=: |; |, |[)\"']|\s*$)"
"""The end of a URL within a message."""
_SAID = (
    (re.compile(r"([a-z][\w+]*://[^\s:/@]*):(?=\S).*@", re.IGNORECASE), r"\1:***@"),
    (re.compile(rf"([a-z][\w+]*://(?:(?!: |; )[^?\n])*)\?.*?{_END}", re.IGNORECASE | re.MULTILINE), r"\1?***"),
    (
        re.compile(rf"\b((?:sqlite|postgres\w*)(?:\+\w+)?):(?!//)(?=\S).*?{_END}", re.IGNORECASE | re.MULTILINE),
        r"\1:***",
    ),
    (re.compile(r"(?<![\w/.])([\w.%+-]+):(?!//)[^\s:@]+@(?=[\w.-])"), r"\1:***@"),
)

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


def is_number(text: str) -> bool:
    """Whether a text is a number as Python reads it, infinite and nan included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def without_secrets(text: str) -> str:
    """The text; if it is the URL of a database, `***` for its password and for its parameters.

    A password of the form `password=...` is `***` wherever it stands.

    >>> without_secrets("postgresql://reader:secret@host/survey?sslkey=k")
    'postgresql://reader:***@host/survey?***'
    """
    found = _PARAMETERS.sub(r"\1?***", _PASSWORD.sub(r"\1:***@", text))
    return _KEY.sub(r"\1\2***", _MALFORMED.sub(r"\1:***", found))


def censored(message: str) -> str:
    """A message in which URLs of databases have no password and no parameters, wherever they stand.

    >>> censored("no such file: postgresql://reader:secret@host/survey?sslkey=k; give another")
    'no such file: postgresql://reader:***@host/survey?***; give another'
    """
    for pattern, shown in _SAID:
        message = pattern.sub(shown, message)
    return _KEY.sub(r"\1\2***", message)
