"""Many tasks: solved in several processes, and kept as they come, so that what ends a run loses nothing."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedRandom
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path

from thesis_cli import __version__
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.cli.options import logger
from thesis_cli.synthesis.dsl import Semantics
from thesis_cli.synthesis.program import parse
from thesis_cli.synthesis.solver import Solution
from thesis_cli.synthesis.task import Task, check

Solve = Callable[[Task], Solution]

TRIALS = 3
"""How often a task is tried whose process is killed."""


class Journal:
    """Solutions of a batch that has no table yet, a line each, in a file beside the table to be.

    One run at a time has it. Its first line says what the batch is; what follows is kept by a run of the same batch,
    but for what is damaged, such as a last line that was cut short.

    Parameters
    ----------
    table : the CSV file.
    tasks : in order.
    settings : whatever else a solution depends on, as JSON has it.
    semantics : what programs that are read are held to.

    Attributes
    ----------
    kept : solutions by place of their task.

    Raises
    ------
    InputError : another run has it.
    OSError : naming the file.
    """

    def __init__(
        self, table: Path, tasks: Sequence[Task], settings: Mapping[str, object], semantics: Semantics
    ) -> None:
        self.path = table.with_name(f"{table.name}.journal")
        self._tasks, self._semantics = tasks, semantics
        digest = hashlib.sha256("\n".join(task.to_json() for task in tasks).encode()).hexdigest()
        head = json.dumps({**settings, "version": __version__, "tasks": digest}).encode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _locked(self.path, table)
        self._synced = time.monotonic()
        first, *lines = self._file.read().split(b"\n")[:-1] or [b""]
        same = first == head
        self.kept = dict(filter(None, map(self._read, lines))) if same else {}
        if first and not same:
            logger.warning("%s is of another command line or of other tasks; all tasks are solved anew", self.path)
        self._file.truncate(sum(len(line) + 1 for line in (first, *lines)) if same else 0)
        self._file.seek(0, os.SEEK_END)
        self._due = b"" if same else head + b"\n"

    def add(self, place: int, found: Solution) -> None:
        """Keep a solution, come what may; from the next one that is a second later on, even if power fails."""
        programs = [program.one_line for program in found.programs]
        line = json.dumps({"place": place, "solution": {**vars(found), "programs": programs}}).encode()
        try:
            self._file.write(self._due + line + b"\n")
            self._file.flush()
            if time.monotonic() - self._synced > 1:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        self._due = b""
        self.kept[place] = found

    def _read(self, line: bytes) -> tuple[int, Solution] | None:
        """What `add` wrote; None if that is damaged."""
        try:
            row = json.loads(line)
            place, found = row["place"], row["solution"]
            solution = Solution(**{**found, "programs": tuple(map(parse, found["programs"]))})
            fits = all(check(program, self._tasks[place], self._semantics) for program in solution.programs)
        except (ValueError, TypeError, LookupError):
            return None
        return (place, solution) if fits else None

    def __str__(self) -> str:
        """What is not lost."""
        if not self.kept:
            return f"none of {len(self._tasks):,} tasks is finished"
        return f"{len(self.kept):,} of {len(self._tasks):,} tasks are kept; the same command goes on from there"

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove it once all went well, the table included, or if it keeps nothing."""
        if kind is None or not self.kept:
            self.path.unlink(missing_ok=True)
        with suppress(OSError):  # what a full disk has refused is tried again
            self._file.close()


def _locked(path: Path, table: Path) -> BufferedRandom:
    """A file to be read and written, which no other run has."""
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise InputError(f"another run is going to write {table}", "another --out is wanted") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()  # the run that had it removed it meanwhile


def solutions(solve: Solve, tasks: Mapping[int, Task], jobs: int) -> Iterator[tuple[int, Solution]]:
    """Solve tasks in processes, of which there is none for a single job; yields place and solution as they come.

    A task whose process is killed is tried again, after the others.

    Raises
    ------
    WorkFailed : after all else, if the process of a task was killed three times.
    Exception : whatever `solve` raises.
    """
    if min(jobs, len(tasks)) <= 1:
        yield from ((place, solve(task)) for place, task in tasks.items())
        return
    waiting, killed = deque(tasks), Counter[int]()
    idle: list[_Worker] = []
    busy: dict[Connection, tuple[_Worker, int]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker, place = idle.pop() if idle else _Worker(solve), waiting.popleft()
                busy[worker.pipe] = worker, place
                worker.ask(tasks[place])
            for pipe in wait(list(busy)):
                worker, place = busy.pop(pipe)  # type: ignore[call-overload]  # wait gives what it was given
                answer = worker.answer()
                if answer is None:
                    worker.end()
                    killed[place] += 1
                    if killed[place] < TRIALS:
                        logger.warning("the process of task %s was killed; it is tried again", tasks[place].name)
                        waiting.append(place)
                    continue
                idle.append(worker)
                if isinstance(answer, Exception):
                    raise answer
                yield place, answer
    finally:
        for worker in (*idle, *(worker for worker, _ in busy.values())):
            worker.end()
    lost = [tasks[place].name for place, times in killed.items() if times == TRIALS]
    if lost:
        others = f" and {len(lost) - 1:,} others" * (len(lost) > 1)
        raise WorkFailed(f"the process of task {lost[0]}{others} was killed {TRIALS} times; fewer --jobs may help")


class _Worker:
    """A process that solves one task after another, and ends with this one, however that ends."""

    def __init__(self, solve: Solve) -> None:
        resource_tracker.ensure_running()  # which it starts otherwise, and unblocks what is blocked here
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(solve, theirs), daemon=True)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # Ctrl-C is for this process alone
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            theirs.close()

    def ask(self, task: Task) -> None:
        with suppress(ConnectionError):  # the answer tells
            self.pipe.send(task)

    def answer(self) -> Solution | Exception | None:
        """None if the process is no more."""
        try:
            answer: Solution | Exception = self.pipe.recv()
        except (EOFError, ConnectionError):
            return None
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _work(solve: Solve, pipe: Connection) -> None:
    threading.Thread(target=_end_with_driver, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        while True:
            task = pipe.recv()
            try:
                answer: Solution | Exception = solve(task)
            except Exception as error:  # noqa: BLE001  raised where it is told
                answer = error
            pipe.send(answer)


def _end_with_driver() -> None:
    driver = parent_process()
    if driver is not None:
        driver.join()
    os._exit(1)
