"""`thesis-cli sweep | collect | run-task`: a command over a grid of its own options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import AbstractContextManager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.base.files import check_writable
from thesis_cli.base.progress import Tick
from thesis_cli.cli import cluster, options, output

if TYPE_CHECKING:
    from thesis_cli.cli.sweep_file import Sweep
    from thesis_cli.reproduction.engines import Engine
    from thesis_cli.reproduction.run_folder import RunFolder
    from thesis_cli.reproduction.task_file import TaskFile, Work

_SWEEP = """\b
Examples, in a checkout:
  thesis-cli sweep data/sweeps/glasses.toml --dry-run
  thesis-cli sweep data/sweeps/glasses.toml --jobs 2
On a cluster:
  thesis-cli sweep glasses.toml --engine slurm --partition short --time 30 --array-limit 50
"""
_COLLECT = """\b
Examples, in a checkout:
  thesis-cli sweep data/sweeps/glasses.toml
  thesis-cli collect data/sweeps/glasses.toml
  thesis-cli collect results/runs/glasses --json
"""
_RUN_TASK = """\b
Examples, in a checkout:
  thesis-cli sweep data/sweeps/glasses.toml --engine none
  thesis-cli run-task results/runs/glasses/tasks.json 3
In an array of 100 jobs, which share all tasks:
  thesis-cli run-task tasks.json $SLURM_ARRAY_TASK_ID --of 100
"""
EXAMPLES = {"sweep": _SWEEP, "collect": _COLLECT, "run-task": _RUN_TASK}

MANY = 10**6
"""Tasks that are asked about."""
SHOWN = 5
"""Tasks that a dry run prints."""

SweepFile = Annotated[Path, typer.Argument(help="TOML file: command, seeds, [options], [grid], [slurm].")]
TableOut = Annotated[
    Path | None,
    typer.Option(
        help="Where the table goes: .csv; results of tasks go into the folder of its name.",
        show_default="results/runs/SWEEP.csv",
    ),
]


def sweep(
    file: SweepFile,
    out: TableOut = None,
    engine: cluster.EngineName = "local",
    partition: cluster.Partition = None,
    time: cluster.Time = None,
    mem: cluster.Mem = None,
    cpus: cluster.Cpus = None,
    array_limit: cluster.ArrayLimit = None,
    target_minutes: cluster.TargetMinutes = None,
    retries: cluster.Retries = None,
    settle: cluster.Settle = None,
    setup: cluster.Setup = None,
    sbatch: cluster.Sbatch = None,
    detach: cluster.Detach = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Compute anew what older code or other inputs gave.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the tasks and the sbatch line; write nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help=f"Go on with more than {MANY:,} tasks.")] = False,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Run a command over a grid of its options, here or on a cluster, into one table.

    What is done already is not done again.
    """
    flags = cluster.flags(locals())
    options.set_messages(quiet, verbose)
    from thesis_cli.cli.sweep_file import read_sweep
    from thesis_cli.reproduction.run_folder import check_free

    found = read_sweep(file)
    try:
        wanted = cluster.settings(found.slurm, {})
    except InputError as error:
        raise error.at(file) from None
    wanted = cluster.settings(found.slurm, flags)
    folder = _folder(found, out, wanted.cpus)
    check_writable("--out", folder.table, ".csv")
    _check_apart(found, folder.table)
    if dry_run:
        _show(found, folder, wanted, engine)
        return
    if len(found) > MANY and not yes:
        raise InputError(f"{len(found):,} tasks", "--yes is wanted for so many", source=file)
    runs = cluster.engine(engine, jobs, wanted, detach)
    check_free(folder.tasks)
    folder.save()
    tasks = tasks_of(folder, found)
    _finish(folder, tasks, runs, refresh=refresh, quiet=quiet, as_json=as_json, name=file.stem)


