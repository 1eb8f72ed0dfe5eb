"""The engine for batch systems: it submits tasks in arrays of jobs until all have a result.

The engine relies on the file system and the queue alone. It submits a task again, up to a limit, if
the task has no result, has not failed, and belongs to no job in the queue. So the driver and any
job may be killed at any moment.
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
from math import isqrt
from pathlib import Path
from statistics import median
from typing import Protocol

from thesis_cli.base.errors import WorkFailed, counted
from thesis_cli.base.files import write_atomic
from thesis_cli.base.progress import Tick
from thesis_cli.reproduction.engines import SUBMITTED
from thesis_cli.reproduction.tasks import TaskFile, Work

Queue = Mapping[str, Mapping[int, str]]
"""Name of an array -> number of a job that waits or runs -> PENDING, RUNNING, ..."""
STUCK = "STUCK"
"""First word of the state of a job that can never start; the reason follows."""
HELD = "HELD"
"""State of a job that an administrator must release, such as after the loss of a node."""


class Refused(WorkFailed):
    """The batch system accepts no more jobs now."""


class Cluster(Protocol):
    """A batch system.

    Attributes
    ----------
    most_jobs : largest number of jobs in an array.
    """

    @property
    def most_jobs(self) -> int: ...

    def submit(self, array: Array, work: Work) -> str:
        """Submit an array, one job for each of its groups; returns the id that the system gives it.

        Raises
        ------
        Refused : the system accepts no jobs; with the reason.
        """
        ...

    def queue(self) -> Queue | None:
        """The jobs of the user; None while the system does not answer."""
        ...

    def cancel(self, array: Array, job: int) -> None:
        """Cancel a job; all of an array whose id is not known."""
        ...

    def story(self, array: Array, job: int) -> str:
        """End of a job, if it is known, and the last lines of its output."""
        ...


@dataclass(frozen=True)
class Array:
    """Jobs that were submitted together.

    Attributes
    ----------
    folder : folder of the array; the batch system knows the array by the folder's name.
    results : folder of the store.
    groups : places in `tasks` of the tasks of each job.
    parallel : number of jobs that may run at once; 0 for no limit.
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
        """Copy of the task file as it was when the array was submitted."""
        return self.folder / "tasks.json"

    def save(self, tasks: TaskFile) -> None:
        """Create the folder."""
        self.folder.mkdir(parents=True)
        try:
            os.link(tasks.path, self.tasks)  # the file is replaced if it changes, never written to
        except OSError:
            shutil.copyfile(tasks.path, self.tasks)
        self.note("")

    def note(self, job_id: str) -> None:
        """Write the record of the array: its groups, and its id once it is submitted."""
        record = {"groups": self.groups, "id": job_id, "submitted": datetime.now(UTC).isoformat(timespec="seconds")}
        write_atomic({self.folder / "array.json": json.dumps(record) + "\n"})

    def id(self) -> str:
        """The id that the batch system gave it; empty before it is submitted."""
        return str(json.loads((self.folder / "array.json").read_text())["id"])


