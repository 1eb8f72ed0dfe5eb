"""Examples as the arrays that an encoder takes: of programs of a corpus, and of tasks (Thesis
section 5.4.3 and appendix D.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.corpus.corpus import TYPES, Corpus, Types
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, MOST_INPUTS, Semantics
from thesis_cli.synthesis.language.packing import NULL
from thesis_cli.synthesis.language.task import Task

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
