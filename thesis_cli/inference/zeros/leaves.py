"""Sums over the variables that only one table names, which shrink a model before anything else."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from thesis_cli.inference.zeros.reduction import Reduction, reduced
from thesis_cli.models.factor_graph import Factor, FactorGraph

ROUNDING = 1e-14
"""Weights that differ by this part are the same: rows of a conditional probability table that add
up to 1."""


def summed(small: Reduction) -> tuple[FactorGraph, float]:
    """A model smaller than a reduced one, and by how much ln Z of the first, before the reduction,
    is larger than its own.

    Variables that only one table names are summed out of it, again and again, and variables that a
    table no longer depends on leave it. So a Bayesian network keeps only the ancestors of what is
    observed.

    Raises
    ------
    NoConfiguration : the zeros leave no configuration.
    """
    constant = small.constant
    while (left := without_leaves(small.graph)) is not None:
        smaller, gained, _ = left
        small = reduced(smaller)
        constant += gained + small.constant
    return small.graph, constant


def without_leaves(graph: FactorGraph, kept: Collection[int] = ()) -> tuple[FactorGraph, float, list[int]] | None:
    """The model once leaves are summed out, ln of what that gives, and which variables it has left; None
    if it has no leaves. A kept variable on which nothing depends is not left, and not summed over.

    Parameters
    ----------
    kept : variables that are no leaves.
    """
    factors: dict[int, Factor] = dict(enumerate(graph.factors))
    users: list[set[int]] = [set() for _ in graph.cardinalities]
    for f, factor in factors.items():
        for v in factor.scope:
            users[v].add(f)
    queue = {f for v, own in enumerate(users) if len(own) == 1 and v not in kept for f in own}
    if not queue:
        return None
    constant = 0.0
    while queue:
        f = queue.pop()
        factor = factors.pop(f)
        leaves = {v for v in factor.scope if users[v] == {f} and v not in kept}
        left = _simplified(_log_sum(factor, leaves))
        for v in set(factor.scope) - set(left.scope):
            users[v].discard(f)
            if len(users[v]) == 1 and v not in kept:
                queue |= users[v]
        if left.scope:
            factors[f] = left
        else:
            constant += float(left.table)
    used = sorted({v for factor in factors.values() for v in factor.scope})
    number = {v: i for i, v in enumerate(used)}
    numbered = [Factor(tuple(number[v] for v in factor.scope), factor.table) for factor in factors.values()]
    return FactorGraph([graph.cardinalities[v] for v in used] or [1], numbered), constant, used


def _log_sum(factor: Factor, leaves: Collection[int]) -> Factor:
    """A factor summed over some of its variables."""
    axes = tuple(a for a, v in enumerate(factor.scope) if v in leaves)
    top = factor.table.max(axis=axes, keepdims=True)
    top[top == -np.inf] = 0
    with np.errstate(divide="ignore"):
        table = np.log(np.exp(factor.table - top).sum(axis=axes)) + top.squeeze(axes)
    return Factor(tuple(v for v in factor.scope if v not in leaves), table)


def _simplified(factor: Factor) -> Factor:
    """A factor without the variables that it does not depend on."""
    scope, table = list(factor.scope), factor.table
    for v in factor.scope:
        axis = scope.index(v)
        high, low = table.max(axis=axis), table.min(axis=axis)
        if ((high == low) | (high - ROUNDING < low)).all():
            table = high
            scope.remove(v)
    return Factor(tuple(scope), table)
