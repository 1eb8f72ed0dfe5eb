"""Locks between processes of one machine: whoever comes second waits, or is refused in one line."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from thesis_cli.base.errors import InputError

POLL = 0.02
"""Seconds between two attempts to take a lock."""

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True)
class Lock:
    """A held lock.

    Attributes
    ----------
    file : the lock file.
    descriptor : descriptor of the open lock file, on which the kernel holds the lock.
    """

    file: Path
    descriptor: int

    @property
    def visible(self) -> bool:
        """Whether the lock file still has its name, so that others see the lock."""
        try:
            named, own = os.lstat(self.file), os.fstat(self.descriptor)
        except OSError:
            return False
        return (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)


@contextmanager
def locked(path: Path, remedy: str = "wait until it has ended", *, wait: float = 0.0) -> Iterator[Lock]:
    """Hold the lock of a file while the body runs.

    The kernel holds the lock (flock) on a file `.NAME.lock` beside the file, and releases it when
    the process ends, however it ends. The lock file contains the number of the holding process;
    only a killed process leaves it behind, and the next holder removes it.

    Parameters
    ----------
    path : file that the lock protects; it need not exist.
    remedy : advice to whoever finds the lock held.
    wait : seconds to wait for the lock, with a message; by default, a held lock is refused at once.

    Raises
    ------
    InputError : another process or thread holds the lock; names the file and the process. The lock
        file is a link or no regular file.
    OSError : the lock file cannot be written, or the file system has no such locks.
    """
    file = path.with_name(f".{path.name}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = _wait(file, path, remedy, wait)
    try:
        with suppress(OSError):
            os.ftruncate(lock.descriptor, 0)
            os.pwrite(lock.descriptor, str(os.getpid()).encode(), 0)
        yield lock
    finally:
        with suppress(OSError):
            if lock.visible:
                file.unlink()  # whoever has opened it meanwhile sees that it has no name left, and tries again
        fcntl.flock(lock.descriptor, fcntl.LOCK_UN)
        os.close(lock.descriptor)


def _wait(file: Path, path: Path, remedy: str, wait: float) -> Lock:
    end, announced = time.monotonic() + wait, False
    while (lock := _taken(file)) is None:
        if time.monotonic() >= end:
            long = f" for {wait:g} s" * (wait > 0)
            raise InputError(f"it is in use by {_holder(file)}{long}", remedy, source=path)
        if not announced:
            logger.info("%s is in use by %s: waiting for up to %g s", path, _holder(file), wait)
            announced = True
        time.sleep(POLL)
    return lock


def _taken(file: Path) -> Lock | None:
    """The lock, or None if another holds it."""
    while True:
        descriptor = _opened(file)
        lock = Lock(file, descriptor)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _no_lock_file(file)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.visible:
                return lock
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            os.close(descriptor)
            raise OSError(error.errno, error.strerror, str(file)) from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the holder before has removed it meanwhile


def _opened(file: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(file, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _no_lock_file(file) from None
        raise
    with suppress(OSError):  # it may belong to another user
        os.fchmod(descriptor, 0o666)  # any user who may write to the folder can take the lock
    return descriptor


def _no_lock_file(file: Path) -> InputError:
    return InputError("it is a link or no regular file", "only thesis-cli may make files of this name", source=file)


def _holder(file: Path) -> str:
    """Process that holds the lock, if its number is there already."""
    with suppress(OSError, ValueError):
        return f"process {int(file.read_text())}"
    return "another process"
