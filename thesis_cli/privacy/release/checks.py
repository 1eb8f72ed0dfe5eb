"""Whether a record that comes from a file holds together: its numbers, and the shapes of what the
mechanism gave, which follow from the schema and the budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.release.record import CONTENTS, Record
from thesis_cli.privacy.tables.schema import Schema

POSITIVE = frozenset(
    {
        *("candidates", "contributions", "deviation", "domain", "effective", "epsilon", "most", "norm", "points"),
        *("rho", "rows", "scale", "sensitivity", "share", "size", "total"),
    }
)
"""Numbers that are above 0, but for the deviation of noise on a number that has none."""
UNSIGNED = frozenset({"delta", "granularity"})

LARGEST = 1e50
"""Squares of more overflow."""


def check(record: Record) -> None:
    """Refuse a record whose parts do not belong together.

    Raises
    ------
    InputError : naming the key.
    """
    try:
        schema = record.schema
    except InputError as error:
        raise InputError(f"schema: {error.problem}", error.remedy) from None
    if (record.promise.rows is None) == (record.counted is None):
        raise InputError("the number of rows is both public and noisy, or neither", "promise.rows or counted has it")
    kind, held = CONTENTS[record.method]
    if not isinstance(record.mechanism, kind):
        raise InputError(f"mechanism does not belong to method {record.method!r}", "both must be of one release")
    for key in ("vector", "stages", "marginals", "rows"):
        if (getattr(record, key) is None) == (key == held):
            other = "" if key == held else f" and no {key}"
            raise InputError(f"a release by {record.method} has {held}{other}", "both must be of one release")
    for key, value in _numbers(asdict(record)):
        _check_number(key, value)
    _check_kernel(record, schema)
    if record.method == "features" and record.vector is not None:
        _same("vector", len(record.vector), record.size)
    _check_stages(record)
    _check_marginals(record, schema)
    _check_rows(record, schema)


def _numbers(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """All numbers of a record by key; those of a list have the key of the list."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _numbers(part, f"{key}.{name}" if key else name)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _numbers(part, f"{key}[]")
    elif isinstance(value, int | float) and not key.startswith(("entropy", "versions")):
        yield key, value


def _check_number(key: str, value: float) -> None:
    name = key.rpartition(".")[2]
    if abs(value) > LARGEST:
        raise InputError(f"{key} is {value:g}", f"it must be at most {LARGEST:g}")
    if name in POSITIVE and not value > 0 and key != "counted.deviation":
        raise InputError(f"{key} is {value:g}", "it must be above 0")
    if (name in UNSIGNED or key.startswith("kernel.")) and value < 0:
        raise InputError(f"{key} is {value:g}", "it must be at least 0")
    if name == "delta" and value >= 1:
        raise InputError(f"{key} is {value:g}", "it must be below 1")


def _check_kernel(record: Record, schema: Schema) -> None:
    _same("kernel.gamma", len(record.kernel.gamma), schema.reals)
    _same("kernel.rho", len(record.kernel.rho), len(schema.cardinalities))


def _check_stages(record: Record) -> None:
    """The features of a stage depend on the noisy vectors of earlier ones."""
    if record.stages is None:
        return
    from thesis_cli.privacy.release.rows import copula_plan

    plan = copula_plan(record)
    if len(record.stages) != plan.stages:
        raise InputError(f"there are {len(record.stages)} stages", f"there must be {plan.stages}")
    for i, stage in enumerate(record.stages):
        features = plan.stage([np.array(before.vector) for before in record.stages[:i]])
        assert features is not None
        if stage.name != features.name:
            raise InputError(f"stages[{i}].name is {stage.name!r}", f"it must be {features.name!r}")
        _same(f"stages[{i}].vector", len(stage.vector), features.count)


def _check_marginals(record: Record, schema: Schema) -> None:
    if record.marginals is None:
        return
    from thesis_cli.privacy.release.marginals import sizes_of

    sizes = sizes_of(schema)
    for i, marginal in enumerate(record.marginals):
        if unknown := [name for name in marginal.columns if name not in sizes]:
            raise InputError(f"marginals[{i}].columns has {unknown[0]!r}", "the schema has no such column")
        if len(set(marginal.columns)) < max(1, len(marginal.columns)):
            raise InputError(f"marginals[{i}].columns has no column, or one twice", "each must be there once")
        _same(f"marginals[{i}].counts", len(marginal.counts), math.prod(sizes[name] for name in marginal.columns))


def _check_rows(record: Record, schema: Schema) -> None:
    if record.rows is None:
        return
    reals, codes = record.rows.reals, record.rows.codes
    widths = {(len(r), len(c)) for r, c in zip(reals, codes, strict=False)}
    if len(reals) != len(codes) or widths != {(schema.reals, len(schema.cardinalities))}:
        raise InputError("rows do not fit the schema", "each must have all coordinates of the schema")
    if any(code >= size for row in codes for code, size in zip(row, schema.cardinalities, strict=True)):
        raise InputError("rows has a code that the schema does not have", "each must be below the number of levels")
    if any(not 0 <= x <= 1 for row in reals for x in row):
        raise InputError("rows has a coordinate outside [0, 1]", "each must be within the bounds of its column")


def _same(key: str, count: int, expected: int) -> None:
    if count != expected:
        raise InputError(f"{key} has {count:,} numbers", f"it must have {expected:,} of them")
