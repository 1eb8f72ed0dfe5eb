"""Commands as the work of tasks: each runs in this process, and gives its table as CSV text."""

from __future__ import annotations

import hashlib
import logging
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError, WorkFailed, describe
from thesis_cli.base.files import write_atomic
from thesis_cli.commands.core.command import command_named
from thesis_cli.reproduction.fingerprint import fingerprint
from thesis_cli.reproduction.parameters import files_of, paths_as_written, request_of, shell_words, swept_command
from thesis_cli.reproduction.store import Task

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True)
class CommandWork:
    """Tasks of a command; fulfils `task_file.Work`.

    Parameters
    ----------
    command : its name in the shell.
    folder : what relative paths among the parameters start from.
    cores : for each task; results do not depend on them.
    """

    command: str
    folder: Path
    cores: int = 1

    @property
    def version(self) -> int:
        """Raise it when tables of commands change their form."""
        return 2

    def code(self, task: Task) -> str:
        """Digest of the code that the command reaches, and of every file that a parameter names.

        Raises
        ------
        WorkFailed : the command does not have these parameters.
        """
        digests = [_code_of(self.command)]
        try:
            files = list(files_of(swept_command(self.command), task.parameters, self.folder))
        except InputError as error:
            raise WorkFailed(str(error)) from None
        for file in filter(os.path.isfile, files):
            about = os.stat(file)
            digests.append(_content(file, about.st_size, about.st_mtime_ns))
        return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]

    def run(self, task: Task) -> str:
        """The command's table, with paths as the parameters give them.

        Messages of the command go to the task's log.

        Raises
        ------
        WorkFailed : what is wrong, and how to run the task by hand.
        """
        try:
            by_hand = self.by_hand(task)
        except InputError as error:
            raise WorkFailed(str(error)) from None
        try:
            command = swept_command(self.command)
            with _messages_to(task.log), _threads().limit(limits=self.cores, user_api="blas"):
                result = command.execute(request_of(command, task.parameters, task.seed, self.folder, self.cores))
        except (InputError, WorkFailed, OSError, MemoryError) as error:
            raise WorkFailed(f"{describe(error)}\n{by_hand}") from error
        except Exception as error:
            error.add_note(by_hand)
            raise
        return result.columns.replacing(paths_as_written(command, task.parameters, self.folder)).csv()

    def by_hand(self, task: Task) -> str:
        """The line of shell that does the same."""
        line = shlex.join(["thesis-cli", *shell_words(self.command, task.parameters, task.seed)])
        return f"cd {shlex.quote(str(self.folder))} && {line}"


@contextmanager
def _messages_to(log: Path) -> Iterator[None]:
    """Collect the messages of the library in a file, which is removed if there are none."""
    text = StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    before = logger.handlers[:], logger.level, logger.propagate
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.handlers[:], logger.propagate = before[0], before[2]
        logger.setLevel(before[1])
        if text.getvalue():
            write_atomic({log: text.getvalue()})
        else:
            log.unlink(missing_ok=True)


@cache
def _threads() -> ThreadpoolController:
    """Thread pools of the libraries that commands use; found once, as the search is slow."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _code_of(command: str) -> str:
    return fingerprint(command_named(command).file)


@lru_cache(2**16)
def _content(file: str, size: int, mtime: int) -> str:
    """Digest of a file; it is read once as long as its size and time of change remain."""
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
