"""`thesis-cli dp-audit`: check by repeated releases that the noise of dp-release keeps its promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.fields import option, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result, presentation

if TYPE_CHECKING:
    from thesis_cli.privacy.audit_runs import AuditReport

VERDICTS = "too few runs to tell", "holds", "BROKEN"
"""Verdicts on one path; the verdict on both is the later one in this list."""
DELTA = 1e-6
"""Delta of the claim for Gaussian noise."""


@dataclass(frozen=True, kw_only=True)
class AuditRequest(Request):
    """Release two neighbouring tables many times, and prove a lower bound on what a release
    reveals.

    The tables are invented, and the noise is that of dp-release, so it has no seed. The exit status
    is 1 if a bound contradicts the claim.
    """

    epsilon: float = option(1.0, "Epsilon of the claim.", above=0)
    delta: float | None = option(
        None,
        "Delta of the claim; a large one, such as 0.1, needs fewer runs.",
        least=0,
        below=1,
        default_text="1e-6; 0 with --noise laplace",
    )
    noise: Literal["gaussian", "laplace"] = option("gaussian", "Noise of OpenDP to audit.")
    runs: int = option(200_000, "Releases of a single number, half of them for each of two numbers.", least=40)
    whole_runs: int = option(
        10_000, "Releases of a table's mean features, half of them for each of two tables.", least=40
    )
    rows: int = option(100, "Rows of each of these tables.", least=1)
    features: int = option(8, "Features of each row, an even number.", least=2)
    confidence: float = option(
        0.999,
        "Confidence level of each lower bound: how surely it contradicts no true claim.",
        above=0,
        below=1,
    )

    def check(self) -> None:
        if self.features % 2:
            raise InputError(f"--features is {self.features}", "it must be even")
        if self.noise == "laplace" and self.delta:
            raise InputError("--delta does not go with --noise laplace", "Laplace noise promises delta 0")


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult(Result):
    """Claims and lower bounds.

    Attributes
    ----------
    paths : the audit of a single number, and that of a table's mean features.
    """

    paths: Sequence[AuditReport]

    @property
    def verdict(self) -> str:
        """The verdict on both paths."""
        return max((path.verdict for path in self.paths), key=VERDICTS.index)

    @property
    def status(self) -> int:
        """1 if a bound contradicts the claim."""
        return int(any(path.contradictions for path in self.paths))

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """The claim, and for each path what its releases prove."""
        calibration = self.paths[0].calibration
        claim = f"epsilon {self.paths[0].budget.epsilon:g} at delta {calibration.delta:g}"
        lines = [("claim", f"{claim}  ({calibration.mechanism})")]
        for path in self.paths:
            proven = f"epsilon >= {path.clopper_pearson.epsilon:.4f}"
            if path.mu is not None:
                proven = f"mu >= {path.gdp.mu:.4f} of {path.mu:.4f} claimed, {proven}"
            lines.append((path.path, f"{proven}, {path.repeats} repeats in {path.runs} runs: {path.verdict}"))
            lines += [("", contradiction) for contradiction in path.contradictions]
        return [*lines, ("bounds", f"each at confidence {self.settings['confidence']:g}")]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The verdict, and all that was measured."""
        return {"verdict": self.verdict, "audits": [path.summary() for path in self.paths]}


def run(request: AuditRequest, progress: Progress) -> AuditResult:
    """Audit the noise on a single number and on a table's mean features."""
    from thesis_cli.privacy import mechanism
    from thesis_cli.privacy.audit_runs import audit_scalar, audit_whole

    delta = request.delta
    if delta is None:
        delta = 0.0 if request.noise == "laplace" else DELTA
    budget = mechanism.Budget(request.epsilon, delta)
    noise = mechanism.OpenDPGaussian if request.noise == "gaussian" else mechanism.OpenDPLaplace
    with progress(request.runs + request.whole_runs, "releases") as tick:
        paths = [
            audit_scalar(noise, budget, request.runs, confidence=request.confidence, tick=tick),
            audit_whole(
                noise,
                budget,
                request.whole_runs,
                rows=request.rows,
                features=request.features,
                confidence=request.confidence,
                tick=tick,
            ),
        ]
    return AuditResult(
        columns=Columns([_flat(path.summary()) for path in paths]),
        request=request,
        settings=settings_of(request, delta=delta),
        paths=paths,
    )


def _flat(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table: bounds by name."""
    flat: dict[str, Any] = {}
    for key, value in summary.items():
        if isinstance(value, dict):
            flat |= {f"{key}_{name}": entry for name, entry in value.items() if name not in ("method", "delta")}
        else:
            flat[key] = "; ".join(value) if isinstance(value, list) else value
    return flat


COMMAND = Command(
    AuditRequest,
    run,
    examples=(
        "dp-audit --delta 0.1 --runs 20000 --whole-runs 2000",
        "dp-audit --epsilon 1 --delta 0.1",
        "dp-audit --epsilon 2 --noise laplace --whole-runs 1000 --json",
    ),
)
