"""A command as the work of tasks: its options by name, its command line, and how it is run in this process."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache, lru_cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.base.files import write_atomic
from thesis_cli.reproduction.fingerprint import fingerprint
from thesis_cli.reproduction.store import Task

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

COMMANDS = (
    *("estimate-z", "renyi", "map", "sample", "spin-glass", "synthesize"),
    *("dp-release", "dp-query", "dp-test", "dp-audit"),
)
"""Those that write a table with --out; a corpus is none."""


_TABLE_ONLY = "a task writes its table and no other file"
_NO_LEDGER = (
    "a ledger's lock holds on one machine only; divide the budget before the sweep: its tasks spend at most the sum of "
    "their epsilons, and of their deltas"
)
RESERVED = {
    "out": "out at the top of the file is for all tasks",
    "seed": "seeds at the top of the file are wanted",
    "jobs": "a task has the cores that the sweep is given for it",
    **dict.fromkeys(("json", "quiet", "verbose", "debug", "help"), "it changes no table"),
    **dict.fromkeys(("figure", "save", "init_schema"), _TABLE_ONLY),
    "sweep": "couplings under [grid] are wanted",
    "run": "a program that is run writes no table",
    **dict.fromkeys(("holdout", "holdout_query"), "the scores are for the terminal, and go into no file"),
    **dict.fromkeys(("ledger", "name", "limit"), _NO_LEDGER),
}
"""Options that no task has, and why or what instead."""


@dataclass(frozen=True)
class CommandWork:
    """Tasks of a command; fulfils `task_file.Work`.

    Parameters
    ----------
    command : one of `COMMANDS`.
    folder : that relative paths among the parameters are meant from.
    cores : for each task; results do not depend on them.
    """

    command: str
    folder: Path
    cores: int = 1

    @property
    def version(self) -> int:
        return 1

    def code(self, task: Task) -> str:
        """Digest of the code that the command reaches, and of every file that a parameter names."""
        digests = [_code_of(self.command)]
        for file in filter(os.path.isfile, self._named(task.parameters)):
            about = os.stat(file)
            digests.append(_content(file, about.st_size, about.st_mtime_ns))
        return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]

    def run(self, task: Task) -> str:
        """The command's table, of which it may say (exit status 1) that it holds no answer.

        What the command says on standard error goes to the task's log. Nothing of this process is left changed.

        Raises
        ------
        WorkFailed : no table; the command's own last words, and how to run it by hand.
        KeyboardInterrupt : so it ended.
        """
        from thesis_cli.cli.app import INTERRUPTED, main

        try:
            line = arguments(self.command, task.parameters, task.seed)
        except InputError as error:
            raise WorkFailed(str(error)) from None
        by_hand = f"cd {shlex.quote(str(self.folder))} && {shlex.join(['thesis-cli', *line])}"
        with TemporaryDirectory() as folder:
            table = Path(folder, "table.csv")
            ours = [f"--out={table}", *[f"--jobs={self.cores}"] * ("jobs" in options_of(self.command))]
            try:
                with _apart(self.folder, self.cores) as said:
                    status = main([line[0], *ours, *line[1:]])
            except Exception as error:
                error.add_note(by_hand)
                raise
            if status == INTERRUPTED:
                raise KeyboardInterrupt
            lines = said.getvalue().splitlines()
            _write_log(task.log, [text for text in lines if folder not in text])
            if not table.is_file():
                errors = [text.removeprefix("error: ") for text in lines if text.startswith("error: ")]
                last = errors[-1] if errors else f"exit status {status}, and no table"
                raise WorkFailed(f"{last}\n{by_hand}")
            return table.read_bytes().decode()

    def _named(self, parameters: Mapping[str, Any]) -> Iterator[str]:
        """Paths of files that parameters may name: the record of a release and the module of an object, too."""
        for name, value in parameters.items():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    module, colon, _ = text.rpartition(":")
                    names = [text, module, f"{module.replace('.', '/')}.py"] if colon else [text]
                    if name == "release":
                        names.append(f"{os.path.splitext(text)[0]}.json")
                    yield from (os.path.join(self.folder, file) for file in names)


def arguments(command: str, parameters: Mapping[str, Any], seed: int | None) -> list[str]:
    """The command line of a task, without the name of the program: the command, options, and after `--` arguments.

    Raises
    ------
    InputError : an unknown command or option, or a value of a form that it does not take.
    """
    words, places = [command], dict[str, list[str]]()
    for key, value in parameters.items():
        name, option = option_named(command, key)
        texts = texts_of(option, value)
        if option.param_type_name == "argument":
            places[name] = texts
        elif is_flag(option):
            words += texts
        elif option.nargs > 1:
            words += [option.opts[0], *texts]
        else:
            words += [f"{option.opts[0]}={text}" for text in texts]
    if seed is not None:
        words.append(f"--seed={seed}")
    positional = [text for name in options_of(command) for text in places.get(name, ())]
    return [*words, "--", *positional] if positional else words


@lru_cache
def click_command(name: str) -> Any:
    """A command of the program; of Typer's own click, in releases that carry one.

    Raises
    ------
    InputError : none of `COMMANDS`.
    """
    from thesis_cli.cli.app import command

    commands = command().commands
    if name not in COMMANDS:
        problem = f"{name} writes no table that a sweep could collect" if name in commands else f"no command {name!r}"
        raise InputError(problem, nearest(name, COMMANDS))
    return commands[name]


@lru_cache
def options_of(command: str) -> dict[str, Any]:
    """Options and arguments by name: the long one, with underscores."""
    found = {}
    for parameter in click_command(command).params:
        name = parameter.name if parameter.param_type_name == "argument" else max(parameter.opts, key=len).lstrip("-")
        found[normal(name)] = parameter
    return found


def option_named(command: str, key: str) -> tuple[str, Any]:
    """An option or argument by its name, as `options_of` has it."""
    name, known = normal(key), options_of(command)
    if name in RESERVED and name in (*known, "help"):
        raise InputError(f"{key} is not for the tasks of a sweep", RESERVED[name])
    if name not in known:
        raise InputError(f"{command} has no option {key!r}", nearest(name, known.keys() - RESERVED.keys()))
    return name, known[name]


def is_flag(option: Any) -> bool:
    return bool(getattr(option, "is_flag", False))


def takes_many(option: Any) -> bool:
    return bool(getattr(option, "multiple", False) or option.nargs != 1)


def texts_of(option: Any, value: Any) -> list[str]:
    """A value as it stands on a command line: of a flag the flag, of anything else what it is followed by."""
    if is_flag(option):
        if not isinstance(value, bool):
            raise InputError(f"{shown(value)} for a flag", "true or false is wanted")
        return [option.opts[0]] if value else option.secondary_opts[:1]
    texts = [_text(element) for element in (value if isinstance(value, list) else [value])]
    if isinstance(value, list) and not takes_many(option):
        raise InputError(f"{shown(value)}", "one value is wanted; under [grid], a list of such")
    if not texts:
        raise InputError("an empty list", "a value is wanted, or leave it out")
    if option.nargs > 1 and len(texts) != option.nargs:
        raise InputError(f"{shown(value)}", f"a list of {option.nargs} values is wanted")
    return texts


def _text(value: Any) -> str:
    if isinstance(value, bool):
        raise InputError(f"{shown(value)} for an option that is no flag", "a string or a number is wanted")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{value}", 'a finite number is wanted (where the option takes inf, "inf")')
        return repr(value)
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"{shown(value)}", "a string, a number or a boolean is wanted")
    if value == "-":
        raise InputError("- is standard input, which tasks have none of", "a file is wanted")
    if not "".join(value.split()).isprintable():
        raise InputError(f"{value!r} has characters that cannot be printed", "plain text is wanted")
    return value


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy that names the likeliest of some names."""
    from thesis_cli.base import wording

    return wording.nearest(name, sorted(known), "there are")


