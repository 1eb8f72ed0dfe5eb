"""The language of Thesis section 5.4.1 and appendix D.6: 15 functions, 19 lambdas, and what they do to values.

Everything here is plain data and plain Python. It is what compiled code is held against.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import accumulate
from typing import Literal, get_args

from thesis_cli.base.errors import InputError

Value = int | tuple[int, ...]
"""A number, or a list of numbers. NULL is None, and is no value."""

Division = Literal["trunc", "floor"]

MOST_INPUTS = 3
"""Inputs of a program: 1 to 3."""

WIDEST = 2**15 - 2
"""Largest magnitude that a range may allow: values fit into 16 bits, with a NULL and a bound to clamp to."""


class Type(StrEnum):
    """Type of a value, as programs write it."""

    INT = "int"
    LIST = "[int]"


INT, LIST = Type.INT, Type.LIST


@dataclass(frozen=True)
class Lambda:
    """What a higher-order function applies to numbers.

    Attributes
    ----------
    type : its signature.
    apply : the numbers it takes -> a number or a truth value; a quotient is truncated toward zero.
    floor : the same with the quotient rounded down, where it has one.
    commutes : whether it gives the same for swapped numbers.
    """

    name: str
    type: str
    apply: Callable[..., int]
    floor: Callable[..., int] | None = None
    commutes: bool = False


@dataclass(frozen=True)
class Function:
    """A function, first-order or higher-order.

    Attributes
    ----------
    inputs, output : types of the variables it takes, in order, and of its result.
    apply : the values it takes, after the lambda if it takes one -> a value, or None (NULL).
    takes : signature of the lambdas that it can take; empty for a first-order function.
    """

    name: str
    inputs: tuple[Type, ...]
    output: Type
    apply: Callable[..., Value | None]
    takes: str = ""


@dataclass(frozen=True)
class Operation:
    """What one line of a program can do: a first-order function, or a higher-order one with its lambda.

    Attributes
    ----------
    id : its place in `OPERATIONS`, which compiled code relies on.
    name : as programs write it, such as `MAP (*3)`.
    inputs, output : types of the variables it takes, in order, and of its result.
    attributes : places in `ATTRIBUTES` of its function and, after it, its lambda.
    trunc, floor : the values it takes -> a value or None, under either division, the range aside.
    commutes : whether it takes two values and gives the same for swapped ones.
    """

    id: int
    name: str
    inputs: tuple[Type, ...]
    output: Type
    attributes: tuple[int, ...]
    trunc: Callable[..., Value | None]
    floor: Callable[..., Value | None]
    commutes: bool


@dataclass(frozen=True)
class Semantics:
    """What the thesis leaves open or fixes by a number.

    Attributes
    ----------
    division : (/2), (/3), (/4) truncate toward zero, or round down.
    low, high : numbers beyond these bounds discard the program that makes them.
    longest : length L of the longest list that an input may be. No operation lengthens a list.

    Raises
    ------
    InputError : an unknown division, bounds in disorder or beyond 16 bits, or no room for a list.
    """

    division: Division = "trunc"
    low: int = -256
    high: int = 255
    longest: int = 20

    def __post_init__(self) -> None:
        if self.division not in get_args(Division):
            raise InputError(f"unknown division {self.division!r}", f"{' or '.join(get_args(Division))} is wanted")
        if not -WIDEST <= self.low <= self.high <= WIDEST:
            remedy = f"LOW <= HIGH, both from {-WIDEST} to {WIDEST}, are wanted"
            raise InputError(f"no range: {self.low} to {self.high}", remedy)
        if self.longest < 1:
            raise InputError(f"no length of a list: {self.longest}", "at least 1 is wanted")

    def apply(self, operation: Operation, *arguments: Value) -> Value | None:
        """Result of an operation on values of its types; None where it is NULL or out of range."""
        value = (operation.floor if self.division == "floor" else operation.trunc)(*arguments)
        return value if value is not None and self.holds(value) else None

    def holds(self, value: Value) -> bool:
        """Whether all numbers of a value are in the range."""
        numbers = (value,) if isinstance(value, int) else value
        return all(self.low <= x <= self.high for x in numbers)


DEFAULT = Semantics()
"""What public implementations agree on."""


def type_of(value: Value) -> Type:
    """Type of a value."""
    return INT if isinstance(value, int) else LIST


MAPPING, PREDICATE, BINARY = "int -> int", "int -> bool", "int -> int -> int"


def _divide(divisor: int) -> Lambda:
    def truncate(x: int) -> int:
        return x // divisor if x >= 0 else -(-x // divisor)

    return Lambda(f"(/{divisor})", MAPPING, truncate, lambda x: x // divisor)


LAMBDAS = (
    Lambda("(+1)", MAPPING, lambda x: x + 1),
    Lambda("(-1)", MAPPING, lambda x: x - 1),
    Lambda("(*2)", MAPPING, lambda x: x * 2),
    _divide(2),
    Lambda("(*(-1))", MAPPING, lambda x: -x),
    Lambda("(**2)", MAPPING, lambda x: x**2),
    Lambda("(*3)", MAPPING, lambda x: x * 3),
    _divide(3),
    Lambda("(*4)", MAPPING, lambda x: x * 4),
    _divide(4),
    Lambda("(>0)", PREDICATE, lambda x: x > 0),
    Lambda("(<0)", PREDICATE, lambda x: x < 0),
    Lambda("(%2==0)", PREDICATE, lambda x: x % 2 == 0),
    Lambda("(%2==1)", PREDICATE, lambda x: x % 2 == 1),
    Lambda("(+)", BINARY, lambda x, y: x + y, commutes=True),
    Lambda("(-)", BINARY, lambda x, y: x - y),
    Lambda("(*)", BINARY, lambda x, y: x * y, commutes=True),
    Lambda("MIN", BINARY, min, commutes=True),
    Lambda("MAX", BINARY, max, commutes=True),
)
"""The 19 lambdas, in the order of section 5.4.1."""

FUNCTIONS = (
    Function("HEAD", (LIST,), INT, lambda xs: xs[0] if xs else None),
    Function("LAST", (LIST,), INT, lambda xs: xs[-1] if xs else None),
    Function("TAKE", (INT, LIST), LIST, lambda n, xs: xs[:n]),
    Function("DROP", (INT, LIST), LIST, lambda n, xs: xs[n:]),
    Function("ACCESS", (INT, LIST), INT, lambda n, xs: xs[n] if 0 <= n < len(xs) else None),
    Function("MINIMUM", (LIST,), INT, lambda xs: min(xs, default=None)),
    Function("MAXIMUM", (LIST,), INT, lambda xs: max(xs, default=None)),
    Function("REVERSE", (LIST,), LIST, lambda xs: xs[::-1]),
    Function("SORT", (LIST,), LIST, lambda xs: tuple(sorted(xs))),
    Function("SUM", (LIST,), INT, sum),
    Function("MAP", (LIST,), LIST, lambda f, xs: tuple(map(f, xs)), takes=MAPPING),
    Function("FILTER", (LIST,), LIST, lambda f, xs: tuple(filter(f, xs)), takes=PREDICATE),
    Function("COUNT", (LIST,), INT, lambda f, xs: sum(map(f, xs)), takes=PREDICATE),
    Function("ZIPWITH", (LIST, LIST), LIST, lambda f, xs, ys: tuple(map(f, xs, ys)), takes=BINARY),
    Function("SCANL1", (LIST,), LIST, lambda f, xs: tuple(accumulate(xs, f)), takes=BINARY),
)
"""The 15 functions, in the order of section 5.4.1. TAKE and DROP give lists, whatever their printed signature."""

ATTRIBUTES = tuple(part.name for part in (*FUNCTIONS, *LAMBDAS))
"""Names of the C = 34 attributes of a program: functions, then lambdas."""


def lambdas_of(function: Function) -> Sequence[Lambda]:
    """The lambdas that a function can take, in order; none for a first-order function."""
    return [f for f in LAMBDAS if f.type == function.takes]


def _operation(id: int, function: Function, f: Lambda | None) -> Operation:
    attributes = tuple(ATTRIBUTES.index(part.name) for part in (function, f) if part)
    name = " ".join(ATTRIBUTES[place] for place in attributes)
    trunc = partial(function.apply, f.apply) if f else function.apply
    floor = partial(function.apply, f.floor) if f and f.floor else trunc
    commutes = function.inputs == (LIST, LIST) and f is not None and f.commutes
    return Operation(id, name, function.inputs, function.output, attributes, trunc, floor, commutes)


OPERATIONS = tuple(
    _operation(id, function, f)
    for id, (function, f) in enumerate((function, f) for function in FUNCTIONS for f in lambdas_of(function) or (None,))
)
"""The 38 operations, by id: functions in order, each with its lambdas in order."""

BY_NAME = {operation.name: operation for operation in OPERATIONS}
"""The operations, by name."""
