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
    check_uai,
    evidence_option,
    format_option,
    max_configurations_option,
    memory_option,
    model_argument,
    probabilities_option,
    solver_option,
    uai_option,
    write_uai,
)
from thesis_cli.commands.core.fields import given, option, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.inputs.models import ModelSource, label, open_model
from thesis_cli.commands.outputs.variables import naming_columns, texts

if TYPE_CHECKING:
    from thesis_cli.base.progress import Tick
    from thesis_cli.inference.best_configuration import MapResult
    from thesis_cli.inference.ranking import Ranking
    from thesis_cli.models.factor_graph import Model

SHOWN = 64
"""Variables whose states the summary lists; the table has all."""

CHANGES = 12
"""States of each further configuration that the summary lists, of those that the best one has not.
"""

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
    best: int = option(1, "Number of configurations to find: the most probable ones, in order.", least=1)
    uai: Path | None = uai_option("MPE")

    def check(self) -> None:
        """Refuse limits that a named solver does not heed."""
        timed = self.solver == "toulbar2" or self.best > 1
        heeded = ["max_configurations", "time_limit"] if self.solver == "auto" else ["time_limit"] * timed
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
        are names; for each configuration in turn with its `rank` and `value`, if several were asked
        for.
    found : states, log-potential and certificate of the best configuration.
    ranking : the best configurations in order, if several were asked for.
    description : size of the model.
    """

    found: MapResult
    ranking: Ranking | None
    description: str

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Model, value with its certificate, and states."""
        found, size = self.found, self.found.states.size
        shown = " ".join(texts(self.columns, min(SHOWN, size))) + f" ... ({size} in all)" * (size > SHOWN)
        return [
            ("model", f"{self.settings['model']}: {self.description}"),
            ("max phi", f"{found.value + 0.0:.12g}  ({found.method}, {_certificate(found)})"),
            ("states", shown),
            *(self._others(self.ranking) if self.ranking else []),
        ]

    def _others(self, ranking: Ranking) -> list[tuple[str, str]]:
        """The value of each configuration after the best, and where it differs from the best."""
        size, lines = ranking.states.shape[1], []
        every = texts(self.columns, ranking.states.size)
        for rank, (value, states) in enumerate(zip(ranking.values, ranking.states, strict=True), 1):
            at = (states != ranking.states[0]).nonzero()[0].tolist()
            own = every[(rank - 1) * size :]
            plain = "name" in self.columns or size == 1
            changes = [own[i] if plain else f"{i}={own[i]}" for i in at[:CHANGES]]
            text = " ".join(changes) + f" ... ({len(at)} changes)" * (len(at) > CHANGES)
            lines.append((f"rank {rank}", f"{value + 0.0:.12g}  {text or 'the states above'}"))
        asked = self.settings["best"]
        if ranking.complete:
            lines.append(("ranks", f"{len(lines)} of {asked}: no other configuration is possible"))
        elif ranking.late:
            lines.append(("ranks", f"{len(lines)} of {asked} within --time-limit {self.settings['time_limit']:g}"))
        return lines

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """The configuration and its certificate."""
        columns, size = self.columns, self.found.states.size
        labels: list[Any] = []
        if "name" in columns:
            labels = list(columns["label"] if "label" in columns else columns["state"].tolist())

        def assignment(rank: int) -> dict[str, Any]:
            """The states of a configuration by name, if the model has names."""
            own = labels[rank * size : (rank + 1) * size]
            return {"assignment": dict(zip(columns["name"][:size], own, strict=True))} if own else {}

        ranked = {}
        if self.ranking:
            found = enumerate(zip(self.ranking.values.tolist(), self.ranking.states.tolist(), strict=True))
            ranked = {"ranking": [{"value": value, "states": states, **assignment(k)} for k, (value, states) in found]}
        return {**vars(self.found), "states": self.found.states.tolist(), **assignment(0), **ranked}


def run(request: MapRequest, progress: Progress) -> MapStateResult:
    """Solve the MAP problem, or rank the best configurations."""
    import numpy as np

    from thesis_cli.models.uai_results import explanation

    check_uai(request.uai, request)
    model = open_model(request.model, request.format, request.evidence, request.probabilities)
    with about(label(request.model)), progress(model.size, "configurations") as tick:
        found, ranking = _found(model, request, tick)
    logger.debug("MAP by %s%s", found.method, f" ({found.why})" if found.why else "")
    write_uai(request.uai, explanation(found.states))
    size = found.states.size
    columns: dict[str, Any] = {}
    every, count = found.states, 1
    if ranking:
        every, count = ranking.states.reshape(-1), len(ranking.values)
        columns = {"rank": np.repeat(np.arange(count) + 1, size), "value": np.repeat(ranking.values, size)}
    columns |= naming_columns(model, np.tile(np.arange(size), count), every)
    return MapStateResult(
        columns=Columns(columns),
        request=request,
        settings=settings_of(request),
        found=found,
        ranking=ranking,
        description=model.describe(),
    )


def _found(model: Model, request: MapRequest, tick: Tick) -> tuple[MapResult, Ranking | None]:
    """The best configuration, and the ranking if several were asked for."""
    from thesis_cli.inference.best_configuration import MapResult, best_configuration
    from thesis_cli.inference.ranking import best_configurations

    limits: dict[str, Any] = {
        "memory": bytes_of(request.memory),
        "max_configurations": request.max_configurations,
        "time_limit": request.time_limit,
        "progress": tick,
    }
    if request.best == 1:
        return best_configuration(model, request.solver, **limits), None
    ranking = best_configurations(model, request.best, request.solver, **limits)
    best = float(ranking.values[0])
    return MapResult(best, ranking.states[0], ranking.method, "exact", best), ranking


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
        "map data/models/asia.bif --evidence xray=yes --best 5",
    ),
)
