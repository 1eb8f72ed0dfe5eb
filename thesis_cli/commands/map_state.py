"""`thesis-cli map`: find the most probable configuration of a model, and say how good it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thesis_cli.base.errors import about
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    FormatName,
    SolverName,
    bytes_of,
    evidence_option,
    format_option,
    max_configurations_option,
    memory_option,
    model_argument,
    probabilities_option,
    solver_option,
)
from thesis_cli.commands.core.fields import settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.shared.model_source import ModelSource, label, open_model

if TYPE_CHECKING:
    from thesis_cli.inference.exact import MapResult

SHOWN = 64
"""Variables whose states the summary lists; the table has all."""


@dataclass(frozen=True, kw_only=True)
class MapRequest(Request):
    """Find the most probable configuration (MAP) of a model, and say how good it is."""

    model: ModelSource = model_argument()
    evidence: tuple[str, ...] | None = evidence_option()
    format: FormatName | None = format_option()
    probabilities: bool = probabilities_option()
    solver: SolverName = solver_option()
    max_configurations: int = max_configurations_option()
    memory: float = memory_option()


@dataclass(frozen=True, kw_only=True, repr=False)
class MapStateResult(Result):
    """The configuration that was found.

    Attributes
    ----------
    found : its states, value and certificate.
    description : of the model.
    """

    found: MapResult
    description: str

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Model, value with its certificate, and states."""
        found, states = self.found, self.found.states
        shown = " ".join(map(str, states[:SHOWN])) + f" ... ({states.size} in all)" * (states.size > SHOWN)
        return [
            ("model", f"{self.settings['model']}: {self.description}"),
            ("max phi", f"{found.value + 0.0:.12g}  ({found.method}, {_certificate(found)})"),
            ("states", shown),
        ]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The configuration and its certificate."""
        return {**vars(self.found), "states": self.found.states.tolist()}


def run(request: MapRequest, progress: Progress) -> MapStateResult:
    """Solve the MAP problem."""
    import pandas as pd

    from thesis_cli.inference.exact import best_configuration

    model = open_model(request.model, request.format, request.evidence, request.probabilities)
    with about(label(request.model)), progress(model.size, "configurations") as tick:
        found = best_configuration(
            model,
            request.solver,
            memory=bytes_of(request.memory),
            max_configurations=request.max_configurations,
            progress=tick,
        )
    table = pd.DataFrame({"variable": range(found.states.size), "state": found.states})
    return MapStateResult(
        table=table, request=request, settings=settings_of(request), found=found, description=model.describe()
    )


def _certificate(found: MapResult) -> str:
    if found.guarantee == "exact":
        return "exact"
    if found.bound == math.inf:
        return "no bound"
    return f"at most {found.bound - found.value:.3g} below the largest"


COMMAND = Command(
    MapRequest,
    run,
    examples=(
        "map data/models/ising-4x4.uai",
        "map data/models/asia.uai --evidence data/models/asia-xray.evid --json",
        "map data/models/asia.bif --evidence xray=yes",
    ),
)
