"""Frank-Wolfe and annealing as methods of `estimate-z`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from thesis_cli.base.errors import UnsuitableModel, WorkFailed
from thesis_cli.base.progress import Progress
from thesis_cli.commands.ln_z.portfolio import Portfolio
from thesis_cli.commands.ln_z.rival_fields import TEMPERATURES

if TYPE_CHECKING:
    import numpy as np

    from thesis_cli.base.arrays import Floats
    from thesis_cli.commands.ln_z.rivals import RivalOptions
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
