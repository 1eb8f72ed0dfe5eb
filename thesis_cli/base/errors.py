"""What users are told: errors of input, one line each, and how numbers, names and secrets read there."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar


class InputError(ValueError):
    """Bad input: says where it is, what is wrong and what would be right.

    Parameters
    ----------
    problem : what is wrong.
    remedy : what would be right.
    source : file (or other name of the input) that is at fault.
    line : 1-based line in that file.
    """

    def __init__(self, problem: str, remedy: str = "", *, source: str | Path = "", line: int | None = None) -> None:
        self.problem, self.remedy, self.source, self.line = problem, remedy, str(source), line
        place = f"{self.source}:{line}: " if line is not None else f"{self.source}: " if self.source else ""
        super().__init__(place + problem + (f"; {remedy}" if remedy else ""))

    def at(self, source: str | Path) -> InputError:
        """The same complaint about an input that it does not name yet."""
        return self if self.source else type(self)(self.problem, self.remedy, source=source)


class NoConfiguration(InputError):
    """Every configuration has log-potential -inf."""

    def __init__(
        self,
        problem: str = "no configuration is possible (Z = 0)",
        remedy: str = "some configuration must have a finite log-potential",
        *,
        source: str | Path = "",
    ) -> None:
        super().__init__(problem, remedy, source=source)


class ModelTooLarge(InputError):
    """The model is well formed, but beyond what the method asked for can take.

    Parameters
    ----------
    memory, seconds, width : what the best plan of an exact algorithm would take: bytes, predicted time and
        variables of its largest table; 0 and nan if that is not known.
    """

    def __init__(
        self,
        problem: str,
        remedy: str = "",
        *,
        source: str | Path = "",
        memory: int = 0,
        seconds: float = math.nan,
        width: int = 0,
    ) -> None:
        super().__init__(problem, remedy, source=source)
        self.memory, self.seconds, self.width = memory, seconds, width

    @classmethod
    def best(cls, refusals: Sequence[ModelTooLarge]) -> ModelTooLarge:
        """The refusal of several whose plan needs least memory, or the last if none has a plan."""
        return min((each for each in refusals if each.memory), key=lambda each: each.memory, default=refusals[-1])


class WorkFailed(RuntimeError):
    """The input was good, the work was not: one line that says what failed."""


class OutOfTime(WorkFailed):
    """The work did not end by its deadline, and has no answer yet."""


class UnsuitableModel(InputError):
    """A model of a form that a solver does not take; the remedy names one that could."""


@contextmanager
def about(source: str | Path) -> Iterator[None]:
    """Add the name of an input to errors that lack one."""
    try:
        yield
    except InputError as error:
        raise error.at(source) from error


def describe(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, MemoryError):
        return f"out of memory{f' ({error})' if str(error) else ''}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}" if error.filename else error.strerror.lower()
    return str(error)


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
