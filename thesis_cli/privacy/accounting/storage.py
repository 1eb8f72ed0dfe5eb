"""Where the entries of a ledger are kept: a file here, a database in `postgresql`.

A storage knows nothing of budgets. It gives a ledger the entries that are there, and appends one while
no other process does.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import Lock, locked, open_regular
from thesis_cli.privacy.accounting.chain import Book, parse, unique_keys

Append = Callable[[Book], None]
"""Stores a book that has one entry more than the one that was read."""

loads = partial(json.loads, object_pairs_hook=unique_keys)

REMEDY = "it must be a ledger that thesis-cli wrote"
AGAIN = "run the command again when that process has ended"
FINAL = "a ledger that may not change takes no release; nothing is spent"


class Storage(ABC):
    """Entries of a ledger.

    Attributes
    ----------
    source : file or URL, for messages; it has no password.
    """

    source: Path | str

    @abstractmethod
    def read(self) -> Book | None:
        """Entries, whether or not their chain is whole; None if there is no ledger.

        Raises
        ------
        InputError : what is there is no ledger, or damaged, or cannot be reached.
        OSError : a file cannot be read.
        """

    @abstractmethod
    def check_writable(self) -> None:
        """Refuse (`InputError`) a ledger that is read-only, or that others may replace."""

    @abstractmethod
    def locked(self, wait: float) -> AbstractContextManager[tuple[Book, Append]]:
        """Exclude other processes from appending while the body runs; yields the entries.

        What was appended is stored for good when the context ends, and not before.

        Parameters
        ----------
        wait : seconds to wait for a process that uses the ledger.

        Raises
        ------
        InputError : the ledger is in use for longer, or is not safe from others; as for `read`.
        OSError : a file cannot be written.
        """

    def _error(self, problem: str, remedy: str) -> InputError:
        return InputError(problem, remedy, source=self.source)

    def _parsed(self, load: Callable[[], Any]) -> Book:
        """Entries of what `load` reads."""
        try:
            return parse(load())
        except json.JSONDecodeError as error:
            raise InputError(f"it is not JSON: {error.msg}", REMEDY, source=self.source, line=error.lineno) from None
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError):  # also of text that is not UTF-8
            raise self._error("it is not a privacy ledger", REMEDY) from None


class FileStorage(Storage):
    """A JSON file that people can read; a lock excludes other processes of the machine."""

    def __init__(self, path: str | Path) -> None:
        self.source: Path = Path(path).resolve()

    def read(self) -> Book | None:
        """See `Storage.read`; a file that is no regular one, or has several names, is refused."""
        text = self._read()
        return None if text is None else self._parsed(lambda: loads(text.decode()))

    def check_writable(self) -> None:
        """Refuse a ledger that is read-only, and a folder in which anybody may replace it or its lock."""
        parent = self.source.parent
        try:
            file, folder = (os.stat(path).st_mode for path in (self.source, parent))
        except FileNotFoundError:
            file, folder = 0o600, parent.stat().st_mode if parent.exists() else 0o700
        if not (file & 0o222) or (self.source.exists() and not os.access(self.source, os.W_OK)):
            raise self._error("it is read-only", FINAL)
        if folder & stat.S_IWOTH and not folder & stat.S_ISVTX:
            problem = f"all users may replace files in {parent}, the ledger and its lock among them"
            raise self._error(problem, "give a ledger in a folder that others cannot write, or set its sticky bit")

    @contextmanager
    def locked(self, wait: float) -> Iterator[tuple[Book, Append]]:
        """See `Storage.locked`."""
        with locked(self.source, AGAIN, wait=wait, private=True) as lock:
            if os.lstat(lock.file).st_uid != os.geteuid():
                raise self._error(
                    f"its lock {lock.file} is another user's",
                    "wait until that user's process has ended; a lock of yours holds",
                )
            yield self.read() or Book(), lambda book: self._write(book, lock)

    def _read(self) -> bytes | None:
        """Content of the file, or None if there is none; never waits for a pipe or a device."""
        try:
            file = open_regular(self.source, REMEDY, os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        with file:
            names = os.fstat(file.fileno()).st_nlink
            if names > 1:
                problem = f"it has {names} names (hard links), and a spend would reach only one of them"
                raise self._error(problem, "give a ledger that has one name; a symbolic link to it is allowed")
            return file.read()

    def _write(self, book: Book, lock: Lock) -> None:
        """Replace the file; whenever this stops, either the old file or the new one is there.

        The lock is held, so that temporary files of this ledger are those of killed processes.
        """
        folder, name = self.source.parent, self.source.name
        for stale in folder.glob(f".{name}.{'[0-9a-f]' * 16}.tmp"):
            stale.unlink(missing_ok=True)
        temporary = folder / f".{name}.{secrets.token_hex(8)}.tmp"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(book.to_json().encode("utf-8", "replace"))
                file.flush()
                os.fchmod(file.fileno(), self._mode())
                os.fsync(file.fileno())
            if not lock.visible:
                raise self._error("its lock was removed meanwhile, and nothing is spent", "run the command again")
            os.replace(temporary, self.source)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.source)) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _mode(self) -> int:
        """Permissions of the file, without those of others, since it has a key; the owner's if there is none."""
        with suppress(OSError):
            return stat.S_IMODE(os.lstat(self.source).st_mode) & 0o770
        return 0o600