def collect(
    run: Annotated[Path, typer.Argument(help="A sweep's TOML file, or the folder of its results.")],
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Merge what is finished of a sweep into its table, and run nothing. Exit status 1 if some task has no result."""
    options.set_messages(quiet, verbose)
    from thesis_cli.reproduction.table import publish

    folder = folder_of(run)
    tasks = tasks_of(folder)
    done, rows = publish(tasks, folder.table)
    missing = len(tasks) - done
    _report(folder, tasks, rows, {"kept": done, "without result": missing}, as_json)
    if missing:
        raise WorkFailed(f"{missing:,} of {len(tasks):,} tasks have no result")


def run_task(
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help="tasks.json of a sweep, or the task file of an experiment."),
    ],
    indices: Annotated[list[int], typer.Argument(help="Places of tasks in it, the first is 0.", metavar="INDEX...")],
    of: Annotated[
        int | None, typer.Option(min=1, help="Also every OFth task behind: one of OF jobs that share all.")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="That the task may use.")] = 1,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Run tasks of a task file, as a job of any batch system does. A task that has a result is passed over."""
    options.set_messages(quiet, verbose)
    from thesis_cli.reproduction import store
    from thesis_cli.reproduction.task_file import head, read_tasks
    from thesis_cli.reproduction.worker import run_task as run

    command, total = head(file)
    for index in indices:
        if not 0 <= index < (of or total):
            raise InputError(f"no task {index}", f"places from 0 to {(of or total) - 1} are wanted", source=file)
    places = {place for index in indices for place in range(index, total, of or total)}
    work = _work(file, command, cores)
    failed = 0
    for place, task in zip(sorted(places), read_tasks(file, work, places, file.absolute().parent), strict=True):
        if task.command != command:
            raise InputError(f"task {place} is of {task.command}, the first of {command}", "one is wanted", source=file)
        if store.read(task.file):
            options.logger.info("task %d was done before", place)
        elif error := run(task, work):
            failed += 1
            options.logger.error("task %d failed: %s", place, _brief(error))
    if failed:
        raise WorkFailed(f"{failed} of {len(places)} tasks failed")


def folder_of(run: Path) -> RunFolder:
    """The folder of a sweep, by its file, by its table or by itself.

    Raises
    ------
    InputError : it has not been run.
    """
    from thesis_cli.reproduction.run_folder import RunFolder

    place = run.with_suffix("") if run.suffix == ".csv" else run
    if run.suffix == ".toml":
        from thesis_cli.cli.sweep_file import read_sweep

        place = _folder(read_sweep(run), None, 1).path
        if not place.exists():
            raise InputError("has not been run", f"thesis-cli sweep {run}, or the folder of its results", source=run)
    folder = RunFolder.load(place)
    if not folder.tasks.is_file():
        raise InputError("it has no tasks.json", "thesis-cli sweep writes it", source=place)
    return folder


def _folder(found: Sweep, out: Path | None, cores: int) -> RunFolder:
    from thesis_cli.reproduction.run_folder import RunFolder

    table = out or found.out or Path("results/runs") / f"{found.path.stem}.csv"
    table = table.absolute()
    return RunFolder(table.with_suffix(""), found.command, found.folder, table, cores)


def tasks_of(folder: RunFolder, found: Sweep | None = None) -> TaskFile:
    """The tasks of a sweep, written anew if its file is given."""
    from thesis_cli.cli.command_work import CommandWork
    from thesis_cli.reproduction.task_file import TaskFile

    work = CommandWork(folder.command, folder.base, folder.cores)
    return TaskFile.write(folder.tasks, found.entries(), work) if found else TaskFile(folder.tasks, work)


def _work(file: Path, command: str, cores: int) -> Work:
    """How the tasks of a file are carried out."""
    from thesis_cli.cli.command_work import COMMANDS, CommandWork
    from thesis_cli.reproduction.registry import find_checkout
    from thesis_cli.reproduction.run_folder import RunFolder
    from thesis_cli.reproduction.worker import ExperimentWork

    folder = file.absolute().parent
    if command in COMMANDS:
        base = RunFolder.load(folder).base if (folder / "run.json").exists() else folder
        return CommandWork(command, base, cores)
    return ExperimentWork(find_checkout(folder).select([command])[command])


def _finish(
    folder: RunFolder, tasks: TaskFile, runs: Engine, *, refresh: bool, quiet: bool, as_json: bool, name: str
) -> None:
    """Run what is missing, merge what there is, and say so."""
    from thesis_cli.reproduction.runner import complete
    from thesis_cli.reproduction.table import publish

    def bar(total: int, title: str) -> AbstractContextManager[Tick]:
        return options.progress(total, "task", quiet, title)

    outcome = complete(tasks, runs, refresh=refresh, bar=bar, name=name)
    failed = len(outcome.errors)
    rows = publish(tasks, folder.table)[1]
    counts = {"run now": outcome.computed, "kept": outcome.kept, "failed": failed, "without result": outcome.waiting}
    _report(folder, tasks, rows, counts, as_json)
    if failed:
        parameters, error = outcome.errors[0]
        options.logger.error("task %s failed: %s", parameters, _brief(error))
        how = f"thesis-cli status {shlex.quote(output.short(folder.path))} --failed"
        raise WorkFailed(f"{failed:,} of {len(tasks):,} tasks failed; {how} tells how")


def _report(folder: RunFolder, tasks: TaskFile, rows: int, counts: Mapping[str, int], as_json: bool) -> None:
    """What became of tasks, and where their table is."""
    if as_json:
        named = {name.replace(" ", "_"): count for name, count in counts.items()}
        table = {"rows": rows, "table": str(folder.table) if rows else None, "task_file": str(folder.tasks)}
        output.print_json({"tasks": len(tasks), **named, **table})
        return
    parts = [f"{count:,} {name}" for name, count in counts.items() if count or name in ("run now", "kept")]
    lines = [("tasks", f"{len(tasks):,} in {output.short(folder.tasks)}: {', '.join(parts)}")]
    output.print_table(lines + [("table", f"{output.short(folder.table)}: {rows:,} rows")] * bool(rows))


def _brief(error: str) -> str:
    """The end of what went wrong: the last words, and how to run the task by hand."""
    return "; ".join(error.strip().splitlines()[-2:])


def _check_apart(found: Sweep, table: Path) -> None:
    """Refuse a table that would overwrite what a task reads."""
    made = [table.resolve(), table.with_suffix(".json").resolve()]
    names = {file.name for file in made}
    listed = (value for grid in found.grids for values in grid.values() for value in values)
    for value in chain(found.fixed.values(), listed):
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and Path(text).name in names and (found.folder / text).resolve() in made:
                raise InputError(f"--out {table} would overwrite the input {text}", "another --out is wanted")


def _show(found: Sweep, folder: RunFolder, wanted: cluster.Settings, engine: str) -> None:
    """What would be done."""
    from thesis_cli.cli.command_work import arguments

    typer.echo(f"{len(found):,} tasks, run in {output.short(found.folder)}:")
    for place, entry in enumerate(islice(found.entries(), SHOWN)):
        typer.echo(f"{place:6}  {shlex.join(['thesis-cli', *arguments(*entry)])}")
    if len(found) > SHOWN:
        typer.echo(f"   ...  and {len(found) - SHOWN:,} more")
    typer.echo(f"table {output.short(folder.table)}")
    if engine == "slurm":
        from thesis_cli.reproduction.arrays import first_jobs

        jobs = first_jobs(len(found))
        typer.echo(wanted.request.line(jobs, wanted.array_limit))
        if jobs < len(found):
            typer.echo(
                f"{jobs} tasks go first; the others by their times, in jobs of {wanted.target_minutes:g} minutes"
            )
