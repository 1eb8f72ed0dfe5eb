"""Metrics of predicted probabilities of attributes.

Nothing here needs PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.synthesis.corpus.corpus import Types
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, MOST_INPUTS

BINS = 10
"""Bins of equal width for calibration."""


def cross_entropy(probabilities: Floats, attributes: Bools) -> float:
    """Negative log-likelihood of which attributes programs use, in nats for each program.

    Parameters
    ----------
    probabilities : shape (P, 34), or (34,) for all programs, above 0 and below 1.
    attributes : shape (P, 34).
    """
    chosen = np.where(attributes, probabilities, 1 - np.asarray(probabilities, dtype=np.float64))
    return float(-np.log(chosen).sum(axis=1).mean())


def average_precision(scores: Floats, truth: Bools) -> float | None:
    """Mean over the true cases of the share of true ones among those with at least their score; None
    if there are none.

    Parameters
    ----------
    scores, truth : shape (P,).
    """
    if not truth.any():
        return None
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # cases of one score count together
    found = np.cumsum(truth[order])[ends]
    return float((np.diff(found, prepend=0) * found / (ends + 1)).sum() / truth.sum())


def calibration(probabilities: Floats, attributes: Bools) -> list[dict[str, float]]:
    """Mean prediction, share of attributes used and number of predictions of each bin of predicted
    probabilities that is not empty."""
    places = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
    rows = []
    for place in range(BINS):
        chosen = places == place
        if chosen.any():
            predicted, used = float(probabilities[chosen].mean()), float(attributes[chosen].mean())
            rows.append({"predicted": predicted, "used": used, "count": int(chosen.sum())})
    return rows


def report(probabilities: Floats, attributes: Bools) -> dict[str, Any]:
    """Loss, precision and calibration in types of JSON. `calibration_error` is the mean difference
    between predicted probability and share over the bins, by their counts."""
    each = {name: average_precision(probabilities[:, a], attributes[:, a]) for a, name in enumerate(ATTRIBUTES)}
    known = [precision for precision in each.values() if precision is not None]
    bins = calibration(probabilities, attributes)
    off = sum(row["count"] * abs(row["predicted"] - row["used"]) for row in bins) / attributes.size
    return {
        "programs": len(attributes),
        "loss": cross_entropy(np.clip(probabilities, 1e-7, 1 - 1e-7), attributes),
        "mean_average_precision": float(np.mean(known)) if known else None,
        "average_precision": each,
        "calibration_error": off,
        "calibration": bins,
    }


def baselines(train: tuple[Types, Bools], validation: tuple[Types, Bools]) -> dict[str, float]:
    """Losses of what knows less than the examples: `prior`, the shares of the programs to train on,
    and `by_types`, their shares by the types of inputs and output.

    Parameters
    ----------
    train, validation : types and attributes of programs, as a corpus has them.
    """
    prior = share_of(train[1])
    kinds, places = np.unique(_kinds(train[0]), axis=0, return_inverse=True)
    known = {tuple(kind): share_of(train[1][places.ravel() == k]) for k, kind in enumerate(kinds.tolist())}
    by_types = np.stack([known.get(tuple(kind), prior) for kind in _kinds(validation[0]).tolist()])
    return {"prior": cross_entropy(prior, validation[1]), "by_types": cross_entropy(by_types, validation[1])}


def _kinds(types: Types) -> npt.NDArray[np.int64]:
    """Number of inputs that are numbers, number of those that are lists, and type of the output."""
    inputs = types[:, :MOST_INPUTS]
    return np.stack([(inputs == 1).sum(axis=1), (inputs == 2).sum(axis=1), types[:, MOST_INPUTS]], axis=1)


def share_of(attributes: Bools) -> Floats:
    """Shares of programs that use each attribute, shape (34,); each count starts with one that does and
    one that does not."""
    return np.asarray((attributes.sum(axis=0) + 1) / (len(attributes) + 2))
