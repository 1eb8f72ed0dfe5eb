"""Tasks in a file, who works on them, and the store of their results.

A task file is a JSON list of (command, parameters, seed), one a line, which every engine reads. A
task is done when the store beside the file has its result. One process at a time drives a task file.

In a store each process appends records to a segment, a file of its own. A record is an empty line, one
line of JSON with the task's key, the length of its text and a digest, then the text: the result's CSV
with its heading, or the error of a task that failed. A record that is torn or damaged does not count,
so its task is computed again. Earlier versions wrote each result to `ab/ab...csv`, a record without key
and length; these are read, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, Self, overload

from thesis_cli.base.errors import InputError, WorkFailed, without_secrets
from thesis_cli.base.files import atomic, locked, to_json, write_atomic

SEGMENTS = "segments"
"""Folder of the segments, in the folder of a store."""
SYNCED = 0.5
"""Most seconds between two calls of fsync by a process that adds records."""
LIVE, DROPPED = b"# {", b"-"
"""Beginning of a record, and the byte that replaces its first one when it is dropped."""


@dataclass(frozen=True)
class Stored:
    """A record: text, fingerprint of the code (empty for an error), and seconds."""

    text: str
    code: str
    seconds: float


class _Place(NamedTuple):
    """Where a record is, and what is kept of it in memory."""

    file: Path
    start: int
    code: str
    when: float


class _Record(NamedTuple):
    start: int
    end: int
    key: str
    code: str
    seconds: float
    when: float
    text: str


class Store:
    """The records in a folder; `look` reads those that were added since.

    Attributes
    ----------
    results : place of the result of each task that has one, by the task's key.
    errors : place of the error of the last try that failed, by the task's key.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results: dict[str, _Place] = {}
        self.errors: dict[str, _Place] = {}
        self._read: dict[Path, int] = {}

    def look(self) -> None:
        for path, size in self._files(old=not self._read):
            if size > self._read.setdefault(path, 0):
                with open(path, "rb") as file:
                    file.seek(self._read[path])
                    for start, end, key, code, _, when, _ in _records(file, path):
                        if start >= size:  # another process adds records faster than they are read
                            break
                        found = self.results if code else self.errors
                        if key not in found or when >= found[key].when:
                            found[key] = _Place(path, start, code, when)
                        self._read[path] = end

    def result(self, key: str) -> Stored | None:
        """A result; None if there is none, or if it was damaged."""
        return _stored(self.results.get(key))

    def error(self, key: str) -> str:
        """The error of a task's last try; empty if there is none."""
        found = _stored(self.errors.get(key))
        return found.text if found else ""

    def drop(self, keys: Collection[str]) -> None:
        """Forget all records of some tasks: a byte of each is overwritten, as other processes may append."""
        for path, _ in self._files(old=True) if keys else ():
            with open(path, "r+b", buffering=0) as marks, open(path, "rb") as file:
                for record in _records(file, path):
                    if record.key in keys:
                        os.pwrite(marks.fileno(), DROPPED, record.start)
        for key in keys:
            self.results.pop(key, None)
            self.errors.pop(key, None)

    def _files(self, old: bool) -> Iterator[tuple[Path, int]]:
        """Segments and their sizes, and files of earlier versions, which do not grow, if `old`."""
        for pair in _entries(self.folder) if old else ():
            if len(pair.name) == 2:
                yield from ((Path(f.path), f.stat().st_size) for f in _entries(pair.path) if f.name.endswith(".csv"))
        yield from ((Path(f.path), f.stat().st_size) for f in _entries(self.folder / SEGMENTS) if f.is_file())


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """Entries of a folder that are not hidden, by name."""
    try:
        found = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((each for each in found if not each.name.startswith(".")), key=lambda each: each.name)


def _records(file: IO[bytes], path: Path) -> Iterator[_Record]:
    """Records that are whole."""
    start = file.tell()
    old = {"key": path.stem, "when": 0.0, "length": -1}
    while line := file.readline():
        end = start + len(line)
        if line.startswith(LIVE):
            try:
                meta = old | json.loads(line[2:].decode())
                text = file.read(meta["length"])
                if hashlib.sha256(text).hexdigest() == meta["sha256"]:
                    key, code = str(meta["key"]), str(meta["code"])
                    seconds, when = float(meta["seconds"]), float(meta["when"])
                    yield _Record(start, start := end + len(text), key, code, seconds, when, text.decode())
                    continue
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError):
                pass
            file.seek(end)
        start = end


