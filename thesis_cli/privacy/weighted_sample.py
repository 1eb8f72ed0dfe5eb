"""Rows and weights that statistics are computed from, and their transformation by functions (Thesis section 4.3.3)."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.columns import Values
from thesis_cli.privacy.embedding import distance, mean_at, mean_of_matrix
from thesis_cli.privacy.expressions import Formula, Value, read_columns
from thesis_cli.privacy.kernels import Kernel, Rows
from thesis_cli.privacy.release_files import Release
from thesis_cli.privacy.schema import Schema

Mask = npt.NDArray[np.bool_]

Function = Callable[[dict[str, Values]], Values]
"""From columns, as `Schema.decode` returns them, to a number in each row."""


@dataclass(frozen=True)
class WeightedSample:
    """Rows and weights that queries are evaluated on.

    Attributes
    ----------
    schema : of the columns as they were released.
    columns : these and defined ones, by name.
    weights : of any sign, shape (rows,).
    """

    schema: Schema
    columns: dict[str, Value] = field(repr=False)
    weights: Floats = field(repr=False)

    @classmethod
    def of_release(cls, release: Release) -> WeightedSample:
        return cls(release.schema, read_columns(release.schema, release.columns), release.weights)

    @classmethod
    def of_rows(cls, schema: Schema, rows: Rows) -> WeightedSample:
        """Rows of equal weight, as the schema decodes them: clamped to its bounds."""
        return cls(schema, read_columns(schema, schema.decode(rows)), np.full(len(rows), 1 / len(rows)))

    def define(self, text: str) -> WeightedSample:
        """With a column more, from `name = expression`.

        Raises
        ------
        InputError : it has not this form, there is such a column, or `Formula` refuses the expression.
        """
        parts = re.fullmatch(r"\s*(?:`([^`]+)`|(\w+))\s*=(?!=)(.*)", text, re.DOTALL)
        name = parts and (parts[1] or parts[2])
        if not parts or not name:
            raise InputError(f"no definition: {text!r}", "as in 'hourly = wage / 40' is wanted")
        if name in self.columns:
            raise InputError(f"there is a column {name!r} already", "another name is wanted", source=text)
        return replace(self, columns={**self.columns, name: self.value(Formula(parts[3]))})

    def value(self, formula: Formula, node: ast.expr | None = None) -> Value:
        """An expression in each row, of shape (rows,)."""
        found = formula.value(self.columns, node)
        return replace(found, data=np.broadcast_to(found.data, self.weights.shape))

    def number(self, formula: Formula, node: ast.expr | None = None) -> Floats:
        return np.broadcast_to(formula.number(self.columns, node), self.weights.shape)

    def truth(self, formula: Formula, node: ast.expr | None = None) -> Floats:
        return np.broadcast_to(formula.truth(self.columns, node), self.weights.shape)

    def is_distribution(self) -> bool:
        """Whether the weights are 0 or more and sum to 1."""
        return bool((self.weights >= 0).all()) and abs(float(self.weights.sum()) - 1) < 1e-9

    def share(self, used: Mask) -> float:
        """Of the absolute weight of all rows, that of some."""
        size = np.abs(self.weights)
        return float(size[used].sum() / size.sum()) if size.sum() > 0 else 0.0

    def means(self, used: Mask) -> Floats | None:
        """Weights of an expectation over some rows, with 0 for the others, or None where they sum to 0 or less.

        Those of all rows are left as they are (Thesis eq. 4.5), even where they do not sum to 1: an expectation is
        linear in the embedding. Those of some are divided by their sum, the estimate of the probability.
        """
        weights = np.where(used, self.weights, 0.0)
        total = weights.sum()
        if not used.any() or (total <= 0 and not used.all()):
            return None
        return weights if used.all() else weights / total

    def distribution(self, used: Mask) -> Floats | None:
        """Weights of some rows as a distribution: 0 for negative ones, sum 1; None where no weight is left."""
        weights = np.where(used, np.maximum(self.weights, 0), 0.0)
        total = weights.sum()
        return weights / total if total > 0 else None


def mean(weights: Floats, x: Floats) -> float:
    """sum_m w_m x_m."""
    return float(weights @ x)


def variance(weights: Floats, x: Floats) -> float:
    """Mean squared distance to the mean, of weights with sum 1."""
    return float(weights @ (x - weights @ x) ** 2)


def sd(weights: Floats, x: Floats) -> float:
    """Standard deviation, the root of `variance`."""
    return math.sqrt(variance(weights, x))


def quantile(weights: Floats, x: Floats, q: float = 0.5) -> float:
    """The least value that has at least q of the weight at or below it."""
    return float(np.quantile(x, q, weights=weights, method="inverted_cdf"))


def correlation(weights: Floats, x: Floats, y: Floats) -> float:
    """Pearson's; NaN where one does not vary."""
    scale = sd(weights, x) * sd(weights, y)
    covariance = float(weights @ ((x - weights @ x) * (y - weights @ y)))
    return covariance / scale if scale > 0 else math.nan


def push_forward(release: Release, f: str | Function) -> tuple[Floats, Floats]:
    """A release of f(X): f of each point, and the points' weights (kernel probabilistic programming).

    For continuous f, sum_m w_m k_f(f(z_m), .) is a consistent estimator of the embedding of f(X) under a kernel k_f
    (Thesis section 4.3.3, item 1).

    Parameters
    ----------
    f : an expression (`Formula`), or a function of the decoded columns.

    Returns
    -------
    values, weights : shape (M,); values are NaN where f has none.

    Raises
    ------
    InputError : `Formula` refuses the expression.
    """
    return _image(release.schema, release.columns, f, len(release.points)), release.weights


def push_forward_distance(release: Release, rows: Rows, f: str | Function, scale: float | None = None) -> float:
    """RKHS distance of `push_forward` to the empirical embedding of f of real rows; a private number if they are.

    Parameters
    ----------
    rows : real ones, encoded by the schema of the release.
    scale : standard deviation of the Gaussian kernel exp(-(s - t)^2 / (2 scale^2)); by default that of f of the rows.

    Raises
    ------
    InputError : no rows, f has no value in some, or (without a scale) is the same in all.
    """
    values, weights = push_forward(release, f)
    real = _image(release.schema, release.schema.decode(rows), f, len(rows))
    if not len(real):
        raise InputError("the table has no rows", "one or more are wanted")
    if not (np.isfinite(values).all() and np.isfinite(real).all()):
        raise InputError("the function has no value in some rows", "one that is finite everywhere is wanted")
    scale = float(real.std()) if scale is None else scale
    if not scale > 0:
        raise InputError(f"the scale of the function's values is {scale:g}", "one above 0 is wanted")
    kernel = Kernel(np.array([0.5]), np.zeros(0))
    points, targets = (Rows.of_reals(x[:, np.newaxis] / scale) for x in (values, real))
    return distance(kernel, points, weights, mean_at(kernel, [targets], points), mean_of_matrix(kernel, targets))


def _image(schema: Schema, decoded: dict[str, Values], f: str | Function, rows: int) -> Floats:
    found = Formula(f).number(read_columns(schema, decoded)) if isinstance(f, str) else f(decoded)
    return np.broadcast_to(np.asarray(found, np.float64), (rows,))
