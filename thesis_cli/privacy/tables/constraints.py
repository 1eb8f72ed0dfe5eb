"""Rules between the columns of a schema, such as `experience == age - education - 6` or `a <= b`.

Rules are public. A column that a rule determines is not encoded: it is computed from the others when
rows are decoded. All other rules are conditions, which `repair.obey` makes synthetic rows obey.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.tables.column import Column, Value, Values
from thesis_cli.privacy.tables.expressions import Formula, column_value

Data = dict[str, Floats]
"""Numbers of rows by column, as `Value.data`."""


@dataclass(frozen=True)
class Determined:
    """A column that a rule computes from others: `formula` at `node`, the other side of ==."""

    column: Column
    formula: Formula
    node: ast.expr

    def data(self, values: Mapping[str, Value]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Numbers of the column, and a mask of those that the column may have."""
        return self.column.nearest(self.formula.value(values, self.node).data)

    def write(self, data: Floats) -> Values:
        """Values as `Schema.decode` returns them, of numbers."""
        gaps = np.isnan(data)
        values = self.column.of_numbers(np.where(gaps, self.column.line[0], data))
        return self.column.with_gaps(values, gaps) if self.column.missing else values


class Rules:
    """Rules between columns.

    Parameters
    ----------
    columns : columns of a schema.
    texts : rules; each is a condition (`expressions.Formula`). One of the form `column ==
        expression` determines the column, if that is a number, a date or a truth value; a
        condition on a missing value holds.

    Attributes
    ----------
    determined : columns that rules determine, in an order in which they can be computed.
    conditions : the other rules.
    involved : names of all other columns that the rules are about.

    Raises
    ------
    InputError : a rule cannot be read, is no condition, or is an equality of numbers of which none
        is a column; a column is determined twice or by itself, or may be missing.
    """

    def __init__(self, columns: tuple[Column, ...], texts: tuple[str, ...]) -> None:
        by_name = {column.name: column for column in columns}
        samples = ((column, column.write(np.zeros(1))) for column in columns if texts)
        sample = {column.name: column_value(column, values) for column, values in samples}
        found: dict[str, Determined] = {}
        self.conditions: list[Formula] = []
        used: dict[str, set[str]] = {}
        names: set[str] = set()
        for text in texts:
            formula = _formula(text, sample)
            names |= _names(formula, formula.tree)
            sides = _sides(formula, sample)
            if not sides:
                self.conditions.append(formula)
                continue
            name, node = next(((n, node) for n, node in sides if n not in found), ("", None))
            if node is None:
                raise _wrong(text, f"column {sides[0][0]!r} is determined twice", "leave one of the rules out")
            found[name], used[name] = Determined(by_name[name], formula, node), _names(formula, node)
            if not used[name]:
                raise _wrong(text, f"column {name!r} has a single value", "leave it out of the schema")
            _check_kind(text, found[name], sample)
        try:
            order = list(TopologicalSorter(used).static_order())
        except CycleError as error:
            raise _wrong(
                found[error.args[1][0]].formula.text, "its column determines itself", "change a rule"
            ) from None
        self.determined = tuple(found[name] for name in order if name in found)
        for each in self.determined:
            for name in used[each.column.name]:
                if by_name[name].missing and not each.column.missing:
                    problem = f"{name!r} may be missing, and {each.column.name!r} may not"
                    raise _wrong(each.formula.text, problem, "write missing = true for both")
        self.involved = tuple(name for name in by_name if name in names and name not in found)
        self._columns = by_name

    def complete(self, decoded: Mapping[str, Values]) -> dict[str, Values]:
        """All columns of decoded rows that lack the determined ones; those are clamped to their
        bounds.
        """
        values = {name: column_value(self._columns[name], decoded[name]) for name in self.involved}
        made = {}
        for each in self.determined:
            made[each.column.name] = each.write(each.data(values)[0])
            values[each.column.name] = column_value(each.column, made[each.column.name])
        return {name: made[name] if name in made else decoded[name] for name in self._columns}

    def data(self, decoded: Mapping[str, Values]) -> Data:
        """Numbers of the columns that the rules are about."""
        return {name: column_value(self._columns[name], decoded[name]).data for name in self.involved}

    def broken(self, data: Data) -> Ints:
        """Number of rules that each row breaks; `data` has the involved columns."""
        count = len(next(iter(data.values()))) if data else 0
        values = {name: self._columns[name].value_of(numbers) for name, numbers in data.items()}
        found = np.zeros(count, np.int64)
        for each in self.determined:
            numbers, allowed = each.data(values)
            values[each.column.name] = each.column.value_of(np.broadcast_to(numbers, count))
            found += ~allowed
        for formula in self.conditions:
            found += formula.truth(values) == 0
        return found


def _formula(text: str, sample: Mapping[str, Value]) -> Formula:
    """A rule that can be evaluated."""
    try:
        formula = Formula(text)
        formula.truth(sample)
    except InputError as error:
        raise _wrong(text, error.problem, error.remedy) from None
    return formula


def _sides(formula: Formula, sample: Mapping[str, Value]) -> list[tuple[str, ast.expr]]:
    """Columns that a rule may determine, and what they are equal to; none if it is no equality of
    numbers or truth values.
    """
    tree = formula.tree
    if not (isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq)):
        return []
    found, pair = [], (tree.left, tree.comparators[0])
    for side, other in (pair, pair[::-1]):
        name = formula.column_name(side) if isinstance(side, ast.Name) else ""
        if name in sample and sample[name].kind == "text":
            return []
        if name and name not in _names(formula, other):
            found.append((name, other))
    if not found:
        remedy = "one side must be a column that the other side has not, as in `a == b - c`"
        raise _wrong(formula.text, "no column is alone on a side of ==", remedy)
    return found


def _names(formula: Formula, node: ast.expr) -> set[str]:
    """Columns in a part of a rule."""
    called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in called)
    return {formula.column_name(part) for part in parts}


def _check_kind(text: str, each: Determined, sample: Mapping[str, Value]) -> None:
    if each.column.atoms:
        raise _wrong(text, f"{each.column.name!r} has atoms", "leave them out: the rule gives its values")
    name, found = each.column.name, each.formula.value(sample, each.node)
    if (found.kind, bool(found.date)) != (sample[name].kind, bool(sample[name].date)):
        raise _wrong(text, f"the sides of == differ in kind at {name!r}", "both must be numbers, dates or truths")


def _wrong(text: str, problem: str, remedy: str) -> InputError:
    return InputError(f"rule {text!r}: {problem}", remedy)