def _stored(place: _Place | None) -> Stored | None:
    if place:
        with open(place.file, "rb") as file:
            file.seek(place.start)
            record = next(_records(file, place.file), None)
        if record and record.start == place.start:
            return Stored(record.text, record.code, record.seconds)
    return None


def append(folder: Path, key: str, text: str, code: str, seconds: float, parameters: Mapping[str, Any]) -> None:
    """Add a result to this process's segment of a store; an error if `code` is empty.

    A process that is killed loses nothing that it has added. If the machine stops, what was added in
    the last half second may be lost.

    Raises
    ------
    OSError : naming the file that could not be written.
    """
    data = text.encode()
    meta = {
        "key": key,
        "length": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "code": code,
        "seconds": round(seconds, 3),
        "when": round(time.time(), 3),
        "parameters": parameters,
    }
    segment = _segment(folder)
    segment.write(b"\n# %b\n%b" % (json.dumps(meta).encode(), data))


@cache
def _segment(folder: Path) -> _Segment:
    return _Segment(folder / SEGMENTS)


class _Segment:
    """A file that this process alone appends to."""

    def __init__(self, folder: Path) -> None:
        self._path = self._folder = folder
        self._file, self._process, self._synced = -1, 0, 0.0

    def write(self, record: bytes) -> None:
        try:
            if self._process != os.getpid() or not os.fstat(self._file).st_nlink:  # forked, or the file was removed
                self._open()
            while record:
                record = record[os.write(self._file, record) :]
            if time.monotonic() - self._synced > SYNCED:
                os.fsync(self._file)
                self._synced = time.monotonic()
        except OSError as error:
            self._process = 0  # it may have no room for more
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path = self._folder / f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        self._process = os.getpid()


