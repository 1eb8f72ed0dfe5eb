"""The network of Thesis section 5.5.3 that writes whole programs, line by line, in NumPy.

Its encoder is the feed-forward one. The pooled last layer is the first state of a GRU. Each step
reads the token of the line above and how many lines are left, and gives logits of the tokens of the
line. The 34 logits of the attributes, for searches that try operations in an order, come from the
same pooled layer.

A token is an operation with the variables that it takes, each named by its slot. Inputs have slots 0
to 2, numbers first as in a corpus. The result of the line above has slot 3, that of the line above it
slot 4, and so on: what a decoder learns of a line holds wherever the line stands.

Arrays of the weights, as `weights.Weights` has them: those of `feed_forward`, and

==================================  ===============  ===============================================
`token`                             (N + 1, D)       of the line above; row N is for the first line
`left`                              (T, D)           of the lines left, this one counted; added
`gru.weight_ih`, `gru.bias_ih`      (3 K, D)         of their sum
`gru.weight_hh`, `gru.bias_hh`      (3 K, K)         of the state
`line.weight`, `line.bias`          (N, K)           of the next state: logits of the N tokens
==================================  ===============  ===============================================

The sizes are those of `feed_forward`, and `token` (D) and `lines`, the lines T of the longest
program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools
from thesis_cli.synthesis.language.dsl import DEEPCODER, INT, LIST, MOST_INPUTS, OPERATIONS, Type
from thesis_cli.synthesis.language.program_codes import arguments_of, operation_of
from thesis_cli.synthesis.networks.feed_forward import FeedForward, encode
from thesis_cli.synthesis.networks.feed_forward import shapes_of as shapes_of_encoder
from thesis_cli.synthesis.networks.gru import GruCell, cell_shapes
from thesis_cli.synthesis.networks.weights import load

if TYPE_CHECKING:
    from thesis_cli.synthesis.corpus.corpus import Corpus
    from thesis_cli.synthesis.language.dsl import Semantics, Type
    from thesis_cli.synthesis.language.task import Task
    from thesis_cli.synthesis.networks.feed_forward import Encoded
    from thesis_cli.synthesis.networks.weights import Array, Weights

SHIPPED = "program"
"""Name of the weights that ship with the project."""


def shapes_of(units: int, token: int, lines: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays of the decoder; `units`, `token` and `lines` are K, D and T."""
    count = tokens(lines)
    return {
        "token": (count + 1, token),
        "left": (lines, token),
        **cell_shapes(token, units),
        "line.weight": (count, units),
        "line.bias": (count,),
    }


@dataclass(frozen=True, eq=False)
class ProgramNetwork:
    """The network, ready to run.

    Attributes
    ----------
    encoder : gives the pooled last layer, and logits of the attributes.
    semantics : semantics of the tasks that it takes.
    lines : T of the longest program that it writes.
    cell : cell of the decoder.
    of_token : part of the gates that the token of the line above adds, shape (N + 1, 3 K).
    of_left : part that the number of lines left adds, shape (T, 3 K), from one line.
    output : weights, shape (K, N), and biases of the tokens.
    """

    encoder: FeedForward
    semantics: Semantics
    lines: int
    cell: GruCell
    of_token: Array
    of_left: Array
    output: tuple[Array, Array]

    @classmethod
    def of(cls, weights: Weights) -> ProgramNetwork:
        """The network of weights of the kind `program`. Raises InputError if the arrays do not have
        the shapes that the sizes require."""
        arrays, semantics = weights.arrays, weights.semantics
        dimensions, layers, units, token, lines = (
            weights.size(name) for name in ("embedding", "layers", "units", "token", "lines")
        )
        rows = semantics.high - semantics.low + 2
        encoder = shapes_of_encoder(dimensions, layers, units, rows, semantics.longest)
        weights.check_arrays({**encoder, **shapes_of(units, token, lines)})
        cell = GruCell.of(weights)
        return cls(
            encoder=FeedForward.of(replace(weights, arrays={name: arrays[name] for name in encoder})),
            semantics=semantics,
            lines=lines,
            cell=cell,
            of_token=cell.gates(arrays["token"]),
            of_left=arrays["left"] @ cell.of_inputs[0],
            output=(arrays["line.weight"].T, arrays["line.bias"]),
        )

    def logits(self, encoded: Encoded) -> Array:
        """Logits of the attributes, as of `FeedForward`."""
        return self.encoder.logits(encoded)

    def start(self, task: Task) -> Array:
        """The first state for a task, shape (1, K). Raises InputError if the network does not take
        values of this range, lists of this length, or so many inputs."""
        return self.encoder.pooled(encode([task], self.semantics))

    def step(self, state: Array, above: Numbers, left: int) -> tuple[Array, Array]:
        """The next states, shape (W, K), and logits of the tokens of a line, shape (W, N).

        Parameters
        ----------
        state : shape (W, K).
        above : tokens of the lines above, N for the first line, shape (W,).
        left : lines left, this one counted.
        """
        state = self.cell.step(self.of_token[above] + self.of_left[left - 1], state)
        return state, state @ self.output[0] + self.output[1]

    def tokens(self, lines: Numbers, inputs: Sequence[Type], line: int) -> Numbers:
        """Tokens of lines of one place.

        Parameters
        ----------
        lines : operation and two variables, the same one twice if it takes one, shape (W, 3).
        inputs : types of the inputs.
        line : number of the place, from 0.
        """
        slot = slots(inputs, line)
        return np.asarray(table(self.lines)[lines[:, 0], slot[lines[:, 1]], slot[lines[:, 2]]])


@cache
def network(name_or_path: str = SHIPPED) -> ProgramNetwork:
    """The network of weights; it is read once. Raises InputError if they cannot be read, or are of
    another kind."""
    return ProgramNetwork.of(load(name_or_path, ("program",)))


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
    takes_two = np.array([len(operation.inputs) == 2 for operation in DEEPCODER.operations])
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


def typed(corpus: Corpus, lines: int) -> Bools:
    """Tokens that fit the variables above each line of the programs of a corpus, shape (P, T,
    tokens)."""
    ids, one, two = np.nonzero(table(lines) >= 0)
    first = np.array([_code(OPERATIONS[id].inputs[0]) for id in ids])
    second = np.array([_code(OPERATIONS[id].inputs[-1]) for id in ids])
    results = np.array([_code(operation.output) for operation in DEEPCODER.operations])
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
