"""Population statistics from a release (Thesis section 4.3.3), which anyone may compute at no cost
of privacy.

Every number comes from released rows and their weights. Only `WeightedSample.of_rows` may hold
private rows, to score models on a holdout or to measure errors; such numbers are private.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, nearest
from thesis_cli.embeddings.statistics import correlation, mean, quantile, sd, variance
from thesis_cli.privacy.query import regression
from thesis_cli.privacy.query.weighted_sample import Mask, WeightedSample
from thesis_cli.privacy.tables.dates import text_of_day
from thesis_cli.privacy.tables.expressions import Formula
from thesis_cli.privacy.tables.schema import Schema

MOST_BINS = 1000
MOST_GROUPS = 100
RIDGE = 1e-4
TRUTHS = ("False", "True")


@dataclass(frozen=True)
class Signature:
    """Parameters of a statistic: arguments, the last of them repeatable if `more`, all of them needed
    unless `optional`, and keyword options.
    """

    arguments: tuple[str, ...]
    options: tuple[str, ...] = ("where", "by")
    more: bool = False
    optional: bool = False

    def text(self, name: str) -> str:
        """Usage of a statistic of this name."""
        options = (f"{option}=..." for option in self.options)
        return f"{name}({', '.join((*self.arguments, *['...'] * self.more, *options))})"


SIGNATURES = {
    **{name: Signature(("x",)) for name in ("mean", "var", "sd", "median")},
    **{name: Signature(("condition",)) for name in ("prob", "count")},
    "quantile": Signature(("x", "q")),
    "corr": Signature(("x", "y")),
    "histogram": Signature(("x",), ("bins", "where")),
    "regress": Signature(("y", "x"), ("where",), more=True),
    "classify": Signature(("condition", "x"), ("ridge", "where"), more=True),
}
SCALARS: Mapping[str, Callable[..., float]] = {
    "mean": mean,
    "prob": mean,
    "var": variance,
    "sd": sd,
    "median": quantile,
    "quantile": quantile,
    "corr": correlation,
}
DATED = ("mean", "median", "quantile")
"""Statistics that are dates if their argument is one."""

NO_STATISTIC = {
    "min": "an extreme depends on one row and is not released: use quantile(x, 0.01)",
    "max": "an extreme depends on one row and is not released: use quantile(x, 0.99)",
    "sum": "use mean(x) times the number of rows",
}


@dataclass(frozen=True)
class AnswerRow:
    """One number of an answer.

    Attributes
    ----------
    query : text of the query.
    group : group of `by`, bin of a histogram, coefficient of a model, or empty.
    statistic : name of the number.
    value : the number; NaN if it is undefined.
    share : share of all absolute weight that the rows behind the number have.
    date : ISO text of the value if it is a date, in days since the start of 1970; empty otherwise.
    error, low, high : standard error and ends of the 95 % interval; NaN if they are not known.
    guess : whether the interval is no better than a guess among all possible values.
    """

    query: str
    group: str
    statistic: str
    value: float
    share: float
    date: str = ""
    error: float = math.nan
    low: float = math.nan
    high: float = math.nan
    guess: bool = False


@dataclass(frozen=True)
class Answer:
    """Answer to one query.

    Attributes
    ----------
    query : text of the query.
    rows : numbers of the answer.
    scored : scores of a model on a holdout; private if the holdout is.
    subject : expression that a histogram shows; empty for other queries.
    condition : condition on the rows of a histogram, or empty.
    edges : edges of the bins of a histogram of numbers, one more than bins.
    dates : whether the edges are days since the start of 1970.
    """

    query: str
    rows: tuple[AnswerRow, ...]
    scored: tuple[AnswerRow, ...] = ()
    subject: str = ""
    condition: str = ""
    edges: Floats | None = None
    dates: bool = False


class Query(Formula):
    """A query: a statistic of expressions, as in `mean(age, where=region == "south", by=sex)`.

    Attributes
    ----------
    name : name of the statistic.
    arguments : arguments of the statistic.
    options : keyword arguments.

    Parameters
    ----------
    signatures : statistics that there are.

    Raises
    ------
    InputError : the text is not a query.
    """

    def __init__(self, text: str, signatures: Mapping[str, Signature] = SIGNATURES) -> None:
        super().__init__(text)
        if not (isinstance(self.tree, ast.Call) and isinstance(self.tree.func, ast.Name)):
            raise self.wrong("it is not a statistic", f"use one of {', '.join(signatures)}, as in mean(x)")
        self.name = self.part(self.tree.func)
        if self.name not in signatures:
            remedy = NO_STATISTIC.get(self.name) or nearest(self.name, signatures, "the statistics are")
            raise self.wrong(f"{self.name!r} is not a statistic", remedy)
        signature = signatures[self.name]
        usage = f"write {signature.text(self.name)}"
        self.arguments = self.tree.args
        self.options = {keyword.arg: keyword.value for keyword in self.tree.keywords}
        for keyword in self.options:
            if keyword not in signature.options:
                raise self.wrong(f"unknown keyword {keyword or '**'!r} (== compares)", usage)
        missing = len(signature.arguments) - len(self.arguments)
        if (missing > 0 and not signature.optional) or (missing < 0 and not signature.more):
            raise self.wrong(f"{self.name} has {len(self.arguments)} arguments", usage)

    def constant(self, sample: WeightedSample, what: str, node: ast.expr | None, default: float) -> float:
        """Number of an argument that must be constant."""
        if node is None:
            return default
        found = self.number(sample.columns, node)
        if np.ndim(found) or math.isnan(float(found)):
            raise self.wrong(f"{what} is {self.part(node)}", "it must be a number")
        return float(found)

    def chosen(self, sample: WeightedSample) -> Mask:
        """Mask of the rows where the condition of the query holds."""
        condition = self.options.get("where")
        return np.ones(len(sample.weights), bool) if condition is None else sample.truth(self, condition) == 1

    def empty(self) -> InputError:
        """Error for a query that leaves no rows."""
        return self.wrong("no released rows of positive weight are left", "change the condition or the expression")


def ask(sample: WeightedSample, text: str, rows: float, holdout: WeightedSample | None = None) -> Answer:
    """Answer one query.

    Expectations (`mean`, `prob`, `count`) are sum_m w_m h(z_m) (Thesis eq. 4.5) with the weights as
    they are. Statistics of a distribution (`quantile`, `var`, `histogram`, models, ...) replace
    negative weights by 0 and scale the others to sum 1. Rows where an expression of the query is
    missing do not count (for `count`, they are false).

    Parameters
    ----------
    sample : rows and weights of the release.
    text : text of the query.
    rows : number N of private rows, for `count`; an estimate if it is secret.
    holdout : rows to score models on. These scores are private if the rows are.

    Raises
    ------
    InputError : the query cannot be read or evaluated, or no weight is left.
    """
    query = Query(text)
    with np.errstate(over="ignore", invalid="ignore"):
        if query.name == "histogram":
            return _histogram(query, sample)
        if query.name in ("regress", "classify"):
            return _model(query, sample, holdout)
        return Answer(query.text, tuple(_scalars(query, sample, rows)))


def _scalars(query: Query, sample: WeightedSample, rows: float) -> list[AnswerRow]:
    """Numbers of a statistic, for all chosen rows or for each group."""
    if query.name == "count":
        return _counts(query, sample, rows)
    statistic, arguments = query.name, query.arguments
    evaluate = SCALARS[statistic]
    if statistic == "quantile":
        q = query.constant(sample, "q", arguments[1], math.nan)
        if not 0 <= q <= 1:
            raise query.wrong(f"q is {q:g}", "it must be from 0 to 1")
        statistic, arguments, evaluate = f"quantile {q:g}", arguments[:1], partial(quantile, q=q)
    read = sample.truth if statistic == "prob" else sample.number
    xs = [read(query, argument) for argument in arguments]
    present = query.chosen(sample) & ~np.isnan(xs).any(axis=0)
    weighing = sample.means if statistic in ("mean", "prob") else sample.distribution
    date = sample.value(query, arguments[0]).date if query.name in DATED else ""
    found = []
    for group, members in _groups(query, sample):
        used = present & members
        weights = weighing(used)
        if weights is None and "by" not in query.options:
            raise query.empty()
        value = math.nan if weights is None else evaluate(weights[used], *(x[used] for x in xs))
        text = text_of_day(value, date) if date else ""
        found.append(AnswerRow(query.text, group, statistic, value, sample.share(used), text))
    return found


def _counts(query: Query, sample: WeightedSample, rows: float) -> list[AnswerRow]:
    """N times the joint probability of the condition, `where` and the group."""
    true = (sample.truth(query, query.arguments[0]) == 1) & query.chosen(sample)
    return [
        AnswerRow(query.text, group, "count", rows * float(sample.weights[true & members].sum()), 1.0)
        for group, members in _groups(query, sample)
    ]


def _groups(query: Query, sample: WeightedSample) -> list[tuple[str, Mask]]:
    """Levels of `by`, or its values among the chosen rows if it is a number, and their rows;
    without it, all rows.
    """
    if "by" not in query.options:
        return [("", np.ones(len(sample.weights), bool))]
    by = sample.value(query, query.options["by"])
    if by.kind != "number":
        return [(level, by.data == place) for place, level in enumerate(by.levels or TRUTHS)]
    numbers = np.unique(by.data[query.chosen(sample) & ~np.isnan(by.data)])
    if len(numbers) > MOST_GROUPS:
        part = query.part(query.options["by"])
        raise query.wrong(f"{part} has {len(numbers):,} values", f"it must be a category or have at most {MOST_GROUPS}")
    return [(text_of_day(number, by.date) if by.date else f"{number:.12g}", by.data == number) for number in numbers]


def _histogram(query: Query, sample: WeightedSample) -> Answer:
    """Shares of levels, of bins over the schema's bounds, or of bins over the released range of an
    expression.
    """
    bins = query.constant(sample, "bins", query.options.get("bins"), 10)
    if not (1 <= bins <= MOST_BINS and bins == int(bins)):
        raise query.wrong(f"bins is {bins:g}", f"it must be a whole number from 1 to {MOST_BINS:,}")
    node = query.arguments[0]
    value = sample.value(query, node)
    used = query.chosen(sample) & ~np.isnan(value.data)
    weights = sample.distribution(used)
    if weights is None:
        raise query.empty()
    x, weights, edges = value.data[used], weights[used], None
    if value.kind == "number":
        name = query.column_name(node) if isinstance(node, ast.Name) else None
        edges, labels = histogram_bins(sample.schema, name, x, int(bins), value.date)
        shares = np.histogram(x, edges, weights=weights)[0]
    else:
        labels = list(value.levels or TRUTHS)
        shares = np.bincount(x.astype(np.int64), weights, len(labels))
    share = sample.share(used)
    pairs = zip(labels, shares.tolist(), strict=True)
    found = tuple(AnswerRow(query.text, label, "share", each, share) for label, each in pairs)
    condition = query.part(query.options["where"]) if "where" in query.options else ""
    return Answer(query.text, found, (), query.part(node), condition, edges, bool(value.date))


def histogram_bins(schema: Schema, name: str | None, x: Floats, count: int, date: str) -> tuple[Floats, list[str]]:
    """Edges and labels of bins; for whole numbers and dates there may be fewer than `count`, all
    equally wide but the last, which ends at the bound.

    Parameters
    ----------
    name : column of the schema, whose bounds are the outer edges; None for another expression.
    x : its values, shape (rows,); their ends are the outer edges of an expression.
    date : kind of the date that a number stands for; empty for none.

    Returns
    -------
    edges : shape (bins + 1,).
    labels : one a bin.
    """
    column = next((c for c in schema.columns if c.name == name), None)
    shown = partial(text_of_day, kind=date) if date else str
    low, high = column.bounds if column else (x.min(), x.max())
    if column and column.steps == 1:
        width = -(-(int(high) - int(low) + 1) // count)
        firsts = np.arange(int(low), int(high) + 1, width)
        ends = [min(a + width - 1, int(high)) for a in firsts.tolist()]
        labels = [
            f"{shown(a)} to {shown(b)}" if width > 1 else shown(a) for a, b in zip(firsts.tolist(), ends, strict=True)
        ]
        return np.append(firsts, int(high) + 1) - 0.5, labels
    edges = np.linspace(low, high if high > low else low + 1, count + 1)
    texts = [shown(edge) if date else f"{edge:.6g}" for edge in edges.tolist()]
    return edges, [f"{a} to {b}" for a, b in pairwise(texts)]


def _model(query: Query, sample: WeightedSample, holdout: WeightedSample | None) -> Answer:
    """Coefficients of a regression, and its scores on the release and on the holdout."""
    names, matrix, y, used = _design(query, sample)
    weights = sample.distribution(used)
    if weights is None:
        raise query.empty()
    weights, scores = weights[used], {}
    if query.name == "regress":
        model = regression.least_squares(names, matrix, y, weights)
        fit = regression.regression_scores(y, model.at(matrix), weights)
        scores = {f"{name} in the release": score for name, score in fit.items()}
    else:
        ridge = query.constant(sample, "ridge", query.options.get("ridge"), RIDGE)
        if not ridge > 0:
            raise query.wrong(f"ridge is {ridge:g}", "it must be above 0")
        try:
            model = regression.logistic(names, matrix, y, weights, ridge)
        except InputError as error:
            raise query.wrong(error.problem, error.remedy) from None
    if model.free:
        scores["directions not determined"] = model.free
    share = sample.share(used)
    found = [AnswerRow(query.text, name, "coefficient", b, share) for name, b in model.coefficients.items()]
    found += [AnswerRow(query.text, "", name, score, share) for name, score in scores.items()]
    scored = []
    if holdout:
        _, matrix, y, used = _design(query, holdout)
        if not used.any():
            raise query.wrong("no rows of the holdout are left", "change the condition or the expression")
        judge = regression.regression_scores if query.name == "regress" else regression.classification_scores
        scores = {"rows of the holdout": float(used.sum())}
        scores |= {f"{name} on the holdout": score for name, score in judge(y, model.at(matrix)).items()}
        scored = [AnswerRow(query.text, "", name, score, holdout.share(used)) for name, score in scores.items()]
    return Answer(query.text, tuple(found), tuple(scored))


def _design(query: Query, sample: WeightedSample) -> tuple[list[str], Floats, Floats, Mask]:
    """Names and matrix (rows, columns) of the design, target (rows,), and mask of the rows without
    missing values.
    """
    first, *others = query.arguments
    y = (sample.number if query.name == "regress" else sample.truth)(query, first)
    values = {query.part(node): sample.value(query, node) for node in others}
    used = query.chosen(sample) & ~np.isnan([y, *(value.data for value in values.values())]).any(axis=0)
    names, matrix = regression.design({name: replace(v, data=v.data[used]) for name, v in values.items()})
    return names, matrix, y[used], used
