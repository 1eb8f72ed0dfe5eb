"""The engine for batch systems: what is missing goes into arrays of jobs, until nothing is.

Nothing but the file system is believed. A task that has no result, has not failed, and is in no job that stands in the
queue, has vanished: it is submitted again, up to a limit. So the driver may die at any moment, and any job too.
"""

from __future__ import annotations

import filecmp
import json
import logging
import os
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Protocol

from thesis_cli.base.errors import WorkFailed
from thesis_cli.base.files import write_atomic
from thesis_cli.base.progress import Tick
from thesis_cli.reproduction import store
from thesis_cli.reproduction.engines import SUBMITTED
from thesis_cli.reproduction.task_file import TaskFile, Work

logger = logging.getLogger(__name__)

PREFIX = "thesis-cli-"
"""Of the names of arrays."""
PILOT = 20
"""Jobs of one task each that are waited for first, where no task's time is known."""
MEASURED = 200
"""Results of which times are read."""
SHORTEST_PAUSE = 0.5
"""Seconds between two looks at the queue, after a submission; they grow until the next."""

Queue = Mapping[str, Mapping[int, str]]
"""Name of an array -> its jobs that wait or run -> PENDING, RUNNING, ..."""
STUCK = "STUCK"
"""First word of the state of a job that is never going to start; the reason follows."""
HELD = "HELD"
"""State of a job that waits until an administrator releases it, as after the loss of a node."""


class Refused(WorkFailed):
    """The batch system takes no more jobs now."""


class Cluster(Protocol):
    """A batch system.

    Attributes
    ----------
    most_jobs : that an array may have.
    """

    @property
    def most_jobs(self) -> int: ...

    def submit(self, array: Array, work: Work) -> str:
        """Submit an array, a job for each of its groups; returns what the system calls it.

        Raises
        ------
        Refused : naming the reason.
        """
        ...

    def queue(self) -> Queue | None:
        """The user's jobs; None while the system does not answer."""
        ...

    def cancel(self, array: Array, job: int) -> None: ...

    def story(self, array: Array, job: int) -> str:
        """How a job ended, as far as that is known, and the end of what it said."""
        ...


@dataclass(frozen=True)
class Array:
    """Jobs that were submitted together.

    Attributes
    ----------
    folder : its own, named as the batch system names the array.
    results : folder of results.
    groups : places of tasks in `tasks`, for each job.
    parallel : how many of its jobs may run at once; 0 for no limit.
    """

    folder: Path
    results: Path
    groups: Sequence[Sequence[int]]
    parallel: int = 0

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def tasks(self) -> Path:
        """The task file as it was then, whatever has become of it."""
        return self.folder / "tasks.json"

    def save(self, tasks: TaskFile) -> None:
        self.folder.mkdir(parents=True)
        try:
            os.link(tasks.path, self.tasks)  # which is replaced when it changes, never written to
        except OSError:
            shutil.copyfile(tasks.path, self.tasks)
        self.note("")

    def note(self, job_id: str) -> None:
        """Keep what the batch system calls it; before it is submitted, that it is going to be."""
        record = {"groups": self.groups, "id": job_id, "submitted": datetime.now(UTC).isoformat(timespec="seconds")}
        write_atomic({self.folder / "array.json": json.dumps(record) + "\n"})

    def id(self) -> str:
        return str(json.loads((self.folder / "array.json").read_text())["id"])


