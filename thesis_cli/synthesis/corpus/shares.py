"""Use of functions and behaviour of the programs of a corpus, as shares of the corpus or, by
weight, of a uniform one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.synthesis.corpus.corpus import TYPES, Corpus
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEEPCODER, FUNCTIONS, INT, LIST, MOST_INPUTS
from thesis_cli.synthesis.language.packing import NULL
from thesis_cli.synthesis.language.program_codes import arguments_of, operation_of

Shares = Mapping[str, Mapping[str, float]]

_TWO = np.array([o.function.inputs == (LIST, LIST) for o in DEEPCODER.operations] + [False])
"""Whether an operation takes two lists; the last place stands for no line."""


def properties_of(corpus: Corpus) -> dict[str, dict[str, Bools]]:
    """Properties of programs by kinds: whether each program has them, arrays of shape (P,).

    Returns
    -------
    `function`, `lambda` : use it.
    `output` : have an output of this type.
    `length` : have so many lines.
    `examples` : have an example whose output is an empty list, or two with the same output.
    `lines` : have a line that takes the same list twice, such as `ZIPWITH (+) a a`.
    """
    uses = dict(zip(ATTRIBUTES, corpus.attributes.T, strict=True))
    functions = {function.name for function in FUNCTIONS[: DEEPCODER.functions]}
    empty, repeated = _degenerate(corpus)
    x, y = arguments_of(corpus.codes)
    return {
        "function": {name: found for name, found in uses.items() if name in functions},
        "lambda": {name: found for name, found in uses.items() if name not in functions},
        "output": {str(kind): corpus.types[:, MOST_INPUTS] == TYPES.index(kind) for kind in (INT, LIST)},
        "length": {f"{length} lines": corpus.lengths == length for length in np.unique(corpus.lengths).tolist()},
        "examples": {"empty output": empty, "repeated output": repeated},
        "lines": {"equal arguments": (_TWO[operation_of(corpus.codes)] & (x == y)).any(axis=1)},
    }


def _degenerate(corpus: Corpus) -> tuple[Bools, Bools]:
    """Whether programs have an empty output, and a repeated one, shape (P,) each."""

    empty, repeated = [np.zeros(0, dtype=np.bool_)], [np.zeros(0, dtype=np.bool_)]
    for shard in corpus.shards():
        outputs = shard.outputs
        empty.append((outputs[:, :, 0] == NULL).any(axis=1))
        same = np.zeros(len(shard), dtype=np.bool_)
        for m in range(outputs.shape[1]):
            same |= (outputs[:, :m] == outputs[:, m, None]).all(axis=2).any(axis=1)
        repeated.append(same)
    return np.concatenate(empty), np.concatenate(repeated)


def shares_of(corpus: Corpus) -> tuple[Shares, Shares]:
    """Shares of the programs that have each property (`properties_of`), in the corpus and by
    weight."""
    found = properties_of(corpus)
    plain, weighted = (
        {kind: {name: float(w @ rows) for name, rows in names.items()} for kind, names in found.items()}
        for w in (np.full(len(corpus), 1 / len(corpus)), corpus.weights / corpus.weights.sum())
    )
    return plain, weighted


def effective_size(weights: Floats) -> float:
    """Number of uniform programs that estimate a mean as well as weighted ones: (sum w)^2 / sum
    w^2."""
    return float(weights.sum() ** 2 / (weights**2).sum())
