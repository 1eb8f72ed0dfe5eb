"""`thesis-cli verify`: compute random tasks of the committed results again, and compare."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, counted
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.fields import Request, argument, option
from thesis_cli.commands.core.result import Summary, aligned
from thesis_cli.reproduction.commands import OwnCommand, task_bars

if TYPE_CHECKING:
    import pandas as pd

    from thesis_cli.reproduction.experiment import Experiment


@dataclass(frozen=True, kw_only=True)
class VerifyRequest(Request):
    """Compute random tasks of the committed results again, and compare them with the committed rows.

    First every table is held against the digest in its record, and every table and figure against
    MANIFEST.json. The exit status is 1 if one was changed, or if rows differ by more than the
    tolerances of their experiment.
    """

    usual = ("count", "seconds", "preset", "seed")

    ids: tuple[str, ...] | None = argument("Ids of experiments.", default=None, default_text="all", metavar="ID")
    count: int = option(10, "Number of tasks to compute again, drawn from all with equal probability.", least=0)
    seconds: float = option(
        math.inf,
        "Leave out experiments whose tasks took more seconds than this on average.",
        above=0,
        finite=False,
        default_text="none is left out",
    )
    preset: str = option("paper", "Sizes of the results: quick or paper.")
    seed: int | None = option(None, "Seed of the choice of tasks.", least=0, default_text="drawn and printed")


UNREPEATABLE = "not repeatable"


@dataclass(frozen=True)
class Check:
    """A task that was computed again.

    Attributes
    ----------
    experiment : id.
    place : number of the task among those of the experiment, from 0.
    parameters : parameters of the task.
    row : first of its rows in the table, from 1.
    verdict : `identical`, `equal`, `differs`, or `not repeatable` if that is so of all of its rows.
    text : the comparison in words.
    """

    experiment: str
    place: int
    parameters: Mapping[str, Any]
    row: int
    verdict: str
    text: str


@dataclass(frozen=True, kw_only=True, repr=False)
class VerifyResult(Summary):
    """Tables against their records, and tasks against their rows.

    Attributes
    ----------
    tables : number of tables that were held against their digests.
    changed : why a table is not what its record describes, by experiment; and why a file is not that
        of the manifest, by its name.
    checks : the tasks that were computed again.
    seed : of the choice of tasks.
    manifest : whether there is a MANIFEST.json; without one no figure was checked.
    """

    tables: int
    changed: Mapping[str, str]
    checks: Sequence[Check]
    seed: int
    manifest: bool

    @cached_property
    def table(self) -> pd.DataFrame:
        """A task a row."""
        import pandas as pd

        return pd.DataFrame([asdict(check) for check in self.checks])

    def failures(self, full: bool = False) -> Sequence[str]:
        wrong = [f"{name}: {why}" for name, why in self.changed.items()]
        return wrong + [f"{c.experiment}, task {c.place}: {c.text}" for c in self.checks if c.verdict == "differs"]

    def facts(self) -> Mapping[str, Any]:
        checks = [asdict(check) for check in self.checks]
        known = {"tables": self.tables, "manifest": self.manifest, "changed": self.changed}
        return {**known, "seed": self.seed, "checks": checks}

    def summary(self, full: bool = False) -> str:
        lines = [(f"{c.experiment}, task {c.place}", c.text) for c in self.checks]
        same = sum(check.verdict in ("identical", "equal") for check in self.checks)
        loose = sum(check.verdict == UNREPEATABLE for check in self.checks)
        experiments = len({check.experiment for check in self.checks})
        right = self.tables - sum("." not in name for name in self.changed)
        total = [("tables", f"{right} of {self.tables} are what their records describe")]
        none = "there is none, so figures were not checked; thesis-cli report writes it"
        total += [("manifest", none)] * (not self.manifest)
        of = f"{counted(len(self.checks), 'task')} of {counted(experiments, 'experiment')}"
        apart = f"; no second run repeats the rows of {loose}" * bool(loose)
        total += [("tasks", f"{same} of {of} gave their rows again{apart} (seed {self.seed})")] * bool(self.checks)
        return "\n".join([aligned(lines), ""] * bool(lines) + [aligned(total)])


def verify(request: VerifyRequest, progress: Progress) -> VerifyResult:
    """Check the digests, draw tasks, compute them, and find their rows."""
    from thesis_cli.commands.core.common import seed_or_fresh
    from thesis_cli.reproduction import manifest
    from thesis_cli.reproduction.experiment import find_checkout, load

    checkout = find_checkout()
    folder = checkout.results(request.preset)
    changed = manifest.changed(folder)
    if request.ids:
        changed = {name: why for name, why in changed.items() if Path(name).stem in request.ids}
    tasks: list[tuple[Experiment, Path, int]] = []
    tables = 0
    for name, path in checkout.select(list(request.ids or ())).items():
        experiment = load(path)
        record = _record(folder / f"{name}.json")
        if record is None:
            continue
        tables += 1
        if why := _doubt(experiment, record, folder / f"{name}.csv", request.preset):
            changed[name] = why
        elif not experiment.shares and record["task_seconds"] <= request.seconds * record["tasks"]:
            tasks += [(experiment, path, place) for place in range(record["tasks"])]
    if not tables:
        raise InputError(f"there are no results of preset {request.preset}", "run thesis-cli reproduce")
    seed = seed_or_fresh(request.seed)
    chosen = random.Random(seed).sample(tasks, min(request.count, len(tasks)))
    checks = []
    with task_bars(progress)(len(chosen), "verify") as tick:
        for experiment, path, place in chosen:
            checks.append(_again(experiment, path, place, folder / f"{experiment.id}.csv", request.preset))
            tick(1)
    described = (folder / manifest.NAME).is_file()
    return VerifyResult(request=request, tables=tables, changed=changed, checks=checks, seed=seed, manifest=described)


def _record(path: Path) -> dict[str, Any] | None:
    """The record of a table; None if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise InputError("is no record", "restore it from the repository", source=path) from None
    if not (isinstance(found, dict) and {"tasks", "task_seconds", "seed", "version", "settings"} <= found.keys()):
        raise InputError("lacks fields of a record", "restore it from the repository", source=path)
    return found


