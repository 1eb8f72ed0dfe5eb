"""Files: which may be read and written, written whole or not at all, what JSON records hold, and locks between
processes of one machine: whoever comes second waits, or is refused in one line.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import logging
import math
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING

from thesis_cli.base.errors import InputError

if TYPE_CHECKING:
    from filelock import BaseFileLock

_URL = re.compile(r"[a-z][\w+.-]+:/|(sqlite|postgres\w*)(\+\w+)?:", re.IGNORECASE)
"""Beginning of a URL, and of one that lost a slash as a `Path`."""

MAGIC = b"\x93NUMPY"
"""The first bytes of an NPY file."""

POLL = 0.02
"""Seconds between two attempts to take a lock."""

PRIVATE, BY_UMASK = 0o600, -1
"""Modes of a lock file."""

Content = str | bytes | Iterator[str]
"""What is written into a file; an iterator gives it in parts."""

logger = logging.getLogger("thesis_cli")


def write_atomic(files: Mapping[Path, Content]) -> None:
    """Write files so that a reader sees the old content or the new, whatever dies meanwhile.

    None takes its name before all are on the disk.

    Raises
    ------
    OSError : naming the file that could not be written; what was there before is still there.
    """
    with ExitStack() as stack:
        staged = [(path, stack.enter_context(_staged(path))) for path in files]
        for (path, file), data in zip(staged, files.values(), strict=True):
            with _naming(path):
                for part in [data] if isinstance(data, str | bytes) else data:
                    file.write(part.encode() if isinstance(part, str) else part)
                _to_disk(file)
        for path, file in staged:
            os.replace(file.name, path)


@contextmanager
def atomic(path: Path, keep_equal: bool = False) -> Iterator[IO[bytes]]:
    """`write_atomic` of a file that is too large for memory: what the body writes takes its name if
    nothing is raised.

    Parameters
    ----------
    keep_equal : leave a file untouched that has this very content.
    """
    with _staged(path) as file:
        with _naming(path):
            yield file
            _to_disk(file)
        if not (keep_equal and path.is_file() and filecmp.cmp(file.name, path, shallow=False)):
            os.replace(file.name, path)


@contextmanager
def _staged(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file beside a path, gone afterwards unless it was renamed."""
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115
    try:
        yield file
    finally:
        with suppress(OSError):  # what a full disk refused before
            file.close()
        Path(file.name).unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fchmod(file.fileno(), default_mode())
    os.fsync(file.fileno())


def default_mode() -> int:
    """Permissions that the process gives to new files."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def open_regular(path: str | Path, remedy: str = "", flags: int = 0) -> BufferedReader:
    """Open a regular file for reading; never waits for a pipe or a device.

    Parameters
    ----------
    flags : further flags of `os.open`.

    Raises
    ------
    InputError : it is no regular file.
    OSError : it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError("it is no regular file", remedy, source=path)
    return open(descriptor, "rb")


def is_npy(head: bytes) -> bool:
    """Whether a file with these first bytes is in the NPY format."""
    return head.startswith(MAGIC)


def is_url(path: str | Path) -> bool:
    """Whether a text begins as the URL of a database or of a server does."""
    return _URL.match(str(path)) is not None


def check_no_url(option: str, path: str | Path) -> None:
    """Refuse a URL as a file to write; the message has nothing of it, for it may hold a password.

    Raises
    ------
    InputError : it begins as the URL of a database or of a server does.
    """
    if is_url(path):
        raise InputError(f"{option} is a URL", "give the name of a file")


def check_writable(option: str, path: Path, suffix: str = "", is_folder: bool = False) -> None:
    """Refuse a file to write that has another suffix, is no regular file, or is where nothing can
    be written.

    Parameters
    ----------
    option : that names the file, for messages.
    suffix : such as `.csv`; empty if the file may have any.
    is_folder : whether it is to be a folder instead.

    Raises
    ------
    InputError : as above, or it is a URL.
    """
    check_no_url(option, path)
    if suffix and path.suffix.lower() != suffix:
        raise InputError(f"{option} {path} does not end in {suffix}", f"give a name that ends in {suffix}")
    if is_folder and path.exists() and not path.is_dir():
        raise InputError(f"{option} {path} is no folder", "give the name of a folder")
    if not is_folder and path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no regular file"
        raise InputError(f"{option} {path} is {kind}", "give the name of a file")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        tempfile.TemporaryFile(dir=folder).close()  # permissions alone do not show a read-only disk, nor bind root
    except OSError:
        raise InputError(f"{option} {path}: {folder} cannot be written to", f"give another {option}") from None


