"""`thesis-cli reproduce | plot | claims | list`: the experiments of a checkout."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import counted
from thesis_cli.cli import cluster, options, output
from thesis_cli.cli.cluster import EngineRequest
from thesis_cli.cli.own import OwnCommand, Shared
from thesis_cli.commands.core.fields import argument, option
from thesis_cli.commands.core.request import Request

if TYPE_CHECKING:
    from thesis_cli.reproduction.claims import Verdict
    from thesis_cli.reproduction.registry import Checkout


def _ids() -> Any:
    return argument("Ids of experiments.", default=None, default_text="all", metavar="ID")


def _preset(default: str = "paper") -> Any:
    return option(default, "Sizes: quick takes seconds, paper has those of the sources.")


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest(EngineRequest):
    """Run experiments, draw their figures and check the claims.

    Tasks that are done already are not run again.
    """

    ids: tuple[str, ...] | None = _ids()
    preset: str = _preset("quick")
    refresh: bool = option(False, "Run tasks again whose results come from older code.")
    seed: int = option(0, "Seed of all random numbers.", least=0)


@dataclass(frozen=True, kw_only=True)
class PlotRequest(Request):
    """Redraw figures, PDF and PNG, from the CSV files alone."""

    ids: tuple[str, ...] | None = _ids()
    all: bool = option(False, "Draw every figure.")
    preset: str = _preset()

    def check(self) -> None:
        """Refuse both ids and --all, and neither."""
        if bool(self.ids) == self.all:
            raise InputError("--all and ids together" if self.all else "no figure is named", "give ids, or --all")


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
    """Run what is missing, then judge the claims."""
    from thesis_cli.reproduction.registry import find_checkout
    from thesis_cli.reproduction.runner import reproduce as run

    checkout = find_checkout()
    job_settings = cluster.settings({}, request)
    engine = cluster.engine(request, job_settings)
    how: dict[str, Any] = {"seed": request.seed, "refresh": request.refresh, "bar": options.task_bars(shared.quiet)}
    failed = waiting = 0
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
        options.logger.info("%-22s %4d tasks run, %4d kept, %6.1f s", name, done.computed, done.kept, done.seconds)
    if waiting:
        same = "the same command without --detach or --engine none waits for them"
        options.logger.info("%s without a result yet; %s", counted(waiting, "task"), same)
    verdicts = _judge(checkout, request.preset)
    _report(verdicts, checkout, request.preset, request.ids, shared.as_json)
    if failed:
        options.logger.error("error: %s failed; the same command runs them again", counted(failed, "task"))
    if failed or any(v.unexplained for v in _only(verdicts, request.ids)):
        raise typer.Exit(1)


def plot(request: PlotRequest, shared: Shared) -> None:
    """Draw figures, and print their files and what changed."""
    from thesis_cli.reproduction.figures import draw
    from thesis_cli.reproduction.registry import find_checkout, load

    checkout = find_checkout()
    for name, path in checkout.select(list(request.ids or ())).items():
        experiment = load(path)
        experiment.settings(request.preset)
        if request.all and not (checkout.results(request.preset) / f"{name}.csv").is_file():
            options.logger.warning("%s has no result at preset %s", name, request.preset)
            continue
        for figure, change in draw(experiment, checkout.results(request.preset)).items():
            typer.echo(f"{output.short(figure)} {change}")


def claims(request: ClaimsRequest, shared: Shared) -> None:
    """Judge the claims from the CSV files and print the verdicts."""
    from thesis_cli.reproduction.registry import find_checkout

    checkout = find_checkout()
    checkout.select(list(request.ids or ()))
    verdicts = _judge(checkout, request.preset)
    _report(verdicts, checkout, request.preset, request.ids, shared.as_json)
    if any(v.unexplained for v in _only(verdicts, request.ids)):
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


def _judge(checkout: Checkout, preset: str) -> list[Verdict]:
    """The verdicts on all claims of all experiments."""
    from thesis_cli.reproduction.claims import judge
    from thesis_cli.reproduction.registry import load

    experiments = [load(path) for path in checkout.files().values()]
    for experiment in experiments:
        experiment.settings(preset)
    return [v for experiment in experiments for v in judge(experiment, checkout.results(preset))]


def _only(verdicts: Sequence[Verdict], ids: Sequence[str] | None) -> list[Verdict]:
    return [v for v in verdicts if not ids or v.experiment in ids]


def _report(
    verdicts: Sequence[Verdict], checkout: Checkout, preset: str, ids: Sequence[str] | None, as_json: bool
) -> None:
    """Write claims.csv of all experiments, and print the claims of the chosen ones."""
    from thesis_cli.reproduction.claims import FAILS, HOLDS, NOT_RUN, write_csv

    if any(v.verdict != NOT_RUN for v in verdicts):
        write_csv(verdicts, checkout.results(preset) / "claims.csv")
    verdicts = _only(verdicts, ids)
    if as_json:
        output.print_json({"preset": preset, "claims": [asdict(v) for v in verdicts]})
        return
    _print_claims(verdicts)
    count = {kind: sum(v.verdict == kind for v in verdicts) for kind in (HOLDS, FAILS, NOT_RUN)}
    unexplained = sum(v.unexplained for v in verdicts)
    typer.echo(
        f"{len(verdicts)} claims at preset {preset}: {count[HOLDS]} hold, {count[FAILS]} do not "
        f"({count[FAILS] - unexplained} of them findings of docs/errata.md), {count[NOT_RUN]} not run"
    )


def _print_claims(verdicts: Sequence[Verdict]) -> None:
    from thesis_cli.base.figures import nice

    width = max(60, shutil.get_terminal_size((110, 24)).columns)
    room = width - 52
    typer.echo(f"{'statement':<{room}} {'published':>11} {'measured':>11} {'tolerance':>10}  verdict")
    for experiment in dict.fromkeys(v.experiment for v in verdicts):
        typer.echo(f"\n{experiment}")
        for v in (v for v in verdicts if v.experiment == experiment):
            lines = textwrap.wrap(f"{v.statement} ({v.source})", room - 2)
            published = ("" if v.relation == "=" else f"{v.relation} ") + nice(v.published)
            typer.echo(
                f"  {lines[0]:<{room - 2}} {published:>11} {nice(v.measured):>11} {nice(v.tolerance):>10}  {v.verdict}"
            )
            for line in lines[1:]:
                typer.echo(f"  {line}")
            if v.verdict != "holds" and v.finding:
                typer.echo(f"    see docs/errata.md, {v.finding}")
    typer.echo("")


COMMANDS = {
    "reproduce": OwnCommand(
        ReproduceRequest,
        reproduce,
        examples=("reproduce", "reproduce fig-2-1 --preset paper --jobs 2"),
        more="On a cluster:\n  thesis-cli reproduce --preset paper --engine slurm --partition short --array-limit 50",
    ),
    "plot": OwnCommand(PlotRequest, plot, examples=("plot fig-2-1", "plot --all"), json=False),
    "claims": OwnCommand(ClaimsRequest, claims, examples=("claims", "claims fig-2-1 --json")),
    "list": OwnCommand(ListRequest, list_experiments, examples=("list", "list --json")),
}
