"""Random questions about a real table, for measuring how often intervals of answers cover.

Thresholds are quantiles of the private rows: the questions, and the true answers, are NOT PRIVATE.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from thesis_cli.privacy.tables.columns import Boolean, Category
from thesis_cli.studies.privacy.real_tables import RealTable

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
