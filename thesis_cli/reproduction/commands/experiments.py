"""`thesis-cli reproduce | claims | list`: the experiments of a checkout."""

from __future__ import annotations

import logging
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import InputError, counted
from thesis_cli.base.progress import Progress
from thesis_cli.base.provenance import git_state, is_public
from thesis_cli.commands.core.fields import Request, argument, option
from thesis_cli.commands.core.result import Summary
from thesis_cli.reproduction.commands import OwnCommand, cluster, short, task_bars
from thesis_cli.reproduction.commands.cluster import EngineRequest

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from thesis_cli.reproduction.claims import Verdict
    from thesis_cli.reproduction.coverage import NotReproduced
    from thesis_cli.reproduction.experiment import Checkout
    from thesis_cli.reproduction.publication import Published

logger = logging.getLogger(__name__)


def _ids() -> Any:
    return argument("Ids of experiments.", default=None, default_text="all", metavar="ID")


def _preset(default: str = "paper") -> Any:
    return option(default, "Sizes: quick takes seconds, paper has those of the sources.")


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest(EngineRequest):
    """Run experiments, compare their tables with the committed ones, draw figures and check claims.

    Tasks that are done already are not run again. The exit status is 1 if a committed table
    differs, a task fails, or a statement does not hold and docs/errata.md does not explain it.
    """

    usual = ("engine", "preset", "jobs", "replace", "refresh")

    ids: tuple[str, ...] | None = _ids()
    preset: str = _preset("quick")
    replace: bool = option(False, "Replace committed tables and records by recomputed ones, even if they differ.")
    refresh: bool = option(False, "Run tasks again whose results come from older code.")
    any_code: bool = option(
        False, "Compute results of preset paper with code that is not committed, or that no remote branch has."
    )
    seed: int = option(0, "Seed of all random numbers.", least=0)


@dataclass(frozen=True, kw_only=True)
class ClaimsRequest(Request):
    """Compare the statements of the sources with the results.

    The exit status is 1 if a statement does not hold and docs/errata.md does not explain it.
    """

    ids: tuple[str, ...] | None = _ids()
    preset: str = _preset()


@dataclass(frozen=True, kw_only=True)
class ListRequest(Request):
    """List the experiments of this checkout."""


PARTS = {"sources": False, "own": True}
"""Rows on the sources, and those of this project, which are counted apart."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ClaimsResult(Summary):
    """Verdicts on claims.

    Attributes
    ----------
    preset : sizes of the results.
    verdicts : on each claim.
    missing : what of the sources could not be computed again.
    """

    preset: str
    verdicts: Sequence[Verdict]
    missing: Sequence[NotReproduced]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One claim a row."""
        import pandas as pd

        return pd.DataFrame([asdict(v) for v in self.verdicts])

    @property
    def status(self) -> int:
        return int(bool(self.failures()) or any(v.unexplained for v in self.verdicts))

    def facts(self) -> Mapping[str, Any]:
        from thesis_cli.reproduction.claims import counts

        return {
            "preset": self.preset,
            "not_reproduced": [asdict(each) for each in self.missing],
            "counts": {name: counts(v.verdict for v in self.verdicts if v.own == own) for name, own in PARTS.items()},
            "claims": [asdict(v) for v in self.verdicts],
        }

    def summary(self, full: bool = False) -> str:
        return "\n".join([*_missing(self.missing), *_claims(self.verdicts, self.preset, len(self.missing))])


@dataclass(frozen=True, kw_only=True, repr=False)
class ReproduceResult(ClaimsResult):
    """Outcome of experiments.

    Attributes
    ----------
    experiments : number of experiments.
    failed : tasks that failed.
    tables : how the tables that are complete compare with those that stood.
    """

    experiments: int
    failed: int
    tables: Sequence[Published]

    def failures(self, full: bool = False) -> Sequence[str]:
        failed = [f"{counted(self.failed, 'task')} failed; the same command runs them again"] * bool(self.failed)
        return failed + [
            f"{table.experiment} differs from the table that stands; compare it with {short(table.beside)}, and"
            " raise the experiment's version, or give --replace, if the change is right"
            for table in self.tables
            if table.beside
        ]

    def facts(self) -> Mapping[str, Any]:
        return {**super().facts(), "tables": [table.to_dict() for table in self.tables]}

    def summary(self, full: bool = False) -> str:
        return "\n".join([super().summary(), "", *_tables(self.tables, self.preset, self.experiments)])


