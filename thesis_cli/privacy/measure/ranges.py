"""Public bounds of an expression, by interval arithmetic from the bounds of the schema.

Values are clamped to these bounds before they are added up, so that a bound that is too narrow (by
rounding, say) costs accuracy and never privacy.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from thesis_cli.privacy.tables.column import LARGEST
from thesis_cli.privacy.tables.expressions import ARITHMETIC, FOLDS, Formula
from thesis_cli.privacy.tables.schema import Schema

MONOTONE = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt}


@dataclass(frozen=True)
class Range:
    """Bounds of an expression's values.

    Attributes
    ----------
    low, high : bounds; infinite if there are none.
    gaps : whether values may be missing.
    """

    low: float
    high: float
    gaps: bool = False

    @property
    def bounded(self) -> bool:
        """Whether both bounds are usable numbers."""
        return max(abs(self.low), abs(self.high)) <= LARGEST


ANY = Range(-math.inf, math.inf, gaps=True)
TRUTH = Range(0.0, 1.0)


def column_ranges(schema: Schema) -> dict[str, Range]:
    """Range of each column: of a date, in days since 1970; of a category, of its levels' numbers."""
    return {c.name: Range(float(c.bounds[0]), float(c.bounds[1]), c.missing) for c in schema.columns}


def range_of(formula: Formula, node: ast.expr, columns: Mapping[str, Range]) -> Range:
    """Range of an expression that `Formula.value` takes.

    Parameters
    ----------
    node : the part of `formula` that counts.
    columns : range of each column.
    """
    with np.errstate(all="ignore"):
        return _range(formula, node, columns)


def bounded_range(formula: Formula, node: ast.expr, columns: Mapping[str, Range]) -> Range:
    """Range of an expression that has public bounds.

    Parameters
    ----------
    formula, node, columns : as for `range_of`.

    Raises
    ------
    InputError : it has none.
    """
    found = range_of(formula, node, columns)
    if not found.bounded:
        part = formula.part(node)
        raise formula.wrong(f"{part} has no public bounds", f"write clamp({part}, low, high) with public numbers")
    return found


def _range(formula: Formula, node: ast.expr, columns: Mapping[str, Range]) -> Range:
    def of(part: ast.expr) -> Range:
        return _range(formula, part, columns)

    match node:
        case ast.Constant(value=bool() | int() | float() as constant):
            return Range(float(constant), float(constant))
        case ast.Name():
            return columns[formula.column_name(node)]
        case ast.UnaryOp(op=ast.USub()):
            inner = of(node.operand)
            return Range(-inner.high, -inner.low, inner.gaps)
        case ast.UnaryOp(op=ast.UAdd()):
            return of(node.operand)
        case ast.UnaryOp():
            return replace(TRUTH, gaps=of(node.operand).gaps)
        case ast.BinOp():
            return _usable(_arithmetic(node.op, of(node.left), of(node.right)))
        case ast.BoolOp():
            return replace(TRUTH, gaps=any(of(part).gaps for part in node.values))
        case ast.Compare():
            return replace(TRUTH, gaps=any(of(part).gaps for part in _operands(node)))
        case ast.Call(func=ast.Name(id="missing")):
            return TRUTH
        case ast.Call(func=ast.Name(id=name)):
            return _usable(_called(name, [of(argument) for argument in node.args]))
    return ANY


def _operands(node: ast.Compare) -> list[ast.expr]:
    """Compared expressions, without texts, those in lists included."""
    parts = [node.left]
    for part in node.comparators:
        parts += part.elts if isinstance(part, ast.Tuple | ast.List | ast.Set) else [part]
    return [part for part in parts if not (isinstance(part, ast.Constant) and isinstance(part.value, str))]


def _usable(found: Range) -> Range:
    """The range; numbers beyond `LARGEST` are missing values."""
    if math.isnan(found.low) or math.isnan(found.high):
        return ANY
    return found if found.bounded else replace(found, gaps=True)


def _arithmetic(op: ast.operator, a: Range, b: Range) -> Range:
    gaps = a.gaps or b.gaps
    if isinstance(op, ast.Div | ast.FloorDiv) and b.low <= 0 <= b.high:
        return ANY
    if isinstance(op, ast.Mod):
        size = max(abs(b.low), abs(b.high))
        return Range(0.0 if b.low >= 0 else -size, 0.0 if b.high <= 0 else size, gaps or b.low <= 0 <= b.high)
    if isinstance(op, ast.Pow):
        return _power(a, b, gaps)
    return _corners(ARITHMETIC[type(op)], [a, b], gaps)


def _power(a: Range, b: Range, gaps: bool) -> Range:
    whole = b.low == b.high and b.low >= 0 and b.low == int(b.low)
    if whole and b.low % 2 == 0 and a.low < 0 < a.high:
        found = _corners(np.power, [a, b], gaps)
        return replace(found, low=0.0 if b.low else 1.0)
    if whole or a.low > 0 or (a.low == 0 and b.low >= 0):
        return _corners(np.power, [a, b], gaps)
    return ANY


def _called(name: str, arguments: list[Range]) -> Range:
    gaps = any(argument.gaps for argument in arguments)
    first = arguments[0]
    if name == "abs":
        ends = sorted((abs(first.low), abs(first.high)))
        return Range(0.0 if first.low < 0 < first.high else ends[0], ends[1], gaps)
    if name == "clamp":
        return _corners(lambda x, low, high: np.minimum(np.maximum(x, low), high), arguments, gaps)
    if name in FOLDS:
        lows, highs = [argument.low for argument in arguments], [argument.high for argument in arguments]
        fold = max if name == "max" else min
        return Range(fold(lows), fold(highs), gaps)
    least = {"exp": -math.inf, "log": 0.0, "sqrt": 0.0}[name]
    inside = first.low > least or (name == "sqrt" and first.low == 0)
    clipped = [Range(max(first.low, least), max(first.high, least))]
    return _corners(MONOTONE[name], clipped, gaps or not inside)


def _corners(function: Any, arguments: list[Range], gaps: bool) -> Range:
    """Range of a function that is monotone in each argument."""
    found = [float(function(*corner)) for corner in product(*((float(a.low), float(a.high)) for a in arguments))]
    if any(map(math.isnan, found)):
        return ANY
    return Range(min(found), max(found), gaps)
