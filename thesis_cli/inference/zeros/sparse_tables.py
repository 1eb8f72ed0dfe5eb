"""Tables that hold only their support, and their joins."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints, Words
from thesis_cli.base.errors import ModelTooLarge, OutOfTime
from thesis_cli.base.memory import bytes_text
from thesis_cli.inference.zeros import sparse_kernels as kernels
from thesis_cli.models.factor_graph import Factor

PAIRS = 2**20
"""Pairs of rows joined between two looks at the clock."""

BATCH = 256
"""Pairs of rows of a batch."""

SMALLEST = 1e-150
"""Weights of this size and above, and products of two, lose no digits in linear space."""

Field = tuple[int, int, int]
"""Word, lowest bit and number of bits of a variable in a key."""


@dataclass(frozen=True)
class SparseTable:
    """A table of weights without those that are 0.

    Attributes
    ----------
    fields : where the key holds each variable.
    keys : the configurations, each once, shape (rows, words).
    weights : linear, the largest 1, or logarithms, the largest 0.
    """

    fields: dict[int, Field]
    keys: Words
    weights: Floats

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.weights)

    @property
    def bytes(self) -> int:
        return self.keys.nbytes + self.weights.nbytes

    def states_of(self, variable: int) -> Ints:
        """The state of a variable in each row."""
        word, low, bits = self.fields[variable]
        return ((self.keys[:, word] >> np.uint64(low)) & np.uint64((1 << bits) - 1)).astype(np.int64)


def bits_of(states: int) -> int:
    return max(1, (states - 1).bit_length())


def sparse_table(factor: Factor) -> tuple[SparseTable, float]:
    """The support of a factor with logarithms as weights, and the largest of them, which is taken
    out.
    """
    entries = np.nonzero(factor.table > -np.inf)
    weights = factor.table[entries]
    top = float(weights.max())
    fields = laid_out({}, list(zip(factor.scope, factor.table.shape, strict=True)))
    keys = np.zeros((weights.size, words_of(fields)), np.uint64)
    for v, states in zip(factor.scope, entries, strict=True):
        word, low, _ = fields[v]
        keys[:, word] |= states.astype(np.uint64) << np.uint64(low)
    return SparseTable(fields, keys, weights - top), top


def laid_out(fields: dict[int, Field], more: Sequence[tuple[int, int]]) -> dict[int, Field]:
    """The fields with one for each further variable, of so many states, where bits are free."""
    found = dict(fields)
    used = [0] * words_of(fields)
    for word, low, bits in fields.values():
        used[word] |= ((1 << bits) - 1) << low
    for v, states in more:
        bits = bits_of(states)
        block = (1 << bits) - 1
        found[v] = next(
            (w, low, bits) for w in range(len(used) + 1) for low in range(65 - bits) if not _at(used, w) & block << low
        )
        word, low, _ = found[v]
        used += [0] * (word + 1 - len(used))
        used[word] |= block << low
    return found


def _at(used: Sequence[int], word: int) -> int:
    return used[word] if word < len(used) else 0


def words_of(fields: dict[int, Field]) -> int:
    return max((word for word, _, _ in fields.values()), default=0) + 1


def mask_of(fields: dict[int, Field], variables: Collection[int], words: int) -> Words:
    found = [0] * words
    for v in variables:
        word, low, bits = fields[v]
        found[word] |= ((1 << bits) - 1) << low
    return np.array(found, np.uint64)


def with_fields(table: SparseTable, fields: dict[int, Field], words: int) -> Words:
    """The keys of a table in another layout, shape (rows, words)."""
    if words == table.keys.shape[1] and all(fields[v] == at for v, at in table.fields.items()):
        return table.keys
    moves = np.array([(*at, *fields[v][:2]) for v, at in table.fields.items()], np.int64).reshape(-1, 5)
    out = np.zeros((table.size, words), np.uint64)
    kernels.repack(table.keys, moves, out)
    return out


class Joiner:
    """Joins tables within limits.

    Attributes
    ----------
    how : `SUM` or `LOG_SUM` of `sparse_kernels`.
    used : bytes of the tables outside a join.
    most_rows : rows of the largest table so far.
    """

    def __init__(self, memory: int, deadline: float | None, how: int) -> None:
        self._memory, self._deadline, self.how = memory, deadline, how
        self.used = 0
        self.most_rows = 0

    def join(self, a: SparseTable, b: SparseTable, kept: Collection[int]) -> SparseTable:
        """The product of two tables, summed over all variables but those kept; the
        weights as they come.

        Raises
        ------
        ModelTooLarge, OutOfTime : beyond the limits.
        """
        self._check_time()
        if a.size < b.size:
            a, b = b, a
        fields = laid_out(a.fields, [(v, 1 << at[2]) for v, at in b.fields.items() if v not in a.fields])
        words = words_of(fields)
        shared = mask_of(fields, a.fields.keys() & b.fields.keys(), words)
        keep = mask_of(fields, kept, words)
        left = kernels.Rows(with_fields(a, fields, words), a.weights)
        right = self._grouped(with_fields(b, fields, words), b.weights, shared)
        keys, weights = self._run(left, right, np.stack([shared, keep]), len(kept) < len(fields))
        self.most_rows = max(self.most_rows, len(weights))
        return SparseTable({v: fields[v] for v in fields if v in kept}, keys, weights)

    def unit(self) -> SparseTable:
        """A table that changes nothing."""
        return SparseTable({}, np.zeros((1, 1), np.uint64), np.full(1, 1.0 if self.how == kernels.SUM else 0.0))

    def _grouped(self, keys: Words, weights: Floats, shared: Words) -> kernels.Groups:
        count = len(weights)
        slots = np.full(_slots(count), -1, np.int32)
        firsts, member = np.empty(count, np.int64), np.empty(count, np.int64)
        groups = kernels.group(keys, shared, slots, firsts, member)
        bounds = np.zeros(groups + 1, np.int64)
        np.cumsum(np.bincount(member, minlength=groups), out=bounds[1:])
        if groups < count:
            order = np.argsort(member, kind="stable")
            keys, weights = keys[order], weights[order]
        return kernels.Groups(slots, bounds, keys, weights)

    def _run(self, left: kernels.Rows, right: kernels.Groups, masks: Words, together: bool) -> tuple[Words, Floats]:
        words = masks.shape[1]
        capacity = max(len(left.weights), len(right.weights))
        out = kernels.Output(
            np.empty((capacity, words), np.uint64),
            np.empty(capacity),
            np.full(_slots(capacity) if together else 0, -1, np.int32),
            np.empty(BATCH, np.int64),
            np.empty(1, np.uint64),
        )
        state = np.zeros(4, np.int64)
        while True:
            state[3] = PAIRS
            kernels.join(left, right, masks, out, state, self.how)
            if state[0] == len(left.weights):
                break
            self._check_time()
            if state[2] == len(out.weights):
                out = self._grown(out, int(state[2]), masks[1])
        count = int(state[2])
        if 4 * count > 3 * len(out.weights):
            return out.keys[:count], out.weights[:count]
        return out.keys[:count].copy(), out.weights[:count].copy()

    def _check_time(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise OutOfTime("sparse elimination did not end in time")

    def _grown(self, out: kernels.Output, count: int, kept: Words) -> kernels.Output:
        """More space for the rows of a join, with those that it has."""
        capacity, words = 2 * len(out.weights), out.keys.shape[1]
        together = out.slots.size > 0
        needed = self.used + (8 * words + 8) * (capacity + count) + (4 * _slots(capacity) if together else 0)
        if needed > self._memory:
            raise ModelTooLarge(
                f"sparse elimination needs more than {bytes_text(self._memory)}: a table grows above {count} rows",
                "raise the memory, or use a method that approximates",
            )
        keys, weights = np.empty((capacity, words), np.uint64), np.empty(capacity)
        keys[:count], weights[:count] = out.keys[:count], out.weights[:count]
        slots = np.full(_slots(capacity) if together else 0, -1, np.int32)
        grown = out._replace(keys=keys, weights=weights, slots=slots)
        if together:
            kernels.place(grown, count, kept)
        return grown


def _slots(rows: int) -> int:
    return 1 << max(2, (2 * rows - 1).bit_length())
