"""The result of commands that estimate a partition function: its table, its summary, its record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from thesis_cli.base.columns import Columns
from thesis_cli.base.wording import counted
from thesis_cli.commands.core.result import Result, presentation

if TYPE_CHECKING:
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.tricks.posterior import GammaPosterior


@dataclass(frozen=True, kw_only=True, repr=False)
class EstimatesResult(Result):
    """Estimates of one partition function.

    Attributes
    ----------
    estimates : the exact answer first, if there is one; then one for each trick or bound.
    posterior : of Z given the perturbed maxima; None without samples.
    source : name of what Z belongs to, a file or an object.
    description : of that.
    map_calls : number of MAP problems that bounds took; all exponents of a bound share them.
    """

    estimates: tuple[Estimate, ...]
    posterior: GammaPosterior | None = None
    source: str
    description: str
    map_calls: int = 0

    title: ClassVar[str] = "model"

    @property
    def estimate(self) -> Estimate:
        """The first of the estimates: the exact answer if there is one."""
        return self.estimates[0]

    @property
    def problems(self) -> int:
        """Number of MAP problems solved in all: estimates by tricks share theirs, one of which may
        have had a pilot.
        """
        return max(e.map_calls for e in self.estimates) if self.posterior else self.map_calls

    @presentation
    def details(self) -> list[tuple[str, str]]:
        """Further lines of the summary."""
        return []

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """The target, its estimates and the posterior."""
        lines = [(self.title, f"{self.source}: {self.description}")]
        for e in self.estimates:
            lines.append((e.target, e.kind if math.isnan(e.value) else f"{_text(e)}  ({e.method}, {e.kind})"))
        if self.posterior:
            text = _posterior_text(self.posterior, self._confidence)
            lines.append(("posterior", f"ln Z = {text}  (Bayesian, Jeffreys prior)"))
        lines += self.details()
        if calls := self.problems:
            lines.append(("work", counted(calls, "MAP call")))
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Estimates and posterior, for JSON."""
        posterior = self.posterior and _posterior_row(self.posterior, self._confidence)
        return {"estimates": [e.row() for e in self.estimates], "posterior": posterior}

    @property
    def _confidence(self) -> float:
        return float(self.settings["confidence"])


def estimates_columns(source: str, seed: int, estimates: Sequence[Estimate]) -> Columns:
    """One row for each estimate, with the model and the seed."""
    return Columns([{"model": source, "seed": seed, **e.row()} for e in estimates])


@presentation
def _text(e: Estimate) -> str:
    """`Estimate.text`, with no more digits of an answer by quadrature than its error supports."""
    if e.map_calls or e.confidence < 1 or not e.standard_error or not e.value:
        return e.text()
    digits = math.floor(math.log10(abs(e.value))) - math.floor(math.log10(e.standard_error))
    return replace(e, value=float(f"{e.value:.{min(max(digits, 1), 12)}g}")).text()


@presentation
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


@presentation
def _posterior_text(posterior: GammaPosterior, confidence: float) -> str:
    """Mean and deviation with the digits of an estimate of that standard error."""
    from thesis_cli.perturbation.estimate import Estimate

    mean, deviation, calls = posterior.mean_log_z, posterior.deviation_log_z, int(posterior.shape)
    found = Estimate(mean, deviation, *posterior.interval(confidence), "ln Z", "", confidence, calls, "", "")
    return found.text().replace("standard error", "standard deviation")
