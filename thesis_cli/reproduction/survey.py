"""How many tasks of a file are done, running and waiting, by what is on disk and in the queue."""

from __future__ import annotations

import os
from dataclasses import dataclass

from thesis_cli.reproduction.job_arrays import HELD, STUCK, Queue, arrays_of, places_of
from thesis_cli.reproduction.run_folder import driver_of
from thesis_cli.reproduction.task_file import TaskFile

RECENT = 600.0
"""Seconds before the latest result in which results are counted for the speed."""
FEW = 20_000
"""Up to so many results are all looked at; of more, those of some folders."""


@dataclass(frozen=True)
class Survey:
    """Counts of tasks; they add up to `tasks`.

    Attributes
    ----------
    done : tasks with a result.
    running : tasks of a process or job that runs.
    waiting : tasks of a job in the queue.
    failed : tasks whose last try failed, and that are not being tried again.
    missing : all others.
    seconds_left : estimate from the latest results; None if nothing runs or nothing is known.
    """

    tasks: int
    done: int
    running: int
    waiting: int
    failed: int
    missing: int
    seconds_left: float | None


def survey(tasks: TaskFile, queue: Queue) -> Survey:
    """Count the tasks of a file.

    Parameters
    ----------
    queue : jobs in the batch system; empty if there is none.
    """
    finished, failed = tasks.finished(), tasks.failed()
    left = {i for i, key in enumerate(tasks.keys) if key not in finished}
    running, waiting = set[int](), set[int]()
    for array in arrays_of(tasks):
        for job, group in enumerate(places_of(array, tasks)):
            state = queue.get(array.name, {}).get(job)
            if state not in (None, "COMPLETING"):
                (waiting if state.startswith(("PENDING", STUCK, HELD)) else running).update(left.intersection(group))
    waiting -= running
    broken = {i for i in left - running - waiting if tasks.keys[i] in failed}
    rest = len(left) - len(running) - len(waiting) - len(broken)
    driver = driver_of(tasks.path)
    at_work = min(driver.jobs, rest) if driver and driver.alive else 0
    going = len(running) + at_work
    rate = _rate(tasks) if going else None
    return Survey(
        tasks=len(tasks),
        done=len(tasks) - len(left),
        running=going,
        waiting=len(waiting),
        failed=len(broken),
        missing=rest - at_work,
        seconds_left=(len(left) - len(broken)) / rate if rate else None,
    )


def _rate(tasks: TaskFile) -> float | None:
    """Tasks per second, from the times of the latest results by the file system's clock."""
    folder = tasks.path.parent
    pairs = sorted(entry.name for entry in os.scandir(folder) if len(entry.name) == 2)
    some = pairs[:: -(-len(tasks) // FEW)]
    times = sorted(
        entry.stat().st_mtime for pair in some for entry in os.scandir(folder / pair) if entry.name.endswith(".csv")
    )
    recent = [time for time in times if time >= times[-1] - RECENT]
    if len(recent) < 2 or recent[-1] == recent[0]:
        return None
    return (len(recent) - 1) / (recent[-1] - recent[0]) * len(pairs) / len(some)
