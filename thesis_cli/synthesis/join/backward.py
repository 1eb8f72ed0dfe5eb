"""From the output backward: lists that lead to it by operations that can be inverted, and what every other
operation that can stand above ZIPWITH demands of the list below.

Necessary conditions on the lengths and items of a list, taken backward through the operations above
it, say whether these can give the output.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import chain, product
from math import isqrt
from random import Random

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.synthesis.join import roots_kernels as kernels
from thesis_cli.synthesis.language.dsl import (
    DEEPCODER,
    INT,
    LAMBDAS,
    LIST,
    OPERATIONS,
    PREDICATE,
    WIDEST,
    Operation,
    Semantics,
    Value,
)
from thesis_cli.synthesis.language.packing import WIDTH
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search.bottom_up import Bank, Tree

Numbers = tuple[int, ...]


def _unscan(undo: Callable[[int, int], int]) -> Callable[[Operation, Numbers], Numbers]:
    """Each number from the one of the result before it and the one at its place."""
    return lambda operation, ys: ys[:1] + tuple(map(undo, ys, ys[1:]))


def _shift(operation: Operation, ys: Numbers) -> Numbers:
    assert operation.f is not None
    return tuple(y - operation.f.by for y in ys)


def _scale(operation: Operation, ys: Numbers) -> Numbers:
    assert operation.f is not None
    return tuple(y // operation.f.by for y in ys)


INVERSES: dict[str, Callable[[Operation, Numbers], Numbers]] = {
    "map shift": _shift,
    "map scale": _scale,
    "map negate": lambda operation, ys: tuple(-y for y in ys),
    "reverse": lambda operation, ys: ys[::-1],
    "scanl1 plus": _unscan(lambda before, y: y - before),
    "scanl1 minus": _unscan(lambda before, y: before - y),
}
"""By the rule of the kernel: the only list that can have a result; it need not have it."""

assert {o.rule(o.function.kernel) for o in OPERATIONS} >= set(INVERSES)


def invert(operation: Operation, results: tuple[Value, ...], semantics: Semantics) -> tuple[Value, ...] | None:
    """The lists to which an operation gives some lists, one for each example.

    Returns
    -------
    The lists, in range; None if there are none, or if the operation can give a list to several.
    """
    inverse = INVERSES.get(operation.rule(operation.function.kernel))
    if inverse is None:
        return None
    found = []
    for result in results:
        assert not isinstance(result, int)
        value = inverse(operation, result)
        if not semantics.holds(value) or semantics.apply(operation, value) != result:
            return None
        found.append(value)
    return tuple(found)


Path = tuple[tuple[int, ...], ...]
"""Steps from the list of a root to a goal: an operation, or ZIPWITH, the row of the bank that it
takes and whether that is its second argument."""


@dataclass(frozen=True)
class Goal:
    """Condition on a list, on each example, under which the steps of a path give the output."""

    values: tuple[Value, ...]
    path: Path = ()


def wrap(tree: Tree, path: Path) -> Tree:
    """The tree of the root, from one of the goal."""
    for id, *other in reversed(path):
        if other:
            row, second = other
            tree = (id, tree, row) if second else (id, row, tree)
        else:
            tree = (id, tree)
    return tree


@lru_cache(16)
def unwound(outputs: tuple[Value, ...], semantics: Semantics, depth: int) -> tuple[tuple[Goal, ...], ...]:
    """The outputs, which are lists, and what inverted operations make of them.

    Returns
    -------
    Goals by the number of operations, from 0 to `depth`; a goal has the fewest. Searches for several
    parts of one task ask for the same ones.
    """
    found = [[Goal(outputs)]]
    known = {outputs}
    for _ in range(depth):
        longer = []
        for goal in found[-1]:
            for operation in semantics.language.operations:
                values = invert(operation, goal.values, semantics)
                if values is not None and values not in known:
                    known.add(values)
                    longer.append(Goal(values, (*goal.path, (operation.id,))))
        found.append(longer)
    return tuple(map(tuple, found))


Interval = tuple[int, int]
"""Least and greatest number."""

WITHIN, ENDS, PARITY = range(3)
"""A demand on an item: in an interval; one of its two ends; or its lower end, or of the parity of
its upper end."""

MOST_ITEMS = 4
"""Items on which a condition on all items is tested."""

FIRST = 6
"""Items with conditions of their own that are tested."""

TOTAL, LEAST, MOST = range(3)
SUM, COUNTS, BOTH = 0, 1, 5
"""Totals, least items and greatest items; kinds of totals, as `roots_kernels.TOTALS` has them: the
sum, and for each predicate the number of items for which it holds, alone and with their sum."""

PREDICATES = [f.name for f in LAMBDAS if f.type == PREDICATE]

Item = tuple[int, int, int]
"""A kind and an interval."""


@dataclass(frozen=True)
class Need:
    """Necessary conditions on a list, in one example.

    Attributes
    ----------
    lengths : least and greatest length.
    items : conditions on items by place, if the list has them.
    every : condition on every item.
    last : condition on the last item; None if there is none.
    odd : required parity of all items; None if there is none.
    total : a total over all items or an extreme, its kind, and what it must be; None if there is no
        condition.
    """

    lengths: Interval
    items: Mapping[int, Item]
    every: Interval
    last: Interval | None = None
    odd: int | None = None
    total: tuple[int, int, int] | None = None

    @property
    def possible(self) -> bool:
        """Whether there is such a list, as far as intervals show."""
        least, most = self.lengths
        musts = [item for i, item in self.items.items() if i < least]
        return least <= most and all(low <= high or kind == PARITY for kind, low, high in musts)

    @property
    def tests(self) -> list[tuple[int, Item]]:
        """Conditions on items, by place; those on all items for the first few."""
        found = {i: self.items[i] for i in sorted(self.items)[:FIRST]}
        for i in range(min(MOST_ITEMS, self.lengths[1])):
            kind, low, high = found.get(i, (WITHIN, *self.every))
            if kind == WITHIN:
                found[i] = kind, max(low, self.every[0]), min(high, self.every[1])
            if self.odd is not None and i not in self.items:
                found[i] = PARITY, 0, self.odd
        return sorted(found.items())


@dataclass(frozen=True)
class Needs:
    """Rules that take conditions backward through an operation.

    Attributes
    ----------
    semantics : range of numbers, length of lists, and rounding.
    longest : length of the longest input list of the example.
    """

    semantics: Semantics
    longest: int

    @cached_property
    def all(self) -> Interval:
        """Every number."""
        return self.semantics.low, self.semantics.high

    def exactly(self, value: tuple[int, ...]) -> Need:
        """One list."""
        return Need((len(value), len(value)), {i: (WITHIN, x, x) for i, x in enumerate(value)}, self.all)

    def above(self, operation: Operation, output: Value, k: int = 0) -> Need | None:
        """Conditions on the list from which an operation gives an output, with number k if it takes
        one; None if there is none."""
        need: Need | None = None
        if isinstance(output, tuple):
            if operation.function.name == "FILTER" and not all(map(operation.f.apply, output)):  # type: ignore[union-attr]
                return None
            if operation.function.name == "SORT" and list(output) != sorted(output):
                return None
            need = self.back(operation, self.exactly(output), k)
            total = None
            if operation.function.name == "FILTER":
                total = TOTAL, BOTH + self._predicate(operation), 1000 * len(output) + sum(output)
            elif operation.function.name == "SORT":
                total = TOTAL, SUM, sum(output)
            return need and replace(need, total=total)
        some, point = (1, self.longest), (output, output)
        match operation.function.name:
            case "HEAD":
                need = Need(some, {0: (WITHIN, *point)}, self.all)
            case "LAST":
                need = Need(some, {}, self.all, last=point)
            case "ACCESS":
                need = Need((k + 1, self.longest), {k: (WITHIN, *point)}, self.all) if k >= 0 else None
            case "MINIMUM":
                need = Need(some, {}, (output, self.all[1]), total=(LEAST, 0, output))
            case "MAXIMUM":
                need = Need(some, {}, (self.all[0], output), total=(MOST, 0, output))
            case "SUM":
                need = Need((int(output != 0), self.longest), {}, self.all, total=(TOTAL, SUM, output))
            case "COUNT":
                total = TOTAL, COUNTS + self._predicate(operation), output
                need = Need((output, self.longest), {}, self.all, total=total)
                if output == 0:
                    need = replace(need, every=self._fails(operation), odd=self._odd(operation))
                elif output < 0:
                    need = None
        return need if need and need.possible else None

    def back(self, operation: Operation, need: Need, k: int = 0) -> Need | None:
        """Conditions on the list that an operation takes, from those on the list that it gives."""
        found: Need | None
        match operation.function.name:
            case "MAP":
                found = self._map(operation, need)
            case "REVERSE":
                found = self._reverse(need)
            case "SORT":
                found = self._sort(need)
            case "FILTER":
                found = self._filter(operation, need)
            case "TAKE":
                found = self._take(need, k)
            case "DROP":
                found = self._drop(need, k)
            case "SCANL1":
                found = self._scan(operation, need)
            case _:  # no operation lengthens a list
                found = Need((need.lengths[0], self.longest), {}, self.all)
        return found if found and found.possible else None

    def _fails(self, operation: Operation) -> Interval:
        """Bounds of the numbers for which a predicate fails."""
        low, high = self.all
        rule = operation.f.rule  # type: ignore[union-attr]
        return {"positive": (low, min(0, high)), "negative": (max(0, low), high)}.get(rule, self.all)

    def _predicate(self, operation: Operation) -> int:
        return PREDICATES.index(operation.f.name)  # type: ignore[union-attr]

    def _odd(self, operation: Operation) -> int | None:
        """The parity of the numbers for which a predicate fails."""
        f = operation.f
        return 1 - f.by if f and f.rule == "parity" else None

    def _sources(self, operation: Operation, bounds: Interval) -> Interval:
        """Bounds of the numbers that a lambda takes into an interval; crossed if there are none."""
        lambda_ = operation.f
        assert lambda_ is not None
        apply = lambda_.floor if lambda_.floor and self.semantics.division == "floor" else lambda_.apply
        low, high = bounds
        if lambda_.rule == "negate":
            return max(-high, self.all[0]), min(-low, self.all[1])
        if lambda_.rule == "square":
            end = isqrt(max(high, 0))
            return (1, 0) if high < 0 or (low == high != end**2) else (max(-end, self.all[0]), min(end, self.all[1]))
        numbers = range(self.all[0], self.all[1] + 1)  # all others never fall
        first, last = bisect_left(numbers, low, key=apply), bisect_right(numbers, high, key=apply)
        return self.all[0] + first, self.all[0] + last - 1

    def _map(self, operation: Operation, need: Need) -> Need:
        items = {}
        for i, (kind, low, high) in need.items.items():
            if kind == PARITY:
                continue
            root = isqrt(max(low, 0))
            if operation.f and operation.f.rule == "square" and low == high == root**2 > 0:
                items[i] = ENDS, -root, root
            else:
                items[i] = WITHIN, *self._sources(operation, (low, high))
        every = self._sources(operation, need.every) if need.every != self.all else self.all
        last = need.last and self._sources(operation, need.last)
        return Need(need.lengths, items, every, last)

    def _reverse(self, need: Need) -> Need:
        least, most = need.lengths
        if least == most:
            items = {least - 1 - i: item for i, item in need.items.items() if i < least}
        else:
            items = {} if need.last is None else {0: (WITHIN, *need.last)}
        last = need.items.get(0)
        return replace(need, items=items, last=last[1:] if last and last[0] == WITHIN and least else None)

    def _sort(self, need: Need) -> Need:
        low, high = need.every
        least, most = need.lengths
        for i, (kind, low_i, high_i) in need.items.items():
            if kind == WITHIN and i == 0:
                low = max(low, low_i)
            if kind == WITHIN and i == least - 1 == most - 1:
                high = min(high, high_i)
        if need.last:
            high = min(high, need.last[1])
        return Need(need.lengths, {}, (low, high), odd=need.odd, total=need.total)

    def _filter(self, operation: Operation, need: Need) -> Need:
        low, high = self._fails(operation)
        least, most = need.lengths
        odd = self._odd(operation)
        hull = min(low, need.every[0]), max(high, need.every[1])
        if most == 0:
            return Need((0, self.longest), {}, (low, high), odd=odd)
        items: dict[int, Item] = {}
        for i in range(least):
            kind, low_i, high_i = need.items.get(i, (WITHIN, *self.all))
            if kind != WITHIN:
                break
            if odd is not None:
                if low_i == high_i:
                    items[0] = PARITY, low_i, odd
                break
            low, high = min(low, low_i), max(high, high_i)
            items[i] = WITHIN, low, high
        return Need((least, self.longest), items, hull)

    def _take(self, need: Need, k: int) -> Need | None:
        least, most = need.lengths
        if k < 0:
            return Need((least - k if least else 0, min(most - k, self.longest)), need.items, self.all)
        if least > k:
            return None
        items = {i: item for i, item in need.items.items() if i < k}
        for i in range(min(k, MOST_ITEMS)):
            items.setdefault(i, (WITHIN, *need.every))
        return Need((least, self.longest if most >= k else most), items, self.all)

    def _drop(self, need: Need, k: int) -> Need | None:
        least, most = need.lengths
        if k >= 0:
            items = {i + k: item for i, item in need.items.items()}
            for i in range(k, k + MOST_ITEMS):
                items.setdefault(i, (WITHIN, *need.every))
            lengths = (least + k if least else 0, min(most + k, self.longest))
            return Need(lengths, items, self.all, need.last)
        if least > -k:
            return None
        if most < -k:
            return need
        return Need((least, self.longest), {}, self.all, need.last if least else None)

    def _scan(self, operation: Operation, need: Need) -> Need | None:
        low, high = self.all
        items: dict[int, Item] = {}
        rule = operation.f.rule  # type: ignore[union-attr]
        for i, (kind, low_i, high_i) in sorted(need.items.items()):
            before = need.items.get(i - 1)
            if kind != WITHIN or (before and before[0] != WITHIN):
                continue
            if i == 0:
                items[i] = WITHIN, low_i, high_i
            elif rule == "min":
                items[i] = WITHIN, low_i, high_i if before and before[1] > high_i else high
            elif rule == "max":
                items[i] = WITHIN, low_i if before and before[2] < low_i else low, high_i
            elif i < need.lengths[0] and before and before[1] == before[2] and low_i == high_i:
                x = before[1]
                if rule == "times":
                    if (low_i % x if x else low_i) != 0:
                        return None
                    item = (low_i // x, low_i // x) if x else (low, high)
                else:
                    item = (low_i - x, low_i - x) if rule == "plus" else (x - low_i, x - low_i)
                if not low <= item[0] <= item[1] <= high:
                    return None
                items[i] = WITHIN, *item
        bounds = {"min": (need.every[0], high), "max": (low, need.every[1])}
        return Need(need.lengths, items, bounds.get(rule, self.all))


Step = tuple[Operation, int]
"""An operation, and the row of the bank that it takes as a number, or -1."""

MOST_TESTS = 16
"""Tests of items for one root."""

NARROW = 64
"""Tests that allow fewer numbers are narrow."""

DEPTH = 1
"""Inverted operations between the output and a goal."""

UNARY = tuple(o for o in DEEPCODER.operations if o.inputs.count(LIST) == 1)
INVERTIBLE = frozenset(o.id for o in UNARY if o.rule(o.function.kernel) in INVERSES)
ROOTS = tuple(o for o in UNARY if o.id not in INVERTIBLE)
"""Operations on one list, and those that cannot be inverted."""


@dataclass(frozen=True)
class RootChain:
    """Operations above ZIPWITH.

    Attributes
    ----------
    steps : steps from ZIPWITH upward.
    tests : rows as `roots_kernels.Plan.tests` has them.
    lengths, items : ends of those about lengths, which come first, and of those about items.
    goal : value that the last step must give.
    """

    steps: tuple[Step, ...]
    tests: tuple[tuple[int, ...], ...]
    lengths: int
    items: int
    goal: Goal

    @property
    def sharp(self) -> bool:
        """Whether few lists pass the tests."""
        narrow = [low for _, _, _, optional, low, high in self.tests[self.lengths : self.items] if high - low < NARROW]
        return len(narrow) >= 3 or len(self.tests) > self.items

    def above(self, tree: Tree) -> Tree:
        """The tree of the output, from that of the list below."""
        for operation, number in self.steps:
            tree = (operation.id, tree) if number < 0 else (operation.id, number, tree)
        return wrap(tree, self.goal.path)


@cache
def pairs() -> tuple[tuple[Operation, Operation], ...]:
    """Two operations on one list, the second of which cannot be inverted, that do what no single
    one does and no pair with an inverted one after it, as far as random lists show."""
    rng = Random(0)
    meaning = Semantics(low=-WIDEST, high=WIDEST)
    probes = [(rng.randint(0, 5), tuple(rng.randint(-9, 9) for _ in range(rng.randint(2, 7)))) for _ in range(16)]

    def apply(operation: Operation, values: Sequence[Value | None]) -> tuple[Value | None, ...]:
        numbers = [(k,) if INT in operation.inputs else () for k, _ in probes]
        rows = zip(numbers, values, strict=True)
        return tuple(x if x is None else meaning.apply(operation, *k, x) for k, x in rows)

    lists = [probe for _, probe in probes]
    once = {o: apply(o, lists) for o in UNARY}
    seen = {tuple(lists), *once.values()}
    lower = [o for o in UNARY if o.output is LIST]
    twice = [(v, u) for u, v in product(UNARY, lower) if (INT in u.inputs) + (INT in v.inputs) < 2]
    kept = []
    for v, u in sorted(twice, key=lambda pair: pair[1].id not in INVERTIBLE):
        found = apply(u, once[v])
        if found not in seen:
            seen.add(found)
            if u.id not in INVERTIBLE and INT not in v.inputs:
                kept.append((v, u))
    return tuple(kept)


class Chains:
    """Roots of a task, by the number of their operations.

    Parameters
    ----------
    bank : bank from which TAKE, DROP and ACCESS take their numbers.
    task, semantics : arguments of the solver.

    Attributes
    ----------
    columns : columns of the bank that tests read: lengths, then items by example.
    least : least length of a list, for each example.
    """

    def __init__(self, bank: Bank, task: Task, semantics: Semantics) -> None:

        self._bank, self._output = bank, task.output
        self._bounds = semantics.low, semantics.high
        self._outputs = tuple(example.output for example in task.examples)
        found = unwound(self._outputs, semantics, DEPTH) if task.output is LIST else ((Goal(self._outputs),),)
        self._goals = [goal for goals in found for goal in goals]
        longest = [max((len(x) for x in e.inputs if not isinstance(x, int)), default=1) for e in task.examples]
        self._needs = [Needs(semantics, n) for n in longest]
        self._seen: set[object] = set()
        M = len(task.examples)
        places = [range(M * WIDTH, M * WIDTH + M), *(range(m * WIDTH, m * WIDTH + n) for m, n in enumerate(longest))]
        self.columns: Ints = np.array(list(chain(*places)), dtype=np.int64)
        self._single = WIDTH * np.arange(M)  # where numbers are; a list may have no first item
        self._firsts = [M + sum(longest[:m]) for m in range(M)]
        self.least = [len(y) if isinstance(y, tuple) else 0 for y in self._outputs]

    def of(self, c: int) -> list[RootChain]:
        """Roots of so many operations, together with those of their numbers."""
        return list(self._roots(c))

    def _roots(self, c: int) -> Iterator[RootChain]:
        for goal in self._goals:
            for steps, numbers in self._steps(goal, c - len(goal.path)):
                needs: list[Need] = []
                for rules, output, k in zip(self._needs, goal.values, numbers, strict=True):
                    need = rules.above(steps[-1][0], output, k)
                    for operation, _ in reversed(steps[:-1]):
                        need = need and rules.back(operation, need)
                    if need is None:
                        break
                    needs.append(need)
                else:
                    root = self._root(steps, needs, goal)
                    if len(steps) == 1 or root.sharp:
                        yield root

    def _steps(self, goal: Goal, c: int) -> Iterator[tuple[tuple[Step, ...], Sequence[int]]]:
        """Steps below a goal, and the number of the last one in each example."""
        none = [0] * len(self._outputs)
        for operation in (o for o in ROOTS if o.output is self._output):
            if INT in operation.inputs:
                yield from ((((operation, row),), ks) for row, ks in self._numbers(goal, (operation,), c - 1))
            elif c == 1:
                yield ((operation, -1),), none
        for v, u in (pair for pair in pairs() if pair[1].output is self._output and not goal.path):
            if INT in u.inputs:
                yield from ((((v, -1), (u, row)), ks) for row, ks in self._numbers(goal, (v, u), c - 2))
            elif c == 2:
                yield ((v, -1), (u, -1)), none

    def _numbers(self, goal: Goal, operations: tuple[Operation, ...], size: int) -> Iterator[tuple[int, list[int]]]:
        """Rows of numbers of a size that TAKE, DROP or ACCESS can have, and the numbers; of those
        that have the same effect the first."""
        if size < 0:
            return
        operation = operations[-1]
        longest = np.array([rules.longest for rules in self._needs])
        rows = rows_of(self._bank, size, True)
        k = self._bank.rows.pool[rows][:, self._single].astype(np.int64)
        if operation.function.name == "ACCESS":
            possible, same = (k >= 0) & (k < longest), k
        else:
            n = np.array([len(y) for y in self._outputs if isinstance(y, tuple)])
            if operation.function.name == "TAKE":  # of the first n items, of all n, or of all but -k
                possible = np.where(k < 0, (n == 0) | (n - k <= longest), n <= k)
                same = np.where(k < 0, np.where(n == 0, np.maximum(k, -longest), k), np.minimum(k, n + 1))
            else:
                possible = np.where(k < 0, n <= -k, (n == 0) | (n + k <= longest))
                same = np.where(k < 0, np.where(n < -k, 0, k), np.minimum(k, longest))
        fits = possible.all(1)
        chosen = (x[fits].tolist() for x in (rows, k, same))
        for row, numbers, effect in zip(*chosen, strict=True):
            key = goal.path, operations, tuple(effect)
            if key not in self._seen:
                self._seen.add(key)
                yield row, numbers

    def _root(self, steps: tuple[Step, ...], needs: Sequence[Need], goal: Goal) -> RootChain:
        """A root with its tests; the sharper ones come first."""
        low, high = self._bounds
        lengths, items, totals = [], [], []
        for m, need in enumerate(needs):
            least, most = need.lengths
            longest, column = self._needs[m].longest, self._firsts[m]
            if least > 0 or most < longest:
                lengths.append((most - least, (m, m, kernels.LENGTH, 0, least, most)))
            if need.last is not None:
                items.append(((need.last[1] - need.last[0], 0, m), (m, column, kernels.LAST, 1, *need.last)))
            for i, (kind, least, most) in need.tests:
                if i >= longest or (kind == WITHIN and least <= low and high <= most):
                    continue
                optional = int(i >= need.lengths[0])
                spread = {WITHIN: most - least, ENDS: 1, PARITY: (high - low) // 2}[kind] + optional * (high - low)
                items.append(((spread, i, m), (m, column + i, kernels.INTERVAL + kind, optional, least, most)))
            if need.total is not None:
                kind, of, total = need.total
                totals.append((m, column, kernels.FOLD + kind, of, total, 0))
        tests = [test for _, test in sorted(lengths)] + [test for _, test in sorted(items)[:MOST_TESTS]]
        return RootChain(steps, (*tests, *totals), len(lengths), len(tests), goal)


def rows_of(bank: Bank, size: int, is_int: bool) -> Ints:
    """Rows of the numbers or lists of a size."""
    rows: Ints = np.flatnonzero((bank.sizes == size) & (bank.rows.kinds[: bank.kept + 1] == is_int))
    return rows[rows > 0]  # the first is the output
