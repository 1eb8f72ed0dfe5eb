"""The queries of `dp-measure` read into parts, with the public bounds, bins and groups of the
schema.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.measure.parts import CellCounts, GroupMeans, Groups, Mean, Part, Shares
from thesis_cli.privacy.measure.quantiles import CANDIDATES, Quantile
from thesis_cli.privacy.measure.ranges import Range, bounded_range, column_ranges, range_of
from thesis_cli.privacy.query.query import MOST_BINS, MOST_GROUPS, TRUTHS, Query, Signature, histogram_bins
from thesis_cli.privacy.query.weighted_sample import WeightedSample
from thesis_cli.privacy.tables.column import Column
from thesis_cli.privacy.tables.expressions import Formula
from thesis_cli.privacy.tables.schema import Schema

SIGNATURES = {
    "count": Signature(("condition",), ("where", "by", "weight", "whole"), optional=True),
    "prob": Signature(("condition",), ("where", "by", "weight")),
    **{name: Signature(("x",), ("where", "by", "weight")) for name in ("mean", "median")},
    "quantile": Signature(("x", "q"), ("where", "by", "weight")),
    "histogram": Signature(("x",), ("bins", "where", "weight", "whole")),
}
MOST_CELLS = 100_000
"""Largest number of noisy numbers."""


def sample_of(schema: Schema, rows: Rows, define: Sequence[str]) -> WeightedSample:
    """Rows of equal weight, with the columns that `define` adds: texts `name = expression`."""
    sample = WeightedSample.of_rows(schema, rows)
    for text in define:
        sample = sample.define(text)
    return sample


def parts_of(schema: Schema, queries: Sequence[str], define: Sequence[str], norm: int, secret: bool) -> list[Part]:
    """Parts of the queries, from the schema alone, for noise that is measured in a norm, and for a number
    of rows that is secret or public.

    Raises
    ------
    InputError : a query cannot be read, has no public bounds or groups, or occurs twice.
    """
    row = Rows(np.full((1, schema.reals), 0.5), np.zeros((1, len(schema.cardinalities)), np.int64))
    sample, ranges = sample_of(schema, row, define), column_ranges(schema)
    for text in define:
        name, formula = _definition(text)
        ranges[name] = range_of(formula, formula.tree, ranges)
    found = [_part(Query(text, SIGNATURES), sample, ranges, norm, secret) for text in queries]
    if len({part.query.text for part in found}) < len(found):
        raise InputError("a query is given twice", "give it once, with a larger weight=...")
    size = sum(len(part.factors) for part in found if not isinstance(part, Quantile))
    if size > MOST_CELLS:
        raise InputError(f"the queries have {size:,} numbers", f"they must have at most {MOST_CELLS:,}")
    return found


def _definition(text: str) -> tuple[str, Formula]:
    parts = re.fullmatch(r"\s*(?:`([^`]+)`|(\w+))\s*=(?!=)(.*)", text, re.DOTALL)
    assert parts  # `sample_of` has refused other texts
    return parts[1] or parts[2], Formula(parts[3])


def _part(query: Query, sample: WeightedSample, ranges: Mapping[str, Range], norm: int, secret: bool) -> Part:
    weight = query.constant(sample, "weight", query.options.get("weight"), 1)
    if not 0 < weight < math.inf:
        raise query.wrong(f"weight is {weight:g}", "it must be above 0 and finite")
    query.chosen(sample)  # refuses a condition that is none
    groups, whole = _groups(query, sample), _whole(query, sample)
    everyone = not secret and "where" not in query.options and not groups.nodes
    if query.name == "histogram":
        return _histogram(query, weight, sample, ranges, whole)
    if query.name == "count":
        for condition in query.arguments:
            sample.truth(query, condition)
        if not (query.arguments or groups.nodes or secret):
            raise query.wrong("the number of all rows is public", "give a condition or by=[...]")
        return CellCounts(query=query, weight=weight, groups=groups, whole=whole)
    node = query.arguments[0]
    if query.name == "prob":
        sample.truth(query, node)
        if everyone and not range_of(query, node, ranges).gaps:
            return Mean(query=query, weight=weight, range=Range(0, 1), statistic="prob")
        return Shares(query=query, weight=weight, groups=groups)
    sample.number(query, node)
    within = bounded_range(query, node, ranges)
    if query.name == "mean":
        if everyone and not within.gaps:
            return Mean(query=query, weight=weight, range=within)
        return GroupMeans(query=query, weight=weight, groups=groups, range=within, norm=norm)
    return _quantile(query, weight, groups, within, sample)


def _quantile(query: Query, weight: float, groups: Groups, within: Range, sample: WeightedSample) -> Quantile:
    q = 0.5 if query.name == "median" else query.constant(sample, "q", query.arguments[1], math.nan)
    if not 0 <= q <= 1:
        raise query.wrong(f"q is {q:g}", "it must be from 0 to 1")
    if not within.low < within.high:
        raise query.wrong("the expression has one value only", "give one that varies")
    column = _column(query, query.arguments[0], sample.schema)
    edges: Floats = np.linspace(within.low, within.high, CANDIDATES + 1)
    whole = column is not None and column.steps == 1 and within.high - within.low < CANDIDATES
    log = column is not None and column.log and within.low > 0
    if whole:
        edges = np.arange(within.low, within.high + 2) - 0.5
    elif log:
        edges = np.geomspace(within.low, within.high, CANDIDATES + 1)
    return Quantile(query=query, weight=weight, groups=groups, share=q, edges=edges, whole=whole, log=log)


def _histogram(
    query: Query, weight: float, sample: WeightedSample, ranges: Mapping[str, Range], whole: bool
) -> CellCounts:
    bins = query.constant(sample, "bins", query.options.get("bins"), 10)
    if not (1 <= bins <= MOST_BINS and bins == int(bins)):
        raise query.wrong(f"bins is {bins:g}", f"it must be a whole number from 1 to {MOST_BINS:,}")
    node = query.arguments[0]
    value = sample.value(query, node)
    if value.kind != "number":
        return CellCounts(query=query, weight=weight, cells=tuple(value.levels or TRUTHS), whole=whole)
    within, column = bounded_range(query, node, ranges), _column(query, node, sample.schema)
    ends = np.array([within.low, within.high])
    edges, labels = histogram_bins(sample.schema, column.name if column else None, ends, int(bins), value.date)
    return CellCounts(query=query, weight=weight, cells=tuple(labels), edges=edges, whole=whole)


def _groups(query: Query, sample: WeightedSample) -> Groups:
    """Groups of `by`, an expression or a list of them: all combinations of their values."""
    node = query.options.get("by")
    nodes = [] if node is None else list(node.elts) if isinstance(node, ast.List | ast.Tuple) else [node]
    if node is not None and not nodes:
        raise query.wrong("by is an empty list", "give columns, as in by=[region, smoker]")
    found = [_values(query, sample, each) for each in nodes]
    size = math.prod(len(names) for names, _ in found)
    if size > MOST_CELLS:
        raise query.wrong(f"it has {size:,} groups", f"it must have at most {MOST_CELLS:,}")
    return Groups(tuple(names for names, _ in found), tuple(nodes), tuple(first for _, first in found))


def _whole(query: Query, sample: WeightedSample) -> bool:
    """Whether `whole=True` is given."""
    node = query.options.get("whole")
    return node is not None and bool((np.asarray(sample.truth(query, node)) == 1).all())


def _values(query: Query, sample: WeightedSample, node: ast.expr) -> tuple[tuple[str, ...], int]:
    """Names of the levels of a category, of truth values, or of the whole numbers of a column, and the
    first number.
    """
    value = sample.value(query, node)
    if value.kind != "number":
        return tuple(value.levels or TRUTHS), 0
    column = _column(query, node, sample.schema)
    if column is None or column.steps != 1 or value.date:
        raise query.wrong(f"{query.part(node)} has no public list of values", "it must be a category or a condition")
    low, high = map(int, column.line)
    if high - low >= MOST_GROUPS:
        raise query.wrong(f"{query.part(node)} has {high - low + 1:,} values", f"it must have at most {MOST_GROUPS}")
    return tuple(map(str, range(low, high + 1))), low


def _column(query: Query, node: ast.expr, schema: Schema) -> Column | None:
    """Column of the schema that an expression names, if it is one."""
    name = query.column_name(node) if isinstance(node, ast.Name) else None
    return next((column for column in schema.columns if column.name == name), None)
