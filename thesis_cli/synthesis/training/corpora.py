"""The corpora of the shipped weights and of the experiments: programs to train on, and programs that
are held out.

`held_out(3)` reads the 500 programs of 3 lines that experiments test on, in milliseconds.
`training_corpus(3)` makes the programs that networks train on: the same ones every time, in seconds
for up to 3 lines and in about a minute for 4. No program to train on, of any length, does what a
held-out one does, on inputs in any order; held out are the test programs of all lengths, and the
programs of appendix D.1 and figure 5.1. No two programs of either do the same. Nothing here needs
PyTorch.

The held-out programs stand in `held_out.npz`, with their examples. `python -m
thesis_cli.studies.synthesis.held_out` makes the file.

Source: Thesis sections 5.4.2, 5.5.1 and 5.5.2.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from thesis_cli.base.npy import arrays_of
from thesis_cli.base.progress import Tick
from thesis_cli.synthesis.corpus.behaviours import ENUMERATED
from thesis_cli.synthesis.corpus.corpus import Corpus
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.language.dsl import DEFAULT

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
    examples : of each program; by default as in `TRAINED`. 160 bytes of memory each, and twice that
        while they are made.
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
