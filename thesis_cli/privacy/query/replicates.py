"""Errors of answers from a release, by a parametric bootstrap of the whole release.

A record is public, and so is everything that makes rows from it. Take many rows of the release for
a table, release that table again with fresh noise of the recorded scale, and make rows: what a
query answers there, less what it answers for the table, is a draw of the error of the real release.
The draws contain the noise, the shrinkage and smoothing that the fit applies, and the small number
of released rows. They do not contain structure of the private table that the method cannot see and
that its own rows therefore lack; `INFLATION` allows for that.

The noise is simulated from the public entropy of the record. It protects nothing, and need not: it
is added to released rows.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.query.query import Answer, AnswerRow, Query
from thesis_cli.privacy.release.methods import METHODS
from thesis_cli.privacy.release.record import Record, Release
from thesis_cli.privacy.release.release import implementation_of, synthetic
from thesis_cli.privacy.tables.schema import Schema

LARGEST = 20_000
"""Largest number of rows of the table that stands for the private one."""
INFLATION = 1.5
"""Factor on the bootstrap's standard errors, from the coverage on four real tables
(docs/dp-query.md).
"""
NORMAL = 1.959963984540054
"""Quantile of the standard normal distribution at 97.5 %."""
GUESS = 1 / math.sqrt(12)
"""Standard deviation of a uniform guess, as a share of the range of possible answers."""

Limits = Callable[[AnswerRow], tuple[float, float]]


def default_count(record: Record) -> int:
    """Number of replicates that take seconds; 0 for a method whose rows take longer to make."""
    return METHODS[record.method].replicates or 0


def replicates(release: Release, count: int, jobs: int = 1) -> Iterator[Release]:
    """A large release from the record of `release`, and then `count` simulated releases of its
    rows, each with as many rows as `release`.

    Raises
    ------
    InputError : releases by this method cannot be simulated.
    """
    record = release.record
    table = release
    if not METHODS[record.method].fits_rows:
        rows = max(len(release.points), min(round(record.count.rows), LARGEST))
        table = synthetic(record, rows, jobs=jobs)
    yield table
    for number in range(count):
        rng = np.random.default_rng([record.entropy, *b"replicates", number])
        yield synthetic(simulated(record, table.points, rng), len(release.points), jobs=jobs)


def simulated(record: Record, rows: Rows, rng: np.random.Generator) -> Record:
    """Record of a release of public rows with the settings of `record`, and seeded noise.

    Raises
    ------
    InputError : releases by this method cannot be simulated.
    """
    if record.counted is not None:
        noisy = record.counted.rows + record.counted.deviation * rng.standard_normal()
        record = replace(record, counted=replace(record.counted, rows=max(1.0, noisy)))
    return implementation_of(record.method).simulated(record, rows, rng)


def with_errors(answers: Sequence[Answer], simulations: Sequence[Sequence[Answer]], limits: Limits) -> list[Answer]:
    """Answers whose numbers have standard errors and 95 % intervals.

    Parameters
    ----------
    answers : answers from the release.
    simulations : answers to the same queries from the samples of `replicates`, in their order.
    limits : function that gives the least and the largest possible value of a number.
    """
    truth, *draws = ({_key(row): row.value for answer in found for row in answer.rows} for found in simulations)

    def completed(row: AnswerRow) -> AnswerRow:
        key = _key(row)
        errors = np.array([draw[key] - truth[key] for draw in draws if key in draw and key in truth])
        errors = errors[np.isfinite(errors)]
        if len(errors) < max(2, len(draws) / 2) or not math.isfinite(row.value):
            return row
        error = INFLATION * math.sqrt(float((errors**2).mean()))
        least, most = limits(row)
        low, high = max(least, row.value - NORMAL * error), min(most, row.value + NORMAL * error)
        return replace(row, error=error, low=low, high=high, guess=error >= GUESS * (most - least))

    return [replace(answer, rows=tuple(map(completed, answer.rows))) for answer in answers]


def limits_of(schema: Schema, rows: float) -> Limits:
    """Least and largest possible value of each number that queries give; infinite if unknown.

    Parameters
    ----------
    rows : number N of private rows; infinite if it is secret.
    """
    fixed = {"prob": (0.0, 1.0), "share": (0.0, 1.0), "count": (0.0, rows), "corr": (-1.0, 1.0)}
    fixed |= dict.fromkeys(("var", "sd"), (0.0, math.inf))
    columns = {c.name: (float(c.bounds[0]), float(c.bounds[1])) for c in schema.columns}

    def limits(row: AnswerRow) -> tuple[float, float]:
        if row.statistic in fixed:
            return fixed[row.statistic]
        query = Query(row.query)
        argument = query.arguments[0]
        if query.name in ("mean", "median", "quantile") and isinstance(argument, ast.Name):
            return columns.get(query.column_name(argument), (-math.inf, math.inf))
        return -math.inf, math.inf

    return limits


def _key(row: AnswerRow) -> tuple[str, str, str]:
    return row.query, row.group, row.statistic
