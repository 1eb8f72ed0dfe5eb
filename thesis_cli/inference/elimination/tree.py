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

Task = Literal["sum", "back", "maximum"]
"""A sum, a sum with the pass back that keeps all tables, and a maximum that keeps all choices."""

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


@dataclass(frozen=True)
class Layout:
    """Starts of tables in one array, whose memory is touched once.

    Attributes
    ----------
    at : places of all tables.
    scratch : places of what each product needs besides.
    outside, back_scratch : the same for a pass back.
    size : entries of the array.
    """

    at: list[int]
    scratch: list[int]
    outside: list[int]
    back_scratch: list[tuple[int, int]]
    size: int


class Room:
    """Places for tables in one array, each where enough room is free first."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (start, length), ascending

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
    def back_steps(self) -> list[tuple[Step, Step]]:
        """The products that take what is outside of the table of each pair to both its inputs."""
        found = []
        for j, (a, b) in enumerate(self.pairs, len(self.scopes)):
            one, two, made = self.tables[a], self.tables[b], self.tables[j]
            found.append((self.axes.step(made, two, one), self.axes.step(made, one, two)))
        return found

    @cached_property
    def layout(self) -> Layout:
        """Places of tables, each of which goes once it is used."""
        room, first = Room(), len(self.scopes)
        at = [room.take(size) for size in self.sizes[:first]]
        scratch = []
        for (a, b), step, size in zip(self.pairs, self.steps, self.sizes[first:], strict=True):
            at.append(room.take(size))
            scratch.append(room.passing(step.scratch))
            for k in (a, b):
                room.give(at[k], self.sizes[k])
        return Layout(at, scratch, [], [], room.size)

    @cached_property
    def back_layout(self) -> Layout:
        """Places of tables in a pass there and back: all stay until the pass back, in which there is room
        for what is outside of each.
        """
        room, first, total = Room(), len(self.scopes), len(self.sizes)
        at = [room.take(size) for size in self.sizes]
        scratch = [room.passing(step.scratch) for step in self.steps]
        outside, passing = [0] * total, [(0, 0)] * len(self.pairs)
        for j in reversed(range(first, total)):
            room.give(at[j], self.sizes[j])
            a, b = self.pairs[j - first]
            outside[a], outside[b] = (room.take(self.sizes[k]) for k in (a, b))
            one, two = self.back_steps[j - first]
            passing[j - first] = room.passing(one.scratch), room.passing(two.scratch)
            if j + 1 < total:
                room.give(outside[j], self.sizes[j])
        return Layout(at, scratch, outside, passing, room.size)

    def bytes_of(self, task: Task) -> int:
        """Memory of a pass over one slice."""
        entries = 8 * ((self.back_layout if task == "back" else self.layout).size + 2 * BLOCK)
        if task != "maximum":
            return entries
        made = zip(self.steps, self.sizes[len(self.scopes) :], strict=True)
        return entries + sum(np.dtype(step.choices).itemsize * size for step, size in made if step.choices)

    def seconds_of(self, task: Task) -> float:
        """Predicted time of a pass over one slice."""
        if task == "maximum":
            return math.fsum(SECONDS_A_PAIR + SLOWER * (step.plain - SECONDS_A_PAIR) for step in self.steps)
        return (3 if task == "back" else 1) * self.seconds

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
