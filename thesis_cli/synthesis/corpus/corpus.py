"""A corpus as arrays, as a training loop takes it."""

from __future__ import annotations

import hashlib
import mmap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.base.chained import Chained
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEEPCODER, INT, LIST, MOST_INPUTS, Semantics, Type, Value
from thesis_cli.synthesis.language.packing import NULL, Lanes
from thesis_cli.synthesis.language.program import Program
from thesis_cli.synthesis.language.program_codes import decode, operation_of
from thesis_cli.synthesis.language.task import Example, Task

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats
    from thesis_cli.synthesis.language.program_codes import Codes

Types = npt.NDArray[np.int8]

TYPES = (None, INT, LIST)
"""Types by their codes 0, 1 and 2."""

_ATTRIBUTES = np.array(
    [[a in o.attributes for a in range(len(ATTRIBUTES))] for o in DEEPCODER.operations] + [[False] * len(ATTRIBUTES)]
)


@dataclass(frozen=True)
class Labelled:
    """A task and the program that made its examples."""

    task: Task
    program: Program


@dataclass(frozen=True, eq=False)
class Corpus:
    """P programs of up to T lines, with M examples each, as arrays.

    Attributes
    ----------
    codes : lines of the programs (`program_codes`), -1 after the last, shape (P, T), int32.
    types : types of the inputs, then of the output, as places in `TYPES`, shape (P, 4), int8.
    numbers : values of the inputs, then of the output, padded with NULL = -32768 at the end, shape
        (P, M, 4, L), int16. A number is a list of length 1. Those of a corpus that was read from a
        folder are mapped into memory; they are indexed as an array, and only what is asked for is
        read.
    test : whether a program is for testing, shape (P,).
    semantics : range of numbers, length of lists, and rounding.
    made : numbers of programs by length: those `looked_at`, and the `distinct` ones among them.
    weights : weight of each program, shape (P,): shares by weight estimate those of programs drawn
        uniformly (`balance`). One number stands for equal weights.
    """

    codes: Codes
    types: Types
    numbers: Lanes | Chained
    test: Bools
    semantics: Semantics
    made: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    weights: Floats = field(default_factory=partial(np.ones, 1))

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", np.broadcast_to(self.weights, len(self)))

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of lines, shape (P,)."""
        return np.asarray(np.count_nonzero(self.codes >= 0, axis=1))

    @cached_property
    def attributes(self) -> Bools:
        """Whether a program uses each of the 34 functions and lambdas (`dsl.ATTRIBUTES`), shape (P,
        34)."""
        found: Bools = np.zeros((len(self), len(ATTRIBUTES)), dtype=np.bool_)
        for column in self.codes.T:
            found |= _ATTRIBUTES[operation_of(column)]
        return found

    @property
    def digest(self) -> str:
        """SHA-256 of the programs, in hexadecimal digits."""
        return hashlib.sha256(self.codes.tobytes() + self.types.tobytes()).hexdigest()

    @property
    def incidence(self) -> npt.NDArray[np.float64]:
        """Share of the programs to train on (or of all, if there are none) that uses each
        attribute, shape (34,)."""
        rows = ~self.test if not self.test.all() else self.test
        return np.asarray(self.attributes[rows].mean(axis=0))

    @property
    def inputs(self) -> Lanes:
        """Values of the inputs, shape (P, M, 3, L)."""
        return np.asarray(self.numbers[:, :, :MOST_INPUTS])

    @property
    def outputs(self) -> Lanes:
        """Values of the outputs, shape (P, M, L)."""
        return np.asarray(self.numbers[:, :, MOST_INPUTS])

    def program(self, row: int) -> Program:
        """The program of a row."""
        kinds = [kind for code in self.types[row, :MOST_INPUTS] if (kind := TYPES[code])]
        return decode(kinds, self.codes[row])

    def programs(self) -> list[Program]:
        """All programs, in order."""
        return [self.program(row) for row in range(len(self))]

    def task(self, row: int) -> Task:
        """The examples of a row, under the name `random-ROW`, rows counted from 1."""
        kinds = [TYPES[code] for code in self.types[row]]
        examples = []
        for rows in self.numbers[row].tolist():
            values = [_value(kind, numbers) for kind, numbers in zip(kinds, rows, strict=True) if kind]
            examples.append(Example(tuple(values[:-1]), values[-1]))
        return Task(f"random-{row + 1}", tuple(examples))

    def labelled(self) -> list[Labelled]:
        """All tasks with their programs, in order."""
        return [Labelled(self.task(row), self.program(row)) for row in range(len(self))]

    def subset(self, rows: Bools | npt.NDArray[np.int64] | slice) -> Corpus:
        """Some of the programs, in the order of `rows`."""
        return Corpus(
            self.codes[rows],
            self.types[rows],
            self.numbers[rows],
            self.test[rows],
            self.semantics,
            weights=self.weights[rows],
        )

    def shards(self) -> Iterator[Corpus]:
        """The corpus in parts, in order; each maps one array of examples, whose pages leave the
        memory of the process with the next part."""
        arrays = self.numbers.arrays if isinstance(self.numbers, Chained) else [self.numbers]
        start = 0
        for numbers in arrays:
            rows = slice(start, start + len(numbers))
            weights = self.weights[rows]
            yield Corpus(self.codes[rows], self.types[rows], numbers, self.test[rows], self.semantics, weights=weights)
            start += len(numbers)
            mapped: object = numbers.base
            if isinstance(mapped, mmap.mmap):
                mapped.madvise(mmap.MADV_DONTNEED)


def _value(kind: Type, numbers: list[int]) -> Value:

    return numbers[0] if kind is INT else tuple(x for x in numbers if x != NULL)


def join(parts: Sequence[Corpus], numbers: Chained | None = None) -> Corpus:
    """Corpora one after the other; programs of fewer lines than the longest have -1 after their
    last, and counts of programs made add up.

    Parameters
    ----------
    numbers : those of all; a copy if not given.
    """
    made: dict[str, Counter[int]] = {}
    for part in parts:
        for what, counts in part.made.items():
            made.setdefault(what, Counter()).update(counts)
    length = max(part.codes.shape[1] for part in parts)
    codes = [np.pad(part.codes, ((0, 0), (0, length - part.codes.shape[1])), constant_values=-1) for part in parts]
    return Corpus(
        np.concatenate(codes),
        np.concatenate([part.types for part in parts]),
        np.concatenate([part.numbers for part in parts]) if numbers is None else numbers,
        np.concatenate([part.test for part in parts]),
        parts[0].semantics,
        made,
        np.concatenate([part.weights for part in parts]),
    )
