"""Scores of the utility of released rows of a real table, beside those of other rows.

    from thesis_cli.studies.privacy.utility import scores, table

    cps = table("cps1988")  # .schema, .private (encoded rows to release), .held_out
    scores("cps1988", cps.private[:1000])  # encoded rows -> {"one_way": ..., "boosting": ...}

The scores are computed from private rows without noise: they are NOT PRIVATE.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.privacy.embedding.features import draw_features
from thesis_cli.privacy.kernels import Codes, Rows
from thesis_cli.privacy.query.regression import area_under_curve
from thesis_cli.privacy.tables.schema import Schema, Values
from thesis_cli.studies.privacy.evaluation import random_ranges
from thesis_cli.studies.privacy.real_tables import SOURCES, RealTable, table

__all__ = ["SCORES", "SOURCES", "ReleaseJudge", "scores", "table"]

BINS = 10
"""Bins of a number in a marginal: between quantiles of the private rows."""
FEATURES = 2000
"""Random features that measure distances: the squared distance has a relative error of some sqrt(2
/ FEATURES), the same for all releases of a table."""
SEED = 19
TRIPLES = 300
"""Largest number of triples of columns whose marginals are compared."""

SCORES = {
    "distance": "RKHS distance",
    "one_way": "error of one-way marginals",
    "two_way": "error of two-way marginals",
    "means": "error of means, in standard deviations",
    "correlations": "error of correlations",
    "ranges": "error of range queries",
    "logistic": "AUC of a logistic model, held out",
    "boosting": "AUC of boosted trees, held out",
    "logistic_loss": "loss of AUC of a logistic model",
    "boosting_loss": "loss of AUC of boosted trees",
}
"""Scores by name.

