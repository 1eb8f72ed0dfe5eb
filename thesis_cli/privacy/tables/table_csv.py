"""CSV as private tables: files, gzip, and standard input, with commas, semicolons or tabs."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import IO, Any
from weakref import WeakKeyDictionary

from thesis_cli.base.errors import InputError, is_number
from thesis_cli.privacy.tables.table_base import Block, Table, objects, unique_columns

STANDARD_INPUT = "-"
DELIMITERS = ",;\t"
"""Delimiters that are detected in the header."""

LONGEST_LINE = 2**24
"""Largest number of characters in a line."""

MOST_UNPACKED = 2**38
"""Largest number of characters that a file in gzip may hold."""

IN_MEMORY = 2**26
"""Bytes of standard input that are kept in memory; more go to a file without a name."""

GZIP = b"\x1f\x8b"  # no text in UTF-8 begins so
DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)
_spools: WeakKeyDictionary[Any, IO[bytes]] = WeakKeyDictionary()


class CsvTable(Table):
    """Separated values in UTF-8, with a line of column names; blank lines are skipped.

    Parameters
    ----------
    path : file, plain or in gzip; `-` is standard input, which is kept in memory or in a temporary
        file that has no name and that nobody else can open.
    names : public names of columns, of a schema. If the first line has all of them, it is the line
        of names even where names are numbers.
    delimiter : character between cells, or `tab`; by default detected from the first line, never
        from values.

    Raises
    ------
    InputError : the file cannot be read, is empty, or its first line is none of names.
    """

    def __init__(self, path: str, names: Sequence[str] = (), delimiter: str = "") -> None:
        self._path = path
        source = "<standard input>" if path == STANDARD_INPUT else path
        self.source = source
        with self._text() as lines:
            first = _first_record(lines)
        if not first:
            raise InputError("the file is empty", "it must have a line of column names, then rows", source=source)
        self._delimiter = given_delimiter(delimiter) or _detected(first, names, source)
        with self._reader() as reader:
            header: list[str] = next(filter(None, reader), [])
        known = bool(names) and set(names) <= set(header)
        if delimiter and not known and self._delimiter not in first and (others := _delimiters(first)):
            problem = f"the header has {_listed(others)} and no {_listed([self._delimiter])}"
            raise InputError(problem, "give another --delimiter, or leave it out", source=source, line=1)
        if any(map(is_number, header)) and not known:
            raise InputError(
                "the header has a number in it",
                "the first line must be column names; names that are numbers must be those of the schema",
                source=source,
                line=1,
            )
        super().__init__(source, unique_columns(dict.fromkeys(header, "text"), header, source))

    @contextmanager
    def _text(self) -> Iterator[Iterator[str]]:
        """Lines of the text."""
        try:
            with _opened(self._path) as (file, unpacked):
                yield _lines(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), unpacked, self.source)
        except DAMAGE:
            raise InputError("it is damaged", "it must be a whole file in gzip", source=self.source) from None
        except OSError as error:
            raise InputError(f"it cannot be read ({error.strerror})", source=self.source) from None
        except UnicodeDecodeError:
            raise InputError(
                "it is not UTF-8", "it must be CSV in UTF-8", source=self.source, line=self._not_utf8()
            ) from None

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        with self._text() as lines:
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
            try:
                yield reader
            except csv.Error as error:
                problem, remedy = str(error), "it must be CSV"
                if "field limit" in problem:
                    problem = f"a cell has more than {csv.field_size_limit():,} characters"
                    remedy = "cells must be shorter; a quotation mark may lack its partner"
                raise InputError(problem, remedy, source=self.source, line=reader.line_num) from None

    def _not_utf8(self) -> int | None:
        """Number of the first line that is not UTF-8."""
        with suppress(*DAMAGE, OSError), _opened(self._path) as (file, _):
            for number, line in enumerate(iter(partial(file.readline, 4 * LONGEST_LINE), b""), 1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return number
        return None

    def _blocks(self, size: int, names: tuple[str, ...]) -> Iterator[Block]:
        widths = {0, len(self.columns)}
        places = {name: list(self.columns).index(name) for name in names}
        with self._reader() as reader:
            next(filter(None, reader), None)
            while part := list(islice(reader, size)):
                if not widths.issuperset(map(len, part)):
                    self._refuse_ragged()
                part = [row for row in part if row]
                yield len(part), {name: objects([row[i] for row in part]) for name, i in places.items()}

    def _refuse_ragged(self) -> None:
        """Raise the error; a second pass finds the line of the first row of another width."""
        width = len(self.columns)
        with self._reader() as reader:
            cells = next((len(row) for row in reader if len(row) not in (0, width)), 0)
            problem = f"{cells} cell{'s' * (cells != 1)} where the header has {width}"
            raise InputError(problem, "every row must have as many", source=self.source, line=reader.line_num)


def given_delimiter(text: str) -> str:
    """The character that `--delimiter` names; `InputError` if it names none."""
    found = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}.get(text, text)
    if found and (len(found) > 1 or found.isalnum() or found in '"\r\n\0\ufeff'):
        raise InputError(f"--delimiter is {text[:20]!r}", "it must be one character such as ';', or tab")
    return found


def _detected(first: str, names: Sequence[str], source: str) -> str:
    """Delimiter of the line of names: the one that gives the schema's names, or the only one in
    it.
    """
    found = _delimiters(first) or [","]
    for character in dict.fromkeys([",", *found]) if names else ():
        if set(names) <= set(_cells(first, character)):
            return character
    if len(found) > 1:
        raise InputError(f"the header has {_listed(found)}", "give --delimiter", source=source, line=1)
    return found[0]


def _delimiters(first: str) -> list[str]:
    """The characters of a line of names, outside of quotation marks, that may be its delimiter."""
    unquoted = re.sub(r'"(?:[^"]|"")*"', "", first)
    return [character for character in DELIMITERS if character in unquoted]


def _listed(characters: Sequence[str]) -> str:
    return " and ".join("a tab" if character == "\t" else repr(character) for character in characters)


def _cells(first: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []


def _first_record(lines: Iterator[str]) -> str:
    """Text of the first line that is not blank, and of those that its quoted names go on in."""
    found = ""
    for line in lines:
        found += line if found or line.strip("\r\n") else ""
        if found and (found.count('"') % 2 == 0 or len(found) > LONGEST_LINE):
            break
    return found


def _lines(text: io.TextIOWrapper, unpacked: bool, source: str) -> Iterator[str]:
    """Lines of bounded length, and of bounded sum if they are unpacked: a small file may hold
    any number.
    """
    total = 0
    for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE + 1), ""), 1):
        total += len(line)
        if len(line) > LONGEST_LINE:
            problem = f"the line has more than {LONGEST_LINE:,} characters"
            raise InputError(problem, "every row must be a line", source=source, line=number)
        if unpacked and total > MOST_UNPACKED:
            raise InputError(f"it holds more than {MOST_UNPACKED:,} characters", "unpack it", source=source)
        yield line


@contextmanager
def _opened(path: str) -> Iterator[tuple[Any, bool]]:
    """The bytes of a file or of standard input, and whether they were in gzip; the content shows
    it.
    """
    with open(path, "rb") if path != STANDARD_INPUT else io.BufferedReader(_Again(_spool())) as file:
        packed = file.peek(2)[:2] == GZIP
        if packed:
            with gzip.open(file) as inner:
                yield inner, True
        else:
            yield file, False


def _spool() -> IO[bytes]:
    """Everything on standard input, which can be read once, for the passes over it."""
    if sys.stdin is None:
        raise InputError("there is no standard input", "give a file", source=STANDARD_INPUT)
    kept = _spools.get(sys.stdin)
    if kept is None:
        kept = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
        while part := sys.stdin.buffer.read(2**20):
            kept.write(part)
        _spools[sys.stdin] = kept
    return kept


class _Again(io.RawIOBase):
    """A pass over a spool, with a place of its own."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool, self._at = spool, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._spool.seek(self._at, os.SEEK_SET)
        part = self._spool.read(len(buffer))
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)
