"""`thesis-cli sweep | collect | run-task`: one command over a grid of its own options."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable, describes
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.fields import Request, argument, option
from thesis_cli.commands.core.result import Summary, check_overwritten
from thesis_cli.reproduction.commands import OwnCommand, cluster, short, task_bars
from thesis_cli.reproduction.commands.cluster import EngineRequest

if TYPE_CHECKING:
    import pandas as pd

    from thesis_cli.reproduction.sweep_file import RunFolder, Sweep
    from thesis_cli.reproduction.tasks import TaskFile, Work

logger = logging.getLogger(__name__)

MANY = 10**6
"""Larger sweeps need --yes."""
SHOWN = 5
"""Tasks that a dry run prints."""


@dataclass(frozen=True, kw_only=True)
class SweepRequest(EngineRequest):
    """Run a command over a grid of its options, here or on a cluster, into one table.

    Tasks that are done already are not run again.
    """

    usual = ("engine", "jobs", "out", "dry_run", "detach")

    file: Path = argument("TOML file with command, seeds, [options], [grid] and [slurm].")
    out: Path | None = option(
        None,
        "File for the table, .csv; the results of tasks go into a folder of that name.",
        default_text="results/runs/SWEEP.csv",
    )
    refresh: bool = option(False, "Run tasks again whose results come from older code or other inputs.")
    dry_run: bool = option(False, "Print the tasks and the sbatch line; write nothing.")
    yes: bool = option(False, f"Run more than {MANY:,} tasks.")
    overwrite: bool = option(False, "Replace a table that this sweep did not write.")


@dataclass(frozen=True, kw_only=True)
class CollectRequest(Request):
    """Merge the finished tasks of a sweep into its table; run nothing.

    The exit status is 1 if a task has no result.
    """

    run: Path = argument("TOML file of a sweep, or the folder of its results.")
    overwrite: bool = option(False, "Replace a table that this sweep did not write.")


@dataclass(frozen=True, kw_only=True)
class RunTaskRequest(Request):
    """Run tasks of a task file, as a job of any batch system does.

    Tasks that have a result are not run again.
    """

    file: Path = argument("tasks.json of a sweep, or the task file of an experiment.")
    index: tuple[int, ...] = argument("Places of tasks in the file; the first is 0.", least=0, metavar="INDEX")
    array_size: int | None = option(
        None,
        "Number N of jobs that share all tasks: this one runs those at INDEX, INDEX + N, INDEX + 2 N and so on.",
        least=1,
        alias="of",
    )
    cores: int = option(1, "Cores that a task may use.", least=1)


@dataclass(frozen=True, kw_only=True, repr=False)
class SweepResult(Summary):
    """Outcome of the tasks of a sweep.

    Attributes
    ----------
    tasks : number of tasks.
    counts : how many of them ran now, were kept, failed or have no result.
    rows : rows of the merged table.
    path : file of the table.
    task_file : file of the tasks.
    errors : parameters and error of each task that failed now.
    plan : actions of a dry run in words.
    """

    tasks: int
    counts: Mapping[str, int]
    rows: int
    path: Path
    task_file: Path
    errors: Sequence[tuple[str, str]] = ()
    plan: str = ""

    @cached_property
    def table(self) -> pd.DataFrame:
        """The merged table, read from its file.

        Raises
        ------
        InputError : no task has a result yet.
        """
        import pandas as pd

        if not self.rows:
            raise InputError("the sweep has no table", "no task has a result")
        return pd.read_csv(self.path)

    def failures(self, full: bool = False) -> Sequence[str]:
        if self.errors:
            parameters, error = self.errors[0]
            how = f"thesis-cli status {shlex.quote(short(self.path.with_suffix('')))} --failed"
            return [
                f"task {parameters} failed: {error if full else _brief(error)}",
                f"{len(self.errors):,} of {self.tasks:,} tasks failed; {how} shows why",
            ]
        if isinstance(self.request, CollectRequest) and (missing := self.counts["without result"]):
            return [f"{missing:,} of {self.tasks:,} tasks have no result"]
        return ()

    def facts(self) -> Mapping[str, Any]:
        named = {name.replace(" ", "_"): count for name, count in self.counts.items()}
        table = {"rows": self.rows, "table": str(self.path) if self.rows else None, "task_file": str(self.task_file)}
        return {"tasks": self.tasks, **named, **table}

    def lines(self) -> list[tuple[str, str]]:
        parts = [f"{count:,} {name}" for name, count in self.counts.items() if count or name in ("run now", "kept")]
        lines = [("tasks", f"{self.tasks:,} in {short(self.task_file)}: {', '.join(parts)}")]
        return lines + [("table", f"{short(self.path)}: {self.rows:,} rows")] * bool(self.rows)

    def summary(self, full: bool = False) -> str:
        return self.plan or super().summary(full)


def sweep(request: SweepRequest, progress: Progress) -> SweepResult:
    """Run what is missing of a sweep, or plan it."""
    from thesis_cli.reproduction.publication import publish_sweep
    from thesis_cli.reproduction.runner import complete
    from thesis_cli.reproduction.sweep_file import read_sweep
    from thesis_cli.reproduction.tasks import check_free

    found = read_sweep(request.file)
    try:
        job_settings = cluster.settings(found.slurm, request)
    except InputError as error:
        raise error.at(request.file) from None
    folder = _folder(found, request.out, job_settings.cpus)
    check_writable("--out", folder.table, ".csv")
    _check_apart(found, folder.table)
    _check_table(folder, request.overwrite)
    if request.dry_run:
        counts = {"planned": len(found)}
        plan = _plan(found, folder, job_settings, request.engine)
        return _result(request, folder, len(found), 0, counts, plan=plan)
    if len(found) > MANY and not request.yes:
        raise InputError(f"{len(found):,} tasks", "give --yes to run so many", source=request.file)
    engine = cluster.engine(request, job_settings)
    check_free(folder.tasks)
    refresh = folder.save(request.overwrite) or request.refresh
    tasks = tasks_of(folder, found)
    [outcome] = complete({request.file.stem: tasks}, engine, refresh=refresh, bar=task_bars(progress))
    rows = publish_sweep(tasks, folder.table)[1]
    failed = len(outcome.errors)
    counts = {"run now": outcome.computed, "kept": outcome.kept, "failed": failed, "without result": outcome.waiting}
    return _result(request, folder, len(tasks), rows, counts, errors=outcome.errors)


def _result(
    request: Request, folder: RunFolder, tasks: int, rows: int, counts: Mapping[str, int], **more: Any
) -> SweepResult:
    return SweepResult(
        request=request, tasks=tasks, counts=counts, rows=rows, path=folder.table, task_file=folder.tasks, **more
    )


def collect(request: CollectRequest, progress: Progress) -> SweepResult:
    """Merge what is finished."""
    from thesis_cli.reproduction.publication import publish_sweep

    folder = folder_of(request.run)
    _check_table(folder, request.overwrite)
    tasks = tasks_of(folder)
    done, rows = publish_sweep(tasks, folder.table)
    return _result(request, folder, len(tasks), rows, {"kept": done, "without result": len(tasks) - done})


@dataclass(frozen=True, kw_only=True, repr=False)
class RunTaskResult(Summary):
    """Outcome of the tasks at some places.

    Attributes
    ----------
    tasks : number of tasks.
    errors : place and error of each task that failed.
    """

    tasks: int
    errors: Mapping[int, str]

    def failures(self, full: bool = False) -> Sequence[str]:
        lines = [f"task {place} failed: {error if full else _brief(error)}" for place, error in self.errors.items()]
        return lines + [f"{len(self.errors)} of {self.tasks} tasks failed"] * bool(lines)


def run_task(request: RunTaskRequest, progress: Progress) -> RunTaskResult:
    """Run tasks by their places."""
    from thesis_cli.reproduction.engines import run_task as run
    from thesis_cli.reproduction.tasks import Store, head, read_tasks

    file, jobs = request.file, request.array_size
    if not file.is_file():
        raise InputError("is no file", "give the tasks.json of a sweep", source=file)
    command, total = head(file)
    for index in request.index:
        if index >= (jobs or total):
            raise InputError(f"no task {index}", f"places go from 0 to {(jobs or total) - 1}", source=file)
    places = {place for index in request.index for place in range(index, total, jobs or total)}
    work = _work(file, command, request.cores)
    store, errors = Store(file.absolute().parent), {}
    store.look()
    for place, task in zip(sorted(places), read_tasks(file, work, places, file.absolute().parent), strict=True):
        if task.command != command:
            problem = f"task {place} belongs to {task.command}, the first task to {command}"
            raise InputError(problem, "all tasks must be of one command", source=file)
        if task.key in store.results:
            logger.info("task %d has a result", place)
        elif error := run(task, work):
            errors[place] = error
    return RunTaskResult(request=request, tasks=len(places), errors=errors)


def folder_of(run: Path) -> RunFolder:
    """The folder of a sweep, given its file, its table or the folder.

    Raises
    ------
    InputError : the sweep has not been run.
    """
    from thesis_cli.reproduction.sweep_file import RunFolder

    place = run.with_suffix("") if run.suffix == ".csv" else run
    if run.suffix == ".toml":
        from thesis_cli.reproduction.sweep_file import read_sweep

        own = _folder(read_sweep(run), None, 1)
        place = own.path
        if place.exists():
            own.check_sweep()
        else:
            raise InputError("has not been run", f"run thesis-cli sweep {run}, or name its folder", source=run)
    folder = RunFolder.load(place)
    if not folder.tasks.is_file():
        raise InputError("has no tasks.json", "thesis-cli sweep writes it", source=place)
    return folder


def _folder(found: Sweep, out: Path | None, cores: int) -> RunFolder:
    from thesis_cli.reproduction.sweep_file import RunFolder

    table = out or found.out or Path("results/runs") / f"{found.path.stem}.csv"
    table = table.absolute()
    return RunFolder(table.with_suffix(""), found.command, found.folder, table, cores, str(found.path.resolve()))


def tasks_of(folder: RunFolder, found: Sweep | None = None) -> TaskFile:
    """The tasks of a sweep; they are written first if the sweep is given."""
    from thesis_cli.reproduction.command_work import CommandWork
    from thesis_cli.reproduction.tasks import TaskFile

    work = CommandWork(folder.command, folder.base, folder.cores)
    return TaskFile.write(folder.tasks, found.entries(), work) if found else TaskFile(folder.tasks, work)


def _work(file: Path, command: str, cores: int) -> Work:
    """The work that carries out the tasks of a file."""
    from thesis_cli.commands.core.command import entries
    from thesis_cli.reproduction.command_work import CommandWork
    from thesis_cli.reproduction.engines import ExperimentWork
    from thesis_cli.reproduction.experiment import find_checkout
    from thesis_cli.reproduction.sweep_file import RunFolder

    folder = file.absolute().parent
    if command in entries():
        base = RunFolder.load(folder).base if (folder / "run.json").exists() else folder
        return CommandWork(command, base, cores)
    return ExperimentWork(find_checkout(folder).select([command])[command])


def _brief(error: str) -> str:
    """The last two lines of a task's error: what went wrong, and the command that repeats it."""
    return "; ".join(error.strip().splitlines()[-2:])


