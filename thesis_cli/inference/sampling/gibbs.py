"""Gibbs sampling of many chains at once along a path from the unary factors to the whole model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.base.rounding import log_sum_exp
from thesis_cli.inference.enumeration import starts
from thesis_cli.models.factor_graph import Factor, FactorGraph

DEPTH = 20.0
"""Distance of an impossible entry of a table from its least finite one before the end of the path, in nats."""
MOST = 1e100
"""Largest size of a log-potential, so that sums over tables and their squares stay finite."""


class Chains(NamedTuple):
    """States of chains.

    Attributes
    ----------
    states : shape (chains, n).
    entries : the entry of each table that the states select, shape (chains, F).
    """

    states: Ints
    entries: Ints


class GibbsPath:
    """The distributions p_b(x) ~ exp(u(x) + b r(x)), 0 <= b <= 1, and Gibbs sampling of them.

    u is the sum of the unary factors and r that of the others, so that p_0 is a product, whose
    normaliser is known, and p_1 is the model. An impossible entry of r counts as `DEPTH` nats below
    the least finite one of its table, so that chains get past it; `possible` tells whether none is
    selected. Without such entries p_1 is the model itself.

    Parameters
    ----------
    graph : any model.
    chains : most chains at a time, for which the memory is checked.

    Attributes
    ----------
    log_z0 : ln of the normaliser of p_0.
    moves : number of variables that other factors than unary ones name; sweeps move these.
    hard : whether r forbids anything.

    Raises
    ------
    ModelTooLarge : the states and entries of the chains exceed the default memory.
    NoConfiguration : the unary factors forbid all states of a variable.
    InputError : a log-potential is larger than `MOST`.
    """

    def __init__(self, graph: FactorGraph, chains: int) -> None:
        from thesis_cli.inference.sampling.gibbs_kernels import Uses

        self._unary, self._factors = split(graph)
        n = len(self._unary)
        if (needed := 8 * chains * (2 * n + len(self._factors))) > DEFAULT_MEMORY:
            raise ModelTooLarge(f"{chains:,} chains take {bytes_text(needed)}", "take fewer")
        for table in (*self._unary, *(f.table for f in self._factors)):
            if (largest := float(np.abs(table[np.isfinite(table)]).max(initial=0.0))) > MOST:
                raise InputError(f"a log-potential has the size {largest:.3g}", f"Gibbs sampling takes up to {MOST:g}")
        norms = [float(log_sum_exp(table)) for table in self._unary]
        if min(norms) == -np.inf:
            raise NoConfiguration()
        self.log_z0 = float(sum(norms))
        self._starts = starts([f.table.size for f in self._factors])
        flat = [f.table.reshape(-1) for f in self._factors]
        self._zeros: Bools = np.isneginf(np.concatenate([np.empty(0), *flat]))
        self.hard = bool(self._zeros.any())
        self._soft = np.concatenate([np.empty(0), *(np.where(np.isneginf(t), _floor(t), t) for t in flat)])
        self._strides = [strides(f.table.shape) for f in self._factors]
        used: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        for f, factor in enumerate(self._factors):
            for i, stride in zip(factor.scope, self._strides[f], strict=True):
                used[i].append((f, stride))
        variables = [i for i in range(n) if used[i]]
        listed = np.array([pair for i in variables for pair in used[i]], np.int64).reshape(-1, 2)
        self._uses = Uses(
            np.array(variables, np.int64),
            starts([table.size for table in self._unary]),
            np.concatenate(self._unary),
            starts([len(used[i]) for i in variables]),
            np.ascontiguousarray(listed[:, 0]),
            np.ascontiguousarray(listed[:, 1]),
        )
        self.moves = len(variables)
        self._most = max(table.size for table in self._unary)

    def start(self, rng: np.random.Generator, count: int) -> Chains:
        """Independent states of `count` chains from p_0."""
        states = np.zeros((count, len(self._unary)), np.int64)
        for i, table in enumerate(self._unary):
            if table.size > 1:
                sums = np.exp(table - table.max()).cumsum()
                states[:, i] = np.searchsorted(sums[:-1], rng.random(count) * sums[-1], side="right")
        return self.at(states)

    def at(self, states: Ints) -> Chains:
        """Chains in given states, shape (chains, n)."""
        states = np.ascontiguousarray(states, np.int64)
        entries = np.zeros((len(states), len(self._factors)), np.int64)
        for f, factor in enumerate(self._factors):
            entries[:, f] = self._starts[f] + states[:, list(factor.scope)] @ np.array(self._strides[f], np.int64)
        return Chains(states, entries)

    def rest(self, chains: Chains) -> Floats:
        """r of each chain in nats, with impossible entries at their depth, shape (chains,)."""
        return np.asarray(self._soft[chains.entries].sum(axis=1))

    def possible(self, chains: Chains) -> Bools:
        """Whether no table forbids the states of each chain, shape (chains,)."""
        return np.asarray(~self._zeros[chains.entries].any(axis=1))

    def sweep(self, chains: Chains, b: float, rng: np.random.Generator) -> None:
        """Draw each variable anew from p_b given the others, in place; p_b stays invariant."""
        from thesis_cli.inference.sampling.gibbs_kernels import sweep

        uniforms = rng.random((len(chains.states), self.moves))
        sweep(self._uses, b * self._soft, uniforms, np.empty(self._most), chains.states, chains.entries)


def split(graph: FactorGraph) -> tuple[list[Floats], list[Factor]]:
    """Unary log-potentials of each variable, and one factor for each larger scope, without the
    variables that have one state."""
    unary = [np.zeros(k) for k in graph.cardinalities]
    tables: dict[tuple[int, ...], Floats] = {}
    for factor in graph.factors:
        scope = [i for i in factor.scope if graph.cardinalities[i] > 1]
        table = factor.table.reshape([graph.cardinalities[i] for i in scope])
        if len(scope) <= 1:
            i = scope[0] if scope else 0
            unary[i] = unary[i] + table
            continue
        order = np.argsort(scope)
        key = tuple(scope[i] for i in order)
        laid = np.transpose(table, order)
        tables[key] = tables[key] + laid if key in tables else laid
    return unary, [Factor(scope, np.ascontiguousarray(table)) for scope, table in tables.items()]


def _floor(table: Floats) -> float:
    return float(table[np.isfinite(table)].min(initial=0.0)) - DEPTH


def strides(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
