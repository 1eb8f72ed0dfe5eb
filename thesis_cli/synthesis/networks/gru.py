"""The network of Thesis section 5.5.3 with a recurrent encoder, and the gated recurrent unit (GRU), in
NumPy.

A GRU reads an example place by place: at step k, the k-th numbers of all inputs and of the output,
embedded as in appendix D.3, and the types. It ends with the longest list. Its last state takes the
place of the last hidden layer: the mean over the examples of a task gives the 34 logits.

Arrays of the weights, as `weights.Weights` has them:

====================================  ===============  =============================================
`embedding`                           (R, E)           rows as in `Encoded.numbers`
`gru.weight_ih`, `gru.bias_ih`        (3 K, 8 + 4 E)   of the types, then of the embedded numbers
`gru.weight_hh`, `gru.bias_hh`        (3 K, K)         of the state
`attributes.weight`                   (34, K)          of the pooled last states
`attributes.bias`                     (34,)
====================================  ===============  =============================================

The sizes are named `embedding` (E) and `units` (K).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.networks.feed_forward import ROWS, TYPE_BITS, VALUES, sigmoid

if TYPE_CHECKING:
    from thesis_cli.synthesis.networks.feed_forward import Encoded
    from thesis_cli.synthesis.networks.weights import Array, Weights


def shapes_of(embedding: int, units: int, rows: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays.

    Parameters
    ----------
    embedding, units : E, K.
    rows : rows R of the embedding.
    """
    return {
        "embedding": (rows, embedding),
        **cell_shapes(VALUES * (TYPE_BITS + embedding), units),
        "attributes.weight": (len(ATTRIBUTES), units),
        "attributes.bias": (len(ATTRIBUTES),),
    }


@dataclass(frozen=True, eq=False)
class Recurrent:
    """The network, ready to run.

    Attributes
    ----------
    embedding : shape (R, E).
    longest : length L of lists.
    cell : cell of the encoder.
    output : weights, shape (K, 34), and biases of the logits.
    """

    embedding: Array
    longest: int
    cell: GruCell
    output: tuple[Array, Array]

    @classmethod
    def of(cls, weights: Weights) -> Recurrent:
        """The network of weights of the kind `gru`. Raises InputError if the arrays do not have the
        shapes that the sizes require."""
        semantics, arrays = weights.semantics, weights.arrays
        dimensions, units = weights.size("embedding"), weights.size("units")
        weights.check_arrays(shapes_of(dimensions, units, semantics.high - semantics.low + 2))
        output = arrays["attributes.weight"].T, arrays["attributes.bias"]
        return cls(arrays["embedding"], semantics.longest, GruCell.of(weights), output)

    def logits(self, encoded: Encoded) -> Array:
        """Logits of the attributes of each task, shape (B, 34), from the examples that are present.
        Raises InputError if the examples are encoded for another range or length of lists."""
        encoded.check(len(self.embedding), self.longest)
        pooled = np.zeros((len(encoded), len(self.cell.of_state[0])), dtype=np.float32)
        tasks, examples = np.nonzero(encoded.present)
        for start in range(0, len(tasks), ROWS):
            part = slice(start, start + ROWS)
            types = encoded.types[tasks[part]].reshape(-1, VALUES * TYPE_BITS)
            np.add.at(pooled, tasks[part], self._last_state(types, encoded.numbers[tasks[part], examples[part]]))
        pooled /= np.maximum(1, encoded.present.sum(axis=1, keepdims=True, dtype=np.float32))
        return np.asarray(pooled @ self.output[0] + self.output[1])

    def _last_state(self, types: Array, numbers: npt.NDArray[np.int32]) -> Array:
        """The last states for examples: types of shape (N, 8), numbers of shape (N, 4, L) -> (N,
        K)."""
        weights, bias = self.cell.of_inputs
        of_types = types @ weights[: VALUES * TYPE_BITS] + bias
        lengths = lengths_of(numbers)
        state = np.zeros((len(numbers), len(self.cell.of_state[0])), dtype=np.float32)
        for place in range(int(lengths.max(initial=0))):
            reading = np.flatnonzero(lengths > place)
            embedded = self.embedding[numbers[reading, :, place]].reshape(len(reading), -1)
            gates = of_types[reading] + embedded @ weights[VALUES * TYPE_BITS :]
            state[reading] = self.cell.step(gates, state[reading])
        return state


def lengths_of(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Steps in which the encoder reads examples of shape (N, 4, L): as many as the longest value has
    numbers, at least one, shape (N,)."""
    there = (numbers != 0).any(axis=1)
    return np.where(there.any(axis=1), there.shape[1] - np.argmax(there[:, ::-1], axis=1), 1)


def cell_shapes(inputs: int, units: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays of a GRU, with the names that PyTorch gives them after `gru.`."""
    return {
        "gru.weight_ih": (3 * units, inputs),
        "gru.weight_hh": (3 * units, units),
        "gru.bias_ih": (3 * units,),
        "gru.bias_hh": (3 * units,),
    }


@dataclass(frozen=True, eq=False)
class GruCell:
    """One step of a GRU with D inputs and K units, as PyTorch defines it. The three gates are reset,
    update and new state.

    Attributes
    ----------
    of_inputs : weights, shape (D, 3 K), and bias, shape (3 K,).
    of_state : the same, shapes (K, 3 K) and (3 K,).
    """

    of_inputs: tuple[Array, Array]
    of_state: tuple[Array, Array]

    @classmethod
    def of(cls, weights: Weights) -> GruCell:
        """The arrays of weights that `cell_shapes` names."""
        pairs = [(f"gru.weight_{which}", f"gru.bias_{which}") for which in ("ih", "hh")]
        inputs, state = ((np.ascontiguousarray(weights.arrays[w].T), weights.arrays[b]) for w, b in pairs)
        return cls(inputs, state)

    def gates(self, inputs: Array) -> Array:
        """Part of the gates that inputs of shape (..., D) add, shape (..., 3 K)."""
        return np.asarray(inputs @ self.of_inputs[0] + self.of_inputs[1])

    def step(self, gates: Array, state: Array) -> Array:
        """The next states, shape (N, K), from what the inputs add to the gates, and the states."""
        units = state.shape[1]
        own = state @ self.of_state[0] + self.of_state[1]
        both = sigmoid(gates[:, : 2 * units] + own[:, : 2 * units])
        reset, update = both[:, :units], both[:, units:]
        new = np.tanh(gates[:, 2 * units :] + reset * own[:, 2 * units :])
        return np.asarray(new + update * (state - new))
