"""The network of Thesis appendix D.3 in NumPy: examples in, a logit of each function and lambda out.

The values of an example are padded to length L, and each of its 4 L places is embedded in E
dimensions. The one-hot types and the embeddings go through H layers of K sigmoid units. The mean of
the last layer over the examples of a task gives, by a linear map, its C = 34 logits.

Arrays of the weights, as `weights.Weights` has them:

========================  ================  ====================================================
`embedding`               (R, E)            rows as in `Encoded.numbers`; row 0 is that of NULL
`hidden.0.weight`         (K, 8 + 4 L E)    of the types, as `Encoded.types` has them, then of the
                                            places: those of the inputs, then of the output
`hidden.0.bias`           (K,)
`hidden.h.weight`, bias   (K, K), (K,)      for h = 1 ... H - 1
`attributes.weight`       (34, K)           of the pooled last layer
`attributes.bias`         (34,)
========================  ================  ====================================================

The sizes are named `embedding` (E), `layers` (H) and `units` (K).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.language.dsl import ATTRIBUTES, MOST_INPUTS

if TYPE_CHECKING:
    from thesis_cli.synthesis.networks.encoding import Encoded
    from thesis_cli.synthesis.networks.weights import Array, Weights

VALUES = MOST_INPUTS + 1
TYPE_BITS = 2

ROWS = 2**12
"""Examples that go through the network at a time."""


def shapes_of(embedding: int, layers: int, units: int, rows: int, longest: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays.

    Parameters
    ----------
    embedding, layers, units : E, H, K.
    rows : rows R of the embedding.
    longest : length L of lists.
    """
    first = VALUES * (TYPE_BITS + longest * embedding)
    found: dict[str, tuple[int, ...]] = {"embedding": (rows, embedding)}
    for layer in range(layers):
        found[f"hidden.{layer}.weight"] = (units, units if layer else first)
        found[f"hidden.{layer}.bias"] = (units,)
    return {**found, "attributes.weight": (len(ATTRIBUTES), units), "attributes.bias": (len(ATTRIBUTES),)}


@dataclass(frozen=True, eq=False)
class FeedForward:
    """The network, ready to run.

    Attributes
    ----------
    embedding : shape (R, E).
    of_types : weights of the types, shape (8, K).
    of_places : weights of the embedded numbers, shape (4, L E, K).
    of_null : sum over the places of a value from the n-th on that they add to the first layer if
        they are NULL, shape (4, L + 1, K).
    bias : bias of the first layer, shape (K,).
    hidden : weights, shape (K, K), and biases of the other layers.
    output : weights, shape (K, 34), and biases of the logits.
    """

    embedding: Array
    of_types: Array
    of_places: Array
    of_null: Array
    bias: Array
    hidden: Sequence[tuple[Array, Array]]
    output: tuple[Array, Array]

    @classmethod
    def of(cls, weights: Weights) -> FeedForward:
        """The network of weights of the kind `feed-forward`. Raises InputError if the arrays do not
        have the shapes that the sizes require."""
        semantics = weights.semantics
        dimensions, layers, units = (weights.size(name) for name in ("embedding", "layers", "units"))
        rows = semantics.high - semantics.low + 2
        weights.check_arrays(shapes_of(dimensions, layers, units, rows, semantics.longest))
        arrays = weights.arrays
        matrices = {name: np.ascontiguousarray(array.T) for name, array in arrays.items() if name.endswith(".weight")}
        first = matrices["hidden.0.weight"]
        of_places = first[VALUES * TYPE_BITS :].reshape(VALUES, semantics.longest, dimensions, units)
        of_null = np.zeros((VALUES, semantics.longest + 1, units), dtype=np.float32)
        of_null[:, :-1] = np.einsum("e,vpek->vpk", arrays["embedding"][0], of_places)
        return cls(
            embedding=arrays["embedding"],
            of_types=first[: VALUES * TYPE_BITS],
            of_places=of_places.reshape(VALUES, -1, units),
            of_null=np.cumsum(of_null[:, ::-1], axis=1)[:, ::-1],
            bias=arrays["hidden.0.bias"],
            hidden=[(matrices[f"hidden.{h}.weight"], arrays[f"hidden.{h}.bias"]) for h in range(1, layers)],
            output=(matrices["attributes.weight"], arrays["attributes.bias"]),
        )

    def logits(self, encoded: Encoded) -> Array:
        """Logits of the attributes of each task, shape (B, 34), from the examples that are present;
        raises as `pooled`."""
        return self.decoded(self.pooled(encoded))

    def decoded(self, pooled: Array) -> Array:
        """Logits of the attributes, shape (B, 34), from the pooled last layer."""
        return np.asarray(pooled @ self.output[0] + self.output[1])

    def pooled(self, encoded: Encoded) -> Array:
        """The mean of the last layer over the examples that are present, shape (B, K). Raises
        InputError if the examples are encoded for another range or length of lists."""
        encoded.check(len(self.embedding), self.of_null.shape[1] - 1)
        pooled = np.zeros((len(encoded), len(self.bias)), dtype=np.float32)
        types = encoded.types.reshape(len(encoded), -1)
        codes = types @ np.float32(2) ** np.arange(types.shape[1])
        for code in np.unique(codes):  # a value that is a number, or is not there, has few places
            bits = types[np.argmax(codes == code)]
            tasks, examples = np.nonzero(encoded.present & (codes == code)[:, None])
            for start in range(0, len(tasks), ROWS):
                part = slice(start, start + ROWS)
                numbers = encoded.numbers[tasks[part], examples[part]]
                np.add.at(pooled, tasks[part], self._last_layer(bits, numbers))
        pooled /= np.maximum(1, encoded.present.sum(axis=1, keepdims=True, dtype=np.float32))
        return pooled

    def _last_layer(self, types: Array, numbers: npt.NDArray[np.int32]) -> Array:
        """The last layer for examples of the same types: numbers of shape (N, 4, L) -> (N, K)."""
        total = np.tile(self.bias + types @ self.of_types, (len(numbers), 1))
        for value in range(VALUES):
            used = int((np.flatnonzero(numbers[:, value].any(axis=0)) + 1).max(initial=0))
            total += self.of_null[value, used]
            embedded = self.embedding[numbers[:, value, :used]].reshape(len(numbers), -1)
            total += embedded @ self.of_places[value, : embedded.shape[1]]
        layer = sigmoid(total)
        for weight, bias in self.hidden:
            layer = sigmoid(layer @ weight + bias)
        return layer


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)); of a large -x, exp would overflow."""
    found: Array = np.tanh(x * np.float32(0.5))
    found *= 0.5
    found += 0.5
    return found
