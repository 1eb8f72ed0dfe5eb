"""How far the tasks of a file have come, seen from outside."""

from __future__ import annotations

import os
from dataclasses import dataclass

from thesis_cli.reproduction.arrays import HELD, STUCK, Queue, arrays_of, places_of
from thesis_cli.reproduction.run_folder import driver_of
from thesis_cli.reproduction.task_file import TaskFile

RECENT = 600.0
"""Seconds before the latest result whose results tell the speed."""
FEW = 20_000
"""Results of which all are looked at; of more, those of some folders."""


@dataclass(frozen=True)
class Survey:
    """Counts of tasks, which add up to all.

    Attributes
    ----------
    running : in a process or job that runs.
    waiting : in a job that waits for its turn.
    failed : raised when it was last tried, and is not being tried again.
    missing : none of these.
    seconds_left : by the speed of late; None if nothing is known or nothing runs.
    """

    tasks: int
    done: int
    running: int
    waiting: int
    failed: int
    missing: int
    seconds_left: float | None


def survey(tasks: TaskFile, queue: Queue) -> Survey:
    """Count.

    Parameters
    ----------
    queue : of the batch system; empty where there is none.
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
    """Tasks a second, by the times of the latest results: all of them by the clock of the file system."""
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
