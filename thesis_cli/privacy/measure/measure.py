"""Statistics of a private table, measured directly with noise.

The queries are read into parts, with the public bounds, bins and groups of the schema. `measured` reads
the table and draws the noise; the `Measurement` that it returns is public, and
`answers` computes values and intervals from it alone. With a delta, all sums get one vector of
Gaussian noise and quantiles are chosen by the exponential mechanism, and rhos of zero-concentrated
privacy add up; without, the noise is Laplace noise and epsilons add up.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.measure.intervals import Law
from thesis_cli.privacy.measure.parts import ONE, CellCounts, GroupMeans, Groups, Mean, MeasuredRow, Part, Shares
from thesis_cli.privacy.measure.quantiles import CANDIDATES, CHOICES, Quantile, choice_cost, choice_scale, opendp_choose
from thesis_cli.privacy.measure.ranges import Range, bounded_range, column_ranges, range_of
from thesis_cli.privacy.mechanisms.mechanism import (
    Budget,
    Calibration,
    Noise,
    OpenDPGaussian,
    OpenDPLaplace,
    versions,
    zcdp_epsilon,
)
from thesis_cli.privacy.mechanisms.stages import LARGEST, ROWS, Unit, blocks_within, counted_blocks
from thesis_cli.privacy.query.query import MOST_BINS, MOST_GROUPS, TRUTHS, Query, Signature, histogram_bins
from thesis_cli.privacy.query.weighted_sample import WeightedSample
from thesis_cli.privacy.release.record import PrivacyGuarantee
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


SLACK = 1e-6
"""Share of the budget that pays for rounding when it is divided."""

Choose = Callable[[Floats, float, bool], int]
"""Chooses the index of a high score: scores, scale, and whether the budget has a delta."""
Spend = Callable[[Budget, float | None], None]


@dataclass(frozen=True)
class Plan:
    """Queries and budget of a measurement, all of it public.

    Attributes
    ----------
    schema : columns of the table.
    budget : budget of all queries together.
    queries : texts of the queries.
    define : definitions of further columns, `name = expression`.
    unit : difference between neighbours. A person has at most K rows that count, and moves sums and
        scores at most K times as far as a row: with s >= s' rows in the two tables, s' pairs of rows are
        a replaced row each, and s - s' single ones move them less than a replaced row does.
    """

    schema: Schema
    budget: Budget
    queries: tuple[str, ...]
    define: tuple[str, ...] = ()
    unit: Unit = ROWS

    @cached_property
    def parts(self) -> list[Part]:
        """The queries, in order.

        Raises
        ------
        InputError : a query cannot be read, or has no public bounds.
        """
        return parts_of(self.schema, self.queries, self.define, self.norm, self.unit.secret)

    @property
    def gaussian(self) -> bool:
        """Whether the budget has a delta."""
        return self.budget.delta > 0

    @property
    def norm(self) -> int:
        """Norm of the sensitivity: 2 with Gaussian noise, 1 with Laplace noise."""
        return 2 if self.gaussian else 1

    @property
    def sums(self) -> list[Part]:
        """Queries whose sums get noise."""
        return [part for part in self.parts if not isinstance(part, Quantile)]

    @property
    def quantiles(self) -> list[Quantile]:
        """Queries that are answered by choices."""
        return [part for part in self.parts if isinstance(part, Quantile)]

    @cached_property
    def total(self) -> float:
        """Budget that is divided among the queries: rho with a delta, epsilon without."""
        if not self.gaussian:
            return self.budget.epsilon * (1 - SLACK)
        rho = OpenDPGaussian().calibrate(1, 1.0, self.budget).rho
        assert rho is not None
        return rho * (1 - SLACK)

    def cost(self, parts: Sequence[Part]) -> float:
        """Share of `total` of some queries, by their weights."""
        return self.total * math.fsum(p.weight for p in parts) / math.fsum(p.weight for p in self.parts)

    @property
    def sums_budget(self) -> Budget:
        """Budget of the noise on all sums."""
        cost = self.cost(self.sums)
        return Budget(zcdp_epsilon(cost, self.budget.delta), self.budget.delta) if self.gaussian else Budget(cost)

    @cached_property
    def factors(self) -> Floats:
        """Factors of all sums, shape (F,): each query's sums times these move by at most its
        share of 1.
        """
        weights = np.array([part.weight for part in self.sums])
        shares = weights / weights.sum()
        if self.gaussian:
            shares = np.sqrt(shares)
        found = [s * p.factors / (p.sensitivity(self.norm) * self.most) for s, p in zip(shares, self.sums, strict=True)]
        return np.concatenate(found)

    @property
    def most(self) -> int:
        """Largest number K of rows of a unit that count."""
        return self.unit.contribution_bound or 1

    def sensitivity(self, rows: int | None) -> float:
        """Sensitivity of the multiplied sums of N rows in `norm`: 1, and what rounding adds."""
        rows = LARGEST if rows is None else rows
        size = len(self.factors)
        count = math.sqrt(size) if self.gaussian else size
        return 1 + 2**-40 + 2**-50 * rows * float(self.factors.max()) * count

    def scale(self, part: Quantile) -> float:
        """Scale of each choice of a quantile."""
        return choice_scale(self.cost([part]) / (len(CHOICES) * part.touched * self.most**self.norm), self.gaussian)

    def noise(self) -> Noise:
        """OpenDP's noise for the sums."""
        return OpenDPGaussian() if self.gaussian else OpenDPLaplace()

    def noise_of(self, rows: int | None) -> tuple[int, float, Budget]:
        """Size F, sensitivity and budget for `Noise.calibrate`; Laplace noise multiplies this
        sensitivity by sqrt(F).
        """
        found, size = self.sensitivity(rows), len(self.factors)
        return size, found if self.gaussian else found / math.sqrt(size), self.sums_budget


