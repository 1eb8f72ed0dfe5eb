"""Noise on subsets of variables (Hazan et al. Corollary 5, Thesis Proposition 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import Factor, FactorGraph

MOST_STATES = 4096
"""Most joint states of a subset."""


def with_subset_variables(graph: FactorGraph, subsets: Sequence[Sequence[int]]) -> tuple[FactorGraph, tuple[int, ...]]:
    """Add to a model a variable for each subset, whose states are the joint states of the subset.

    Hard constraints tie the new variables to the old ones, so noise on the new variables, with a
    solver that takes such constraints, is noise on the subsets:
    `low_rank_maxima(Elimination(larger), ..., noisy=variables)` gives the upper bound of Hazan et
    al. Corollary 5 if the subsets cover the variables (n is then the number of subsets), and with
    `scale="average"` the lower bound of Thesis Proposition 5, averaged over the subsets.

    Parameters
    ----------
    subsets : variables of each subset; a variable that is alone in a subset stands for itself.

    Returns
    -------
    larger : the larger model; its first n variables are those of `graph`, and its configurations of
        finite potential correspond to those of `graph`, one to one.
    variables : the variable of each subset, in order.

    Raises
    ------
    InputError : a subset is empty, names no variable, repeats one, comes twice, or has too many
        states.
    """
    n = len(graph.cardinalities)
    cardinalities, factors, variables = list(graph.cardinalities), list(graph.factors), []
    for j, subset in enumerate(subsets):
        if not subset or len(set(subset)) < len(subset) or not all(0 <= i < n for i in subset):
            raise InputError(
                f"subset {j} is {tuple(subset)}", f"it must hold one or more distinct variables, 0 to {n - 1}"
            )
        shape = tuple(graph.cardinalities[i] for i in subset)
        size = math.prod(shape)
        if size > MOST_STATES:
            raise InputError(f"subset {j} has {size:,} joint states", f"it may have at most {MOST_STATES:,}")
        if len(subset) == 1:
            variables.append(subset[0])
            continue
        variables.append(len(cardinalities))
        cardinalities.append(size)
        for i, states in zip(subset, np.indices(shape).reshape(len(shape), size), strict=True):
            tie = np.where(states[:, np.newaxis] == np.arange(graph.cardinalities[i]), 0.0, -np.inf)
            factors.append(Factor((variables[-1], i), tie))
    if len({frozenset(s) for s in subsets}) < len(subsets):
        raise InputError("a subset comes twice", "give each subset once")
    return FactorGraph(cardinalities, factors, graph.observed), tuple(variables)


def edges(graph: FactorGraph) -> list[tuple[int, ...]]:
    """Subsets for pairwise noise: each pair of variables in a factor, then each other one alone.

    Variables with one state are left out.
    """
    scopes = [tuple(sorted(i for i in f.scope if graph.cardinalities[i] > 1)) for f in graph.factors]
    pairs = sorted({scope for scope in scopes if len(scope) == 2})
    covered = {i for pair in pairs for i in pair}
    return [*pairs, *((i,) for i, k in enumerate(graph.cardinalities) if k > 1 and i not in covered)]


def undetermined(graph: FactorGraph, noisy: Sequence[int]) -> tuple[int, ...]:
    """Variables whose states are not determined when the states of the noisy ones are known.

    States are determined by propagation: that of a variable with one state, and that of the last
    unknown variable of a factor, if the table leaves it at most one state. The upper bounds of
    Thesis eq. 2.8 hold with noise on some variables only if these determine all others: they are
    then bounds of a sum over the noisy variables.
    """
    known = {i for i, k in enumerate(graph.cardinalities) if k == 1} | set(noisy)
    before = -1
    while before < len(known) < len(graph.cardinalities):
        before = len(known)
        for factor in graph.factors:
            left = [axis for axis, i in enumerate(factor.scope) if i not in known]
            if len(left) == 1 and (np.isfinite(factor.table).sum(axis=left[0]) <= 1).all():
                known.add(factor.scope[left[0]])
    return tuple(i for i in range(len(graph.cardinalities)) if i not in known)
