"""Commands as the work of tasks: their parameters, the requests that these make, and their tables."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, WorkFailed, describe, nearest, without_secrets
from thesis_cli.base.files import write_atomic
from thesis_cli.commands.core.command import Command, command_named
from thesis_cli.commands.core.fields import OptionField, Request, aliases_of
from thesis_cli.reproduction.fingerprint import fingerprint
from thesis_cli.reproduction.tasks import Task

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

SHELL_ONLY = ("out", "no_out", "figure", "json", "quiet", "verbose", "debug", "help")
"""Options that only the shell has."""
PATHS = ("file", "release", "object")
"""Kinds of names in fields that a task reads."""


def swept_command(name: str) -> Command:
    """A command whose tasks give a table.

    Raises
    ------
    InputError : there is none of that name, or it cannot be swept.
    """
    command = command_named(name)
    if command.not_swept:
        raise InputError(f"{name} cannot be swept", command.not_swept)
    return command


def field_named(command: Command, key: str) -> OptionField:
    """A field of a command by the name of its option, without the dashes in front.

    Raises
    ------
    InputError : there is none, or no task may set it.
    """
    name, fields = normal(key), command.fields
    field = fields.get(aliases_of(fields).get(name, name))
    if field is None and name not in SHELL_ONLY:
        raise InputError(f"no option {key!r}", nearest(name, _settable(command)))
    not_swept = field.about.not_swept if field else ""
    if field is None or field.about.names == "output" or not_swept:
        raise InputError(f"{key} is not for tasks", not_swept or "a task writes its table and nothing else")
    return field


def _settable(command: Command) -> Iterator[str]:
    for name, field in command.fields.items():
        if not field.about.not_swept and field.about.names != "output":
            yield name


def coerced(field: OptionField, value: Any) -> Any:
    """A value of TOML or JSON as the field takes it.

    Raises
    ------
    InputError : it takes another, or the value is a URL with a password.
    """
    values = value if isinstance(value, list) else [value]
    if isinstance(value, list) and (field.many == 1 or not value):
        remedy = "give one value; several go under [grid]" if value else "give a value, or leave it out"
        raise InputError(f"{field.shell_name} is {shown(value)}", remedy)
    if field.about.objects or field.about.names:
        for one in values:
            if not isinstance(one, str):
                raise InputError(f"{field.shell_name} is {shown(one)}", "it must be text")
            if without_secrets(one) != one:
                problem = f"{field.shell_name} has a password or parameters, and the tasks of a sweep are files"
                raise InputError(problem, "keep passwords in ~/.pgpass, and leave parameters out")
            if one == "-":
                raise InputError(f"{field.shell_name} is -, standard input", "a task needs a file")
    return field.coerce(value)


def request_of(
    command: Command, parameters: Mapping[str, Any], seed: int | None, folder: Path, cores: int = 1
) -> Request:
    """The request of a task.

    Parameters
    ----------
    folder : start of relative paths among them.
    cores : number of cores that the task may use.

    Raises
    ------
    InputError : an option is unknown or missing, or the command refuses a value or combination.
    """
    values: dict[str, Any] = {}
    for key, value in parameters.items():
        field = field_named(command, key)
        found = coerced(field, value)
        values[field.name] = found
        if field.about.names in PATHS:
            several = isinstance(found, tuple)
            located = tuple(located_in(folder, str(one)) for one in (found if several else (found,)))
            values[field.name] = located if several else located[0]
    for field in command.fields.values():
        if field.required and field.name not in values:
            raise InputError(f"{field.shell_name} is missing", "see the --help of the command")
    given = {"seed": seed, "jobs": cores}
    own = {name: value for name, value in given.items() if name in command.fields and value is not None}
    return command.request(**values, **own)


def located_in(folder: Path, text: str) -> str:
    """A path, an object or the URL of a database, with its relative path joined to a folder.

    `mine:thing` becomes `FOLDER/mine.py:thing` if there is such a file. Text that names nothing,
    such as the `xray=yes` of evidence, remains as it is, unless the working folder has such a file.
    """
    if match := re.match(r"(sqlite(?:\+\w+)?:///)(?!/|:)(.+)", text):
        return match[1] + os.path.join(folder, match[2])
    if re.match(r"\w+(\+\w+)?://", text):
        return text
    path = os.path.join(folder, text)
    if os.path.exists(path) or os.path.exists(text):
        return path
    module, colon, name = text.rpartition(":")
    file = os.path.join(folder, _file_of(module))
    return f"{file}:{name}" if colon and os.path.isfile(file) else text


def files_of(command: Command, parameters: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """The files that a task reads, as far as its parameters name them; not all need exist."""
    for key, value in parameters.items():
        field = field_named(command, key)
        if field.about.names not in PATHS:
            continue
        for text in value if isinstance(value, list) else [value]:
            found = located_in(folder, str(text))
            yield found
            if ":" in found:
                yield found.rpartition(":")[0]
                yield found.partition(":///")[2].partition("?")[0]
            if field.about.names == "release":
                yield f"{os.path.splitext(found)[0]}.json"


def paths_as_written(command: Command, parameters: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """The parameters that name what a task reads: their text by the path that the task sees."""
    found = {}
    for key, value in parameters.items():
        if field_named(command, key).about.names in PATHS:
            texts = map(str, value if isinstance(value, list) else [value])
            found.update({located_in(folder, text): text for text in texts})
    return found


def _file_of(module: str) -> str:
    return module if module.endswith(".py") else f"{module.replace('.', '/')}.py"


def plain(value: Any) -> Any:
    """A value of TOML as JSON has it: `inf` as text."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def shell_words(command: str, parameters: Mapping[str, Any], seed: int | None) -> list[str]:
    """The command line of a task, without the name of the program; arguments come last, after `--`.

    Passwords of databases are left out, as the line is shown.

    Raises
    ------
    InputError : an unknown option.
    """
    known = swept_command(command)
    words, places = command.split(), dict[str, list[str]]()
    for key, value in parameters.items():
        field = field_named(known, key)
        texts = [without_secrets(str(one)) for one in (value if isinstance(value, list) else [value])]
        if field.about.positional:
            places[field.name] = texts
        elif field.flag:
            if value is not field.default:
                words.append(field.shell_name if value else f"--no-{field.shell_name[2:]}")
        elif field.many > 1:
            words += [field.shell_name, *texts]
        else:
            words += [f"{field.shell_name}={text}" for text in texts]
    if seed is not None:
        words.append(f"--seed={seed}")
    positional = [text for name in known.fields for text in places.get(name, ())]
    return [*words, "--", *positional] if positional else words