def _doubt(experiment: Experiment, record: Mapping[str, Any], table: Path, preset: str) -> str:
    """Why a table is not that of its record or of this experiment; empty if it is."""
    from thesis_cli.reproduction.publication import was_changed

    if not table.is_file():
        return "the table is missing"
    if was_changed(table, record):
        return "the table was changed after its record was written"
    settings = json.loads(json.dumps(dict(experiment.settings(preset))))
    if (record["version"], record["settings"]) != (experiment.version, settings):
        return "the record is of another version or other settings"
    return ""


def _again(experiment: Experiment, path: Path, place: int, table: Path, preset: str) -> Check:
    """A task, computed again and held against its rows."""
    from itertools import islice

    from thesis_cli.reproduction import comparison
    from thesis_cli.reproduction.engines import ExperimentWork
    from thesis_cli.reproduction.tasks import Task, task_key

    seed = json.loads(table.with_suffix(".json").read_text(encoding="utf-8"))["seed"]
    parameters = next(islice(experiment.tasks(experiment.settings(preset)), place, None))
    key = task_key(experiment.id, experiment.version, parameters, seed)
    text = ExperimentWork(path).run(Task(experiment.id, parameters, seed, key, Path()))
    new = comparison.without_noise(text, experiment.tolerances)
    row, old = _nearest(table.read_text(encoding="utf-8"), new)
    found = comparison.compare(old, new, experiment.tolerances, experiment.rows)
    loose = sum(count for tolerance, count in found.rows.items() if tolerance.relative == math.inf)
    verdict = UNREPEATABLE if found.verdict == comparison.EQUAL and loose == new.count("\n") - 1 else found.verdict
    return Check(experiment.id, place, parameters, row + 1, verdict, f"rows from {row + 1}: {found}")


def _nearest(old: str, new: str) -> tuple[int, str]:
    """The consecutive rows of a table that share most cells with those of a task: their place, and they as a table."""
    heading, *lines = old.splitlines(keepends=True)
    wanted = new.splitlines(keepends=True)[1:]
    places = range(len(lines) - len(wanted) + 1)
    if not places:
        raise InputError("a table has fewer rows than one of its tasks", "reproduce it again")
    alike = [sum(map(str.__eq__, lines[place : place + len(wanted)], wanted)) for place in places]
    if not max(alike):  # no row is the same, so that cells decide
        before, after = [line.split(",") for line in lines], [line.split(",") for line in wanted]
        alike = [
            sum(sum(map(str.__eq__, *pair)) for pair in zip(before[place : place + len(after)], after, strict=True))
            for place in places
        ]
    place = alike.index(max(alike))
    return place, heading + "".join(lines[place : place + len(wanted)])


COMMANDS = {
    "verify": OwnCommand(
        VerifyRequest, verify, examples=("verify --count 5 --seconds 5", "verify fig-2-1 --count 1 --seed 3")
    )
}
