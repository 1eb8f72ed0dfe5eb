"""Run the tasks that have no result, and merge the results of all."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from thesis_cli.reproduction.dask_engine import DaskEngine
from thesis_cli.reproduction.engines import (
    NOT_RUN,
    SUBMITTED,
    Engine,
    ExperimentWork,
    JoinedTasks,
    LocalEngine,
    NoEngine,
)
from thesis_cli.reproduction.experiment import Checkout, load
from thesis_cli.reproduction.publication import Published, draw, publish
from thesis_cli.reproduction.tasks import TaskFile, TaskSpec, driving, shown_parameters

logger = logging.getLogger(__name__)

PROCESSES = LocalEngine, DaskEngine
"""Engines whose processes take tasks of several files."""
Bar = Callable[[int, str], AbstractContextManager[Callable[[int], None]]]
"""(number of tasks, name) -> progress bar, called with the number of tasks just done."""


@dataclass
class Outcome:
    """Outcome of the tasks of a file.

    Attributes
    ----------
    computed : tasks that ran.
    kept : tasks whose stored result was used.
    waiting : tasks without a result that have not failed.
    seconds : of all tasks of an experiment, once they have results.
    errors : parameters and error of each task that failed.
    published : outcome for the table; None while a result is missing.
    """

    computed: int = 0
    kept: int = 0
    waiting: int = 0
    seconds: float = 0.0
    errors: list[tuple[str, str]] = field(default_factory=list)
    published: Published | None = None


def complete(files: Mapping[str, TaskFile], engine: Engine, *, refresh: bool, bar: Bar) -> Iterator[Outcome]:
    """Run those tasks of some files that have no result.

    Processes, of this machine or of dask, take the tasks of all files in turn, so that none waits
    for the last task of a file; an engine without them takes one file after another.

    Parameters
    ----------
    files : by name, in the order in which they are begun.
    refresh : also run tasks whose results come from other code or inputs, instead of a warning.

    Yields
    ------
    The outcome of each file, in that order.
    """
    for group in [files] if isinstance(engine, PROCESSES) else [{name: tasks} for name, tasks in files.items()]:
        missing, old = dict[str, list[int]](), dict[str, list[int]]()
        for name, tasks in group.items():
            missing[name], old[name] = _missing(name, tasks, refresh)
        errors = _try(group, missing, old, engine, bar)
        for name, tasks in group.items():
            yield _outcome(tasks, missing[name], errors.get(name, {}))


def _missing(name: str, tasks: TaskFile, refresh: bool) -> tuple[list[int], list[int]]:
    """Places of the tasks to run, and of those among them, with `refresh`, that have a result of other code."""
    there = tasks.indices(tasks.finished())
    results, old = tasks.store.results, list[int]()
    last, code = None, ""
    for i, task in zip(there, tasks.some(there), strict=True):
        if task.parameters is not last:
            last, code = task.parameters, tasks.work.code(task)
        if results[task.key].code != code:
            old.append(i)
    if old and not refresh:
        logger.warning(
            "%s: %d stored results come from older code%s; --refresh computes them again",
            name,
            len(old),
            "" if isinstance(tasks.work, ExperimentWork) else " or from other inputs",
        )
        old = []
    kept = set(there).difference(old)
    return [i for i in range(len(tasks)) if i not in kept], old


def _try(
    files: Mapping[str, TaskFile],
    missing: Mapping[str, Sequence[int]],
    old: Mapping[str, Sequence[int]],
    engine: Engine,
    bar: Bar,
) -> dict[str, dict[int, str]]:
    """Errors and statuses of tasks that an engine did not finish, by file and place."""
    found: dict[str, dict[int, str]] = {name: {} for name, places in missing.items() if places}
    if not found:
        return found
    first, *others = found
    with ExitStack() as stack:
        for name in found if not isinstance(engine, NoEngine) else ():
            stack.enter_context(driving(files[name].path, engine.jobs))
        for name, places in old.items():  # only now: another run may have computed them meanwhile
            files[name].store.drop({files[name].keys[i] for i in places})
        tick = stack.enter_context(bar(sum(len(missing[name]) for name in found), "experiments" if others else first))
        if not (others and isinstance(engine, PROCESSES)):
            return {first: engine.run(files[first], missing[first], tick)}
        numbered = [(name, i) for name in found for i in missing[name]]
        joined = JoinedTasks([(files[name], i) for name, i in numbered])
        for place, error in engine.run(joined, range(len(numbered)), tick).items():
            name, i = numbered[place]
            found[name][i] = error
    return found


def _outcome(tasks: TaskFile, missing: Sequence[int], errors: Mapping[int, str]) -> Outcome:
    """The outcome of tasks that had no result, with the errors and statuses that an engine gave."""
    done = tasks.finished()
    lost = [i for i in missing if tasks.keys[i] not in done]
    wrong = [i for i in lost if errors.get(i) not in (SUBMITTED, NOT_RUN)]
    outcome = Outcome(
        computed=len(missing) - len(lost),
        kept=len(tasks) - len(missing),
        waiting=len(lost) - len(wrong),
    )
    for task, i in zip(tasks.some(wrong), wrong, strict=True):
        error = errors.get(i, "it left no result")
        shown = json.dumps(shown_parameters(task.parameters), ensure_ascii=False)
        outcome.errors.append((shown, error))
        if not tasks.store.error(task.key):  # the process that ran it is gone
            task.save(error, "", 0.0)
    return outcome


def reproduce(
    paths: Mapping[str, Path],
    preset: str,
    checkout: Checkout,
    engine: Engine,
    *,
    seed: int,
    refresh: bool,
    bar: Bar,
    replace: bool = False,
) -> Iterator[tuple[str, Outcome]]:
    """Bring the CSV, record and figures of experiments up to date; `publish` decides what stands.

    Parameters
    ----------
    paths : files of the experiments by id.
    preset : `quick`, `paper`, or another that the experiments declare.
    refresh : also run tasks whose results come from older code, instead of a warning.
    replace : let a table that differs, or is equal within its tolerances, take the place of the one
        that stands.

    Yields
    ------
    Id and outcome of each experiment; those with the slowest tasks, by the records, come first.

    Raises
    ------
    InputError : an experiment has no such preset, or its tasks disagree on the columns.
    """
    experiments = {name: load(path) for name, path in paths.items()}
    order = sorted(paths, key=lambda name: _slowest(checkout, preset, name), reverse=True)
    files: dict[str, TaskFile] = {}
    for name in order:
        files.setdefault(experiments[name].shares or name, plan(paths[name], preset, checkout, seed))
    for owner, outcome in zip(files, complete(files, engine, refresh=refresh, bar=bar), strict=True):
        for name in order:
            if owner != (experiments[name].shares or name):
                continue
            if not (outcome.errors or outcome.waiting):
                tasks = files[owner]
                results = list(tasks.results(range(len(tasks))))
                outcome.seconds = sum(found.seconds for found in results)
                outcome.published = publish(experiments[name], preset, checkout, seed, results, replace)
                draw(experiments[name], checkout.results(preset))
            yield name, outcome


def _slowest(checkout: Checkout, preset: str, name: str) -> float:
    """Seconds of the slowest task of an experiment by the record of a preset, or of `paper`; infinity without one."""
    for folder in (checkout.results(preset), checkout.results("paper")):
        try:
            record = json.loads((folder / f"{name}.json").read_text())
            return float(record.get("slowest_seconds", record["task_seconds"] / record["tasks"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError):
            continue
    return math.inf


def plan(path: Path, preset: str, checkout: Checkout, seed: int) -> TaskFile:
    """The tasks of a preset, in the order of the result's rows: those of the experiment that it
    shares them with, if any."""
    experiment = load(path)
    if experiment.shares:
        return plan(checkout.select([experiment.shares])[experiment.shares], preset, checkout, seed)
    entries = (
        TaskSpec(experiment.id, parameters, seed) for parameters in experiment.tasks(experiment.settings(preset))
    )
    return TaskFile.write(checkout.store / experiment.id / f"{preset}-{seed}.json", entries, ExperimentWork(path))
