"""Sums of each query of `dp-measure` over the rows, and how its answers follow from noisy sums.

Each row adds a few numbers in [-1, 1] to the sums, rounded to multiples of 2^-40 and added up in
integers, so that sums are exact and the order of rows changes nothing. A row that is replaced moves
the sums of a query by at most its sensitivity; the noise is on all sums of all queries together.
"""

from __future__ import annotations

import ast
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.measure.intervals import Law, around, guessing, ratio_interval
from thesis_cli.privacy.measure.ranges import Range
from thesis_cli.privacy.query.query import Query
from thesis_cli.privacy.query.weighted_sample import WeightedSample

Integers = npt.NDArray[np.int64]
Ends = tuple[float, float]
ONE = 2**40
"""A contribution of 1, in the integers that are added up."""


@dataclass(frozen=True)
class MeasuredRow:
    """One measured number.

    Attributes
    ----------
    query, group, statistic : text of the query, group of `by` or bin, and name of the number.
    value : the number; NaN if it is undefined.
    low, high : ends of the interval.
    note : `GUESS`, or empty.
    """

    query: str
    group: str
    statistic: str
    value: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True)
class Groups:
    """Groups of rows by a public list of values.

    Attributes
    ----------
    names : names of the values of each expression of `by`.
    nodes : expressions of `by`.
    firsts : for each, its first value if values are whole numbers, otherwise 0.
    """

    names: tuple[tuple[str, ...], ...] = ()
    nodes: tuple[ast.expr, ...] = ()
    firsts: tuple[int, ...] = ()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the groups, the last expression varying fastest; one empty name without `by`."""
        return tuple(map(", ".join, product(*self.names)))

    def places(self, query: Query, sample: WeightedSample) -> Integers:
        """Group of each row, or -1: a row is in at most one, and in none where `where` fails or an
        expression of `by` is missing.
        """
        inside = query.chosen(sample)
        found = np.zeros(len(inside), np.int64)
        for names, node, first in zip(self.names, self.nodes, self.firsts, strict=True):
            data = sample.value(query, node).data - first
            inside = inside & (data >= 0) & (data < len(names))
            found = found * len(names) + np.where(inside, data, 0).astype(np.int64)
        return np.where(inside, found, -1)


@dataclass(frozen=True, kw_only=True)
class Part(ABC):
    """One query whose sums get noise.

    Attributes
    ----------
    query : the query.
    weight : weight of its share of the budget.
    groups : groups of its rows.
    """

    query: Query
    weight: float
    groups: Groups = field(default_factory=Groups)

    @property
    @abstractmethod
    def factors(self) -> Floats:
        """Numbers by which the sums are multiplied before noise is added, shape (F,)."""

    @abstractmethod
    def sensitivity(self, norm: int) -> float:
        """Largest change of the multiplied sums if one row is replaced, in L1 or L2."""

    @abstractmethod
    def sums(self, sample: WeightedSample) -> Integers:
        """Sums over some rows, in units of 1 / ONE, shape (F,)."""

    @abstractmethod
    def answers(self, noisy: Floats, law: Law, rows: float) -> list[MeasuredRow]:
        """Answers from noisy sums times factors, shape (F,), with noise of a law on each; N = `rows`,
        infinite if it is secret.
        """

    @abstractmethod
    def expected(self, law: Law, rows: float) -> tuple[str, float, str]:
        """Statistic, error and its unit, in a group of so many rows, from the law of the noise."""

    def row(self, group: str, statistic: str, value: float, ends: Ends, bounds: Ends) -> MeasuredRow:
        """A number with its interval, both within public bounds."""
        low, high = (min(max(end, bounds[0]), bounds[1]) for end in ends)
        inside = min(max(value, bounds[0]), bounds[1]) if math.isfinite(value) else math.nan
        return MeasuredRow(self.query.text, group, statistic, inside, low, high, guessing(*ends, bounds))


@dataclass(frozen=True, kw_only=True)
class CellCounts(Part):
    """Numbers of rows in disjoint cells: counts by group, and histograms.

    Attributes
    ----------
    cells : names of the cells of a histogram; None for a count.
    edges : edges of bins of numbers, one more than cells; None for levels.
    whole : whether answers are rounded to whole numbers.
    """

    cells: tuple[str, ...] | None = None
    edges: Floats | None = None
    whole: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the cells."""
        return self.groups.labels if self.cells is None else self.cells

    @property
    def factors(self) -> Floats:
        return np.ones(len(self.labels))

    def sensitivity(self, norm: int) -> float:
        """A row leaves one cell and enters another; with one cell, it enters or leaves it."""
        several = len(self.labels) > 1
        return (2.0 if norm == 1 else math.sqrt(2)) if several else 1.0

    def sums(self, sample: WeightedSample) -> Integers:
        places = self.groups.places(self.query, sample)
        if self.cells is None:
            for node in self.query.arguments:
                places = np.where(sample.truth(self.query, node) == 1, places, -1)
        else:
            data = sample.value(self.query, self.query.arguments[0]).data
            cell = cell_of(data, self.edges, "right") if self.edges is not None else np.where(np.isnan(data), -1, data)
            places = np.where(places < 0, -1, cell).astype(np.int64)
        return np.bincount(places[places >= 0], minlength=len(self.labels)).astype(np.int64) * ONE

    def expected(self, law: Law, rows: float) -> tuple[str, float, str]:
        return "count", law.half, "rows"

    def answers(self, noisy: Floats, law: Law, rows: float) -> list[MeasuredRow]:
        bounds, found = (0.0, float(rows)), []
        for label, value in zip(self.labels, noisy.tolist(), strict=True):
            row = self.row(label, "count", value, around(value, law.half, bounds), bounds)
            found.append(replace(row, value=float(round(row.value))) if self.whole else row)
        return found


