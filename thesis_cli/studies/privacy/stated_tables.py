"""Four generated tables, each with a property that private releases find hard, and a stated law.

    from thesis_cli.studies.privacy.stated_tables import STATED, stated_table

    stated_table("expenses").schema

`expenses` has heavy tails with true zeros, rounded values and a code 99; in `visits` columns
determine each other and combinations are impossible; in `parity` the label depends on two columns
together and on neither alone; `wide` has 45 columns with rare levels and 2,000 rows. The schemas
state what an author could know without the rows. The rows are nobody's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, nearest
from thesis_cli.privacy.tables.schema import Boolean, Category, Column, Integer, Real, Schema, Values
from thesis_cli.studies.privacy.real_tables import RealTable, Source

SEED = 40
HELD_OUT = 5000
"""Rows that test models."""
Generated = tuple[tuple[Column, ...], dict[str, Values]]


def _yes(rng: np.random.Generator, logits: Floats) -> Values:
    return np.asarray(rng.random(len(logits)) < 1 / (1 + np.exp(-logits)))


def _levels(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}{i}" for i in range(count))


def _zipf(rng: np.random.Generator, levels: int, rows: int, power: float = 1.0) -> Ints:
    shares = np.arange(1, levels + 1.0) ** -power
    return np.asarray(rng.choice(levels, rows, p=shares / shares.sum()), np.int64)


def expenses(rng: np.random.Generator, rows: int) -> Generated:
    """Four expenses: 0 in 60 % of the rows, else lognormal, half of these rounded to two digits;
    hours a week, with 99 for unknown in a tenth of the rows.
    """
    age = rng.integers(18, 91, rows)
    region = _zipf(rng, 8, rows)
    insured = _yes(rng, 0.04 * (age - 50) + 0.3 * (region < 2))
    columns: list[Column] = [Integer("age", 18, 90), Category("region", _levels("r", 8)), Boolean("insured")]
    found: dict[str, Values] = {
        "age": age,
        "region": np.array(_levels("r", 8), object)[region],
        "insured": insured,
    }
    common = rng.normal(size=rows)
    total = np.zeros(rows)
    for i, name in enumerate(("health", "dental", "travel", "gifts")):
        spends = rng.random(rows) < np.clip(0.4 + 0.15 * (2 * insured - 1) * (-1) ** i + 0.1 * np.tanh(common), 0, 1)
        values = np.exp(5.5 + 0.3 * i + 0.6 * common + 1.2 * rng.normal(size=rows) + 0.01 * (age - 50))
        scale = 10 ** np.floor(np.log10(values) - 1)
        values = np.where(rng.random(rows) < 0.5, np.rint(values / scale) * scale, np.rint(values))
        found[name] = np.where(spends, np.clip(values, 1, 1e6), 0.0)
        total += np.log1p(found[name])
        columns.append(Real(name, 1, 1_000_000, log=True, atoms=(0,)))
    hours = np.clip(np.rint(rng.normal(38, 12, rows) - 0.2 * np.maximum(age - 60, 0)), 0, 80).astype(np.int64)
    found["hours"] = np.where(rng.random(rows) < 0.1, 99, np.where(rng.random(rows) < 0.3, 40, hours))
    columns.append(Integer("hours", 0, 80, atoms=(99,)))
    found["debt"] = _yes(rng, 0.25 * (total - 10) - 0.03 * (age - 50))
    return (*columns, Boolean("debt")), found


def visits(rng: np.random.Generator, rows: int) -> Generated:
    """A district that one of 100 postal codes determines, the time of day that an hour does, a total
    of two parts, and no pregnancy of men.
    """
    place = rng.permutation(100) % 10
    code = _zipf(rng, 100, rows, 0.5)
    district = place[code]
    hour = np.minimum(rng.binomial(23, np.where(rng.random(rows) < 0.6, 0.42, 0.75)), 23)
    daypart = np.searchsorted([6, 11, 18], hour, side="right")
    beds, chairs = rng.poisson(3 + (district % 3), rows), rng.poisson(2 + daypart, rows)
    beds, chairs = np.minimum(beds, 19), np.minimum(chairs, 19)
    female = rng.random(rows) < 0.5
    pregnant = female & (rng.random(rows) < 0.2)
    urgent = _yes(rng, 0.5 * (district % 4 - 1.5) + 0.8 * (daypart == 3) - 0.3 * (beds - 4) + pregnant)
    dayparts = ("night", "morning", "day", "evening")
    columns: tuple[Column, ...] = (
        Category("postcode", _levels("p", 100)),
        Category("district", _levels("d", 10)),
        Integer("hour", 0, 23),
        Category("daypart", dayparts),
        Integer("beds", 0, 19),
        Integer("chairs", 0, 19),
        Integer("seats", 0, 38),
        Category("sex", ("female", "male")),
        Boolean("pregnant"),
        Boolean("urgent"),
    )
    return columns, {
        "postcode": np.array(_levels("p", 100), object)[code],
        "district": np.array(_levels("d", 10), object)[district],
        "hour": hour,
        "daypart": np.array(dayparts, object)[daypart],
        "beds": beds,
        "chairs": chairs,
        "seats": beds + chairs,
        "sex": np.where(female, "female", "male").astype(object),
        "pregnant": pregnant,
        "urgent": urgent,
    }


def parity(rng: np.random.Generator, rows: int) -> Generated:
    """A label that is true in 90 % of the rows where exactly one of x > 0.4 and y > 0.6 holds, else in
    10 %; five other columns depend on x, y or nothing.
    """
    x, y, z = rng.random((3, rows))
    odd = (x > 0.4) ^ (y > 0.6)
    group = np.minimum((4 * np.clip(x + 0.2 * rng.normal(size=rows), 0, 0.999)).astype(np.int64), 3)
    columns: tuple[Column, ...] = (
        Real("x", 0, 1),
        Real("y", 0, 1),
        Real("z", 0, 1),
        Category("group", _levels("g", 4)),
        Integer("steps", 0, 20),
        Boolean("coin"),
        Category("kind", _levels("k", 6)),
        Boolean("label"),
    )
    return columns, {
        "x": x,
        "y": y,
        "z": z,
        "group": np.array(_levels("g", 4), object)[group],
        "steps": rng.binomial(20, 0.2 + 0.6 * y),
        "coin": rng.random(rows) < 0.3 + 0.4 * z,
        "kind": np.array(_levels("k", 6), object)[_zipf(rng, 6, rows)],
        "label": rng.random(rows) < np.where(odd, 0.9, 0.1),
    }


def wide(rng: np.random.Generator, rows: int) -> Generated:
    """45 columns of one factor: 15 of 5 to 19 levels with shares like 1, 1/2, 1/3, 20 of two and 10 of
    21 whole numbers; the last of two depends on five others.
    """
    factor = rng.normal(size=rows)
    columns: list[Column] = []
    found: dict[str, Values] = {}
    logits = np.zeros(rows)
    for i in range(15):
        levels = 5 + i
        shares = np.cumsum(1 / np.arange(1, levels + 1.0))
        rank = np.argsort(np.argsort(0.5 * factor + rng.normal(size=rows))) / rows
        level = np.searchsorted(shares / shares[-1], rank)
        found[f"c{i}"] = np.array(_levels("l", levels), object)[level]
        columns.append(Category(f"c{i}", _levels("l", levels)))
        logits += (0.8 * (level == 0) - 0.4) * (i < 3)
    for i in range(10):
        value = np.clip(np.rint(10 + 2 * (0.6 * factor + rng.normal(size=rows)) * (1 + i / 10)), 0, 20).astype(np.int64)
        found[f"n{i}"] = value
        columns.append(Integer(f"n{i}", 0, 20))
        logits += 0.25 * (value - 10) * (i < 2)
    for i in range(19):
        found[f"b{i}"] = _yes(rng, -1 - i / 10 + 0.7 * factor)
        columns.append(Boolean(f"b{i}"))
    found["target"] = _yes(rng, logits)
    return (*columns, Boolean("target")), found


STATED: dict[str, tuple[Callable[[np.random.Generator, int], Generated], int, str]] = {
    "expenses": (expenses, 20_000, "debt"),
    "visits": (visits, 20_000, "urgent"),
    "parity": (parity, 20_000, "label"),
    "wide": (wide, 2_000, "target"),
}
"""Law, number of private rows and target by name of the table."""


@cache
def stated_table(name: str) -> RealTable:
    """One of `STATED`, always the same rows.

    Raises
    ------
    InputError : there is no such table.
    """
    if name not in STATED:
        raise InputError(f"unknown table {name!r}", nearest(name, STATED, "the tables are"))
    law, count, target = STATED[name]
    columns, found = law(np.random.default_rng([SEED, list(STATED).index(name)]), count + HELD_OUT)
    schema = Schema(columns)
    rows = schema.encode(found)
    return RealTable(name, Source("", name, target, (True,)), schema, rows[:count], rows[count:])
