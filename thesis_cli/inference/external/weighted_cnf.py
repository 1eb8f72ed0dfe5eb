"""A factor graph as a propositional formula in conjunctive normal form with weighted literals: each
table becomes weighted clauses.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.models.factor_graph import FactorGraph

MOST_ENTRIES = 2**20
"""Largest table, with the digits that stand for no state."""

MOST_WEIGHTS = 2**10
"""Most distinct weights of a table: each has a literal, and counting is hopeless with more."""

LOWEST = -600.0
"""Lowest logarithm of the weight of one literal; below, several literals share the weight."""

MOST_SHARES = 100
"""Most literals that share one weight."""

_MOST_DIGITS = 9
"""Most digits of a table of whose boxes the largest are looked for."""

_FEW = 3
"""Entries of one value that are too few for that."""

_WIDEST = 64
"""Most nodes in a level of a decision diagram that becomes clauses."""

_FORBIDDEN = -1
_NO_STATE = -2

Box = tuple[int, int]
"""Some entries of a table: the number of the first, and the sum of the places of the digits that
are free. Entries are numbered in C order."""


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


def digits(states: int) -> int:
    """Number of binary digits for some states."""
    return (states - 1).bit_length()


def template(table: Floats) -> Template:
    """Translate a table of log-potentials.

    An entry of `-inf` is forbidden by a clause. The largest entry has weight 1. Another entry of
    weight w implies a literal of weight w whose negation has weight 1 - w: an assignment that does
    not imply it sums over both, which gives 1. Entries of equal weight share the literal (Sang,
    Beame and Kautz, Performing Bayesian inference by weighted model counting, AAAI 2005).

    Entries are merged into boxes that cover them, or a decision diagram of the table is translated
    instead, whichever has fewer literals. Digits that stand for no state may do anything here.

    Raises
    ------
    ModelTooLarge : the table has more than `MOST_ENTRIES` entries or `MOST_WEIGHTS` weights, or a
        weight is too small.
    """
    count = sum(map(digits, table.shape))
    if 2**count > MOST_ENTRIES:
        raise ModelTooLarge(
            f"a table of {table.size:,} entries", f"model counting takes tables of at most {MOST_ENTRIES:,}"
        )
    values, classes = _weights(table)
    shift = float(values[-1])
    logs = values[:-1] - shift
    if len(logs) > MOST_WEIGHTS:
        raise ModelTooLarge(
            f"a table of {len(logs) + 1:,} distinct weights", f"model counting takes at most {MOST_WEIGHTS + 1:,}"
        )
    found = _Clauses(count, logs)
    coded = _coded(classes, copy=False)
    for value in range(_FORBIDDEN, len(logs)):
        for box in boxes(coded == value, (coded == value) | (coded < 0)):
            found.imply(found.outside(box), value)
    if count > 2 and found.size > 4 * count:
        other = _Clauses(count, logs)
        if _diagram(_coded(classes, copy=True), other, found.size):
            found = other
    return Template(np.array(found.literals, np.int32), found.count, np.array(found.logs), shift)


def _weights(table: Floats) -> tuple[Floats, Ints]:
    """Distinct finite entries in ascending order, and the number of each entry among them,
    `_FORBIDDEN` for `-inf`; entries that differ by rounding only are one.
    """
    values, classes = np.unique(table, return_inverse=True)
    first = int(values[0] == -np.inf)
    finite = values[first:]
    new = np.concatenate([[True], np.diff(finite) > 4 * np.spacing(np.abs(finite[1:]))])
    numbers = np.concatenate([np.full(first, _FORBIDDEN), np.cumsum(new) - 1])
    return finite[new], numbers[classes].reshape(table.shape)


def _coded(classes: Ints, copy: bool) -> Ints:
    """The table by digits, flat; digits that stand for no state copy a state, or have a mark."""
    for axis, k in enumerate(classes.shape):
        missing = 2 ** digits(k) - k
        if missing and copy:
            half = 2 ** (digits(k) - 1)
            classes = np.concatenate([classes, classes.take(range(k - half, half), axis)], axis)
        elif missing:
            pad = [(0, missing if a == axis else 0) for a in range(classes.ndim)]
            classes = np.pad(classes, pad, constant_values=_NO_STATE)
    return classes.reshape(-1)


class _Clauses:
    """Clauses of one table under construction, and the logarithms of the weights of its values by number."""

    def __init__(self, count: int, logs: Floats) -> None:
        self.literals: list[int] = []
        self.count, self.size = 0, 0
        self.logs: list[float] = []
        self._places = [2**power for power in reversed(range(count))]
        self._heads = [self._shares(log) for log in logs.tolist()]

    def _shares(self, log: float) -> list[int]:
        """Literals that together have a weight."""
        count = math.ceil(log / LOWEST)
        if count > MOST_SHARES:
            most = -LOWEST * MOST_SHARES
            raise ModelTooLarge(
                f"log-potentials of one table differ by {-log:.3g}", f"model counting takes at most {most:.0f}"
            )
        return [self.new(log / count) for _ in range(count)]

    def new(self, log: float = 0.0) -> int:
        """A further auxiliary literal, which has a weight if `log` is not 0."""
        self.logs.append(log)
        return len(self._places) + len(self.logs)

    def add(self, clause: Iterable[int]) -> None:
        before = len(self.literals)
        self.literals += [*clause, 0]
        self.size += len(self.literals) - before
        self.count += 1

    def imply(self, outside: list[int], value: int) -> None:
        """Give a value to the assignments that make all of `outside` false."""
        if value == _FORBIDDEN:
            self.add(outside)
        elif value < len(self._heads):
            for head in self._heads[value]:
                self.add([*outside, head])

    def outside(self, box: Box) -> list[int]:
        """Literals of which one holds outside a box."""
        first, free = box
        fixed = [(i, place) for i, place in enumerate(self._places, 1) if not free & place]
        return [-i if first & place else i for i, place in fixed]


def boxes(must: Bools, may: Bools) -> Iterator[Box]:
    """Boxes that together cover the entries `must` of a flat table, and no entry outside `may`.

    Small tables: a greedy cover by prime implicants (Quine 1952, McCluskey 1956). Tables of many
    digits: disjoint boxes, merged along one digit after another. A few entries: each with as many
    digits free as it can have.

    Parameters
    ----------
    must, may : masks of shape (2^digits,); `must` lies within `may`.
    """
    entries = np.flatnonzero(must)
    if entries.size <= _FEW:
        yield from _grown(must, may, entries)
    elif must.size > 2**_MOST_DIGITS:
        yield from _merged(entries, must.size)
    else:
        yield from _cover(must, may)


def _inside(box: Box) -> Ints:
    """The entries of a box."""
    first, free = box
    found = np.array([first])
    while free:
        place = free & -free
        free -= place
        found = np.concatenate([found, found + place])
    return found


def _grown(must: Bools, may: Bools, entries: Ints) -> Iterator[Box]:
    left = must.copy()
    for entry in entries.tolist():
        if left[entry]:
            first, inside, free, place = entry, entries[entries == entry], 0, 1
            while place < must.size:
                if may[inside ^ place].all():
                    inside = np.concatenate([inside, inside ^ place])
                    first, free = first & ~place, free | place
                place *= 2
            left[inside] = False
            yield first, free


def _merged(entries: Ints, size: int) -> Iterator[Box]:
    first, free = entries, np.zeros_like(entries)
    place = 1
    while place < size:
        keys = np.stack([first & ~place, free])
        keys, inverse, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
        whole = counts == 2
        lone = ~whole[inverse.reshape(-1)]
        first = np.concatenate([first[lone], keys[0][whole]])
        free = np.concatenate([free[lone], keys[1][whole] | place])
        place *= 2
    yield from zip(first.tolist(), free.tolist(), strict=True)


def _cover(must: Bools, may: Bools) -> Iterator[Box]:
    """Choose boxes greedily, each the one that covers most of what is left.

    The gains of boxes only fall, so that a box whose gain is still the largest after it is computed
    anew is the best (Minoux, Accelerated greedy algorithms, 1978).
    """
    count = must.size.bit_length() - 1
    gains = must.reshape((2,) * count).astype(np.int64)
    inside = may.reshape((2,) * count)
    for axis in range(count):  # along each, place 2 is the box of both
        inside = np.concatenate([inside, inside.all(axis, keepdims=True)], axis)
        gains = np.concatenate([gains, gains.sum(axis, keepdims=True)], axis)
    places = np.argwhere(inside & (gains > 0))
    powers = 2 ** np.arange(count)[::-1]
    firsts, frees = ((places == 1) @ powers).tolist(), ((places == 2) @ powers).tolist()
    queue = [
        (-gain, -free.bit_count(), first, free)
        for gain, first, free in zip(gains[tuple(places.T)].tolist(), firsts, frees, strict=True)
    ]
    heapq.heapify(queue)
    left = must.copy()
    missing = int(left.sum())
    while missing:
        _, size, first, free = heapq.heappop(queue)
        where = _inside((first, free))
        gain = int(left[where].sum())
        if gain and queue and gain < -queue[0][0]:
            heapq.heappush(queue, (-gain, size, first, free))
        elif gain:
            left[where] = False
            missing -= gain
            yield first, free


def _diagram(classes: Ints, out: _Clauses, most: int) -> bool:
    """Translate the decision diagram of a flat table, if that takes fewer literals than `most`.

    A literal for each node says that the path of the assignment runs through it. A level of one
    node needs none, a level of two nodes one literal for both. A node below which every entry is
    `-inf` is forbidden.

    Returns
    -------
    Whether it does; `out` is of no use if not.
    """
    count = classes.size.bit_length() - 1
    levels: list[Ints] = []  # the children of each node, shape (nodes, 2); the last digit first
    ids = classes
    for _ in range(count):
        nodes, inverse = np.unique(ids.reshape(-1, 2), axis=0, return_inverse=True)
        dead = (nodes == _FORBIDDEN).all(axis=1)
        if len(nodes) > _WIDEST:
            return False
        ids = np.where(dead, _FORBIDDEN, np.cumsum(~dead) - 1)[inverse.reshape(-1)]
        levels.append(nodes[~dead])
    above: list[list[int]] = [[]]  # literals that are false where the path runs through a node
    for digit, children in enumerate(reversed(levels), 1):
        last = digit == count
        below = [] if last else _node_literals(out, len(levels[-digit - 1]))
        for node, (low, high) in zip(above, children.tolist(), strict=True):
            for child, differs in [(low, [])] if low == high else [(low, [digit]), (high, [-digit])]:
                if last or child == _FORBIDDEN:
                    out.imply([*node, *differs], child)
                elif below[child]:
                    out.add([*node, *differs, -below[child][0]])
        above = below
        if out.size >= most:
            return False
    return True


def _node_literals(out: _Clauses, count: int) -> list[list[int]]:
    """The literal that is false where the path runs through a node, for each node of a level."""
    if count == 1:
        return [[]]
    if count == 2:
        literal = out.new()
        return [[-literal], [literal]]
    literals = [out.new() for _ in range(count)]
    for first, second in itertools.combinations(literals, 2):
        out.add([-first, -second])
    return [[-literal] for literal in literals]


MOST_CLAUSES = 2**21
"""Largest number of clauses."""

Literals = npt.NDArray[np.int32]


@dataclass(frozen=True)
class WeightedFormula:
    """A formula whose weighted count is the partition function of a model.

    Attributes
    ----------
    variables : number of propositional variables, numbered from 1.
    clauses : number of clauses.
    literals : the clauses one after another, each ended by 0; `-l` is the negation of `l`.
    weighted : variables whose literals have weights other than 1, shape (m,).
    weights : weights of each such variable and of its negation, shape (m, 2).
    shift : ln Z = `shift` + the logarithm of the weighted count.
    highest, lowest : bounds of the logarithm of the weighted count, if it is not 0.
    """

    variables: int
    clauses: int
    literals: Literals
    weighted: Literals
    weights: Floats
    shift: float
    highest: float
    lowest: float


def weighted_formula(graph: FactorGraph) -> WeightedFormula:
    """Translate a model; a variable of one state takes no part.

    Raises
    ------
    ModelTooLarge : there are more than `MOST_CLAUSES` clauses, a table has too many entries, or
        the entries of one table differ by too much.
    """
    return _Translation(graph).formula()


class _Translation:
    def __init__(self, graph: FactorGraph) -> None:
        self._graph = graph
        self._states = graph.cardinalities
        self._starts = np.cumsum([1, *map(digits, self._states)]).tolist()
        self._parts: list[Literals] = []
        self._clauses = 0
        self._next: int = self._starts[-1]
        self._shift: list[float] = []
        self._lowest = 0.0
        self._weighted: list[Literals] = []
        self._weights: list[Floats] = []
        self._templates: dict[tuple[tuple[int, ...], bytes], Template] = {}

    def formula(self) -> WeightedFormula:
        for i, k in enumerate(self._states):
            self._only_states(self._starts[i], k)
        for scope, table in _combined(self._graph).items():
            if table.max() == -np.inf:
                self._add(np.array([self._next, 0, -self._next, 0], np.int32), 2)
                self._next += 1
            elif not scope:
                self._shift.append(float(table))
            elif table.shape == (2,) and _narrow(table):
                self._unary(scope[0], table)
            else:
                self._table(scope, table)
        empty, none = np.empty(0, np.int32), np.empty((0, 2))
        return WeightedFormula(
            self._next - 1,
            self._clauses,
            np.concatenate([empty, *self._parts]),
            np.concatenate([empty, *self._weighted]),
            np.concatenate([none, *self._weights]),
            math.fsum(self._shift),
            sum(math.log(k) for k in self._states),
            self._lowest,
        )

    def _add(self, literals: Literals, clauses: int) -> None:
        self._parts.append(literals)
        self._clauses += clauses
        if self._clauses > MOST_CLAUSES:
            raise ModelTooLarge(
                f"more than {MOST_CLAUSES:,} clauses for model counting", "use another exact method, or a bound"
            )

    def _only_states(self, start: int, k: int) -> None:
        """Forbid digits above k - 1: those that agree with it but have 1 at one of its zeros."""
        last = f"{k - 1:0{digits(k)}b}" if k > 1 else ""
        for at in (at for at, digit in enumerate(last) if digit == "0"):
            ones = [-start - i for i in range(at) if last[i] == "1"]
            self._add(np.array([*ones, -start - at, 0], np.int32), 1)

    def _unary(self, i: int, table: Floats) -> None:
        """The table of a variable of two states is the weights of its literals."""
        literal, top = self._starts[i], float(table.max())
        self._shift.append(top)
        possible = table > -np.inf
        if possible.all() and table[0] != table[1]:
            self._lowest += float(table.min()) - top
            self._weighted.append(np.array([literal], np.int32))
            self._weights.append(np.exp(table[None, ::-1] - top))
        elif not possible.all():
            self._add(np.array([literal if possible[1] else -literal, 0], np.int32), 1)

    def _table(self, scope: tuple[int, ...], table: Floats) -> None:
        key = (table.shape, table.tobytes())
        found = self._templates.get(key)
        if found is None:
            found = self._templates[key] = template(table)
        axes = [np.arange(self._starts[i], self._starts[i + 1]) for i in scope]
        own = np.arange(self._next, self._next + len(found.logs))
        names = np.concatenate([[0], *axes, own]).astype(np.int32)
        self._next += len(found.logs)
        self._add(np.sign(found.literals) * names[np.abs(found.literals)], found.clauses)
        self._shift.append(found.shift)
        chosen = found.logs < 0
        if chosen.any():
            logs, literals = found.logs[chosen], own[chosen].astype(np.int32)
            self._weighted.append(literals)
            self._weights.append(np.stack([np.exp(logs), -np.expm1(logs)], axis=1))
            self._lowest += float(logs.sum())


def _narrow(table: Floats) -> bool:
    """Whether the possible entries are close enough to be weights of literals."""
    return bool(table[table > -np.inf].min() - table.max() > LOWEST)


def _combined(graph: FactorGraph) -> dict[tuple[int, ...], Floats]:
    """Tables by ascending scope, without variables of one state; tables of equal scope are added."""
    found: dict[tuple[int, ...], Floats] = {}
    for factor in graph.factors:
        scope = [i for i, k in zip(factor.scope, factor.table.shape, strict=True) if k > 1]
        order = sorted(range(len(scope)), key=scope.__getitem__)
        table = factor.table.reshape([k for k in factor.table.shape if k > 1]).transpose(order)
        key = tuple(scope[a] for a in order)
        found[key] = found[key] + table if key in found else table
    return found
