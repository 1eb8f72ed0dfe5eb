"""Examples as the arrays that an encoder takes, and the network of Thesis appendix D.3 on them, in NumPy: a
logit of each function and lambda out (section 5.4.3).

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

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus.corpus import TYPES, Corpus, Types
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEFAULT, INT, MOST_INPUTS, Semantics
from thesis_cli.synthesis.language.packing import NULL
from thesis_cli.synthesis.language.task import Task

if TYPE_CHECKING:
    from thesis_cli.synthesis.networks.weights import Array, Weights

_ONE_HOT = np.array([[0, 0], [1, 0], [0, 1]], dtype=np.float32)
"""Types by their codes: no value, a number, a list."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """B sets of up to M examples.

    Attributes
    ----------
    types : one-hot types (number, list) of the three inputs, then of the output; all 0 for no input.
        Shape (B, 4, 2), float32.
    numbers : values of the inputs, then of the output, as rows of an embedding: 0 for NULL, with
        which values are padded at their end to length L, and x - low + 1 for a number x. Shape (B,
        M, 4, L), int32.
    present : which examples there are, shape (B, M); a task may have fewer than M.
    size : rows of the embedding: 513 for the range of the thesis.
    attributes : which functions and lambdas the program uses, shape (B, 34); None for tasks, whose
        programs are not known.
    weights : weight of each program, shape (B,); 1 for tasks.
    """

    types: npt.NDArray[np.float32]
    numbers: npt.NDArray[np.int32]
    present: Bools
    size: int
    attributes: Bools | None
    weights: Floats

    def __len__(self) -> int:
        return len(self.types)

    def check(self, size: int, longest: int) -> None:
        """Refuse examples that are encoded for other rows of the embedding or another length of lists."""
        if self.size != size or self.numbers.shape[3] != longest:
            problem = f"the examples have {self.size:,} numbers in lists of {self.numbers.shape[3]}"
            raise InputError(problem, f"the network takes {size:,} numbers in lists of {longest}")


def encode(source: Corpus | Sequence[Task], semantics: Semantics | None = None, examples: int | None = None) -> Encoded:
    """Examples as an encoder takes them. The same examples make the same arrays, from wherever they
    come. Raises InputError if a value of a task is out of range, or too long, or there are too many
    inputs; a corpus was made with other semantics.

    Parameters
    ----------
    source : a corpus, such as `corpus.subset(rows)` of a batch, or tasks. The inputs of a task are
        arranged as those of a corpus: numbers first.
    semantics : gives the range of numbers and the length L of lists; by default that of the corpus,
        and of the thesis for tasks.
    examples : M; the first M examples count. By default, all of the corpus, or of the task that has
        most.
    """
    if isinstance(source, Corpus):
        semantics = semantics or source.semantics
        if (semantics.low, semantics.high, semantics.longest) != (
            source.semantics.low,
            source.semantics.high,
            source.semantics.longest,
        ):
            raise InputError("the corpus was made with another range or length of lists", "give its semantics")
        types, numbers = source.types, np.asarray(source.numbers[:])
        places = np.where(numbers == NULL, 0, numbers - np.int32(semantics.low - 1)).astype(np.int32, copy=False)
        present = np.ones(numbers.shape[:2], dtype=np.bool_)
        attributes, weights = source.attributes, np.array(source.weights)
    else:
        semantics = semantics or DEFAULT
        types, places, present = _arrays(source, semantics)
        attributes, weights = None, np.ones(len(types))
    if examples is not None:
        lacking = max(0, examples - places.shape[1])
        places = np.pad(places[:, :examples], ((0, 0), (0, lacking), (0, 0), (0, 0)))
        present = np.pad(present[:, :examples], ((0, 0), (0, lacking)))
    size = semantics.high - semantics.low + 2
    return Encoded(_ONE_HOT[types], places, present, size, attributes, weights)


def _arrays(tasks: Sequence[Task], semantics: Semantics) -> tuple[Types, npt.NDArray[np.int32], Bools]:
    """Types of tasks as a corpus has them, rows of the embedding, and which examples there are."""
    most = max((len(task.examples) for task in tasks), default=0)
    types = np.zeros((len(tasks), MOST_INPUTS + 1), dtype=np.int8)
    present = np.zeros((len(tasks), most), dtype=np.bool_)
    rows: list[tuple[int, int, int, int]] = []  # task, example, value, length
    flat: list[int] = []
    for b, task in enumerate(tasks):
        inputs = task.inputs
        if len(inputs) > MOST_INPUTS:
            raise InputError(f"task {task.name} has {len(inputs)} inputs", f"it may have at most {MOST_INPUTS}")
        order = sorted(range(len(inputs)), key=lambda i: inputs[i] is not INT)
        types[b, : len(order)] = [TYPES.index(inputs[i]) for i in order]
        types[b, MOST_INPUTS] = TYPES.index(task.output)
        present[b, : len(task.examples)] = True
        for m, example in enumerate(task.examples):
            values = [(v, example.inputs[i]) for v, i in enumerate(order)]
            for v, value in [*values, (MOST_INPUTS, example.output)]:
                row = (value,) if isinstance(value, int) else value
                if len(row) > semantics.longest or (
                    row and not semantics.low <= min(row) <= max(row) <= semantics.high
                ):
                    allowed = f"up to {semantics.longest} numbers from {semantics.low} to {semantics.high}"
                    raise InputError(f"task {task.name} has the value {value}", f"it may have {allowed}")
                rows.append((b, m, v, len(row)))
                flat += row
    places = np.zeros((len(tasks), most, MOST_INPUTS + 1, semantics.longest), dtype=np.int32)
    at = np.array(rows, dtype=np.intp).reshape(-1, 4)
    there = np.arange(semantics.longest) < at[:, 3:]
    padded = np.zeros(there.shape, dtype=np.int32)
    padded[there] = np.array(flat, dtype=np.int32) - np.int32(semantics.low - 1)
    places[at[:, 0], at[:, 1], at[:, 2]] = padded
    return types, places, present


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
