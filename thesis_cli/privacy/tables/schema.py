"""Public description of a private table: columns, bounds, levels, kernel, and rules between columns, such
as `experience == age - education - 6` or `a <= b`; it encodes rows and decodes them.

A schema is public input: its author takes bounds and levels from public knowledge (a code book, a
law, common sense), never from the table. No code here looks at values to choose a bound, a level, a
bandwidth or a default.

A column that a rule determines is not encoded: it is computed from the others when rows are decoded.
All other rules are conditions, which `obey` makes synthetic rows fulfil by exchanging values
of a column between rows, so that the values of each column stay as they are.
"""

from __future__ import annotations

import ast
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, nearest
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.tables.column import ATOM, Column, Value, Values, check_kernel, first_double, wrong
from thesis_cli.privacy.tables.columns import KINDS, Boolean, Category, Integer, Real
from thesis_cli.privacy.tables.dates import Date, DateTime
from thesis_cli.privacy.tables.expressions import Formula, column_value

DRAWN = 10_000
"""Rows drawn from the schema, one of which must obey."""
DONORS = 2000
"""Largest number of rows that a row is compared with, one by one."""
SEARCHED = 1000
"""Largest number of rows that are compared with all of these to exchange values."""

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


__all__ = [
    "Boolean",
    "Category",
    "Column",
    "Date",
    "DateTime",
    "Integer",
    "Real",
    "Schema",
    "Unknown",
    "Values",
    "template",
]

Unknown = Literal["error", "missing"]

EXPONENT = 4.0  # mean of -ln k over two independent uniform rows, if the schema does not set the kernel


