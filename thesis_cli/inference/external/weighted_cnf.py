"""A factor graph as a propositional formula in conjunctive normal form with weighted literals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.inference.external.table_clauses import LOWEST, Template, digits, template
from thesis_cli.models.factor_graph import FactorGraph

MOST_CLAUSES = 2**21
"""Largest number of clauses."""

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
        self._starts = np.cumsum([1, *map(digits, self._states)]).tolist()
        self._parts: list[Literals] = []
        self._clauses = 0
        self._next: int = self._starts[-1]
        self._shift: list[float] = []
        self._lowest = 0.0
        self._weighted: list[Literals] = []
        self._weights: list[Floats] = []
        self._templates: dict[tuple[tuple[int, ...], bytes], Template] = {}

    def formula(self) -> WeightedFormula:
        for i, k in enumerate(self._states):
            self._only_states(self._starts[i], k)
        for scope, table in _combined(self._graph).items():
            if table.max() == -np.inf:
                self._forbid_all()
            elif not scope:
                self._shift.append(float(table))
            elif table.shape == (2,) and _narrow(table):
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

    def _add(self, literals: Literals, clauses: int) -> None:
        self._parts.append(literals)
        self._clauses += clauses
        if self._clauses > MOST_CLAUSES:
            raise ModelTooLarge(
                f"more than {MOST_CLAUSES:,} clauses for model counting", "use another exact method, or a bound"
            )

    def _only_states(self, start: int, k: int) -> None:
        """Forbid digits above k - 1: those that agree with it but have 1 at one of its zeros."""
        last = f"{k - 1:0{digits(k)}b}" if k > 1 else ""
        for at in (at for at, digit in enumerate(last) if digit == "0"):
            ones = [-start - i for i in range(at) if last[i] == "1"]
            self._add(np.array([*ones, -start - at, 0], np.int32), 1)

    def _forbid_all(self) -> None:
        self._add(np.array([self._next, 0, -self._next, 0], np.int32), 2)
        self._next += 1

    def _unary(self, i: int, table: Floats) -> None:
        """The table of a variable of two states is the weights of its literals."""
        literal, top = self._starts[i], float(table.max())
        self._shift.append(top)
        possible = table > -np.inf
        if possible.all() and table[0] != table[1]:
            self._lowest += float(table.min()) - top
            self._weighted.append(np.array([literal], np.int32))
            self._weights.append(np.exp(table[None, ::-1] - top))
        elif not possible.all():
            self._add(np.array([literal if possible[1] else -literal, 0], np.int32), 1)

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
