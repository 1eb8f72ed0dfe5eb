"""`thesis-cli estimate-z`: estimate the partition function of a model by perturb-and-MAP."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, NoConfiguration, about
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    FormatName,
    ModelSource,
    bytes_of,
    check_uai,
    confidence_option,
    evidence_option,
    format_option,
    jobs_option,
    label,
    max_configurations_option,
    memory_option,
    model_argument,
    open_model,
    probabilities_option,
    seed_option,
    seed_or_fresh,
    uai_option,
    write_uai,
)
from thesis_cli.commands.core.fields import Request, fields_of, given, option, settings_of
from thesis_cli.commands.core.result import presentation
from thesis_cli.commands.figures.bounds import intervals_figure
from thesis_cli.commands.ln_z.estimates import (
    TIME_LIMIT,
    EstimatesResult,
    LnZAnswer,
    LnZOptions,
    QuantityName,
    alpha_option,
    check_tricks,
    debias_option,
    estimates_columns,
    log_z_of,
    quantity_option,
    samples_of,
    samples_option,
    threshold_option,
    trick_option,
)
from thesis_cli.commands.ln_z.methods import (
    METHODS,
    EstimateMethod,
    answer,
    heeded_by,
    method_help,
    methods_of,
    own_options,
    own_values,
)
from thesis_cli.perturbation.tricks.trick_rows import TrickChoice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.inference.exact import Candidate
    from thesis_cli.models.factor_graph import Model

logger = logging.getLogger("thesis_cli")

MOST_CONFIGURATIONS = 2**26
"""Up to which `--exact` compares with noise on every configuration: half a minute for 100 samples."""

LARGEST = 10**4000
"""Numbers of configurations from which records hold three digits: JSON takes 4300 digits."""

NO_ESTIMATE = "it gives no estimate"

BOUNDS = "bounds"
"""Stands for an upper and a lower bound by the samples that were asked for."""


heeded = partial(heeded_by, "estimate-z")


@dataclass(frozen=True, kw_only=True)
@own_options("estimate-z", after="samples")
class EstimateZRequest(Request):
    """Estimate the partition function Z of a model by perturb-and-MAP, or compute it exactly."""

    usual = ("method", "time_limit", "trick", "samples", "quantity", "exact", "evidence", "seed")

    model: ModelSource = model_argument()
    method: EstimateMethod = option(
        "auto",
        method_help(
            "estimate-z",
            "gives the exact answer or, if there is none within --time-limit, estimates and bounds.",
        ),
    )
    time_limit: float | None = option(
        None,
        "Seconds that the answer may take; exact has no limit by default.",
        above=0,
        methods=("auto", *heeded("time_limit")),
        default_text="60 for auto, coupling and wish",
    )
    trick: TrickChoice | None = trick_option(methods=heeded("trick"))
    alpha: float | None = alpha_option(methods=heeded("alpha"))
    threshold: float | None = threshold_option(methods=heeded("threshold"))
    samples: int | None = samples_option(methods=heeded("samples"))
    quantity: QuantityName = quantity_option()
    debias: bool = debias_option(methods=heeded("debias"))
    confidence: float = confidence_option(methods=("auto", *heeded("confidence")))
    exact: bool = option(False, "Add the exact answer.")
    plan: bool = option(
        False,
        "Print what each exact algorithm would take, and run none.",
        methods=("auto", "exact"),
        not_swept=NO_ESTIMATE,
    )
    evidence: tuple[str, ...] | None = evidence_option()
    format: FormatName | None = format_option()
    probabilities: bool = probabilities_option()
    max_configurations: int = max_configurations_option()
    memory: float = memory_option("exact solvers, or the copies,")
    uai: Path | None = uai_option("PR")
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.method not in ("auto", "full-rank") and self.quantity == "f":
            raise InputError(f"--quantity f does not go with --method {self.method}", "it is for full-rank")
        if self.uai is not None and self.method in METHODS and "bound" in METHODS[self.method].guarantee:
            raise InputError(f"--uai does not go with --method {self.method}", "it holds an estimate, not a bound")
        if self.uai is not None and self.quantity == "f":
            raise InputError("--uai does not go with --quantity f", "it holds log10 Z")
        if self.method == "full-rank" and not self.exact and "memory" in given(self):
            raise InputError("--memory does not go with --method full-rank", "it is for exact; add --exact")
        if self.plan:
            for name in [*_sampled(self), "--exact" * self.exact, "--uai" * (self.uai is not None)]:
                if name:
                    raise InputError(f"--plan does not go with {name}", "it runs nothing")
        if self.time_limit is not None and self.method == "auto" and (sampled := _sampled(self)):
            raise InputError(f"--time-limit does not go with {sampled[0]}", "leave one of them out")
        check_tricks(self)


@dataclass(frozen=True, kw_only=True, repr=False)
class EstimateZResult(EstimatesResult):
    """Estimates of Z, and their meaning.

    Attributes
    ----------
    configurations : number of configurations of the model.
    copies : number of copies of the variables, for `expanded`.
    meaning : a sentence on what the estimates prove, where there are several.
    plan : what each exact algorithm would take, if that was asked for; then there are no estimates.
    """

    configurations: int
    copies: str = ""
    meaning: str = ""
    plan: tuple[Candidate, ...] = ()

    @presentation
    def details(self) -> list[tuple[str, str]]:
        """The plan, the copies and the meaning."""
        plan = [(row.algorithm, _plan_text(row)) for row in self.plan]
        return [*plan, *(line for line in (("copies", self.copies), ("meaning", self.meaning)) if line[1])]

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Estimates, posterior, their meaning, the copies and the number of configurations."""
        size = self.configurations
        shown = size if size < LARGEST else f"{Decimal(size):.2e}"
        plan = {"algorithms": self.columns.records()} if self.plan else {}
        return {"configurations": shown, "copies": self.copies, "meaning": self.meaning, **super().facts(), **plan}

    @presentation
    def draw(self) -> Figure:
        """Each estimate with its interval, beside the exact answer if there is one."""
        return intervals_figure(self.estimates)


