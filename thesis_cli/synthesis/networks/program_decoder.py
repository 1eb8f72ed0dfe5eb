"""The network of Thesis section 5.5.3 that writes whole programs, line by line, in NumPy.

Its encoder is the feed-forward one. The pooled last layer is the first state of a GRU. Each step
reads the token of the line above (`program_tokens`) and how many lines are left, and gives logits of
the tokens of the line. The 34 logits of the attributes, for searches that try operations in an
order, come from the same pooled layer.

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

from thesis_cli.synthesis.networks.encoding import encode
from thesis_cli.synthesis.networks.feed_forward import FeedForward
from thesis_cli.synthesis.networks.feed_forward import shapes_of as shapes_of_encoder
from thesis_cli.synthesis.networks.program_tokens import Numbers, slots, table, tokens
from thesis_cli.synthesis.networks.recurrent import Cell
from thesis_cli.synthesis.networks.recurrent import shapes_of as shapes_of_gru
from thesis_cli.synthesis.networks.weights import load

if TYPE_CHECKING:
    from thesis_cli.synthesis.language.dsl import Semantics, Type
    from thesis_cli.synthesis.language.task import Task
    from thesis_cli.synthesis.networks.encoding import Encoded
    from thesis_cli.synthesis.networks.weights import Array, Weights

SHIPPED = "program"
"""Name of the weights that ship with the project."""


def shapes_of(units: int, token: int, lines: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays of the decoder; `units`, `token` and `lines` are K, D and T."""
    count = tokens(lines)
    return {
        "token": (count + 1, token),
        "left": (lines, token),
        **shapes_of_gru(token, units),
        "line.weight": (count, units),
        "line.bias": (count,),
    }


@dataclass(frozen=True, eq=False)
class ProgramNetwork:
    """The network, ready to run.

    Attributes
    ----------
    encoder : gives the pooled last layer, and logits of the attributes.
    semantics : of the tasks that it takes.
    lines : T of the longest program that it writes.
    cell : of the decoder.
    of_token : what the token of the line above adds to the gates, shape (N + 1, 3 K).
    of_left : what the number of lines left adds, shape (T, 3 K), from one line.
    output : weights, shape (K, N), and biases of the tokens.
    """

    encoder: FeedForward
    semantics: Semantics
    lines: int
    cell: Cell
    of_token: Array
    of_left: Array
    output: tuple[Array, Array]

    @classmethod
    def of(cls, weights: Weights) -> ProgramNetwork:
        """The network of weights of the kind `program`.

        Raises
        ------
        InputError : the arrays do not have the shapes that the sizes require.
        """
        arrays, semantics = weights.arrays, weights.semantics
        dimensions, layers, units, token, lines = (
            weights.size(name) for name in ("embedding", "layers", "units", "token", "lines")
        )
        rows = semantics.high - semantics.low + 2
        encoder = shapes_of_encoder(dimensions, layers, units, rows, semantics.longest)
        weights.check_arrays({**encoder, **shapes_of(units, token, lines)})
        cell = Cell.of(weights)
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
        """The first state for a task, shape (1, K).

        Raises
        ------
        InputError : the network does not take values of this range, lists of this length, or so
            many inputs.
        """
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
    """The network of weights; it is read once.

    Raises
    ------
    InputError : they cannot be read, or are of another kind.
    """
    return ProgramNetwork.of(load(name_or_path, ("program",)))
