"""Tasks on disk: a JSON list of (command, parameters, seed), one a line, the same for every engine."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, Self, overload

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import atomic
from thesis_cli.reproduction.store import Task, beside, key_head, key_of, task_key

WANTED = "a task a line is wanted, with command, parameters and seed, as thesis-cli sweep writes them"


class Entry(NamedTuple):
    """What a task is: a command (or an experiment's id), its parameters (JSON values), and a seed if it takes one."""

    command: str
    parameters: Mapping[str, Any]
    seed: int | None


FIELDS = set(Entry._fields)


class Work(Protocol):
    """How the tasks of one command are carried out; plain data that any process can be sent.

    Attributes
    ----------
    version : part of every key; raised when a change of code changes results.
    """

    @property
    def version(self) -> int: ...

    def code(self, task: Task) -> str:
        """Fingerprint of what the result depends on beside the task itself."""
        ...

    def run(self, task: Task) -> str:
        """CSV text with its heading; raises whatever went wrong."""
        ...


class TaskFile(Sequence[Task]):
    """The tasks of a file, read from it one by one: a million take their keys' memory.

    The result of a task goes beside the file, into `ab/ab...csv` by its key.

    Parameters
    ----------
    path : the file.
    work : of its command.

    Attributes
    ----------
    keys : of all tasks, in order.

    Raises
    ------
    InputError : the file is no list of tasks.
    """

    def __init__(self, path: Path, work: Work) -> None:
        self._take(path, work, _read(path))

    def _take(self, path: Path, work: Work, found: Iterable[tuple[int, Entry]]) -> None:
        """Be of tasks whose lines start where it is said."""
        self.path, self.work = path.absolute(), work
        self.keys: list[str] = []
        self._starts = array("Q")
        version, last, head = work.version, None, ""
        for start, entry in found:
            if entry.parameters is not last:
                last, head = entry.parameters, key_head(entry.command, version, entry.parameters)
            self.keys.append(key_of(head, entry.seed))
            self._starts.append(start)

    @classmethod
    def write(cls, path: Path, entries: Iterable[Entry], work: Work) -> Self:
        """Write a file whole, unless it says so already.

        Raises
        ------
        OSError : naming the file.
        """
        tasks = cls.__new__(cls)
        with atomic(path, keep_equal=True) as file:
            tasks._take(path, work, _written(entries, file))
        return tasks

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        if isinstance(index, slice):
            return list(self.some(range(*index.indices(len(self)))))
        return next(self.some([range(len(self))[index]]))

    def __iter__(self) -> Iterator[Task]:
        return self.some(range(len(self)))

    def some(self, indices: Iterable[int]) -> Iterator[Task]:
        """Tasks of some places."""
        with open(self.path, "rb") as file:
            for i in indices:
                file.seek(self._starts[i])
                entry = _entry(file.readline(), self.path, i)
                yield Task(*entry, self.keys[i], self.file(i))

    def file(self, index: int) -> Path:
        """Where a task's result goes."""
        return file_of(self.path.parent, self.keys[index])

    def failure(self, index: int) -> Path:
        """Where it is kept how a task failed."""
        return beside(self.file(index), ".error")

    def indices(self, found: set[str]) -> list[int]:
        """Places of the tasks whose key is among those found."""
        return [i for i, key in enumerate(self.keys) if key in found]

    def finished(self) -> set[str]:
        """Keys of the results there are, of whatever tasks."""
        return _stems(self.path.parent, ".csv")

    def failed(self) -> set[str]:
        """Keys of tasks that raised when they were last tried."""
        return _stems(self.path.parent / "logs", ".error")


def read_tasks(path: Path, work: Work, places: Iterable[int], folder: Path) -> Iterator[Task]:
    """Tasks of some places, in order of place, at the cost of reading over the others.

    Parameters
    ----------
    folder : of the file that this is a copy of: where results go.
    """
    wanted = set(places)
    for i, (_, line) in islice(enumerate(_lines(path)), max(wanted, default=-1) + 1):
        if i in wanted:
            entry = _entry(line, path, i)
            key = task_key(entry.command, work.version, entry.parameters, entry.seed)
            yield Task(*entry, key, file_of(folder, key))


def head(path: Path) -> tuple[str, int]:
    """Command of a file's first task, and how many tasks there are.

    Raises
    ------
    InputError : the file is no list of tasks.
    """
    lines = _lines(path)
    _, first = next(lines)
    return _entry(first, path, 0).command, 1 + sum(1 for _ in lines)


def file_of(folder: Path, key: str) -> Path:
    """Where a task's result goes."""
    return folder / key[:2] / f"{key}.csv"


def _read(path: Path) -> Iterator[tuple[int, Entry]]:
    """Where each task's line starts, and the task; one that differs from that before in its seed is not parsed anew."""
    entry, shared = None, b""
    for i, (start, line) in enumerate(_lines(path)):
        head, _, rest = line.rpartition(b', "seed": ')
        seed = rest.strip().removesuffix(b",").removesuffix(b"}")
        if entry and head == shared and seed.isdigit():
            entry = Entry(entry.command, entry.parameters, int(seed))
        else:
            entry, shared = _entry(line, path, i), head
        yield start, entry


def _written(entries: Iterable[Entry], file: IO[bytes]) -> Iterator[tuple[int, Entry]]:
    """Write tasks; yields each, and where its line starts."""
    end, separator = file.write(b"["), b"\n"
    last, head = None, b""
    for entry in entries:
        if entry.parameters is not last:  # tasks of several seeds share them
            last, text = entry.parameters, json.dumps(entry._replace(seed=None)._asdict(), ensure_ascii=False)
            head = text.removesuffix("null}").encode()
        start = end + len(separator)
        end += file.write(b"%b%b%b}" % (separator, head, json.dumps(entry.seed).encode()))
        separator = b",\n"
        yield start, entry
    file.write(b"\n]\n")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Where the line of each task starts, and the line; one or more."""
    with open(path, "rb") as file:
        begin = start = len(line := file.readline())
        if line.strip() != b"[":
            raise InputError("no list of tasks", WANTED, source=path)
        for line in file:
            if line.strip() == b"]" and start > begin:
                return
            yield start, line
            start += len(line)
    raise InputError("its end is missing", "the command that wrote it writes it anew", source=path)


def _entry(line: bytes, path: Path, index: int) -> Entry:
    try:
        found = json.loads(line.decode().strip().removesuffix(","))
    except (ValueError, RecursionError):
        found = None
    if (
        isinstance(found, dict)
        and found.keys() == FIELDS
        and isinstance(found["command"], str)
        and isinstance(found["parameters"], dict)
        and (found["seed"] is None or type(found["seed"]) is int)
    ):
        return Entry(found["command"], found["parameters"], found["seed"])
    raise InputError("no task", WANTED, source=path, line=index + 2)


def _stems(folder: Path, suffix: str) -> set[str]:
    """Names without suffix, of the files in the two-letter folders of a folder."""
    found: set[str] = set()
    for name in _names(folder):
        if len(name) == 2:
            files = (n for n in _names(folder / name) if n.endswith(suffix) and not n.startswith("."))
            found.update(n.removesuffix(suffix) for n in files)
    return found


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