def reproduce(request: ReproduceRequest, progress: Progress) -> ReproduceResult:
    """Run what is missing, judge the claims, and compare the tables."""
    from thesis_cli.reproduction.coverage import not_reproduced
    from thesis_cli.reproduction.experiment import checkout_here
    from thesis_cli.reproduction.runner import reproduce as run

    checkout = checkout_here()
    job_settings = cluster.settings({}, request)
    engine = cluster.engine(request, job_settings)
    how: dict[str, Any] = {"seed": request.seed, "refresh": request.refresh, "replace": request.replace}
    how["bar"] = task_bars(progress)
    failed = waiting = 0
    tables: list[Published] = []
    chosen = checkout.select(list(request.ids or ()))
    if request.preset == "paper" and not request.any_code:
        _check_code(checkout, request, chosen)
    if request.engine == "slurm" and not request.detach and len(chosen) > 1:
        # Submit all before waiting for the first.
        submitter = cluster.engine(replace(request, detach=True), job_settings)
        for _ in run(chosen, request.preset, checkout, submitter, **how):
            pass
    for name, done in run(chosen, request.preset, checkout, engine, **how):
        for parameters, error in done.errors:
            logger.error("%s failed at %s: %s", name, parameters, error)
        failed += len(done.errors)
        waiting += done.waiting
        tables += [done.published] if done.published else []
        logger.info(
            "%-22s %4d tasks run, %4d kept, %8.1f s of a core in all", name, done.computed, done.kept, done.seconds
        )
    if waiting:
        same = "the same command without --detach or --engine none waits for them"
        logger.info("%s without a result yet; %s", counted(waiting, "task"), same)
    return ReproduceResult(
        request=request,
        preset=request.preset,
        verdicts=_judge(checkout, request.preset, chosen),
        missing=not_reproduced(checkout.root, request.ids),
        experiments=len(chosen),
        failed=failed,
        tables=sorted(tables, key=lambda table: list(chosen).index(table.experiment)),
    )


def _check_code(checkout: Checkout, request: ReproduceRequest, chosen: Mapping[str, Path]) -> None:
    """Refuse to compute what is to be committed with code that nobody else could check out.

    Raises
    ------
    InputError : a task must run, and files of the checkout are not committed, or no branch of its
        remotes has the commit.
    """
    from thesis_cli.reproduction.runner import plan

    planned = (plan(path, request.preset, checkout, request.seed) for path in chosen.values())
    if not request.refresh and all(len(tasks.indices(tasks.finished())) == len(tasks) for tasks in planned):
        return
    root = checkout.root
    remedy = "--any-code computes all the same"
    if git_state(root)["git_dirty"]:
        raise InputError("the record would name a commit that is not the code: files are not committed", remedy)
    if not is_public(root):
        raise InputError("the record would name a commit that no branch of a remote has", f"push it; {remedy}")


def claims(request: ClaimsRequest, progress: Progress) -> ClaimsResult:
    """Judge the claims from the CSV files."""
    from thesis_cli.reproduction.coverage import not_reproduced
    from thesis_cli.reproduction.experiment import find_checkout

    checkout = find_checkout()
    verdicts = _judge(checkout, request.preset, checkout.select(list(request.ids or ())))
    missing = not_reproduced(checkout.root, request.ids)
    return ClaimsResult(request=request, preset=request.preset, verdicts=verdicts, missing=missing)


