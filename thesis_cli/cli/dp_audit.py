"""`thesis-cli dp-audit`: does the noise keep what it promises?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from thesis_cli.base.files import check_writable
from thesis_cli.cli import options, output

if TYPE_CHECKING:
    from thesis_cli.privacy.audit_runs import AuditReport

EXAMPLES = """\b
Examples:
  thesis-cli dp-audit --delta 0.1 --runs 20000 --whole-runs 2000
  thesis-cli dp-audit --epsilon 1 --delta 0.1
  thesis-cli dp-audit --epsilon 2 --noise laplace --whole-runs 1000 --json
"""

VERDICTS = "too few runs to tell", "holds", "BROKEN"
"""The worst of two paths is the one further on."""
DEFAULT_OUT = Path("results/runs/dp-audit.csv")


def dp_audit(
    epsilon: Annotated[float, typer.Option(help="Of the claim.")] = 1.0,
    delta: Annotated[
        float, typer.Option(help="Of the claim. At a large one, such as 0.1, fewer runs show more.")
    ] = 1e-6,
    noise: Annotated[Literal["gaussian", "laplace"], typer.Option(help="Noise of OpenDP to audit.")] = "gaussian",
    runs: Annotated[int, typer.Option(min=40, help="Releases of a number, half of either of two.")] = 200_000,
    whole_runs: Annotated[
        int, typer.Option(min=40, help="Releases of a table's mean features, half of either of two tables.")
    ] = 10_000,
    rows: Annotated[int, typer.Option(min=1, help="Of each of these tables.")] = 100,
    features: Annotated[int, typer.Option(min=2, help="Of each of their rows; an even number.")] = 8,
    confidence: Annotated[
        float, typer.Option(help="Of each lower bound: how sure it is not to contradict a claim that is true.")
    ] = 0.999,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Release two neighbouring tables, which are nobody's, many times over, and bound from below what a release tells.

    The noise is that of dp-release, so it has no seed. Exit status 1 if a bound contradicts the claim.
    """
    options.set_messages(quiet, verbose)
    out = out or DEFAULT_OUT
    check_writable("--out", out, ".csv")

    from thesis_cli.privacy.audit_runs import audit_scalar, audit_whole
    from thesis_cli.privacy.mechanism import Budget, OpenDPGaussian, OpenDPLaplace

    began = time.perf_counter()
    budget, make = Budget(epsilon, delta), OpenDPGaussian if noise == "gaussian" else OpenDPLaplace
    with options.progress(runs + whole_runs, "releases", quiet) as tick:
        paths = [
            audit_scalar(make, budget, runs, confidence=confidence, tick=tick),
            audit_whole(make, budget, whole_runs, rows=rows, features=features, confidence=confidence, tick=tick),
        ]
    seconds = time.perf_counter() - began
    found = [path.summary() for path in paths]
    broken = any(path.contradictions for path in paths)
    settings = {"epsilon": epsilon, "delta": delta, "noise": noise, "rows": rows, "features": features}
    settings["confidence"] = confidence
    if as_json:
        verdict = max((path.verdict for path in paths), key=VERDICTS.index)
        output.print_json(
            {**settings, "verdict": verdict, "audits": found, "seconds": round(seconds, 3), "out": str(out)}
        )
    else:
        _print(paths, confidence)
    output.write_table(out, [_flat(row) for row in found], settings, seconds)
    options.logger.info("wrote %s", out)
    if broken:
        raise typer.Exit(1)


def _print(paths: list[AuditReport], confidence: float) -> None:
    calibration = paths[0].calibration
    claim = f"epsilon {paths[0].budget.epsilon:g} at delta {calibration.delta:g}"
    lines = [("claim", f"{claim}  ({calibration.mechanism})")]
    for path in paths:
        proven = f"epsilon >= {path.clopper_pearson.epsilon:.4f}"
        if path.mu is not None:
            proven = f"mu >= {path.gdp.mu:.4f} of {path.mu:.4f} claimed, {proven}"
        lines.append((path.path, f"{proven}, {path.repeats} repeats in {path.runs} runs: {path.verdict}"))
        lines += [("", contradiction) for contradiction in path.contradictions]
    output.print_table([*lines, ("bounds", f"each at confidence {confidence:g}")])


def _flat(row: dict[str, object]) -> dict[str, object]:
    """A row of the file: bounds by name."""
    flat: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{name}": entry for name, entry in value.items() if name not in ("method", "delta")}
        else:
            flat[key] = "; ".join(value) if isinstance(value, list) else value
    return flat
