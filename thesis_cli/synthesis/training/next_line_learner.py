"""The network for the next line as `trainer.train` takes it, and the programs that it learns from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thesis_cli.base.progress import Tick
from thesis_cli.synthesis.corpus.corpus import Corpus, join
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.language.lanes import NULL
from thesis_cli.synthesis.networks.next_line import Sizes
from thesis_cli.synthesis.networks.weights import Array, Kind
from thesis_cli.synthesis.training.corpora import held_out, training_corpus
from thesis_cli.synthesis.training.data import Rows, TrainingData
from thesis_cli.synthesis.training.next_line_batches import WIDE, Batch, batch_of
from thesis_cli.synthesis.training.next_line_metrics import report
from thesis_cli.synthesis.training.next_line_model import NextLineModel, arrays_of, losses

COUNTS = {2: 1_000, 3: 12_000, 4: 20_000, 5: 32_000, 6: 30_000, 7: 26_000, 8: 32_000}
"""Programs to learn from, by length."""

WIDE_COUNTS = {3: 3_000, 5: 6_000, 7: 5_000}
"""Those of the widest range, with lists of up to 31 numbers."""

BATCH = 64
"""Programs of a step; each gives 4 states."""

EVALUATED = 512
"""Programs that are evaluated at a time."""

EXAMPLES = 8
"""Examples of each program; a batch takes some of them."""


def corpus(share: float = 1.0, jobs: int = 1, progress: Tick = lambda done: None) -> Corpus:
    """The programs that the shipped network learns from; the same ones every time.

    Parameters
    ----------
    share : of their number.
    jobs : threads; the corpus does not depend on it.
    progress : called with the number of programs just made.
    """
    parts = [
        training_corpus(length, max(1, int(share * count)), EXAMPLES, jobs, progress)
        for length, count in COUNTS.items()
    ]
    for length, count in WIDE_COUNTS.items():
        plan = CorpusPlan(length, max(1, int(share * count)), examples=EXAMPLES, semantics=WIDE)
        parts.append(make_corpus(plan, np.random.default_rng([2, length]), held_out(), jobs, progress))
    return replace(join([_widened(part) for part in parts]), semantics=WIDE)


def _widened(part: Corpus) -> Corpus:
    """A corpus with room for the longest lists."""
    numbers = np.asarray(part.numbers)
    room = WIDE.longest - numbers.shape[3]
    return replace(part, numbers=np.pad(numbers, ((0, 0), (0, 0), (0, 0), (0, room)), constant_values=NULL))


class NextLineLearner:
    """A network that learns which lines can be next.

    Parameters
    ----------
    data : what it learns from.
    seed : of the first weights.
    sizes : of the layers.
    """

    kind: Kind = "next-line"

    def __init__(self, data: TrainingData, seed: int, sizes: Sizes | None = None) -> None:
        layers = sizes or Sizes()
        self.sizes: Mapping[str, int] = asdict(layers)
        self._data = data
        self.module = NextLineModel(layers, torch.Generator().manual_seed(seed))
        rows = data.train[:: max(1, len(data.train) // 2_000)]
        features = self.batch(rows, None).features.flatten(0, 1)
        self.module.shift.copy_(features.mean(0))
        self.module.scale.copy_(1 / (features.std(0) + 0.05))

    def batch(self, rows: Rows, rng: np.random.Generator | None) -> Batch:
        """States of programs: with examples that `rng` draws, sometimes fewer of them."""
        part = self._data.draw(rows, rng)
        if rng is not None and rng.random() < 0.2 and part.numbers.shape[1] > 2:
            part = replace(part, numbers=part.numbers[:, : rng.integers(2, part.numbers.shape[1])])
        source = np.random.default_rng(len(rows)) if rng is None else rng
        return batch_of(part, source)

    def loss(self, batch: Batch) -> Tensor:
        """Minus the logarithm of the probability of right lines, in nats; a mean over states."""
        return losses(self.module, batch)[0].mean()

    def arrays(self) -> dict[str, Array]:
        """The weights, as `networks.next_line` takes them."""
        return arrays_of(self.module)

    def metrics(self, rows: Rows) -> dict[str, Any]:
        """`next_line_metrics.report`."""
        batches = [self.batch(rows[at : at + EVALUATED], None) for at in range(0, len(rows), EVALUATED)]
        return report(self.module, batches)