@dataclass(frozen=True)
class ChoiceRecord:
    """One choice of a quantile.

    Attributes
    ----------
    query, group, choice : what was chosen.
    candidate : number of the chosen cell of the grid.
    candidates : number of cells.
    scale : scale of the mechanism.
    """

    query: str
    group: str
    choice: str
    candidate: int
    candidates: int
    scale: float


@dataclass(frozen=True)
class Measurement:
    """Everything that a measurement makes public.

    Attributes
    ----------
    promise : differential privacy of all answers together.
    rho : rho of all mechanisms together; None without delta.
    mechanism : noise on the sums; None if all queries are quantiles.
    vector : noisy sums times `Plan.factors`.
    choices : choices of the quantiles.
    versions : versions of this program and of its libraries.
    """

    promise: PrivacyGuarantee
    rho: float | None
    mechanism: Calibration | None
    vector: tuple[float, ...]
    choices: tuple[ChoiceRecord, ...]
    versions: dict[str, str]


def measured(
    blocks: Iterable[Rows],
    count: int | None,
    plan: Plan,
    spend: Spend,
    *,
    noise: Noise | None = None,
    choose: Choose | None = None,
    progress: Tick | None = None,
) -> Measurement:
    """Read the table, spend the budget and draw the noise.

    Parameters
    ----------
    blocks, count : private table, or the rows of it that count, and its number N of rows; None if the
        unit keeps it secret.
    spend : called after the table has been read and before noise is drawn.
    noise, choose : sources of noise and of choices; OpenDP by default.

    Raises
    ------
    InputError : no rows, another number of rows than `count`, or a budget that does not fit.
    """
    if plan.unit.secret != (count is None):
        raise ValueError("the number of rows must be None if the unit keeps it secret, and only then")
    if count is not None and count < 1:
        raise InputError(f"the table has {count} rows", "it must have at least one")
    noise = noise or plan.noise()
    calibration = noise.calibrate(*plan.noise_of(count)) if plan.sums else None
    scales = [plan.scale(part) for part in plan.quantiles]
    rho = _rho(plan, calibration, scales)
    sums = _sums(blocks_within(blocks) if count is None else counted_blocks(blocks, count), plan, progress)
    spend(plan.budget, rho)
    vector: tuple[float, ...] = ()
    if calibration is not None:
        pairs = zip(plan.parts, sums, strict=True)
        exact = np.concatenate([found for part, found in pairs if not isinstance(part, Quantile)])
        noised = noise.add(np.array([x / ONE for x in exact]) * plan.factors, *plan.noise_of(count)[1:])
        calibration, vector = noised.calibration, tuple(noised.values.tolist())
    counts = [found for part, found in zip(plan.parts, sums, strict=True) if isinstance(part, Quantile)]
    choices = [
        choice
        for part, found, scale in zip(plan.quantiles, counts, scales, strict=True)
        for choice in _choices(part, found.astype(np.float64), scale, plan.gaussian, choose or opendp_choose)
    ]
    promise = PrivacyGuarantee(plan.budget.epsilon, plan.budget.delta, plan.unit.text, count)
    return Measurement(promise, rho, calibration, vector, tuple(choices), dict(versions()))


