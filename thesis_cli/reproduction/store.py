"""Results of tasks on disk: records that each process appends to a segment, a file of its own.

A record is an empty line, one line of JSON with the task's key, the length of its text and a digest,
then the text: the result's CSV with its heading, or the error of a task that failed. A record that
is torn or damaged does not count, so its task is computed again. Earlier versions wrote each result
to `ab/ab...csv`, a record without key and length; these are read, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

SEGMENTS = "segments"
"""Folder of the segments, in the folder of a store."""
SYNCED = 0.5
"""Most seconds between two calls of fsync by a process that adds records."""
LIVE, DROPPED = b"# {", b"-"
"""Beginning of a record, and the byte that replaces its first one when it is dropped."""


@dataclass(frozen=True)
class Stored:
    """A record: text, fingerprint of the code (empty for an error), and seconds."""

    text: str
    code: str
    seconds: float


class _Place(NamedTuple):
    """Where a record is, and what is kept of it in memory."""

    file: Path
    start: int
    code: str
    when: float


class _Record(NamedTuple):
    start: int
    end: int
    key: str
    code: str
    seconds: float
    when: float
    text: str


class Store:
    """The records in a folder; `look` reads those that were added since.

    Attributes
    ----------
    results : place of the result of each task that has one, by the task's key.
    errors : place of the error of the last try that failed, by the task's key.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results: dict[str, _Place] = {}
        self.errors: dict[str, _Place] = {}
        self._read: dict[Path, int] = {}

    def look(self) -> None:
        for path, size in self._files(old=not self._read):
            if size > self._read.setdefault(path, 0):
                with open(path, "rb") as file:
                    file.seek(self._read[path])
                    for start, end, key, code, _, when, _ in _records(file, path):
                        if start >= size:  # another process adds records faster than they are read
                            break
                        found = self.results if code else self.errors
                        if key not in found or when >= found[key].when:
                            found[key] = _Place(path, start, code, when)
                        self._read[path] = end

    def result(self, key: str) -> Stored | None:
        """A result; None if there is none, or if it was damaged."""
        return _stored(self.results.get(key))

    def error(self, key: str) -> str:
        """The error of a task's last try; empty if there is none."""
        found = _stored(self.errors.get(key))
        return found.text if found else ""

    def drop(self, keys: Collection[str]) -> None:
        """Forget all records of some tasks: a byte of each is overwritten, as other processes may append."""
        for path, _ in self._files(old=True) if keys else ():
            with open(path, "r+b", buffering=0) as marks, open(path, "rb") as file:
                for record in _records(file, path):
                    if record.key in keys:
                        os.pwrite(marks.fileno(), DROPPED, record.start)
        for key in keys:
            self.results.pop(key, None)
            self.errors.pop(key, None)

    def _files(self, old: bool) -> Iterator[tuple[Path, int]]:
        """Segments and their sizes, and files of earlier versions, which do not grow, if `old`."""
        for pair in _entries(self.folder) if old else ():
            if len(pair.name) == 2:
                yield from ((Path(f.path), f.stat().st_size) for f in _entries(pair.path) if f.name.endswith(".csv"))
        yield from ((Path(f.path), f.stat().st_size) for f in _entries(self.folder / SEGMENTS) if f.is_file())


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """Entries of a folder that are not hidden, by name."""
    try:
        found = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((each for each in found if not each.name.startswith(".")), key=lambda each: each.name)


def _records(file: IO[bytes], path: Path) -> Iterator[_Record]:
    """Records that are whole."""
    start = file.tell()
    old = {"key": path.stem, "when": 0.0, "length": -1}
    while line := file.readline():
        end = start + len(line)
        if line.startswith(LIVE):
            try:
                meta = old | json.loads(line[2:].decode())
                text = file.read(meta["length"])
                if hashlib.sha256(text).hexdigest() == meta["sha256"]:
                    key, code = str(meta["key"]), str(meta["code"])
                    seconds, when = float(meta["seconds"]), float(meta["when"])
                    yield _Record(start, start := end + len(text), key, code, seconds, when, text.decode())
                    continue
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError):
                pass
            file.seek(end)
        start = end


def _stored(place: _Place | None) -> Stored | None:
    if place:
        with open(place.file, "rb") as file:
            file.seek(place.start)
            record = next(_records(file, place.file), None)
        if record and record.start == place.start:
            return Stored(record.text, record.code, record.seconds)
    return None


def append(folder: Path, key: str, text: str, code: str, seconds: float, parameters: Mapping[str, Any]) -> None:
    """Add a result to this process's segment of a store; an error if `code` is empty.

    A process that is killed loses nothing that it has added. If the machine stops, what was added in
    the last half second may be lost.

    Raises
    ------
    OSError : naming the file that could not be written.
    """
    data = text.encode()
    meta = {
        "key": key,
        "length": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "code": code,
        "seconds": round(seconds, 3),
        "when": round(time.time(), 3),
        "parameters": parameters,
    }
    segment = _segment(folder)
    segment.write(b"\n# %b\n%b" % (json.dumps(meta).encode(), data))


@cache
def _segment(folder: Path) -> _Segment:
    return _Segment(folder / SEGMENTS)


class _Segment:
    """A file that this process alone appends to."""

    def __init__(self, folder: Path) -> None:
        self._path = self._folder = folder
        self._file, self._process, self._synced = -1, 0, 0.0

    def write(self, record: bytes) -> None:
        try:
            if self._process != os.getpid() or not os.fstat(self._file).st_nlink:  # forked, or the file was removed
                self._open()
            while record:
                record = record[os.write(self._file, record) :]
            if time.monotonic() - self._synced > SYNCED:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            self._process = 0  # it may have no room for more
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path = self._folder / f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        self._process = os.getpid()
