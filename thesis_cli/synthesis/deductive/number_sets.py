"""Sets of numbers as bits of one integer, and what the lambdas do to them, for `goal_rules`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.language.dsl import BINARY, DEEPCODER, LAMBDAS, WIDEST, Lambda, Semantics, check_rules

Numbers = int
"""A set of numbers: x is in it where bit x - low is set."""

MEMO = 2**25
"""Bits of the sets that each cache keeps."""

NARROW = 64
"""Most numbers of a set whose divisors are looked for; those of a larger set may be any."""


class NumberSets:
    """Sets of numbers within the range of some semantics.

    Attributes
    ----------
    low, high : the range.
    width, all : how many numbers are in it, and their set.
    """

    def __init__(self, semantics: Semantics) -> None:
        self.semantics, self.low, self.high = semantics, semantics.low, semantics.high
        self.width = self.high - self.low + 1
        self.all: Numbers = (1 << self.width) - 1
        self._range = np.arange(self.low, self.high + 1)
        keep = lru_cache(MEMO // self.width)
        self._preimage = keep(self._find_preimage)
        self._quotients = keep(self._find_quotients)
        self._factors = keep(self._find_factors)
        self._results = cache(self._find_results)

    def preimage(self, f: Lambda, goal: Numbers) -> Numbers:
        """Numbers that a lambda of one number takes into a set."""
        return self._preimage(f.name, goal)

    def _find_preimage(self, f: str, goal: Numbers) -> Numbers:
        return self._where(self._results(f), goal)

    def passing(self, f: Lambda) -> Numbers:
        """Numbers that a predicate is true of."""
        return _pack(self._results(f.name) == 1)

    def _find_results(self, f: str) -> npt.NDArray[np.int64]:
        """Value of a lambda for each number of the range, shape (width,)."""
        rule = next(g for g in LAMBDAS if g.name == f)
        apply = rule.floor if rule.floor and self.semantics.division == "floor" else rule.apply
        return np.array([apply(x) for x in self._range.tolist()], dtype=np.int64)

    def _where(self, results: npt.NDArray[np.int64], goal: Numbers) -> Numbers:
        """Numbers of the range for which results, shape (width,), are in a set."""
        inside = (self.low <= results) & (results <= self.high)
        return _pack(self._unpack(goal)[np.where(inside, results - self.low, 0)] & inside)

    def _unpack(self, goal: Numbers) -> npt.NDArray[np.bool_]:
        """Whether each number of the range is in a set, shape (width,)."""
        held = np.frombuffer(goal.to_bytes(-(-self.width // 8), "little"), dtype=np.uint8)
        return np.unpackbits(held, count=self.width, bitorder="little").astype(np.bool_)

    def right(self, f: Lambda, a: int, goal: Numbers) -> Numbers:
        """Numbers b of which f(a, b) is in a set."""
        return JOINS[f.rule].right(self, a, goal)

    def left(self, f: Lambda, goal: Numbers) -> Numbers:
        """Numbers a of which f(a, b) is in a set for some b."""
        return JOINS[f.rule].left(self, goal) if goal else 0

    def beside(self, f: Lambda, goal: Numbers) -> Numbers:
        """Numbers b of which f(a, b) is in a set for some a."""
        return JOINS[f.rule].beside(self, goal) if goal else 0

    def _addends(self, goal: Numbers) -> Numbers:
        return self.between(self.least(goal) - self.high, self.most(goal) - self.low)

    def _minuends(self, goal: Numbers) -> Numbers:
        return self.between(self.least(goal) + self.low, self.most(goal) + self.high)

    def _subtrahends(self, goal: Numbers) -> Numbers:
        return self.between(self.low - self.most(goal), self.high - self.least(goal))

    def _least_with(self, a: int, goal: Numbers) -> Numbers:
        """Numbers b of which min(a, b) is in a set."""
        return goal & ~self.from_(a) | (self.from_(a) if self.holds(goal, a) else 0)

    def _most_with(self, a: int, goal: Numbers) -> Numbers:
        """Numbers b of which max(a, b) is in a set."""
        return goal & ~self.up_to(a) | (self.up_to(a) if self.holds(goal, a) else 0)

    def _from_least(self, goal: Numbers) -> Numbers:
        return self.from_(self.least(goal))

    def _to_most(self, goal: Numbers) -> Numbers:
        return self.up_to(self.most(goal))

    def _find_quotients(self, a: int, goal: Numbers) -> Numbers:
        """Numbers b of which a b is in a set."""
        if a == 0:
            return self.all if self.holds(goal, 0) else 0
        return self._where(a * self._range, goal)

    def _find_factors(self, goal: Numbers) -> Numbers:
        """Numbers of which some multiple is in a set."""
        if goal.bit_count() > NARROW:
            return self.all
        divisors = np.where(self._range == 0, 2 * WIDEST, self._range)
        found = np.zeros(self.width, dtype=np.bool_)
        for product in self._range[self._unpack(goal)]:
            found |= product % divisors == 0
        return _pack(found)

    def one(self, x: int) -> Numbers:
        """A number alone, which is in the range."""
        return 1 << (x - self.low)

    def holds(self, goal: Numbers, x: int) -> bool:
        """Whether any number is in a set."""
        return self.low <= x and bool(goal >> (x - self.low) & 1)

    def least(self, goal: Numbers) -> int:
        """The least number of a set that is not empty."""
        return lowest(goal) + self.low

    def most(self, goal: Numbers) -> int:
        """The largest number of a set that is not empty."""
        return goal.bit_length() - 1 + self.low

    def from_(self, x: int) -> Numbers:
        """Numbers from x on."""
        return self.between(x, self.high)

    def up_to(self, x: int) -> Numbers:
        """Numbers up to x."""
        return self.between(self.low, x)

    def between(self, low: int, high: int) -> Numbers:
        """Numbers of the range from `low` to `high`."""
        low, high = max(low, self.low), min(high, self.high)
        return ((1 << (high - low + 1)) - 1) << (low - self.low) if low <= high else 0

    def _shift(self, goal: Numbers, by: int) -> Numbers:
        """x + `by` for each x."""
        return (goal << by if by >= 0 else goal >> -by) & self.all

    def _less(self, a: int, goal: Numbers) -> Numbers:
        """a - x for each x."""
        mirrored = _pack(self._unpack(goal)[::-1])  # x becomes low + high - x
        return self._shift(mirrored, a - self.low - self.high)


class SetRule(NamedTuple):
    """A lambda of two numbers on sets; `NumberSets` has methods of these names."""

    right: Callable[[NumberSets, int, Numbers], Numbers]
    left: Callable[[NumberSets, Numbers], Numbers]
    beside: Callable[[NumberSets, Numbers], Numbers]


JOINS = {
    "plus": SetRule(
        lambda sets, a, goal: sets._shift(goal, -a),
        NumberSets._addends,
        NumberSets._addends,
    ),
    "minus": SetRule(NumberSets._less, NumberSets._minuends, NumberSets._subtrahends),
    "times": SetRule(
        lambda sets, a, goal: sets._quotients(a, goal),
        lambda sets, goal: sets._factors(goal),
        lambda sets, goal: sets._factors(goal),
    ),
    "min": SetRule(NumberSets._least_with, NumberSets._from_least, NumberSets._from_least),
    "max": SetRule(NumberSets._most_with, NumberSets._to_most, NumberSets._to_most),
}
"""Lambdas of two numbers by their rule."""
check_rules("sets of numbers", (f.rule for f in LAMBDAS[: DEEPCODER.lambdas] if f.type == BINARY), JOINS)


def lowest(mask: int) -> int:
    """Place of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def _pack(held: npt.NDArray[np.bool_]) -> Numbers:
    """The set of the numbers that are marked; the inverse of `NumberSets._unpack`."""
    return int.from_bytes(np.packbits(held, bitorder="little").tobytes(), "little")
