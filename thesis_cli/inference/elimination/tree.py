"""Trees of contractions of pairs of tables: which axes each table has, and what a tree is predicted to
take.

A tree multiplies two tables at a time and sums over the variables that no other table names. Its tables
are smaller than those of the same elimination order bucket by bucket, since a bucket multiplies all its
tables before it sums.
"""

from __future__ import annotations

import math
from bisect import bisect, insort
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.inference.elimination.order import Clique, index_type
from thesis_cli.inference.elimination.pair_kernels import GATHERED, ONE_NUMBER, RUN, ProductIndex

SECONDS_A_PAIR = 4e-5
"""Time that a product of two tables takes, however small."""

SECONDS_A_TERM, SECONDS_GATHERED, SECONDS_MADE = 5e-10, 8e-10, 1e-9
"""Time of one product of two entries, for each entry of an input that is gathered, and for each of the
table that is made."""

SECONDS_BY_BLAS, SECONDS_MOVED = 1e-10, 4e-9
"""Time of one product of entries in a product of matrices, and for each entry that is moved before or
after it."""

SLOWER = 1.0
"""Time of a maximum, relative to that of a sum without products of matrices."""

Task = Literal["sum", "maximum", "marginals", "samples"]
"""A sum, a maximum that keeps all choices, and a sum with the pass back that gives marginals or samples."""

LEAST_RUN, BLOCK, BUFFER = 16, 512, 2**14
"""Entries of a run from which a block is one; most entries of a block, and of its inputs that are
gathered, unless one axis has more."""

SIDE, STATES = 16, 2**12
"""Rows, columns and summed states of a product of matrices, at least, and summed states from which a
step is one in any case."""


@dataclass(frozen=True)
class Step:
    """A product of two tables, summed.

    Attributes
    ----------
    left, right, made : axes of both inputs and of the table that is made, slowest first.
    summed : axes of both inputs that are summed over.
    states : of the variables that are summed over, all together.
    terms : products of two entries.
    axes : number of the fastest axes that are a block.
    kinds : how a block reads both inputs.
    blas : whether the step is a product of matrices.
    seconds, plain : predicted, and without products of matrices.
    scratch : entries that it needs besides inputs and output.
    """

    left: Clique
    right: Clique
    made: Clique
    summed: Clique
    states: int
    terms: int
    axes: int
    kinds: tuple[int, int]
    blas: bool
    seconds: float
    plain: float
    scratch: int

    @property
    def choices(self) -> type[np.unsignedinteger] | None:
        """The type that numbers the states of the variables that are summed over; None if there are none."""
        return index_type(self.states) if self.summed else None


class Matrices(NamedTuple):
    """A step as a batch of products of matrices.

    Attributes
    ----------
    moves : of both inputs and of the table that is made: its axes, and those of the matrices.
    sizes : number of matrices, rows, columns and summed states.
    """

    moves: tuple[tuple[Clique, Clique], ...]
    sizes: tuple[int, ...]


