"""Small text files, read whole and then word by word, with the line of an error."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from decimal import Context, Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError


def read_whole(path: str | Path, most: int, remedy: str) -> bytes:
    """The bytes of a file.

    Raises
    ------
    InputError : it has more than `most` bytes.
    OSError : it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise too_large(str(path), most, remedy)
    return data


def too_large(name: str, most: int, remedy: str) -> InputError:
    """An error for a file that is larger than `most` bytes."""
    return InputError(f"the file is larger than {most >> 20} MiB", remedy, source=name)


def decode(data: bytes, name: str) -> str:
    """Bytes as text.

    Raises
    ------
    InputError : they are not UTF-8; the message gives the line.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError("not text", "a UAI, FG, BIF, CNF or CSV file is text", source=name, line=line) from error


def unreadable(error: OSError, name: str, remedy: str) -> InputError:
    """An error for a file that the system cannot read."""
    return InputError(f"cannot be read ({(error.strerror or str(error)).lower()})", remedy, source=name)


DIGITS = Context(prec=20, Emin=-(10**17), Emax=10**17)
"""Decimal arithmetic for numbers that a double holds badly or not at all (1e-320, 1e400)."""

LONG = 2**17
"""Letters of the shortest text that `bulk.py` reads: to load its compiled code takes a while."""

LONGEST = 200
"""Most characters of an error's problem and of its remedy: a number may have thousands of digits."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""Smallest number that a double holds to its full precision."""


class Irregular(Exception):
    """A text that `bulk.py` does not read."""


def is_number(word: str, kind: type[int] | type[float] = float) -> bool:
    """Whether a word is a number of this kind, written without the underscores of Python (1_000)."""
    try:
        kind(word)
    except ValueError:
        return False
    return "_" not in word


def floats(words: Sequence[str]) -> Floats:
    """Read words as numbers, shape (words,).

    Raises
    ------
    ValueError : one is not; `is_number` finds it.
    """
    if "_" in "".join(words):
        raise ValueError
    return np.fromiter(map(float, words), np.float64, len(words))


