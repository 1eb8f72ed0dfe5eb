"""Carry out tasks: one in this process, or many in processes of this machine.

A task is done when the store has its result, whatever its engine reports.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Protocol

from thesis_cli.base.errors import WorkFailed, censored
from thesis_cli.base.pool import TRIALS, answers
from thesis_cli.base.progress import Stopwatch, Tick
from thesis_cli.reproduction.experiment import Experiment, load
from thesis_cli.reproduction.fingerprint import fingerprint
from thesis_cli.reproduction.tasks import Pending, Task, TaskFile, Work

DIGITS = "%.12g"
"""Format of numbers in results: so many digits agree between processors."""


@dataclass(frozen=True)
class ExperimentWork:
    """Tasks of an experiment."""

    path: Path

    @property
    def version(self) -> int:
        return load(self.path).version

    def code(self, task: Task) -> str:
        return _code_of(load(self.path), self.path)

    def run(self, task: Task) -> str:
        import numpy as np

        frame = load(self.path).run(np.random.SeedSequence(int(task.key, 16)), **task.parameters)
        text: str = frame.to_csv(index=False, float_format=DIGITS, lineterminator="\n")
        return text


@cache
def _code_of(experiment: Experiment, path: Path) -> str:
    """Fingerprint of an experiment; made once, as what a process has imported does not change with its file."""
    return fingerprint(path)


def run_task(task: Task, work: Work) -> str | None:
    """Compute a task and store its result.

    Returns
    -------
    The error, which is stored, too; None if the task is done.

    Raises
    ------
    OSError : a file could not be written.
    """
    watch = Stopwatch()
    try:
        code, text = work.code(task), work.run(task)
    except WorkFailed as error:  # its message needs no traceback
        report = censored(str(error))
    except Exception:  # noqa: BLE001  any exception is reported with its task
        report = censored(traceback.format_exc())
    else:
        task.save(text, code, watch.seconds)
        return None
    task.save(report, "", watch.seconds)
    return report


SUBMITTED, NOT_RUN = "submitted", "not run yet"
"""Statuses that are not errors."""


class Engine(Protocol):
    """Runs tasks in any order, anywhere.

    Attributes
    ----------
    jobs : tasks that it runs at once in processes of this machine.
    """

    jobs: int

    def run(self, tasks: TaskFile, missing: Sequence[int], progress: Tick) -> dict[int, str]:
        """Try the tasks at some places.

        Returns
        -------
        Place -> error or status, of each task that it did not finish.
        """
        ...


class NoEngine:
    """Runs nothing."""

    jobs = 0

    def run(self, tasks: TaskFile, missing: Sequence[int], progress: Tick) -> dict[int, str]:
        return dict.fromkeys(missing, NOT_RUN)


class LocalEngine:
    """Runs tasks in processes of this machine.

    Parameters
    ----------
    jobs : number of processes; with 1, the tasks run in this one.
    retries : how often a task is tried whose process is killed.
    """

    def __init__(self, jobs: int = 1, retries: int = TRIALS) -> None:
        self.jobs, self.retries = jobs, retries

    def run(self, tasks: Unfinished, missing: Sequence[int], progress: Tick) -> dict[int, str]:
        errors = {}
        for place, error in answers(attempt, tasks.unfinished, missing, self.jobs, self.retries):
            if error is not None:
                errors[place] = str(error)
            progress(1)
        return errors


def attempt(pending: Pending | None) -> str | None:
    """Run a task, if there is one."""
    return run_task(*pending) if pending else None


class Unfinished(Protocol):
    """Tasks as processes take them: numbered, each with its work; None for one with a result."""

    def unfinished(self, places: Sequence[int]) -> Iterator[Pending | None]: ...


class JoinedTasks:
    """Tasks of several files, which processes take in one order.

    Parameters
    ----------
    places : file of each task, and its place there.
    """

    def __init__(self, places: Sequence[tuple[TaskFile, int]]) -> None:
        self._places = places

    def unfinished(self, places: Sequence[int]) -> Iterator[Pending | None]:
        for tasks, group in groupby((self._places[place] for place in places), itemgetter(0)):
            yield from tasks.unfinished([place for _, place in group])
