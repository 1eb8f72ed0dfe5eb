"""What the claims of the experiment on learning read from its table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from thesis_cli.base.arrays import Floats

LOSSES = {"multilabel": "zero_one", "ranking": "kendall_tau", "hierarchy": "hierarchy"}
"""The loss by which the regularisation is chosen, for each task."""


def chosen(frame: pd.DataFrame, data: str, method: str, decision: str = "map") -> float | None:
    """The regularisation of least mean validation loss; None if there is no such row."""
    rows = _of(frame, data, method, decision)
    if rows.empty:
        return None
    loss = LOSSES[rows.task.iloc[0]]
    means = rows[rows.loss == loss].groupby("regularisation").validation.mean()
    values, sign = means.to_numpy(float), 1 if loss == "kendall_tau" else -1
    return float(means.index.to_numpy(float)[(sign * values).argmax()])


def by_fold(
    frame: pd.DataFrame, data: str, method: str, decision: str = "map", loss: str | None = None
) -> Floats | None:
    """Test losses of the folds with the chosen regularisation; None if there are no such rows.

    Parameters
    ----------
    loss : name of the loss; that of `LOSSES` by default.
    """
    weight = chosen(frame, data, method, decision)
    if weight is None:
        return None
    rows = _of(frame, data, method, decision)
    rows = rows[(rows.loss == (loss or LOSSES[rows.task.iloc[0]])) & (rows.regularisation == weight)]
    return np.asarray(rows.sort_values("fold").test, float)


def passes_until(frame: pd.DataFrame, method: str, share: float) -> dict[str, list[float]]:
    """Passes until at most a share of the way is left: by data set, a number for each draw; inf if never."""
    rows = frame[(frame.kind == "trace") & (frame.method == method)]

    def passes(part: pd.DataFrame) -> float:
        near = part[part.left <= share]
        return float(near.passes.min()) if len(near) else math.inf

    return {
        str(data): [passes(draw) for _, draw in part.groupby("draw", dropna=False)]
        for data, part in rows.groupby("data")
    }


def standard_error(values: Floats | list[float]) -> float:
    """Standard error of a mean."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _of(frame: pd.DataFrame, data: str, method: str, decision: str) -> pd.DataFrame:
    return frame[
        (frame.kind == "loss") & (frame.data == data) & (frame.method == method) & (frame.decision == decision)
    ]
