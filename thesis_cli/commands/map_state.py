"""`thesis-cli map`: find the most probable configuration of a model, and certify it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about
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
from thesis_cli.commands.core.fields import given, option, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.shared.model_source import ModelSource, label, open_model
from thesis_cli.commands.shared.uai_file import check_uai, uai_option, write_uai
from thesis_cli.commands.shared.variables import naming_columns, texts

if TYPE_CHECKING:
    from thesis_cli.inference.best_configuration import MapResult

SHOWN = 64
"""Variables whose states the summary lists; the table has all."""

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True, kw_only=True)
class MapRequest(Request):
    """Find the most probable configuration (MAP) of a model, and certify it."""

    model: ModelSource = model_argument()
    evidence: tuple[str, ...] | None = evidence_option()
    format: FormatName | None = format_option()
    probabilities: bool = probabilities_option()
    solver: SolverName = solver_option()
    max_configurations: int = max_configurations_option()
    memory: float = memory_option()
    time_limit: float = option(60.0, "Seconds that the search may take; the best found by then is given.", above=0)
    uai: Path | None = uai_option("MPE")

    def check(self) -> None:
        """Refuse limits that a named solver does not heed."""
        heeded = {"auto": ["max_configurations", "time_limit"], "toulbar2": ["time_limit"]}.get(self.solver, [])
        for field in ("max_configurations", "time_limit"):
            if field in given(self) and field not in heeded:
                option_name = "--" + field.replace("_", "-")
                raise InputError(f"{option_name} does not go with --solver {self.solver}", "leave one of them out")


@dataclass(frozen=True, kw_only=True, repr=False)
class MapStateResult(Result):
    """The configuration that was found.

    Attributes
    ----------
    table : a row for each variable: its number, its name, its state and the state's name, if there
        are names.
    found : states, log-potential and certificate.
    description : size of the model.
    """

    found: MapResult
    description: str

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Model, value with its certificate, and states."""
        found, size = self.found, self.found.states.size
        shown = " ".join(texts(self.columns, SHOWN)) + f" ... ({size} in all)" * (size > SHOWN)
        return [
            ("model", f"{self.settings['model']}: {self.description}"),
            ("max phi", f"{found.value + 0.0:.12g}  ({found.method}, {_certificate(found)})"),
            ("states", shown),
        ]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The configuration and its certificate."""
        named = {}
        columns = self.columns
        if "name" in columns:
            labels = columns["label"] if "label" in columns else columns["state"].tolist()
            named = {"assignment": dict(zip(columns["name"], labels, strict=True))}
        return {**vars(self.found), "states": self.found.states.tolist(), **named}


def run(request: MapRequest, progress: Progress) -> MapStateResult:
    """Solve the MAP problem."""
    import numpy as np

    from thesis_cli.inference.best_configuration import best_configuration
    from thesis_cli.models.uai_results import explanation

    check_uai(request.uai, request)
    model = open_model(request.model, request.format, request.evidence, request.probabilities)
    with about(label(request.model)), progress(model.size, "configurations") as tick:
        found = best_configuration(
            model,
            request.solver,
            memory=bytes_of(request.memory),
            max_configurations=request.max_configurations,
            time_limit=request.time_limit,
            progress=tick,
        )
    logger.debug("MAP by %s%s", found.method, f" ({found.why})" if found.why else "")
    write_uai(request.uai, explanation(found.states))
    columns = Columns(naming_columns(model, np.arange(found.states.size), found.states))
    return MapStateResult(
        columns=columns, request=request, settings=settings_of(request), found=found, description=model.describe()
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
