"""`thesis-cli sweep | collect | run-task`: one command over a grid of its own options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.base.files import check_writable, describes
from thesis_cli.cli import cluster, options, output
from thesis_cli.cli.cluster import EngineRequest
from thesis_cli.cli.own import OwnCommand, Shared
from thesis_cli.commands.core.fields import argument, option
from thesis_cli.commands.core.kept import check_overwritten
from thesis_cli.commands.core.request import Request

if TYPE_CHECKING:
    from thesis_cli.reproduction.run_folder import RunFolder
    from thesis_cli.reproduction.runner import Outcome
    from thesis_cli.reproduction.sweep_file import Sweep
    from thesis_cli.reproduction.task_file import TaskFile, Work

MANY = 10**6
"""Larger sweeps need --yes."""
SHOWN = 5
"""Tasks that a dry run prints."""


@dataclass(frozen=True, kw_only=True)
class SweepRequest(EngineRequest):
    """Run a command over a grid of its options, here or on a cluster, into one table.

    Tasks that are done already are not run again.
    """

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
    of: int | None = option(
        None, "Number of jobs that share all tasks: also run every task that comes OF places later.", least=1
    )
    cores: int = option(1, "Cores that a task may use.", least=1)


def sweep(request: SweepRequest, shared: Shared) -> None:
    """Run what is missing of a sweep, or print what would be run."""
    from thesis_cli.reproduction.run_folder import check_free
    from thesis_cli.reproduction.runner import complete
    from thesis_cli.reproduction.sweep_file import read_sweep

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
        _show(found, folder, job_settings, request.engine)
        return
    if len(found) > MANY and not request.yes:
        raise InputError(f"{len(found):,} tasks", "give --yes to run so many", source=request.file)
    engine = cluster.engine(request, job_settings)
    check_free(folder.tasks)
    refresh = folder.save(request.overwrite) or request.refresh
    tasks = tasks_of(folder, found)
    bar = options.task_bars(shared.quiet)
    outcome = complete(tasks, engine, refresh=refresh, bar=bar, name=request.file.stem)
    _finish(folder, tasks, outcome, shared)


def collect(request: CollectRequest, shared: Shared) -> None:
    """Merge what is finished."""
    from thesis_cli.reproduction.table import publish

    folder = folder_of(request.run)
    _check_table(folder, request.overwrite)
    tasks = tasks_of(folder)
    done, rows = publish(tasks, folder.table)
    missing = len(tasks) - done
    _report(folder, tasks, rows, {"kept": done, "without result": missing}, shared.as_json)
    if missing:
        raise WorkFailed(f"{missing:,} of {len(tasks):,} tasks have no result")


def run_task(request: RunTaskRequest, shared: Shared) -> None:
    """Run tasks by their places."""
    from thesis_cli.reproduction import store
    from thesis_cli.reproduction.task_file import head, read_tasks
    from thesis_cli.reproduction.worker import run_task as run

    file, of = request.file, request.of
    if not file.is_file():
        raise InputError("is no file", "give the tasks.json of a sweep", source=file)
    command, total = head(file)
    for index in request.index:
        if index >= (of or total):
            raise InputError(f"no task {index}", f"places go from 0 to {(of or total) - 1}", source=file)
    places = {place for index in request.index for place in range(index, total, of or total)}
    work = _work(file, command, request.cores)
    failed = 0
    for place, task in zip(sorted(places), read_tasks(file, work, places, file.absolute().parent), strict=True):
        if task.command != command:
            problem = f"task {place} belongs to {task.command}, the first task to {command}"
            raise InputError(problem, "all tasks must be of one command", source=file)
        if store.read(task.file):
            options.logger.info("task %d has a result", place)
        elif error := run(task, work):
            failed += 1
            options.logger.error("task %d failed: %s", place, error if shared.debug else _brief(error))
    if failed:
        raise WorkFailed(f"{failed} of {len(places)} tasks failed")


def folder_of(run: Path) -> RunFolder:
    """The folder of a sweep, given its file, its table or the folder.

    Raises
    ------
    InputError : the sweep has not been run.
    """
    from thesis_cli.reproduction.run_folder import RunFolder

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
    from thesis_cli.reproduction.run_folder import RunFolder

    table = out or found.out or Path("results/runs") / f"{found.path.stem}.csv"
    table = table.absolute()
    return RunFolder(table.with_suffix(""), found.command, found.folder, table, cores, str(found.path.resolve()))


def tasks_of(folder: RunFolder, found: Sweep | None = None) -> TaskFile:
    """The tasks of a sweep; they are written first if the sweep is given."""
    from thesis_cli.reproduction.command_work import CommandWork
    from thesis_cli.reproduction.task_file import TaskFile

    work = CommandWork(folder.command, folder.base, folder.cores)
    return TaskFile.write(folder.tasks, found.entries(), work) if found else TaskFile(folder.tasks, work)


def _work(file: Path, command: str, cores: int) -> Work:
    """What carries out the tasks of a file."""
    from thesis_cli.commands.core.registry import entries
    from thesis_cli.reproduction.command_work import CommandWork
    from thesis_cli.reproduction.registry import find_checkout
    from thesis_cli.reproduction.run_folder import RunFolder
    from thesis_cli.reproduction.worker import ExperimentWork

    folder = file.absolute().parent
    if command in entries():
        base = RunFolder.load(folder).base if (folder / "run.json").exists() else folder
        return CommandWork(command, base, cores)
    return ExperimentWork(find_checkout(folder).select([command])[command])


def _finish(folder: RunFolder, tasks: TaskFile, outcome: Outcome, shared: Shared) -> None:
    """Merge the results and print the summary.

    Raises
    ------
    WorkFailed : tasks failed.
    """
    from thesis_cli.reproduction.table import publish

    failed = len(outcome.errors)
    rows = publish(tasks, folder.table)[1]
    counts = {"run now": outcome.computed, "kept": outcome.kept, "failed": failed, "without result": outcome.waiting}
    _report(folder, tasks, rows, counts, shared.as_json)
    if failed:
        parameters, error = outcome.errors[0]
        options.logger.error("task %s failed: %s", parameters, error if shared.debug else _brief(error))
        how = f"thesis-cli status {shlex.quote(output.short(folder.path))} --failed"
        raise WorkFailed(f"{failed:,} of {len(tasks):,} tasks failed; {how} shows why")


def _report(folder: RunFolder, tasks: TaskFile, rows: int, counts: Mapping[str, int], as_json: bool) -> None:
    """Print how many tasks have a result, and where the table is."""
    if as_json:
        named = {name.replace(" ", "_"): count for name, count in counts.items()}
        table = {"rows": rows, "table": str(folder.table) if rows else None, "task_file": str(folder.tasks)}
        output.print_json({"tasks": len(tasks), **named, **table})
        return
    parts = [f"{count:,} {name}" for name, count in counts.items() if count or name in ("run now", "kept")]
    lines = [("tasks", f"{len(tasks):,} in {output.short(folder.tasks)}: {', '.join(parts)}")]
    output.print_table(lines + [("table", f"{output.short(folder.table)}: {rows:,} rows")] * bool(rows))


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


def _show(found: Sweep, folder: RunFolder, job_settings: cluster.Settings, engine: str) -> None:
    """Print what would be run."""
    from thesis_cli.reproduction.parameters import shell_words

    typer.echo(f"{len(found):,} tasks, run in {output.short(found.folder)}:")
    for place, entry in enumerate(islice(found.entries(), SHOWN)):
        typer.echo(f"{place:6}  {shlex.join(['thesis-cli', *shell_words(*entry)])}")
    if len(found) > SHOWN:
        typer.echo(f"   ...  and {len(found) - SHOWN:,} more")
    typer.echo(f"table {output.short(folder.table)}")
    if engine == "slurm":
        from thesis_cli.reproduction.arrays import first_jobs

        jobs = first_jobs(len(found))
        typer.echo(job_settings.request.line(jobs, job_settings.array_limit))
        if jobs < len(found):
            typer.echo(
                f"{jobs} tasks run first; their times group the rest into jobs of {job_settings.target_minutes:g} min"
            )


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
        more="In one of 100 jobs that share all tasks:\n  thesis-cli run-task tasks.json $SLURM_ARRAY_TASK_ID --of 100",
        json=False,
    ),
}
