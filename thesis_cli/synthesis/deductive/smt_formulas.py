"""Values and operations of one example as formulas over bit-vectors, for z3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

from thesis_cli.synthesis.language.dsl import (
    BINARY,
    DEEPCODER,
    FUNCTIONS,
    LAMBDAS,
    MAPPING,
    OPERATIONS,
    PREDICATE,
    Lambda,
    Semantics,
    Value,
    check_rules,
)

Bool = Any
"""A truth value of z3, which has no type hints."""

Bits = Any
"""A signed bit-vector of z3."""


class Symbol(NamedTuple):
    """A value that z3 finds, as a number and as a list; only the one of its type counts.

    Attributes
    ----------
    number : the number.
    items : numbers of the list, as many as the longest list of the example has; 0 beyond its end.
    inside : whether each item is before the end.
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
    name : beginning of the names of its variables.
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
    """One line of a program on one example: formulas for each operation that it may be.

    Parameters
    ----------
    result : result of the line.
    number, first, second : its arguments; an operation uses those that it takes.
    chosen : operation -> whether it is that of the line.
    """

    def __init__(
        self, encoding: Encoding, result: Symbol, number: Bits, first: Symbol, second: Symbol, chosen: dict[int, Bool]
    ) -> None:
        self.encoding, self.z3 = encoding, encoding.z3
        self.result, self.number, self.first, self.second, self.chosen = result, number, first, second, chosen
        self.size = encoding.size

    def rules(self, operation: int) -> Iterator[Bool]:
        """Formulas that hold if the line is an operation."""
        row = OPERATIONS[operation]
        return FORMULAS[row.function.formula](self, row.f)

    def _unknown(self, f: Lambda | None) -> Iterator[Bool]:
        yield from ()

    def _head(self, f: Lambda | None) -> Iterator[Bool]:
        yield self.z3.And(self.first.inside[0], self.result.number == self.first.items[0])

    def _last(self, f: Lambda | None) -> Iterator[Bool]:
        xs = self.first.items
        yield self.first.inside[0]
        for n in range(1, self.size + 1):
            yield self.z3.Implies(self._ends[n], self.result.number == xs[n - 1])

    def _access(self, f: Lambda | None) -> Iterator[Bool]:
        z3 = self.z3
        yield z3.Or([z3.And(self.number == k, i) for k, i in enumerate(self.first.inside)])
        yield from (z3.Implies(self.number == k, self.result.number == x) for k, x in enumerate(self.first.items))

    def _minimum(self, f: Lambda | None) -> Iterator[Bool]:
        return self._extreme(lambda result, x: result <= x)

    def _maximum(self, f: Lambda | None) -> Iterator[Bool]:
        return self._extreme(lambda result, x: result >= x)

    def _extreme(self, bounds: Callable[[Bits, Bits], Bool]) -> Iterator[Bool]:
        z3, number = self.z3, self.result.number
        pairs = list(zip(self.first.items, self.first.inside, strict=True))
        yield z3.Or([z3.And(i, number == x) for x, i in pairs])
        yield from (z3.Implies(i, bounds(number, x)) for x, i in pairs)

    def _sum(self, f: Lambda | None) -> Iterator[Bool]:
        wide = self.encoding.wide
        yield wide(self.result.number) == self.z3.Sum([wide(x) for x in self.first.items])

    def _count(self, f: Lambda | None) -> Iterator[Bool]:
        yield from (self.z3.Implies(c, self.result.number == n) for n, c in enumerate(self._kept[-1]))

    def _take(self, f: Lambda | None) -> Iterator[Bool]:
        xs, inside = self.first.items, self.first.inside
        for n, cut in enumerate(self._cuts):
            yield self.z3.Implies(cut, self._is(list(xs[:n]), list(inside[:n])))

    def _drop(self, f: Lambda | None) -> Iterator[Bool]:
        xs, inside = self.first.items, self.first.inside
        for n, cut in enumerate(self._cuts):
            yield self.z3.Implies(cut, self._is(list(xs[n:]), list(inside[n:])))

    def _reverse(self, f: Lambda | None) -> Iterator[Bool]:
        z3, xs = self.z3, self.first.items
        for n, end in enumerate(self._ends):
            yield z3.Implies(end, self._is(list(xs[:n][::-1]), [z3.BoolVal(True)] * n))

    def _sort(self, f: Lambda | None) -> Iterator[Bool]:
        yield self._is(self._sorted(), list(self.first.inside))

    def _filter(self, f: Lambda | None) -> Iterator[Bool]:
        z3, result = self.z3, self.result
        for n in range(self.size):
            yield result.inside[n] == z3.Or(self._kept[-1][n + 1 :])
        for x, kept, counts in zip(self.first.items, self._passes, self._kept, strict=False):
            yield from (z3.Implies(z3.And(kept, c), result.items[n] == x) for n, c in enumerate(counts))

    def _map(self, f: Lambda | None) -> Iterator[Bool]:
        assert f is not None
        yield self._lengths(self.first.inside)
        for y, x, i in zip(self.result.items, self.first.items, self.first.inside, strict=True):
            yield self.z3.Implies(i, MAPS[f.rule](self.encoding, f.by, x, y))

    def _zipwith(self, f: Lambda | None) -> Iterator[Bool]:
        assert f is not None
        z3, second = self.z3, self.second
        both = [z3.And(i, j) for i, j in zip(self.first.inside, second.inside, strict=True)]
        yield self._lengths(both)
        for z, x, y, i in zip(self.result.items, self.first.items, second.items, both, strict=True):
            yield z3.Implies(i, JOINS[f.rule](self.encoding, x, y, z))

    def _scanl1(self, f: Lambda | None) -> Iterator[Bool]:
        assert f is not None
        xs, inside, results = self.first.items, self.first.inside, self.result.items
        yield self._lengths(inside)
        yield results[0] == xs[0]
        for before, x, y, i in zip(results, xs[1:], results[1:], inside[1:], strict=False):
            yield self.z3.Implies(i, JOINS[f.rule](self.encoding, before, x, y))

    @cached_property
    def _ends(self) -> list[Bool]:
        """Whether each length is that of the first list."""
        z3, inside = self.z3, self.first.inside
        after = [*inside, z3.BoolVal(False)]
        return [z3.And(*inside[n - 1 : n], z3.Not(after[n])) if n else z3.Not(after[0]) for n in range(self.size + 1)]

    @cached_property
    def _cuts(self) -> list[Bool]:
        """Whether TAKE ends and DROP begins at each place, as slices of Python do."""
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
        """Whether the predicate of this line, if it has one, keeps each number."""
        z3 = self.z3
        rows = ((it, OPERATIONS[o].f) for o, it in self.chosen.items())
        used = [(it, f) for it, f in rows if f is not None and f.type == PREDICATE]
        test = self._test
        ways = [z3.Or([z3.And(it, test(f, x)) for it, f in used]) for x in self.first.items]
        return [z3.And(i, way) for i, way in zip(self.first.inside, ways, strict=True)]

    def _test(self, f: Lambda, x: Bits) -> Bool:
        return TESTS[f.rule](self.encoding, f.by, x)

    @cached_property
    def _kept(self) -> list[list[Bool]]:
        """Whether 0, 1, ... of the numbers before each place, and of all, are kept."""
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


