"""Carry out tasks: one in this process, or many in processes of this machine.

A task is done when the file of its result exists, whatever its engine reports.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from thesis_cli.base.compilation import Stopwatch
from thesis_cli.base.errors import WorkFailed
from thesis_cli.base.files import write_atomic
from thesis_cli.base.pool import TRIALS, answers
from thesis_cli.base.progress import Tick
from thesis_cli.base.wording import censored
from thesis_cli.reproduction.fingerprint import fingerprint
from thesis_cli.reproduction.registry import load
from thesis_cli.reproduction.tasks import Task, TaskFile, Work, save_stored

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
        return fingerprint(self.path)

    def run(self, task: Task) -> str:
        import numpy as np

        frame = load(self.path).run(np.random.SeedSequence(int(task.key, 16)), **task.parameters)
        text: str = frame.to_csv(index=False, float_format=DIGITS, lineterminator="\n")
        return text


def run_task(task: Task, work: Work) -> str | None:
    """Compute a task and write its file.

    Returns
    -------
    The error, which is also written to the task's file of errors; None if the task is done.

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
        save_stored(task, text, code, watch.seconds)
        task.failure.unlink(missing_ok=True)
        return None
    write_atomic({task.failure: report})
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

    def run(self, tasks: TaskFile, missing: Sequence[int], progress: Tick) -> dict[int, str]:
        errors = {}
        for place, error in answers(partial(attempt, tasks.work), tasks.some, missing, self.jobs, self.retries):
            if error is not None:
                errors[place] = str(error)
            progress(1)
        return errors


def attempt(work: Work, task: Task) -> str | None:
    """Run a task, unless a process that was killed has done so already."""
    return None if task.file.exists() else run_task(task, work)