def shown_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a task for messages, without passwords of databases."""
    return {name: without_secrets(value) if isinstance(value, str) else value for name, value in parameters.items()}


def task_key(command: str, version: int, parameters: Mapping[str, Any], seed: int | None) -> str:
    """Digest of a task; it does not depend on the position among other tasks."""
    return _key(_key_head(command, version, parameters), seed)


def _key_head(command: str, version: int, parameters: Mapping[str, Any]) -> str:
    """The part of a key that tasks of all seeds share."""
    return json.dumps([command, version, dict(parameters)], sort_keys=True)[:-1]


def _key(head: str, seed: int | None) -> str:
    return hashlib.sha256(f"{head}, {json.dumps(seed)}]".encode()).hexdigest()


@dataclass(frozen=True)
class Task:
    """A task as plain data that can be sent to any process.

    Attributes
    ----------
    command : id of an experiment, or name of a command.
    parameters : JSON values by name.
    seed : seed of its random numbers; None if the command takes none.
    key : digest of the three; it seeds the random numbers of an experiment.
    folder : folder of the store of its result.
    """

    command: str
    parameters: Mapping[str, Any]
    seed: int | None
    key: str
    folder: Path

    @property
    def log(self) -> Path:
        """File of its messages."""
        return self.folder / "logs" / self.key[:2] / f"{self.key}.log"

    def save(self, text: str, code: str, seconds: float) -> None:
        """Store its result, or its error if `code` is empty.

        Raises
        ------
        OSError : naming the file that could not be written.
        """
        append(self.folder, self.key, text, code, seconds, shown_parameters(self.parameters))


WAIT = 60.0
"""Most seconds that another process may take to record itself as driver."""
RIGHT = "each line must have one task, as thesis-cli sweep writes them"


class TaskSpec(NamedTuple):
    """A task: a command or id of an experiment, parameters (JSON values), and a seed or None."""

    command: str
    parameters: Mapping[str, Any]
    seed: int | None


FIELDS = set(TaskSpec._fields)


class Work(Protocol):
    """Carries out the tasks of one command; plain data that can be sent to any process.

    Attributes
    ----------
    version : part of every key; it is raised if a change of code changes results.
    """

    @property
    def version(self) -> int: ...

    def code(self, task: Task) -> str:
        """Fingerprint of the code and inputs that the result depends on."""
        ...

    def run(self, task: Task) -> str:
        """Compute the result, CSV text with its heading; raises any exception."""
        ...


Pending = tuple[Task, Work]
"""A task without a result, and what carries it out."""


class TaskFile(Sequence[Task]):
    """The tasks of a file, read one by one: only their keys are in memory.

    Parameters
    ----------
    path : the file.
    work : carries out the tasks of its command.

    Attributes
    ----------
    keys : the keys of all tasks, in order.
    store : results and errors, in the folder of the file.

    Raises
    ------
    InputError : the file is not a list of tasks.
    """

    def __init__(self, path: Path, work: Work) -> None:
        self._take(path, work, _read(path))

    def _take(self, path: Path, work: Work, found: Iterable[tuple[int, TaskSpec]]) -> None:
        """Take over tasks with the places where their lines start."""
        self.path, self.work = path.absolute(), work
        self.store = Store(self.path.parent)
        self.keys: list[str] = []
        self._starts = array("Q")
        key = _keys(work.version)
        for start, entry in found:
            self.keys.append(key(entry))
            self._starts.append(start)

    @classmethod
    def write(cls, path: Path, entries: Iterable[TaskSpec], work: Work) -> Self:
        """Write a file, unless it is the same already.

        Raises
        ------
        OSError : naming the file.
        InputError : another process of this machine works on it.
        """
        tasks = cls.__new__(cls)
        with atomic(path, keep_equal=True) as file:
            tasks._take(path, work, _written(entries, file))
            check_free(path)
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
        """The tasks at some places; those with the same parameters share the mapping if they follow one another.

        Raises
        ------
        InputError : the file has other tasks now.
        """
        parse, key = _parser(self.path), _keys(self.work.version)
        with open(self.path, "rb") as file:
            for i in indices:
                file.seek(self._starts[i])
                try:
                    same = key(entry := parse(file.readline(), i)) == self.keys[i]
                except InputError:
                    same = False
                if not same:
                    raise InputError("another run has replaced it", "run this again", source=self.path)
                yield Task(*entry, self.keys[i], self.path.parent)

    def unfinished(self, places: Sequence[int]) -> Iterator[Pending | None]:
        """The tasks at some places; None for one with a result, as a process that was killed may have left."""
        done = self.finished()
        return (None if task.key in done else (task, self.work) for task in self.some(places))

    def results(self, indices: Iterable[int]) -> Iterator[Stored]:
        """The results at some places, which were there at the last look.

        Raises
        ------
        WorkFailed : one of them is damaged or gone by now.
        """
        for i in indices:
            if (found := self.store.result(self.keys[i])) is None:
                raise WorkFailed(f"a result in {self.store.folder} was damaged or removed meanwhile; run this again")
            yield found

    def indices(self, found: Collection[str]) -> list[int]:
        """Places of the tasks whose keys are given."""
        return [i for i, key in enumerate(self.keys) if key in found]

    def finished(self) -> Collection[str]:
        """Keys of all results in the folder."""
        self.store.look()
        return self.store.results.keys()

    def failed(self) -> Collection[str]:
        """Keys of all tasks whose last try failed."""
        self.store.look()
        return self.store.errors.keys() - self.store.results.keys()


def read_tasks(path: Path, work: Work, places: Iterable[int], folder: Path) -> Iterator[Task]:
    """The tasks at some places, in order; skips the others."""
    chosen = set(places)
    for i, (_, line) in islice(enumerate(_lines(path)), max(chosen, default=-1) + 1):
        if i in chosen:
            entry = _entry(line, path, i)
            key = task_key(entry.command, work.version, entry.parameters, entry.seed)
            yield Task(*entry, key, folder)


def head(path: Path) -> tuple[str, int]:
    """The command of a file's first task, and the number of tasks.

    Raises
    ------
    InputError : the file is not a list of tasks.
    """
    lines = _lines(path)
    _, first = next(lines)
    return _entry(first, path, 0).command, 1 + sum(1 for _ in lines)


def _read(path: Path) -> Iterator[tuple[int, TaskSpec]]:
    """Start of each task's line, and the task."""
    parse = _parser(path)
    for i, (start, line) in enumerate(_lines(path)):
        yield start, parse(line, i)