def _shift(encoding: Encoding, by: int, x: Bits, y: Bits) -> Bool:
    return encoding.wide(y) == encoding.wide(x) + by


def _scale(encoding: Encoding, by: int, x: Bits, y: Bits) -> Bool:
    return encoding.wide(y) == by * encoding.wide(x)


def _negate(encoding: Encoding, by: int, x: Bits, y: Bits) -> Bool:
    return encoding.wide(y) == -encoding.wide(x)


def _square(encoding: Encoding, by: int, x: Bits, y: Bits) -> Bool:
    z3, root = encoding.z3, isqrt(max(encoding.semantics.high, 0))
    part = z3.Extract(root.bit_length(), 0, x)
    square = z3.SignExt(encoding.width, part)
    return z3.And(-root <= x, x <= root, z3.SignExt(part.size(), y) == square * square)


def _divide(encoding: Encoding, by: int, x: Bits, y: Bits) -> Bool:
    z3, rest = encoding.z3, encoding.wide(x) - by * encoding.wide(y)
    down = z3.And(rest >= 0, rest < by)
    if encoding.semantics.division == "floor":
        return down
    return z3.If(x < 0, z3.And(rest <= 0, rest > -by), down)


def _plus(encoding: Encoding, x: Bits, y: Bits, z: Bits) -> Bool:
    return encoding.wide(z) == encoding.wide(x) + encoding.wide(y)


def _minus(encoding: Encoding, x: Bits, y: Bits, z: Bits) -> Bool:
    return encoding.wide(z) == encoding.wide(x) - encoding.wide(y)


def _times(encoding: Encoding, x: Bits, y: Bits, z: Bits) -> Bool:
    x, y, z = (encoding.z3.SignExt(encoding.width, v) for v in (x, y, z))
    return z == x * y


FORMULAS: dict[str, Callable[[Application, Lambda | None], Iterator[Bool]]] = {
    "unknown": Application._unknown,
    "head": Application._head,
    "last": Application._last,
    "take": Application._take,
    "drop": Application._drop,
    "access": Application._access,
    "minimum": Application._minimum,
    "maximum": Application._maximum,
    "reverse": Application._reverse,
    "sort": Application._sort,
    "sum": Application._sum,
    "map": Application._map,
    "filter": Application._filter,
    "count": Application._count,
    "zipwith": Application._zipwith,
    "scanl1": Application._scanl1,
}
"""Formulas of functions by name. With `unknown`, any result will do: programs are run before they
count."""

MAPS = {"shift": _shift, "scale": _scale, "negate": _negate, "square": _square, "divide": _divide}
"""Formulas of y = f(x) by rule; they take its constant, x and y."""

TESTS: dict[str, Callable[[Encoding, int, Bits], Bool]] = {
    "positive": lambda encoding, by, x: x > 0,
    "negative": lambda encoding, by, x: x < 0,
    "parity": lambda encoding, by, x: encoding.z3.Extract(0, 0, x) == by,
}
"""Formulas of predicates of x by rule."""

JOINS: dict[str, Callable[[Encoding, Bits, Bits, Bits], Bool]] = {
    "plus": _plus,
    "minus": _minus,
    "times": _times,
    "min": lambda encoding, x, y, z: z == encoding.z3.If(x <= y, x, y),
    "max": lambda encoding, x, y, z: z == encoding.z3.If(x >= y, x, y),
}
"""Formulas of z = f(x, y) by rule."""

check_rules("formulas", (function.formula for function in FUNCTIONS), FORMULAS)
for _type, _rules in ((MAPPING, MAPS), (PREDICATE, TESTS), (BINARY, JOINS)):
    check_rules(f"formulas of {_type}", (f.rule for f in LAMBDAS[: DEEPCODER.lambdas] if f.type == _type), _rules)


def network(size: int) -> Iterator[tuple[int, int]]:
    """Pairs of places to sort, one after another, until all are in order (Batcher's odd-even merge
    sort)."""
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
