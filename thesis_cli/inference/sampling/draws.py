"""Exact samples from the Gibbs distribution, by elimination, grid transfer or enumeration."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration, log_partition_function
from thesis_cli.inference.marginals import backward_routes
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials, Model


def exact_samples(
    model: Model,
    count: int,
    rng: np.random.Generator,
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
) -> tuple[Ints, str]:
    """Independent configurations x ~ p: by elimination for a factor graph, else by two sweeps over
    them all.

    Parameters
    ----------
    model : p is proportional to exp(phi).
    count : number of draws.
    rng : source of randomness.
    memory : bytes for elimination or grid transfer.
    max_configurations : limit on enumeration, which serves vectors and graphs too wide for
        `memory`.

    Returns
    -------
    states : states of the variables, shape (count, n), numbered as without evidence; for a vector indices,
        shape (count, 1).
    method : `elimination`, `grid transfer` or `enumeration`.

    Raises
    ------
    ModelTooLarge : neither takes the model; the message gives the width.
    InputError : `count` is below 1, no configuration is possible, or a vector has a NaN or a
        `+inf`.
    """
    if count < 1:
        raise InputError(f"{count} draws", "it must be at least one")
    if isinstance(model, LogPotentials):
        return _enumerate(model, count, rng, max_configurations)[:, np.newaxis], "enumeration"
    routes, refusals = backward_routes(model, memory)
    for route in routes:
        try:
            states = route.solver.sample(count, rng)
        except ModelTooLarge as error:
            refusals.append(error)
            continue
        if route.reduction:
            states = route.reduction.original_states(states, rng)
        return model.original_states(states), route.solver.name
    if model.size > max_configurations:
        raise ModelTooLarge.best(refusals)
    indices = _enumerate(model, count, rng, max_configurations)
    return model.original_states(np.stack(np.unravel_index(indices, model.cardinalities), axis=1)), "enumeration"


def _enumerate(model: FactorGraph | LogPotentials, count: int, rng: np.random.Generator, most: int) -> Ints:
    """Numbers of the configurations drawn, shape (count,), by inverting the distribution function."""
    log_z = log_partition_function(model, max_configurations=most)
    if log_z == -np.inf:
        raise NoConfiguration()
    levels = rng.random(count)
    order = np.argsort(levels)
    levels = levels[order]
    found = np.empty(count, np.int64)
    start, below, mass, last = 0, 0, 0.0, 0
    for block in Enumeration(model, most).blocks():
        cumulative = mass + np.cumsum(np.exp(block - log_z))
        mass = float(cumulative[-1])
        above = below + int(np.searchsorted(levels[below:], mass))
        found[order[below:above]] = start + np.searchsorted(cumulative, levels[below:above], side="right")
        possible = np.flatnonzero(block > -np.inf)
        last = start + int(possible[-1]) if possible.size else last
        start, below = start + block.size, above
    found[order[below:]] = last  # levels that rounding leaves above the whole mass
    return found
