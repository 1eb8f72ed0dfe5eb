"""A factor graph in pairwise form, which grids, graph cuts and message passing work on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.models.factor_graph import Factor, FactorGraph


@dataclass(frozen=True)
class Pairwise:
    """phi(x) = constant + sum_i unary_i(x_i) + sum_e table_e(x_i, x_j), e = (i, j), i < j.

    Attributes
    ----------
    cardinalities : shape (n,).
    offsets : where the states of each variable start in `unary`, shape (n + 1,).
    unary : log-potentials, shape (sum of cardinalities,); 0 where the model has none.
    edges : pairs of variables with at least two states each, ascending and distinct, shape (E, 2).
    tables : log-potentials of each edge, shape (k_i, k_j).
    constant : nats.
    """

    cardinalities: tuple[int, ...]
    offsets: Ints
    unary: Floats
    edges: Ints
    tables: tuple[Floats, ...]
    constant: float

    @property
    def soft(self) -> bool:
        """No configuration is forbidden."""
        return bool(np.isfinite(self.unary).all()) and all(bool(np.isfinite(t).all()) for t in self.tables)


def pairwise(graph: FactorGraph) -> Pairwise:
    """Merge the factors of a graph by scope, ignoring variables with one state, such as observed
    ones.

    Raises
    ------
    UnsuitableModel : a factor has three or more variables.
    ModelTooLarge : a number for each state of each variable takes more than the default memory.
    """
    if 8 * sum(graph.cardinalities) > DEFAULT_MEMORY:
        raise ModelTooLarge(
            f"the variables have {sum(graph.cardinalities):.3g} states", "give a model whose states fit into memory"
        )
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)]).astype(np.int64)
    unary = np.zeros(offsets[-1])
    tables: dict[tuple[int, int], Floats] = {}
    constant = 0.0
    for j, factor in enumerate(graph.factors):
        scope = [i for i in factor.scope if graph.cardinalities[i] > 1]
        table = factor.table.reshape([graph.cardinalities[i] for i in scope])
        if not scope:
            constant += float(table)
        elif len(scope) == 1:
            unary[offsets[scope[0]] : offsets[scope[0] + 1]] += table
        elif len(scope) == 2:
            low, high = sorted(scope)
            laid = table if scope[0] == low else table.T
            tables[low, high] = tables[low, high] + laid if (low, high) in tables else laid
        else:
            raise UnsuitableModel(
                f"factor {j} has {len(scope)} variables", "elimination takes such a model if its width is small"
            )
    edges = sorted(tables)
    return Pairwise(
        graph.cardinalities,
        offsets,
        unary,
        np.array(edges, np.int64).reshape(-1, 2),
        tuple(np.ascontiguousarray(tables[e]) for e in edges),
        constant,
    )


def lifted(graph: FactorGraph) -> FactorGraph:
    """An equivalent model with factors of at most two variables; its first n variables are those of
    `graph`.

    A factor of three or more becomes a variable with a state for each entry that is possible, tied
    to the variables of its scope by hard constraints. Belief propagation and its relatives on it
    are those on the factor graph.
    """
    cardinalities = list(graph.cardinalities)
    factors = []
    for factor in graph.factors:
        if sum(graph.cardinalities[i] > 1 for i in factor.scope) <= 2:
            factors.append(factor)
            continue
        entries = np.flatnonzero(factor.table > -np.inf)
        states = np.unravel_index(entries, factor.table.shape)
        extra = len(cardinalities)
        cardinalities.append(entries.size)
        factors.append(Factor((extra,), factor.table.reshape(-1)[entries]))
        for i, state in zip(factor.scope, states, strict=True):
            tie = np.full((entries.size, graph.cardinalities[i]), -np.inf)
            tie[np.arange(entries.size), state] = 0.0
            factors.append(Factor((extra, i), tie))
    return FactorGraph(cardinalities, factors, graph.observed)
