"""A factor graph as a propositional formula in conjunctive normal form with weighted literals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.inference.table_clauses import LOWEST, MOST_CLAUSES, Template, template
from thesis_cli.models.factor_graph import FactorGraph

Literals = npt.NDArray[np.int32]


@dataclass(frozen=True)
class WeightedFormula:
    """A formula whose weighted count is the partition function of a model.

    Attributes
    ----------
    variables : number of propositional variables, numbered from 1.
    clauses : number of clauses.
    literals : the clauses one after another, each ended by 0; `-l` is the negation of `l`.
    weighted : variables whose literals have weights other than 1, shape (m,).
    weights : weights of each such variable and of its negation, shape (m, 2).
    shift : ln Z = `shift` + the logarithm of the weighted count.
    highest, lowest : bounds of the logarithm of the weighted count, if it is not 0.
    """

    variables: int
    clauses: int
    literals: Literals
    weighted: Literals
    weights: Floats
    shift: float
    highest: float
    lowest: float


def weighted_formula(graph: FactorGraph) -> WeightedFormula:
    """Translate a model; a variable of one state takes no part.

    Raises
    ------
    ModelTooLarge : there are more than `MOST_CLAUSES` clauses, a table has too many entries, or
        the entries of one table differ by too much.
    """
    return _Translation(graph).formula()


class _Translation:
    def __init__(self, graph: FactorGraph) -> None:
        self._graph = graph
        self._states = graph.cardinalities
        self._starts = np.cumsum([1, *(_literal_count(k) for k in self._states)]).tolist()
        self._parts: list[Literals] = []
        self._clauses = sum(1 + k * (k - 1) // 2 for k in self._states if k > 2)
        self._check_clauses()
        self._next: int = self._starts[-1]
        self._shift: list[float] = []
        self._lowest = 0.0
        self._weighted: list[Literals] = []
        self._weights: list[Floats] = []
        self._templates: dict[tuple[tuple[int, ...], bytes], Template] = {}

    def formula(self) -> WeightedFormula:
        for i, k in enumerate(self._states):
            if k > 2:
                self._exactly_one(self._starts[i], k)
        for scope, table in _combined(self._graph).items():
            if table.max() == -np.inf:
                self._forbid_all()
            elif not scope:
                self._shift.append(float(table))
            elif len(scope) == 1 and _narrow(table):
                self._unary(scope[0], table)
            else:
                self._table(scope, table)
        empty, none = np.empty(0, np.int32), np.empty((0, 2))
        return WeightedFormula(
            self._next - 1,
            self._clauses,
            np.concatenate([empty, *self._parts]),
            np.concatenate([empty, *self._weighted]),
            np.concatenate([none, *self._weights]),
            math.fsum(self._shift),
            sum(math.log(k) for k in self._states),
            self._lowest,
        )

    def _check_clauses(self) -> None:
        if self._clauses > MOST_CLAUSES:
            raise ModelTooLarge(
                f"more than {MOST_CLAUSES:,} clauses for model counting", "use another exact method, or a bound"
            )

    def _add(self, literals: Literals, clauses: int) -> None:
        self._parts.append(literals)
        self._clauses += clauses
        self._check_clauses()

    def _exactly_one(self, start: int, k: int) -> None:
        """One state holds; these clauses are counted beforehand."""
        first, second = np.triu_indices(k, 1)
        pairs = np.stack([-start - first, -start - second, np.zeros(len(first))], axis=1)
        self._parts += [np.array([*range(start, start + k), 0], np.int32), pairs.astype(np.int32).reshape(-1)]

    def _forbid_all(self) -> None:
        self._add(np.array([self._next, 0, -self._next, 0], np.int32), 2)
        self._next += 1

    def _unary(self, i: int, table: Floats) -> None:
        """The table of one variable is the weights of its literals."""
        start, top = self._starts[i], float(table.max())
        self._shift.append(top)
        possible = table > -np.inf
        self._lowest += float(table[possible].min()) - top
        k = len(table)
        literals = np.array([-start, start] if k == 2 else range(start, start + k), np.int32)
        forbidden = np.stack([-literals[~possible], np.zeros(k - possible.sum(), np.int32)], axis=1)
        self._add(forbidden.reshape(-1).astype(np.int32), len(forbidden))
        weights = np.exp(np.where(possible, table - top, 0.0))
        pairs = weights[::-1].reshape(1, 2) if k == 2 else np.stack([weights, np.ones(k)], axis=1)
        chosen = (pairs != 1).any(axis=1)
        self._weighted.append(np.arange(start, start + len(pairs), dtype=np.int32)[chosen])
        self._weights.append(pairs[chosen])

    def _table(self, scope: tuple[int, ...], table: Floats) -> None:
        key = (table.shape, table.tobytes())
        found = self._templates.get(key)
        if found is None:
            found = self._templates[key] = template(table)
        axes = [np.arange(self._starts[i], self._starts[i + 1]) for i in scope]
        own = np.arange(self._next, self._next + len(found.logs))
        names = np.concatenate([[0], *axes, own]).astype(np.int32)
        self._next += len(found.logs)
        self._add(np.sign(found.literals) * names[np.abs(found.literals)], found.clauses)
        self._shift.append(found.shift)
        chosen = found.logs < 0
        if chosen.any():
            logs, literals = found.logs[chosen], own[chosen].astype(np.int32)
            self._weighted.append(literals)
            self._weights.append(np.stack([np.exp(logs), -np.expm1(logs)], axis=1))
            self._lowest += float(logs.sum())


def _literal_count(states: int) -> int:
    return 0 if states == 1 else 1 if states == 2 else states


def _narrow(table: Floats) -> bool:
    """Whether the possible entries are close enough to be weights of literals."""
    return bool(table[table > -np.inf].min() - table.max() > LOWEST)


def _combined(graph: FactorGraph) -> dict[tuple[int, ...], Floats]:
    """Tables by ascending scope, without variables of one state; tables of equal scope are added."""
    found: dict[tuple[int, ...], Floats] = {}
    for factor in graph.factors:
        scope = [i for i, k in zip(factor.scope, factor.table.shape, strict=True) if k > 1]
        order = sorted(range(len(scope)), key=scope.__getitem__)
        table = factor.table.reshape([k for k in factor.table.shape if k > 1]).transpose(order)
        key = tuple(scope[a] for a in order)
        found[key] = found[key] + table if key in found else table
    return found
