"""Magnitude, sign and evenness of integers, decoded from a learned embedding (Thesis D.3).

A property that cannot be decoded from the embeddings of integers that the decoder has not seen is
not in the embedding. Parts of the integers are left out in turn, and the same decoder is applied to
permuted properties, which shows what chance gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats

DECODERS = "linear", "neighbours"
FOLDS = 16
NEIGHBOURS = 7


@dataclass(frozen=True)
class DecodingAccuracy:
    """Accuracy with which a property is decoded.

    Attributes
    ----------
    score : accuracy for a property of two values, Spearman's rank correlation for a number.
    chance, spread : mean and standard deviation of the score of permuted properties.
    """

    score: float
    chance: float
    spread: float


def decoded(
    points: Floats, of: npt.NDArray[np.generic], decoder: str, permutations: int, rng: np.random.Generator
) -> DecodingAccuracy:
    """Decode a property of the points of each random part from those of the others.

    Parameters
    ----------
    points : the embeddings, shape (P, E).
    of : the property, flags or numbers, shape (P,).
    decoder : `linear`, least squares on the coordinates, or `neighbours`, the mean of the nearest
        `NEIGHBOURS` points.
    permutations : permutations of the property that give the chance.
    """
    values = of.astype(np.float64)
    columns = np.column_stack([values, *(rng.permutation(values) for _ in range(permutations))])
    predicted = np.empty_like(columns)
    decode = _linear if decoder == "linear" else _neighbours
    for fold in np.array_split(rng.permutation(len(points)), FOLDS):
        seen = np.delete(np.arange(len(points)), fold)
        predicted[fold] = decode(points[seen], columns[seen], points[fold])
    right = (predicted > 0.5) == (columns > 0.5)
    scores = right.mean(axis=0) if of.dtype.kind == "b" else _spearman(predicted, columns)
    return DecodingAccuracy(float(scores[0]), float(scores[1:].mean()), float(scores[1:].std()))


def _linear(points: Floats, columns: Floats, new: Floats) -> Floats:
    """Predictions of least squares at new points."""
    basis, others = (np.column_stack([np.ones(len(x)), x]) for x in (points, new))
    return np.asarray(others @ np.linalg.lstsq(basis, columns, rcond=None)[0])


def _neighbours(points: Floats, columns: Floats, new: Floats) -> Floats:
    """Means of the points that are nearest to each new one."""
    distances = ((new[:, None] - points[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBOURS]
    return np.asarray(columns[nearest].mean(axis=1))


def _spearman(a: Floats, b: Floats) -> Floats:
    """Rank correlation of each column of one array with that of the other."""
    from scipy.stats import rankdata

    first, second = (rankdata(x, axis=0) for x in (a, b))
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    norms = np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))
    return np.asarray((first * second).sum(axis=0) / np.where(norms > 0, norms, 1))
