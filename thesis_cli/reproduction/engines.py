"""Where tasks run. An engine only tries: a task is done when its file exists, never because it says so."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

from thesis_cli.reproduction.store import Task
from thesis_cli.reproduction.worker import run_task

logger = logging.getLogger(__name__)


class Engine(Protocol):
    """Runs tasks in any order, anywhere."""

    def run(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> dict[str, str]:
        """Try every task; returns key -> traceback of those that raised.

        `progress` is called with the number of tasks just finished.
        """
        ...


class LocalEngine:
    """Processes of this machine, through joblib's loky.

    Parameters
    ----------
    jobs : processes; 1 runs the tasks in this one.
    retries : how often a task is tried whose process dies while it runs alone.
    """

    def __init__(self, jobs: int = 1, retries: int = 3) -> None:
        self.jobs, self.retries = jobs, retries

    def run(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> dict[str, str]:
        if self.jobs == 1 or len(tasks) == 1:
            return self._collect(map(_attempt, tasks), progress)
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = list(tasks)
        while True:
            try:
                return self._parallel(left, progress)
            except TerminatedWorkerError:
                before, left = len(left), [task for task in left if not task.file.exists()]
                logger.warning("a worker process died; %d tasks are run again", len(left))
                if len(left) == before:
                    break
        # Nothing was finished before the death: each alone, so that one that kills its process stops no other.
        errors: dict[str, str] = {}
        for task in left:
            for _ in range(self.retries):
                try:
                    errors |= self._parallel([task], progress)
                    break
                except TerminatedWorkerError:
                    continue
            else:
                errors[task.key] = f"its process was killed {self.retries} times"
        return errors

    def _parallel(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> dict[str, str]:
        from joblib import Parallel, delayed

        run = Parallel(n_jobs=self.jobs, backend="loky", batch_size=1, return_as="generator_unordered")
        return self._collect(run(delayed(_attempt_in_worker)(task, os.getpid()) for task in tasks), progress)

    @staticmethod
    def _collect(outcomes: object, progress: Callable[[int], None]) -> dict[str, str]:
        errors = {}
        for key, error in outcomes:  # type: ignore[attr-defined]
            if error is not None:
                errors[key] = error
            progress(1)
        return errors


def _attempt_in_worker(task: Task, driver: int) -> tuple[str, str | None]:
    _end_with(driver)
    return _attempt(task)


@lru_cache
def _end_with(driver: int) -> None:
    """End this process soon after its driver has, however that ended."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _attempt(task: Task) -> tuple[str, str | None]:
    return task.key, run_task(task)
