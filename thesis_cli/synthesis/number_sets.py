"""Sets of numbers as bits of one integer, and what the lambdas take to where, for the rules of `deduction`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

from thesis_cli.synthesis.dsl import LAMBDAS, Semantics

Numbers = int
"""A set of numbers: x is in it where bit x - low is set."""

MEMO = 2**25
"""Bits of the sets that are kept, by kind of question."""

NARROW = 64
"""Most numbers of a set whose divisors are sought; those of a larger one may be any."""


class NumberSets:
    """Sets of numbers within the range of some semantics.

    Attributes
    ----------
    low, high : the range.
    all : all numbers in it.
    preimage : lambda of one number, set -> numbers that it takes into the set.
    """

    def __init__(self, semantics: Semantics) -> None:
        self.semantics, self.low, self.high = semantics, semantics.low, semantics.high
        width = self.high - self.low + 1
        self.all: Numbers = (1 << width) - 1
        keep = lru_cache(MEMO // width)
        self.preimage = keep(self._find_preimage)
        self._quotients = keep(self._find_quotients)
        self._factors = keep(self._find_factors)
        self._origins = cache(self._find_origins)

    def _find_preimage(self, f: str, goal: Numbers) -> Numbers:
        """Of `preimage`."""
        origins = self._origins(f)
        found = 0
        for x in _bits(goal):
            found |= origins.get(x + self.low, 0)
        return found

    def passing(self, f: str) -> Numbers:
        """Numbers that a predicate is true of."""
        return self._origins(f).get(True, 0)

    def _find_origins(self, f: str) -> dict[int, Numbers]:
        """Numbers that a lambda takes to each number."""
        rule = next(g for g in LAMBDAS if g.name == f)
        apply = rule.floor if rule.floor and self.semantics.division == "floor" else rule.apply
        origins: dict[int, Numbers] = {}
        for x in range(self.low, self.high + 1):
            origins[apply(x)] = origins.get(apply(x), 0) | self.one(x)
        return origins

    def right(self, f: str, a: int, goal: Numbers) -> Numbers:
        """Numbers b of which f(a, b) is in a set."""
        match f:
            case "(+)":
                return self._shift(goal, -a)
            case "(-)":
                return self._less(a, goal)
            case "MIN":
                return goal & ~self.from_(a) | (self.from_(a) if self.holds(goal, a) else 0)
            case "MAX":
                return goal & ~self.up_to(a) | (self.up_to(a) if self.holds(goal, a) else 0)
            case _:
                return self._quotients(a, goal)

    def left(self, f: str, goal: Numbers) -> Numbers:
        """Numbers a of which f(a, b) is in a set for some b."""
        if f == "(-)" and goal:
            return self.between(self.least(goal) + self.low, self.most(goal) + self.high)
        return self.beside(f, goal)

    def beside(self, f: str, goal: Numbers) -> Numbers:
        """Numbers b of which f(a, b) is in a set for some a."""
        if not goal:
            return 0
        least, most = self.least(goal), self.most(goal)
        match f:
            case "(+)":
                return self.between(least - self.high, most - self.low)
            case "(-)":
                return self.between(self.low - most, self.high - least)
            case "MIN":
                return self.from_(least)
            case "MAX":
                return self.up_to(most)
            case _:
                return self._factors(goal)

    def _find_quotients(self, a: int, goal: Numbers) -> Numbers:
        """Numbers b of which a b is in a set."""
        if a == 0:
            return self.all if self.holds(goal, 0) else 0
        reach = max(-self.low, self.high) // abs(a)
        factors = range(max(-reach, self.low), min(reach, self.high) + 1)
        return sum(self.one(b) for b in factors if self.holds(goal, a * b))

    def _find_factors(self, goal: Numbers) -> Numbers:
        """Numbers of which some multiple is in a set."""
        if self.holds(goal, 0) or goal.bit_count() > NARROW:
            return self.all
        products = [x + self.low for x in _bits(goal)]
        divisors = (b for b in range(self.low, self.high + 1) if b and any(x % b == 0 for x in products))
        return sum(map(self.one, divisors))

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
        width = self.all.bit_length()
        mirrored = int(f"{goal:0{width}b}"[::-1], 2)  # x becomes low + high - x
        return self._shift(mirrored, a - self.low - self.high)


def lowest(mask: int) -> int:
    """Place of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def _bits(mask: int) -> Iterator[int]:
    """Places of the bits that are set."""
    while mask:
        place = mask & -mask
        yield place.bit_length() - 1
        mask ^= place