class Tokens:
    """The words of a text in turn; `#` starts a comment.

    The text is split only as far as words are taken, so that surplus text costs nothing. The line
    of a word is computed only for an error.

    Parameters
    ----------
    text : content of the file.
    source : name of the file, for errors.

    Attributes
    ----------
    at : position of the next word, from 0.
    """

    def __init__(self, text: str, source: str) -> None:
        self._text = re.sub(r"#[^\n]*", "", text) if "#" in text else text
        self._rest, self._source = self._text, source
        self._words: list[str] = []
        self.at = 0

    def __getitem__(self, places: range) -> list[str]:
        """Words that were taken, by their positions."""
        return self._words[places.start : places.stop : places.step]

    def error(self, problem: str, remedy: str, at: int | None = None) -> InputError:
        """An error about the word at a position, by default the last word taken."""
        place = max(0, self.at - 1) if at is None else at
        word = next(itertools.islice(re.finditer(r"\S+", self._text), place, None), None)
        end = len(self._text.rstrip()) if word is None else word.start()
        line = self._text.count("\n", 0, end) + 1
        problem, remedy = (text if len(text) <= LONGEST else text[:LONGEST] + "..." for text in (problem, remedy))
        return InputError(problem, remedy, source=self._source, line=line)

    def take(self, what: str) -> str:
        """Take the next word; `what` names it in errors."""
        if not self._split(1):
            raise self.error(f"the file ends before {what}", "add the rest")
        self.at += 1
        return self._words[self.at - 1]

    def whole(self, what: str, least: int, most: float = math.inf) -> int:
        """Take the next word as a whole number from `least` to `most`."""
        word = self.take(what)
        try:
            value = int(word)
        except ValueError:
            raise self._not_whole(what, word, self.at - 1) from None
        if "_" in word:
            raise self._not_whole(what, word, self.at - 1)
        if not least <= value <= most:
            raise self._outside(what, value, least, most, self.at - 1)
        return value

    def wholes(self, places: range, what: str, least: int, most: float = math.inf) -> list[int]:
        """Words that were taken as whole numbers from `least` to `most`.

        `{}` in `what`, which names a word in errors, stands for its number among them.
        """
        words = self[places]
        try:
            values = _wholes(words)
        except ValueError:
            bad = next(k for k, word in enumerate(words) if not is_number(word, int))
            raise self._not_whole(what.format(bad), words[bad], places[bad]) from None
        if values and (min(values) < least or max(values) > most):
            bad = next(k for k, value in enumerate(values) if not least <= value <= most)
            raise self._outside(what.format(bad), values[bad], least, most, places[bad])
        return values

    def promise(self, count: int, what: str) -> None:
        """Refuse a count that the rest of the file cannot hold, before it takes memory."""
        if not self._split(count):
            raise self.error(what, "but the file ends before that; is it truncated?")

    def many(self, count: int, what: str) -> range:
        """Take the next `count` words and return their positions; `what` names them in errors."""
        self.promise(count, what)
        self.at += count
        return range(self.at - count, self.at)

    def finish(self, what: str) -> None:
        """Refuse further words."""
        if self._split(1):
            raise self.error(
                f"{what} is complete, but {self._words[self.at][:40]!r} follows", "remove the rest", self.at
            )

    def count(self, most: int) -> int:
        """Count the words that are left, up to `most`."""
        self._split(min(most, len(self._words) - self.at + (len(self._rest) + 1) // 2))
        return min(most, len(self._words) - self.at)

    def _not_whole(self, what: str, word: str, at: int) -> InputError:
        return self.error(f"{what} is {word[:40]!r}", "it must be a whole number", at)

    def _outside(self, what: str, value: int, least: int, most: float, at: int) -> InputError:
        span = f"from {least} to {most:.0f}" if most < math.inf else f"at least {least}"
        return self.error(f"{what} is {value}", f"it must be {span}", at)

    def _split(self, count: int) -> bool:
        """Split the text until `count` further words are at hand; False if it has fewer."""
        missing = self.at + count - len(self._words)
        if missing <= 0:
            return True
        if 2 * missing - 1 <= len(self._rest):
            step = min(max(missing, len(self._words), 1024), len(self._rest))
            parts = self._rest.split(None, step)
            self._rest = parts.pop() if len(parts) > step else ""
            self._words += parts
        return len(self._words) - self.at >= count


def log_entries(words: Tokens, tables: Sequence[range]) -> list[Floats]:
    """Compute the natural logarithms of the entries of tables.

    All tables are read at once, which is fast for many small ones.

    Parameters
    ----------
    tables : positions of the entries of each table, at least one entry each.

    Returns
    -------
    One flat array of log-potentials in nats for each table; `-inf` for an entry of 0.

    Raises
    ------
    InputError : an entry is no number, below 0 or not finite, or a table is 0 everywhere; the
        message gives the line.
    """
    if not tables:
        return []
    text = [word for places in tables for word in words[places]]

    def place(k: int) -> int:
        return next(itertools.islice(itertools.chain.from_iterable(tables), k, None))

    try:
        values = floats(text)
    except ValueError:
        bad = next(k for k, word in enumerate(text) if not is_number(word))
        raise words.error(
            f"{text[bad][:40]!r} is not a number", "it must be a number, 0 or above", place(bad)
        ) from None
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(values)
    for k in np.flatnonzero(~((values >= SMALLEST) & np.isfinite(values))).tolist():
        try:
            logs[k] = exact_log(text[k])
        except (InvalidOperation, ValueError):
            raise words.error(
                f"{text[k][:40]!r} in a table", "entries must be finite and not negative", place(k)
            ) from None
    ends = list(itertools.accumulate(map(len, tables)))
    starts = [0, *ends[:-1]]
    impossible = np.maximum.reduceat(logs, starts) == -np.inf
    if impossible.any():
        j = int(impossible.argmax())
        problem = f"every entry of factor {j} is 0, which makes Z = 0"
        raise words.error(problem, "at least one must be above 0", tables[j].start)
    return [logs[start:end] for start, end in zip(starts, ends, strict=True)]


def _wholes(words: Sequence[str]) -> list[int]:
    """Read words as whole numbers; raises as `floats`."""
    if "_" in "".join(words):
        raise ValueError
    return list(map(int, words))


def exact_log(word: str) -> float:
    """Logarithm of a decimal number of any size.

    Raises
    ------
    ValueError : it is not finite.
    InvalidOperation : it is negative, or its exponent is beyond 18 digits.
    """
    value = Decimal(word)
    if not value.is_finite():
        raise ValueError
    return float(value.ln(DIGITS)) if value else -math.inf
