"""Answers for ln Z at given budgets: of methods that ask a MAP solver, and of baselines."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.commands.ln_z.estimates import LnZOptions
from thesis_cli.commands.ln_z.methods import answer
from thesis_cli.inference.names import EntropyName
from thesis_cli.inference.parity.bands import banded_maxima
from thesis_cli.inference.parity.constraints import HashLimits
from thesis_cli.inference.sampling.annealing import annealed, thermodynamic_integral
from thesis_cli.inference.variational.frank_wolfe import frank_wolfe
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.expanded.expanded import expanded_maximum
from thesis_cli.perturbation.mesh_bethe import mesh_bethe
from thesis_cli.perturbation.tricks.full_rank import perturbed_maxima
from thesis_cli.perturbation.tricks.tricks import power
from thesis_cli.perturbation.wish import estimates, wish

Side = Literal["upper", "lower", "neither"]

CONFIDENCE = 0.95
"""Confidence level of intervals, and of bounds that hold with a probability."""
ENUMERABLE = 2**20
"""Most configurations for methods that enumerate them."""


class BaselineAnswer(NamedTuple):
    """A number that a method gives for ln Z.

    Attributes
    ----------
    side : which bound it is, or what it estimates is.
    value : nats.
    low, high : ends of an interval or of a bound that cover ln Z with probability `CONFIDENCE`, or
        for certain; infinite where nothing is known.
    map_calls : MAP problems solved.
    """

    method: str
    side: Side
    value: float
    low: float = -math.inf
    high: float = math.inf
    map_calls: int = 0


Size = Sequence[int]
Method = Callable[[FactorGraph, Size, np.random.SeedSequence], list[BaselineAnswer]]


def answers(
    method: str, graph: FactorGraph, size: Size, seed: np.random.SeedSequence
) -> tuple[list[BaselineAnswer], float]:
    """Answers of a method of `METHODS` for a model, and the seconds that it takes.

    Parameters
    ----------
    method : a key of `METHODS`.
    size : the method's budget: perturbations, copies, MAP calls, hashes, or chains and temperatures.

    Returns
    -------
    answers : none if the method does not take the model.
    seconds : processor time.
    """
    start = time.process_time()
    try:
        found = METHODS[method](graph, size, seed)
    except InputError:
        found = []
    return found, time.process_time() - start


def summary(runs: Sequence[BaselineAnswer], log_z: float) -> dict[str, float]:
    """Errors of the answers of several runs for ln Z.

    Returns
    -------
    error, rms, ratio : mean of the answers less ln Z, root of its mean square, and mean of its
        exponential, each with the standard error of that mean as `..._deviation`; 0 for one run.
    outside : share of the runs whose ends do not enclose ln Z.
    """
    errors = np.array([answer.value for answer in runs]) - log_z
    ends = np.array([[answer.low, answer.high] for answer in runs])
    rounding = 1e-9 * max(1.0, abs(log_z))
    root = float(np.sqrt(np.mean(errors**2)))
    ratios = np.exp(errors)
    return {
        "error": float(errors.mean()),
        "error_deviation": _deviation(errors),
        "rms": root,
        "rms_deviation": _deviation(errors**2) / (2 * root) if root else 0.0,
        "ratio": float(ratios.mean()),
        "ratio_deviation": _deviation(ratios),
        "outside": float(np.mean((ends[:, 0] > log_z + rounding) | (ends[:, 1] < log_z - rounding))),
    }


def _deviation(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else 0.0


def _bound(name: str, label: str, side: Side) -> Method:
    """Bounds and approximations of the command `bound`."""

    def run(graph: FactorGraph, size: Size, seed: np.random.SeedSequence) -> list[BaselineAnswer]:
        number = int(seed.generate_state(1)[0])
        options = LnZOptions(samples=size[0] if size else 1, seed=number, jobs=1, confidence=CONFIDENCE)
        found = answer(name, graph, options)
        value = found.estimates[0].value
        return [BaselineAnswer(label, side, value, map_calls=found.map_calls)]

    return run


def _full_rank(graph: FactorGraph, size: Size, seed: np.random.SeedSequence) -> list[BaselineAnswer]:
    """The Exponential trick on noise for each configuration."""
    values = perturbed_maxima(graph, size[0], seed, max_configurations=ENUMERABLE).values
    value = float(power(1.0).estimate_log_z(-np.euler_gamma - values))
    return [BaselineAnswer("full rank", "neither", value, map_calls=size[0])]


def _expanded(graph: FactorGraph, size: Size, seed: np.random.SeedSequence) -> list[BaselineAnswer]:
    found = expanded_maximum(graph, size[0], seed)
    maximum = BaselineAnswer("expanded", "neither", found.value, map_calls=1)
    return [maximum, BaselineAnswer("mean field", "lower", found.mean_field, low=found.mean_field, map_calls=1)]


def _frank_wolfe(entropy: EntropyName) -> Method:
    def run(graph: FactorGraph, size: Size, seed: np.random.SeedSequence) -> list[BaselineAnswer]:
        found = frank_wolfe(graph, size[0], entropy=entropy)
        if entropy == "bethe":
            return [BaselineAnswer("Frank-Wolfe, Bethe", "neither", found.value, map_calls=found.map_calls)]
        return [BaselineAnswer("Frank-Wolfe", "upper", found.upper, high=found.upper, map_calls=found.map_calls)]

    return run


def _ais(graph: FactorGraph, size: Size, seed: np.random.SeedSequence) -> list[BaselineAnswer]:
    found = annealed(graph, size[0], size[1], seed)
    low = found.lower(CONFIDENCE)
    return [
        BaselineAnswer("annealing", "neither", found.value),
        BaselineAnswer("annealing, below", "lower", low, low=low),
    ]


def _thermodynamic(graph: FactorGraph, size: Size, seed: np.random.SeedSequence) -> list[BaselineAnswer]:
    found = thermodynamic_integral(graph, size[0], size[1], seed)
    return [BaselineAnswer("thermodynamic", "neither", found.value)]


def _wish(graph: FactorGraph, size: Size, seed: np.random.SeedSequence) -> list[BaselineAnswer]:
    """WISH with independent constraints, on models that can be enumerated."""
    if graph.size > ENUMERABLE:
        return []
    found = wish(graph, size[0], seed, confidence=CONFIDENCE)[0]
    return [BaselineAnswer("WISH", "neither", found.value, found.low, found.high, found.map_calls)]


def _banded_wish(graph: FactorGraph, size: Size, seed: np.random.SeedSequence) -> list[BaselineAnswer]:
    """WISH with constraints on neighbouring bits, which prove a bound from below."""
    hashing, resampling = (np.random.default_rng(child) for child in seed.spawn(2))
    maxima = banded_maxima(graph, size[0], hashing, HashLimits(seconds=math.inf))
    found, bound = estimates(maxima, CONFIDENCE, resampling)
    estimate = BaselineAnswer("WISH, banded", "neither", found.value, map_calls=found.map_calls)
    return [estimate, BaselineAnswer("WISH, below", "lower", bound.value, low=bound.value, map_calls=found.map_calls)]


def _mesh_bethe(graph: FactorGraph, size: Size, seed: np.random.SeedSequence) -> list[BaselineAnswer]:
    """The largest Bethe approximation of an attractive model, by cuts of a mesh of marginals."""
    found = mesh_bethe(graph)[0]
    return [BaselineAnswer("mesh Bethe", "lower", found.value, low=found.value, map_calls=found.map_calls)]


METHODS: dict[str, Method] = {
    "unary": _bound("unary", "unary noise", "upper"),
    "average": _bound("average", "averaged noise", "lower"),
    "pairs": _bound("subset", "noise on pairs", "upper"),
    "max-marginal": _bound("max-marginal", "max-marginals", "lower"),
    "full rank": _full_rank,
    "expanded": _expanded,
    "frank-wolfe": _frank_wolfe("trw"),
    "frank-wolfe, bethe": _frank_wolfe("bethe"),
    "wish": _wish,
    "wish, banded": _banded_wish,
    "mesh-bethe": _mesh_bethe,
    "annealing": _ais,
    "thermodynamic": _thermodynamic,
    "trw": _bound("trw", "TRW", "upper"),
    "bethe": _bound("bethe", "belief propagation", "neither"),
}
