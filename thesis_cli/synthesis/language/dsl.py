"""The language of Thesis section 5.4.1 and appendix D.6, 15 functions and 19 lambdas, and a larger
one, which has more of both.

Everything here is plain data and plain Python, the reference that tests compare compiled code with.
The two tables, `FUNCTIONS` and `LAMBDAS`, name all rules that other modules have for the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from itertools import accumulate
from typing import Literal, get_args

from thesis_cli.base.errors import InputError

Value = int | tuple[int, ...]
"""A number, or a list of numbers. NULL is None, and is no value."""

Division = Literal["trunc", "floor"]

Dsl = Literal["deepcoder", "extended"]

MOST_INPUTS = 3
"""Inputs of a program: 1 to 3."""

WIDEST = 2**15 - 2
"""Largest magnitude that a range may allow: 16 bits hold all values, NULL, and a bound to clamp
to."""


LONGEST = 31
"""Length of the longest list that compiled searches have room for."""


class Type(StrEnum):
    """Type of a value, as programs write it."""

    INT = "int"
    LIST = "[int]"


INT, LIST = Type.INT, Type.LIST


@dataclass(frozen=True)
class Lambda:
    """A row of the table of lambdas, which higher-order functions apply to numbers.

    Attributes
    ----------
    name : name in programs.
    type : its signature.
    apply : the numbers it takes -> a number or a truth value; a quotient is truncated toward zero.
        ZeroDivisionError stands for NULL.
    rule : name of what it computes; kernels, ranges, sets of numbers and formulas all have a rule
        of this name.
    by : the constant of that rule.
    floor : `apply` with the quotient rounded down; None if there is no quotient.
    commutes : whether swapped numbers give the same.
    doubled : name of the lambda of one number x that gives what this one gives for x and x; empty
        if there is none.
    """

    name: str
    type: str
    apply: Callable[..., int]
    rule: str
    by: int = 0
    floor: Callable[..., int] | None = None
    commutes: bool = False
    doubled: str = ""


@dataclass(frozen=True)
class Function:
    """A row of the table of functions, first-order and higher-order.

    Four names choose the rules that compute it or reason about it; in each, `{}` stands for the
    rule of the lambda. The modules that hold the rules check at import that there is one for each
    name. Only the kernel is needed. The other three default to rules that know nothing about the
    function: searches are then slower, and more of the inputs drawn for corpora are of no use.

    Attributes
    ----------
    name : name in programs.
    inputs, output : types of the variables it takes, in order, and of its result.
    apply : the values it takes, after the lambda if it takes one -> a value, or None (NULL).
    kernel : compiled code, in `operation_kernels.KERNELS`.
    takes : signature of the lambdas that it can take; empty for a first-order function.
    keeps_length : whether its result is a list as long as its list, or as the shorter of its two
        lists.
    lengthens : whether its result may be longer than all inputs of a program.
    ranges : how bounds on its result bound its arguments, in `input_range_kernels.RULES`.
    goals : how the deductive search goes from a goal for its result to goals for its arguments, in
        `goal_rules.RULES`.
    formula : its formula for an SMT solver, in `smt_formulas.FORMULAS`.
    """

    name: str
    inputs: tuple[Type, ...]
    output: Type
    apply: Callable[..., Value | None]
    kernel: str
    takes: str = ""
    keeps_length: bool = False
    lengthens: bool = False
    ranges: str = "unknown"
    goals: str = "unknown"
    formula: str = "unknown"


@dataclass(frozen=True)
class Operation:
    """One possible line of a program: a first-order function, or a higher-order one with its
    lambda.

    Attributes
    ----------
    id : its place in `OPERATIONS`.
    function : its function.
    f : its lambda; None for a first-order function.
    """

    id: int
    function: Function
    f: Lambda | None = None

    @cached_property
    def name(self) -> str:
        """Name in programs, such as `MAP (*3)`."""
        return f"{self.function.name} {self.f.name}" if self.f else self.function.name

    @cached_property
    def inputs(self) -> tuple[Type, ...]:
        """Types of the variables it takes, in order."""
        return self.function.inputs

    @cached_property
    def output(self) -> Type:
        """Type of its result."""
        return self.function.output

    @cached_property
    def attributes(self) -> tuple[int, ...]:
        """Places in `Language.attributes` of its function and, after it, its lambda."""
        return tuple(EXTENDED.attributes.index(part.name) for part in (self.function, self.f) if part)

    @cached_property
    def trunc(self) -> Callable[..., Value | None]:
        """The values it takes -> a value or None, where quotients are truncated; the range is not
        checked."""
        return partial(self.function.apply, self.f.apply) if self.f else self.function.apply

    @cached_property
    def floor(self) -> Callable[..., Value | None]:
        """`trunc` with quotients rounded down."""
        return partial(self.function.apply, self.f.floor) if self.f and self.f.floor else self.trunc

    @cached_property
    def commutes(self) -> bool:
        """Whether it takes two values of one type and swapped ones give the same."""
        return len(self.inputs) == 2 and len(set(self.inputs)) == 1 and self.f is not None and self.f.commutes

    @cached_property
    def doubled(self) -> str:
        """Name of the operation that gives the same of one list as this one of the list and itself;
        empty if there is none."""
        return f"MAP {self.f.doubled}" if self.inputs == (LIST, LIST) and self.f and self.f.doubled else ""

    def rule(self, name: str) -> str:
        """The name of a rule of its function, with the rule of its lambda filled in."""
        return name.format(self.f.rule) if self.f else name


@dataclass(frozen=True)
class Semantics:
    """The choices that the thesis leaves open, and its constants. Raises InputError if the division
    is unknown, the bounds are in the wrong order or beyond 16 bits, or lists have no room.

    Attributes
    ----------
    division : (/2), (/3), (/4) truncate toward zero, or round down.
    low, high : range of numbers; a program that leaves it has no value.
    longest : length L of the longest input list.
    dsl : name of the language.
    """

    division: Division = "trunc"
    low: int = -256
    high: int = 255
    longest: int = 20
    dsl: Dsl = "deepcoder"

    def __post_init__(self) -> None:
        if self.division not in get_args(Division):
            raise InputError(f"unknown division {self.division!r}", f"it must be {' or '.join(get_args(Division))}")
        if not -WIDEST <= self.low <= self.high <= WIDEST:
            remedy = f"it needs LOW <= HIGH, both from {-WIDEST} to {WIDEST}"
            raise InputError(f"the range is {self.low} to {self.high}", remedy)
        if self.longest < 1:
            raise InputError(f"the longest list has {self.longest} numbers", "it must have at least 1")
        if self.dsl not in LANGUAGES:
            raise InputError(f"unknown language {self.dsl!r}", f"it must be {' or '.join(LANGUAGES)}")

    @property
    def language(self) -> Language:
        """The functions and lambdas that programs may have."""
        return LANGUAGES[self.dsl]

    @property
    def numbers(self) -> dict[str, object]:
        """All but the language, as files of corpora and networks describe it."""
        return {"division": self.division, "low": self.low, "high": self.high, "longest": self.longest}

    def apply(self, operation: Operation, *arguments: Value) -> Value | None:
        """Result of an operation on values of its types; None where it is NULL or out of range."""
        value = self.compute(operation, *arguments)
        return value if value is not None and self.holds(value) else None

    def compute(self, operation: Operation, *arguments: Value) -> Value | None:
        """Result of an operation without regard to the range; None where it is NULL."""
        try:
            return (operation.floor if self.division == "floor" else operation.trunc)(*arguments)
        except ZeroDivisionError:
            return None

    def holds(self, value: Value) -> bool:
        """Whether all numbers of a value are in the range."""
        numbers = (value,) if isinstance(value, int) else value
        return all(self.low <= x <= self.high for x in numbers)


def type_of(value: Value) -> Type:
    """Type of a value."""
    return INT if isinstance(value, int) else LIST


MAPPING, PREDICATE, BINARY = "int -> int", "int -> bool", "int -> int -> int"
COMPARISON, CONSTANT = "int -> int -> bool", "int"


def _quotient(x: int, y: int) -> int:
    """Truncated toward zero."""
    return x // y if (x < 0) == (y < 0) else -(-x // y)


def _divide(divisor: int) -> Lambda:
    return Lambda(f"(/{divisor})", MAPPING, lambda x: _quotient(x, divisor), "divide", divisor, lambda x: x // divisor)


def _constant(number: int) -> Lambda:
    return Lambda(str(number), CONSTANT, lambda: number, "constant", number)


LAMBDAS = (
    Lambda("(+1)", MAPPING, lambda x: x + 1, "shift", 1),
    Lambda("(-1)", MAPPING, lambda x: x - 1, "shift", -1),
    Lambda("(*2)", MAPPING, lambda x: x * 2, "scale", 2),
    _divide(2),
    Lambda("(*(-1))", MAPPING, lambda x: -x, "negate"),
    Lambda("(**2)", MAPPING, lambda x: x**2, "square"),
    Lambda("(*3)", MAPPING, lambda x: x * 3, "scale", 3),
    _divide(3),
    Lambda("(*4)", MAPPING, lambda x: x * 4, "scale", 4),
    _divide(4),
    Lambda("(>0)", PREDICATE, lambda x: x > 0, "positive"),
    Lambda("(<0)", PREDICATE, lambda x: x < 0, "negative"),
    Lambda("(%2==0)", PREDICATE, lambda x: x % 2 == 0, "parity", 0),
    Lambda("(%2==1)", PREDICATE, lambda x: x % 2 == 1, "parity", 1),
    Lambda("(+)", BINARY, lambda x, y: x + y, "plus", commutes=True, doubled="(*2)"),
    Lambda("(-)", BINARY, lambda x, y: x - y, "minus"),
    Lambda("(*)", BINARY, lambda x, y: x * y, "times", commutes=True, doubled="(**2)"),
    Lambda("MIN", BINARY, min, "min", commutes=True),
    Lambda("MAX", BINARY, max, "max", commutes=True),
    Lambda("(*10)", MAPPING, lambda x: x * 10, "scale", 10),
    _divide(10),
    Lambda("(/)", BINARY, _quotient, "quotient", floor=lambda x, y: x // y),
    Lambda("(>)", COMPARISON, lambda x, y: x > y, "greater"),
    Lambda("(<)", COMPARISON, lambda x, y: x < y, "less"),
    Lambda("(==)", COMPARISON, lambda x, y: x == y, "equal"),
    *map(_constant, (1, 2, 3)),
)
"""The 19 lambdas of `DEEPCODER`, in the order of section 5.4.1, then those of `EXTENDED` alone."""

FUNCTIONS = (
    Function(
        "HEAD", (LIST,), INT, lambda xs: xs[0] if xs else None,
        kernel="head", ranges="same", goals="front", formula="head",
    ),
    Function(
        "LAST", (LIST,), INT, lambda xs: xs[-1] if xs else None,
        kernel="last", ranges="same", goals="back", formula="last",
    ),
    Function(
        "TAKE", (INT, LIST), LIST, lambda n, xs: xs[:n],
        kernel="take", ranges="same", goals="prefix", formula="take",
    ),
    Function(
        "DROP", (INT, LIST), LIST, lambda n, xs: xs[n:],
        kernel="drop", ranges="same", goals="suffix", formula="drop",
    ),
    Function(
        "ACCESS", (INT, LIST), INT, lambda n, xs: xs[n] if 0 <= n < len(xs) else None,
        kernel="access", ranges="same", goals="member", formula="access",
    ),
    Function(
        "MINIMUM", (LIST,), INT, lambda xs: min(xs, default=None),
        kernel="minimum", ranges="same", goals="minimum", formula="minimum",
    ),
    Function(
        "MAXIMUM", (LIST,), INT, lambda xs: max(xs, default=None),
        kernel="maximum", ranges="same", goals="maximum", formula="maximum",
    ),
    Function(
        "REVERSE", (LIST,), LIST, lambda xs: xs[::-1],
        kernel="reverse", keeps_length=True, ranges="same", goals="reverse", formula="reverse",
    ),
    Function(
        "SORT", (LIST,), LIST, lambda xs: tuple(sorted(xs)),
        kernel="sort", keeps_length=True, ranges="same", goals="sort", formula="sort",
    ),
    Function(
        "SUM", (LIST,), INT, sum,
        kernel="sum", ranges="sum", goals="sum", formula="sum",
    ),
    Function(
        "MAP", (LIST,), LIST, lambda f, xs: tuple(map(f, xs)), takes=MAPPING,
        kernel="map {}", keeps_length=True, ranges="map {}", goals="map", formula="map",
    ),
    Function(
        "FILTER", (LIST,), LIST, lambda f, xs: tuple(filter(f, xs)), takes=PREDICATE,
        kernel="filter", ranges="filter {}", goals="filter", formula="filter",
    ),
    Function(
        "COUNT", (LIST,), INT, lambda f, xs: sum(map(f, xs)), takes=PREDICATE,
        kernel="count", ranges="count", goals="count", formula="count",
    ),
    Function(
        "ZIPWITH", (LIST, LIST), LIST, lambda f, xs, ys: tuple(map(f, xs, ys)), takes=BINARY,
        kernel="zipwith {}", keeps_length=True, ranges="zipwith {}", goals="zipwith", formula="zipwith",
    ),
    Function(
        "SCANL1", (LIST,), LIST, lambda f, xs: tuple(accumulate(xs, f)), takes=BINARY,
        kernel="scanl1 {}", keeps_length=True, ranges="scanl1 {}", goals="scanl1", formula="scanl1",
    ),
    Function(
        "LENGTH", (LIST,), INT, len,
        kernel="length",
    ),
    Function(
        "UNIQUE", (LIST,), LIST, lambda xs: tuple(dict.fromkeys(xs)),
        kernel="unique",
    ),
    Function(
        "COUNTS", (LIST,), LIST, lambda xs: tuple(map(xs.count, xs)),
        kernel="counts", keeps_length=True,
    ),
    Function(
        "INDEX", (INT, LIST), INT, lambda n, xs: xs.index(n) if n in xs else None,
        kernel="index",
    ),
    Function(
        "RANGE", (INT,), LIST, lambda n: tuple(range(1, n + 1)) if n <= LONGEST else None,
        kernel="range", lengthens=True,
    ),
    Function(
        "ITEM", (LIST,), INT, lambda k, xs: xs[k()] if k() < len(xs) else None, takes=CONSTANT,
        kernel="item",
    ),
    Function(
        "FIRST", (LIST,), LIST, lambda k, xs: xs[: k()], takes=CONSTANT,
        kernel="first",
    ),
    Function(
        "SKIP", (LIST,), LIST, lambda k, xs: xs[k() :], takes=CONSTANT,
        kernel="skip",
    ),
    Function(
        "KEEP", (INT, LIST), LIST, lambda f, n, xs: tuple(x for x in xs if f(x, n)), takes=COMPARISON,
        kernel="keep",
    ),
    Function(
        "TALLY", (INT, LIST), INT, lambda f, n, xs: sum(f(x, n) for x in xs), takes=COMPARISON,
        kernel="tally",
    ),
    Function(
        "WITH", (INT, LIST), LIST, lambda f, n, xs: tuple(f(x, n) for x in xs), takes=BINARY,
        kernel="with", keeps_length=True,
    ),
    Function(
        "CALC", (INT, INT), INT, lambda f, m, n: f(m, n), takes=BINARY,
        kernel="calc",
    ),
    Function(
        "WHERE", (LIST, LIST), LIST, lambda f, xs, ys: tuple(y if f(x) else x for x, y in zip(xs, ys, strict=False)),
        takes=PREDICATE, kernel="where", keeps_length=True,
    ),
)  # fmt: skip
"""The 15 functions of `DEEPCODER`, in the order of section 5.4.1, then those of `EXTENDED` alone. TAKE
and DROP give lists, whatever their printed signature."""


@dataclass(frozen=True)
class Language:
    """Functions and lambdas that programs may have.

    Attributes
    ----------
    name : name of the language.
    functions, lambdas : how many of the first rows of the tables it has.
    """

    name: Dsl
    functions: int
    lambdas: int

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Names of what a program may use: functions, then lambdas, those of `DEEPCODER` first."""
        m, n = DEEPCODER.functions, DEEPCODER.lambdas
        functions, lambdas = ([part.name for part in rows] for rows in (FUNCTIONS, LAMBDAS))
        return *functions[:m], *lambdas[:n], *functions[m : self.functions], *lambdas[n : self.lambdas]

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """Its operations, by id."""
        last = len(self.attributes)
        return tuple(operation for operation in OPERATIONS if max(operation.attributes) < last)

    @cached_property
    def lengthens(self) -> bool:
        """Whether a list may be longer than all inputs of its program."""
        return any(operation.function.lengthens for operation in self.operations)

    @cached_property
    def needs_list(self) -> bool:
        """Whether nothing can be done with numbers alone."""
        return all(LIST in operation.inputs for operation in self.operations)


