"""The networks that can be trained, by name, and what they learn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from thesis_cli.base.progress import Tick
from thesis_cli.synthesis.corpus import Corpus
from thesis_cli.synthesis.training import next_line_learner
from thesis_cli.synthesis.training.data import TrainingData
from thesis_cli.synthesis.training.feed_forward import FeedForwardLearner
from thesis_cli.synthesis.training.next_line_learner import NextLineLearner
from thesis_cli.synthesis.training.trainer import Learner


class Maker(Protocol):
    """Makes a network that is not trained yet."""

    def __call__(self, data: TrainingData, seed: int, device: str = "cpu", *, embedding: int = 20) -> Learner: ...


@dataclass(frozen=True)
class Model:
    """A network that can be trained.

    Attributes
    ----------
    make : makes it.
    corpus : the corpus that it learns from, if that is always the same; called with a `Tick`.
    size : number of programs of that corpus.
    """

    make: Maker
    corpus: Callable[[Tick], Corpus] | None = None
    size: int = 0


def _next_line(data: TrainingData, seed: int, device: str = "cpu", *, embedding: int = 20) -> Learner:
    return NextLineLearner(data, seed)


MODELS: dict[str, Model] = {
    "feed-forward": Model(FeedForwardLearner),
    "next-line": Model(
        _next_line,
        lambda tick: next_line_learner.corpus(progress=tick),
        sum(next_line_learner.COUNTS.values()) + sum(next_line_learner.WIDE_COUNTS.values()),
    ),
}
"""Networks by the names of `train-guide --model`."""
