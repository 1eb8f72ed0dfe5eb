"""The gated recurrent unit (GRU) that reads and writes sequences, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.synthesis.networks.feed_forward import sigmoid

if TYPE_CHECKING:
    from thesis_cli.synthesis.networks.weights import Array, Weights


def shapes_of(inputs: int, units: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays of a GRU, with the names that PyTorch gives them after `gru.`."""
    return {
        "gru.weight_ih": (3 * units, inputs),
        "gru.weight_hh": (3 * units, units),
        "gru.bias_ih": (3 * units,),
        "gru.bias_hh": (3 * units,),
    }


@dataclass(frozen=True, eq=False)
class Cell:
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
    def of(cls, weights: Weights) -> Cell:
        """The arrays of weights that `shapes_of` names."""
        pairs = [(f"gru.weight_{which}", f"gru.bias_{which}") for which in ("ih", "hh")]
        inputs, state = ((np.ascontiguousarray(weights.arrays[w].T), weights.arrays[b]) for w, b in pairs)
        return cls(inputs, state)

    def gates(self, inputs: Array) -> Array:
        """What inputs of shape (..., D) add to the gates, shape (..., 3 K)."""
        found: Array = inputs @ self.of_inputs[0] + self.of_inputs[1]
        return found

    def step(self, gates: Array, state: Array) -> Array:
        """The next states, shape (N, K), from what the inputs add to the gates, and the states."""
        units = state.shape[1]
        own = state @ self.of_state[0] + self.of_state[1]
        both = sigmoid(gates[:, : 2 * units] + own[:, : 2 * units])
        reset, update = both[:, :units], both[:, units:]
        new = np.tanh(gates[:, 2 * units :] + reset * own[:, 2 * units :])
        found: Array = new + update * (state - new)
        return found