def run(request: EstimateZRequest, progress: Progress) -> EstimateZResult:
    """Choose a method and carry it out."""
    from thesis_cli.models.uai import partition_function

    check_uai(request.uai, request)
    seed, source = seed_or_fresh(request.seed), label(request.model)
    model = open_model(request.model, request.format, request.evidence, request.probabilities)
    if request.plan:
        with about(source):
            return _plan(request, model, seed)
    with about(source):
        method = _method(request, model)
        options = _options(request, seed)
        found = LnZAnswer()
        if request.exact or method == "exact":
            found = answer("exact", model, options, progress)
        elif method == "auto":
            found = _portfolio(request, model, options, progress)
        if method == BOUNDS:
            found = _bounds(model, options, progress).after(found)
        elif method not in ("auto", "exact") and request.samples != 0:
            settings = replace(options, tricks=request)
            found = answer(method, model, settings, progress, own_values(request, model)).after(found)
        found = found.in_unit(request.quantity)
    if request.uai is not None:
        write_uai(request.uai, partition_function(log_z_of(found.estimates[0])))
    return EstimateZResult(
        columns=estimates_columns(source, seed, found.estimates),
        request=request,
        settings=settings_of(request, seed=seed, method=method, samples=samples_of(request)),
        estimates=found.estimates,
        posterior=found.posterior,
        source=source,
        description=model.describe(),
        configurations=model.size,
        copies=found.copies,
        map_calls=found.map_calls,
        meaning=found.meaning,
    )


@presentation
def _plan_text(row: Candidate) -> str:
    """Predicted time, memory, width and slices of an algorithm."""
    from thesis_cli.base.memory import bytes_text

    parts = ["time not known beforehand" if math.isnan(row.seconds) else f"{row.seconds:.2g} s"]
    if row.memory:
        parts.append("at most " * row.unpredicted + bytes_text(row.memory))
    parts += [f"width {row.width}"] * (row.width > 0) + [f"{row.slices:,} slices"] * (row.slices > 1)
    parts += ["reduced model"] * row.reduced + ["too large"] * bool(row.refusal)
    return ", ".join(parts)


def _plan(request: EstimateZRequest, model: Model, seed: int) -> EstimateZResult:
    """Predict the cost of each exact algorithm, without running any."""
    from thesis_cli.inference import exact
    from thesis_cli.models.factor_graph import FactorGraph

    limits = bytes_of(request.memory), request.max_configurations
    seconds = request.time_limit or (math.inf if request.method == "exact" else TIME_LIMIT)
    if isinstance(model, FactorGraph):
        plan = exact.exact_plan(model, *limits, seconds, jobs_or_all(request.jobs), whole=True)
        if not plan.candidates:
            raise NoConfiguration()
        found, takes = plan.candidates, plan.takes
    else:
        found = (exact.enumerated(model, request.max_configurations),)
        takes = found if found[0].run else ()
    return EstimateZResult(
        columns=Columns(
            [
                {
                    "model": label(request.model),
                    "algorithm": row.algorithm,
                    "reduced": row.reduced,
                    "seconds": row.seconds,
                    "gib": row.memory / 2**30,
                    "width": row.width,
                    "slices": row.slices,
                    "fits": row.refusal is None,
                    "taken": row in takes,
                }
                for row in found
            ]
        ),
        request=request,
        settings=settings_of(request, seed=seed),
        estimates=(),
        source=label(request.model),
        description=model.describe(),
        configurations=model.size,
        plan=found,
        meaning=_taken(takes),
    )


