"""What networks learn from: the programs of a corpus, some of them held back, each time with other
examples.

Nothing here needs PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus.corpus import Corpus
from thesis_cli.synthesis.networks.encoding import Encoded, encode
from thesis_cli.synthesis.training.corpora import EXAMPLES

Rows = npt.NDArray[np.int64]

SHARE, MOST = 0.1, 2000
"""Share of the programs that are held back for validation, and how many at most."""

FEW = 200
"""Programs of a corpus that is too small to hold any back."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """A corpus, split.

    Attributes
    ----------
    corpus : with at least `examples` examples of each program.
    train : rows of the programs to train on.
    validation : rows of the programs that are held back. If the corpus has too few programs for
        that, the first `examples` examples of all programs are held back instead.
    examples : M, that a network sees at a time.
    """

    corpus: Corpus
    train: Rows
    validation: Rows
    examples: int = EXAMPLES

    @classmethod
    def split(cls, corpus: Corpus, seed: int, examples: int = EXAMPLES) -> TrainingData:
        """Split the programs of a corpus that are not for testing.

        Raises
        ------
        InputError : it has no program to train on, or too few examples of each.
        """
        rows = np.flatnonzero(~corpus.test)
        found = corpus.numbers.shape[1]
        few = len(rows) < FEW
        if not len(rows):
            raise InputError("the corpus has no program to train on", "make one with --count 1000")
        if found < examples * (1 + few):
            problem = f"the corpus has {found} examples of each of {len(rows):,} programs"
            raise InputError(problem, f"make one with --examples {6 * examples}")
        if few:
            return cls(corpus, rows, rows, examples)
        rows = np.random.default_rng([seed, 0]).permutation(rows)
        held = min(MOST, int(SHARE * len(rows)))
        return cls(corpus, rows[held:], rows[:held], examples)

    @property
    def by_examples(self) -> bool:
        """Whether examples are held back instead of programs."""
        return self.train is self.validation

    def draw(self, rows: Rows, rng: np.random.Generator | None) -> Corpus:
        """Programs with `examples` examples each.

        Parameters
        ----------
        rng : draws the examples, not among those that are held back. Without it, the first ones of
            each program are taken, as for validation.
        """
        part = self.corpus.subset(rows)
        numbers = np.asarray(part.numbers)
        first = self.examples if self.by_examples else 0
        if rng is None:
            return replace(part, numbers=numbers[:, : self.examples])
        places = np.broadcast_to(np.arange(first, numbers.shape[1]), (len(rows), numbers.shape[1] - first))
        chosen = rng.permuted(places, axis=1)[:, : self.examples]
        return replace(part, numbers=np.take_along_axis(numbers, chosen[:, :, None, None], axis=1))

    def encoded(self, rows: Rows, rng: np.random.Generator | None) -> Encoded:
        """The same as an encoder takes it."""
        return encode(self.draw(rows, rng))


class Stream:
    """Programs to train on in random order, over and over.

    The order depends on the seed alone, so that training goes on from any step.
    """

    def __init__(self, rows: Rows, batch: int, seed: int) -> None:
        self._rows, self._batch, self._seed = rows, batch, seed
        self._epoch, self._order = -1, rows

    def rows(self, step: int) -> Rows:
        """The rows of a batch, steps counted from 0."""
        parts, start = [], step * self._batch
        end = start + self._batch
        while start < end:
            epoch, place = divmod(start, len(self._rows))
            if epoch != self._epoch:
                self._epoch, self._order = epoch, np.random.default_rng([self._seed, 1, epoch]).permutation(self._rows)
            parts.append(self._order[place : place + end - start])
            start += len(parts[-1])
        return np.concatenate(parts)

    def rng(self, step: int) -> np.random.Generator:
        """The generator of all other choices of a batch."""
        return np.random.default_rng([self._seed, 2, step])
