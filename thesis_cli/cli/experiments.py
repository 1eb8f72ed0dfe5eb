"""`thesis-cli reproduce | plot | claims | list`: the experiments of a checkout."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.cli import cluster, options, output

if TYPE_CHECKING:
    from thesis_cli.reproduction.claims import Verdict
    from thesis_cli.reproduction.registry import Checkout

_REPRODUCE = """\b
Examples, in a checkout:
  thesis-cli reproduce
  thesis-cli reproduce fig-2-1 --preset paper --jobs 2
On a cluster:
  thesis-cli reproduce --preset paper --engine slurm --partition short --time 30 --array-limit 50
"""
_PLOT = """\b
Examples, in a checkout:
  thesis-cli plot fig-2-1
  thesis-cli plot --all
"""
_CLAIMS = """\b
Examples, in a checkout:
  thesis-cli claims
  thesis-cli claims fig-2-1 --json
"""
_LIST = """\b
Examples, in a checkout:
  thesis-cli list
  thesis-cli list --json
"""

EXAMPLES = {"reproduce": _REPRODUCE, "plot": _PLOT, "claims": _CLAIMS, "list": _LIST}

Ids = Annotated[list[str] | None, typer.Argument(help="Experiments; none means all.", show_default=False)]


def reproduce(
    ids: Ids = None,
    preset: Annotated[str, typer.Option(help="quick: seconds; paper: the sizes of the sources.")] = "quick",
    refresh: Annotated[bool, typer.Option("--refresh", help="Compute anew what older code computed.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Root of all random numbers.")] = 0,
    jobs: options.Jobs = None,
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
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Run experiments, draw their figures and check the claims. What is done already is not done again."""
    flags = cluster.flags(locals())
    options.set_messages(quiet, verbose)
    from thesis_cli.reproduction.registry import find_checkout
    from thesis_cli.reproduction.runner import reproduce as run

    checkout = find_checkout()
    wanted = cluster.settings({}, flags)
    runs = cluster.engine(engine, jobs, wanted, detach)

    def bar(total: int, title: str) -> AbstractContextManager[Tick]:
        return options.progress(total, "task", quiet, title)

    failed = waiting = 0
    chosen = checkout.select(ids or [])
    if engine == "slurm" and not detach and len(chosen) > 1:  # all are in the queue before the first is waited for
        submitter = cluster.engine(engine, jobs, wanted, detach=True)
        for path in chosen.values():
            run(path, preset, checkout, submitter, seed=seed, refresh=refresh, bar=bar)
    for name, path in chosen.items():
        done = run(path, preset, checkout, runs, seed=seed, refresh=refresh, bar=bar)
        for parameters, error in done.errors:
            options.logger.error("%s failed at %s%s", name, parameters, error)
        failed += len(done.errors)
        waiting += done.waiting
        options.logger.info("%-22s %4d tasks run, %4d kept, %6.1f s", name, done.computed, done.kept, done.seconds)
    if waiting:
        options.logger.info(
            "%d tasks have no result yet; the same command, without --detach or --engine none, waits for them", waiting
        )
    verdicts = _judge(checkout, preset)
    _report(verdicts, checkout, preset, ids, as_json)
    if failed:
        options.logger.error("error: %d tasks failed; the same command runs them again", failed)
    if failed or any(v.unexplained for v in _only(verdicts, ids)):
        raise typer.Exit(1)


def plot(
    ids: Ids = None,
    every: Annotated[bool, typer.Option("--all", help="Draw every figure.")] = False,
    preset: Annotated[str, typer.Option(help="Whose results to draw.")] = "paper",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Redraw figures, PDF and PNG, from the CSV files alone."""
    options.set_messages(quiet, verbose)
    if bool(ids) == every:
        raise InputError("which figure is wanted?", "name experiments, or give --all")
    from thesis_cli.reproduction.figures import draw
    from thesis_cli.reproduction.registry import find_checkout, load

    checkout = find_checkout()
    for name, path in checkout.select(ids or []).items():
        experiment = load(path)
        experiment.settings(preset)
        if every and not (checkout.results(preset) / f"{name}.csv").is_file():
            options.logger.warning("%s has no result at preset %s", name, preset)
            continue
        for figure in draw(experiment, checkout.results(preset)):
            typer.echo(output.short(figure))


def claims(
    ids: Ids = None,
    preset: Annotated[str, typer.Option(help="Whose results to judge.")] = "paper",
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Hold the statements of the sources against the results. Exit status 1 if one fails without a finding."""
    options.set_messages(quiet, verbose)
    from thesis_cli.reproduction.registry import find_checkout

    checkout = find_checkout()
    checkout.select(ids or [])
    verdicts = _judge(checkout, preset)
    _report(verdicts, checkout, preset, ids, as_json)
    if any(v.unexplained for v in _only(verdicts, ids)):
        raise typer.Exit(1)


def list_experiments(
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """List the experiments of this checkout."""
    options.set_messages(quiet, verbose)
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
        if not as_json:
            state = f"results: {', '.join(done) or 'none'}"
            typer.echo(f"{experiment.id:<22} {experiment.title} ({experiment.source}; {state})")
    if as_json:
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
    """Write claims.csv, of all experiments, and print the table of those asked for."""
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
