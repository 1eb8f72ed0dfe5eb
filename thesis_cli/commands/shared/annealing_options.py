"""Annealing and Frank-Wolfe as methods of `estimate-z`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from thesis_cli.base.cores import jobs_or_all
from thesis_cli.base.errors import UnsuitableModel
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.common import bytes_of
from thesis_cli.commands.core.fields import option
from thesis_cli.commands.shared.portfolio import Portfolio
from thesis_cli.commands.shared.quantity import QuantityName, in_unit

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.models.factor_graph import FactorGraph, Model

RivalName = Literal["frank-wolfe", "ais", "thermodynamic"]
EntropyChoice = Literal["trw", "bethe"]
StepChoice = Literal["corrective", "pairwise", "plain"]

RIVALS: tuple[str, ...] = get_args(RivalName)
CHAINED = ("ais", "thermodynamic")
SAMPLED = CHAINED
"""Methods with a confidence level."""

MAP_CALLS, CHAINS, SWEEPS = 200, 100, 10
TEMPERATURES = {"ais": 1000, "thermodynamic": 100}


def map_calls_option() -> Any:
    """MAP problems of Frank-Wolfe; its type is `int | None`."""
    return option(None, "Most MAP calls.", least=1, most=10**6, methods=("frank-wolfe",), default_text=str(MAP_CALLS))


def entropy_option() -> Any:
    """The entropy that Frank-Wolfe maximises; its type is `EntropyChoice | None`."""
    return option(
        None,
        "Entropy of the objective: trw makes it an upper bound on ln Z, bethe an approximation.",
        methods=("frank-wolfe",),
        default_text="trw",
    )


def steps_option() -> Any:
    """How Frank-Wolfe moves; its type is `StepChoice | None`."""
    return option(
        None,
        "Steps after each MAP call: plain to the new vertex, pairwise from the worst to the new one, corrective also "
        "over all vertices.",
        methods=("frank-wolfe",),
        default_text="corrective",
    )


def chains_option() -> Any:
    """Number of Gibbs chains; its type is `int | None`."""
    return option(
        None, "Number of independent Gibbs chains.", least=2, most=10**7, methods=CHAINED, default_text=str(CHAINS)
    )


def temperatures_option() -> Any:
    """Number of temperatures; its type is `int | None`."""
    text = "1000, or 100 for thermodynamic"
    return option(
        None,
        "Number of steps from the product of the unary factors to the model.",
        least=1,
        most=10**7,
        methods=CHAINED,
        default_text=text,
    )


def sweeps_option() -> Any:
    """Sweeps at each temperature; its type is `int | None`."""
    return option(
        None,
        "Gibbs sweeps at each temperature, of which the second half counts.",
        least=2,
        most=10**7,
        methods=("thermodynamic",),
        default_text=str(SWEEPS),
    )


def reverse_option() -> Any:
    """Whether to anneal backwards as well; its type is `bool`."""
    return option(
        False,
        "Add an upper bound by as many chains that start in exact samples and go backwards.",
        methods=("ais",),
    )


class RivalRequest(Protocol):
    """The fields that these methods heed."""

    @property
    def map_calls(self) -> int | None: ...
    @property
    def entropy(self) -> EntropyChoice | None: ...
    @property
    def steps(self) -> StepChoice | None: ...
    @property
    def chains(self) -> int | None: ...
    @property
    def temperatures(self) -> int | None: ...
    @property
    def sweeps(self) -> int | None: ...
    @property
    def reverse(self) -> bool: ...
    @property
    def confidence(self) -> float: ...
    @property
    def memory(self) -> float: ...
    @property
    def jobs(self) -> int | None: ...
    @property
    def quantity(self) -> QuantityName: ...


class _Work(NamedTuple):
    """What the methods take.

    Attributes
    ----------
    graph, request, progress : of the command.
    seed : of all random numbers.
    """

    graph: FactorGraph
    request: RivalRequest
    seed: np.random.SeedSequence
    progress: Progress

    @property
    def percent(self) -> str:
        return f"{100 * self.request.confidence:.12g}%"


def rival(method: str, model: Model, request: RivalRequest, seed: int, progress: Progress) -> Portfolio:
    """Estimates or bounds of ln Z by one of `RIVALS`, in the unit of the request.

    Raises
    ------
    UnsuitableModel : the model is a vector; for Frank-Wolfe, a factor has three variables or more,
        or forbids something.
    ModelTooLarge : the chains or the spanning trees take too much memory; no exact samples.
    NoConfiguration : no configuration is possible.
    """
    import numpy as np

    from thesis_cli.models.factor_graph import LogPotentials

    if isinstance(model, LogPotentials):
        raise UnsuitableModel(f"--method {method} takes models with variables, not a vector", "use full-rank")
    work = _Work(model, request, np.random.SeedSequence(seed), progress)
    found = {"frank-wolfe": _frank_wolfe, "ais": _ais, "thermodynamic": _thermodynamic}[method](work)
    return replace(found, estimates=tuple(in_unit(e, request.quantity) for e in found.estimates))


def _frank_wolfe(work: _Work) -> Portfolio:
    from thesis_cli.inference.frank_wolfe import frank_wolfe
    from thesis_cli.perturbation.estimate import fixed_estimate

    request = work.request
    calls, entropy = request.map_calls or MAP_CALLS, request.entropy or "trw"
    with work.progress(calls, "MAP calls") as tick:
        found = frank_wolfe(
            work.graph,
            calls,
            entropy=entropy,
            steps=request.steps or "corrective",
            memory=bytes_of(request.memory),
            progress=tick,
        )
    left = "" if found.converged else f", not converged: gap {found.gap:.2g}"
    if entropy == "bethe":
        row = fixed_estimate(found.value, "approximation" + left, "frank-wolfe", "Belanger et al. 2013")
        meaning = "Bethe's approximation at a local maximum over the marginals; its error is not known"
        return Portfolio((replace(row, map_calls=found.map_calls),), meaning, found.map_calls)
    sure = found.guarantee == "exact"
    kind = "upper bound" if sure else "no bound, since MAP is approximate"
    upper = fixed_estimate(found.upper, kind, "frank-wolfe", "Krishnan, Lacoste-Julien and Sontag 2015")
    said = f"ln Z <= {found.upper:.6g}" + (" for certain" if sure else " if each MAP was right")
    said += f"; with the edge weights of the last step no number of MAP calls gives less than {found.value:.6g}"
    return Portfolio((replace(upper, map_calls=found.map_calls),), said, found.map_calls)


def _ais(work: _Work) -> Portfolio:
    from thesis_cli.base.normal import normal_quantile
    from thesis_cli.inference.annealing import annealed
    from thesis_cli.perturbation.estimate import Estimate, fixed_estimate

    request, source = work.request, "Neal 2001"
    chains, temperatures = _size("ais", request)
    seeds = work.seed.spawn(2)
    with work.progress(chains * temperatures, "sweeps") as tick:
        found = annealed(work.graph, chains, temperatures, seeds[0], jobs=jobs_or_all(request.jobs), progress=tick)
    low, error = found.lower(request.confidence), found.standard_error
    trusted = math.isfinite(error)
    z = normal_quantile((1 + request.confidence) / 2)
    ends = (found.value - z * error, found.value + z * error) if trusted else (low, math.inf)
    kind = "Z unbiased" if trusted else f"Z unbiased, but only {found.effective:.0f} effective chains"
    rows = [
        Estimate(found.value, error, *ends, "ln Z", kind, request.confidence, 0, "ais", source),
        fixed_estimate(low, f"lower bound with probability {work.percent}", "ais", source),
    ]
    said = f"ln Z >= {low:.6g} with probability {work.percent}, however badly the chains mix"
    if request.reverse:
        high = _reverse(work, chains, found.steps, seeds[1])
        kind = f"upper bound with probability {work.percent}"
        rows.append(fixed_estimate(high, kind, "reverse annealing", "Grosse, Ghahramani and Adams 2015"))
        said += f"; ln Z <= {high:.6g} with the same"
    return Portfolio(tuple(rows), f"{said}; {found.effective:.0f} effective chains of {chains:,}")


def _reverse(work: _Work, chains: int, steps: Any, seed: np.random.SeedSequence) -> float:
    import numpy as np

    from thesis_cli.inference.annealing import reversely_annealed
    from thesis_cli.inference.sampling import exact_samples

    rng = np.random.default_rng(seed)
    states, _ = exact_samples(work.graph, chains, rng, memory=bytes_of(work.request.memory))
    for i in work.graph.observed:
        states[:, i] = 0
    return -reversely_annealed(work.graph, states, steps, rng).lower(work.request.confidence)


def _thermodynamic(work: _Work) -> Portfolio:
    from thesis_cli.base.normal import normal_quantile
    from thesis_cli.inference.annealing import thermodynamic_integral
    from thesis_cli.perturbation.estimate import Estimate

    request = work.request
    chains, temperatures = _size("thermodynamic", request)
    with work.progress(chains * (temperatures + 1), "temperatures") as tick:
        found = thermodynamic_integral(
            work.graph,
            chains,
            temperatures,
            work.seed,
            sweeps=request.sweeps or SWEEPS,
            jobs=jobs_or_all(request.jobs),
            progress=tick,
        )
    z = normal_quantile((1 + request.confidence) / 2)
    row = Estimate(
        value=found.value,
        standard_error=found.standard_error,
        low=found.value - z * found.standard_error,
        high=found.value + z * found.standard_error,
        target="ln Z",
        kind="consistent if the chains mix",
        confidence=request.confidence,
        map_calls=0,
        method="thermodynamic",
        source="Kirkwood 1935",
    )
    sums = f"between the left and right sums {found.lower:.6g} and {found.upper:.6g}"
    return Portfolio((row,), f"nothing is proven; in equilibrium ln Z is {sums}, up to the standard error")


def _size(method: str, request: RivalRequest) -> tuple[int, int]:
    """Chains and temperatures."""
    return request.chains or CHAINS, request.temperatures or TEMPERATURES[method]
