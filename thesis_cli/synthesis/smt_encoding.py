"""Values and operations of one example as formulas over bit-vectors, for z3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

from thesis_cli.synthesis.dsl import OPERATIONS, Semantics, Value

Bool = Any
"""A truth value of z3 (z3 tells no types)."""

Bits = Any
"""A signed bit-vector of z3."""


class Symbol(NamedTuple):
    """A value that z3 is to find, as a number and as a list; only that of its type counts.

    Attributes
    ----------
    number : the number.
    items : numbers of the list, as many as the longest list of the example has; 0 beyond its end.
    inside : for each whether it is before the end.
    """

    number: Bits
    items: Sequence[Bits]
    inside: Sequence[Bool]


class Encoding:
    """Values of one example.

    Parameters
    ----------
    z3 : the module.
    size : length of the longest list among the inputs, which no operation exceeds.
    name : what its variables begin with.
    """

    def __init__(self, z3: Any, semantics: Semantics, size: int, name: str) -> None:
        self.z3, self.semantics, self.size, self.name = z3, semantics, size, name
        magnitude = max((semantics.low if semantics.low >= 0 else ~semantics.low), semantics.high, size)
        self.width = magnitude.bit_length() + 1
        self.extra = max(4, size.bit_length() + 1)  # sums and fourfold numbers fit

    def constant(self, value: Value) -> Symbol:
        """A known value."""
        z3 = self.z3
        number, items = (value, ()) if isinstance(value, int) else (0, value)
        padded = (*items, *[0] * (self.size - len(items)))
        inside = [z3.BoolVal(k < len(items)) for k in range(self.size)]
        return Symbol(self.bits(number), [self.bits(x) for x in padded], inside)

    def fresh(self, name: str) -> tuple[Symbol, list[Bool]]:
        """An unknown value, and that it is one: within the range, its list without gaps."""
        z3 = self.z3
        number, *items = (z3.BitVec(f"{self.name}_{name}_{k}", self.width) for k in range(self.size + 1))
        inside = [z3.Bool(f"{self.name}_{name}_in_{k}") for k in range(self.size)]
        low, high = self.bits(self.semantics.low), self.bits(self.semantics.high)
        rules = [z3.And(low <= number, number <= high)]
        rules += [z3.If(i, z3.And(low <= x, x <= high), x == 0) for i, x in zip(inside, items, strict=True)]
        rules += [z3.Implies(later, earlier) for earlier, later in pairwise(inside)]
        return Symbol(number, items, inside), rules

    def pick(self, choice: dict[int, Bool], symbols: Sequence[Symbol]) -> Symbol:
        """The symbol that is chosen; the last one if none is."""
        *others, picked = (symbols[v] for v in choice)
        for it, other in zip(reversed(list(choice.values())[:-1]), reversed(others), strict=True):
            number, items, inside = (self._either(it, a, b) for a, b in zip(other, picked, strict=True))
            picked = Symbol(number, items, inside)
        return picked

    def equals(self, symbol: Symbol, value: Value) -> Bool:
        """A symbol is a known value of its type."""
        if not self.semantics.holds(value) or (not isinstance(value, int) and len(value) > self.size):
            return self.z3.BoolVal(False)
        known = self.constant(value)
        if isinstance(value, int):
            return symbol.number == known.number
        pairs = [*zip(symbol.items, known.items, strict=True), *zip(symbol.inside, known.inside, strict=True)]
        return self.z3.And([a == b for a, b in pairs])

    def bits(self, x: int) -> Bits:
        """A known number."""
        return self.z3.BitVecVal(x, self.width)

    def wide(self, x: Bits) -> Bits:
        """The same number, with room for arithmetic."""
        return self.z3.SignExt(self.extra, x)

    def _either(self, it: Bool, a: Any, b: Any) -> Any:
        if isinstance(a, list):
            return [self.z3.If(it, x, y) for x, y in zip(a, b, strict=True)]
        return self.z3.If(it, a, b)


class Application:
    """One line of a program on one example: what holds if it is this or that operation.

    Parameters
    ----------
    result : of the line.
    number, first, second : its arguments; an operation looks at those that it takes.
    chosen : operation -> whether it is that of the line.
    """

    def __init__(
        self, encoding: Encoding, result: Symbol, number: Bits, first: Symbol, second: Symbol, chosen: dict[int, Bool]
    ) -> None:
        self.encoding, self.z3 = encoding, encoding.z3
        self.result, self.number, self.first, self.second, self.chosen = result, number, first, second, chosen
        self.size = encoding.size

    def rules(self, operation: int) -> Iterator[Bool]:
        """What holds if the line is an operation."""
        z3, result, xs, inside = self.z3, self.result, self.first.items, self.first.inside
        name, _, f = OPERATIONS[operation].name.partition(" ")
        match name:
            case "HEAD":
                yield z3.And(inside[0], result.number == xs[0])
            case "LAST":
                yield inside[0]
                yield from (z3.Implies(self._ends[n], result.number == xs[n - 1]) for n in range(1, self.size + 1))
            case "ACCESS":
                yield z3.Or([z3.And(self.number == k, i) for k, i in enumerate(inside)])
                yield from (z3.Implies(self.number == k, result.number == x) for k, x in enumerate(xs))
            case "MINIMUM" | "MAXIMUM":
                pairs = list(zip(xs, inside, strict=True))
                yield z3.Or([z3.And(i, result.number == x) for x, i in pairs])
                for x, i in pairs:
                    yield z3.Implies(i, result.number <= x if name == "MINIMUM" else result.number >= x)
            case "SUM":
                yield self.encoding.wide(result.number) == z3.Sum([self.encoding.wide(x) for x in xs])
            case "COUNT":
                yield from (z3.Implies(c, result.number == n) for n, c in enumerate(self._kept[-1]))
            case "TAKE":
                for n, cut in enumerate(self._cuts):
                    yield z3.Implies(cut, self._is(list(xs[:n]), list(inside[:n])))
            case "DROP":
                for n, cut in enumerate(self._cuts):
                    yield z3.Implies(cut, self._is(list(xs[n:]), list(inside[n:])))
            case "REVERSE":
                for n, end in enumerate(self._ends):
                    yield z3.Implies(end, self._is(list(xs[:n][::-1]), [z3.BoolVal(True)] * n))
            case "SORT":
                yield self._is(self._sorted(), list(inside))
            case "FILTER":
                for n in range(self.size):
                    yield result.inside[n] == z3.Or(self._kept[-1][n + 1 :])
                for x, kept, counts in zip(xs, self._passes, self._kept, strict=False):
                    yield from (z3.Implies(z3.And(kept, c), result.items[n] == x) for n, c in enumerate(counts))
            case "MAP":
                yield self._lengths(inside)
                for y, x, i in zip(result.items, xs, inside, strict=True):
                    yield z3.Implies(i, self._maps(f, x, y))
            case "ZIPWITH":
                both = [z3.And(i, j) for i, j in zip(inside, self.second.inside, strict=True)]
                yield self._lengths(both)
                for z, x, y, i in zip(result.items, xs, self.second.items, both, strict=True):
                    yield z3.Implies(i, self._joins(f, x, y, z))
            case _:
                yield self._lengths(inside)
                yield result.items[0] == xs[0]
                for before, x, y, i in zip(result.items, xs[1:], result.items[1:], inside[1:], strict=False):
                    yield z3.Implies(i, self._joins(f, before, x, y))

    @cached_property
    def _ends(self) -> list[Bool]:
        """For each length whether it is that of the first list."""
        z3, inside = self.z3, self.first.inside
        after = [*inside, z3.BoolVal(False)]
        return [z3.And(*inside[n - 1 : n], z3.Not(after[n])) if n else z3.Not(after[0]) for n in range(self.size + 1)]

    @cached_property
    def _cuts(self) -> list[Bool]:
        """For each place whether it is where TAKE ends and DROP begins, as Python slices."""
        z3, number = self.z3, self.number
        cuts = []
        for place in range(self.size + 1):
            whole = self.z3.BoolVal(True) if place == 0 else self.first.inside[place - 1]
            ways = [z3.And(number == place, whole), z3.And(number > place, self._ends[place])]
            ways += [z3.And(number == place - n, self._ends[n]) for n in range(place + 1, self.size + 1)]
            if place == 0:
                ways += [z3.And(number < -n, end) for n, end in enumerate(self._ends)]
            cuts.append(z3.Or(ways))
        return cuts

    @cached_property
    def _passes(self) -> list[Bool]:
        """For each number whether the predicate of this line, if it has one, keeps it."""
        z3 = self.z3
        tests: dict[str, Callable[[Bits], Bool]] = {
            "(>0)": lambda x: x > 0,
            "(<0)": lambda x: x < 0,
            "(%2==0)": lambda x: z3.Extract(0, 0, x) == 0,
            "(%2==1)": lambda x: z3.Extract(0, 0, x) == 1,
        }
        names = ((it, OPERATIONS[o].name.partition(" ")) for o, it in self.chosen.items())
        used = [(it, tests[f]) for it, (name, _, f) in names if name in ("FILTER", "COUNT")]
        ways = [z3.Or([z3.And(it, test(x)) for it, test in used]) for x in self.first.items]
        return [z3.And(i, way) for i, way in zip(self.first.inside, ways, strict=True)]

    @cached_property
    def _kept(self) -> list[list[Bool]]:
        """For the numbers before each place, and for all, whether 0, 1, ... of them are kept."""
        z3 = self.z3
        table = [[z3.BoolVal(True)]]
        for kept in self._passes:
            counts = [z3.BoolVal(False), *table[-1], z3.BoolVal(False)]
            table.append([z3.If(kept, fewer, same) for fewer, same in pairwise(counts)])
        return table

    def _sorted(self) -> list[Bits]:
        """The first list in order, by a network that merges odd and even places (Batcher)."""
        z3 = self.z3
        last = self.encoding.bits((1 << (self.encoding.width - 1)) - 1)
        row = [z3.If(i, x, last) for x, i in zip(self.first.items, self.first.inside, strict=True)]
        for i, j in network(len(row)):
            swap = row[i] > row[j]
            row[i], row[j] = z3.If(swap, row[j], row[i]), z3.If(swap, row[i], row[j])
        return [z3.If(i, x, self.encoding.bits(0)) for x, i in zip(row, self.first.inside, strict=True)]

    def _is(self, items: list[Bits], inside: list[Bool]) -> Bool:
        """The result is this list, and no more."""
        z3, rest = self.z3, self.size - len(items)
        same = zip(self.result.items, [*items, *[self.encoding.bits(0)] * rest], strict=True)
        return z3.And([a == b for a, b in same] + [self._lengths([*inside, *[z3.BoolVal(False)] * rest])])

    def _lengths(self, inside: Sequence[Bool]) -> Bool:
        return self.z3.And([a == b for a, b in zip(self.result.inside, inside, strict=True)])

    def _maps(self, f: str, x: Bits, y: Bits) -> Bool:
        """y = f(x)."""
        z3, wide = self.z3, self.encoding.wide
        if f == "(**2)":
            root = isqrt(max(self.encoding.semantics.high, 0))
            part = z3.Extract(root.bit_length(), 0, x)
            square = z3.SignExt(self.encoding.width, part)
            return z3.And(-root <= x, x <= root, z3.SignExt(part.size(), y) == square * square)
        if f.startswith("(/"):
            divisor = int(f[2])
            rest = wide(x) - divisor * wide(y)
            down = z3.And(rest >= 0, rest < divisor)
            if self.encoding.semantics.division == "floor":
                return down
            return z3.If(x < 0, z3.And(rest <= 0, rest > -divisor), down)
        results = {
            "(+1)": wide(x) + 1,
            "(-1)": wide(x) - 1,
            "(*(-1))": -wide(x),
            "(*2)": 2 * wide(x),
            "(*3)": 3 * wide(x),
            "(*4)": 4 * wide(x),
        }
        return wide(y) == results[f]

    def _joins(self, f: str, x: Bits, y: Bits, z: Bits) -> Bool:
        """z = f(x, y)."""
        z3, wide = self.z3, self.encoding.wide
        match f:
            case "(+)":
                return wide(z) == wide(x) + wide(y)
            case "(-)":
                return wide(z) == wide(x) - wide(y)
            case "MIN":
                return z == z3.If(x <= y, x, y)
            case "MAX":
                return z == z3.If(x >= y, x, y)
            case _:
                x, y, z = (z3.SignExt(self.encoding.width, v) for v in (x, y, z))
                return z == x * y


def network(size: int) -> Iterator[tuple[int, int]]:
    """Places to put in order, one pair after another, so that all are in order (Batcher's odd-even merge sort)."""
    p = 1
    while p < size:
        k = p
        while k:
            for j in range(k % p, size - k, 2 * k):
                for i in range(min(k, size - j - k)):
                    if (i + j) // (2 * p) == (i + j + k) // (2 * p):
                        yield i + j, i + j + k
            k //= 2
        p *= 2
