"""Carry out one task, in whatever process."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from thesis_cli.base.compilation import Stopwatch
from thesis_cli.base.errors import WorkFailed
from thesis_cli.base.files import write_atomic
from thesis_cli.base.wording import censored
from thesis_cli.reproduction import store
from thesis_cli.reproduction.fingerprint import fingerprint
from thesis_cli.reproduction.registry import load
from thesis_cli.reproduction.task_file import Work

DIGITS = "%.12g"
"""Format of numbers in results: so many digits agree between processors."""


@dataclass(frozen=True)
class ExperimentWork:
    """Tasks of an experiment.

    Parameters
    ----------
    path : the experiment's file.
    """

    path: Path

    @property
    def version(self) -> int:
        return load(self.path).version

    def code(self, task: store.Task) -> str:
        return fingerprint(self.path)

    def run(self, task: store.Task) -> str:
        import numpy as np

        frame = load(self.path).run(np.random.SeedSequence(int(task.key, 16)), **task.parameters)
        text: str = frame.to_csv(index=False, float_format=DIGITS, lineterminator="\n")
        return text


def run_task(task: store.Task, work: Work) -> str | None:
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
        store.save(task, text, code, watch.seconds)
        task.failure.unlink(missing_ok=True)
        return None
    write_atomic({task.failure: report})
    return report