def _parser(path: Path) -> Callable[[bytes, int], TaskSpec]:
    """A function of a line and its place; what differs from the last task only in its seed is not parsed again."""
    entry: TaskSpec | None = None
    shared = b""

    def parse(line: bytes, index: int) -> TaskSpec:
        nonlocal entry, shared
        head, _, rest = line.rpartition(b', "seed": ')
        seed = rest.strip().removesuffix(b",").removesuffix(b"}")
        if entry and head == shared and seed.isdigit():
            entry = TaskSpec(entry.command, entry.parameters, int(seed))
        else:
            entry, shared = _entry(line, path, index), head
        return entry

    return parse


def _keys(version: int) -> Callable[[TaskSpec], str]:
    """A function of a task; what tasks of several seeds share is made once."""
    last: Mapping[str, Any] | None = None
    head = ""

    def key(entry: TaskSpec) -> str:
        nonlocal last, head
        if entry.parameters is not last:
            last, head = entry.parameters, _key_head(entry.command, version, entry.parameters)
        return _key(head, entry.seed)

    return key


def _written(entries: Iterable[TaskSpec], file: IO[bytes]) -> Iterator[tuple[int, TaskSpec]]:
    """Write tasks; yields where each line starts, and the task."""
    end, separator = file.write(b"["), b"\n"
    last, head = None, b""
    for entry in entries:
        if entry.parameters is not last:  # tasks of several seeds share their parameters
            last, text = entry.parameters, json.dumps(entry._replace(seed=None)._asdict(), ensure_ascii=False)
            head = text.removesuffix("null}").encode()
        start = end + len(separator)
        end += file.write(b"%b%b%b}" % (separator, head, json.dumps(entry.seed).encode()))
        separator = b",\n"
        yield start, entry
    file.write(b"\n]\n")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Start of the line of each task, and the line; at least one."""
    with open(path, "rb") as file:
        begin = start = len(line := file.readline())
        if line.strip() != b"[":
            raise InputError("not a list of tasks", RIGHT, source=path)
        for line in file:
            if line.strip() == b"]" and start > begin:
                return
            yield start, line
            start += len(line)
    raise InputError("its end is missing", "run the command that wrote it again", source=path)


def _entry(line: bytes, path: Path, index: int) -> TaskSpec:
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
        return TaskSpec(found["command"], found["parameters"], found["seed"])
    raise InputError("not a task", RIGHT, source=path, line=index + 2)


@dataclass(frozen=True)
class Driver:
    """A process that runs tasks, or waits for jobs that do.

    Attributes
    ----------
    started : start of the process in clock ticks, to know it from a later one of that number.
    jobs : tasks that it runs at once itself; 0 if jobs of a cluster run them.
    """

    host: str
    pid: int
    started: str
    jobs: int

    @property
    def alive(self) -> bool | None:
        """Whether the process still runs; None if it is on another machine."""
        if self.host != socket.gethostname():
            return None
        started = _started(self.pid)
        return started != "" and started == self.started


@contextmanager
def driving(file: Path, jobs: int) -> Iterator[None]:
    """Be the only driver of a task file, recorded in `tasks.driver` beside it.

    A lock alone would not do: drivers run on several machines that share the folder. It keeps two
    of one machine from recording themselves at once.

    Raises
    ------
    InputError : another driver runs on this machine.
    """
    place = file.with_suffix(".driver")
    me = Driver(socket.gethostname(), os.getpid(), _started(os.getpid()), jobs)
    with locked(place, wait=WAIT):
        check_free(file)
        for stale in place.parent.glob(f".{place.name}.*"):  # of killed processes
            if not stale.name.endswith(".lock"):
                stale.unlink(missing_ok=True)
        write_atomic({place: to_json(asdict(me))})
    try:
        yield
    finally:
        if driver_of(file) == me:
            place.unlink(missing_ok=True)


def check_free(file: Path) -> None:
    """Refuse a task file that another process of this machine works on.

    Raises
    ------
    InputError : naming the process.
    """
    other = driver_of(file)
    if other and other.pid != os.getpid() and other.alive:
        raise InputError(f"another run works on {file} (process {other.pid})", "wait until it ends, or end it")


def driver_of(file: Path) -> Driver | None:
    """The recorded driver of a task file, alive or not."""
    try:
        return Driver(**json.loads(file.with_suffix(".driver").read_text()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def _started(pid: int) -> str:
    """Start of a process; empty if there is none, `unknown` if the system does not show it.

    A process that has ended and whose parent has not noticed (state Z) is none.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "unknown"
    return "" if state in ("Z", "X") else fields[18]
