"""`thesis-cli reproduce | claims | list`: the experiments of a checkout."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import typer

from thesis_cli.base.wording import counted
from thesis_cli.cli import cluster, options, output
from thesis_cli.cli.cluster import EngineRequest
from thesis_cli.cli.own import OwnCommand, Shared
from thesis_cli.commands.core.fields import argument, option
from thesis_cli.commands.core.request import Request

if TYPE_CHECKING:
    from pathlib import Path

    from thesis_cli.reproduction.claims import Verdict
    from thesis_cli.reproduction.publication import Published
    from thesis_cli.reproduction.registry import Checkout


def _ids() -> Any:
    return argument("Ids of experiments.", default=None, default_text="all", metavar="ID")


def _preset(default: str = "paper") -> Any:
    return option(default, "Sizes: quick takes seconds, paper has those of the sources.")


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest(EngineRequest):
    """Run experiments, compare their tables with those that stand, draw figures and check claims.

    Tasks that are done already are not run again. The exit status is 1 if a committed table
    differs, a task fails, or a statement does not hold and docs/errata.md does not explain it.
    """

    ids: tuple[str, ...] | None = _ids()
    preset: str = _preset("quick")
    replace: bool = option(False, "Put recomputed tables in the place of those that stand, even if they differ.")
    refresh: bool = option(False, "Run tasks again whose results come from older code.")
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


def reproduce(request: ReproduceRequest, shared: Shared) -> None:
    """Run what is missing, judge the claims, and say how the tables compare."""
    from thesis_cli.reproduction.registry import find_checkout
    from thesis_cli.reproduction.runner import reproduce as run

    checkout = find_checkout()
    job_settings = cluster.settings({}, request)
    engine = cluster.engine(request, job_settings)
    bar = options.task_bars(shared.quiet)
    how: dict[str, Any] = {"seed": request.seed, "refresh": request.refresh, "replace": request.replace, "bar": bar}
    failed = waiting = 0
    tables: list[Published] = []
    chosen = checkout.select(list(request.ids or ()))
    if request.engine == "slurm" and not request.detach and len(chosen) > 1:
        # Submit all before waiting for the first.
        submitter = cluster.engine(replace(request, detach=True), job_settings)
        for path in chosen.values():
            run(path, request.preset, checkout, submitter, **how)
    for name, path in chosen.items():
        done = run(path, request.preset, checkout, engine, **how)
        for parameters, error in done.errors:
            options.logger.error("%s failed at %s: %s", name, parameters, error)
        failed += len(done.errors)
        waiting += done.waiting
        tables += [done.published] if done.published else []
        options.logger.info("%-22s %4d tasks run, %4d kept, %6.1f s", name, done.computed, done.kept, done.seconds)
    if waiting:
        same = "the same command without --detach or --engine none waits for them"
        options.logger.info("%s without a result yet; %s", counted(waiting, "task"), same)
    verdicts = _judge(checkout, request.preset, chosen)
    if shared.as_json:
        _print_json(request.preset, verdicts, tables=[table.to_dict() for table in tables])
    else:
        _print_claims(verdicts, request.preset)
        typer.echo("")
        _print_tables(tables, request.preset, len(chosen))
    if failed:
        options.logger.error("error: %s failed; the same command runs them again", counted(failed, "task"))
    held = [table for table in tables if table.beside]
    for table in held:
        options.logger.error(
            "error: %s differs from the table that stands; compare it with %s, and raise the experiment's version, or "
            "give --replace, if the change is right",
            table.experiment,
            output.short(cast("Path", table.beside)),
        )
    if failed or held or any(v.unexplained for v in verdicts):
        raise typer.Exit(1)


def claims(request: ClaimsRequest, shared: Shared) -> None:
    """Judge the claims from the CSV files and print the verdicts."""
    from thesis_cli.reproduction.registry import find_checkout

    checkout = find_checkout()
    verdicts = _judge(checkout, request.preset, checkout.select(list(request.ids or ())))
    if shared.as_json:
        _print_json(request.preset, verdicts)
    else:
        _print_claims(verdicts, request.preset)
    if any(v.unexplained for v in verdicts):
        raise typer.Exit(1)


def list_experiments(request: ListRequest, shared: Shared) -> None:
    """Print ids, titles, sources and which results there are."""
    from thesis_cli.reproduction.registry import find_checkout, load

    checkout = find_checkout()
    rows: list[dict[str, object]] = []
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
        if not shared.as_json:
            state = f"results: {', '.join(done) or 'none'}"
            typer.echo(f"{experiment.id:<22} {experiment.title} ({experiment.source}; {state})")
    if shared.as_json:
        output.print_json({"experiments": rows})


def _judge(checkout: Checkout, preset: str, chosen: Mapping[str, Path]) -> list[Verdict]:
    """The verdicts on the claims of some experiments; their rows of claims.csv are rewritten."""
    from thesis_cli.reproduction.claims import NOT_RUN, judge, write_csv
    from thesis_cli.reproduction.registry import load

    folder = checkout.results(preset)
    experiments = [load(path) for path in chosen.values()]
    for experiment in experiments:
        experiment.settings(preset)
    verdicts = [v for experiment in experiments for v in judge(experiment, folder)]
    if any(v.verdict != NOT_RUN for v in verdicts):
        write_csv(verdicts, folder / "claims.csv", keep=[name for name in checkout.files() if name not in chosen])
    return verdicts


def _print_json(preset: str, verdicts: Sequence[Verdict], **more: object) -> None:
    output.print_json({"preset": preset, **more, "claims": [asdict(v) for v in verdicts]})


def _print_claims(verdicts: Sequence[Verdict], preset: str) -> None:
    from thesis_cli.base.figures import nice
    from thesis_cli.reproduction.claims import CONSISTENT, FAILS, HOLDS, NOT_RUN, UNDECIDED, VERDICTS

    room = _width() - 52
    if verdicts:
        typer.echo(f"{'statement':<{room}} {'published':>11} {'measured':>11} {'detects':>10}  verdict")
    for experiment in dict.fromkeys(v.experiment for v in verdicts):
        typer.echo(f"\n{experiment}")
        for v in (v for v in verdicts if v.experiment == experiment):
            text = f"{v.statement} ({'; '.join(filter(None, [v.source, v.reading]))})"
            lines = textwrap.wrap(text, room - 2)
            published = ("" if v.relation == "=" else f"{v.relation} ") + nice(v.published)
            typer.echo(
                f"  {lines[0]:<{room - 2}} {published:>11} {nice(v.measured):>11} {nice(v.detects):>10}  {v.verdict}"
            )
            for line in lines[1:]:
                typer.echo(f"  {line}")
            if v.finding:
                typer.echo(f"    see docs/errata.md, {v.finding}")
    count = {verdict: sum(v.verdict == verdict for v in verdicts) for verdict in VERDICTS}
    findings = count[FAILS] - sum(v.unexplained for v in verdicts)
    typer.echo(
        ("\n" if verdicts else "") + f"{counted(len(verdicts), 'claim')} at preset {preset}: {count[HOLDS]} hold, "
        f"{count[CONSISTENT]} consistent, {count[UNDECIDED]} not decided, {count[FAILS]} do not hold "
        f"({findings} of them findings of docs/errata.md), {count[NOT_RUN]} not run"
    )


def _print_tables(tables: Sequence[Published], preset: str, chosen: int) -> None:
    """How each table compares with the one that stood, and how many do so."""
    from thesis_cli.reproduction.comparison import DIFFERS, EQUAL, IDENTICAL
    from thesis_cli.reproduction.publication import NEW

    room = max((len(table.experiment) for table in tables), default=0) + 2
    for table in tables:
        lines = textwrap.wrap(str(table), max(_width() - room, 30), break_on_hyphens=False)
        typer.echo(f"{table.experiment:<{room}}{lines[0]}")
        for line in lines[1:]:
            typer.echo(f"{'':<{room + 2}}{line}")
    count = {kind: sum(table.verdict == kind for table in tables) for kind in (IDENTICAL, EQUAL, DIFFERS, NEW)}
    parts = [f"{number} {kind}" for kind, number in {**count, "incomplete": chosen - len(tables)}.items() if number]
    typer.echo(("\n" if tables else "") + f"{counted(chosen, 'table')} at preset {preset}: {', '.join(parts)}")


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
