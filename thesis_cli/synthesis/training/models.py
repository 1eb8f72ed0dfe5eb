"""The networks that can be trained, by name, and what they learn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from thesis_cli.base.progress import Tick
from thesis_cli.synthesis.corpus.corpus import Corpus
from thesis_cli.synthesis.networks.weights import load
from thesis_cli.synthesis.training import next_line_learner, program_decoder
from thesis_cli.synthesis.training.corpora import TrainingData
from thesis_cli.synthesis.training.feed_forward import FeedForwardLearner, GruLearner
from thesis_cli.synthesis.training.next_line_learner import NextLineLearner
from thesis_cli.synthesis.training.program_decoder import ProgramLearner
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
    prepare : changes how often it sees which programs.
    half : whether multiplying in bfloat16 makes its training faster.
    batch : programs of a step.
    """

    make: Maker
    corpus: Callable[[Tick], Corpus] | None = None
    prepare: Callable[[TrainingData], TrainingData] = lambda data: data
    half: bool = True
    batch: int = 256


def _program(data: TrainingData, seed: int, device: str = "cpu", *, embedding: int = 20) -> Learner:
    """Its encoder begins as the shipped network of 3 lines."""
    return ProgramLearner(data, seed, device, embedding, encoder=load("lines-3"))


def _next_line(data: TrainingData, seed: int, device: str = "cpu", *, embedding: int = 20) -> Learner:
    return NextLineLearner(data, seed)


MODELS: dict[str, Model] = {
    "feed-forward": Model(FeedForwardLearner),
    "gru": Model(GruLearner, half=False),
    "program": Model(_program, lambda tick: program_decoder.mixed_corpus(), program_decoder.mixed),
    "next-line": Model(_next_line, lambda tick: next_line_learner.corpus(progress=tick), batch=next_line_learner.BATCH),
}
"""Networks by the names of `train-guide --model`."""
