"""The process of a cost function search: tables to integer costs, toulbar2 on them."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.models.factor_graph import Factor

TABLE_BITS, TOTAL_BITS = 52, 56
"""Bits of the largest cost of a table, which toulbar2 takes as a double, and of the largest sum of
costs; toulbar2's largest cost is 5.1e17, about 2^58.8."""

LARGEST = 1e290
"""Costs in nats beyond this count as this: a bound from them still holds."""

MOST_SECONDS = 10**6
"""A limit of the library's own that is never reached; setting it makes the library heed the signal.
"""


@dataclass(frozen=True)
class MapProblem:
    """A MAP problem of the prepared model.

    Attributes
    ----------
    noise : added to the unary log-potentials, shape (sum of cardinalities,).
    known : log-potential, noise included, of a configuration that is known; -inf if none is.
    backtracks : the most that the search may take; None for no limit.
    forbidden : configurations that are not wanted, shape (any, n).
    """

    noise: Floats
    known: float
    backtracks: int | None
    forbidden: Ints


@dataclass(frozen=True)
class Found:
    """Outcome of a search.

    Attributes
    ----------
    states : the best configuration found, shape (n,); None if none was found at or above the known
        log-potential.
    bound : upper bound on the log-potential of every configuration that is not forbidden, -inf if
        there is none.
    complete : the search came to its end.
    """

    states: Ints | None
    bound: float
    complete: bool


@dataclass(frozen=True)
class _Group:
    """Factors of one shape: their scopes, shape (m, arity), and tables, shape (m, *shape)."""

    scopes: Ints
    tables: Floats


class Costs:
    """Costs of a model in whole multiples of a unit, a power of two.

    A factor's entry of log-potential t costs (top - t) / unit, rounded down, where top is the
    largest of its table. So the cost of a configuration, in units, is at most (sum of tops - phi) /
    unit, and less by at most the number of factors.
    """

    def __init__(self, groups: Sequence[_Group], constant: float, known: float) -> None:
        axes = [tuple(range(1, g.tables.ndim)) for g in groups]
        tops = [g.tables.max(axis=a) for g, a in zip(groups, axes, strict=True)]
        self.total = math.fsum([constant, *(t for top in tops for t in top.tolist())])
        slack = 2**-50 * (abs(self.total) + sum(float(np.abs(top).sum()) for top in tops))
        atmost = self.total - known + slack
        nats = []
        for group, top in zip(groups, tops, strict=True):
            with np.errstate(over="ignore"):
                cost = top.reshape(-1, *[1] * (group.tables.ndim - 1)) - group.tables
            cost[cost > LARGEST] = LARGEST
            cost[(group.tables == -np.inf) | (cost > atmost)] = np.inf
            nats.append(cost)
        highest = [np.where(c < np.inf, c, 0).max(axis=a) for c, a in zip(nats, axes, strict=True)]
        largest = max((float(h.max()) for h in highest if h.size), default=0.0)
        whole = math.fsum(x for h in highest for x in h.tolist())
        least = max(largest / 2**TABLE_BITS, whole / 2**TOTAL_BITS)
        self.unit = math.ldexp(1.0, math.frexp(least)[1]) if least > 0 else 1.0  # a power of 2
        self.slack = slack + 2**-50 * whole
        self.tables = [np.floor(cost / self.unit) for cost in nats]
        self.scopes = [g.scopes for g in groups]
        self.ceiling = math.floor(atmost / self.unit) + 1 if known > -math.inf else None

    def of(self, states: Ints) -> int:
        """The cost of a configuration in units."""
        total = 0
        for scopes, tables in zip(self.scopes, self.tables, strict=True):
            rows = np.arange(len(scopes))
            total += sum(map(int, tables[(rows, *states[scopes].T)].tolist()))
        return total

    def bound(self, cost: int) -> float:
        """Upper bound on the log-potential of configurations of this cost or more."""
        return self.total - cost * self.unit + self.slack


class Model:
    """A factor graph without its variables of one state, and with factors grouped by shape."""

    def __init__(self, cardinalities: Sequence[int], factors: Sequence[Factor]) -> None:
        self.cardinalities = np.array(cardinalities, np.int64)
        self.kept = np.flatnonzero(self.cardinalities > 1)
        self.starts = np.cumsum(self.cardinalities) - self.cardinalities
        place = np.cumsum(self.cardinalities > 1) - 1
        self.constant = 0.0
        self.unary = np.zeros(int(self.cardinalities.sum()))
        shapes: dict[tuple[int, ...], list[tuple[list[int], Floats]]] = {}
        for factor in factors:
            scope = [i for i in factor.scope if cardinalities[i] > 1]
            table = factor.table.reshape([cardinalities[i] for i in scope])
            if not scope:
                self.constant += float(table)
            elif len(scope) == 1:
                self.unary[self.starts[scope[0]] : self.starts[scope[0]] + table.size] += table
            else:
                shapes.setdefault(table.shape, []).append((place[scope].tolist(), table))
        self.groups = [_Group(np.array([s for s, _ in m]), np.stack([t for _, t in m])) for m in shapes.values()]

    def costs(self, problem: MapProblem) -> Costs | None:
        """The costs of a problem; None if a variable has no possible state."""
        unary = self.unary + problem.noise
        alone = float(unary[self.starts[self.cardinalities == 1]].sum())
        groups = []
        sizes = self.cardinalities[self.kept]
        for size in np.unique(sizes):
            chosen = np.flatnonzero(sizes == size)
            tables = unary[self.starts[self.kept[chosen], None] + np.arange(size)]
            groups.append(_Group(chosen[:, None], tables))
        if alone == -math.inf or any((g.tables.max(axis=1) == -np.inf).any() for g in groups):
            return None
        return Costs([*groups, *self.groups], self.constant + alone, problem.known)


