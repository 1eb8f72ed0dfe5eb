"""What `thesis-cli estimate-z` tells: its summary, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.cli import output
from thesis_cli.cli.options import counted

if TYPE_CHECKING:
    from thesis_cli.base.errors import WorkFailed
    from thesis_cli.cli.full_rank import Calls, Exact
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.posterior import GammaPosterior


def exact(found: Exact, target: str) -> Estimate:
    """The exact answer in the form of an estimate, with the error of quadrature, if that is what it is by."""
    from thesis_cli.perturbation.estimate import exact_estimate

    told = exact_estimate(found.log_z, target, found.method)
    error = found.error * (told.value if target == "Z" else 1.0)
    low, high = told.value - error, told.value + error
    return replace(told, standard_error=error, low=low, high=high, kind=found.kind)


def _text(e: Estimate) -> str:
    """`Estimate.text`, with no more digits of an answer by quadrature than its error leaves."""
    if e.map_calls or not e.standard_error or not e.value:
        return e.text()
    digits = math.floor(math.log10(abs(e.value))) - math.floor(math.log10(e.standard_error))
    return replace(e, value=float(f"{e.value:.{min(max(digits, 1), 12)}g}")).text()


def not_known(error: WorkFailed, target: str) -> Estimate:
    """In the place of an exact answer that quadrature did not give, why."""
    from thesis_cli.perturbation.estimate import Estimate

    nan, name = math.nan, "Z" if target == "Z" else "ln Z"
    return Estimate(nan, nan, nan, nan, name, f"not known ({error})", 1.0, 0, "quadrature", "Thesis section 2.2")


def summary(
    settings: Mapping[str, object],
    calls: Calls,
    estimates: Sequence[Estimate],
    posterior: GammaPosterior | None,
    confidence: float,
    seconds: float,
    out: Path,
) -> dict[str, object]:
    """For programs to read."""
    return {
        **settings,
        **calls.facts(),
        "estimates": [e.row() for e in estimates],
        "posterior": posterior and _posterior_row(posterior, confidence),
        "seconds": round(seconds, 3),
        "out": str(out),
    }


def _posterior_row(posterior: GammaPosterior, confidence: float) -> dict[str, object]:
    low, high = posterior.interval(confidence)
    return {
        "distribution": "Gamma",
        "shape": posterior.shape,
        "log_rate": posterior.log_rate,
        "mean_log_z": posterior.mean_log_z,
        "deviation_log_z": posterior.deviation_log_z,
        "low_log_z": low,
        "high_log_z": high,
        "source": "Thesis eq. 2.5",
    }


def _posterior_text(posterior: GammaPosterior, confidence: float) -> str:
    """With the digits of an estimate, whose standard error it has as its deviation."""
    from thesis_cli.perturbation.estimate import Estimate

    mean, deviation, calls = posterior.mean_log_z, posterior.deviation_log_z, int(posterior.shape)
    found = Estimate(mean, deviation, *posterior.interval(confidence), "ln Z", "", confidence, calls, "", "")
    return found.text().replace("standard error", "standard deviation")


def print_summary(
    told: Mapping[str, object],
    calls: Calls,
    estimates: Sequence[Estimate],
    posterior: GammaPosterior | None,
    confidence: float,
) -> None:
    """The `summary`, for people to read."""
    lines = [("model", f"{told['model']}: {calls.describe()}")]
    lines += [(e.target, e.kind if math.isnan(e.value) else f"{_text(e)}  ({e.method}, {e.kind})") for e in estimates]
    if posterior:
        lines.append(("posterior", f"ln Z = {_posterior_text(posterior, confidence)}  (Bayesian, Jeffreys prior)"))
    lines += calls.lines()
    number = int(posterior.shape) if posterior else sum({e.method[0]: e.map_calls for e in estimates}.values())
    cost = f"{counted(number, 'MAP call')}, seed {told['seed']}, " if number else ""
    lines.append(("cost", f"{cost}{told['seconds']} s"))
    output.print_table(lines)
