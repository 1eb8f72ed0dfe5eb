"""A small language of expressions on the columns of a table; Python's parser reads it, and Python
never runs it.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, nearest
from thesis_cli.privacy.tables.column import LARGEST, Column, DateKind, Value, Values, finite
from thesis_cli.privacy.tables.dates import day_of

LONGEST = 10_000
"""Largest number of characters in an expression."""

SHOWN = 60
"""Largest number of characters of it in an error."""

KINDS = {"number": "a number", "truth": "a truth value", "text": "a category"}

ARITHMETIC: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.remainder,
    ast.Pow: np.power,
}
COMPARISONS: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": np.abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt}
FOLDS: dict[str, Callable[..., Any]] = {"max": np.maximum, "min": np.minimum}
NAMES = sorted((*FUNCTIONS, *FOLDS, "clamp", "missing"))


Columns = Mapping[str, Value]


def read_columns(columns: Iterable[Column], decoded: Mapping[str, Values]) -> dict[str, Value]:
    """Columns for `Formula.value` from those that `Schema.decode` returns, arrays of shape (rows,)."""
    return {column.name: column_value(column, decoded[column.name]) for column in columns}


def column_value(column: Column, values: Values) -> Value:
    """Values of a decoded column, shape (rows,), as expressions see them."""
    return column.value_of(column.numbers(values))


class Formula:
    """An expression.

    The language has arithmetic (+ - * / // % **), comparisons (also chained), `and`, `or`, `not`,
    `in (...)`, the functions abs, exp, log, sqrt, max and min (of two or more), `clamp(x, low, high)`
    and `missing(...)`,
    numbers, True, False, names of columns (in backquotes if they are not identifiers), and texts to
    compare categories and dates with. The difference of two dates is a number of days, and a date
    plus or minus a number is a date. Truth has three values: a condition that depends on a missing value is
    missing. A number that is not finite (1 / 0, log(-1)) or exceeds 1e150 is missing.

    Parameters
    ----------
    text : text of one expression.

    Attributes
    ----------
    text : the text without space around it.
    tree : Python's syntax tree of it, with other names in place of quoted ones.

    Raises
    ------
    InputError : the text is not an expression, or too long.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self._mark = "quoted_"
        while self._mark in self.text:
            self._mark += "_"
        self._quoted: list[str] = []
        self._plain = re.sub(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`([^`]+)`", self._unquote, self.text)
        if len(self.text) > LONGEST:
            raise self.wrong(f"it has more than {LONGEST:,} characters", "shorten it")
        try:
            with warnings.catch_warnings(action="ignore"):  # such as one about \d in a text
                self.tree = ast.parse(self._plain, mode="eval").body
        except SyntaxError as error:
            at = self._requote(self._plain.split("\n")[(error.lineno or 1) - 1][max(0, (error.offset or 1) - 1) :])
            where = f"at {at[:20]!r}" if at else "at its end"
            raise self.wrong(f"it cannot be read {where} ({error.msg})", "give an expression") from None
        except (ValueError, MemoryError, RecursionError):
            raise self._unreadable() from None

    def _unquote(self, found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        self._quoted.append(found[1])
        return f"{self._mark}{len(self._quoted) - 1}_"

    def _requote(self, plain: str) -> str:
        return re.sub(rf"{self._mark}(\d+)_", lambda found: f"`{self._quoted[int(found[1])]}`", plain)

    def _unreadable(self) -> InputError:
        return self.wrong("it cannot be read (a NUL, or nested too deeply)", "give a simpler expression")

    def wrong(self, problem: str, remedy: str) -> InputError:
        """An error that names the text."""
        shown = self.text if len(self.text) <= SHOWN else self.text[: SHOWN - 3] + "..."
        return InputError(problem, remedy, source=shown or "''")

    def part(self, node: ast.expr) -> str:
        """Text of a part of the expression."""
        return self._requote(ast.get_source_segment(self._plain, node) or "")

    def column_name(self, node: ast.Name) -> str:
        """Name of a column, without backquotes."""
        quoted = re.fullmatch(rf"{self._mark}(\d+)_", node.id)
        return self._quoted[int(quoted[1])] if quoted else node.id

    def value(self, columns: Columns, node: ast.expr | None = None) -> Value:
        """Value of the expression, or of a part of it, in each row.

        Raises
        ------
        InputError : a column, function or level is unknown, types do not match, or the language
            lacks a construct.
        """
        try:
            with np.errstate(all="ignore"):
                return self._value(node or self.tree, columns)
        except RecursionError:
            raise self._unreadable() from None

    def number(self, columns: Columns, node: ast.expr | None = None) -> Floats:
        """Like `value`, for a number, or a truth value as 1 and 0; `InputError` for a category."""
        return self._numeric(node or self.tree, columns).data

    def _numeric(self, node: ast.expr, columns: Columns) -> Value:
        found = self.value(columns, node)
        if found.kind == "text":
            raise self._mismatch(node, found, "a number or a truth value")
        return found

    def truth(self, columns: Columns, node: ast.expr | None = None) -> Floats:
        """Like `value`, for a truth value; `InputError` for anything else."""
        found = self.value(columns, node)
        if found.kind != "truth":
            raise self._mismatch(node or self.tree, found, "a condition")
        return found.data

    def _mismatch(self, node: ast.expr, found: Value, kind: str) -> InputError:
        return self.wrong(f"{self.part(node)} is {'a date' if found.date else KINDS[found.kind]}", f"it must be {kind}")

    def _value(self, node: ast.expr, columns: Columns) -> Value:
        match node:
            case ast.Constant(value=bool() as constant):
                return Value(np.array(float(constant)), "truth")
            case ast.Constant(value=int() | float() as constant):
                return Value(self._constant(node, constant), "number")
            case ast.Constant(value=str()):
                raise self.wrong(f"the text {self.part(node)} stands alone", 'compare it, as in region == "south"')
            case ast.Name():
                return self._named(node, columns)
            case ast.UnaryOp(op=ast.Not()):
                return Value(1 - self.truth(columns, node.operand), "truth")
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
                return Value(np.asarray(sign * self.number(columns, node.operand)), "number")
            case ast.BinOp(op=op) if type(op) in ARITHMETIC:
                left, right = (self._numeric(side, columns) for side in (node.left, node.right))
                found = _finite(ARITHMETIC[type(op)](left.data, right.data))
                return replace(found, date=_date_of(op, left.date, right.date))
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()) | ast.UnaryOp(op=ast.Invert()):
                raise self.wrong(f"{self.part(node)} has &, | or ~", "write `and`, `or`, `not`")
            case ast.BoolOp():
                parts = [self.truth(columns, part) for part in node.values]
                return Value(all_of(parts) if isinstance(node.op, ast.And) else _any_of(parts), "truth")
            case ast.Compare():
                return Value(self._compared(node, columns), "truth")
            case ast.Call(func=ast.Name(), keywords=[]):
                return self._called(node, self.part(node.func), columns)
        raise self.wrong(f"{self.part(node) or 'a part of it'} is not in the language", "give a simpler expression")

    def _constant(self, node: ast.expr, constant: float) -> Floats:
        try:
            found = float(constant)
        except OverflowError:
            found = math.inf
        if not abs(found) <= LARGEST:
            raise self.wrong(f"{self.part(node)[:20]} is too large", f"it must be at most {LARGEST:g}")
        return np.array(found)

    def _named(self, node: ast.Name, columns: Columns) -> Value:
        name = self.column_name(node)
        if name not in columns:
            raise self.wrong(f"unknown column {name!r}", nearest(name, columns, "the columns are"))
        return columns[name]

    def _called(self, node: ast.Call, name: str, columns: Columns) -> Value:
        if name not in NAMES:
            raise self.wrong(f"unknown function {name!r} in an expression", nearest(name, NAMES, "the functions are"))
        if name in FOLDS and len(node.args) < 2:
            remedy = "give two or more (extremes of a column are not released)"
            raise self.wrong(f"{self.part(node)} has fewer than two arguments", remedy)
        if name == "clamp" and len(node.args) != 3:
            raise self.wrong(f"{self.part(node)} has {len(node.args)} arguments", "write clamp(x, low, high)")
        if name not in (*FOLDS, "clamp") and len(node.args) != 1:
            raise self.wrong(f"{self.part(node)} has {len(node.args)} arguments", "it must have one")
        if name == "missing":
            return Value(np.isnan(self.value(columns, node.args[0]).data).astype(np.float64), "truth")
        values = [self._numeric(argument, columns) for argument in node.args]
        arguments = [value.data for value in values]
        if name == "clamp":
            return _finite(np.minimum(np.maximum(arguments[0], arguments[1]), arguments[2]))
        if name not in FOLDS:
            return _finite(FUNCTIONS[name](*arguments))
        dates = {value.date for value in values}
        return replace(_finite(reduce(FOLDS[name], arguments)), date="" if "" in dates else max(dates))

    def _compared(self, node: ast.Compare, columns: Columns) -> Floats:
        found = []
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            if isinstance(op, ast.In | ast.NotIn):
                if not isinstance(right, ast.Tuple | ast.List | ast.Set) or not right.elts:
                    raise self.wrong(f"{self.part(right)} is not a list", 'write it as in region in ("north", "south")')
                among = _any_of([self._pair(left, ast.Eq(), each, columns) for each in right.elts])
                found.append(among if isinstance(op, ast.In) else 1 - among)
            elif type(op) in COMPARISONS:
                found.append(self._pair(left, op, right, columns))
            else:
                raise self.wrong(f"{self.part(node)} has `is`", "write ==")
        return all_of(found)

    def _pair(self, left: ast.expr, op: ast.cmpop, right: ast.expr, columns: Columns) -> Floats:
        texts = [_text(node) is not None for node in (left, right)]
        if any(texts):
            if all(texts):
                raise self.wrong(f"{self.part(left)} and {self.part(right)} are texts", "one must be a column")
            other, literal = (right, left) if texts[0] else (left, right)
            known = self.value(columns, other)
            level = self._level(other, known, _text(literal) or "")
            a, b = (level, known) if texts[0] else (known, level)
        else:
            a, b = self.value(columns, left), self.value(columns, right)
        if bool(a.date) != bool(b.date) and "text" not in (a.kind, b.kind):
            one, number, found = (left, right, b) if a.date else (right, left, a)
            raise self._mismatch(number, found, f"a date, as {self.part(one)} is")
        if (a.kind == "text") != (b.kind == "text"):
            one, number, found = (left, right, b) if a.kind == "text" else (right, left, a)
            raise self._mismatch(number, found, f"a category, as {self.part(one)} is")
        if a.kind == "text" and not isinstance(op, ast.Eq | ast.NotEq) and not (a.ordered and a.levels == b.levels):
            raise self.wrong(
                f"{self.part(left)} and {self.part(right)} have no common order", "compare them with == or !="
            )
        if a.levels != b.levels:
            places = {level: float(i) for i, level in enumerate(a.levels)}
            numbers = np.array([*(places.get(level, -1.0) for level in b.levels), math.nan])
            b = Value(numbers[np.where(np.isnan(b.data), len(b.levels), b.data).astype(np.int64)], "text", a.levels)
        return np.where(np.isnan(a.data) | np.isnan(b.data), math.nan, COMPARISONS[type(op)](a.data, b.data))

    def _level(self, node: ast.expr, of: Value, text: str) -> Value:
        if of.date:
            day = day_of(text)
            if day is None:
                raise self.wrong(f"{text!r} is no date", f'{self.part(node)} is one: compare it as with "2020-01-31"')
            return Value(np.array(day), "number", date=of.date)
        if of.kind != "text":
            raise self._mismatch(node, of, f"a category, to be compared with {text!r}")
        if text not in of.levels:
            raise self.wrong(f"{self.part(node)} has no level {text!r}", nearest(text, of.levels, "its levels are"))
        return Value(np.array(float(of.levels.index(text))), "text", of.levels, of.ordered)


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _date_of(op: ast.operator, left: DateKind, right: DateKind) -> DateKind:
    """Kind of a sum or difference of dates and numbers; anything else is a number."""
    if isinstance(op, ast.Add) and not (left and right):
        return left or right
    return left if isinstance(op, ast.Sub) and not right else ""


def _finite(numbers: Floats) -> Value:
    return Value(finite(numbers), "number")


def all_of(truths: Iterable[Floats]) -> Floats:
    """Kleene's `and` of truths of shape (rows,): false if any is false, otherwise missing if any is."""
    return reduce(lambda a, b: np.where((a == 0) | (b == 0), 0.0, a * b), truths)


def _any_of(truths: Iterable[Floats]) -> Floats:
    return 1 - all_of(1 - truth for truth in truths)
