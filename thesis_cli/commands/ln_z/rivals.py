"""Methods of `estimate-z` that ask a MAP solver, or none, for ln Z without perturbations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from thesis_cli.base.errors import UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Progress
from thesis_cli.commands.ln_z.annealing import ais, frank_wolfe, thermodynamic
from thesis_cli.commands.ln_z.portfolio import TIME_LIMIT, Portfolio
from thesis_cli.commands.ln_z.rival_fields import CHAINS, MAP_CALLS, SWEEPS, EntropyChoice, StepChoice

if TYPE_CHECKING:
    from thesis_cli.models.factor_graph import Model

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

    from thesis_cli.inference.parity.constraints import Limits, bits_of
    from thesis_cli.perturbation.wish import sufficient_samples, wish

    limits = Limits(seconds=options.seconds, memory=options.memory, jobs=options.jobs)
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