def normal(key: str) -> str:
    """A name with underscores."""
    return key.replace("-", "_")


def shown(value: object) -> str:
    """A value in a message."""
    return json.dumps(value, default=str, ensure_ascii=False)[:60]


logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True)
class CommandWork:
    """Tasks of a command; fulfils `tasks.Work`.

    Parameters
    ----------
    command : its name in the shell.
    folder : start of relative paths among the parameters.
    cores : number of cores of each task; results do not depend on it.
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
        WorkFailed : the command failed; the message says why, and how to run the task by hand.
        """
        try:
            command = swept_command(self.command)
            with _messages_to(task.log), _threads().limit(limits=self.cores, user_api="blas"):
                result = command.execute(request_of(command, task.parameters, task.seed, self.folder, self.cores))
        except (InputError, WorkFailed, OSError, MemoryError) as error:
            raise WorkFailed("\n".join((describe(error), *self._by_hand(task)))) from error
        except Exception as error:
            for line in self._by_hand(task):
                error.add_note(line)
            raise
        return result.columns.replacing(paths_as_written(command, task.parameters, self.folder)).csv()

    def _by_hand(self, task: Task) -> list[str]:
        """The line of shell that does the same, unless the command has no such parameters."""
        try:
            line = shlex.join(["thesis-cli", *shell_words(self.command, task.parameters, task.seed)])
        except InputError:
            return []
        return [f"cd {shlex.quote(str(self.folder))} && {line}"]


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
