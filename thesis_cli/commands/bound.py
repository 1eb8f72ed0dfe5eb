"""`thesis-cli bound`: bound or approximate the partition function of a model."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thesis_cli.base.errors import InputError, ModelTooLarge, about
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import (
    FormatName,
    ModelSource,
    SolverName,
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
    seed_option,
    seed_or_fresh,
    solver_option,
    uai_option,
    write_uai,
)
from thesis_cli.commands.core.fields import Request, given, heeding, option, settings_of
from thesis_cli.commands.core.result import presentation
from thesis_cli.commands.figures.bounds import intervals_figure
from thesis_cli.commands.ln_z.bounds import any_alpha_option, check_interval, exact_bound, interval_option
from thesis_cli.commands.ln_z.estimates import (
    EstimatesResult,
    IntervalName,
    LnZOptions,
    estimates_columns,
    in_unit,
)
from thesis_cli.commands.ln_z.methods import (
    METHODS,
    BoundMethod,
    answer,
    check_needed,
    heeded_by,
    lacking,
    method_help,
    methods_of,
    own_options,
    own_values,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.perturbation.estimate import Estimate

logger = logging.getLogger("thesis_cli")

MOST_PROBLEMS = 10_000
"""Max-marginals that `auto` computes; for more, samples give the lower bound."""


heeded = partial(heeded_by, "bound")


@dataclass(frozen=True, kw_only=True)
@own_options("bound", after="samples")
class BoundRequest(Request):
    """Bound or approximate ln Z of a model without summing over all configurations."""

    usual = ("method", "alpha", "samples", "time_limit", "quantity", "exact", "evidence", "seed")

    model: ModelSource = model_argument()
    method: BoundMethod = option("auto", method_help("bound", "takes an upper and a lower bound."))
    alpha: tuple[float, ...] = option(
        (0.0,),
        "Exponent of the bound; 0 is the Gumbel trick. All exponents share the MAP calls.",
        above=-1,
        most=1000,
        methods=heeded("alpha"),
    )
    samples: int = option(100, "Number of perturbations.", least=1, most=10**8, methods=heeded("samples"))
    any_alpha: bool = any_alpha_option(methods=heeded("any_alpha"))
    confidence: float = confidence_option(methods=heeded("confidence"))
    confidence_method: IntervalName = interval_option(methods=heeded("confidence_method"))
    solver: SolverName = solver_option(methods=heeded("solver"))
    time_limit: float | None = option(
        None,
        "Seconds that the method may take; its result then depends on the machine.",
        above=0,
        default_text="a fixed amount of work",
        methods=heeded("time_limit"),
    )
    table_size: int | None = option(
        None,
        "Largest number of entries of a table; the method is exact if no table needs more.",
        least=1,
        default_text="what memory and time allow",
        methods=heeded("table_size"),
    )
    quantity: Literal["lnZ", "log10Z"] = option("lnZ", "Quantity to bound.")
    exact: bool = option(False, "Add the exact answer, if it can be computed.")
    uai: Path | None = uai_option("PR")
    evidence: tuple[str, ...] | None = evidence_option()
    format: FormatName | None = format_option()
    max_configurations: int = max_configurations_option()
    memory: float = memory_option()
    seed: int | None = seed_option()
    jobs: int | None = jobs_option()

    def check(self) -> None:
        """Refuse options that no method takes together."""
        check_interval(self.confidence_method, self.alpha)
        if not self.exact and "max_configurations" in given(self):
            raise InputError("--max-configurations is given without --exact", "add --exact")
        heed = heeded("memory")
        if not self.exact and self.method not in ("auto", *heed) and "memory" in given(self):
            raise InputError(f"--memory does not go with --method {self.method}", f"it is for {', '.join(heed)}")
        if self.method == "auto":
            heeding(self, methods_of("bound"))
        else:
            check_needed(self, self.method)


@dataclass(frozen=True, kw_only=True, repr=False)
class BoundResult(EstimatesResult):
    """Bounds on ln Z or log10 Z: the exact answer first, if there is one; then each method and
    exponent.
    """

    @presentation
    def draw(self) -> Figure:
        """Each bound with its interval, beside the exact answer if there is one."""
        return intervals_figure(self.estimates)


def run(request: BoundRequest, progress: Progress) -> BoundResult:
    """Choose the methods and carry them out."""
    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.models.uai import partition_function

    check_uai(request.uai, request)
    seed, source = seed_or_fresh(request.seed), label(request.model)
    model = open_model(request.model, request.format, request.evidence)
    estimates: list[Estimate] = []
    calls, methods = 0, [str(request.method)]
    with about(source):
        if not isinstance(model, FactorGraph):
            raise InputError("is a vector, which has no variables to bound by", "use estimate-z")
        options, own = _options(request, seed), own_values(request, model)
        if request.exact:
            estimates += exact_bound(model, options.memory, request.max_configurations, progress)
        if request.method == "auto":
            methods, found, calls = _automatic(request, model, options, own, progress)
            estimates += found
        else:
            bounded = answer(request.method, model, options, progress, own)
            estimates += bounded.estimates
            calls = bounded.map_calls
    write_uai(request.uai, partition_function(estimates[0].value))
    estimates = [in_unit(e, request.quantity) for e in estimates]
    return BoundResult(
        columns=estimates_columns(source, seed, estimates),
        request=request,
        settings=settings_of(request, model=source, seed=seed, method=" and ".join(methods)),
        estimates=tuple(estimates),
        source=source,
        description=model.describe(),
        map_calls=calls,
    )


def _options(request: BoundRequest, seed: int) -> LnZOptions:
    return LnZOptions(
        samples=request.samples,
        seed=seed,
        jobs=jobs_or_all(request.jobs),
        solver=request.solver,
        memory=bytes_of(request.memory),
        alphas=tuple(dict.fromkeys(request.alpha)),
        confidence=request.confidence,
        interval=request.confidence_method,
        any_alpha=request.any_alpha,
        table_size=request.table_size,
        deadline=None if request.time_limit is None else time.monotonic() + request.time_limit,
    )


def _automatic(
    request: BoundRequest, model: FactorGraph, options: LnZOptions, own: Mapping[str, Any], progress: Progress
) -> tuple[list[str], list[Estimate], int]:
    """An upper and a lower bound, each by the first method that fits the options and the model."""
    chosen: list[str] = []
    estimates: list[Estimate] = []
    calls = 0
    candidates = _candidates(request, model)
    for side in ("upper bound", "lower bound"):
        names = [name for name in candidates if METHODS[name].guarantee == side]
        for name in names:
            try:
                found = answer(name, model, options, progress, own)
            except ModelTooLarge as error:
                if name == names[-1]:
                    raise
                logger.info("not %s: %s", name, error.problem)
                continue
            chosen.append(name)
            estimates += found.estimates
            calls += found.map_calls
            break
    return chosen, estimates, calls


def _candidates(request: BoundRequest, model: FactorGraph) -> list[str]:
    """Methods that heed the options, without those that lack one or, where another gives the same side, take too many
    MAP calls."""
    heed = heeding(request, methods_of("bound"))
    left_out = {name for name in heed if lacking(request, name)}
    for name in heed:
        row = METHODS[name]
        others = [other for other in heed if other != name and METHODS[other].guarantee == row.guarantee]
        if row.problems and others and (count := row.problems(model)) > MOST_PROBLEMS:
            logger.info("not %s: it takes %s MAP calls", name, f"{count:,}")
            left_out.add(name)
    return [name for name in heed if name not in left_out]


COMMAND = Command(
    BoundRequest,
    run,
    examples=(
        "bound data/models/ising-4x4.uai --exact",
        "bound data/models/ising-4x4.uai --method unary --alpha 0 --alpha -0.1 --samples 1000",
        "bound data/models/ising-4x4.uai --method clamp --clamp 5,10 --exact",
        "bound data/models/asia.bif --evidence xray=yes --method bethe --quantity log10Z",
        "bound data/models/ising-4x4.uai --method mini-bucket --table-size 8 --exact",
    ),
)
