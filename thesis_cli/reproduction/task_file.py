"""Tasks on disk: a JSON list of (command, parameters, seed), one a line, the same for every engine."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, overload

from thesis_cli.errors import InputError
from thesis_cli.reproduction.records import atomic
from thesis_cli.reproduction.store import Task, beside, task_key

WANTED = "a JSON list of objects with command, parameters and seed is wanted"


class Entry(NamedTuple):
    """What a task is: a command (or an experiment's id), its parameters (JSON values), and a seed if it takes one."""

    command: str
    parameters: Mapping[str, Any]
    seed: int | None


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
        self.path, self.work = path.absolute(), work
        self.keys: list[str] = []
        self._starts = array("Q")
        with open(path, "rb") as file:
            start = len(file.readline())
            for line in file:
                if line != b"]\n":
                    entry = _entry(line, path, len(self.keys))
                    self.keys.append(task_key(entry.command, work.version, entry.parameters, entry.seed))
                    self._starts.append(start)
                start += len(line)

    @classmethod
    def write(cls, path: Path, entries: Iterable[Entry], work: Work) -> TaskFile:
        """Write a file whole, unless it says so already.

        Raises
        ------
        OSError : naming the file.
        """
        with atomic(path, keep_equal=True) as file:
            separator = b"[\n"
            for entry in entries:
                file.write(separator + json.dumps(entry._asdict(), ensure_ascii=False).encode())
                separator = b",\n"
            file.write(b"\n]\n")
        return cls(path, work)

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
    with open(path, "rb") as file:
        for i, line in enumerate(islice(file, 1, None)):
            if i in wanted:
                entry = _entry(line, path, i)
                key = task_key(entry.command, work.version, entry.parameters, entry.seed)
                yield Task(*entry, key, file_of(folder, key))


def count_tasks(path: Path) -> int:
    """Tasks of a file."""
    with open(path, "rb") as file:
        return sum(1 for line in file if line not in (b"[\n", b"]\n"))


def file_of(folder: Path, key: str) -> Path:
    """Where a task's result goes."""
    return folder / key[:2] / f"{key}.csv"


def read_entry(path: Path, index: int) -> Entry:
    """One task of a file, also of one that was formatted anew.

    Raises
    ------
    InputError : no such task, or the file is no list of tasks.
    """
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except ValueError as error:
        raise InputError(f"not JSON ({error})", WANTED, source=path) from None
    if not isinstance(found, list):
        raise InputError("no list", WANTED, source=path)
    if not 0 <= index < len(found):
        raise InputError(f"no task {index}", f"it has tasks 0 to {len(found) - 1}", source=path)
    return _as_entry(found[index], path, index)


def _entry(line: bytes, path: Path, index: int) -> Entry:
    try:
        return _as_entry(json.loads(line.rstrip(b",\n")), path, index)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"task {index} is not on a line of its own", "a task a line is wanted", source=path) from None


def _as_entry(found: object, path: Path, index: int) -> Entry:
    if (
        isinstance(found, dict)
        and set(found) == set(Entry._fields)
        and isinstance(found["command"], str)
        and isinstance(found["parameters"], dict)
        and (found["seed"] is None or isinstance(found["seed"], int))
    ):
        return Entry(**found)
    raise InputError(f"task {index} is none", WANTED, source=path)


def _stems(folder: Path, suffix: str) -> set[str]:
    """Names without suffix, of the files in the two-letter folders of a folder."""
    found: set[str] = set()
    for name in _names(folder):
        if len(name) == 2:
            found.update(n.removesuffix(suffix) for n in _names(folder / name) if n.endswith(suffix))
    return {name for name in found if not name.startswith(".")}


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
