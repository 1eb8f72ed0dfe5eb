"""The networks that can be trained, by name."""

from __future__ import annotations

from typing import Protocol

from thesis_cli.synthesis.training.data import TrainingData
from thesis_cli.synthesis.training.feed_forward import FeedForwardLearner
from thesis_cli.synthesis.training.trainer import Learner


class Maker(Protocol):
    """Makes a network that is not trained yet."""

    def __call__(self, data: TrainingData, seed: int, device: str = "cpu", *, embedding: int = 20) -> Learner: ...


MODELS: dict[str, Maker] = {"feed-forward": FeedForwardLearner}
"""Networks by the names of `train-guide --model`."""