@presentation
def _taken(takes: Sequence[Candidate]) -> str:
    """The algorithms that the exact answer comes from."""
    if not takes:
        return "none fits into --memory"
    names = [row.algorithm + " of the reduced model" * (row.reduced and not row.unpredicted) for row in takes]
    if len(names) > 1 and takes[0].unpredicted:
        names[0] += " for a second"
    return "exact takes " + ", then ".join(names)


def _method(request: EstimateZRequest, model: Model) -> str:
    """The method of the request, or what `auto` does.

    Without options that need samples, that is the best within the time limit. With them, small
    models and vectors get full-rank noise, and so do larger ones; those with more than
    `max_configurations` get bounds if these heed the options.
    """
    from thesis_cli.models.factor_graph import FactorGraph

    if request.method != "auto":
        return request.method
    if request.samples == 0:
        return "exact"
    sampled = _sampled(request)
    small = not isinstance(model, FactorGraph) or model.size <= min(MOST_CONFIGURATIONS, request.max_configurations)
    if request.exact and not sampled:
        return "full-rank" if small else "exact"
    if not sampled:
        return "auto"
    if model.size > request.max_configurations and isinstance(model, FactorGraph) and not _unbounded(request):
        logger.info("%s configurations are too many for full-rank noise; bounds instead", f"{model.size:,}")
        return BOUNDS
    return "full-rank"


def _sampled(request: EstimateZRequest) -> list[str]:
    """The options of the request that need full-rank noise."""
    found = [fields_of(type(request))[name] for name in given(request)]
    names = [f.shell_name for f in found if "full-rank" in f.about.methods and "auto" not in f.about.methods]
    return names + ["--quantity f"] * (request.quantity == "f")


def _unbounded(request: EstimateZRequest) -> bool:
    """Whether an option of the request is one that bounds would ignore."""
    heeded = {"--samples", "--confidence"}
    return not set(_sampled(request)) <= heeded or request.quantity == "Z" or request.uai is not None


def _options(request: EstimateZRequest, seed: int) -> LnZOptions:
    return LnZOptions(
        samples=samples_of(request),
        seed=seed,
        jobs=jobs_or_all(request.jobs),
        memory=bytes_of(request.memory),
        confidence=request.confidence,
        quantity=request.quantity,
        max_configurations=request.max_configurations if "max_configurations" in given(request) else None,
        seconds=request.time_limit,
    )


def _bounds(model: Model, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """An upper and a lower bound on ln Z by perturb-and-MAP."""
    sampled = [name for name in methods_of("bound") if "samples" in METHODS[name].heeds]
    sides = [
        next(name for name in sampled if METHODS[name].guarantee == side) for side in ("upper bound", "lower bound")
    ]
    upper, lower = (answer(name, model, options, progress) for name in sides)
    return LnZAnswer(upper.estimates + lower.estimates, upper.map_calls + lower.map_calls)


def _portfolio(request: EstimateZRequest, model: Model, options: LnZOptions, progress: Progress) -> LnZAnswer:
    """The best within the time limit; a vector is summed."""
    from thesis_cli.commands.ln_z.portfolio import portfolio
    from thesis_cli.models.factor_graph import FactorGraph

    if not isinstance(model, FactorGraph):
        return answer("exact", model, options, progress)
    seconds = TIME_LIMIT if options.seconds is None else options.seconds
    return portfolio(model, options, seconds, request.max_configurations, progress)


COMMAND = Command(
    EstimateZRequest,
    run,
    examples=(
        "estimate-z data/models/asia.uai --evidence data/models/asia-xray.evid",
        "estimate-z data/models/ising-4x4.uai --trick all --samples 1000 --exact",
        "estimate-z data/models/sat-16-60.uai --trick exponential --quantity Z",
        "estimate-z data/models/asia.bif --evidence xray=yes --method exact --quantity Z",
        "estimate-z data/models/ising-4x4.uai --method expanded --copies 10000 --exact",
        "estimate-z data/models/ising-4x4.uai --method wish --samples 100 --exact",
        "estimate-z data/models/ising-4x4.uai --method frank-wolfe --map-calls 100 --exact",
        "estimate-z data/models/asia.uai --method ais --temperatures 200 --reverse --exact",
    ),
)
