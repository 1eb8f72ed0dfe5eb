"""Programs to train on, held-out programs, and how a trainer splits and draws from them (Thesis sections
5.4.2, 5.5.1 and 5.5.2).

`held_out(3)` reads the 500 programs of 3 lines that experiments test on, in milliseconds, from
`held_out.npz`, which `python -m thesis_cli.studies.synthesis.held_out` makes. `training_corpus(3)`
makes the programs that networks train on: the same ones every time, in seconds for up to 3 lines and
in about a minute for 4. No program to train on does what a held-out one does, on inputs in any order;
held out are the test programs of all lengths, and the programs of appendix D.1 and figure 5.1. No two
programs of either do the same. Nothing here needs PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from thesis_cli.base.errors import InputError
from thesis_cli.base.npy import arrays_of
from thesis_cli.base.progress import Tick
from thesis_cli.synthesis.corpus.behaviours import ENUMERATED
from thesis_cli.synthesis.corpus.corpus import Corpus
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.language.dsl import DEFAULT
from thesis_cli.synthesis.networks.feed_forward import Encoded, encode

HELD_OUT = Path(__file__).with_name("held_out.npz")

TESTED = {1: 6, 2: 200, 3: 500, 4: 500, 5: 500, 6: 200, 7: 200, 8: 200, 10: 100}
"""Number of test programs by length T. There are only 39 programs of 1 line and 1,030 of 2. Those of
1 line are such that each function and lambda is left in a program to train on."""

EXAMPLES = 5
"""Examples M of each held-out program (section 5.5.1)."""

TRAINED = {1: (39, 2_000), 2: (1_100, 500), 3: (37_000, 30), 4: (300_000, 16)}
"""Programs to train on, or all that there are if these are fewer, and examples of each, by length. A
batch takes `EXAMPLES` of them, drawn anew each time. Longer programs are as those of 4 lines."""


def held_out(length: int | None = None, count: int | None = None) -> Corpus:
    """Held-out programs, with `EXAMPLES` examples each.

    Parameters
    ----------
    length : T, one of `TESTED`, of the test programs. By default, all held-out programs are given:
        the test programs by length, then, with `test` False, the ten that the thesis shows.
    count : how many; the first ones count. By default, all. They are in random order.
    """
    found = _held_out()
    if length is not None:
        found = found.subset(np.flatnonzero(found.test & (found.lengths == length)))
    return found.subset(slice(count))


@cache
def _held_out() -> Corpus:
    with open(HELD_OUT, "rb") as file:
        found = arrays_of(file, ["codes", "types", "numbers", "shown"], HELD_OUT)
    return Corpus(found["codes"], found["types"], found["numbers"], ~found["shown"], DEFAULT)


def training_corpus(
    length: int,
    count: int | None = None,
    examples: int | None = None,
    jobs: int = 1,
    progress: Tick = lambda done: None,
) -> Corpus:
    """Programs to train on; the same ones every time.

    Parameters
    ----------
    length : T, lines of each program, from 1 to 10.
    count : programs; by default as in `TRAINED`. If there are fewer of up to 3 lines, all of them.
    examples : examples of each program; by default as in `TRAINED`. Each takes 160 bytes of memory,
        twice that while it is made.
    jobs : threads; the corpus does not depend on it.
    progress : called with the number of programs just made.

    Returns
    -------
    Corpus whose programs are in random order. All have `test` False: trainers take their validation
    programs from it.
    """
    most, many = TRAINED[min(length, max(TRAINED))]
    few = length <= ENUMERATED  # of which there may be fewer, if shorter ones are made as well
    plan = CorpusPlan(length, count or most, shorter=few, examples=examples or many)
    made = make_corpus(plan, np.random.default_rng([1, length]), held_out(), jobs, progress)
    return made.subset(made.lengths == length) if few else made


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
    corpus : corpus with at least `examples` examples of each program.
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
        """Split the programs of a corpus that are not for testing. Raises InputError if it has no
        program to train on, or too few examples of each."""
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
