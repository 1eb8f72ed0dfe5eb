"""Programs as tokens, one for each line: an operation with the variables that it takes (Thesis
section 5.5.3).

A token names a variable by its slot. Inputs have slots 0 to 2, numbers first as in a corpus. The
result of the line above has slot 3, that of the line above it slot 4, and so on: what a decoder
learns of a line holds wherever the line stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.language.dsl import INT, LIST, MOST_INPUTS, OPERATIONS, Type
from thesis_cli.synthesis.language.program_codes import arguments_of, operation_of

if TYPE_CHECKING:
    from thesis_cli.synthesis.corpus.corpus import Corpus
    from thesis_cli.synthesis.language.lanes import Flags

Numbers = npt.NDArray[np.int64]


@cache
def table(lines: int) -> Numbers:
    """Tokens by operation and the slots of its two variables, the same one twice if it takes one; -1
    where there is none.

    Parameters
    ----------
    lines : T of the longest program.

    Returns
    -------
    Shape (38, 2 + T, 2 + T); tokens are numbered from 0.
    """
    slots = MOST_INPUTS + lines - 1
    takes_two = np.array([len(operation.inputs) == 2 for operation in OPERATIONS])
    there = takes_two[:, None, None] | np.eye(slots, dtype=np.bool_)
    found = np.where(there, np.cumsum(there).reshape(there.shape) - 1, -1)
    found.flags.writeable = False
    return found


def tokens(lines: int) -> int:
    """Number of tokens for programs of up to `lines` lines."""
    return int(table(lines).max()) + 1


def slots(inputs: Sequence[Type], line: int) -> Numbers:
    """Slots of the variables above a line, shape (inputs + `line`,).

    Parameters
    ----------
    inputs : their types, in any order.
    line : its number, from 0.
    """
    order = sorted(range(len(inputs)), key=lambda i: inputs[i] is not INT)
    found = np.empty(len(inputs) + line, dtype=np.int64)
    found[order] = np.arange(len(inputs))
    found[len(inputs) :] = MOST_INPUTS + line - 1 - np.arange(line)
    return found


def tokens_of(corpus: Corpus, lines: int) -> Numbers:
    """Tokens of the programs of a corpus, -1 after their last line, shape (P, T), for T = `lines`, at
    least the lines of the longest program."""
    codes = np.maximum(corpus.codes[:, :lines], 0)
    inputs = np.count_nonzero(corpus.types[:, :MOST_INPUTS], axis=1)[:, None]
    last = MOST_INPUTS + np.arange(codes.shape[1]) - 1
    one, two = (np.where(v < inputs, v, last - (v - inputs)) for v in arguments_of(codes))
    return np.where(corpus.codes[:, :lines] >= 0, table(lines)[operation_of(codes), one, two], -1)


def typed(corpus: Corpus, lines: int) -> Flags:
    """Which tokens fit the variables above each line of the programs of a corpus, shape (P, T,
    tokens)."""
    ids, one, two = np.nonzero(table(lines) >= 0)
    first = np.array([_code(OPERATIONS[id].inputs[0]) for id in ids])
    second = np.array([_code(OPERATIONS[id].inputs[-1]) for id in ids])
    results = np.array([_code(operation.output) for operation in OPERATIONS])
    made = results[operation_of(np.maximum(corpus.codes[:, :lines], 0))]
    found = np.empty((*made.shape, len(ids)), dtype=np.bool_)
    kinds = np.zeros((len(corpus), MOST_INPUTS + lines - 1), dtype=np.int64)
    kinds[:, :MOST_INPUTS] = corpus.types[:, :MOST_INPUTS]
    for line in range(made.shape[1]):
        kinds[:, MOST_INPUTS : MOST_INPUTS + line] = made[:, :line][:, ::-1]
        found[:, line] = (kinds[:, one] == first) & (kinds[:, two] == second)
    return found


def _code(kind: Type) -> int:
    """The type as a corpus has it."""
    return 1 + (kind is LIST)