def _check_apart(found: Sweep, table: Path) -> None:
    """Refuse a table that would overwrite a file that a task reads."""
    made = [table.resolve(), table.with_suffix(".json").resolve()]
    names = {file.name for file in made}
    listed = (value for grid in found.grids for values in grid.values() for value in values)
    for value in chain(found.fixed.values(), listed):
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and Path(text).name in names and (found.folder / text).resolve() in made:
                raise InputError(f"--out {table} would overwrite the input {text}", "give another --out")


def _check_table(folder: RunFolder, overwrite: bool) -> None:
    """Refuse to replace a table, or a record, that the sweep of this folder did not write."""
    record = folder.table.with_suffix(".json")
    if not record.exists() and (folder.path / "run.json").exists():
        return  # killed between the table and its record
    if not (record.is_file() and describes(record, {"command": folder.command, "task_file": str(folder.tasks)})):
        check_overwritten("--out", folder.table, overwrite)
        check_overwritten("", record, overwrite)


def _plan(found: Sweep, folder: RunFolder, job_settings: cluster.JobSettings, engine: str) -> str:
    """Tasks and jobs that a sweep would run, in words."""
    from thesis_cli.reproduction.command_work import shell_words

    lines = [f"{len(found):,} tasks, run in {short(found.folder)}:"]
    for place, entry in enumerate(islice(found.entries(), SHOWN)):
        lines.append(f"{place:6}  {shlex.join(['thesis-cli', *shell_words(*entry)])}")
    if len(found) > SHOWN:
        lines.append(f"   ...  and {len(found) - SHOWN:,} more")
    lines.append(f"table {short(folder.table)}")
    if engine == "slurm":
        from thesis_cli.reproduction.arrays import first_jobs

        jobs = first_jobs(len(found))
        lines.append(job_settings.request.line(jobs, job_settings.array_limit))
        if jobs < len(found):
            minutes = f"{job_settings.target_minutes:g} min"
            lines.append(f"{jobs} tasks run first; their times group the rest into jobs of {minutes}")
    return "\n".join(lines)


COMMANDS = {
    "sweep": OwnCommand(
        SweepRequest,
        sweep,
        examples=("sweep data/sweeps/glasses.toml --dry-run", "sweep data/sweeps/glasses.toml --jobs 2"),
        more="On a cluster:\n  thesis-cli sweep glasses.toml --engine slurm --partition short --array-limit 50",
    ),
    "collect": OwnCommand(
        CollectRequest,
        collect,
        examples=(
            "sweep data/sweeps/glasses.toml",
            "collect data/sweeps/glasses.toml",
            "collect results/runs/glasses --json",
        ),
    ),
    "run-task": OwnCommand(
        RunTaskRequest,
        run_task,
        examples=("sweep data/sweeps/glasses.toml --engine none", "run-task results/runs/glasses/tasks.json 3"),
        more="In one of 100 jobs that share all tasks:\n"
        "  thesis-cli run-task tasks.json $SLURM_ARRAY_TASK_ID --array-size 100",
        json=False,
    ),
}
