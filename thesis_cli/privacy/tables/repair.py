"""Synthetic rows that obey the rules of their schema (`schema.Rules`).

Rows are repaired after the noise was drawn, so that rules cost no privacy. Rows that break a rule
first exchange values of a column with other rows, which keeps the values of each column as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.schema import Data, Rules, Schema

DRAWN = 10_000
"""Rows drawn from the schema, one of which must obey."""
DONORS = 2000
"""Largest number of rows that a row is compared with, one by one."""
SEARCHED = 1000
"""Largest number of rows that are compared with all of these to exchange values."""


def obey(schema: Schema, rows: Rows) -> Rows:
    """Rows that obey the rules of their schema; those that do already hardly change.

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
