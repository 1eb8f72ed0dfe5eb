"""`thesis-cli estimate-z`: estimate the partition function of a model by perturb-and-MAP."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.cores import jobs_or_all
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration, about
from thesis_cli.base.progress import Progress, Tick
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    FormatName,
    bytes_of,
    confidence_option,
    evidence_option,
    format_option,
    jobs_option,
    max_configurations_option,
    memory_option,
    model_argument,
    probabilities_option,
    seed_option,
    seed_or_fresh,
)
from thesis_cli.commands.core.fields import fields_of, given, option, settings_of
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.core.result import presentation
from thesis_cli.commands.shared import full_rank
from thesis_cli.commands.shared.estimates import EstimatesResult, estimates_columns
from thesis_cli.commands.shared.full_rank import PerturbedMaxima, TrickChoice
from thesis_cli.commands.shared.model_source import ModelSource, label, open_model
from thesis_cli.commands.shared.quantity import ExactAnswer, QuantityName, in_unit, log_z_of, quantity_option
from thesis_cli.commands.shared.uai_file import check_uai, uai_option, write_uai

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Floats
    from thesis_cli.models.factor_graph import Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.posterior import GammaPosterior

logger = logging.getLogger("thesis_cli")

MOST_CONFIGURATIONS = 2**26
"""Up to which `auto` perturbs every configuration: 100 samples take half a minute of one core."""

BOUNDS = "bounds"
"""Stands for an upper and a lower bound, to which `auto` turns last."""

BOUNDS_HEED = ("samples", "confidence")
"""Options for full-rank noise that the bounds heed, too."""


@dataclass(frozen=True, kw_only=True)
class EstimateZRequest(Request):
    """Estimate the partition function Z of a model by perturb-and-MAP, or compute it exactly."""

    model: ModelSource = model_argument()
    method: Literal["auto", "exact", "full-rank"] = option(
        "auto", "Method: full-rank perturbs every configuration; --verbose shows what auto chose, and why."
    )
    trick: TrickChoice | None = full_rank.trick_option(methods=("full-rank",))
    alpha: float | None = full_rank.alpha_option(methods=("full-rank",))
    threshold: float | None = full_rank.threshold_option(methods=("full-rank",))
    samples: int | None = full_rank.samples_option(methods=("full-rank",))
    quantity: QuantityName = quantity_option()
    debias: bool = full_rank.debias_option(methods=("full-rank",))
    confidence: float = confidence_option(methods=("full-rank",))
    exact: bool = option(False, "Add the exact answer.")
    evidence: tuple[str, ...] | None = evidence_option()
    format: FormatName | None = format_option()
    probabilities: bool = probabilities_option()
    max_configurations: int = max_configurations_option()
    memory: float = memory_option()
    uai: Path | None = uai_option("PR")
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.method == "exact" and self.quantity == "f":
            raise InputError("--quantity f does not go with --method exact", "it is for full-rank")
        if self.uai is not None and self.quantity == "f":
            raise InputError("--uai does not go with --quantity f", "it holds log10 Z")
        if self.method == "full-rank" and not self.exact and "memory" in given(self):
            raise InputError("--memory does not go with --method full-rank", "it is for exact; add --exact")
        full_rank.check_tricks(self)


@dataclass(frozen=True, kw_only=True, repr=False)
class EstimateZResult(EstimatesResult):
    """What was found about Z.

    Attributes
    ----------
    configurations : number of configurations of the model.
    """

    configurations: int

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Estimates, posterior and the number of configurations."""
        return {"configurations": self.configurations, **super().facts()}


def run(request: EstimateZRequest, progress: Progress) -> EstimateZResult:
    """Choose a method and carry it out."""
    from thesis_cli.models.uai_results import partition_function

    check_uai(request.uai, request)
    seed, source = seed_or_fresh(request.seed), label(request.model)
    model = open_model(request.model, request.format, request.evidence, request.probabilities)
    with about(source):
        method = _method(request, model)
        estimates: list[Estimate] = []
        posterior: GammaPosterior | None = None
        map_calls = 0
        if request.exact or method == "exact":
            try:
                estimates.append(_exact(request, model, progress))
            except ModelTooLarge as error:
                if request.exact or request.method == "exact":
                    raise
                method = _instead_of_exact(request, error)
        if method == "full-rank" and request.samples != 0:
            maxima = ModelMaxima(model, seed, jobs_or_all(request.jobs), request.max_configurations)
            with progress(model.size * full_rank.samples_of(request), "clocks") as tick:
                found, posterior = full_rank.full_rank_estimates(request, maxima, tick)
            estimates += found
        elif method == BOUNDS:
            bounds, map_calls = _bounds(request, model, seed, progress)
            estimates += bounds
    if request.uai is not None:
        write_uai(request.uai, partition_function(log_z_of(estimates[0])))
    return EstimateZResult(
        columns=estimates_columns(source, seed, estimates),
        request=request,
        settings=settings_of(request, seed=seed, method=method, samples=full_rank.samples_of(request)),
        estimates=tuple(estimates),
        posterior=posterior,
        source=source,
        description=model.describe(),
        configurations=model.size,
        map_calls=map_calls,
    )


