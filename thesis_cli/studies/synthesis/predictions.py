"""Predictions of several trainings of the networks of chapter 5: of the shipped weights, and of other seeds.

The thesis speaks of one network of each kind. What a statement owes to the chance of one training is
told by the spread over several. Of the other seeds `predictions.npz` keeps what experiments use:
the logits for the held-out programs, rounded to 16 bits, and the points of a two-dimensional
embedding. `make trainings` trains them again and writes it.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.files import write_atomic
from thesis_cli.base.npy import array_names, arrays_of
from thesis_cli.synthesis.networks.network_guide import NetworkGuide, network_guide
from thesis_cli.synthesis.networks.weights import card, load
from thesis_cli.synthesis.search.solver import Order
from thesis_cli.synthesis.training.corpora import held_out
from thesis_cli.synthesis.training.metrics import report

if TYPE_CHECKING:
    from thesis_cli.synthesis.corpus.corpus import Corpus
    from thesis_cli.synthesis.language.task import Example, Task

ARCHIVE = Path(__file__).with_name("predictions.npz")

LONGEST = 5
"""Lines of the longest held-out programs whose predictions are kept."""

EMBEDDING = "embedding-2"
"""The network of which the embedding is kept, not what it predicts."""


def trainings(name: str) -> list[str]:
    """The trainings of a network, each with the start of the digest of its weights: a parameter of
    tasks, so that results of other weights do not count.
    """
    return [version(name), *sorted(key for key in _names() if key.startswith(f"{name}-seed-"))]


def version(name: str) -> str:
    """Name of shipped weights and the start of their digest."""
    return f"{name} {card(name)['sha256'][:12]}"


def predicted(training: str, tasks: Sequence[Task]) -> Floats:
    """Probability of each attribute for each task, shape (P, 34).

    Parameters
    ----------
    training : named as by `trainings`.
    tasks : any, for shipped weights; for others, held-out programs of up to `LONGEST` lines and those
        that the thesis shows, with the examples that they have there.
    """
    return guide_of(training).probabilities(tasks)


def over_trainings(found: Sequence[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    """A number measured with several trainings: their mean, and its standard error.

    Parameters
    ----------
    found : the number with each training, its standard error by the choice of programs, which all
        trainings share, and perhaps that of the source's own number; None where there is none.

    Returns
    -------
    The mean, the standard error of its difference from the mean over all trainings, and perhaps that
    of the source's own number, in which case the standard error is that of the difference from that
    number: the source has one training, drawn as the ones here. None if there is no number.
    """
    known = np.array([each for each in found if each is not None])
    if not len(known):
        return None
    spread = float(known[:, 0].std(ddof=1)) if len(known) > 1 else 0.0
    value, *errors = known.mean(axis=0).tolist()
    shares = [1 / len(known)] if len(errors) == 1 else [1 + 1 / len(known), 1.0]
    return value, *(math.hypot(error, share**0.5 * spread) for error, share in zip(errors, shares, strict=True))


def guide_of(training: str) -> NetworkGuide | KeptPredictions:
    """The guide that orders searches by the predictions of a training, named as by `trainings`."""
    return KeptPredictions(training) if training in _names() else network_guide(training.split()[0])


def embedding(training: str) -> tuple[npt.NDArray[np.int64], Floats]:
    """The integers that a network takes, and the point of each, shapes (P,) and (P, E)."""
    found = load(training.split()[0].split("-seed-")[0])
    integers = np.arange(found.semantics.low, found.semantics.high + 1)
    points = _kept(training) if training in _names() else found.arrays["embedding"][1:]
    return integers, points.astype(np.float64)


@dataclass(frozen=True)
class KeptPredictions:
    """A guide that knows what a training predicts for held-out programs alone."""

    training: str

    @property
    def identity(self) -> str:
        """Name and digest of the training."""
        return self.training

    def probabilities(self, tasks: Sequence[Task]) -> Floats:
        """Predicted probabilities of the attributes, shape (B, 34). Raises KeyError for a task that
        is not held out."""
        rows = _rows()
        logits = _kept(self.training)[[rows[task.examples] for task in tasks]].astype(np.float64)
        return np.asarray(np.exp(-np.logaddexp(0.0, -logits)))

    def orders(self, tasks: Sequence[Task]) -> list[Order | None]:
        """The order for each task."""
        return [Order(tuple(row.tolist())) for row in self.probabilities(tasks)]


def _programs() -> Corpus:
    """The held-out programs whose predictions are kept."""
    found = held_out()
    return found.subset(np.flatnonzero(~found.test | (found.lengths <= LONGEST)))


@cache
def _rows() -> dict[tuple[Example, ...], int]:
    corpus = _programs()
    return {corpus.task(row).examples: row for row in range(len(corpus))}


@cache
def _names() -> frozenset[str]:
    with ARCHIVE.open("rb") as file:
        return frozenset(array_names(file, ARCHIVE))


@cache
def _kept(training: str) -> npt.NDArray[np.floating]:
    with ARCHIVE.open("rb") as file:
        return arrays_of(file, [training], ARCHIVE)[training]


RESAMPLES = 100


def metric_errors(
    probabilities: Floats, attributes: Bools, rng: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """Standard errors of the loss and of the mean average precision, by the bootstrap over programs.

    Parameters
    ----------
    probabilities, attributes : shape (P, 34).
    """
    found = []
    for _ in range(resamples):
        drawn = rng.integers(len(attributes), size=len(attributes))
        metrics = report(probabilities[drawn], attributes[drawn])
        found.append((metrics["loss"], metrics["mean_average_precision"]))
    loss, precision = np.std(found, axis=0)
    return float(loss), float(precision)


def pack(folder: Path) -> bytes:
    """The archive, from the weights NAME-seed-S.safetensors of a folder."""
    corpus = _programs()
    kept: dict[str, Any] = {}
    tasks = [corpus.task(row) for row in range(len(corpus))]
    for path in sorted(folder.glob("*-seed-*.safetensors")):
        weights = load(path)
        name = path.stem
        if name.startswith(EMBEDDING):
            found = weights.arrays["embedding"][1:]
        else:
            chances = NetworkGuide.of(weights).probabilities(tasks)
            found = np.log(chances) - np.log1p(-chances)
        kept[f"{name} {weights.digest[:12]}"] = found.astype(np.float16)
    file = io.BytesIO()
    np.savez_compressed(file, **kept)
    return file.getvalue()


if __name__ == "__main__":
    write_atomic({ARCHIVE: pack(Path(sys.argv[1]))})
