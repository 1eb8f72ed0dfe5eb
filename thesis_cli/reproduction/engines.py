"""Where tasks run. A task is done when its result's file exists, whatever its engine reports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from thesis_cli.base.pool import TRIALS, answers
from thesis_cli.base.progress import Tick
from thesis_cli.reproduction.store import Task
from thesis_cli.reproduction.task_file import TaskFile, Work
from thesis_cli.reproduction.worker import run_task

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
        for place, error in answers(partial(_attempt, tasks.work), tasks.some, missing, self.jobs, self.retries):
            if error is not None:
                errors[place] = str(error)
            progress(1)
        return errors


def _attempt(work: Work, task: Task) -> str | None:
    """Run a task, unless a process that was killed has done so already."""
    return None if task.file.exists() else run_task(task, work)
