"""The table of a factor as weighted clauses.

Literals of a template are numbers of its own: those of the variables of the table, axis by axis,
then auxiliary ones. A variable of two states has one literal, true in state 1; a variable of more
states has one literal for each state, of which exactly one is true.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge

Booleans = npt.NDArray[np.bool_]

MOST_CLAUSES = 2**21
"""Largest number of clauses, of one table or of a model."""

LOWEST = -600.0
"""Lowest logarithm of the weight of one literal; below, several literals share the weight."""

MOST_SHARES = 100
"""Most literals that share one weight."""

_MOST_BOXES = 2**17
"""Largest number of boxes of a table whose largest ones are looked for."""

_WIDEST = 64
"""Most nodes in a level of a decision diagram that becomes clauses."""

Box = tuple[tuple[int, ...], ...]
"""A product of sets of states: for each axis, the states that it holds."""


@dataclass(frozen=True)
class Template:
    """Weighted clauses whose weights, summed over the auxiliary literals, are those of a table.

    Attributes
    ----------
    literals : the clauses one after another, each ended by 0; `-l` is the negation of `l`.
    clauses : number of clauses.
    logs : logarithms, below 0, of the weights of the auxiliary literals, shape (m,); 0 for one that
        the variables determine and that has no weight. The negation has weight 1 minus that of the
        literal, or 1 if the literal has none.
    shift : log-potential to add to the logarithm of the weights.
    """

    literals: npt.NDArray[np.int32]
    clauses: int
    logs: Floats
    shift: float


def template(table: Floats) -> Template:
    """Translate a table of log-potentials whose axes have two states or more.

    An entry of `-inf` is forbidden by a clause. The largest entry has weight 1. Another entry of
    weight w implies a literal of weight w whose negation has weight 1 - w: an assignment that does
    not imply it sums over both, which gives 1. Entries of equal weight share the literal (Sang,
    Beame and Kautz, Performing Bayesian inference by weighted model counting, AAAI 2005).

    Entries are merged into boxes that cover them, or a decision diagram of the table is translated
    instead, whichever has fewer literals.

    Raises
    ------
    ModelTooLarge : the clauses are more than `MOST_CLAUSES`, or a weight is too small.
    """
    values, classes = _weights(table)
    shift = float(values[-1])
    logs = values[:-1] - shift
    if table.size > MOST_CLAUSES:
        raise ModelTooLarge(
            f"a table of {table.size:,} entries", f"model counting takes tables of at most {MOST_CLAUSES:,}"
        )
    found = _Clauses(table.shape, logs)
    for value in range(-1, len(logs)):
        must = classes == value
        if must.any():
            for box in boxes(must, must | (classes == -1)):
                found.imply(found.outside(box), value)
    if table.ndim > 2 and found.size > 4 * table.ndim:
        other = _Clauses(table.shape, logs)
        if _diagram(classes, other, found.size):
            found = other
    return Template(np.array(found.literals, np.int32), found.count, np.array(found.logs), shift)


def _weights(table: Floats) -> tuple[Floats, Ints]:
    """Distinct finite entries in ascending order, and the number of each entry among them, -1 for
    `-inf`; entries that differ by rounding only are one.
    """
    values, classes = np.unique(table, return_inverse=True)
    first = int(values[0] == -np.inf)
    finite = values[first:]
    new = np.concatenate([[True], np.diff(finite) > 4 * np.spacing(np.abs(finite[1:]))])
    numbers = np.concatenate([np.full(first, -1), np.cumsum(new) - 1])
    return finite[new], numbers[classes].reshape(table.shape)


class _Clauses:
    """Clauses of one table under construction.

    Parameters
    ----------
    shape : number of states of each axis.
    logs : logarithms of the weights of the values, in the order of their numbers.
    """

    def __init__(self, shape: Sequence[int], logs: Floats) -> None:
        self.literals: list[int] = []
        self.count, self.size = 0, 0
        self._shape = shape
        self._starts = [1, *itertools.accumulate((1 if k == 2 else k for k in shape), initial=1)][1:]
        self.logs: list[float] = []
        self._heads = [self._shares(log) for log in logs.tolist()]

    def _shares(self, log: float) -> list[int]:
        """Literals that together have a weight."""
        count = max(1, math.ceil(log / LOWEST))
        if count > MOST_SHARES:
            raise ModelTooLarge(
                f"log-potentials of one table differ by {-log:.3g}", f"model counting takes {-LOWEST * MOST_SHARES:.0f}"
            )
        return [self.new(log / count) for _ in range(count)]

    def new(self, log: float = 0.0) -> int:
        """A further auxiliary literal, which has a weight if `log` is not 0."""
        self.logs.append(log)
        return self._starts[-1] + len(self.logs) - 1

    def add(self, clause: Iterable[int]) -> None:
        before = len(self.literals)
        self.literals += [*clause, 0]
        self.size += len(self.literals) - before
        self.count += 1

    def imply(self, outside: list[int], value: int) -> None:
        """Give a value to the assignments that make all of `outside` false; -1 forbids them."""
        if value < 0:
            self.add(outside)
        elif value < len(self._heads):
            for head in self._heads[value]:
                self.add([*outside, head])

    def outside(self, box: Box) -> list[int]:
        """Literals of which one holds outside a box."""
        return [literal for axis, states in enumerate(box) for literal in self.differs(axis, states)]

    def differs(self, axis: int, states: Sequence[int]) -> list[int]:
        """Literals of which one holds if an axis is in none of these states."""
        k, start = self._shape[axis], self._starts[axis]
        if len(states) == k:
            return []
        if k == 2:
            return [start if states[0] == 0 else -start]
        if len(states) == 1:
            return [-start - states[0]]
        return [start + s for s in range(k) if s not in states]


def boxes(must: Booleans, may: Booleans) -> Iterator[Box]:
    """Boxes that together cover the entries `must`, and no entry outside `may`.

    Small tables: a greedy cover by the largest boxes whose sides are one state, all states but one,
    or all states (Quine and McCluskey's prime implicants for variables of two states). Larger ones:
    disjoint boxes, merged along one axis after another.
    """
    sides = [_sides(k) for k in must.shape]
    if math.prod(map(len, sides)) > _MOST_BOXES:
        yield from _merged(must)
        return
    inside = may
    for axis, side in enumerate(sides):
        members = np.array([[s in states for s in range(must.shape[axis])] for states in side])
        missing = np.tensordot(members, ~inside, axes=(1, axis))
        inside = ~np.moveaxis(missing, 0, axis)
    weights = [np.array([len(states) for states in side]) for side in sides]
    yield from _cover(must, inside, sides, weights)


def _sides(k: int) -> list[tuple[int, ...]]:
    """The sides of boxes along an axis of k states, smallest first."""
    every = tuple(range(k))
    complements = [tuple(s for s in every if s != t) for t in every] if k > 2 else []
    return [*((s,) for s in every), *complements, every]


def _cover(must: Booleans, inside: Booleans, sides: list[list[tuple[int, ...]]], weights: list[Ints]) -> Iterator[Box]:
    """Choose boxes greedily, each the one that covers most of what is left.

    The gains of boxes only fall, so that a box whose gain is still the largest after it is computed
    anew is the best (Minoux, Accelerated greedy algorithms, 1978).
    """
    left = must.copy()
    sizes = np.ones(inside.shape)
    for axis, weight in enumerate(weights):
        sizes = sizes * weight.reshape([-1 if a == axis else 1 for a in range(inside.ndim)])
    places = np.flatnonzero(inside)
    order = places[np.argsort(-sizes.reshape(-1)[places], kind="stable")]
    queue = [(-float(sizes.reshape(-1)[place]), rank) for rank, place in enumerate(order.tolist())]
    open_entries = int(left.sum())
    while open_entries:
        _, rank = heapq.heappop(queue)
        place = np.unravel_index(order[rank], inside.shape)
        box = tuple(side[int(at)] for side, at in zip(sides, place, strict=True))
        where = np.ix_(*box)
        gain = int(left[where].sum())
        if gain and queue and gain < -queue[0][0]:
            heapq.heappush(queue, (-gain, rank))
        elif gain:
            left[where] = False
            open_entries -= gain
            yield box


def _merged(must: Booleans) -> Iterator[Box]:
    """Disjoint boxes: those that differ in one side only become one, along the last axis first."""
    found: dict[Box, None] = {tuple((int(s),) for s in place): None for place in np.argwhere(must)}
    for axis in reversed(range(must.ndim)):
        groups: dict[tuple[Box, Box], list[int]] = {}
        for box in found:
            groups.setdefault((box[:axis], box[axis + 1 :]), []).extend(box[axis])
        found = {(*before, tuple(sorted(side)), *after): None for (before, after), side in groups.items()}
    yield from found


def _diagram(classes: Ints, out: _Clauses, most: int) -> bool:
    """Translate the decision diagram of a table, if that takes fewer literals than `most`.

    A literal for each node says that the path of the assignment runs through it. A level of one
    node needs none, a level of two nodes one literal for both. A node below which every entry is
    `-inf` is forbidden.

    Parameters
    ----------
    classes : numbers of the values, -1 for `-inf`.

    Returns
    -------
    Whether it does; `out` is of no use if not.
    """
    levels: list[Ints] = []  # children of the nodes of each level, shape (nodes, states); -1 is dead
    ids = classes
    for _ in range(classes.ndim):
        rows = ids.reshape(-1, ids.shape[-1])
        nodes, inverse = np.unique(rows, axis=0, return_inverse=True)
        dead = (nodes == -1).all(axis=1)
        if len(nodes) > _WIDEST or dead.all():
            return False
        number = np.where(dead, -1, np.cumsum(~dead) - 1)
        ids = number[inverse.reshape(-1)].reshape(ids.shape[:-1])
        levels.append(nodes[~dead])
    above: list[list[int]] = [[]]  # literals that are false where the path runs through a node
    for axis, children in enumerate(reversed(levels)):
        last = axis == classes.ndim - 1
        below = [] if last else _node_literals(out, len(levels[-axis - 2]))
        for node, row in zip(above, children.tolist(), strict=True):
            for child in set(row):
                differs = out.differs(axis, [s for s, c in enumerate(row) if c == child])
                if last or child < 0:
                    out.imply([*node, *differs], child)
                elif below[child]:
                    out.add([*node, *differs, *(-literal for literal in below[child])])
        above = below
        if out.size >= most:
            return False
    return True


def _node_literals(out: _Clauses, count: int) -> list[list[int]]:
    """Literals of the nodes of a level, negated; at most one node holds."""
    if count == 1:
        return [[]]
    if count == 2:
        literal = out.new()
        return [[-literal], [literal]]
    literals = [out.new() for _ in range(count)]
    for first, second in itertools.combinations(literals, 2):
        out.add([-first, -second])
    return [[-literal] for literal in literals]