@dataclass(frozen=True, kw_only=True, repr=False)
class ListResult(Summary):
    """The experiments of a checkout.

    Attributes
    ----------
    experiments : id, title, source, number of claims, presets, and the presets that have results.
    """

    experiments: Sequence[Mapping[str, Any]]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One experiment a row."""
        import pandas as pd

        return pd.DataFrame(list(self.experiments))

    def facts(self) -> Mapping[str, Any]:
        return {"experiments": self.experiments}

    def summary(self, full: bool = False) -> str:
        return "\n".join(
            f"{row['id']:<22} {row['title']} ({row['source']}; results: {', '.join(row['results']) or 'none'})"
            for row in self.experiments
        )


def list_experiments(request: ListRequest, progress: Progress) -> ListResult:
    """Ids, titles, sources and which results there are."""
    from thesis_cli.reproduction.experiment import find_checkout, load

    checkout = find_checkout()
    rows = []
    for path in checkout.files().values():
        experiment = load(path)
        done = [p for p in experiment.presets if (checkout.results(p) / f"{experiment.id}.csv").is_file()]
        rows.append(
            {
                "id": experiment.id,
                "title": experiment.title,
                "source": experiment.source,
                "claims": len(experiment.claims),
                "presets": list(experiment.presets),
                "results": done,
            }
        )
    return ListResult(request=request, experiments=rows)


def _judge(checkout: Checkout, preset: str, chosen: Mapping[str, Path]) -> list[Verdict]:
    """The verdicts on the claims of some experiments; their rows of claims.csv are rewritten, if the
    working folder is in the checkout."""
    from thesis_cli.reproduction.claims import NOT_RUN, judge, write_csv
    from thesis_cli.reproduction.experiment import load

    folder = checkout.results(preset)
    experiments = [load(path) for path in chosen.values()]
    for experiment in experiments:
        experiment.settings(preset)
    verdicts = [v for experiment in experiments for v in judge(experiment, folder)]
    if checkout.is_here and any(v.verdict != NOT_RUN for v in verdicts):
        write_csv(verdicts, folder / "claims.csv", keep=[name for name in checkout.files() if name not in chosen])
    return verdicts


def _missing(missing: Sequence[NotReproduced]) -> list[str]:
    """Lines of text on what could not be computed again."""
    from thesis_cli.reproduction.coverage import SHORT

    found = ["Not reproduced:"] * bool(missing)
    for each in missing:
        text = f"{SHORT[each.source]}, {each.what}: {each.reason}."
        found += textwrap.wrap(text, _width() - 2, initial_indent="  ", subsequent_indent="    ")
    return [*found, ""] if missing else []


def _claims(verdicts: Sequence[Verdict], preset: str, missing: int) -> list[str]:
    """Lines of text on each claim, those on the sources first, and how many have each verdict."""
    found: list[str] = []
    for own in PARTS.values():
        rows = [v for v in verdicts if v.own == own]
        if rows:
            found += ["This project's own checks, which no source states:", ""] * own + _table(rows) + [""]
    for own in PARTS.values():
        rows = [v for v in verdicts if v.own == own]
        if rows or not own:
            found.append(_headline(rows, preset, own, missing))
    return found


def _table(verdicts: Sequence[Verdict]) -> list[str]:
    """Lines of text on each of some claims."""
    from thesis_cli.base.figures import nice

    room = _width() - 53
    found = [f"{'statement':<{room}} {'expected':>11} {'measured':>11} {'detects':>10}  verdict"]
    for experiment in dict.fromkeys(v.experiment for v in verdicts):
        found.append(f"\n{experiment}")
        for v in (v for v in verdicts if v.experiment == experiment):
            printed = f"printed: {v.printed}" if v.printed else ""
            text = f"{v.statement} ({'; '.join(filter(None, [v.source, printed, v.reading]))})"
            first, *others = textwrap.wrap(text, room - 2)
            expected = ("" if v.relation == "=" else f"{v.relation} ") + nice(v.published)
            detects = "too large" if v.is_silent else nice(v.detects)
            numbers = f"{expected:>11} {nice(v.measured):>11} {detects:>10}"
            found.append(f"  {first:<{room - 2}} {numbers}  {v.verdict}")
            found += [f"  {line}" for line in others]
            if v.finding:
                found.append(f"    see docs/errata.md, {v.finding}{f' ({v.tag})' if v.tag else ''}")
            found += textwrap.wrap(v.why, room + 20, initial_indent="    ", subsequent_indent="    ")
    return found


def _headline(verdicts: Sequence[Verdict], preset: str, own: bool, missing: int) -> str:
    """How many of the claims on the sources, or of the project's own, have each verdict."""
    from thesis_cli.reproduction.claims import counts, tally

    whose = "this project's own" if own else "the sources"
    found = (
        f"{counted(len(verdicts), 'check')} of {whose} at preset {preset}: {tally(counts(v.verdict for v in verdicts))}"
    )
    unexplained = sum(v.unexplained for v in verdicts)
    found += f" ({unexplained} of them not explained in docs/errata.md)" if unexplained else ""
    return f"{found}; not reproduced: {missing}" if missing and not own else found


def _tables(tables: Sequence[Published], preset: str, chosen: int) -> list[str]:
    """Lines of text on how each table compares with the one that stood, and how many do so."""
    from thesis_cli.reproduction.comparison import DIFFERS, EQUAL, IDENTICAL
    from thesis_cli.reproduction.publication import NEW

    room = max((len(table.experiment) for table in tables), default=0) + 2
    found = []
    for table in tables:
        first, *others = textwrap.wrap(str(table), max(_width() - room, 30), break_on_hyphens=False)
        found.append(f"{table.experiment:<{room}}{first}")
        found += [f"{'':<{room + 2}}{line}" for line in others]
    count = {kind: sum(table.verdict == kind for table in tables) for kind in (IDENTICAL, EQUAL, DIFFERS, NEW)}
    parts = [f"{number} {kind}" for kind, number in {**count, "incomplete": chosen - len(tables)}.items() if number]
    found.append(("\n" if tables else "") + f"{counted(chosen, 'table')} at preset {preset}: {', '.join(parts)}")
    return found


def _width() -> int:
    return max(60, shutil.get_terminal_size((110, 24)).columns)


COMMANDS = {
    "reproduce": OwnCommand(
        ReproduceRequest,
        reproduce,
        examples=("reproduce", "reproduce fig-2-1 --preset paper --jobs 2"),
        more="On a cluster:\n  thesis-cli reproduce --preset paper --engine slurm --partition short --array-limit 50",
    ),
    "claims": OwnCommand(ClaimsRequest, claims, examples=("claims", "claims fig-2-1 --json")),
    "list": OwnCommand(ListRequest, list_experiments, examples=("list", "list --json")),
}