@dataclass(frozen=True, kw_only=True)
class Mean(Part):
    """Mean of a number over all N rows, none of which lacks it.

    Attributes
    ----------
    range : public bounds of the number.
    """

    range: Range
    statistic: str = "mean"

    @property
    def radius(self) -> float:
        """Half the width of the public bounds."""
        return self.range.high / 2 - self.range.low / 2

    @property
    def centre(self) -> float:
        """Middle of the public bounds."""
        return self.range.high / 2 + self.range.low / 2

    @property
    def factors(self) -> Floats:
        return np.ones(1)

    def sensitivity(self, norm: int) -> float:
        return 2.0

    def contributions(self, sample: WeightedSample) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Centred numbers in units of 1 / ONE, and which rows have one."""
        x = sample.number(self.query, self.query.arguments[0])
        present = ~np.isnan(x)
        inside = np.clip(np.where(present, x, self.centre), self.range.low, self.range.high)
        scaled = np.clip((inside - self.centre) / self.radius, -1, 1) if self.radius > 0 else np.zeros(len(x))
        return np.rint(scaled * ONE).astype(np.int64), present

    def sums(self, sample: WeightedSample) -> Integers:
        found, _ = self.contributions(sample)
        return np.array([found.sum()], np.int64)

    def expected(self, law: Law, rows: float) -> tuple[str, float, str]:
        return self.statistic, self.radius * law.half / rows, "as the value"

    def answers(self, noisy: Floats, law: Law, rows: float) -> list[MeasuredRow]:
        value, half = self.centre + self.radius * float(noisy[0]) / rows, self.radius * law.half / rows
        bounds = self.range.low, self.range.high
        return [self.row("", self.statistic, value, around(value, half, bounds), bounds)]


@dataclass(frozen=True, kw_only=True)
class GroupMeans(Mean):
    """Means of a number over groups of unknown size: a sum and a count for each group.

    Attributes
    ----------
    norm : norm of the sensitivity, which decides the factor of the counts.
    """

    norm: int = 2

    @property
    def count_factor(self) -> float:
        """Factor of counts: as large as the sensitivity allows for nothing, or little."""
        several = len(self.groups.labels) > 1
        return (0.5 if several else 1.0) if self.norm == 1 else 1.0 if several else math.sqrt(3)

    @property
    def factors(self) -> Floats:
        return np.tile([1.0, self.count_factor], len(self.groups.labels))

    def sensitivity(self, norm: int) -> float:
        """A row moves from one end to the other in a group, or leaves it, for another if there is
        one.
        """
        b, several = self.count_factor, len(self.groups.labels) > 1
        if norm == 1:
            return max(2.0, (1 + b) * (1 + several))
        return max(2.0, math.sqrt((1 + b * b) * (1 + several)))

    def sums(self, sample: WeightedSample) -> Integers:
        scaled, present = self.contributions(sample)
        places = np.where(present, self.groups.places(self.query, sample), -1)
        found, used = np.zeros((len(self.groups.labels), 2), np.int64), places >= 0
        np.add.at(found[:, 0], places[used], scaled[used])
        np.add.at(found[:, 1], places[used], ONE)
        return found.reshape(-1)

    def answers(self, noisy: Floats, law: Law, rows: float) -> list[MeasuredRow]:
        found, b = [], 1 / self.count_factor
        bounds = self.range.low, self.range.high
        for label, (total, scaled_count) in zip(self.groups.labels, noisy.reshape(-1, 2).tolist(), strict=True):
            count = b * scaled_count
            ratio = total / count if count > 0 else math.nan
            possible = min(max(count, 0.0), rows)
            nearest = possible * min(max(ratio, -1.0), 1.0) if count > 0 else 0.0

            def form(theta: Floats, total: float = nearest, count: float = possible) -> Any:
                return total - theta * count, np.ones_like(theta), -b * theta

            ends = ratio_interval(law, form, ratio, (-1.0, 1.0))
            value, low, high = (self.centre + self.radius * x for x in (ratio, *ends))
            found.append(self.row(label, self.statistic, value, (low, high), bounds))
        return found


@dataclass(frozen=True, kw_only=True)
class Shares(Part):
    """Probabilities of a condition in groups of unknown size: two counts for each group."""

    @property
    def factors(self) -> Floats:
        return np.ones(2 * len(self.groups.labels))

    def sensitivity(self, norm: int) -> float:
        return 2.0 if norm == 1 else math.sqrt(2)

    def sums(self, sample: WeightedSample) -> Integers:
        truth = sample.truth(self.query, self.query.arguments[0])
        places = np.where(np.isnan(truth), -1, self.groups.places(self.query, sample))
        used = places >= 0
        cells = 2 * places[used] + (truth[used] != 1)
        return np.bincount(cells, minlength=2 * len(self.groups.labels)).astype(np.int64) * ONE

    def expected(self, law: Law, rows: float) -> tuple[str, float, str]:
        return "prob", law.half * math.sqrt(0.5) / rows, "as the value"

    def answers(self, noisy: Floats, law: Law, rows: float) -> list[MeasuredRow]:
        found = []
        for label, (true, false) in zip(self.groups.labels, noisy.reshape(-1, 2).tolist(), strict=True):
            ratio = true / (true + false) if true + false > 0 else math.nan
            positive = max(true, 0.0), max(false, 0.0)
            shrink = min(1.0, rows / max(sum(positive), 1.0))
            nearest = shrink * positive[0], shrink * positive[1]

            def form(p: Floats, true: float = nearest[0], false: float = nearest[1]) -> Any:
                return (1 - p) * true - p * false, 1 - p, -p

            ends = ratio_interval(law, form, ratio, (0.0, 1.0))
            found.append(self.row(label, "prob", ratio, ends, (0.0, 1.0)))
        return found


def cell_of(data: Floats, edges: Floats, side: Literal["left", "right"]) -> Integers:
    """Cell of each number, shape (N,), -1 for missing ones. An edge belongs to the cell before it (`left`)
    or after it; numbers beyond the edges belong to the outer cells.
    """
    return np.where(np.isnan(data), -1, np.searchsorted(edges[1:-1], data, side=side)).astype(np.int64)
