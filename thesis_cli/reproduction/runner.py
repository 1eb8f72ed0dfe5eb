"""Run the tasks that have no result, and merge the results of all."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from thesis_cli.reproduction import figures
from thesis_cli.reproduction.engines import NOT_RUN, SUBMITTED, Engine, ExperimentWork, NoEngine
from thesis_cli.reproduction.publication import Published, publish
from thesis_cli.reproduction.registry import Checkout, load
from thesis_cli.reproduction.tasks import TaskFile, TaskSpec, driving, shown_parameters

logger = logging.getLogger(__name__)

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
    errors : parameters and error of each task that failed.
    published : outcome for the table; None while a result is missing.
    """

    computed: int = 0
    kept: int = 0
    waiting: int = 0
    seconds: float = 0.0
    errors: list[tuple[str, str]] = field(default_factory=list)
    published: Published | None = None


def complete(tasks: TaskFile, engine: Engine, *, refresh: bool, bar: Bar, name: str) -> Outcome:
    """Run those tasks of a file that have no result.

    Parameters
    ----------
    refresh : also run tasks whose results come from other code or inputs, instead of a warning.
    """
    began = time.perf_counter()
    missing, old = _missing(tasks)
    if old and not refresh:
        logger.warning(
            "%s: %d stored results come from older code%s; --refresh computes them again",
            name,
            len(old),
            "" if isinstance(tasks.work, ExperimentWork) else " or from other inputs",
        )
    elif old:
        missing = sorted(missing + old)
    outcome = Outcome(kept=len(tasks) - len(missing))
    if missing:
        claim = nullcontext() if isinstance(engine, NoEngine) else driving(tasks.path, engine.jobs)
        with claim, bar(len(missing), name) as tick:
            if refresh:  # only now: another run may have computed them meanwhile
                tasks.store.drop({tasks.keys[i] for i in old})
            errors = engine.run(tasks, missing, tick)
        done = tasks.finished()
        lost = [i for i in missing if tasks.keys[i] not in done]
        outcome.computed = len(missing) - len(lost)
        wrong = [i for i in lost if errors.get(i) not in (SUBMITTED, NOT_RUN)]
        outcome.waiting = len(lost) - len(wrong)
        for task, i in zip(tasks.some(wrong), wrong, strict=True):
            error = errors.get(i, "it left no result")
            shown = json.dumps(shown_parameters(task.parameters), ensure_ascii=False)
            outcome.errors.append((shown, error))
            if not tasks.store.error(task.key):  # the process that ran it is gone
                task.save(error, "", 0.0)
    outcome.seconds = time.perf_counter() - began
    return outcome


def _missing(tasks: TaskFile) -> tuple[list[int], list[int]]:
    """Places of tasks without a result, and of results from other code."""
    there = tasks.indices(tasks.finished())
    results, old = tasks.store.results, list[int]()
    last, code = None, ""
    for i, task in zip(there, tasks.some(there), strict=True):
        if task.parameters is not last:
            last, code = task.parameters, tasks.work.code(task)
        if results[task.key].code != code:
            old.append(i)
    kept = set(there)
    return [i for i in range(len(tasks)) if i not in kept], old


def reproduce(
    path: Path,
    preset: str,
    checkout: Checkout,
    engine: Engine,
    *,
    seed: int,
    refresh: bool,
    bar: Bar,
    replace: bool = False,
) -> Outcome:
    """Bring one experiment's CSV, record and figures up to date; `publish` decides what stands.

    Parameters
    ----------
    preset : `quick`, `paper`, or another that the experiment declares.
    refresh : also run tasks whose results come from older code, instead of a warning.
    replace : let a table that differs, or is equal within its tolerances, take the place of the one
        that stands.

    Raises
    ------
    InputError : the experiment has no such preset, or its tasks disagree on the columns.
    """
    experiment = load(path)
    tasks = plan(path, preset, checkout, seed)
    outcome = complete(tasks, engine, refresh=refresh, bar=bar, name=experiment.id)
    if not (outcome.errors or outcome.waiting):
        results = list(tasks.results(range(len(tasks))))
        outcome.published = publish(experiment, preset, checkout, seed, results, replace)
        figures.draw(experiment, checkout.results(preset))
    return outcome


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
