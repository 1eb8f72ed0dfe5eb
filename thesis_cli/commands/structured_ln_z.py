"""`thesis-cli structured ln-z`: estimate or bound ln Z of an exponential family over structures."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from thesis_cli.base.errors import InputError, ModelTooLarge, about, counted
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import label, seed_option, seed_or_fresh
from thesis_cli.commands.core.fields import Request, heeding, option, settings_of
from thesis_cli.commands.core.result import presentation
from thesis_cli.commands.inputs.structures import (
    StructuredSource,
    check_linear,
    check_rows,
    noise_option,
    open_structured,
    structured_argument,
)
from thesis_cli.commands.ln_z.estimates import TIME_LIMIT, EstimatesResult, LnZOptions, estimates_columns
from thesis_cli.commands.ln_z.methods import answer
from thesis_cli.structured.names import NoiseName

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.tricks.tricks import GammaPosterior
    from thesis_cli.structured.meta import Sampler
    from thesis_cli.structured.model_file import StructuredModel

logger = logging.getLogger("thesis_cli")

METHODS = ("exact", "perturb", "full-rank", "uniform", "telescoping", "ais")

SECONDS = 10.0
"""Longest that `auto` waits for an exact algorithm of factor graphs."""

VISITS, CHAINS, TEMPERATURES = 4 * 10**8, 40, (50, 1000)
"""Tables that annealing looks at, some seconds of them; its chains; fewest and most temperatures."""


@dataclass(frozen=True, kw_only=True)
class StructuredLnZRequest(Request):
    """Estimate or bound ln Z of an exponential family over combinatorial structures."""

    usual = ("method", "samples", "exact", "seed")

    model: StructuredSource = structured_argument()
    method: Literal["auto", "exact", "telescoping", "uniform", "perturb", "full-rank", "ais"] = option(
        "auto",
        "Method; auto takes exact or, where that does not fit, ais for pairs of labels, else perturb and uniform.",
    )
    error: float = option(
        0.1, "Relative error of Z that shall be guaranteed.", above=0, below=1, methods=("telescoping",)
    )
    schedule: Literal["equal", "adaptive", "theorem"] = option(
        "equal",
        "Schedule: equal steps with the samples that they need, steps by a pilot, or the source's.",
        methods=("telescoping",),
    )
    sampler: Literal["auto", "draw", "meta", "truncated"] = option(
        "auto",
        "Samples: by the space's own algorithm, by coupling from the past, or ends of chains; auto prefers the first.",
        methods=("telescoping",),
    )
    steps: int | None = option(
        None, "Steps of a truncated chain.", least=1, default_text="as --error needs", methods=("telescoping",)
    )
    most_steps: int = option(10**8, "Uniform structures after which chains give up.", least=1, methods=("telescoping",))
    noise: NoiseName | None = noise_option()
    alpha: float = option(0.0, "Exponent of both bounds; 0 takes means.", methods=("perturb",))
    samples: int = option(
        1000,
        "MAP calls of each bound, perturbations, or uniform structures.",
        least=1,
        most=10**8,
        methods=("perturb", "full-rank", "uniform"),
    )
    exact: bool = option(False, "Add the exact answer.", methods=METHODS[1:])
    confidence: float | None = option(
        None,
        "Confidence level of the interval, or probability of the guarantee.",
        above=0,
        below=1,
        default_text="0.95, or 0.75 for telescoping",
    )
    seed: int | None = seed_option()

    def check(self) -> None:
        """Refuse options that no sampler heeds."""
        if self.steps is not None and self.sampler != "truncated":
            raise InputError("--steps goes with --sampler truncated", "leave it out")
        if self.method == "uniform" and self.samples < 2:
            raise InputError("--samples is 1", "an average of uniform structures needs 2 or more")


@dataclass(frozen=True, kw_only=True, repr=False)
class StructuredLnZResult(EstimatesResult):
    """Estimates of ln Z and what they cost.

    Attributes
    ----------
    costs : ratios, samples and uniform structures of a telescoping product.
    meaning : a sentence on what annealing proves.
    """

    costs: Mapping[str, int] = field(default_factory=dict)
    meaning: str = ""

    title: ClassVar[str] = "model"

    @presentation
    def facts(self) -> Mapping[str, Any]:
        """Estimates and costs, for JSON."""
        return {**super().facts(), **self.costs, "meaning": self.meaning}

    @presentation
    def details(self) -> list[tuple[str, str]]:
        """Cost of a telescoping product, and what annealing proves."""
        costs = self.costs
        if not costs:
            return [("meaning", self.meaning)] if self.meaning else []
        steps = f", {costs['uniform_structures']:,} uniform structures" * (costs["uniform_structures"] > 0)
        return [("product", f"{counted(costs['ratios'], 'ratio')}, {counted(costs['samples'], 'sample')}{steps}")]


@dataclass(frozen=True)
class _FoundEstimates:
    """Estimates, and what else a result has."""

    estimates: list[Estimate]
    calls: int = 0
    posterior: GammaPosterior | None = None
    costs: Mapping[str, int] = field(default_factory=dict)
    meaning: str = ""


def run(request: StructuredLnZRequest, progress: Progress) -> StructuredLnZResult:
    """Estimate by the method asked for."""
    seed, source = seed_or_fresh(request.seed), label(request.model)
    with about(source):
        model = open_structured(request.model)
        estimates, methods = _planned(request, model)
        for method in {"perturb", "telescoping"}.intersection(methods):
            check_linear(f"--method {method}", model)
        confidence = request.confidence or (0.75 if methods == ["telescoping"] else 0.95)
        job = _Job(request, model, confidence, seed, progress)
        found = [_METHODS[method](job) for method in methods]
    estimates += [e for one in found for e in one.estimates]
    return StructuredLnZResult(
        columns=estimates_columns(source, seed, estimates),
        request=request,
        settings=settings_of(request, seed=seed, confidence=confidence),
        estimates=tuple(estimates),
        posterior=next((one.posterior for one in found if one.posterior), None),
        source=source,
        description=model.describe(),
        map_calls=sum(one.calls for one in found),
        costs={name: cost for one in found for name, cost in one.costs.items()},
        meaning="".join(one.meaning for one in found),
    )


def _planned(request: StructuredLnZRequest, model: StructuredModel) -> tuple[list[Estimate], list[str]]:
    """The exact answer, if there is to be one, and the methods to carry out."""
    methods: list[str] = heeding(request, METHODS) if request.method == "auto" else [request.method]
    alone, asked = "exact" in methods, request.method != "auto" or request.exact
    if not alone and not request.exact:
        return [], methods[:1]
    try:
        return [_exact(model, TIME_LIMIT if asked else SECONDS)], [] if alone else methods[:1]
    except ModelTooLarge as error:
        if asked:
            raise
        logger.debug("no exact answer: %s", error)
        return [], ["perturb", "uniform"] if _graph(model) is None else ["ais"]


@dataclass(frozen=True)
class _Job:
    """Inputs of a method."""

    request: StructuredLnZRequest
    model: StructuredModel
    confidence: float
    seed: int
    progress: Progress

    def seeds(self, count: int) -> list[np.random.SeedSequence]:
        import numpy as np

        return np.random.SeedSequence(self.seed).spawn(count)


def _exact(model: StructuredModel, seconds: float) -> Estimate:
    """ln Z by the algorithm of the space, or by one of factor graphs."""
    from thesis_cli.base.rounding import log_of_sum
    from thesis_cli.perturbation.estimate import fixed_estimate
    from thesis_cli.structured.space import ENUMERATED

    try:
        log_z = float(model.space.log_partition(model.weights[None])[0])
    except ModelTooLarge:
        graph = _graph(model)
        if graph is None:
            raise
        options = LnZOptions(samples=0, seed=0, jobs=1, seconds=seconds, max_configurations=ENUMERATED)
        return answer("exact", graph, options).estimates[0]
    return fixed_estimate(log_of_sum(log_z), "exact", "the space's algorithm", "Vembu et al. section 1")


def _graph(model: StructuredModel) -> FactorGraph | None:
    """The model as a factor graph, if it is one."""
    from thesis_cli.structured.hypercube import PairHypercube

    return model.space.factor_graph(model.weights) if isinstance(model.space, PairHypercube) else None


def _ais(job: _Job) -> _FoundEstimates:
    """Annealed importance sampling from the labels on their own, and a lower bound with a probability."""
    graph = _graph(job.model)
    if graph is None:
        raise InputError(f"--method ais does not go with {job.model.space.name}", "it takes pairs of labels")
    visits = CHAINS * sum(len(factor.scope) for factor in graph.factors)
    own = {"chains": CHAINS, "temperatures": min(max(VISITS // max(1, visits), TEMPERATURES[0]), TEMPERATURES[1])}
    options = LnZOptions(samples=0, seed=job.seed, jobs=1, confidence=job.confidence)
    found = answer("ais", graph, options, job.progress, own)
    return _FoundEstimates(list(found.estimates), meaning=found.meaning)


def _perturb(job: _Job) -> _FoundEstimates:
    """The upper and the lower bound, each with MAP calls of its own."""
    from thesis_cli.structured.catalogue import noise_on
    from thesis_cli.structured.perturb import Scale, structured_bound, structured_maxima

    check_rows("--samples", job.request.samples, job.model)
    noise = noise_on(job.model.space, job.model.weights, job.request.noise)
    samples, found = job.request.samples, []
    scales: tuple[Scale, Scale] = ("sum", "average")
    with job.progress(2 * samples, "MAP calls") as tick:
        for scale, seed in zip(scales, job.seeds(2), strict=True):
            maxima = structured_maxima(noise, samples, seed, scale=scale, progress=tick)
            found.append(structured_bound(maxima, job.confidence, job.request.alpha))
    return _FoundEstimates(found, calls=2 * samples)


def _full_rank(job: _Job) -> _FoundEstimates:
    """The Gumbel trick with noise on every structure, and the posterior of ln Z."""
    import numpy as np

    from thesis_cli.perturbation.tricks.trick_rows import make_trick
    from thesis_cli.perturbation.tricks.tricks import GammaPosterior, estimate
    from thesis_cli.structured.perturb import full_rank_maxima

    space, weights, samples = job.model.space, job.model.weights, job.request.samples
    check_rows("--samples", samples, job.model)
    with job.progress(samples, "perturbations") as tick:
        values, _ = full_rank_maxima(space, weights, samples, job.seeds(1)[0], tick)
    posterior = GammaPosterior.from_log_times(-np.euler_gamma - values)
    return _FoundEstimates([estimate(make_trick("gumbel"), values, confidence=job.confidence)], samples, posterior)


def _uniform(job: _Job) -> _FoundEstimates:
    import numpy as np

    from thesis_cli.structured.telescoping import uniform_average

    rng = np.random.default_rng(job.seeds(3)[2])
    space, weights = job.model.space, job.model.weights
    return _FoundEstimates([uniform_average(space, weights, job.request.samples, rng, job.confidence)])


def _telescoping(job: _Job) -> _FoundEstimates:
    import numpy as np

    from thesis_cli.structured.telescoping import TelescopingPlan, telescoping

    request, space, weights = job.request, job.model.space, job.model.weights
    plan = TelescopingPlan(request.error, job.confidence, request.schedule)
    rng = np.random.default_rng(job.seeds(1)[0])
    found = telescoping(space, weights, plan, _sampler(request, job.model), rng)
    costs = {"ratios": len(found.ratios), "samples": found.samples, "uniform_structures": found.steps}
    return _FoundEstimates([found.estimate], costs=costs)


def _sampler(request: StructuredLnZRequest, model: StructuredModel) -> Sampler:
    """Samples of the distribution at any temperature."""
    import numpy as np

    from thesis_cli.structured.meta import Coupled, Direct, Truncated

    if request.sampler == "truncated":
        return Truncated(steps=request.steps, most=request.most_steps)
    if request.sampler == "draw":
        return Direct()
    if request.sampler == "auto":
        try:
            model.space.draw(model.weights, 1, np.random.default_rng(0))
            return Direct()
        except ModelTooLarge as error:
            logger.debug("coupling from the past: %s", error)
    return Coupled(request.most_steps)


_METHODS = {"perturb": _perturb, "full-rank": _full_rank, "uniform": _uniform, "telescoping": _telescoping, "ais": _ais}

COMMAND = Command(
    StructuredLnZRequest,
    run,
    examples=(
        "structured ln-z data/models/ranking.toml",
        "structured ln-z data/models/tour.toml --method perturb --samples 500 --exact --seed 1",
        "structured ln-z data/models/taxonomy.toml --method telescoping --error 0.2 --seed 1",
    ),
)
