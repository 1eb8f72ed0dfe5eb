"""Rules that public rows suggest, for a person to judge; no private table is read.

A rule is suggested if all public rows obey it, and if as many rows would hardly do so by chance, were
their columns independent: with a probability of at most CHANCE. What public rows obey may still fail in
others.
"""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.column import Value
from thesis_cli.privacy.tables.expressions import column_value
from thesis_cli.privacy.tables.schema import Schema

CHANCE = 1e-6
"""Largest probability that independent columns obey a rule."""
LISTED = 20
"""Most combinations of two columns that are suggested not to occur; those expected most often are."""
ROUNDING = 1e-9
"""Relative error of a sum."""


def with_suggestions(schema: Schema, rows: Rows, source: str) -> tuple[str, tuple[str, ...]]:
    """Text of the schema, with suggested rules as comments at its end; and these rules."""
    rules = suggested_rules(schema, rows)
    head = (
        f"# {len(rules)} rules that all {len(rows):,} public rows of {source} obey, more than chance explains."
        " Keep those that\n# always hold, in a table [constraints] with rules = [...].\n"
    )
    return schema.to_toml() + "\n" + head + "".join(f"# {json.dumps(rule)},\n" for rule in rules), rules


def suggested_rules(schema: Schema, rows: Rows) -> tuple[str, ...]:
    """Rules that the schema lacks and its public rows obey: sums, orders, and combinations of levels that
    do not occur. Columns that its rules determine are left out.
    """
    decoded, found = schema.decode(rows), schema
    values = {column.name: column_value(column, decoded[column.name]) for column in schema.encoded}
    for rule in (*_sums(values), *_orders(values), *_exclusions(values)):
        if rule in schema.rules:
            continue
        try:
            found = Schema(schema.columns, rules=(*found.rules, rule))
        except InputError:
            continue  # such as a column that another rule determines
    return found.rules[len(schema.rules) :]


def _unlikely(share: float, count: int) -> bool:
    """Whether `count` independent rows rarely obey what a share of rows obeys."""
    return count > 1 and count * math.log(max(share, 1 / count)) <= math.log(CHANCE)


def _sums(values: dict[str, Value]) -> Iterator[str]:
    """`a == b`, and `a == b + c`, of numbers."""
    numbers = {name: value.data for name, value in values.items() if value.kind == "number" and not value.date}
    parts: dict[tuple[str, ...], Floats] = {(name,): data for name, data in numbers.items()}
    parts |= {(a, b): numbers[a] + numbers[b] for a, b in combinations(numbers, 2)}
    order = list(numbers)
    for name, whole in numbers.items():
        for of, total in parts.items():
            if name in of or (len(of) == 1 and order.index(of[0]) > order.index(name)):
                continue
            known = ~np.isnan(whole + total)
            x, y = whole[known], total[known]
            if _equal(x, y).all() and _unlikely(float(_equal(x, np.roll(y, 1)).mean()) if len(x) else 1.0, len(x)):
                yield f"{_quoted(name)} == {' + '.join(map(_quoted, of))}"


def _equal(x: Floats, y: Floats) -> np.ndarray:
    return np.abs(x - y) <= ROUNDING * (np.abs(x) + np.abs(y))


def _orders(values: dict[str, Value]) -> Iterator[str]:
    """`a <= b` of numbers, or of dates, without those that follow from two others."""
    found = set()
    for (a, one), (b, other) in permutations(values.items(), 2):
        if (one.kind, other.kind, one.date) != ("number", "number", other.date):
            continue
        known = ~np.isnan(one.data + other.data)
        x, y = one.data[known], other.data[known]
        if len(x) and (x <= y).all() and (x < y).any():
            share = float(np.searchsorted(np.sort(x), y, "right").mean()) / len(x)
            if _unlikely(share, len(x)):
                found.add((a, b))
    for a, b in sorted(found):
        if not any((a, c) in found and (c, b) in found for c in values):
            yield f"{_quoted(a)} <= {_quoted(b)}"


def _exclusions(values: dict[str, Value]) -> Iterator[str]:
    """`not (a == "x" and b == "y")` of levels and truths."""
    levels = {name: value for name, value in values.items() if value.kind != "number"}
    for (a, one), (b, other) in combinations(levels.items(), 2):
        known = ~np.isnan(one.data + other.data)
        sizes = [len(value.levels) or 2 for value in (one, other)]
        places = one.data[known].astype(np.int64) * sizes[1] + other.data[known].astype(np.int64)
        table = np.bincount(places, minlength=sizes[0] * sizes[1]).reshape(sizes)
        expected = np.outer(table.sum(1), table.sum(0)) / max(1, len(places))
        cells = np.argwhere((table == 0) & (expected >= -math.log(CHANCE))).tolist()
        for i, j in sorted(cells, key=lambda cell: -expected[cell[0], cell[1]])[:LISTED]:
            yield f"not ({_level(a, one, i)} and {_level(b, other, j)})"


def _level(name: str, value: Value, place: int) -> str:
    if value.levels:
        return f"{_quoted(name)} == {json.dumps(value.levels[place], ensure_ascii=False)}"
    return _quoted(name) if place else f"not {_quoted(name)}"


def _quoted(name: str) -> str:
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"`{name}`"
