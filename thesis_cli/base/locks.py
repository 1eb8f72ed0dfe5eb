"""Locks between processes of one machine: whoever comes second is refused at once, in one line."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from thesis_cli.base.errors import InputError


@contextmanager
def locked(path: Path, remedy: str = "wait until it has ended") -> Iterator[None]:
    """Hold the lock of a file while the body runs.

    The kernel holds the lock (flock) on a file `.NAME.lock` beside the file, and releases it when
    the process ends, however it ends. The lock file contains the number of the holding process;
    only a killed process leaves it behind, and the next holder removes it.

    Parameters
    ----------
    path : file that the lock protects; it need not exist.
    remedy : advice to whoever finds the lock held.

    Raises
    ------
    InputError : another process or thread holds the lock; names the file and the process.
    OSError : the lock file cannot be written, or the file system has no such locks.
    """
    from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

    file = path.with_name(f".{path.name}.lock")
    # Any user who may write to the folder can take the lock.
    lock = cast("BaseFileLock", FileLock(file, mode=0o666))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(f"it is in use by {_holder(file)}", remedy, source=path) from None
    if isinstance(lock, SoftFileLock):  # the fallback without flock, which outlives a killed process
        lock.release()
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK), str(file))
    try:
        with suppress(OSError):
            file.write_text(str(os.getpid()))
        yield
    finally:
        with suppress(OSError):
            file.unlink()  # whoever has opened it meanwhile sees that it has no name left, and is refused
        lock.release()


def _holder(file: Path) -> str:
    """Process that holds the lock, if its number is there already."""
    with suppress(OSError, ValueError):
        return f"process {int(file.read_text())}"
    return "another process"