def to_json(record: object) -> str:
    """Indented JSON; numbers that JSON has no word for (inf, nan) become null."""
    return json.dumps(finite(record), indent=2, ensure_ascii=False) + "\n"


def describes(record: Path, what: Mapping[str, object]) -> bool:
    """Whether a record describes this very computation, whenever and wherever it was run."""
    try:
        old = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(old, dict) and all(old.get(k) == v for k, v in json.loads(to_json(what)).items())


def finite(value: object) -> object:
    """The same record with None for inf and nan, which JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value


def file_identity(path: str | Path) -> str | None:
    """Digest of device, number and time of change of a file, which its links and its other names
    share; None if there is no such file.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    text = f"{found.st_dev}:{found.st_ino}:{found.st_mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Lock:
    """A held lock.

    Attributes
    ----------
    file : the lock file.
    inode : device and number of that file.
    """

    file: Path
    inode: tuple[int, int] | None

    @property
    def visible(self) -> bool:
        """Whether the lock file still has its name, so that others see the lock."""
        return self.inode is not None and _inode(self.file) == self.inode


@contextmanager
def locked(
    path: Path, remedy: str = "wait until it has ended", *, wait: float = 0.0, private: bool = False
) -> Iterator[Lock]:
    """Hold the lock of a file while the body runs.

    `filelock` holds it on a file `.NAME.lock` beside the file; the system releases it when the
    process ends, however it ends. The lock file contains the number of the holding process; only a
    killed process leaves it behind, and the next holder removes it.

    Parameters
    ----------
    path : file that the lock protects; it need not exist.
    remedy : advice to whoever finds the lock held.
    wait : seconds to wait for the lock, with a message; by default, a held lock is refused at once.
    private : whether nobody else may read the lock file, as beside private data; by default the
        umask decides.

    Raises
    ------
    InputError : another process or thread holds the lock; names the file and the process. The lock
        file is a link or no regular file, or is another user's.
    OSError : the lock file cannot be written, or the file system has no such locks.
    """
    from filelock import FileLock

    file = path.with_name(f".{path.name}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    _check_lock(file)
    mode = PRIVATE if private else BY_UMASK
    lock = FileLock(file, mode=mode, thread_local=False, poll_interval=POLL, on_acquired=_sign)
    _acquire(lock, file, path, remedy, wait)
    try:
        _check_lock(file)
        held = Lock(file, _inode(file))
        try:
            yield held
        finally:
            with suppress(OSError):
                if held.visible:
                    file.unlink()  # whoever has opened it meanwhile sees that it has no name left, and tries again
    finally:
        lock.release()


def _acquire(lock: BaseFileLock, file: Path, path: Path, remedy: str, wait: float) -> None:
    from filelock import Timeout

    try:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            if not wait:
                raise
            logger.info("%s is in use by %s: waiting for up to %g s", path, _holder(file), wait)
            lock.acquire(timeout=wait)
    except Timeout:
        long = f" for {wait:g} s" * (wait > 0)
        raise InputError(f"it is in use by {_holder(file)}{long}", remedy, source=path) from None
    except PermissionError:
        if not file.exists():
            raise
        raise InputError("it is another user's", "wait until that user's process has ended", source=file) from None


def _sign(descriptor: int) -> None:
    """Write the number of this process into the lock file."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())


def _check_lock(file: Path) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(file).st_mode):
            raise InputError(
                "it is a link or no regular file", "only thesis-cli may make files of this name", source=file
            )


def _inode(file: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _holder(file: Path) -> str:
    """Process that holds the lock, if its number is there already."""
    with suppress(OSError, ValueError):
        return f"process {int(file.read_text())}"
    return "another process"
