"""Passes there and back over a tree of contractions within a memory: which tables stay until the way back, and
which are made again.

The pass is planned by going through it without entries. Where a table finds no room, those go that are quick to
make again and not needed soon.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from itertools import accumulate

from thesis_cli.inference.elimination.tree import (
    SECONDS_A_PAIR,
    SECONDS_MOVED,
    Layout,
    Move,
    PairTree,
    Room,
    Task,
)

AGES = 0.0, 1.0, 2.0
"""A table goes for the time to make it again, over a power of the time until it is needed: the powers that are
tried."""

SMALL = 64
"""Part of the memory for the smallest tables, which stay."""

SECONDS_SHIFTED = 1e-9
"""Time for each entry that is moved as it is."""

SLOWEST = 8.0
"""Time of a pass, relative to one that keeps all tables, beyond which it is given up."""


def back_pass(tree: PairTree, task: Task, memory: int | None = None) -> Layout | None:
    """The pass that keeps all tables if it fits into the memory, else the quickest found that makes some again; None
    if there is none.
    """
    whole = _Walk(tree, task).layout()
    if memory is None or whole.memory <= memory:
        return whole
    limit = whole.size + (memory - whole.memory) // 8
    found = []
    for age in AGES:
        try:
            found.append(_Walk(tree, task, limit, age, SLOWEST * whole.seconds).layout())
        except _NoRoom:
            continue
    return min(found, key=lambda each: each.seconds, default=None)


class _NoRoom(Exception):
    """What is needed at once does not fit, or too much is made again."""


class _Walk:
    """A pass without entries. What is outside of table k of n has number n + k.

    Parameters
    ----------
    limit : entries of all tables.
    age : one of `AGES`.
    most : predicted seconds.
    """

    def __init__(
        self, tree: PairTree, task: Task, limit: float = math.inf, age: float = 0.0, most: float = math.inf
    ) -> None:
        self._tree, self._draws, self._age, self._most = tree, task == "samples", age, most
        self._first, self._n = len(tree.scopes), len(tree.sizes)
        self._sizes = tree.sizes * 2
        self._costs = [SECONDS_A_PAIR + SECONDS_MOVED * size for size in tree.sizes[: self._first]]
        self._costs += [step.seconds for step in tree.steps]
        self._needed = [False] * self._n  # by the pass back
        for step, (a, b) in zip(tree.steps, tree.pairs, strict=True):
            self._needed[a] = bool(step.summed) if self._draws else b in tree.back_steps
            self._needed[b] = bool(step.summed) if self._draws else a in tree.back_steps
        there = list(accumulate(self._costs, initial=0.0))
        self._when = [2 * there[-1] - seconds for seconds in there[1:]]  # the pass back leaves a pair
        self._places: dict[int, int] = {}
        self._fixed: dict[int, int] = {}
        if limit < math.inf:
            self._fix(limit // SMALL)
        self._base = sum(self._sizes[k] for k in self._fixed)
        self._room, self._highest = Room(limit - self._base), 0
        self._held: list[tuple[int, int, int]] = []  # start, end and number of what is in the room, ascending
        self._pinned: set[int] = set()
        self._left: set[int] = set()  # pairs that the pass back has left
        self._moves: list[Move] = []
        self._now = self._seconds = 0.0  # where the pass is, if nothing were made again, and all that it takes

    def _fix(self, most: float) -> None:
        """Give places of their own to the smallest tables."""
        used = 0
        for k in sorted(range(self._n), key=self._sizes.__getitem__):
            if used + 2 * self._sizes[k] > most:
                return
            for number in (k, self._n + k):
                self._fixed[number] = used
                used += self._sizes[k]

    def layout(self) -> Layout:
        """The moves.

        Raises
        ------
        _NoRoom : they need more room or time than there is.
        """
        there: list[Move] = []
        if self._n:
            root = self._n - 1
            self._make(root)
            self._let_go(root)
            there, self._moves = self._moves, []
            if not self._draws:
                self._put(self._n + root)
        for j in reversed(range(self._first, self._n)):
            self._now = self._when[j]
            if self._draws:
                self._draw(j)
            else:
                self._send_back(j)
        size = self._base + max(self._highest, self._room.size)
        return Layout(there, self._moves, size, self._seconds)

    def _draw(self, j: int) -> None:
        """Draw the variables that are summed over at a pair."""
        pair = self._tree.pairs[j - self._first]
        if self._tree.steps[j - self._first].summed:
            for k in sorted(pair):
                self._make(k)
            self._moves.append(Move("draw", j, 0, 0))
        self._left.add(j)
        for k in pair:
            self._let_go(k)

    def _send_back(self, j: int) -> None:
        """Go from what is outside of the table of a pair to what is outside of its inputs, the smaller first, so
        that the larger goes.
        """
        a, b = self._tree.pairs[j - self._first]
        ways = [(side, other) for side, other in ((a, b), (b, a)) if side in self._tree.back_steps]
        for other in sorted(other for _, other in ways):
            self._make(other)
        self._left.add(j)
        for side, other in sorted(ways, key=lambda way: self._sizes[way[0]]):
            step = self._tree.back_steps[side]
            self._put(self._n + side, step.scratch)
            self._spend(step.seconds)
            self._let_go(other)
            if side < self._first:
                self._let_go(self._n + side)
        self._let_go(self._n + j)

    def _make(self, k: int) -> None:
        """Make a table and what it needs, where they are not there; it stays until it is let go."""
        stack = [k]
        while stack:
            k = stack.pop()
            if k < 0:  # both inputs of the table of number ~k are there
                self._put(~k, self._tree.steps[~k - self._first].scratch)
                for other in self._tree.pairs[~k - self._first]:
                    self._pinned.discard(other)
                    if not self._needed[other] and other not in self._fixed:
                        self._let_go(other)
            elif k in self._places:
                self._pinned.add(k)
            elif k < self._first:
                self._put(k)
            else:
                a, b = self._tree.pairs[k - self._first]
                stack += [~k, max(a, b), min(a, b)]

    def _put(self, number: int, scratch: int = 0) -> None:
        """Place what a move makes, and its scratch."""
        size = 0 if number in self._fixed else self._sizes[number]
        self._clear(size + scratch)
        start = self._room.take(size + scratch) if size + scratch else 0
        if scratch:
            self._room.give(start + size, scratch)
        if size:
            insort(self._held, (start, start + size, number))
        self._places[number] = self._fixed.get(number, self._base + start)
        self._pinned.add(number)
        self._moves.append(Move("make", number, self._places[number], self._base + start + size))
        if number < self._n:
            self._spend(self._costs[number])

    def _spend(self, seconds: float) -> None:
        self._seconds += seconds
        if not self._left:
            self._now = self._seconds
        if self._seconds > self._most:
            raise _NoRoom

    def _let_go(self, number: int) -> None:
        self._pinned.discard(number)
        if number in self._places and number not in self._fixed:
            start = self._places[number] - self._base
            self._room.give(start, self._sizes[number])
            del self._held[bisect_left(self._held, (start,))]
        self._places.pop(number, None)

    def _clear(self, length: int) -> None:
        """Let go what costs least for each of so many entries, and move the rest together if they are not in a row."""
        if self._room.fits(length):
            return
        missing = length - self._room.limit + sum(end - start for start, end, _ in self._held)
        chosen: list[tuple[int, int]] = []
        for _, size, number in sorted((self._loss(k) / (end - start), end - start, k) for start, end, k in self._held):
            if missing <= 0 or number in self._pinned:
                break
            chosen.append((size, number))
            missing -= size
        if missing > 0:
            raise _NoRoom
        for size, number in reversed(chosen):
            if missing + size > 0:
                self._let_go(number)
            else:
                missing += size
        if not self._room.fits(length):
            self._move_together()

    def _move_together(self) -> None:
        held, self._held, self._highest = self._held, [], max(self._highest, self._room.size)
        self._room = Room(self._room.limit)
        for start, end, number in held:
            at = self._room.take(end - start)
            self._held.append((at, at + end - start, number))
            if at < start:
                self._places[number] = self._base + at
                self._moves.append(Move("shift", number, self._base + at, self._base + start))
                self._spend(SECONDS_SHIFTED * (end - start))

    def _loss(self, number: int) -> float:
        """What it costs to let go a table: to make it again, with what that needs, and to make those again that
        need it.
        """
        if number >= self._n or number in self._pinned:
            return math.inf
        cost, stack = 0.0, [number]
        while stack:
            k = stack.pop()
            cost += self._costs[k]
            if k >= self._first:
                stack += [other for other in self._tree.pairs[k - self._first] if other not in self._places]
        parent = self._tree.parents[number]
        remaining = max(self._when[parent] - self._now, SECONDS_A_PAIR)
        while parent >= 0 and parent not in self._places and self._tree.parents[parent] not in self._left:
            cost += self._costs[parent]
            parent = self._tree.parents[parent]
        return cost / math.pow(remaining, self._age)