def arrays_of(tasks: TaskFile) -> list[Array]:
    """The arrays that any driver has submitted, by their folders."""
    found = []
    for file in sorted(array_folder(tasks).glob("*/array.json")):
        try:
            groups = json.loads(file.read_text())["groups"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        found.append(Array(file.parent, tasks.path.parent, groups))
    return found


def places_of(array: Array, tasks: TaskFile) -> Sequence[Sequence[int]]:
    """The groups of an array, as places in a task file that may have changed since."""
    try:
        if array.tasks.samefile(tasks.path) or filecmp.cmp(array.tasks, tasks.path, shallow=False):
            return array.groups
        now = {key: i for i, key in enumerate(tasks.keys)}
        then = TaskFile(array.tasks, tasks.work).keys
    except FileNotFoundError:  # another process removes its folder
        return []
    return [[now[then[i]] for i in group if then[i] in now] for group in array.groups]


def array_folder(tasks: TaskFile) -> Path:
    """Folder of the arrays of a task file."""
    return tasks.path.with_suffix(".jobs")


logger = logging.getLogger(__name__)

PREFIX = "thesis-cli-"
"""Prefix of the names of arrays."""
FEWEST, MOST = 4, 20
"""Numbers of jobs, of one task each, between which those are that run first if no task's time is known."""
MEASURED = 200
"""Number of results whose times are read."""
SHORTEST_PAUSE = 0.5
"""Seconds between two looks at the queue after a submission; they grow until the next one."""


def first_jobs(tasks: int) -> int:
    """Number of jobs that are submitted first if no task's time is known: a root of all, within limits."""
    return min(tasks, max(FEWEST, min(isqrt(tasks), MOST)))


class ArrayEngine:
    """Runs tasks in arrays of jobs of a batch system.

    Parameters
    ----------
    cluster : the batch system.
    target_minutes : planned length of a job; tasks are grouped by the times of finished ones.
    parallel : number of jobs that may run at once; 0 for no limit.
    retries : number of times that a task is submitted if its jobs end without a result.
    detach : submit jobs and do not wait for them.
    settle : seconds until a result is visible here after its job has left the queue.
    longest_pause : largest number of seconds between two looks at the queue.
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
        """Try the tasks at some places; returns place -> error or status.

        Raises
        ------
        WorkFailed : the batch system accepts no job at all.
        """
        drive = _Drive(self, tasks, missing, progress)
        try:
            drive.take_over()
            while drive.step():
                time.sleep(drive.pause)
        except KeyboardInterrupt:
            ids = [found for name, array in drive.arrays.items() if drive.standing(name) and (found := array.id())]
            if ids:
                logger.warning("jobs continue: %s; the same command takes them over, scancel ends them", " ".join(ids))
            raise
        drive.tidy()
        return drive.errors


class _Drive:
    """One run of a driver."""

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
        self._pilot = set[int]()
        self._pilots = 0
        self._running: float | None = None
        self._warned = set[str]()
        self._judged = set[tuple[str, int]]()

    def take_over(self) -> None:
        """Adopt the arrays in the queue; remove others, and the errors of their tasks."""
        self._look()
        known = {array.name: array for array in arrays_of(self.tasks)}
        for folder in array_folder(self.tasks).glob("*"):
            array = known.get(folder.name) if folder.name in self._queue else None
            if array and array.id():
                self._add(array, places_of(array, self.tasks))
                self._cancel_needless(folder.name)
                continue
            if array:  # a driver was killed while it submitted this: its jobs would wait for their work in vain
                self.engine.cluster.cancel(array, 0)
            shutil.rmtree(folder, ignore_errors=True)
        if jobs := sum(map(len, map(self.standing, self.arrays))):
            logger.info("%s of an earlier run taken over", counted(jobs, "job"))
        failed = set(self.tasks.indices(self.tasks.failed()))
        self.tasks.store.drop({self.tasks.keys[i] for i in (self.left & failed) - self._flying()})

    def _cancel_needless(self, name: str) -> None:
        """Cancel waiting jobs whose tasks are not needed, such as after a change of the sweep."""
        for job, state in self.standing(name).items():
            if state == "PENDING" and job < len(self._groups[name]) and self.left.isdisjoint(self._groups[name][job]):
                self.engine.cluster.cancel(self.arrays[name], job)

    def _add(self, array: Array, groups: Sequence[Sequence[int]]) -> None:
        self.arrays[array.name], self._groups[array.name] = array, groups

    def standing(self, name: str) -> Mapping[int, str]:
        """Jobs of an array that waited or ran at the last look at the queue."""
        return {job: state for job, state in self._queue.get(name, {}).items() if state != HELD}

    def step(self) -> bool:
        """Look at queue and results, and submit tasks; returns False if all is done."""
        self._look()  # before the results: a job that ends in between must not count as lost
        began = time.monotonic()
        finished, before = self.tasks.finished(), len(self.left)
        self.left = {i for i in self.left if self.tasks.keys[i] not in finished}
        failed = self.tasks.failed()
        self.errors |= {
            i: self.tasks.store.error(self.tasks.keys[i]) for i in self.left if self.tasks.keys[i] in failed
        }
        self.left.difference_update(self.errors)
        self.progress(before - len(self.left))
        flying = self._flying()
        self._give_up(self.left - flying)
        free = sorted(self.left - flying)
        submitted = self._submit(free, flying) if free else False
        looked = time.monotonic() - began
        patience = SHORTEST_PAUSE if submitted else self.pause * 1.5
        self.pause = max(5 * looked, min(patience, self.engine.longest_pause))
        if self.engine.detach:
            self.errors |= dict.fromkeys(self.left, SUBMITTED)
            return False
        return bool(self.left)

    def tidy(self) -> None:
        """Remove the folders of arrays without waiting jobs and without errors."""
        for name, groups in self._groups.items():
            waits = "PENDING" in self.standing(name).values()
            if not (waits or any(i in self.errors for group in groups for i in group)):
                shutil.rmtree(self.arrays[name].folder, ignore_errors=True)

    def _look(self) -> None:
        warned, wait = False, 1.0
        while (queue := self.engine.cluster.queue()) is None:
            if not warned:
                logger.warning("the batch system does not answer; waiting until it does")
            warned = True
            time.sleep(wait)
            wait = min(2 * wait, self.engine.longest_pause)
        self._queue = queue

    def _flying(self) -> set[int]:
        """Tasks of jobs in the queue, or of jobs that ended only just now."""
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
                elif state.startswith(STUCK) and name not in self._warned:
                    self._warned.add(name)
                    advice = "cancel them, and run this again with other options"
                    logger.warning("jobs %s can never start: %s; %s", self.arrays[name].id(), state, advice)
                if job in standing:
                    self._ended.pop((name, job), None)  # it was requeued
                    flying.update(left)
                elif now - self._ended.setdefault((name, job), now) < self.engine.settle:
                    flying.update(left)
                elif (name, job) not in self._judged:
                    self._judged.add((name, job))
                    self._last[left[0]] = name, job
                    self._tried[left[0]] += 1  # the job had not begun the tasks after it
        return flying

    def _give_up(self, free: set[int]) -> None:
        for i in free:
            if self._tried[i] >= self.engine.retries:
                name, job = self._last[i]
                story = self.engine.cluster.story(self.arrays[name], job)
                count = f"{self._tried[i]} of {self.engine.retries} tries"
                self.errors[i] = f"its job ended without a result ({count}){story}"
                self.left.discard(i)

    def _measuring(self, seconds: float | None, flying: set[int]) -> bool:
        """Whether to wait for the first few tasks, or for any if no time is known.

        Tasks that have run for the planned length of a job are too long to be grouped anyway.
        """
        states = (state for name in self.arrays for state in self.standing(name).values())
        if self._running is None and "RUNNING" in states:
            self._running = time.monotonic()
        if self.engine.detach or not flying:
            return False
        short = self._running is None or time.monotonic() - self._running < 60 * self.engine.target_minutes
        return short and (seconds is None or bool(self._pilot & flying))

    def _submit(self, free: Sequence[int], flying: set[int]) -> bool:
        """Submit tasks, at first a few to measure their times; False if none was accepted.

        A task whose job has died shares its next one with others of this kind alone, which are many
        after a mass cancel; the second time it goes alone.
        """
        engine, most = self.engine, self.engine.cluster.most_jobs
        seconds = _seconds(self.tasks)
        if self._measuring(seconds, flying):
            return False
        alone = [i for i in free if self._tried[i] > 1]
        rest = [i for i in free if self._tried[i] <= 1]
        size, pilot = 1, set[int]()
        if seconds is not None:
            size = max(1, round(60 * engine.target_minutes / seconds))
        elif engine.detach:
            size = max(1, -(-len(rest) // most))
        elif rest and not flying:  # twice as many as before, as these gave no time
            few = min(first_jobs(len(rest)) << self._pilots, len(rest), most)
            rest = rest[:: -(-len(rest) // few)]
            pilot = set(rest)
        groups = [[i] for i in alone]
        for tried in (1, 0):
            some = [i for i in rest if self._tried[i] == tried]
            jobs = -(-len(some) // size)
            groups += [some[k::jobs] for k in range(jobs)]
        pieces = [groups[k : k + most] for k in range(0, len(groups), most)]
        parallel = max(1, engine.parallel // len(pieces)) if engine.parallel else 0
        for piece in pieces:
            name = f"{PREFIX}{secrets.token_hex(6)}"
            array = Array(array_folder(self.tasks) / name, self.tasks.path.parent, piece, parallel)
            array.save(self.tasks)
            try:
                array.note(engine.cluster.submit(array, self.tasks.work))
            except Refused as refusal:
                shutil.rmtree(array.folder, ignore_errors=True)
                if not (flying or piece is not pieces[0]) and engine.cluster.queue() is not None:
                    raise
                logger.debug("no more jobs are accepted now: %s", refusal)
                return piece is not pieces[0]
            self._add(array, piece)
            self._queue = {**self._queue, name: dict.fromkeys(range(len(piece)), "PENDING")}
        if pilot:
            self._pilot, self._pilots = pilot, self._pilots + 1
        logger.info("%s submitted in %s", counted(sum(map(len, groups)), "task"), counted(len(groups), "job"))
        return True


def _seconds(tasks: TaskFile) -> float | None:
    """Median seconds of some finished tasks; None if none is finished.

    A mean would count the minute that the first tasks on a node may need to compile code.
    """
    there = tasks.indices(tasks.finished())
    some = there[:: -(-len(there) // MEASURED) or 1]
    times = [found.seconds for i in some if (found := tasks.store.result(tasks.keys[i]))]
    return max(median(times), 1e-3) if times else None