def searches(
    problems: Iterator[MapProblem], cardinalities: Sequence[int], factors: Sequence[Factor]
) -> Iterator[Found | None]:
    """Solve one problem after another, once ready, which None says; the signal SIGVTALRM ends a
    search with what it has.

    Parameters
    ----------
    problems : problems of one model, which are read as they are solved.
    cardinalities, factors : the model: states of each of n variables, and tables in nats.
    """
    import pytoulbar2  # noqa: F401 - before the clock starts

    late: list[int] = []
    model = Model(cardinalities, factors)
    yield None
    for problem in problems:
        late.clear()
        signal.signal(signal.SIGVTALRM, lambda number, _: late.append(number))
        yield _search(model, problem, late)


def _search(model: Model, problem: MapProblem, late: list[int]) -> Found:
    costs = model.costs(problem)
    if costs is None:
        return Found(None, -math.inf, True)
    if not model.kept.size:
        gone = bool(len(problem.forbidden))
        return Found(None if gone else np.zeros_like(model.cardinalities), -math.inf if gone else costs.bound(0), True)
    if late:
        return Found(None, costs.bound(0), False)
    found, lowest, complete = _minimum(model, costs, problem)
    states = None
    if found is not None:
        states = np.zeros(len(model.cardinalities), np.int64)
        states[model.kept] = found
        if complete:
            lowest = costs.of(found)
    elif complete:
        if costs.ceiling is None:
            return Found(None, -math.inf, True)
        lowest = costs.ceiling
    return Found(states, costs.bound(lowest), complete)


def _minimum(model: Model, costs: Costs, problem: MapProblem) -> tuple[Ints | None, int, bool]:
    """The best configuration found, a lower bound on the costs, and whether the search ended."""
    import pytoulbar2
    from pytoulbar2 import pytb2

    network = pytoulbar2.CFN()
    pytb2.option.limited = False
    pytb2.option.backtrackLimit = 2**63 - 1 if problem.backtracks is None else problem.backtracks
    network.CFN.timer(MOST_SECONDS)
    try:
        _post(network, model, costs, problem.forbidden)
        if costs.ceiling is not None:
            network.CFN.wcsp.updateUb(costs.ceiling)
        answer = network.Solve()
    except pytb2.Contradiction:
        return None, 0, True
    complete = not pytb2.option.limited
    states = np.array(answer[0], np.int64) if answer is not None else None
    bound = network.GetDDualBound()
    rounding = 2.0 ** (TOTAL_BITS - 50)  # the bound is a double
    return states, max(0, math.floor(bound - rounding)) if math.isfinite(bound) else 0, complete


def _post(network: Any, model: Model, costs: Costs, forbidden: Ints) -> None:
    from pytoulbar2 import pytb2

    problem = network.CFN.wcsp
    for i, size in enumerate(model.cardinalities[model.kept].tolist()):
        problem.makeEnumeratedVariable(str(i), 0, size - 1)
    for scopes, tables in zip(costs.scopes, costs.tables, strict=True):
        arity = scopes.shape[1]
        if arity == 1:
            problem.postUnaryVecConstraints(scopes[:, 0].copy(), tables, False)
        elif arity == 2:
            problem.postMultBinaryVecConstraints(scopes, tables, False)
        elif arity == 3:
            problem.postMultTernaryVecConstraints(scopes, tables, False)
        else:
            for scope, table in zip(scopes.tolist(), tables, strict=True):
                _post_wide(problem, scope, table, pytb2.MAX_COST)
    for states in forbidden:
        _forbid(problem, states[model.kept].tolist(), model.cardinalities[model.kept].tolist())


def _post_wide(problem: Any, scope: list[int], table: Floats, forbidden: int) -> None:
    """A table of four or more variables, by the entries that differ from the most frequent cost."""
    costs, counts = np.unique(table, return_counts=True)
    usual = costs[counts.argmax()]
    places = np.argwhere(table != usual)
    values = [forbidden if cost == math.inf else int(cost) for cost in table[tuple(places.T)].tolist()]
    index = problem.postNaryConstraintBegin(scope, forbidden if usual == math.inf else int(usual), len(values))
    post = problem.postNaryConstraintTuple
    for states, cost in zip(places.tolist(), values, strict=True):
        post(index, states, cost)
    problem.postNaryConstraintEnd(index)


def _forbid(problem: Any, states: list[int], sizes: list[int]) -> None:
    """Some variable must have another state than here: at least one of those other states holds."""
    others: list[Any] = [1]
    for state, size in zip(states, sizes, strict=True):
        others.append(size - 1)
        for other in range(size):
            if other != state:
                others += [other, 1]
    problem.postKnapsackConstraint(list(range(len(states))), " ".join(map(str, others)), kp=True)


def entries(cardinalities: Sequence[int], factors: Sequence[Factor]) -> tuple[int, int]:
    """Numbers of entries in tables of up to three variables, and in wider ones."""
    small = wide = 0
    for factor in factors:
        if sum(cardinalities[i] > 1 for i in factor.scope) > 3:
            wide += factor.table.size
        else:
            small += factor.table.size
    return small, wide
