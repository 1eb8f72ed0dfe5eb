"""Distinct programs on given inputs: all short ones, and random longer ones (Thesis section
5.4.2).

Keys of 64 bits, in sets that grow, stand for what programs do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from thesis_cli.base.arrays import Bools, Ints, Words
from thesis_cli.synthesis.corpus.exact_behaviours import ExactBehaviours
from thesis_cli.synthesis.language.dsl import DEEPCODER, INT, Semantics, Type, Value
from thesis_cli.synthesis.language.packing import Lanes, bounds_of, pack
from thesis_cli.synthesis.language.program_codes import MOST_LINES, Signature

if TYPE_CHECKING:
    from thesis_cli.synthesis.corpus.sampling_kernels import Completions
    from thesis_cli.synthesis.language.program_codes import Codes


class KeyTable:
    """Keys, each with the number of lines of the first program that had it.

    Attributes
    ----------
    words : the table, as `behaviour_kernels` describes it.
    entries : number of entries in use.
    """

    def __init__(self) -> None:
        self.words: Words = np.zeros(2**10, dtype=np.uint64)
        self.entries = 0

    def make_room(self, keys: int) -> None:
        """Grow until so many more keys fit; at most half of it is then in use."""
        from thesis_cli.synthesis.corpus.behaviour_kernels import rehash

        size = len(self.words)
        while size < 2 * (self.entries + keys + 2):
            size *= 2
        if size > len(self.words):
            self.words, old = np.zeros(size, dtype=np.uint64), self.words
            rehash(old, self.words)

    def enter(self, keys: Words, length: int) -> Bools:
        """Enter keys, shape (P, .), of programs of so many lines; whether each is new."""
        from thesis_cli.synthesis.corpus.behaviour_kernels import enter_keys

        self.make_room(keys.size)
        new = np.zeros(keys.size, dtype=np.bool_)
        self.entries += enter_keys(self.words, np.ascontiguousarray(keys).ravel(), length, new)
        return new.reshape(keys.shape)

    def lengths(self, keys: Words) -> Ints:
        """Number of lines that each key, shape (P, .), was entered with; 0 if it was not."""
        from thesis_cli.synthesis.corpus.behaviour_kernels import lengths_of

        lengths = np.zeros(keys.size, dtype=np.int64)
        lengths_of(self.words, np.ascontiguousarray(keys).ravel(), lengths)
        return lengths.reshape(keys.shape)

    def copy(self) -> KeyTable:
        """An independent copy."""
        other = KeyTable()
        other.words, other.entries = self.words.copy(), self.entries
        return other


ENUMERATED = 3
"""Length of the longest programs that are enumerated; longer ones are drawn."""

_SLICE = 2**20
"""Programs examined before an interrupt is noticed: a second or two."""

_DRY = 0.01
"""Share of drawn programs that must be good for more to be drawn."""


def probes(inputs: Signature, semantics: Semantics) -> list[list[Value]]:
    """Values of each input on the probes; always the same.

    Numbers in lists have magnitudes from 2 to 256. Lists have up to half the allowed length, and
    are shorter where the product of their numbers could exceed 64 bits; half of those in a probe
    are as long as its first. Inputs that are numbers are places in such lists; a quarter of them
    are below 0 and count from the end, as TAKE and DROP do. All numbers are in range.
    """
    from thesis_cli.synthesis.corpus.behaviour_kernels import PROBES

    rng = np.random.default_rng(1)
    most = max(1, semantics.longest // 2)

    def numbers(low: int, high: int, count: int) -> tuple[int, ...]:
        drawn = np.clip(rng.integers(low, high + 1, count), semantics.low, semantics.high)
        return tuple(map(int, drawn))

    def drawn_length(bits: int) -> int:
        return int(rng.integers(1, min(most, 60 // bits) + 1))

    def value(kind: Type, length: int, bits: int) -> Value:
        if kind is INT:
            return numbers(-length, -1, 1)[0] if rng.random() < 0.25 else numbers(0, length, 1)[0]
        return numbers(-(2**bits), 2**bits, length if rng.random() < 0.5 else drawn_length(bits))

    rows = []
    for m in range(PROBES):
        bits = 1 + m % 8
        length = drawn_length(bits)
        rows.append([value(kind, length, bits) for kind in inputs])
    return [list(column) for column in zip(*rows, strict=True)]


class Behaviours:
    """Programs on inputs of given types, compared by what they do to probes.

    Parameters
    ----------
    inputs : their types.
    semantics : range of numbers, length of lists, and rounding.

    Attributes
    ----------
    examined : programs that `enumerate` examined, by length from 1.
    looked_at, kept : programs that `distinct` examined and yielded, by length.
    """

    def __init__(self, inputs: Signature, semantics: Semantics) -> None:
        from thesis_cli.synthesis.corpus.behaviour_kernels import enter_inputs

        self.inputs = inputs
        self.kinds: Bools = np.array([kind is INT for kind in inputs])
        self._columns = probes(inputs, semantics)
        self._bounds = bounds_of(semantics)
        self._exact = ExactBehaviours(inputs, semantics, self._columns)
        self._table, self._exact_table = KeyTable(), KeyTable()
        self._excluded: Words = np.zeros(0, dtype=np.uint64)
        self._found: list[Codes] = []
        self._found_keys: dict[int, Words] = {}
        self.examined: list[int] = []
        self.looked_at: Counter[int] = Counter()
        self.kept: Counter[int] = Counter()
        _, words, marks = self._room(0)
        self._table.entries = enter_inputs(words, self.kinds, self._table.words, marks)

    def _room(self, length: int) -> tuple[Lanes, Words, Words]:
        """A pool with the probes and room for lines, the same as words, and marks of the inputs."""
        from thesis_cli.synthesis.corpus.behaviour_kernels import enter_inputs

        pool = pack(self._columns, len(self.inputs) + length)
        words = pool.view(np.uint64)
        marks = np.zeros((3, len(pool)), dtype=np.uint64)
        enter_inputs(words, self.kinds, np.zeros(16, dtype=np.uint64), marks)
        return pool, words, marks

    def enumerate(self, length: int) -> Codes:
        """Programs of a length that differ from all shorter ones and all before them, shape (P,
        length).

        Each uses all inputs. Shorter lengths are enumerated first.
        """
        while len(self._found) < length:
            found, examined = self._search(len(self._found) + 1, add=True)
            self._found.append(found)
            self.examined.append(examined)
        return self._found[length - 1]

    def _search(self, length: int, add: bool) -> tuple[Codes, int]:
        """Examine all programs of a length: the new ones, and the number of all."""
        from thesis_cli.synthesis.corpus.behaviour_kernels import EnumerationState, ProbeRoom, enumerate_behaviours

        pool, words, marks = self._room(length)
        variables = len(pool)
        kinds = np.zeros(variables, dtype=np.bool_)
        kinds[: len(self.inputs)] = self.kinds
        room = ProbeRoom(pool, words, kinds, marks, self._bounds)
        state = EnumerationState(
            counts=np.zeros(3, dtype=np.int64),
            cursor=np.zeros(length, np.int64),
            sizes=np.full(length, -1),
            uses=np.zeros(variables, np.int64),
            choices=np.zeros((length, len(DEEPCODER.operations) * variables**2), dtype=np.int32),
        )
        found: Codes = np.zeros((2**10, length), dtype=np.int32)
        while state.sizes[0] != -2:
            table = self._table
            table.entries = enumerate_behaviours(room, state, table.words, table.entries, found, _SLICE, add)
            table.make_room(table.entries)
            if state.counts[2] == len(found):
                found.resize((2 * len(found), length), refcheck=False)
        return found[: state.counts[2]].copy(), int(state.counts[1])

    def select(self, codes: Codes, fresh: bool) -> tuple[Codes, Words]:
        """Programs whose output depends on every input and stays in range on some probes, and their
        hashes.

        A program is also refused if a line repeats the result of an earlier one, if a shorter
        program could replace the lines that serve only one result, or if it does what an excluded
        program does on inputs in any order.

        Parameters
        ----------
        codes : codes of programs of one length.
        fresh : whether the behaviour must also be new: the program does not do what one of up to
            `ENUMERATED` lines does, nor what an earlier one of this call or of another one does, on
            inputs in any order. All behaviours count as known from then on.
        """
        good, hashes = self._judge(codes, fresh)
        codes, hashes = codes[good], hashes[good]
        keys = self._exact.keys(codes)
        good = self._allowed(keys)
        if fresh:
            good &= self._exactly_new(keys, codes.shape[1])
        return codes[good], hashes[good]

    def _exactly_new(self, keys: Words, length: int) -> Bools:
        """Whether programs have exact keys, shape (P, 2), that no program above or before has."""
        if not self._exact_table.entries:
            for shorter in range(1, len(self._found) + 1):
                self._exact_table.enter(self._keys_of_found(shorter), shorter)
        return np.asarray(self._exact_table.enter(keys, length).all(axis=1))

    def short(self, length: int, rng: np.random.Generator | None = None) -> Codes:
        """All enumerated programs of a length that `select` keeps, in random order if `rng` is
        given; of those that do the same on inputs in another order, the first."""
        codes, keys = self.enumerate(length), self._keys_of_found(length)
        table = KeyTable()
        for shorter in range(1, length):
            table.enter(self._keys_of_found(shorter), shorter)
        good, _ = self._judge(codes, fresh=False)
        rows = np.flatnonzero(good)
        if rng is not None:
            rows = rng.permutation(rows)
        new = table.enter(keys[rows], length).all(axis=1) & self._allowed(keys[rows])
        return np.asarray(codes[rows[new]])

    def _keys_of_found(self, length: int) -> Words:
        """Exact keys of the enumerated programs of a length; copies share them."""
        if length not in self._found_keys:
            self._found_keys[length] = self._exact.keys(self._found[length - 1])
        return self._found_keys[length]

    def _allowed(self, keys: Words) -> Bools:
        """Whether exact keys, shape (P, 2), are not excluded."""
        if not len(self._excluded):
            return np.ones(len(keys), dtype=np.bool_)
        places = np.searchsorted(self._excluded, keys).clip(max=len(self._excluded) - 1)
        return np.asarray((self._excluded[places] != keys).all(axis=1), dtype=np.bool_)

    def exclude(self, codes: Codes) -> None:
        """Select no program from now on that does what one of these does, on inputs in any order;
        codes of shape (P, T)."""
        self._excluded = np.union1d(self._excluded, self._exact.keys(codes))

    def _judge(self, codes: Codes, fresh: bool) -> tuple[Bools, Words]:
        """Whether programs are worth having, exclusion apart; hashes of their behaviour, shape (P,
        2)."""
        from thesis_cli.synthesis.corpus.behaviour_kernels import ProbeRoom, select

        pool, _, marks = self._room(codes.shape[1])
        pools = np.stack([pool] * (1 + len(self.inputs)))
        for i, column in enumerate(self._columns):
            pools[1 + i, i] = pack([[*column[1:], column[0]]], 1)[0]
        self._table.make_room(2 * len(codes))
        hashes = np.zeros((len(codes), 2), dtype=np.uint64)
        good = np.zeros(len(codes), dtype=np.bool_)
        rooms = ProbeRoom(pools, pools.view(np.uint64), self.kinds, marks, self._bounds)
        self._table.entries += select(rooms, self._table.words, fresh, codes, hashes, good)
        return good, hashes

    def without_shorter(self, codes: Codes, hashes: Words) -> Codes:
        """Programs of one length that differ from all programs of one line more than `ENUMERATED`,
        all of which are examined."""
        length = codes.shape[1]
        other = self.copy()
        other._table = KeyTable()
        other._table.enter(hashes, length)
        other._search(ENUMERATED + 1, add=False)
        none = (other._table.lengths(hashes) == length).all(axis=1)
        return np.asarray(codes[none])

    def copy(self) -> Behaviours:
        """An independent copy."""
        other = object.__new__(Behaviours)
        other.__dict__.update(self.__dict__, _table=self._table.copy(), _exact_table=self._exact_table.copy())
        other._found, other.examined = self._found.copy(), self.examined.copy()
        other.looked_at, other.kept = self.looked_at.copy(), self.kept.copy()
        return other


def enumerated(inputs: Signature, semantics: Semantics, length: int) -> Behaviours:
    """All programs of up to a length, `ENUMERATED` at most; a copy for the caller."""
    return _enumerated(inputs, semantics, min(length, ENUMERATED)).copy()


@lru_cache(maxsize=18)
def _enumerated(inputs: Signature, semantics: Semantics, length: int) -> Behaviours:
    behaviours = Behaviours(inputs, semantics)
    behaviours.enumerate(length)
    return behaviours


@cache
def completions() -> Completions:
    """All programs of up to `MOST_LINES` lines, to draw them uniformly."""
    from thesis_cli.synthesis.corpus.sampling_kernels import count_completions

    return count_completions(MOST_LINES)


def distinct(
    behaviours: Behaviours, length: int, rng: np.random.Generator, batch: int, exhaustive: bool = False
) -> Iterator[Codes]:
    """Distinct programs of one length in random order, in batches, until hardly any are left.

    Up to `ENUMERATED` lines, these are all that there are. A longer program is drawn uniformly from
    the well-typed programs without unused variables, and kept if it differs from all programs of up
    to `ENUMERATED` lines and from all that were drawn before.

    Parameters
    ----------
    exhaustive : whether it must also differ from all programs of one line more.
    """
    from thesis_cli.synthesis.corpus.sampling_kernels import sample

    if length <= ENUMERATED:
        found = behaviours.short(length, rng)
        behaviours.looked_at[length] += behaviours.examined[length - 1]
        behaviours.kept[length] += len(found)
        for start in range(0, len(found), batch):
            yield found[start : start + batch]
        return
    state = rng.integers(2**64, size=1, dtype=np.uint64)

    def draw() -> Codes:
        codes: Codes = np.zeros((batch, length), dtype=np.int32)
        sample(completions(), behaviours.kinds, state, codes)
        return codes

    yield from new_among(draw, behaviours, exhaustive)


def new_among(draw: Callable[[], Codes], behaviours: Behaviours, exhaustive: bool) -> Iterator[Codes]:
    """Distinct programs among those that are drawn, a batch at a time, until hardly any are left;
    see `distinct`."""
    fresh, drawn = 1, 1
    while fresh >= _DRY * drawn:
        codes = draw()
        found, hashes = behaviours.select(codes, fresh=True)
        fresh, (drawn, length) = len(found), codes.shape
        if exhaustive and length - 1 > ENUMERATED:
            found = behaviours.without_shorter(found, hashes)
        behaviours.looked_at[length] += drawn
        behaviours.kept[length] += len(found)
        yield found
