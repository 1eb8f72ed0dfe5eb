"""Run experiments: what is stored is skipped, what is missing computed, and all of it merged."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thesis_cli.errors import InputError
from thesis_cli.reproduction import figures, store
from thesis_cli.reproduction.engines import Engine
from thesis_cli.reproduction.experiment import Experiment
from thesis_cli.reproduction.fingerprint import fingerprint
from thesis_cli.reproduction.records import provenance, to_json, write_atomic
from thesis_cli.reproduction.registry import Checkout, load

logger = logging.getLogger(__name__)

Bar = Callable[[int, str], AbstractContextManager[Callable[[int], None]]]
"""(number of tasks, name) -> progress bar, which takes the number of tasks just done."""


@dataclass
class Outcome:
    """How an experiment went.

    Attributes
    ----------
    computed, kept : tasks that ran, tasks whose stored result was used.
    errors : parameters and traceback of the tasks that raised.
    """

    experiment: Experiment
    computed: int = 0
    kept: int = 0
    seconds: float = 0.0
    errors: list[tuple[str, str]] = field(default_factory=list)


def reproduce(
    path: Path, preset: str, checkout: Checkout, engine: Engine, *, seed: int, refresh: bool, bar: Bar
) -> Outcome:
    """Bring one experiment's CSV, record and figures up to date.

    Parameters
    ----------
    path : the experiment's file.
    preset : `quick`, `paper`, or another that it declares.
    engine : runs the missing tasks.
    seed : part of every task's key.
    refresh : compute anew what older code computed, instead of a warning.

    Raises
    ------
    InputError : the experiment has no such preset, or its tasks disagree on the columns.
    """
    began = time.perf_counter()
    experiment = load(path)
    outcome = Outcome(experiment)
    code = fingerprint(path)
    tasks = plan(experiment, path, preset, checkout, seed, code)
    stored = {task.key: store.read(task.file) for task in tasks}
    old = {task.key for task in tasks if (found := stored[task.key]) and found.code != code}
    if old and not refresh:
        logger.warning(
            "%s: %d stored results were computed by older code; --refresh computes them anew",
            experiment.id,
            len(old),
        )
    missing = [task for task in tasks if stored[task.key] is None or (refresh and task.key in old)]
    for task in missing:
        task.file.unlink(missing_ok=True)
    errors: dict[str, str] = {}
    if missing:
        with bar(len(missing), experiment.id) as tick:
            errors = engine.run(missing, tick)
    outcome.kept = len(tasks) - len(missing)
    for task in missing:
        stored[task.key] = store.read(task.file)
        if stored[task.key] is None:
            error = errors.get(task.key, "it left no result")
            outcome.errors.append((to_json(dict(task.parameters)), error))
        else:
            outcome.computed += 1
    if not outcome.errors:
        _publish(experiment, preset, checkout, seed, [found for found in stored.values() if found])
        figures.draw(experiment, checkout.results(preset))
    outcome.seconds = time.perf_counter() - began
    return outcome


def plan(experiment: Experiment, path: Path, preset: str, checkout: Checkout, seed: int, code: str) -> list[store.Task]:
    """The tasks of a preset, in the order of the result's rows."""
    tasks = []
    for parameters in experiment.tasks(experiment.settings(preset)):
        key = store.task_key(experiment.id, experiment.version, parameters, seed)
        tasks.append(store.Task(path, key, parameters, code, store.path_of(checkout.store, experiment.id, key)))
    return tasks


def _publish(
    experiment: Experiment, preset: str, checkout: Checkout, seed: int, results: Sequence[store.Stored]
) -> None:
    """Write the merged CSV and its record, unless they say so already."""
    texts = [result.text for result in results]
    heading = texts[0].split("\n", 1)[0]
    for text in texts:
        if text.split("\n", 1)[0] != heading:
            raise InputError(f"the tasks of {experiment.id} disagree on the columns", heading)
    merged = heading + "\n" + "".join(text.split("\n", 1)[1] for text in texts)
    csv = checkout.results(preset) / f"{experiment.id}.csv"
    record = csv.with_suffix(".json")
    what: dict[str, Any] = {
        "experiment": experiment.id,
        "title": experiment.title,
        "source": experiment.source,
        "preset": preset,
        "settings": dict(experiment.settings(preset)),
        "version": experiment.version,
        "seed": seed,
        "tasks": len(texts),
        "code": sorted({result.code for result in results}),
    }
    data = merged.encode()
    if csv.is_file() and csv.read_bytes() == data and _says(record, what):
        return
    new = to_json(
        {**what, "task_seconds": round(sum(result.seconds for result in results), 1), **provenance(checkout.root)}
    )
    write_atomic({csv: data, record: new})


def _says(record: Path, what: dict[str, Any]) -> bool:
    """Whether the record describes this very computation, whenever and wherever it was run."""
    try:
        old = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(old, dict) and all(old.get(k) == v for k, v in json.loads(to_json(what)).items())
