"""`thesis-cli status`: how far sweeps and experiments have come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.cli import cluster, options, output, sweep

if TYPE_CHECKING:
    from thesis_cli.reproduction.survey import Survey
    from thesis_cli.reproduction.task_file import TaskFile

_STATUS = """\b
Examples, in a checkout:
  thesis-cli status
  thesis-cli sweep data/sweeps/glasses.toml --engine none
  thesis-cli status data/sweeps/glasses.toml --failed
"""
EXAMPLES = {"status": _STATUS}
LINES = 5
"""Of an error."""
COLUMNS = ("done", "running", "waiting", "failed", "missing")

Runs = Annotated[
    list[str] | None,
    typer.Argument(
        help="TOML files of sweeps, folders of their results, ids of experiments.",
        show_default="sweeps under results/runs, and all experiments that were begun",
    ),
]


def status(
    runs: Runs = None,
    failed: Annotated[bool, typer.Option("--failed", help="Which tasks failed, and their last lines.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Count the tasks that are done, running, waiting in a queue, failed and missing, and estimate the time left."""
    options.set_messages(quiet, verbose)
    from thesis_cli.reproduction.arrays import arrays_of
    from thesis_cli.reproduction.survey import survey

    found = list(_named(runs) if runs else _all())
    queue = cluster.queue() if any(arrays_of(tasks) for _, tasks in found) else {}
    surveys = [(name, survey(tasks, queue)) for name, tasks in found]
    errors = [(name, _errors(tasks)) for name, tasks in found] if failed else []
    if as_json:
        rows: list[dict[str, object]] = [{"run": name, **asdict(s)} for name, s in surveys]
        for row, (_, wrong) in zip(rows, errors, strict=False):
            row["errors"] = wrong
        output.print_json({"runs": rows})
        return
    if not surveys:
        typer.echo("nothing was run here: no results/runs/*/tasks.json, no experiment was begun")
        return
    _print(surveys)
    for name, wrong in errors:
        for error in wrong:
            typer.echo(f"\n{name}, task {error['task']}: {error['parameters']}, seed {error['seed']}")
            typer.echo("\n".join(f"    {line}" for line in str(error["error"]).rstrip().splitlines()[-LINES:]))


def _print(surveys: list[tuple[str, Survey]]) -> None:
    width = max(3, *(len(name) for name, _ in surveys))
    typer.echo(f"{'run':<{width}} {'tasks':>9}" + "".join(f" {name:>9}" for name in COLUMNS) + "  time left")
    for name, s in surveys:
        counts = "".join(f" {getattr(s, column):>9,}" for column in COLUMNS)
        typer.echo(f"{name:<{width}} {s.tasks:>9,}{counts}  {_duration(s)}")


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
    """Tasks that failed when they were last tried, with what they said."""
    finished, broken = tasks.finished(), tasks.failed()
    places = [i for i in tasks.indices(broken) if tasks.keys[i] not in finished]
    return [
        {
            "task": place,
            "parameters": dict(task.parameters),
            "seed": task.seed,
            "error": task.failure.read_text(errors="replace"),
        }
        for place, task in zip(places, tasks.some(places), strict=True)
    ]


def _named(runs: list[str]) -> Iterator[tuple[str, TaskFile]]:
    for run in runs:
        found = _read(run)
        if not found:
            raise InputError(f"{run} has not been run", f"thesis-cli reproduce {run}")
        yield from found


def _all() -> Iterator[tuple[str, TaskFile]]:
    """Whatever was begun here; what cannot be read hides no other."""
    from thesis_cli.reproduction.registry import find_checkout

    sweeps = [str(file.parent) for file in sorted(Path("results/runs").glob("*/tasks.json"))]
    try:
        experiments = list(find_checkout().files())
    except InputError:  # no checkout
        experiments = []
    for run in sweeps + experiments:
        try:
            yield from _read(run)
        except InputError as error:
            options.logger.warning("%s", error)


def _read(run: str) -> list[tuple[str, TaskFile]]:
    """Tasks of a sweep, or those of an experiment, for each preset and seed."""
    from thesis_cli.reproduction.registry import find_checkout
    from thesis_cli.reproduction.task_file import TaskFile
    from thesis_cli.reproduction.worker import ExperimentWork

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
