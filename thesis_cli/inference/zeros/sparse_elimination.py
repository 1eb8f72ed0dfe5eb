"""Exact ln Z of factor graphs with many zeros: variable elimination on the supports of tables.

The joins of an elimination in reverse give marginals.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import ModelTooLarge, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.elimination.order import best_order
from thesis_cli.inference.zeros.leaves import ROUNDING, summed
from thesis_cli.inference.zeros.reduction import reduced
from thesis_cli.inference.zeros.sparse_kernels import LOG_SUM, SUM
from thesis_cli.inference.zeros.sparse_tables import SMALLEST, Joiner, SparseTable, sparse_table
from thesis_cli.models.factor_graph import Factor, FactorGraph


@dataclass(frozen=True)
class SparseStep:
    """One join of an elimination.

    Attributes
    ----------
    taken : one or two tables, with logarithms as weights.
    made : their product, summed over some variables.
    """

    taken: Sequence[SparseTable]
    made: SparseTable


def marginals(steps: Sequence[SparseStep], joiner: Joiner, states: Sequence[int]) -> Floats:
    """P(x_i) of every state of every variable, shape (sum of states,), from all joins of an elimination.

    P(taken) is the product of the tables taken, over the table made, times P(made): what follows a
    step sees its variables only through the table that it makes.

    Parameters
    ----------
    steps : joins of the elimination, in order.
    joiner : joins tables within the limits of memory.
    states : number of states of each of n variables.
    """
    offsets = np.concatenate([[0], np.cumsum(states)])
    found = np.ones(offsets[-1])
    open_variables = {v for v, k in enumerate(states) if k > 1}
    beliefs: dict[int, SparseTable] = {}  # by identity of the table
    for step in reversed(steps):
        joint = _product(step.taken, joiner)
        if step.made.fields:
            belief = beliefs.pop(id(step.made))
            inverse = SparseTable(step.made.fields, step.made.keys, -step.made.weights)
            share = joiner.join(belief, inverse, belief.fields)
            joint = joiner.join(joint, share, joint.fields)
        weights = joint.weights - joint.weights.max()
        joint = SparseTable(joint.fields, joint.keys, weights - np.log(np.exp(weights).sum()))
        for v in joint.fields.keys() & open_variables:
            own = np.bincount(joint.states_of(v), np.exp(joint.weights), states[v])
            found[offsets[v] : offsets[v + 1]] = own
            open_variables.discard(v)
        for table in step.taken:
            beliefs[id(table)] = joiner.join(joint, joiner.unit(), table.fields)
    return found


def _product(tables: Sequence[SparseTable], joiner: Joiner) -> SparseTable:
    if len(tables) == 1:
        return tables[0]
    return joiner.join(tables[0], tables[1], tables[0].fields.keys() | tables[1].fields.keys())


FIRST_TRIALS = (2**18, 2**22, 2**26)
"""Bytes that the tables of the first trials may take, which show which rule fits the model."""

VARIANTS, VARIATION = 2, 0.2
"""Variants of the greedy rules, and by how much their scores vary."""

_SEED = 20231123

MANY = 8
"""From this many tables on, the two smallest are joined, and no pair is chosen by its join."""


class SparseElimination:
    """Variable elimination whose tables hold only the entries above 0.

    The order is chosen on the way, by the expected number of rows of the next join, or is that for
    full tables. Several rules try with little memory first; the better half of them, by the number
    of variables left, goes on to more.

    Parameters
    ----------
    graph : the model.
    memory : bytes that the tables may take.

    Attributes
    ----------
    rows : of the largest table of the last elimination.
    """

    name = "sparse elimination"

    def __init__(self, graph: FactorGraph, memory: int = DEFAULT_MEMORY) -> None:
        self.graph, self._memory = graph, memory
        self.rows = 0

    def log_partition_function(self, deadline: float | None = None) -> float:
        """Exact ln Z in nats; `-inf` when no configuration is possible.

        Parameters
        ----------
        deadline : `time.monotonic()` at which to stop.

        Raises
        ------
        ModelTooLarge : a table outgrows the memory.
        OutOfTime : the deadline has passed.
        """
        try:
            small, constant = summed(reduced(self.graph))
        except NoConfiguration:
            return -math.inf
        return constant + self._run(small, SUM, deadline).constant

    def marginals(self, deadline: float | None = None) -> tuple[float, Floats]:
        """ln Z, and P(x_i) of every state of every variable.

        Parameters
        ----------
        deadline : `time.monotonic()` at which to stop.

        Returns
        -------
        log_z : nats.
        probabilities : shape (sum of cardinalities,).

        Raises
        ------
        ModelTooLarge, OutOfTime : as `log_partition_function`; all tables are kept.
        NoConfiguration : no configuration is possible.
        """
        small = reduced(self.graph)
        run = self._run(small.graph, LOG_SUM, deadline, keeps=True)
        if run.constant == -math.inf:
            raise NoConfiguration()
        found = marginals(run.steps, run.joiner, small.graph.cardinalities)
        return small.constant + run.constant, small.original_marginals(found)

    def _run(self, graph: FactorGraph, how: int, deadline: float | None, *, keeps: bool = False) -> _Run:
        """The elimination of the first rule that ends within the memory; one that keeps its tables
        leaves half of it for the way back.
        """
        made = [sparse_table(f) for f in graph.factors]
        tables, constant = [table for table, _ in made], math.fsum(top for _, top in made)
        rules = _rules(graph)
        for memory in (*FIRST_TRIALS, self._memory):
            if memory > self._memory:
                continue
            left: dict[Rule, int] = {}
            for rule in rules:
                run = _Run(tables, graph.cardinalities, Joiner(memory // (1 + keeps), deadline, how), keeps)
                try:
                    run.eliminate(rule)
                except ModelTooLarge as error:
                    left[rule], reason = len(run.users), error.with_traceback(None)
                else:
                    self.rows = run.joiner.most_rows
                    run.constant += constant
                    return run
            rules = sorted(rules, key=left.__getitem__)[: max(2, len(rules) // 2)]
        try:
            raise reason
        finally:
            del reason  # together with its traceback, it would keep the tables


class _Run:
    """One elimination.

    Attributes
    ----------
    tables : those that are left, by number.
    users : the numbers of the tables that name each variable that is left.
    outlines : log2 of the number of rows of each table, and its variables as the bits of a number.
    constant : ln of what was taken out of the tables.
    steps : joins so far, if the run keeps them.
    """

    def __init__(
        self, tables: Sequence[SparseTable], states: Sequence[int], joiner: Joiner, keeps: bool = False
    ) -> None:
        self.states = states
        sizes: dict[int, int] = {}
        for v, k in enumerate(states):
            sizes[k] = sizes.get(k, 0) | 1 << v
        self._sizes = [(math.log2(k), members) for k, members in sizes.items()]
        self.joiner, self._keeps = joiner, keeps
        self.steps: list[SparseStep] = []
        self.constant = 0.0
        self.tables: dict[int, SparseTable] = {}
        self.outlines: dict[int, tuple[float, int]] = {}
        self.users: dict[int, set[int]] = {}
        self._next = 0
        if joiner.how == SUM and any(math.exp(t.weights.min()) < SMALLEST for t in tables):
            joiner.how = LOG_SUM
        for t in tables:
            weights = np.exp(t.weights) if joiner.how == SUM else t.weights
            self._add(SparseTable(t.fields, t.keys, weights))

    def eliminate(self, rule: Rule) -> None:
        scores = {v: rule(self, v) for v in self.users}
        queue = [(score, v) for v, score in scores.items()]
        heapq.heapify(queue)
        while queue:
            score, v = heapq.heappop(queue)
            if v not in self.users or scores[v] != score:
                continue
            near = {u for t in self.users[v] for u in self.tables[t].fields}
            self._eliminate(v)
            if self.constant == -math.inf:
                return
            for u in near:
                if u in self.users:
                    scores[u] = rule(self, u)
                    heapq.heappush(queue, (scores[u], u))

    def _eliminate(self, v: int) -> None:
        while v in self.users:
            numbers = sorted(self.users[v], key=lambda t: self.tables[t].size)
            if len(numbers) == 1:
                self._join(numbers[:1])
            elif len(numbers) == 2 or len(numbers) >= MANY:
                self._join(numbers[:2])
            else:
                pairs = [(a, b) for a in numbers for b in numbers if a < b]
                self._join(min(pairs, key=lambda pair: self.expected(pair)[0]))
            if self.constant == -math.inf:
                return

    def _join(self, numbers: Sequence[int]) -> None:
        """Replace one or two tables by their product without the variables that no other names."""
        tables = [self.tables[t] for t in numbers]
        inside = set(numbers)
        kept = {u for t in tables for u in t.fields if not self.users[u] <= inside}
        made = self._scaled(self.joiner.join(tables[0], tables[1] if len(tables) > 1 else self.joiner.unit(), kept))
        for t in numbers:
            self._remove(t)
        if made.size and not self._is_constant(made):  # other tables name all that is kept
            self._add(made)
        if self._keeps:
            self.steps.append(SparseStep(tables, made))

    def _scaled(self, table: SparseTable) -> SparseTable:
        """Take the largest weight out; go over to logarithms if the smallest is too small."""
        if table.size == 0:
            self.constant = -math.inf
            return table
        weights, top = table.weights, float(table.weights.max())
        if self.joiner.how != SUM:
            self.constant += top
            weights -= top
        else:
            self.constant += math.log(top)
            weights /= top
            if weights.min() < SMALLEST:
                self.joiner.how = LOG_SUM
                np.log(weights, out=weights)
                for t in self.tables.values():
                    np.log(t.weights, out=t.weights)
        return table

    def _add(self, table: SparseTable) -> None:
        if not table.fields:
            return
        self.tables[self._next] = table
        self.outlines[self._next] = math.log2(table.size), sum([1 << v for v in table.fields])
        self.joiner.used += table.bytes
        for v in table.fields:
            self.users.setdefault(v, set()).add(self._next)
        self._next += 1

    def _is_constant(self, table: SparseTable) -> bool:
        """Whether all weights are the largest one, to rounding, and none is 0, so that the table is
        not needed; for marginals it is.
        """
        if self._keeps or table.size != math.prod(self.states[v] for v in table.fields):
            return False
        least = float(table.weights.min())
        return (least if self.joiner.how == SUM else math.exp(least)) > 1 - ROUNDING

    def _remove(self, number: int) -> None:
        table = self.tables.pop(number)
        del self.outlines[number]
        if not self._keeps:
            self.joiner.used -= table.bytes
        for v in table.fields:
            self.users[v].remove(number)
            if not self.users[v]:
                del self.users[v]

    def log_size(self, scope: int) -> float:
        """log2 of the number of configurations of a set of variables."""
        found = 0.0
        for log, members in self._sizes:
            found += log * (scope & members).bit_count()
        return found

    def expected(self, numbers: Iterable[int]) -> tuple[float, int]:
        """log2 of the expected number of rows of the join of some tables, and its variables.

        It is the estimate of databases (Selinger et al., SIGMOD 1979): of the pairs of rows, one in
        d agrees, where d is the larger number of distinct states that a table has of the shared
        variables.
        """
        rows, scope = 0.0, 0
        for own, mask in sorted([self.outlines[t] for t in numbers]):
            shared = self.log_size(scope & mask)
            scope |= mask
            rows = min(rows + own - min(max(rows, own), shared), self.log_size(scope))
        return rows, scope


Rule = Callable[[_Run, int], tuple[float, float]]
"""The score of a variable in an elimination; the lowest goes first."""


def _least_join(run: _Run, v: int) -> tuple[float, float]:
    rows, scope = run.expected(run.users[v])
    return rows, scope.bit_count()


def _least_growth(run: _Run, v: int) -> tuple[float, float]:
    rows, scope = run.expected(run.users[v])
    after = min(rows, run.log_size(scope & ~(1 << v)))
    return 2.0 ** min(after, 1000) - sum([run.tables[t].size for t in run.users[v]]), rows


def _in_order(order: Sequence[int]) -> Rule:
    """The rule that follows an order."""
    at = {v: j for j, v in enumerate(order)}
    return lambda _, v: (at[v], 0)


def _varied(rule: Rule, factors: Floats) -> Rule:
    """A rule whose scores are multiplied by a factor for each variable."""

    def varied(run: _Run, v: int) -> tuple[float, float]:
        first, second = rule(run, v)
        return first * factors[v], second

    return varied


def _rules(graph: FactorGraph) -> list[Rule]:
    """The rules to try: two greedy ones, the order for full tables, and variants of the former."""
    planned = best_order(graph.cardinalities, [f.scope for f in graph.factors])
    rng = np.random.default_rng(_SEED)
    found = [_least_join, _least_growth, _in_order(planned.order)]
    for _ in range(VARIANTS):
        factors = 1 + VARIATION * rng.random(len(graph.cardinalities))
        found += [_varied(_least_join, factors), _varied(_least_growth, factors)]
    return found


def prepare() -> None:
    """Call every kernel, so that it is compiled."""
    table = np.where(np.eye(3) > 0, -np.inf, 0.0)
    ring = [Factor((i, (i + 1) % 5), table) for i in range(5)]
    SparseElimination(FactorGraph([3] * 5, [*ring, Factor((0,), np.array([0.0, 1.0, -np.inf]))])).marginals()
