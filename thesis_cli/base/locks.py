"""Locks between processes of one machine: whoever comes second waits, or is refused in one line."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError

if TYPE_CHECKING:
    from filelock import BaseFileLock

POLL = 0.02
"""Seconds between two attempts to take a lock."""

PRIVATE, BY_UMASK = 0o600, -1
"""Modes of a lock file."""

logger = logging.getLogger("thesis_cli")


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
    _check_regular(file)
    mode = PRIVATE if private else BY_UMASK
    lock = FileLock(file, mode=mode, thread_local=False, poll_interval=POLL, on_acquired=_sign)
    _acquire(lock, file, path, remedy, wait)
    try:
        _check_regular(file)
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


def _check_regular(file: Path) -> None:
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
