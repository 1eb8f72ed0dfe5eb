"""What a list must be like so that operations above it give an output: necessary conditions on its
lengths and items, taken backward through the operations."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt

from thesis_cli.synthesis.language.dsl import LAMBDAS, PREDICATE, Operation, Semantics, Value

Interval = tuple[int, int]
"""Least and greatest number."""

WITHIN, ENDS, PARITY = range(3)
"""What an item must be: in an interval; one of its two ends; or its lower end, or of the parity of
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
    every : of all items.
    last : of the last item; None if there is no condition.
    odd : what the parity of all items must be; None if there is no condition.
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
    semantics : of the language.
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
