"""The expanded model of Hazan et al. III-B as a method of `estimate-z`."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel
from thesis_cli.base.memory import bytes_text
from thesis_cli.base.progress import Progress
from thesis_cli.base.wording import counted

if TYPE_CHECKING:
    from thesis_cli.models.factor_graph import FactorGraph, Model
    from thesis_cli.perturbation.estimate import Estimate
    from thesis_cli.perturbation.expanded.expanded import ExpandedMaximum

CUTS = 10
"""Most minimum cuts, of some 0.3 s each."""

TOLD = 2.0
"""Predicted seconds from which they are told before the work."""

logger = logging.getLogger("thesis_cli")


class Expanded(NamedTuple):
    """What the expanded model says of ln Z.

    Attributes
    ----------
    estimates : the expanded maximum, the mean-field bound, and the statement of Corollary 4.
    copies : their number, and how sure the maximum is.
    meaning : what to believe.
    """

    estimates: tuple[Estimate, ...]
    copies: str
    meaning: str


def expanded(model: Model, copies: int, confidence: float, seed: int, memory: int, progress: Progress) -> Expanded:
    """Bounds on ln Z from the copies of a model.

    Raises
    ------
    UnsuitableModel : the model is a vector.
    ModelTooLarge : the copies take more memory.
    NoConfiguration : no configuration is possible.
    """
    from thesis_cli.models.factor_graph import LogPotentials
    from thesis_cli.perturbation.expanded.copies import bytes_of_copies, most_copies
    from thesis_cli.perturbation.expanded.expanded import expanded_maximum, predicted_seconds

    if isinstance(model, LogPotentials):
        raise UnsuitableModel("--method expanded takes models with variables, not a vector", "use full-rank")
    needed = bytes_of_copies(model.cardinalities, copies)
    if needed > memory:
        raise ModelTooLarge(
            f"copies exceed --memory: {copies:,} of each variable take {bytes_text(needed)}",
            f"take --copies {most_copies(model.cardinalities, memory)} or fewer, or more --memory",
        )
    if (seconds := predicted_seconds(model, copies)) > TOLD:
        logger.info("%s copies take about %.0f s and %s", f"{copies * noisy(model):,}", seconds, bytes_text(needed))
    with progress(copies * len(model.cardinalities), "copies") as tick:
        found = expanded_maximum(model, copies, seed, memory=memory, cuts=CUTS, progress=tick)
    return Expanded(*_rows(model, found, confidence))


def noisy(graph: FactorGraph) -> int:
    """Number of variables with noise."""
    return sum(k > 1 for k in graph.cardinalities)


def _rows(graph: FactorGraph, found: ExpandedMaximum, confidence: float) -> tuple[tuple[Estimate, ...], str, str]:
    from thesis_cli.perturbation.estimate import fixed_estimate
    from thesis_cli.perturbation.expanded.expanded import log_corollary_epsilon

    source, percent = "Hazan et al. Corollary 4", f"{100 * confidence:.12g}%"
    log_epsilon = log_corollary_epsilon(graph, found.copies, confidence)
    epsilon = math.exp(log_epsilon) if log_epsilon < 700 else math.inf
    low = found.value - epsilon * found.variables if found.variables else found.value
    empty = low <= found.mean_field
    kind = f"lower bound with probability {percent}" + ", says nothing: below the certain one" * empty
    rows = (
        replace(fixed_estimate(found.value, "epsilon 0, not proven to be a bound", "expanded", source), map_calls=1),
        fixed_estimate(found.mean_field, "lower bound", "mean field", "Hazan et al. eq. 18, with entropies for noise"),
        fixed_estimate(low, kind, "Corollary 4", source),
    )
    if found.exact:
        sure = "their maximum is proven"
    else:
        sure = "the best found" + ("" if found.upper is None else f", the maximum is at most {found.upper:.6g}")
    text = f"{found.copies:,} of each of {counted(found.variables, 'variable')}: {sure}"
    return rows, text, _meaning(found, log_epsilon, percent, empty)


def _meaning(found: ExpandedMaximum, log_epsilon: float, percent: str, empty: bool) -> str:
    """What holds for certain, and which epsilon makes the statement true."""
    power = log_epsilon / math.log(10)
    exponent = math.floor(power) if math.isfinite(power) else 0
    epsilon = f"{10 ** (power - exponent):.3g}e{exponent:+d}" if abs(exponent) > 2 else f"{math.exp(log_epsilon):.3g}"
    printed = f"eq. 20 needs epsilon {epsilon} at {percent}" + " and says nothing here" * empty
    needed = f"with these copies epsilon {max(0.0, found.certain_epsilon):.3g} is enough"
    return f"ln Z >= {found.mean_field:.6g} for certain; {printed}; {needed}"
