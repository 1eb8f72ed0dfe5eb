"""Linear and logistic regression on weighted rows, and scores of their predictions (Thesis section
4.3.3, item 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.tables.column import Value

INTERCEPT = "intercept"


@dataclass(frozen=True)
class Linear:
    """A function b_0 + sum_j b_j x_j of the columns of a design.

    Attributes
    ----------
    coefficients : coefficient by name of column, the intercept first.
    free : number of directions of the coefficients that the rows do not determine; the shortest
        vector is taken.
    """

    coefficients: dict[str, float]
    free: int

    def at(self, matrix: Floats) -> Floats:
        """Value of the function in each row of a design, shape (rows, columns) -> (rows,)."""
        found: Floats = matrix @ np.array(list(self.coefficients.values()))
        return found


def design(values: Mapping[str, Value]) -> tuple[list[str], Floats]:
    """Columns of a regression: an intercept, numbers, truth as 0 and 1, and each level of a
    category except the first.

    Parameters
    ----------
    values : values by name, each of shape (rows,), none missing.

    Returns
    -------
    names : names of the columns; that of a level is `name = level`.
    matrix : the design, shape (rows, columns).
    """
    rows = len(next(iter(values.values())).data)
    columns = {INTERCEPT: np.ones(rows)}
    for name, value in values.items():
        if value.kind == "text":
            for place, level in enumerate(value.levels[1:], 1):
                columns[f"{name} = {level}"] = (value.data == place).astype(np.float64)
        else:
            columns[name] = value.data
    return list(columns), np.column_stack(list(columns.values()))


def least_squares(names: list[str], matrix: Floats, y: Floats, weights: Floats) -> Linear:
    """Minimiser of sum_m w_m (y_m - x_m . b)^2.

    Parameters
    ----------
    names : name of each of P columns.
    matrix, y : regressors x, shape (M, P), and responses, shape (M,).
    weights : weights of 0 or more, shape (M,).
    """
    roots, squares = np.sqrt(weights), weights @ matrix**2
    scale = _root(squares, squares)
    found, _, rank, _ = np.linalg.lstsq(roots[:, np.newaxis] * matrix / scale, roots * y, rcond=None)
    return Linear(dict(zip(names, (found / scale).tolist(), strict=True)), matrix.shape[1] - int(rank))


def logistic(names: list[str], matrix: Floats, truth: Floats, weights: Floats, ridge: float) -> Linear:
    """Minimiser of the mean logarithmic loss plus ridge / 2 sum_j (s_j b_j)^2; the sum leaves out
    the intercept.

    The ridge acts on columns in units of their standard deviations s_j. It makes the minimiser
    unique and finite even if a column separates the rows or does not vary.

    Parameters
    ----------
    names, matrix : a design, whose first column is the intercept.
    truth : class of each row, 0 or 1, shape (rows,).
    weights : weights of 0 or more, of sum 1.
    ridge : strength of the ridge, above 0.

    Raises
    ------
    InputError : all rows of positive weight belong to one class.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    share = weights @ truth
    if not 0 < share < 1 or np.ptp(truth[weights > 0]) == 0:
        raise InputError("the condition is the same in all released rows", "it must vary")
    centre = weights @ matrix
    centre[0] = 0.0
    scale = _root(weights @ (matrix - centre) ** 2, weights @ matrix**2)
    unit = (matrix - centre) / scale
    penalty = np.full(len(names), ridge)
    penalty[0] = 0.0

    def loss(b: Floats) -> tuple[float, Floats]:
        z = unit @ b
        value = weights @ (np.logaddexp(0, z) - truth * z) + penalty @ b**2 / 2
        return float(value), unit.T @ (weights * (expit(z) - truth)) + penalty * b

    def hessian(b: Floats) -> Floats:
        p = expit(unit @ b)
        return (unit.T * (weights * p * (1 - p))) @ unit + np.diag(penalty)

    start = np.zeros(len(names))
    start[0] = np.log(share / (1 - share))
    found = minimize(loss, start, jac=True, hess=hessian, method="trust-exact", options={"gtol": 1e-9}).x / scale
    found[0] -= centre[1:] @ found[1:]
    return Linear(dict(zip(names, found.tolist(), strict=True)), 0)


def _root(squares: Floats, raw: Floats) -> Floats:
    """Root mean squares; 1 for a column whose mean square is rounding error beside its `raw`
    one.
    """
    return np.asarray(np.sqrt(np.where(squares > 1e-24 * raw, squares, 1.0)))


def regression_scores(y: Floats, predicted: Floats, weights: Floats | None = None) -> dict[str, float]:
    """R^2 = 1 - sum (y - f)^2 / sum (y - mean y)^2 (NaN if y does not vary), and the root mean
    square error.

    Parameters
    ----------
    y, predicted : y and f, shape (M,).
    weights : weights of sum 1, shape (M,); equal by default.
    """
    error = np.average((y - predicted) ** 2, weights=weights)
    spread = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    return {"R^2": float(1 - error / spread) if spread > 0 else np.nan, "RMSE": float(np.sqrt(error))}


def classification_scores(y: Floats, logits: Floats) -> dict[str, float]:
    """Accuracy at probability 1/2, accuracy of the commoner class, area under the ROC curve, mean
    logarithmic loss.

    Parameters
    ----------
    y : class of each row, 0 or 1, shape (rows,).
    logits : ln p / (1 - p) for the predicted probabilities p of class 1, shape (rows,).
    """
    truth = y == 1
    share = float(truth.mean())
    return {
        "accuracy": float(((logits > 0) == truth).mean()),
        "accuracy of a constant": max(share, 1 - share),
        "AUC": area_under_curve(logits, truth),
        "log loss": float((np.logaddexp(0, logits) - truth * logits).mean()),
    }


def area_under_curve(scores: Floats, truth: npt.NDArray[np.bool_]) -> float:
    """Area under the ROC curve: P(a true row scores above a false one), ties count half; NaN if
    there is one class.

    Parameters
    ----------
    scores, truth : score and class of each row, shape (M,).
    """
    from scipy.stats import rankdata

    trues, falses = int(truth.sum()), int((~truth).sum())
    above = float(rankdata(scores)[truth].sum()) - trues * (trues + 1) / 2
    return above / (trues * falses) if trues and falses else math.nan
