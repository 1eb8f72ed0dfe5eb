"""Baselines of perturb-and-MAP for ln Z in `estimate-z`: WISH, the Bethe mesh, Frank-Wolfe, annealed
importance sampling and thermodynamic integration, with their options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from thesis_cli.base.errors import UnsuitableModel, WorkFailed
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.fields import option
from thesis_cli.commands.ln_z.portfolio import TIME_LIMIT, Portfolio

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Floats
    from thesis_cli.models.factor_graph import FactorGraph, Model


def frank_wolfe(model: Model, options: RivalOptions, progress: Progress) -> Portfolio:
    """An upper bound on ln Z, or Bethe's approximation, by MAP calls under the potential of a
    gradient.

    Raises
    ------
    UnsuitableModel : the model is a vector, a factor has three variables or more, or one forbids
        something.
    ModelTooLarge : the model is too wide for its spanning trees.
    """
    import scipy.optimize  # noqa: F401  # its BLAS is there to be limited
    from threadpoolctl import threadpool_limits

    from thesis_cli.inference.variational import frank_wolfe as method
    from thesis_cli.perturbation.estimate import fixed_estimate

    graph = _with_variables(model, "frank-wolfe")
    # small products; the order of their sums must not depend on the number of cores
    with progress(options.map_calls, "MAP calls") as tick, threadpool_limits(1, "blas"):
        found = method.frank_wolfe(
            graph,
            options.map_calls,
            entropy=options.entropy,
            steps=options.steps,
            memory=options.memory,
            progress=tick,
        )
    if options.entropy == "bethe":
        kind = "approximation" + ("" if found.converged else f", not converged, gap {found.gap:.2g}")
        row = fixed_estimate(found.value, kind, "frank-wolfe", "Belanger, Sheldon and McCallum 2013")
        meaning = "Bethe's approximation at a local maximum over the marginals; its error is not known"
    else:
        sure = found.guarantee == "exact"
        kind = "upper bound" if sure else "no bound, since MAP is approximate"
        row = fixed_estimate(found.upper, kind, "frank-wolfe", "Krishnan, Lacoste-Julien and Sontag 2015")
        meaning = f"ln Z <= {found.upper:.6g} " + ("for certain" if sure else "if each MAP was right")
        meaning += f"; the objective is {found.value:.6g}, {found.gap:.2g} at most below its maximum"
    return Portfolio((replace(row, map_calls=found.map_calls),), meaning, found.map_calls)


def ais(model: Model, options: RivalOptions, progress: Progress) -> Portfolio:
    """An estimate by annealed importance sampling, and bounds that hold with a probability.

    Raises
    ------
    UnsuitableModel : the model is a vector.
    ModelTooLarge : the chains take too much memory, or there are no exact samples to go back from.
    NoConfiguration : the unary factors forbid all states of a variable.
    """
    import numpy as np

    from thesis_cli.base.normal import normal_quantile
    from thesis_cli.inference.sampling.annealing import annealed
    from thesis_cli.perturbation.estimate import Estimate, fixed_estimate

    graph = _with_variables(model, "ais")
    temperatures = options.temperatures or TEMPERATURES["ais"]
    seeds = np.random.SeedSequence(options.seed).spawn(2)
    with progress(options.chains * temperatures, "sweeps") as tick:
        found = annealed(graph, options.chains, temperatures, seeds[0], jobs=options.jobs, progress=tick)
    low, error, percent = found.lower(options.confidence), found.standard_error, f"{100 * options.confidence:.12g}%"
    trusted = math.isfinite(error)
    reach = normal_quantile((1 + options.confidence) / 2) * error if trusted else 0.0
    estimate = Estimate(
        value=found.value,
        standard_error=error,
        low=found.value - reach if trusted else low,
        high=found.value + reach if trusted else math.inf,
        target="ln Z",
        kind="Z unbiased" if trusted else f"Z unbiased, but only {found.effective:.0f} effective chains",
        confidence=options.confidence,
        map_calls=0,
        method="ais",
        source="Neal 2001",
    )
    rows = [estimate, fixed_estimate(low, f"lower bound with probability {percent}", "ais", "Neal 2001")]
    meaning = f"ln Z >= {low:.6g} with probability {percent}, however badly the chains mix"
    if options.reverse:
        high = _from_above(graph, options, found.steps, seeds[1])
        source = "Grosse, Ghahramani and Adams 2015"
        rows.append(fixed_estimate(high, f"upper bound with probability {percent}", "reverse ais", source))
        meaning += f"; ln Z <= {high:.6g} with the same"
    return Portfolio(tuple(rows), f"{meaning}; {found.effective:.0f} effective chains of {options.chains:,}")


def _from_above(graph: FactorGraph, options: RivalOptions, steps: Floats, seed: np.random.SeedSequence) -> float:
    """An upper bound by chains that start in exact samples."""
    import numpy as np

    from thesis_cli.inference.sampling.annealing import reversely_annealed
    from thesis_cli.inference.sampling.draws import exact_samples

    rng = np.random.default_rng(seed)
    states, _ = exact_samples(graph, options.chains, rng, memory=options.memory)
    states[:, list(graph.observed)] = 0
    return -reversely_annealed(graph, states, steps, rng).lower(options.confidence)


def thermodynamic(model: Model, options: RivalOptions, progress: Progress) -> Portfolio:
    """An estimate by an integral over inverse temperatures.

    Raises
    ------
    UnsuitableModel : the model is a vector.
    ModelTooLarge : the chains take too much memory.
    NoConfiguration : the unary factors forbid all states of a variable.
    WorkFailed : no chain ended in a possible configuration.
    """
    import numpy as np

    from thesis_cli.base.normal import normal_quantile
    from thesis_cli.inference.sampling.annealing import thermodynamic_integral
    from thesis_cli.perturbation.estimate import Estimate

    graph = _with_variables(model, "thermodynamic")
    temperatures, seed = options.temperatures or TEMPERATURES["thermodynamic"], np.random.SeedSequence(options.seed)
    with progress(options.chains * (temperatures + 1), "temperatures") as tick:
        found = thermodynamic_integral(
            graph, options.chains, temperatures, seed, sweeps=options.sweeps, jobs=options.jobs, progress=tick
        )
    if found.value == -math.inf:
        raise WorkFailed("no chain ended in a possible configuration: take more --temperatures, or --method ais")
    reach = normal_quantile((1 + options.confidence) / 2) * found.standard_error
    row = Estimate(
        value=found.value,
        standard_error=found.standard_error,
        low=found.value - reach,
        high=found.value + reach,
        target="ln Z",
        kind="consistent if the chains mix",
        confidence=options.confidence,
        map_calls=0,
        method="thermodynamic",
        source="Kirkwood 1935",
    )
    sums = f"between the left and right sums {found.lower:.6g} and {found.upper:.6g}"
    return Portfolio((row,), f"nothing is proven; in equilibrium ln Z is {sums}, up to the standard error")


def _with_variables(model: Model, method: str) -> FactorGraph:
    from thesis_cli.models.factor_graph import FactorGraph

    if not isinstance(model, FactorGraph):
        raise UnsuitableModel(f"--method {method} takes models with variables, not a vector", "use full-rank")
    return model


EntropyChoice = Literal["trw", "bethe"]
StepChoice = Literal["corrective", "pairwise", "plain"]

CHAINED = ("ais", "thermodynamic")

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


class RivalFields(Protocol):
    """The fields of a request that these options make."""

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


def chosen(request: RivalFields) -> dict[str, Any]:
    """The values that the request gives, by name."""
    names = ("map_calls", "entropy", "steps", "chains", "temperatures", "sweeps", "reverse")
    return {name: value for name in names if (value := getattr(request, name)) is not None}


RivalName = Literal["wish", "mesh-bethe", "frank-wolfe", "ais", "thermodynamic"]


@dataclass(frozen=True)
class RivalOptions:
    """What a method may take; each heeds some of it.

    Attributes
    ----------
    samples : number of hashes.
    seed : of all random numbers.
    jobs : threads.
    memory : bytes.
    max_configurations : largest number of configurations to enumerate; None leaves it to the method.
    seconds : for all work that a limit ends.
    confidence : of intervals.
    map_calls, entropy, steps : of Frank-Wolfe.
    chains, temperatures, sweeps : of annealing; None leaves the temperatures to the method.
    reverse : whether to anneal backwards as well.
    """

    samples: int
    seed: int
    jobs: int = 1
    memory: int = DEFAULT_MEMORY
    max_configurations: int | None = None
    seconds: float = TIME_LIMIT
    confidence: float = 0.95
    map_calls: int = MAP_CALLS
    entropy: EntropyChoice = "trw"
    steps: StepChoice = "corrective"
    chains: int = CHAINS
    temperatures: int | None = None
    sweeps: int = SWEEPS
    reverse: bool = False


def rival(name: str, model: Model, options: RivalOptions, progress: Progress) -> Portfolio:
    """Estimates of ln Z by the named method, what they mean, and the MAP problems they took."""
    return METHODS[name](model, options, progress)


def _wish(model: Model, options: RivalOptions, progress: Progress) -> Portfolio:
    import numpy as np

    from thesis_cli.inference.parity.constraints import HashLimits, bits_of
    from thesis_cli.perturbation.wish import sufficient_samples, wish

    limits = HashLimits(seconds=options.seconds, memory=options.memory, jobs=options.jobs)
    if options.max_configurations is not None:
        limits = limits._replace(max_configurations=options.max_configurations)
    seed = np.random.SeedSequence(options.seed)
    with progress(model.size * options.samples, "hashes") as tick:
        found = wish(model, options.samples, seed, confidence=options.confidence, limits=limits, progress=tick)
    percent, bits = f"{100 * options.confidence:.12g}%", bits_of(model.size)
    meaning = f"ln Z is in the interval with probability {percent} at least"
    if len(found) > 1:
        meaning = f"ln Z >= {found[1].value:.6g} with probability {percent} at least; no more is known"
    elif options.samples < (enough := sufficient_samples(bits, options.confidence)):
        meaning += f"; {enough} samples promise a factor of 16 beforehand"
    value, rounding = found[0].value, 1e-9 * max(1.0, abs(found[0].value))
    if not found[0].low - rounding <= value <= found[0].high + rounding:
        meaning += "; the estimate of Algorithm 1 is outside of it; believe the interval"
    return Portfolio(tuple(found), meaning, found[0].map_calls)


def _mesh_bethe(model: Model, options: RivalOptions, progress: Progress) -> Portfolio:
    from thesis_cli.models.factor_graph import FactorGraph
    from thesis_cli.perturbation.mesh_bethe import mesh_bethe

    if not isinstance(model, FactorGraph):
        raise UnsuitableModel("--method mesh-bethe takes models with variables, not a vector", "use full-rank")
    (found,) = mesh_bethe(model)
    meaning = (
        f"ln Z >= {found.value:.6g} for certain; the best Bethe approximation is at most {found.high:.6g}, "
        "and ln Z may be above it"
    )
    bound = replace(found, high=found.value)
    return Portfolio((bound,), meaning, found.map_calls)


METHODS: Mapping[str, Callable[[Model, RivalOptions, Progress], Portfolio]] = {
    "wish": _wish,
    "mesh-bethe": _mesh_bethe,
    "frank-wolfe": frank_wolfe,
    "ais": ais,
    "thermodynamic": thermodynamic,
}