DEEPCODER = Language("deepcoder", 15, 19)
"""The language of the thesis."""

EXTENDED = Language("extended", len(FUNCTIONS), len(LAMBDAS))
"""All that the tables have: operations for tasks of daily life besides."""

LANGUAGES: dict[str, Language] = {language.name: language for language in (DEEPCODER, EXTENDED)}

ATTRIBUTES = DEEPCODER.attributes
"""Names of the C = 34 attributes of a program of `DEEPCODER`: functions, then lambdas."""

DEFAULT = Semantics()
"""The semantics on which public implementations agree."""


def lambdas_of(function: Function) -> Sequence[Lambda]:
    """The lambdas that a function can take, in order; none for a first-order function."""
    return [f for f in LAMBDAS if f.type == function.takes]


_PAIRS = [(function, f) for function in FUNCTIONS for f in lambdas_of(function) or (None,)]
_THESIS = [*FUNCTIONS[: DEEPCODER.functions], *LAMBDAS[: DEEPCODER.lambdas], None]
_PAIRS.sort(key=lambda pair: not (pair[0] in _THESIS and pair[1] in _THESIS))
OPERATIONS = tuple(Operation(id, function, f) for id, (function, f) in enumerate(_PAIRS))
"""All operations, by id: the 38 of `DEEPCODER`, then the others; functions in order, each with its
lambdas in order."""

BY_NAME = {operation.name: operation for operation in OPERATIONS}
"""The operations, by name."""


def check_rules(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse rows without a rule, and rules that no row names. Raises AssertionError naming them."""
    rows, rules = set(names), {*known} - {"unknown"}
    assert rows - {"unknown"} == rules, f"{kind}: {sorted(rows ^ rules)} stand in one of rows and rules only"