def shown(value: object) -> str:
    """A value in a message."""
    return json.dumps(value, default=str, ensure_ascii=False)[:60]


def normal(key: str) -> str:
    """A name with underscores."""
    return key.replace("-", "_")


@contextmanager
def _apart(folder: Path, cores: int) -> Iterator[StringIO]:
    """A working folder, streams, messages and threads of a command's own; yields what it says on standard error."""
    root, library = logging.getLogger(), logging.getLogger("thesis_cli")
    handlers, levels = root.handlers[:], (root.level, library.level)
    root.handlers.clear()  # which `set_messages` closes
    said = StringIO()
    try:
        with (
            chdir(folder),
            redirect_stdout(StringIO()),
            redirect_stderr(said),
            _threads().limit(limits=cores, user_api="blas"),
        ):
            yield said
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        library.setLevel(levels[1])


@cache
def _threads() -> ThreadpoolController:
    """Of the libraries that commands use, which it loads; kept, as it looks through all of the process."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _write_log(log: Path, lines: list[str]) -> None:
    if lines:
        write_atomic({log: "".join(f"{line}\n" for line in lines)})
    else:
        log.unlink(missing_ok=True)


@cache
def _code_of(command: str) -> str:
    function = click_command(command).callback
    file = sys.modules[function.__module__].__file__
    assert file is not None
    return fingerprint(Path(file), function.__name__)


@lru_cache(2**16)
def _content(file: str, size: int, mtime: int) -> str:
    """Digest of a file, read once as long as size and time of change are the same."""
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
