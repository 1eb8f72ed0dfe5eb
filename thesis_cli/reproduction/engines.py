"""Where tasks run. An engine only tries: a task is done when its file exists, never because it says so."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol

from thesis_cli.base.progress import Tick
from thesis_cli.reproduction.store import Task
from thesis_cli.reproduction.task_file import TaskFile, Work
from thesis_cli.reproduction.worker import run_task

logger = logging.getLogger(__name__)

SUBMITTED, NOT_RUN = "submitted", "not run yet"
"""What an engine says of tasks that nothing went wrong with."""


class Engine(Protocol):
    """Runs tasks in any order, anywhere.

    Attributes
    ----------
    jobs : tasks that it runs at once in processes of its own.
    """

    jobs: int

    def run(self, tasks: TaskFile, missing: Sequence[int], progress: Tick) -> dict[int, str]:
        """Try tasks of some places; returns place -> what went wrong, of those that failed."""
        ...


class NoEngine:
    """Runs nothing: what is there is all there is."""

    jobs = 0

    def run(self, tasks: TaskFile, missing: Sequence[int], progress: Tick) -> dict[int, str]:
        return dict.fromkeys(missing, NOT_RUN)


class LocalEngine:
    """Processes of this machine, through joblib's loky.

    Parameters
    ----------
    jobs : processes; 1 runs the tasks in this one.
    retries : how often a task is tried whose process dies while it runs alone.
    """

    def __init__(self, jobs: int = 1, retries: int = 3) -> None:
        self.jobs, self.retries = jobs, retries

    def run(self, tasks: TaskFile, missing: Sequence[int], progress: Tick) -> dict[int, str]:
        if self.jobs == 1 or len(missing) == 1:
            found = tasks.some(missing)
            return self._collect(((i, run_task(t, tasks.work)) for i, t in zip(missing, found, strict=True)), progress)
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = list(missing)
        while True:
            try:
                return self._parallel(tasks, left, progress)
            except TerminatedWorkerError:
                before, left = len(left), [i for i in left if not tasks.file(i).exists()]
                logger.warning("a worker process died; %d tasks are run again", len(left))
                if len(left) == before:
                    break
        # Nothing was finished before the death: each alone, so that one that kills its process stops no other.
        errors: dict[int, str] = {}
        for i in left:
            for _ in range(self.retries):
                try:
                    errors |= self._parallel(tasks, [i], progress)
                    break
                except TerminatedWorkerError:
                    continue
            else:
                errors[i] = f"its process was killed {self.retries} times"
        return errors

    def _parallel(self, tasks: TaskFile, places: Sequence[int], progress: Tick) -> dict[int, str]:
        from joblib import Parallel, delayed

        attempt = delayed(_attempt_in_worker)
        run = Parallel(n_jobs=self.jobs, backend="loky", batch_size=1, return_as="generator_unordered")
        driver, found = os.getpid(), zip(places, tasks.some(places), strict=True)
        return self._collect(run(attempt(i, task, tasks.work, driver) for i, task in found), progress)

    @staticmethod
    def _collect(outcomes: Iterable[tuple[int, str | None]], progress: Tick) -> dict[int, str]:
        errors = {}
        for place, error in outcomes:
            if error is not None:
                errors[place] = error
            progress(1)
        return errors


def _attempt_in_worker(place: int, task: Task, work: Work, driver: int) -> tuple[int, str | None]:
    _end_with(driver)
    return place, run_task(task, work)


@lru_cache
def _end_with(driver: int) -> None:
    """End this process soon after its driver has, however that ended."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
