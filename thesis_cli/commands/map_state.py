"""`thesis-cli map`: find the most probable configuration of all or of some variables, and certify it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, about
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    FormatName,
    ModelSource,
    SolverName,
    bytes_of,
    check_uai,
    evidence_option,
    format_option,
    label,
    max_configurations_option,
    memory_option,
    model_argument,
    open_model,
    probabilities_option,
    solver_option,
    uai_option,
    write_uai,
)
from thesis_cli.commands.core.fields import Request, option, settings_of
from thesis_cli.commands.core.result import Result, presentation
from thesis_cli.commands.outputs.variables import naming_columns, texts

if TYPE_CHECKING:
    from thesis_cli.base.progress import Tick
    from thesis_cli.inference.best_configuration import MapResult
    from thesis_cli.inference.ranking import Ranking
    from thesis_cli.models.factor_graph import FactorGraph, Model

SHOWN = 64
"""Variables whose states the summary lists; the table has all."""

CHANGES = 12
"""States of each further configuration that the summary lists, of those that the best one has not.
"""

REPORTED = 2.0
"""Seconds between two messages on the bounds of a marginal MAP, at least."""

logger = logging.getLogger("thesis_cli")


@dataclass(frozen=True, kw_only=True)
class MapRequest(Request):
    """Find the most probable configuration (MAP) of a model, or of some variables (marginal MAP), and certify it."""

    usual = ("evidence", "over", "best", "time_limit", "solver")

    model: ModelSource = model_argument()
    evidence: tuple[str, ...] | None = evidence_option()
    format: FormatName | None = format_option()
    probabilities: bool = probabilities_option()
    solver: SolverName = solver_option()
    max_configurations: int = max_configurations_option()
    memory: float = memory_option()
    time_limit: float = option(60.0, "Seconds that the search may take; the best found by then is given.", above=0)
    best: int = option(1, "Number of configurations to find: the most probable ones, in order.", least=1, alias="k")
    over: tuple[str, ...] | None = option(
        None,
        "Variables to maximise over, numbers or names, as in 0,5; the others are summed over (marginal MAP).",
        metavar="VARIABLES",
        default_text="all",
        objects=True,
        empty=True,
    )
    query: str | None = option(
        None, "UAI query file with the variables of --over: a count, then their numbers.", metavar="FILE", names="file"
    )
    uai: Path | None = uai_option("MPE")

    def check(self) -> None:
        """Refuse options that do not go together, and limits that a named solver does not heed."""
        if self.over is not None and self.query is not None:
            raise InputError("--over does not go with --query", "leave one of them out")
        if self.over is not None or self.query is not None:
            self.refuse(("solver", "best"), "--over" if self.query is None else "--query")
        timed = self.solver == "toulbar2" or self.best > 1
        heeded = ["max_configurations", "time_limit"] if self.solver == "auto" else ["time_limit"] * timed
        unheeded = [name for name in ("max_configurations", "time_limit") if name not in heeded]
        self.refuse(unheeded, f"--solver {self.solver}")


@dataclass(frozen=True, kw_only=True, repr=False)
class MapStateResult(Result):
    """The configuration that was found.

    Attributes
    ----------
    table : a row for each variable: its number, its name, its state and the state's name, if there
        are names; for each configuration in turn with its `rank` and `value`, if several were asked
        for.
    found : states, log-potential and certificate of the best configuration; for a query its states, and
        ln of their sum over the other variables or a lower bound on it.
    ranking : the best configurations in order, if several were asked for.
    description : size of the model.
    over : the variables of a query; None for all.
    """

    found: MapResult
    ranking: Ranking | None
    description: str
    over: tuple[int, ...] | None = None

    @presentation
    def lines(self) -> list[tuple[str, str]]:
        """Model, value with its certificate, and states."""
        found, size = self.found, self.found.states.size
        own = texts(self.columns, min(SHOWN, size))
        if self.over is not None and "name" not in self.columns:
            own = [f"{i}={state}" for i, state in zip(self.over, own, strict=False)]
        shown = " ".join(own) + f" ... ({size} in all)" * (size > SHOWN)
        return [
            ("model", f"{self.settings['model']}: {self.description}"),
            (
                "max phi" if self.over is None else "max sum",
                f"{found.value + 0.0:.12g}  ({found.method}, {_certificate(found)})",
            ),
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
        query = {} if self.over is None else {"variables": list(self.over)}
        return {**vars(self.found), **query, "states": self.found.states.tolist(), **assignment(0), **ranked}


def run(request: MapRequest, progress: Progress) -> MapStateResult:
    """Solve the MAP or marginal MAP problem, or rank the best configurations."""
    import numpy as np

    from thesis_cli.models.uai import explanation, marginal_explanation

    check_uai(request.uai, request)
    model = open_model(request.model, request.format, request.evidence, request.probabilities)
    with about(label(request.model)):
        over = _query(model, request)
        if over is not None:
            found, ranking = _marginal(cast("FactorGraph", model), over, request, progress), None
        else:
            with progress(model.size, "configurations") as tick:
                found, ranking = _found(model, request, tick)
    logger.debug("MAP by %s%s", found.method, f" ({found.why})" if found.why else "")
    write_uai(request.uai, explanation(found.states) if over is None else marginal_explanation(over, found.states))
    size = found.states.size
    columns: dict[str, Any] = {}
    every, count = found.states, 1
    if ranking:
        every, count = ranking.states.reshape(-1), len(ranking.values)
        columns = {"rank": np.repeat(np.arange(count) + 1, size), "value": np.repeat(ranking.values, size)}
    variables = np.arange(size) if over is None else np.array(over, np.int64)
    columns |= naming_columns(model, np.tile(variables, count), every)
    return MapStateResult(
        columns=Columns(columns),
        request=request,
        settings=settings_of(request),
        found=found,
        ranking=ranking,
        description=model.describe(),
        over=over,
    )


def _query(model: Model, request: MapRequest) -> tuple[int, ...] | None:
    """The variables to maximise over; None for all."""
    from thesis_cli.commands.ln_z.bounds import variables_of
    from thesis_cli.inference.marginal_map.marginal_map import check_query
    from thesis_cli.models.evidence import read_query
    from thesis_cli.models.factor_graph import FactorGraph

    if request.over is None and request.query is None:
        return None
    if not isinstance(model, FactorGraph):
        raise InputError("a vector has no variables to maximise over", "leave the query out")
    if request.query is not None:
        over = read_query(model, request.query)
    else:
        over = variables_of(model, [one for one in request.over or () if one != ""])
    check_query(model, over)
    return over


def _marginal(graph: FactorGraph, over: tuple[int, ...], request: MapRequest, progress: Progress) -> MapResult:
    """Marginal MAP, with messages on the bounds while they tighten."""
    from thesis_cli.inference.marginal_map.marginal_map import marginal_map

    with progress(math.ceil(request.time_limit), "s") as tick:
        return marginal_map(
            graph,
            over,
            memory=bytes_of(request.memory),
            max_configurations=request.max_configurations,
            time_limit=request.time_limit,
            report=_reporter(tick),
        )


def _reporter(tick: Tick) -> Callable[[float, float], None]:
    """Moves the bar by whole seconds, and tells the bounds every few of them."""
    began = last = time.monotonic()
    shown = 0

    def report(lower: float, upper: float) -> None:
        nonlocal last, shown
        now = time.monotonic()
        tick(int(now - began) - shown)
        shown = int(now - began)
        if now - last >= REPORTED:
            last = now
            logger.info("between %.6g and %.6g, gap %.3g", lower, upper, upper - lower)

    return report


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
        "map data/models/asia.bif --evidence xray=yes --over lung,bronc",
        "map data/models/asia.uai --evidence data/models/asia-xray.evid --query data/models/asia.uai.query",
    ),
)
