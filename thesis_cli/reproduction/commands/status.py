"""`thesis-cli status`: how many tasks of sweeps and experiments are done, running and waiting."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.fields import Request, argument, option
from thesis_cli.commands.core.result import Summary
from thesis_cli.reproduction.arrays import HELD, STUCK, Queue, arrays_of, places_of
from thesis_cli.reproduction.commands import OwnCommand, cluster, sweep
from thesis_cli.reproduction.tasks import TaskFile, driver_of, shown_parameters

if TYPE_CHECKING:
    import pandas as pd

RECENT = 600.0
"""Seconds before the latest result in which results are counted for the speed."""


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
    """Tasks per second, from the times of the latest results by the clocks of the machines that computed them."""
    times = sorted(place.when for place in tasks.store.results.values())
    recent = [time for time in times if time >= times[-1] - RECENT]
    if len(recent) < 2 or recent[-1] == recent[0]:
        return None
    return (len(recent) - 1) / (recent[-1] - recent[0])


logger = logging.getLogger(__name__)

LINES = 5
"""Lines of an error that are printed."""
COLUMNS = ("done", "running", "waiting", "failed", "missing")


@dataclass(frozen=True, kw_only=True)
class StatusRequest(Request):
    """Count the tasks that are done, running, waiting, failed and missing.

    The time left is estimated from the latest results.
    """

    runs: tuple[str, ...] | None = argument(
        "TOML files of sweeps, folders of their results, or ids of experiments.",
        default=None,
        default_text="all that were begun here",
        metavar="RUN",
    )
    failed: bool = option(False, "List the tasks that failed, with the last lines of their errors.")


@dataclass(frozen=True, kw_only=True, repr=False)
class StatusResult(Summary):
    """Progress of some runs.

    Attributes
    ----------
    surveys : name of each run, and the counts of its tasks.
    errors : name of each run, and its tasks that failed; empty unless they were asked for.
    """

    surveys: Sequence[tuple[str, Survey]]
    errors: Sequence[tuple[str, Sequence[Mapping[str, object]]]] = ()

    @cached_property
    def table(self) -> pd.DataFrame:
        """The counts, one run a row."""
        import pandas as pd

        return pd.DataFrame([{"run": name, **asdict(counts)} for name, counts in self.surveys])

    def facts(self) -> Mapping[str, Any]:
        rows: list[dict[str, object]] = [{"run": name, **asdict(counts)} for name, counts in self.surveys]
        for row, (_, wrong) in zip(rows, self.errors, strict=False):
            row["errors"] = wrong
        return {"runs": rows}

    def summary(self, full: bool = False) -> str:
        if not self.surveys:
            return "nothing was run here: no results/runs/*/tasks.json, and no experiment was begun"
        width = max(3, *(len(name) for name, _ in self.surveys))
        found = [f"{'run':<{width}} {'tasks':>9}" + "".join(f" {name:>9}" for name in COLUMNS) + "  time left"]
        for name, s in self.surveys:
            counts = "".join(f" {getattr(s, column):>9,}" for column in COLUMNS)
            found.append(f"{name:<{width}} {s.tasks:>9,}{counts}  {_duration(s)}")
        for name, wrong in self.errors:
            for error in wrong:
                found.append(f"\n{name}, task {error['task']}: {error['parameters']}, seed {error['seed']}")
                lines = str(error["error"]).rstrip().splitlines()
                found += [f"    {line}" for line in lines[0 if full else -LINES :]]
        return "\n".join(found)


def status(request: StatusRequest, progress: Progress) -> StatusResult:
    """Survey runs."""

    found = list(_named(request.runs) if request.runs else _all())
    queue = cluster.queue() if any(arrays_of(tasks) for _, tasks in found) else {}
    surveys = [(name, survey(tasks, queue)) for name, tasks in found]
    errors = [(name, _errors(tasks)) for name, tasks in found] if request.failed else []
    return StatusResult(request=request, surveys=surveys, errors=errors)


def _duration(s: Survey) -> str:
    if s.done == s.tasks:
        return "done"
    if s.seconds_left is None:
        return "?" if s.running + s.waiting else "nothing runs"
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60)):
        if s.seconds_left >= 2 * seconds:
            return f"{s.seconds_left / seconds:.0f} {unit}"
    return f"{s.seconds_left:.0f} s"


def _errors(tasks: TaskFile) -> list[dict[str, object]]:
    """Tasks that failed at their last try, with their errors."""
    finished, broken = tasks.finished(), tasks.failed()
    places = [i for i in tasks.indices(broken) if tasks.keys[i] not in finished]
    return [
        {
            "task": place,
            "parameters": shown_parameters(task.parameters),
            "seed": task.seed,
            "error": tasks.store.error(task.key),
        }
        for place, task in zip(places, tasks.some(places), strict=True)
    ]


def _named(runs: Sequence[str]) -> Iterator[tuple[str, TaskFile]]:
    for run in runs:
        found = _read(run)
        if not found:
            raise InputError(f"{run} has not been run", f"run thesis-cli reproduce {run}")
        yield from found


def _all() -> Iterator[tuple[str, TaskFile]]:
    """All runs that were begun here; those that cannot be read are warned of."""
    from thesis_cli.reproduction.experiment import find_checkout

    sweeps = [str(file.parent) for file in sorted(Path("results/runs").glob("*/tasks.json"))]
    try:
        experiments = list(find_checkout().files())
    except InputError:  # no checkout
        experiments = []
    for run in sweeps + experiments:
        try:
            yield from _read(run)
        except InputError as error:
            logger.warning("%s", error)


def _read(run: str) -> list[tuple[str, TaskFile]]:
    """The tasks of a sweep, or of an experiment for each preset and seed."""
    from thesis_cli.reproduction.engines import ExperimentWork
    from thesis_cli.reproduction.experiment import find_checkout

    if (path := Path(run)).exists():
        folder = sweep.folder_of(path)
        return [(folder.path.name, sweep.tasks_of(folder))]
    try:
        checkout = find_checkout()
        work = ExperimentWork(checkout.select([run])[run])
    except InputError as error:
        raise InputError(f"there is no file or folder {run}, and {error.problem}", error.remedy) from None
    files = sorted((checkout.store / run).glob("*.json"))
    return [(f"{run} {file.stem}", TaskFile(file, work)) for file in files]


COMMANDS = {
    "status": OwnCommand(
        StatusRequest,
        status,
        examples=(
            "status",
            "sweep data/sweeps/glasses.toml --engine none",
            "status data/sweeps/glasses.toml --failed",
        ),
    )
}