@dataclass(frozen=True)
class Schema:
    """The public columns of a private table, and the kernel on its rows.

    Attributes
    ----------
    columns : at least one, all of different names. The release leaves out the table's other
        columns.
    gamma, rho : parameters of the kernel, for columns that do not set their own.
    rules : conditions between columns that synthetic rows obey (`Rules`); private rows
        may break them.
    between : the rules, parsed.
    encoded : columns of encoded rows: all that no rule determines.

    Raises
    ------
    InputError : there are no columns, two have one name, gamma or rho is out of range, or `Rules`
        refuses a rule.
    """

    columns: tuple[Column, ...]
    gamma: float | None = None
    rho: float | None = None
    rules: tuple[str, ...] = ()
    between: Rules = field(init=False, repr=False, compare=False)
    encoded: tuple[Column, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.columns:
            raise InputError("the schema has no columns", "add a table [columns.NAME] for each column")
        twice = first_double(self.names)
        if twice is not None:
            raise wrong(twice, "it is listed twice", "list every column once")
        check_kernel("the kernel", self.gamma, self.rho)
        if not (isinstance(self.rules, tuple) and all(isinstance(rule, str) for rule in self.rules)):
            raise InputError("the rules are not a list of texts", 'write rules = ["a <= b"]')
        object.__setattr__(self, "between", Rules(self.columns, self.rules))
        determined = [each.column for each in self.between.determined]
        object.__setattr__(self, "encoded", tuple(c for c in self.columns if c not in determined))
        if not self.encoded:
            raise InputError("rules determine all columns", "leave one of them out")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def names_read(self) -> tuple[str, ...]:
        """Names of the columns that are read from tables, in order: those that are encoded."""
        return tuple(column.name for column in self.encoded)

    @property
    def reals(self) -> int:
        """Number D of real coordinates of an encoded row."""
        return sum(column.on_line for column in self.encoded)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of levels of each of the C codes of an encoded row."""
        return tuple(column.cardinality for column in self.encoded if column.cardinality)

    def kernel(self) -> RowKernel:
        """RowKernel on encoded rows; it depends on the schema alone.

        By default, gamma = 6 s / T and rho = exp(-s / (T (1 - 1/L))), with s = 4, T = D + C
        coordinates in all, and L levels. The squared distance of two independent uniform numbers is
        1/6 on average, and two uniform levels differ with probability 1 - 1/L, so each coordinate
        adds s / T to the mean of -ln k of two unrelated rows. Their k is then about exp(-4)
        whatever the number of columns: not near 1, where all rows look alike, and not near 0, where
        no row is informative about another.
        """
        share = EXPONENT / (self.reals + len(self.cardinalities))
        gamma = 6 * share if self.gamma is None else self.gamma
        return RowKernel(
            np.array([gamma if c.gamma is None else c.gamma for c in self.encoded if c.on_line], dtype=np.float64),
            np.array([self._rho(c, share) for c in self.encoded if c.cardinality], dtype=np.float64),
        )

    def _rho(self, column: Column, share: float) -> float:
        if column.rho is not None:
            return column.rho
        return math.exp(-share / (1 - 1 / column.cardinality)) if self.rho is None else self.rho

    def encode(self, columns: Mapping[str, Values], first_row: int = 1, unknown: Unknown = "error") -> Rows:
        """Encode the rows of a part of the table.

        Parameters
        ----------
        columns : arrays of N values by name: numbers, texts, booleans or objects; columns that the
            schema lacks are ignored. None, NaN and, unless they are levels, `columns.MISSING_TEXTS`
            are missing values.
        first_row : number of the first of these rows in the table, for errors.
        unknown : treatment of a value that is not a level or has the wrong type: an error, or
            (`missing`, in columns that may have missing values) a missing value. The error depends
            on private values: it is only for people who may see the table, names the place and not
            the value, and must end the release.

        Raises
        ------
        InputError : a column is missing, or has an unknown, wrong or (unless allowed) missing
            value.
        """
        self.check_names(columns)
        lengths = {len(columns[name]) for name in self.names_read}
        if len(lengths) > 1:
            raise InputError("the columns differ in length", "they must be columns of one table")
        (count,) = lengths
        reals = np.empty((count, self.reals))
        codes = np.empty((count, len(self.cardinalities)), np.int64)
        d = c = 0
        for column in self.encoded:
            found = column.read(np.asarray(columns[column.name]))
            if unknown == "missing" and column.missing:
                found[found < 0] = np.nan
            gaps = np.isnan(found)
            _check_readable(column, found, gaps, first_row)
            if column.on_line:
                numbers, found = _on_line(column, found)
                reals[:, d] = np.where(gaps, 0.5, numbers)
                d += 1
            if column.cardinality:
                codes[:, c] = np.where(gaps, column.cardinality - 1, found)
                c += 1
        return Rows(reals, codes)

    def decode(self, rows: Rows) -> dict[str, Values]:
        """Decode rows into an array of N values for each name of a column.

        The values are float64, int64, str or bool by the kind of the column; dates are ISO texts.
        Missing values are NaN among float64; a column of another kind that may have them is an
        array of objects, with None for missing. Columns that rules determine are computed, from
        reals rounded as in files, so that the rules hold of the file too. Coordinates beyond [0, 1] are clamped.
        """
        columns: dict[str, Values] = {}
        d = c = 0
        for column in self.encoded:
            gaps = np.zeros(len(rows), bool)
            found = np.zeros(len(rows))
            if column.cardinality:
                found = rows.codes[:, c].astype(np.float64)
                gaps = found == column.cardinality - 1 if column.missing else gaps
                c += 1
            codes = found
            if column.on_line:
                found = np.clip(rows.reals[:, d], 0, 1)
                d += 1
            values = column.write(np.where(gaps, 0, found))
            for k, atom in enumerate(column.atoms, 1):
                values[codes == k] = atom
            if column.missing:
                values = column.with_gaps(values, gaps)
            columns[column.name] = column.rounded(values) if self.rules else values
        return self.between.complete(columns) if self.rules else columns

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse a table that lacks a column (`InputError`), unless a rule determines it."""
        names = tuple(names)
        for name in self.names_read:
            if name not in names:
                raise InputError(f"the table has no column {name!r}", nearest(name, names, "its columns are"))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a TOML file as `parse` does; errors name the file."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise InputError(f"it cannot be read ({error.strerror})", "give a schema in TOML", source=path) from None
        except UnicodeDecodeError:
            raise InputError("it is not UTF-8", "give a schema in TOML", source=path) from None
        try:
            return cls.parse(text)
        except InputError as error:
            raise InputError(error.problem, error.remedy, source=path, line=error.line) from None

    @classmethod
    def parse(cls, text: str) -> Schema:
        """Read a schema from TOML.

        A table `[columns.NAME]` for each column has `type`, one of `KINDS`, and the attributes of
        that class; a table `[kernel]` may have `gamma` and `rho`, a table `[constraints]` the list
        `rules`.

        Raises
        ------
        InputError : the text is not TOML, a key is unknown, or an attribute is missing or out of
            range; names the column.
        """
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # of a number of 5,000 digits, or a deep nest
            raise _not_toml(str(error)) from None
        keys = {"columns": (), "kernel": ("gamma", "rho"), "constraints": ("rules",)}
        _check_keys("", content, tuple(keys))
        columns, *others = (_table(f"[{key}]", content.get(key, {})) for key in keys)
        for key, found in zip(("kernel", "constraints"), others, strict=True):
            _check_keys(f"[{key}]: ", found, keys[key])
        rules = others[1].get("rules", [])
        rules = tuple(rules) if isinstance(rules, list) else rules
        return cls(tuple(_column(name, entry) for name, entry in columns.items()), **others[0], rules=rules)

    def to_toml(self) -> str:
        """Text that `parse` reads as this schema."""
        kernel = [f"{key} = {value!r}" for key in ("gamma", "rho") if (value := getattr(self, key)) is not None]
        blocks = [["[kernel]", *kernel]] if kernel else []
        for column in self.columns:
            values = [(f.name, getattr(column, f.name), f.default) for f in fields(column) if f.name != "name"]
            keys = [f"{key} = {_toml(value)}" for key, value, default in values if value != default]
            blocks.append([f"[columns.{_key(column.name)}]", f'type = "{column.kind}"', *keys])
        if self.rules:
            blocks.append(["[constraints]", f"rules = {_toml(self.rules)}"])
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def template(columns: Mapping[str, str]) -> str:
    """Schema to fill in, made from the columns' names and storage types alone, never from values.

    Bounds, levels, and types that the storage leaves open (`text`) are comments to complete. Until
    they are, `Schema.parse` reports what the first such column lacks.

    Parameters
    ----------
    columns : storage type by name of column, as `Table.columns` has them.
    """
    blocks = [
        "# Everything in this file is public: take bounds and levels from what is known without the table.\n"
        "# Complete what is marked TODO. Remove a column's block to leave the column out of the release.\n"
        "# Values beyond the bounds are clamped. missing = true allows missing values in a column.\n"
    ]
    others = ", ".join(f'"{kind}"' for kind in KINDS if kind != "category")
    open_type = (
        f'# TODO type = "category"  # or {others}\n'
        '# TODO levels = ["...", "..."]  # of a category; ordered = true where neighbours are alike\n'
        "# TODO low = , high =  # of a real or an integer, on lines of their own\n"
    )
    for name, storage in columns.items():
        type_lines = f'type = "{storage}"\n{KINDS[storage].blanks}' if storage in KINDS else open_type
        blocks.append(f"[columns.{_key(name)}]\n{type_lines}# missing = true\n")
    return "\n".join(blocks)


def _on_line(column: Column, found: Floats) -> tuple[Floats, Floats]:
    """Numbers of a column on its line, atoms at the number nearest to them, and codes."""
    atoms = found >= ATOM
    codes = np.where(atoms, found - (ATOM - 1), 0)
    near = np.append(0.0, column.near)[codes.astype(np.int64)]
    return np.where(atoms, near, found), codes


def _check_readable(column: Column, found: Floats, gaps: npt.NDArray[np.bool_], first_row: int) -> None:
    """Refuse values that the schema does not allow; the error names the first place, not the value,
    which is private.
    """
    refused = (found < 0) | (gaps & (not column.missing))
    if refused.any():
        at = int(refused.argmax())
        if gaps[at]:
            raise wrong(
                column.name, f"row {first_row + at} has no value", "it must have one, or the schema missing = true"
            )
        raise wrong(column.name, f"row {first_row + at} cannot be read", f"it must be {column.content}")


def _not_toml(message: str) -> InputError:
    place = re.search(r" \(at line (\d+), column \d+\)$", message)
    line = int(place[1]) if place else None
    double = re.search(r"Cannot (?:declare|overwrite|redefine).*?'columns', (['\"])(.*?)\1", message)
    if double:
        return InputError(f"column {double[2]!r} is listed twice", "list it once", source="schema", line=line)
    return InputError(f"it is not TOML: {message.partition(' (at')[0]}", source="schema", line=line)


def _table(where: str, found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InputError(f"{where} is not a table", "it must be a table of keys")
    return found


def _check_keys(where: str, found: Iterable[str], known: tuple[str, ...]) -> None:
    for key in found:
        if key not in known:
            raise InputError(f"{where}unknown key {key!r}", nearest(key, known, "the keys are"))


def _column(name: str, found: object) -> Column:
    entry = dict(_table(f"column {name!r}", found))
    if "type" not in entry:
        raise wrong(name, "it has no type", f"its type must be {', '.join(KINDS)}")
    kind = entry.pop("type")
    kind = "datetime" if kind == "timestamp" else kind
    if not isinstance(kind, str) or kind not in KINDS:
        raise wrong(name, f"unknown type {kind!r}", nearest(str(kind), KINDS, "the types are"))
    return KINDS[kind].parse(name, entry)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def obey(schema: Schema, rows: Rows) -> Rows:
    """Rows that obey the rules of their schema; those that do already hardly change. This is for rows made after the
    noise was drawn, so that rules cost no privacy.

    A row that breaks rules exchanges the value of a column with the nearest row, by rank, such that
    the two break fewer. If there is none, it takes a value from another row without giving its own;
    if that is not enough, all columns that rules are about, from the nearest row that obeys.

    Raises
    ------
    InputError : no row of many drawn from the schema obeys.
    """
    rules = schema.between
    if not rules.involved:
        return rows
    data = rules.data(schema.decode(rows))
    source = {name: np.arange(len(rows)) for name in rules.involved}
    bad = np.flatnonzero(rules.broken(data))
    for both in (True, False):
        for name, step in _steps(rules.involved, len(rows)):
            if not len(bad):
                break
            touched = _exchange(rules, data, source, bad, name, step, both=both)
            bad = np.union1d(bad, touched)
            bad = bad[rules.broken(_some(data, bad)) > 0]
        if both:
            _exchange_each(rules, data, source, bad[:SEARCHED])
            bad = np.flatnonzero(rules.broken(data)) if len(bad) else bad
    places = _places(schema)
    found = Rows(rows.reals.copy(), rows.codes.copy())
    for name, taken in source.items():
        real, code = places[name]
        found.reals[:, real], found.codes[:, code] = rows.reals[taken, real], rows.codes[taken, code]
    if len(bad):
        good = np.setdiff1d(np.arange(len(rows)), bad)
        donors = found[good[:: -(-len(good) // DONORS)]] if len(good) else drawn(schema)
        nearest = _nearest(found[bad], donors)
        for real, code in (places[name] for name in source):
            found.reals[bad, real], found.codes[bad, code] = donors.reals[nearest, real], donors.codes[nearest, code]
    return found


def drawn(schema: Schema) -> Rows:
    """Rows that obey, of many drawn uniformly from the schema; always the same.

    Raises
    ------
    InputError : there are none.
    """
    rng = np.random.default_rng(0)
    codes = rng.integers(0, schema.cardinalities, (DRAWN, len(schema.cardinalities)))
    rows = Rows(rng.random((DRAWN, schema.reals)), codes)
    rules = schema.between
    found = rows[rules.broken(rules.data(schema.decode(rows))) == 0] if rules.involved else rows
    if not len(found):
        problem = f"none of {DRAWN:,} rows drawn from the schema obeys its rules"
        raise InputError(problem, "its bounds and levels must allow rows that obey")
    return found


def _places(schema: Schema) -> dict[str, tuple[slice, slice]]:
    """Places of each encoded column among the reals and among the codes; there are 0 or 1 of
    each.
    """
    found, d, c = {}, 0, 0
    for column in schema.encoded:
        after = d + column.on_line, c + bool(column.cardinality)
        found[column.name] = slice(d, after[0]), slice(c, after[1])
        d, c = after
    return found


def _exchange(
    rules: Rules, data: Data, source: dict[str, Ints], bad: Ints, name: str, step: int, *, both: bool
) -> Ints:
    """Exchange the value of a column with the row so many ranks away, where the two then break fewer
    rules; or take its value, where the row then breaks fewer. Returns those other rows.
    """
    order = np.argsort(data[name], kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    at = rank[bad] + step
    inside = (at >= 0) & (at < len(order))
    pairs = np.column_stack([bad[inside], order[at[inside]]])
    if both:  # each row in one exchange at most
        first = np.zeros(pairs.size, bool)
        first[np.unique(pairs, return_index=True)[1]] = True
        pairs = pairs[first.reshape(-1, 2).all(1)]
    rows, partners = pairs.T
    before = _some(data, pairs.T.ravel())
    fewer = rules.broken({**before, name: np.roll(before[name], len(rows))}) - rules.broken(before)
    given, taken = np.split(fewer, 2)[::-1] if len(rows) else (fewer, fewer)
    chosen = (taken + given if both else taken) < 0
    rows, partners = rows[chosen], partners[chosen]
    for array in (data[name], source[name]):
        if both:
            array[rows], array[partners] = array[partners], array[rows]
        else:
            array[rows] = array[partners]
    return np.asarray(partners)


def _exchange_each(rules: Rules, data: Data, source: dict[str, Ints], bad: Ints) -> None:
    """Exchange values as `_exchange`, row by row, with any of many others: those that leave the
    fewest rules broken, the nearest by rank among them.
    """
    count = len(next(iter(data.values())))
    others = np.arange(0, count, -(-count // DONORS))
    for row in bad:
        for name in rules.involved:
            rows = np.full(len(others), row)
            before = _some(data, np.concatenate([rows, others]))
            after = {**before, name: np.roll(before[name], len(others))}
            fewer = (rules.broken(after) - rules.broken(before)).reshape(2, -1).sum(0)
            if fewer.min(initial=0) < 0:
                ranks = np.argsort(np.argsort(data[name], kind="stable"), kind="stable")
                best = others[np.lexsort((abs(ranks[others] - ranks[row]), fewer))[0]]
                for array in (data[name], source[name]):
                    array[[row, best]] = array[[best, row]]


def _some(data: Data, rows: Ints) -> Data:
    return {name: numbers[rows] for name, numbers in data.items()}


def _steps(names: tuple[str, ...], count: int) -> Iterator[tuple[str, int]]:
    """Columns and differences of ranks, small ones first."""
    step = 1
    while step < count:
        for sign in (1, -1):
            for name in names:
                yield name, sign * step
        step = max(step + 1, step * 9 // 8)


def _nearest(rows: Rows, donors: Rows) -> Ints:
    """Place of the donor nearest to each row, by encoded numbers and levels."""
    found = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        apart = ((donors.reals - rows.reals[i]) ** 2).sum(1) + (donors.codes != rows.codes[i]).sum(1)
        found[i] = int(apart.argmin())
    return found