def arrays_of(tasks: TaskFile) -> list[Array]:
    """Arrays whose folders there are, of any driver."""
    found = []
    for file in sorted(_home(tasks).glob("*/array.json")):
        try:
            groups = json.loads(file.read_text())["groups"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        found.append(Array(file.parent, tasks.path.parent, groups))
    return found


def places_of(array: Array, tasks: TaskFile) -> Sequence[Sequence[int]]:
    """The groups of an array, in places of a task file that may have changed since."""
    try:
        if array.tasks.samefile(tasks.path) or filecmp.cmp(array.tasks, tasks.path, shallow=False):
            return array.groups
        now = {key: i for i, key in enumerate(tasks.keys)}
        then = TaskFile(array.tasks, tasks.work).keys
    except FileNotFoundError:  # somebody removes its folder
        return []
    return [[now[then[i]] for i in group if then[i] in now] for group in array.groups]


def first_jobs(tasks: int) -> int:
    """Jobs that are submitted first where no task's time is known."""
    return tasks if tasks <= 2 * PILOT else PILOT


def _home(tasks: TaskFile) -> Path:
    return tasks.path.with_suffix(".jobs")


class ArrayEngine:
    """Tasks in arrays of a batch system.

    Parameters
    ----------
    cluster : the batch system.
    target_minutes : how long a job is meant to take; tasks are grouped by the times of those that are finished.
    parallel : how many jobs may run at once; 0 for no limit.
    retries : how often a task is submitted whose jobs end without a word.
    detach : submit, and wait for nothing.
    settle : seconds that a result may take to be seen here, after its job has left the queue.
    longest_pause : seconds between two looks at the queue, at most.
    """

    jobs = 0

    def __init__(
        self,
        cluster: Cluster,
        *,
        target_minutes: float = 10.0,
        parallel: int = 0,
        retries: int = 3,
        detach: bool = False,
        settle: float = 60.0,
        longest_pause: float = 15.0,
    ) -> None:
        self.cluster, self.target_minutes, self.parallel = cluster, target_minutes, parallel
        self.retries, self.detach, self.settle, self.longest_pause = retries, detach, settle, longest_pause

    def run(self, tasks: TaskFile, missing: Sequence[int], progress: Tick) -> dict[int, str]:
        """Try tasks of some places; returns place -> what went wrong.

        Raises
        ------
        WorkFailed : the batch system takes no job at all.
        """
        drive = _Drive(self, tasks, missing, progress)
        try:
            drive.take_over()
            while drive.step():
                time.sleep(drive.pause)
        except KeyboardInterrupt:
            ids = [found for name, array in drive.arrays.items() if drive.standing(name) and (found := array.id())]
            if ids:
                logger.warning("jobs go on: %s; the same command takes them over, scancel ends them", " ".join(ids))
            raise
        drive.tidy()
        return drive.errors


class _Drive:
    """One run of a driver, from what it finds to nothing left to wait for."""

    def __init__(self, engine: ArrayEngine, tasks: TaskFile, missing: Sequence[int], progress: Tick) -> None:
        self.engine, self.tasks, self.progress = engine, tasks, progress
        self.left = set(missing)
        self.arrays: dict[str, Array] = {}
        self._groups: dict[str, Sequence[Sequence[int]]] = {}
        self.errors: dict[int, str] = {}
        self.pause = SHORTEST_PAUSE
        self._queue: Queue = {}
        self._ended: dict[tuple[str, int], float] = {}
        self._tried = Counter[int]()
        self._last: dict[int, tuple[str, int]] = {}
        self._piloted = False
        self._told = set[str]()
        self._judged = set[tuple[str, int]]()

    def take_over(self) -> None:
        """Adopt the arrays of earlier drivers that still stand; forget the others, and how their tasks failed."""
        self._look()
        known = {array.name: array for array in arrays_of(self.tasks)}
        for folder in _home(self.tasks).glob("*"):
            if folder.name in known and folder.name in self._queue:
                self._add(known[folder.name], places_of(known[folder.name], self.tasks))
                self._cancel_needless(folder.name)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        if jobs := sum(map(len, map(self.standing, self.arrays))):
            logger.info("%s of an earlier run taken over", _counted(jobs, "job"))
        failed = set(self.tasks.indices(self.tasks.failed()))
        for i in (self.left & failed) - self._flying():
            self.tasks.failure(i).unlink(missing_ok=True)

    def _cancel_needless(self, name: str) -> None:
        """Cancel jobs that wait and whose tasks are no longer wanted, as after a change of the sweep."""
        for job, state in self.standing(name).items():
            if state == "PENDING" and job < len(self._groups[name]) and self.left.isdisjoint(self._groups[name][job]):
                self.engine.cluster.cancel(self.arrays[name], job)

    def _add(self, array: Array, groups: Sequence[Sequence[int]]) -> None:
        self.arrays[array.name], self._groups[array.name] = array, groups

    def standing(self, name: str) -> Mapping[int, str]:
        """Jobs of an array that wait or run, when the queue was last seen."""
        return {job: state for job, state in self._queue.get(name, {}).items() if state != HELD}

    def step(self) -> bool:
        """Look, and submit what is free; False if there is nothing to wait for."""
        self._look()  # before the results: a job that ends in between is not taken for lost
        began = time.monotonic()
        finished, before = self.tasks.finished(), len(self.left)
        self.left = {i for i in self.left if self.tasks.keys[i] not in finished}
        del finished  # as large as all else together
        failed = self.tasks.failed()
        self.errors |= {i: _text(self.tasks.failure(i)) for i in self.left if self.tasks.keys[i] in failed}
        self.left.difference_update(self.errors)
        self.progress(before - len(self.left))
        flying = self._flying()
        self._give_up(self.left - flying)
        free = sorted(self.left - flying)
        submitted = self._submit(free, bool(flying)) if free else False
        looked = time.monotonic() - began
        patience = SHORTEST_PAUSE if submitted else self.pause * 1.5
        self.pause = max(5 * looked, min(patience, self.engine.longest_pause))
        if self.engine.detach:
            self.errors |= dict.fromkeys(self.left, SUBMITTED)
            return False
        return bool(self.left)

    def tidy(self) -> None:
        """Remove the folders of arrays that nothing more is to be learned from."""
        for name, groups in self._groups.items():
            waits = "PENDING" in self.standing(name).values()
            if not (waits or any(i in self.errors for group in groups for i in group)):
                shutil.rmtree(self.arrays[name].folder, ignore_errors=True)

    def _look(self) -> None:
        told, wait = False, 1.0
        while (queue := self.engine.cluster.queue()) is None:
            if not told:
                logger.warning("the batch system does not answer; it is asked again until it does")
            told = True
            time.sleep(wait)
            wait = min(2 * wait, self.engine.longest_pause)
        self._queue = queue

    def _flying(self) -> set[int]:
        """Tasks that a job is going to do, or may have done a moment ago."""
        flying, now = set[int](), time.monotonic()
        for name, groups in self._groups.items():
            standing = self.standing(name)
            for job, group in enumerate(groups):
                left = [i for i in group if i in self.left]
                if not left:
                    continue
                state = self._queue.get(name, {}).get(job, "")
                if state == HELD:
                    self.engine.cluster.cancel(self.arrays[name], job)
                elif state.startswith(STUCK) and name not in self._told:
                    self._told.add(name)
                    advice = "cancel them, or run this again with other options after that"
                    logger.warning("jobs %s are never going to start: %s; %s", self.arrays[name].id(), state, advice)
                if job in standing:
                    self._ended.pop((name, job), None)  # it was requeued
                    flying.update(left)
                elif now - self._ended.setdefault((name, job), now) < self.engine.settle:
                    flying.update(left)
                elif (name, job) not in self._judged:
                    self._judged.add((name, job))
                    self._last[left[0]] = name, job
                    self._tried[left[0]] += 1  # those behind it were never begun
        return flying

    def _give_up(self, free: set[int]) -> None:
        for i in free:
            if self._tried[i] >= self.engine.retries:
                name, job = self._last[i]
                story = self.engine.cluster.story(self.arrays[name], job)
                count = f"{self._tried[i]} of {self.engine.retries} tries"
                self.errors[i] = f"its job ended without a result ({count}){story}"
                self.left.discard(i)

    def _submit(self, free: Sequence[int], flying: bool) -> bool:
        """Submit tasks, or some of them for their times; False if nothing could be."""
        engine, most = self.engine, self.engine.cluster.most_jobs
        seconds = _seconds(self.tasks)
        again, fresh = [i for i in free if self._tried[i]], [i for i in free if not self._tried[i]]
        if seconds is not None:
            size = max(1, round(60 * engine.target_minutes / seconds))
            jobs = -(-len(fresh) // size)
        elif engine.detach or first_jobs(len(fresh)) == len(fresh) or (self._piloted and not flying):
            jobs = min(len(fresh), most)
        elif flying:
            return False  # the pilot
        else:
            fresh = fresh[:: -(-len(fresh) // PILOT)]
            jobs, self._piloted = len(fresh), True
        groups = [[i] for i in again] + [fresh[k::jobs] for k in range(jobs)]
        pieces = [groups[k : k + most] for k in range(0, len(groups), most)]
        parallel = max(1, engine.parallel // len(pieces)) if engine.parallel else 0
        for piece in pieces:
            name = f"{PREFIX}{secrets.token_hex(6)}"
            array = Array(_home(self.tasks) / name, self.tasks.path.parent, piece, parallel)
            array.save(self.tasks)
            try:
                array.note(engine.cluster.submit(array, self.tasks.work))
            except Refused as refusal:
                shutil.rmtree(array.folder, ignore_errors=True)
                if not (flying or piece is not pieces[0]) and engine.cluster.queue() is not None:
                    raise
                logger.debug("no more jobs are taken now: %s", refusal)
                return piece is not pieces[0]
            self._add(array, piece)
            self._queue = {**self._queue, name: dict.fromkeys(range(len(piece)), "PENDING")}
        logger.info("%s submitted in %s", _counted(sum(map(len, groups)), "task"), _counted(len(groups), "job"))
        return True


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except FileNotFoundError:
        return "it failed"


def _seconds(tasks: TaskFile) -> float | None:
    """What a task takes, by some of those that are finished; None if none is.

    The median: the first tasks on a node may have compiled code for a minute.
    """
    there = tasks.indices(tasks.finished())
    some = there[:: -(-len(there) // MEASURED) or 1]
    times = [found.seconds for i in some if (found := store.read(tasks.file(i)))]
    return max(median(times), 1e-3) if times else None