class Axes:
    """Axes of tables: numbers of states, and the order in which they lie.

    Parameters
    ----------
    cardinalities : of all variables.
    ranks : place of each variable; that of the highest rank is the fastest axis.
    """

    def __init__(self, cardinalities: Sequence[int], ranks: Sequence[int]) -> None:
        self.cardinalities, self.ranks = cardinalities, ranks

    def laid(self, variables: Sequence[int] | set[int] | frozenset[int]) -> Clique:
        """Variables in the order of axes."""
        return tuple(sorted(variables, key=self.ranks.__getitem__))

    def shape(self, axes: Clique) -> list[int]:
        """Numbers of states."""
        return [self.cardinalities[i] for i in axes]

    def size(self, axes: Clique) -> int:
        """Number of entries."""
        return math.prod(self.shape(axes))

    def strides(self, axes: Clique, along: Clique) -> list[int]:
        """Strides of a table along some axes, 0 where it does not have them."""
        found, step = {}, 1
        for i in reversed(axes):
            found[i] = step
            step *= self.cardinalities[i]
        return [found.get(i, 0) for i in along]

    def _block(self, sides: Sequence[Sequence[int]], made: Sequence[int], states: int) -> tuple[int, tuple[int, int]]:
        """Number of the fastest axes that are a block, and how it reads both inputs.

        Parameters
        ----------
        sides : strides of both inputs along the axes of the table that is made.
        made : numbers of states along these.
        states : that are summed over.
        """
        one, two = sides
        count, size, kinds = 0, 1, (int(ONE_NUMBER), int(ONE_NUMBER))
        for a in range(len(made) - 1, -1, -1):
            found = (_kind(one[a], size), _kind(two[a], size))
            if GATHERED in found or (count and (found != kinds or size * made[a] > BLOCK)):
                break
            kinds, size, count = found, size * made[a], count + 1
        if size >= LEAST_RUN or count == len(made):
            return count, kinds
        most = max(LEAST_RUN, min(BLOCK, BUFFER // states))
        while count < len(made) and (size * made[-count - 1] <= most or size < LEAST_RUN):
            size, count = size * made[-count - 1], count + 1
        return count, (_kinds_of(one, made, count), _kinds_of(two, made, count))

    def step(self, left: Clique, right: Clique, made: Clique) -> Step:
        """The product of two tables whose other variables are summed over; each is in both."""
        inside = set(made)
        summed = tuple(i for i in left if i not in inside)
        entries, states, dims = self.size(made), self.size(summed), self.shape(made)
        sides = [self.strides(left, made), self.strides(right, made)]
        count, kinds = self._block(sides, dims, states)
        terms = entries * states
        gathered = 0
        for kind, strides in zip(kinds, sides, strict=True):
            if kind == GATHERED:
                again, a = terms, len(made) - count - 1
                while a >= 0 and strides[a] == 0:
                    again, a = again // dims[a], a - 1
                gathered += again
        plain = SECONDS_A_PAIR + SECONDS_A_TERM * terms + SECONDS_GATHERED * gathered + SECONDS_MADE * entries
        blas, seconds, scratch = False, plain, 0
        if states >= SIDE:
            matrices = self.matrices(left, right, made)
            rows, columns = matrices.sizes[1:3]
            moved = sum(self.size(own) for own, order in matrices.moves if own != order)
            by_blas = SECONDS_A_PAIR + SECONDS_BY_BLAS * terms + SECONDS_MOVED * moved + SECONDS_MADE * entries
            if states > STATES or (min(rows, columns) >= SIDE and by_blas < plain):
                blas, seconds, scratch = True, by_blas, moved
        return Step(left, right, made, summed, states, terms, count, kinds, blas, seconds, plain, scratch)

    def matrices(self, left: Clique, right: Clique, made: Clique) -> Matrices:
        """The product of two tables as one of matrices."""
        inside, other = set(made), set(right)
        batch = tuple(i for i in left if i in inside and i in other)
        rows, columns = (tuple(i for i in side if i in inside and i not in batch) for side in (left, right))
        summed = tuple(i for i in left if i not in inside)
        orders = (*batch, *rows, *summed), (*batch, *summed, *columns), (*batch, *rows, *columns)
        sizes = tuple(self.size(part) for part in (batch, rows, columns, summed))
        return Matrices(tuple(zip((left, right, made), orders, strict=True)), sizes)

    def pair(self, step: Step) -> ProductIndex:
        """Indices by which the kernels read the inputs of a step."""
        cut = len(step.made) - step.axes
        outer, inner = step.made[:cut], step.made[cut:]
        return ProductIndex(
            np.array(self.shape(outer), np.int64),
            np.array([self.strides(side, outer) for side in (step.left, step.right)], np.int64).reshape(2, cut),
            np.stack([self._offsets(side, inner) for side in (step.left, step.right)]),
            np.stack([self._offsets(side, step.summed) for side in (step.left, step.right)]),
            np.array(step.kinds, np.int64),
        )

    def _offsets(self, axes: Clique, along: Clique) -> Ints:
        found = np.zeros(1, np.int64)
        for states, stride in zip(self.shape(along), self.strides(axes, along), strict=True):
            found = (found[:, np.newaxis] + stride * np.arange(states)).reshape(-1)
        return found


class Move(NamedTuple):
    """A move of a pass.

    Attributes
    ----------
    kind : make a table, shift it to another place, or draw the variables that are summed over where it is made.
    table : number of the table, of n; n + k is what is outside of table k.
    at : place of its entries.
    other : place of what the product needs besides, or from which the table is shifted.
    """

    kind: Literal["make", "shift", "draw"]
    table: int
    at: int
    other: int


class Layout(NamedTuple):
    """A pass over a tree whose tables have places in one array, so that its memory is touched once.

    Attributes
    ----------
    there, back : moves to the sum of all tables, and from there back.
    size : entries of the array.
    seconds : predicted.
    """

    there: list[Move]
    back: list[Move]
    size: int
    seconds: float

    @property
    def memory(self) -> int:
        """Bytes."""
        return 8 * (self.size + 2 * BLOCK)


class Room:
    """Places for tables in one array of so many entries at most, each where enough room is free first."""

    def __init__(self, limit: float = math.inf) -> None:
        self.size, self.limit = 0, limit
        self._free: list[tuple[int, int]] = []  # (start, length), ascending

    def fits(self, length: int) -> bool:
        """Whether there is a place for a new table."""
        start, room = self._free[-1] if self._free else (self.size, 0)
        end = start if start + room == self.size else self.size
        return end + length <= self.limit or any(room >= length for _, room in self._free)

    def take(self, length: int) -> int:
        """The place of a new table."""
        for k, (start, room) in enumerate(self._free):
            if room >= length:
                del self._free[k]
                if room > length:
                    insort(self._free, (start + length, room - length))
                return start
        start = self.size
        if self._free and sum(self._free[-1]) == self.size:
            start = self._free.pop()[0]
        self.size = start + length
        return start

    def give(self, start: int, length: int) -> None:
        """Free a table's place."""
        k, end = bisect(self._free, (start, length)), start + length
        if k < len(self._free) and self._free[k][0] == end:
            end += self._free.pop(k)[1]
        if k and sum(self._free[k - 1]) == start:
            k -= 1
            start = self._free.pop(k)[0]
        self._free.insert(k, (start, end - start))

    def passing(self, length: int) -> int:
        """A place that is free again at once."""
        if not length:
            return 0
        start = self.take(length)
        self.give(start, length)
        return start


def _kind(stride: int, size: int) -> int:
    """Mode of reading an input along one more axis of a block of `size` entries."""
    return int(ONE_NUMBER if stride == 0 else RUN if stride == size else GATHERED)


def _kinds_of(strides: Sequence[int], dims: Sequence[int], count: int) -> int:
    """Mode of reading an input along the fastest `count` axes."""
    size, found = 1, set()
    for a in range(len(dims) - 1, len(dims) - count - 1, -1):
        found.add(_kind(strides[a], size))
        size *= dims[a]
    return found.pop() if len(found) == 1 else int(GATHERED)


@dataclass(frozen=True)
class PairTree:
    """Pairs of tables to multiply, one after the other.

    Attributes
    ----------
    cardinalities : of all variables.
    scopes : of the first tables.
    pairs : numbers of two tables; the table that pair j makes has number len(scopes) + j.
    """

    cardinalities: Sequence[int]
    scopes: Sequence[Clique]
    pairs: Sequence[tuple[int, int]]

    @cached_property
    def _made(self) -> tuple[list[frozenset[int]], list[int]]:
        """Variables of each table, summed over those that no other names, and the table that each
        variable is summed out of.
        """
        users: dict[int, int] = {}
        for scope in self.scopes:
            for i in scope:
                users[i] = users.get(i, 0) + 1
        summed_at = [-1] * len(self.cardinalities)
        found = []
        for f, scope in enumerate(self.scopes):
            found.append(frozenset(i for i in scope if users[i] > 1))
            for i in scope:
                if users[i] == 1:
                    summed_at[i] = f
        for a, b in self.pairs:
            for i in found[a] & found[b]:
                users[i] -= 1
                if users[i] == 1:
                    summed_at[i] = len(found)
            found.append(frozenset(i for i in found[a] | found[b] if summed_at[i] != len(found)))
        return found, summed_at

    @cached_property
    def axes(self) -> Axes:
        """Axes of all tables: those that are summed over soonest are the slowest."""
        summed_at = self._made[1]
        order = sorted(range(len(summed_at)), key=lambda i: (summed_at[i], i))
        ranks = [0] * len(order)
        for rank, i in enumerate(order):
            ranks[i] = rank
        return Axes(self.cardinalities, ranks)

    @cached_property
    def tables(self) -> list[Clique]:
        """Axes of each table."""
        return [self.axes.laid(variables) for variables in self._made[0]]

    @cached_property
    def steps(self) -> list[Step]:
        """The product of each pair."""
        first = len(self.scopes)
        return [
            self.axes.step(self.tables[a], self.tables[b], self.tables[first + j])
            for j, (a, b) in enumerate(self.pairs)
        ]

    @cached_property
    def sizes(self) -> list[int]:
        """Entries of each table."""
        return [self.axes.size(table) for table in self.tables]

    @cached_property
    def seconds(self) -> float:
        """Predicted time of one sum."""
        return math.fsum(step.seconds for step in self.steps)

    @cached_property
    def width(self) -> int:
        """Number of variables in the largest table."""
        return max(map(len, self.tables), default=0)

    @cached_property
    def parents(self) -> list[int]:
        """The table that each table is multiplied into; -1 if none."""
        found = [-1] * len(self.sizes)
        for j, pair in enumerate(self.pairs, len(self.scopes)):
            for k in pair:
                found[k] = j
        return found

    @cached_property
    def read(self) -> list[list[int]]:
        """Variables of which each first table is the smallest."""
        sizes = [self.axes.size(scope) for scope in self.scopes]
        readers: dict[int, int] = {}
        for f, scope in enumerate(self.scopes):
            for i in scope:
                if i not in readers or sizes[f] < sizes[readers[i]]:
                    readers[i] = f
        return [[i for i in self.axes.laid(scope) if readers[i] == f] for f, scope in enumerate(self.scopes)]

    @cached_property
    def back_steps(self) -> dict[int, Step]:
        """The product that takes what is outside of a pair to what is outside of one of its tables, for each table
        with a variable that is read from it or below.
        """
        found: dict[int, Step] = {}
        for f in range(len(self.scopes)):
            side, made = f, self.parents[f]
            while self.read[f] and made >= 0 and side not in found:
                a, b = self.pairs[made - len(self.scopes)]
                other = b if side == a else a
                found[side] = self.axes.step(self.tables[made], self.tables[other], self.tables[side])
                side, made = made, self.parents[made]
        return found

    @cached_property
    def layout(self) -> Layout:
        """A sum, each table of which goes once it is used."""
        room, first = Room(), len(self.scopes)
        there = [Move("make", f, room.take(size), 0) for f, size in enumerate(self.sizes[:first])]
        for j, ((a, b), step) in enumerate(zip(self.pairs, self.steps, strict=True), first):
            there.append(Move("make", j, room.take(self.sizes[j]), room.passing(step.scratch)))
            for k in (a, b):
                room.give(there[k].at, self.sizes[k])
        return Layout(there, [], room.size, self.seconds)

    def bytes_of(self, task: Task) -> int:
        """Memory of a sum or a maximum over one slice."""
        if task != "maximum":
            return self.layout.memory
        made = zip(self.steps, self.sizes[len(self.scopes) :], strict=True)
        return self.layout.memory + sum(np.dtype(step.choices).itemsize * size for step, size in made if step.choices)

    def seconds_of(self, task: Task) -> float:
        """Predicted time of a sum or a maximum over one slice."""
        if task != "maximum":
            return self.seconds
        return math.fsum(SECONDS_A_PAIR + SLOWER * (step.plain - SECONDS_A_PAIR) for step in self.steps)

    def held(self, variable: int) -> PairTree:
        """The tree of one slice, in which a variable is held at a state."""
        return PairTree(self.cardinalities, [tuple(i for i in s if i != variable) for s in self.scopes], self.pairs)

    def in_order(self) -> PairTree:
        """The same tree with its pairs in an order that needs little memory: the side that needs more
        goes first.
        """
        first = len(self.scopes)
        needs = [0] * (first + len(self.pairs))
        for j, (a, b) in enumerate(self.pairs, first):
            low, high = sorted((a, b), key=lambda k: needs[k] - self.sizes[k])
            own = self.sizes[a] + self.sizes[b] + self.sizes[j] + self.steps[j - first].scratch
            needs[j] = max(needs[high], self.sizes[high] + needs[low], own)
        order: list[int] = []
        stack = [(first + len(self.pairs) - 1, False)] if self.pairs else []
        while stack:
            j, ready = stack.pop()
            if ready:
                order.append(j)
            elif j >= first:
                low, high = sorted(self.pairs[j - first], key=lambda k: needs[k] - self.sizes[k])
                stack += [(j, True), (low, False), (high, False)]
        number = {j: first + place for place, j in enumerate(order)}
        pairs = [tuple(number.get(k, k) for k in self.pairs[j - first]) for j in order]
        return PairTree(self.cardinalities, self.scopes, [(a, b) for a, b in pairs])
