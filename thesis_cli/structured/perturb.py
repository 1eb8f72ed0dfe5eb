r"""Perturb-and-MAP on combinatorial spaces: bounds on ln Z from MAP calls (Thesis 2.3 on the spaces
of Vembu et al. section 4).

A structure is determined by variables such as the position of each item (`noise.py`). With Gumbel
noise of mean 0 on their states, E max {<phi(y), w> + sum_i gamma_i} >= ln Z >= E max {<phi(y), w> +
sum_i gamma_i / n}. With noise of its own on every structure, the mean of the maximum is ln Z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.base.progress import Tick
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.perturbation.estimate import Estimate
from thesis_cli.perturbation.low_rank.low_rank_bounds import (
    UNCERTAIN,
    check_alphas,
    few_effective_samples,
    half_width,
    jackknife_error,
    power_bounds,
)
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.perturbation.tricks.full_rank import perturbed_maxima
from thesis_cli.structured.noise import Noise
from thesis_cli.structured.space import ENUMERATED, Space

Scale = Literal["sum", "average"]

BLOCK = 128
"""Perturbations of a block, which has its own random stream."""


@dataclass(frozen=True)
class StructuredMaxima:
    """The solutions of MAP problems under noise.

    Attributes
    ----------
    values : maxima, shape (M,).
    structures : maximisers, shape (M, width).
    noise : the variables with noise.
    scale : `sum`, or `average` for noise over its number of terms.
    exact : whether every MAP problem was solved exactly.
    """

    values: Floats
    structures: Ints
    noise: Noise
    scale: Scale
    exact: bool


def structured_maxima(
    noise: Noise, count: int, seed: np.random.SeedSequence, *, scale: Scale = "sum", progress: Tick | None = None
) -> StructuredMaxima:
    """Solve `count` MAP problems, each under noise of its own.

    The first maxima do not depend on how many follow. Raises InputError if the count is not
    positive.

    Parameters
    ----------
    noise : noise on the structures of a space, for its weights.
    count : number M of perturbations.
    seed : root of the random streams.
    scale : `sum` for upper bounds, `average` for lower bounds.
    progress : called with the number of MAP problems just solved.
    """
    if count < 1:
        raise InputError(f"the number of perturbations is {count}", "it must be 1 or more")
    factor = 1.0 if scale == "sum" else 1 / max(1, noise.terms)
    values: list[Floats] = []
    structures: list[Ints] = []
    exact = True
    for child in seed.spawn(-(-count // BLOCK)):
        rows = min(BLOCK, count - BLOCK * len(values))
        parts = []
        numbers = factor * gumbel(np.random.default_rng(child), rows, noise.entries)
        for start in range(0, rows, noise.batch):
            parts.append(noise.maximise(numbers[start : start + noise.batch]))
            if progress is not None:
                progress(len(parts[-1].values))
        values.append(np.concatenate([p.values for p in parts]))
        structures.append(np.concatenate([p.structures for p in parts]))
        exact = exact and all(p.exact for p in parts)
    return StructuredMaxima(np.concatenate(values), np.concatenate(structures), noise, scale, exact)


def structured_bound(maxima: StructuredMaxima, confidence: float = 0.95, alpha: float = 0.0) -> Estimate:
    """U(alpha) of maxima with scale `sum`, which bounds ln Z from above, or L(alpha) with `average`,
    from below (Thesis eqs. 2.8 and 2.14).

    U(0) and L(0) are means. An approximate solver's values are too low, so that a lower bound stays
    one. Raises InputError if the confidence or alpha is out of range.

    Parameters
    ----------
    confidence : probability that the interval covers the bound.
    alpha : exponent above -1 / (2 sqrt(n)) with n terms of noise.
    """
    upper, terms = maxima.scale == "sum", maxima.noise.terms
    alphas = np.array([alpha])
    check_alphas(alphas, terms, unsafe=False)
    divisor = 1 if upper else max(1, terms)
    values = divisor * maxima.values
    bounds, errors = power_bounds(values, terms, alphas)
    value, error = float(bounds[0]) / divisor, float(errors[0]) / divisor
    side = "upper" if upper else "lower"
    kind = f"{side} bound in the limit" if (alpha < 0 if upper else alpha > 0) else f"{side} bound in expectation"
    if upper and not maxima.exact:
        kind = "approximate upper bound"
    if alpha != 0 and math.isfinite(error) and few_effective_samples(values, alpha):
        error = max(error, jackknife_error(values, alpha) / divisor)
        kind += UNCERTAIN
    half = half_width(error, confidence)
    name = f"{'U' if upper else 'L'}({alpha:g}), noise on {maxima.noise.name}"
    source = "Thesis eq. 2.8" if upper else "Thesis eq. 2.14"
    return Estimate(value, error, value - half, value + half, "ln Z", kind, confidence, values.size, name, source)


def full_rank_maxima(
    space: Space, weights: Floats, count: int, seed: np.random.SeedSequence, progress: Tick | None = None
) -> tuple[Floats, Ints]:
    """Maxima under noise on every structure, Gumbel with mean ln Z, and the maximisers, which are
    exact samples (Thesis eqs. 2.1' and 2.2'). Raises ModelTooLarge if there are more structures.

    Parameters
    ----------
    space : space of at most 2^20 structures.
    weights : one weight vector, shape (dimension,).
    count : number M of perturbations.
    seed : root of the random streams.
    progress : called with the number of perturbations just done.

    Returns
    -------
    values : shape (M,).
    structures : shape (M, width).
    """
    size = space.size()
    if size > ENUMERATED:
        problem = f"the space {space.name} of {space.elements} elements has more than {ENUMERATED:,} structures"
        raise ModelTooLarge(problem, "noise on every structure enumerates them; put it on variables")
    clocks = 0

    def tick(done: int) -> None:
        nonlocal clocks
        before, clocks = clocks // size, clocks + done
        if progress is not None:
            progress(clocks // size - before)

    scores = np.concatenate([space.scores(block, weights) for block in space.blocks()])
    found = perturbed_maxima(LogPotentials(scores), count, seed, progress=tick)
    structures, start = np.empty((count, space.width), np.int64), 0
    for block in space.blocks():
        here = (found.states >= start) & (found.states < start + len(block))
        structures[here] = block[found.states[here] - start]
        start += len(block)
    return found.values, structures
