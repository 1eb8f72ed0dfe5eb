"""Arrays of jobs: tasks that were submitted together, and the batch system that runs them."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from thesis_cli.base.errors import WorkFailed
from thesis_cli.base.files import write_atomic
from thesis_cli.reproduction.task_file import TaskFile, Work

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
        """Cancel a job."""
        ...

    def story(self, array: Array, job: int) -> str:
        """How a job ended, if that is known, and the last lines of its output."""
        ...


@dataclass(frozen=True)
class Array:
    """Jobs that were submitted together.

    Attributes
    ----------
    folder : folder of the array; the batch system knows the array by the folder's name.
    results : folder of results.
    groups : for each job, places of its tasks in `tasks`.
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