class ModelMaxima(PerturbedMaxima):
    """Perturbed maxima of a model whose configurations are enumerated."""

    def __init__(self, model: Model, seed: int, jobs: int, max_configurations: int) -> None:
        super().__init__(seed)
        self._model, self._jobs, self._most = model, jobs, max_configurations
        self._highest = math.nan

    def draw(self, count: int, seed: np.random.SeedSequence, tick: Tick | None) -> Floats:
        from thesis_cli.perturbation.full_rank import perturbed_maxima

        found = perturbed_maxima(
            self._model, count, seed, jobs=self._jobs, max_configurations=self._most, progress=tick
        )
        self._highest = found.highest
        return found.values

    def log_scale(self) -> float:
        """max phi <= ln Z, which every draw finds."""
        return self._highest


def _method(request: EstimateZRequest, model: Model) -> str:
    """The method of the request, or the one that `auto` chooses.

    That is full-rank for small models and vectors, and exact for larger models. If an option is
    given that the exact answer ignores, a larger model gets full-rank noise, too, or bounds if it
    has more than `max_configurations` and the bounds heed the option.
    """
    from thesis_cli.models.factor_graph import FactorGraph

    if request.method != "auto":
        return request.method
    if request.samples == 0:
        return "exact"
    if not isinstance(model, FactorGraph) or model.size <= min(MOST_CONFIGURATIONS, request.max_configurations):
        logger.debug("full-rank noise on %s configurations, which are few", f"{model.size:,}")
        return "full-rank"
    fields = fields_of(type(request))
    of_samples = {name for name in given(request) if fields[name].about.methods}
    if of_samples and model.size > request.max_configurations and not _unbounded(request):
        logger.info("%s configurations are too many for full-rank noise; bounds instead", f"{model.size:,}")
        return BOUNDS
    if of_samples or request.quantity == "f":
        return "full-rank"
    logger.info("%s configurations are many for full-rank noise; exact answer instead", f"{model.size:,}")
    return "exact"


def _unbounded(request: EstimateZRequest) -> str:
    """The option that bounds would ignore; empty if there is none."""
    fields = fields_of(type(request))
    for name in given(request):
        if fields[name].about.methods and name not in BOUNDS_HEED:
            return fields[name].shell_name
    return f"--quantity {request.quantity}" if request.quantity in ("Z", "f") else "--uai" * bool(request.uai)


def _instead_of_exact(request: EstimateZRequest, error: ModelTooLarge) -> str:
    """The method that `auto` chooses if the exact answer cannot be had.

    Raises
    ------
    ModelTooLarge : an option does not go with bounds.
    """
    if option := _unbounded(request):
        raise ModelTooLarge(f"{error.problem}, and {option} does not go with bounds", error.remedy) from error
    logger.info("no exact ln Z: %s; bounds instead, see thesis-cli bound", error.problem)
    return BOUNDS


def _bounds(request: EstimateZRequest, model: Model, seed: int, progress: Progress) -> tuple[list[Estimate], int]:
    """An upper and a lower bound on ln Z, and the number of MAP calls that they took."""
    from thesis_cli.commands.shared.low_rank import BoundOptions, bounds

    options = BoundOptions(
        samples=full_rank.samples_of(request),
        seed=seed,
        jobs=jobs_or_all(request.jobs),
        memory=bytes_of(request.memory),
        confidence=request.confidence,
    )
    upper, lower = (bounds(model, name, options, progress) for name in ("unary", "average"))
    found = [in_unit(e, request.quantity) for e in (*upper.estimates, *lower.estimates)]
    return found, upper.map_calls + lower.map_calls


def _exact(request: EstimateZRequest, model: Model, progress: Progress) -> Estimate:
    from thesis_cli.inference.exact import exact_log_partition_function

    with progress(model.size, "configurations") as tick:
        found = ExactAnswer(
            *exact_log_partition_function(
                model,
                memory=bytes_of(request.memory),
                max_configurations=request.max_configurations,
                progress=tick,
            )
        )
    if found.log_z == -math.inf:
        raise NoConfiguration()
    return found.estimate(request.quantity)


COMMAND = Command(
    EstimateZRequest,
    run,
    examples=(
        "estimate-z data/models/asia.uai --evidence data/models/asia-xray.evid",
        "estimate-z data/models/ising-4x4.uai --trick all --samples 1000 --exact",
        "estimate-z data/models/sat-16-60.uai --trick exponential --quantity Z",
        "estimate-z data/models/asia.bif --evidence xray=yes --method exact --quantity Z",
    ),
)
