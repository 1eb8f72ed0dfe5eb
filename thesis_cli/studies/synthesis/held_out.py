"""Make the held-out programs: `python -m thesis_cli.studies.synthesis.held_out`, a few seconds.

They are the test programs of each length and the programs that the thesis shows
(`synthesis.training.corpora`). No two of them do the same, on inputs in any order.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from thesis_cli.base.files import write_atomic
from thesis_cli.studies.synthesis.thesis_programs import SHOWN
from thesis_cli.synthesis.corpus.corpus import TYPES, Corpus, join
from thesis_cli.synthesis.corpus.corpus_maker import CorpusPlan, make_corpus
from thesis_cli.synthesis.language.dsl import DEFAULT, MOST_INPUTS
from thesis_cli.synthesis.language.packing import NULL
from thesis_cli.synthesis.language.program_codes import arrangements
from thesis_cli.synthesis.language.program_codes import encode as codes_of
from thesis_cli.synthesis.networks.feed_forward import encode
from thesis_cli.synthesis.training.corpora import EXAMPLES, HELD_OUT, TESTED


def shown() -> Corpus:
    """The programs of appendix D.1 and figure 5.1, with the examples of data/tasks."""

    parts = []
    for each in SHOWN:
        program = next(arrangements(each.program))
        types = np.zeros((1, MOST_INPUTS + 1), dtype=np.int8)
        types[0, : len(program.inputs)] = [TYPES.index(kind) for kind in program.inputs]
        types[0, MOST_INPUTS] = TYPES.index(program.output)
        places = encode([each.task()]).numbers
        numbers = np.where(places == 0, NULL, places + (DEFAULT.low - 1)).astype(np.int16)
        parts.append(Corpus(codes_of(program)[None], types, numbers, np.zeros(1, dtype=np.bool_), DEFAULT))
    return join(parts)


def made() -> Corpus:
    """All held-out programs: the test programs by length, then those that the thesis shows."""
    known = last = shown()
    for length, count in TESTED.items():
        spared = length == 1
        plan = CorpusPlan(length, 2**6 if spared else count, shorter=spared, examples=EXAMPLES)
        part = make_corpus(plan, np.random.default_rng([0, length]), known)
        if spared:
            part = part.subset(_spared(part)[:count])
        part.test[:] = True
        known = join([known, part])
    return join([known.subset(slice(len(last), None)), last])


def _spared(corpus: Corpus) -> npt.NDArray[np.int64]:
    """Programs without which each attribute is still used by another one."""
    uses = corpus.attributes.sum(axis=0)
    found = []
    for row, attributes in enumerate(corpus.attributes):
        if (uses - attributes)[attributes].min() > 0:
            uses = uses - attributes
            found.append(row)
    return np.array(found)


def main(path: Path = HELD_OUT) -> None:
    """Write the file."""
    corpus, file = made(), io.BytesIO()
    np.savez_compressed(
        file, codes=corpus.codes, types=corpus.types, numbers=np.asarray(corpus.numbers), shown=~corpus.test
    )
    write_atomic({path: file.getvalue()})


if __name__ == "__main__":
    main()