`distance` is in the RKHS of the schema's kernel. `one_way` and `two_way` are total variations to
the marginals of the private rows, over deciles and levels, averaged over columns and pairs.
`means` is the average of |difference of means| / standard deviation over numeric and binary
columns, `correlations` the average of |difference of correlations| over their pairs. `ranges` is
the mean absolute error of the shares of random boxes. A loss is the AUC of a model that is trained
on the private rows less that of one trained on the release.
"""


class ReleaseJudge:
    """Scores of releases of a table.

    Parameters
    ----------
    table : the table; its private rows are the truth.
    """

    def __init__(self, table: RealTable) -> None:
        self._table, schema = table, table.schema
        self._features = draw_features(schema.kernel(), schema.cardinalities, FEATURES, np.random.default_rng(SEED))
        self._mean = self._features.mean([table.private])
        self._ranges = random_ranges(table.private, schema.cardinalities, np.random.default_rng(SEED + 1))
        self._shares = self._ranges.shares(table.private, _equal(table.private))
        private = DecodedRows(schema, table.private)
        self._cuts = {
            name: np.unique(np.nanquantile(x, np.arange(1, BINS) / BINS)) for name, x in private.numbers.items()
        }
        self._ones, self._pairs = self._marginals(private)
        self._moments = Moments.of(private.plain(schema))
        self._held_out = DecodedRows(schema, table.held_out)
        self._best = self._curves(private)

    def scores(self, rows: Rows) -> dict[str, float]:
        """Value of each of `SCORES` for a release of encoded rows, after they are written and read again."""
        schema = self._table.schema
        rows = schema.encode(schema.decode(rows))
        released = DecodedRows(schema, rows)
        ones, pairs = self._marginals(released)
        curves = self._curves(released)
        return {
            "distance": float(np.linalg.norm(self._features.mean([rows]) - self._mean)),
            "one_way": _variation(ones, self._ones),
            "two_way": _variation(pairs, self._pairs),
            **self._moments.errors(Moments.of(released.plain(schema))),
            "ranges": float(np.abs(self._ranges.shares(rows, _equal(rows)) - self._shares).mean()),
            **curves,
            **{f"{name}_loss": best - curves[name] for name, best in self._best.items()},
        }

    def three_way(self, rows: Rows) -> float:
        """Mean total variation of marginals of three columns: of all, or of `TRIPLES` random ones."""
        schema = self._table.schema
        every = list(itertools.combinations(schema.names, 3))
        chosen = np.random.default_rng(SEED).permutation(len(every))[:TRIPLES]
        both = (DecodedRows(schema, of) for of in (schema.encode(schema.decode(rows)), self._table.private))
        found, true = ({name: _cells(of, name, self._cuts.get(name)) for name in schema.names} for of in both)
        apart = []
        for k in chosen:
            shares = []
            for cells in (found, true):
                (x, n), (y, m), (z, o) = (cells[name] for name in every[k])
                shares.append(_shares((x * m + y) * o + z, n * m * o))
            apart.append(np.abs(shares[0] - shares[1]).sum() / 2)
        return float(np.mean(apart))

    def _marginals(self, rows: DecodedRows) -> tuple[list[Floats], list[Floats]]:
        """Marginals of each column and of each pair."""
        cells = [_cells(rows, column, self._cuts.get(column)) for column in self._table.schema.names]
        ones = [_shares(x, size) for x, size in cells]
        pairs = [_shares(x * m + y, n * m) for (x, n), (y, m) in itertools.combinations(cells, 2)]
        return ones, pairs

    def _curves(self, rows: DecodedRows) -> dict[str, float]:
        """AUC on held-out rows of models that are trained on rows."""
        truth, test = (self._table.source.truth(of.columns) for of in (rows, self._held_out))
        if truth.all() or not truth.any():
            return {"logistic": 0.5, "boosting": 0.5}
        hidden = (self._table.source.target, *self._table.source.left_out)
        return {
            name: area_under_curve(model(rows, self._held_out, hidden, truth), test)
            for name, model in (("logistic", _logistic), ("boosting", _boosted))
        }


@cache
def judge(name: str) -> ReleaseJudge:
    """Judge of one of `SOURCES`; it trains models once."""
    return ReleaseJudge(table(name))


def scores(name: str, rows: Rows) -> dict[str, float]:
    """Value of each of `SCORES` for encoded rows that a release of one of `SOURCES` has."""
    return judge(name).scores(rows)


class DecodedRows:
    """Rows as a file has them, as numbers.

    Attributes
    ----------
    columns : values by name of column.
    numbers : values of reals, integers and ordered categories (as numbers of levels) by name; NaN
        where missing.
    codes : numbers of levels of the other columns by name, and how many levels there are; a missing
        value is the last one.
    """

    def __init__(self, schema: Schema, rows: Rows) -> None:
        self.columns: dict[str, Values] = schema.decode(rows)
        self.numbers: dict[str, Floats] = {}
        self.codes: dict[str, tuple[Codes, int]] = {}
        code = 0
        for column in schema.columns:
            if not column.on_line:
                self.codes[column.name] = rows.codes[:, code], column.cardinality
            elif column.kind == "category":
                found = column.read(self.columns[column.name])
                self.numbers[column.name] = found * (len(getattr(column, "levels", ())) - 1)
            else:
                self.numbers[column.name] = self.columns[column.name].astype(np.float64)
            code += column.cardinality > 0

    def plain(self, schema: Schema) -> Floats:
        """Numbers and binary columns, shape (rows, columns); NaN where missing."""
        found = []
        for column in schema.columns:
            if column.on_line:
                found.append(self.numbers[column.name])
            elif column.cardinality - column.missing == 2:
                codes, _ = self.codes[column.name]
                found.append(np.where(codes < 2, codes, np.nan))
        return np.stack(found, 1)


@dataclass(frozen=True)
class Moments:
    """Means, standard deviations and correlations of P columns, each over the rows that have the
    values.

    Attributes
    ----------
    means, deviations : shape (P,); NaN and 0 if no row has the value.
    correlations : shape (P, P); 0 with a column that does not vary.
    """

    means: Floats
    deviations: Floats
    correlations: Floats

    @classmethod
    def of(cls, values: Floats) -> Moments:
        """Moments of rows (N, P), NaN where missing."""
        known = ~np.isnan(values)
        counts = np.maximum(known.sum(0), 1)
        means = np.where(known, values, 0).sum(0) / counts
        centred = np.where(known, values - means, 0)
        products = centred.T @ centred
        norms = np.sqrt((centred**2).T @ known)
        scale = norms * norms.T
        correlations = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
        return cls(means, np.sqrt((centred**2).sum(0) / counts), correlations)

    def errors(self, released: Moments) -> dict[str, float]:
        """`means` and `correlations` of a release, beside the truth; columns that do not vary in
        the truth are left out."""
        vary = self.deviations > 0
        means = np.abs(released.means - self.means)[vary] / self.deviations[vary]
        of_pairs = np.abs(released.correlations - self.correlations)[np.ix_(vary, vary)]
        upper = of_pairs[np.triu_indices(vary.sum(), 1)]
        return {"means": float(means.mean()), "correlations": float(upper.mean())}


def _equal(rows: Rows) -> Floats:
    return np.full(len(rows), 1 / len(rows))


def _cells(rows: DecodedRows, column: str, cuts: Floats | None) -> tuple[Codes, int]:
    """Bin or level of each row, and how many there are; a missing number has a bin of its own."""
    if cuts is None:
        return rows.codes[column]
    values = rows.numbers[column]
    return np.where(np.isnan(values), len(cuts) + 1, np.searchsorted(cuts, values, "right")), len(cuts) + 2


def _shares(cells: Codes, size: int) -> Floats:
    return np.bincount(cells, minlength=size) / len(cells)


def _variation(found: list[Floats], true: list[Floats]) -> float:
    """Mean of the total variations; 0 if there are none."""
    return float(np.mean([np.abs(a - b).sum() / 2 for a, b in zip(found, true, strict=True)] or [0.0]))


def _logistic(rows: DecodedRows, test: DecodedRows, hidden: tuple[str, ...], truth: npt.NDArray[np.bool_]) -> Floats:
    """Score of each test row by a logistic model of numbers, their squares, gaps and levels."""
    from sklearn.linear_model import LogisticRegression

    train, at = (_design(of, hidden) for of in (rows, test))
    middle, spread = train.mean(0), train.std(0)
    spread[spread == 0] = np.inf
    model = LogisticRegression(solver="newton-cholesky", max_iter=50).fit((train - middle) / spread, truth)
    found: Floats = model.decision_function((at - middle) / spread)
    return found


def _design(rows: DecodedRows, hidden: tuple[str, ...]) -> Floats:
    found: list[npt.NDArray[Any]] = []
    for name, values in rows.numbers.items():
        if name not in hidden:
            gaps = np.isnan(values)
            filled = np.where(gaps, 0, values)
            found += [filled, filled**2, gaps]
    for name, (codes, size) in rows.codes.items():
        if name not in hidden:
            found += [codes == level for level in range(1, size)]
    return np.stack(found, 1).astype(np.float64)


def _boosted(rows: DecodedRows, test: DecodedRows, hidden: tuple[str, ...], truth: npt.NDArray[np.bool_]) -> Floats:
    """Score of each test row by boosted trees of numbers and levels."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    numbers, codes = ([name for name in names if name not in hidden] for names in (rows.numbers, rows.codes))
    train, at = (
        np.stack([*(of.numbers[n] for n in numbers), *(of.codes[n][0] for n in codes)], 1, dtype=np.float64)
        for of in (rows, test)
    )
    levels = np.arange(train.shape[1]) >= len(numbers)
    model = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=15, learning_rate=0.2, categorical_features=levels, random_state=0
    )
    found: Floats = model.fit(train, truth).decision_function(at)
    return found
