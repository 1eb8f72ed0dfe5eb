"""Results of programs on whole numbers of any size, as keys that do not depend on the order of
inputs of one type.

Two programs that do the same on all inputs have the same keys, whatever the range of the language
and the width of compiled numbers. The reverse holds as far as probes can show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from thesis_cli.synthesis.language.dsl import Semantics, Value
from thesis_cli.synthesis.language.packing import bounds_of
from thesis_cli.synthesis.language.program import run
from thesis_cli.synthesis.language.program_codes import MOST_LINES, Signature, decode

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Words
    from thesis_cli.synthesis.corpus.exact_kernels import ExactRoom
    from thesis_cli.synthesis.language.program_codes import Codes

_SLICE = 2**11
"""Programs whose hashes are in memory at once."""

_MASK = 2**64 - 1
_PRIME = 2**64 - 59


class ExactBehaviours:
    """Keys of programs on inputs of given types.

    Parameters
    ----------
    inputs : their types.
    semantics : range of numbers, length of lists, and rounding.
    columns : values of each input on M probes.
    """

    def __init__(self, inputs: Signature, semantics: Semantics, columns: Sequence[Sequence[Value]]) -> None:
        self._inputs, self._semantics = inputs, semantics
        count = len(inputs)
        orders = [o for o in permutations(range(count)) if all(inputs[o[i]] == inputs[i] for i in range(count))]
        rows = list(zip(*columns, strict=True))
        self._probes = [[[row[i] for i in order] for row in rows] for order in orders]
        self._weights = np.random.default_rng(2).integers(2**64, size=len(rows), dtype=np.uint64) | np.uint64(1)

    def keys(self, codes: Codes) -> Words:
        """Two keys of each program: of what it does without regard to the range, and of what it
        does where it keeps to the range; shape (P, 2).

        Where a program leaves the range or gives NULL, and where it does not, is part of the second
        key. NULL is part of the first. Exchanging inputs of one type changes neither.

        Parameters
        ----------
        codes : lines of programs of one length, each of which the output needs, shape (P, T).
        """
        found = np.zeros((len(codes), 2), dtype=np.uint64)
        for start in range(0, len(codes), _SLICE):
            found[start : start + _SLICE] = self._keys(codes[start : start + _SLICE])
        return found

    def _keys(self, codes: Codes) -> Words:
        from thesis_cli.synthesis.corpus.exact_kernels import ABSENT, BEYOND, OPEN, WITHIN, exact_hashes

        shape = (len(codes), len(self._probes), len(self._probes[0]))
        hashes, states = np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.int8)
        exact_hashes(codes, len(self._inputs), self._room(), bounds_of(self._semantics), hashes, states)
        for p in np.unique(np.nonzero(states == OPEN)[0]):
            program = decode(self._inputs, codes[p])
            for a, m in zip(*np.nonzero(states[p] == OPEN), strict=True):
                value = run(program, self._probes[a][m], self._semantics, ranged=False)
                states[p, a, m] = ABSENT if value is None else BEYOND
                hashes[p, a, m] = 0 if value is None else hash_of(value)
        wide = hashes * self._weights
        narrow = np.where(states == WITHIN, wide, np.uint64(0)) ^ self._weights
        return np.stack([_mix(part.sum(axis=2)).sum(axis=1) for part in (wide, narrow)], axis=1)

    def _room(self) -> ExactRoom:
        from thesis_cli.synthesis.corpus.exact_kernels import ExactRoom

        longest = max(len(value) for row in self._probes[0] for value in row if not isinstance(value, int))
        shape = (len(self._probes), len(self._probes[0]), len(self._inputs) + MOST_LINES)
        room = ExactRoom(
            np.zeros((*shape, longest + 1), dtype=np.int64),
            np.zeros(shape, dtype=np.int64),
            np.ones(shape, dtype=np.bool_),
        )
        for a, rows in enumerate(self._probes):
            for m, row in enumerate(rows):
                for v, value in enumerate(row):
                    numbers = (value,) if isinstance(value, int) else value
                    room.values[a, m, v, : len(numbers)] = numbers
                    room.sizes[a, m, v] = len(numbers)
        return room


def hash_of(value: Value) -> int:
    """The hash of an output, as `exact_kernels.exact_hashes` has it; numbers may have any size."""
    numbers = (value,) if isinstance(value, int) else value
    found = _mix(2 * len(numbers) + isinstance(value, int) + 1)
    for x in numbers:
        found = _mix(found ^ (x if abs(x) < 2**63 else x % _PRIME) & _MASK)
    return int(found)


def _mix(z: Any) -> Any:
    """The finaliser of splitmix64, for a whole number or an array of words."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31