def answers(plan: Plan, found: Measurement) -> list[MeasuredRow]:
    """Values and intervals, from what is public alone."""
    count = math.inf if found.promise.rows is None else found.promise.rows
    scale = found.mechanism.scale if found.mechanism else 0.0
    choices = iter(found.choices)
    rows: list[MeasuredRow] = []
    at = 0
    for part in plan.parts:
        if isinstance(part, Quantile):
            cells = [next(choices).candidate for _ in range(len(CHOICES) * len(part.groups.labels))]
            rows += part.answers(np.array(cells, np.float64), Law(plan.norm, 0.0), count)
            continue
        size = len(part.factors)
        factor = float(plan.factors[at] / part.factors[0])
        noisy = np.array(found.vector[at : at + size]) / factor
        rows += part.answers(noisy, Law(plan.norm, scale / factor), count)
        at += size
    return rows


def _rho(plan: Plan, calibration: Calibration | None, scales: Sequence[float]) -> float | None:
    """Rho of all mechanisms together, or None without delta.

    Raises
    ------
    InputError : the mechanisms exceed the budget, which is a defect.
    """
    times = len(CHOICES) * plan.most**plan.norm
    costs = [times * p.touched * choice_cost(s, plan.gaussian) for p, s in zip(plan.quantiles, scales, strict=True)]
    if calibration is not None:
        costs.append((calibration.rho or 0.0) if plan.gaussian else calibration.epsilon)
    total = math.fsum(costs)
    epsilon = zcdp_epsilon(total, plan.budget.delta) if plan.gaussian else total
    if not epsilon <= plan.budget.epsilon:
        raise InputError(f"the queries need epsilon {epsilon:.9g}", f"the budget is {plan.budget.epsilon:.9g}")
    return total if plan.gaussian else None


def _sums(blocks: Iterable[Rows], plan: Plan, progress: Tick | None) -> list[np.ndarray]:
    """Exact sums of each query, of Python's integers."""
    found = [np.zeros(len(part.factors), object) for part in plan.parts]
    for rows in blocks:
        if not len(rows):
            continue
        sample = sample_of(plan.schema, rows, plan.define)
        with np.errstate(all="ignore"):
            for i, part in enumerate(plan.parts):
                found[i] = found[i] + part.sums(sample).astype(object)
        if progress:
            progress(len(rows))
    return found


def _choices(part: Quantile, counts: Floats, scale: float, gaussian: bool, choose: Choose) -> list[ChoiceRecord]:
    found = []
    for label, inside in zip(part.groups.labels, counts.reshape(-1, part.candidates), strict=True):
        for choice in CHOICES:
            candidate = choose(part.scores(inside, choice, scale), scale, gaussian)
            found.append(ChoiceRecord(part.query.text, label, choice, candidate, part.candidates, scale))
    return found


@dataclass(frozen=True)
class Expected:
    """Error of a query before it is measured.

    Attributes
    ----------
    query, statistic : what is measured.
    error : half the width of the interval: of a group of N / G rows, and of a ratio in the middle
        of its bounds. Of a quantile, the share of the ranks on either side.
    unit : what the error counts.
    """

    query: str
    statistic: str
    error: float
    unit: str


def expected(plan: Plan, count: int) -> list[Expected]:
    """Errors that N = `count` rows lead to, from public numbers alone."""
    scale = plan.noise().calibrate(*plan.noise_of(None if plan.unit.secret else count)).scale if plan.sums else 0.0
    found, at = [], 0
    for part in plan.parts:
        if isinstance(part, Quantile):
            law = Law(plan.norm, plan.scale(part))
        else:
            law = Law(plan.norm, scale * float(part.factors[0] / plan.factors[at]))
            at += len(part.factors)
        found.append(Expected(part.query.text, *part.expected(law, count / len(part.groups.labels))))
    return found
