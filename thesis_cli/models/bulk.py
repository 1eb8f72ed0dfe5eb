"""Long model files, read at once by compiled code and NumPy: what UAI and FG share.

A file that departs from the grammar in any way, or is not ASCII, raises `Irregular` here. The
readers then take its words one by one, which gives the result or the line of the error. So this
file says nothing of what is wrong, and may be stricter than the grammar.
"""

from __future__ import annotations

import gc
import itertools
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import InvalidOperation
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.models.bulk_kernels import HIGHEST, LOWEST, group_starts, listed_places, listed_starts, read_words
from thesis_cli.models.factor_graph import Factor
from thesis_cli.models.tokens import SMALLEST, Irregular, exact_log, is_number

MOST_AXES = 64
"""A NumPy array has no more axes, and here all tables of one shape are an array."""


class Numbers:
    """The words of a text as numbers; `#` starts a comment.

    Parameters
    ----------
    text : content of the file.

    Attributes
    ----------
    values : each word as a double, as `float` reads it; NaN for one that takes a closer look.
    whole : which words are whole numbers of at most 15 digits without a sign.

    Raises
    ------
    Irregular : the text is not ASCII.
    """

    def __init__(self, text: str) -> None:
        if not text.isascii():
            raise Irregular
        self._text = re.sub(r"#[^\n]*", "", text) if "#" in text else text
        letters = np.frombuffer(self._text.encode("ascii"), np.uint8)
        values, whole = np.empty(letters.size // 2 + 1), np.empty(letters.size // 2 + 1, np.bool_)
        high, low = _powers()
        count = read_words(letters, high, low, values, whole)
        self.values: Floats = values[:count]
        self.whole: Bools = whole[:count]

    @cached_property
    def _words(self) -> list[str]:
        return self._text.split()

    def wholes(self, places: slice | Ints, least: int, most: float) -> Ints:
        """Words as whole numbers from `least` to `most`."""
        values = self.values[places]
        if not (self.whole[places].all() and np.all((values >= least) & (values <= most))):
            raise Irregular
        return values.astype(np.int64)

    @property
    def count(self) -> int:
        """Number of words."""
        return self.values.size

    def word(self, place: int) -> str:
        """The word at a position, as it is written."""
        return next(itertools.islice(re.finditer(r"\S+", self._text), place, None))[0]

    def at(self, place: int) -> int:
        """The word at a position as a whole number."""
        if place >= self.values.size or not self.whole[place]:
            raise Irregular
        return int(self.values[place])

    def groups(self, start: int, count: int) -> tuple[Ints, Ints, int]:
        """Sizes of groups, positions of their items, and the position behind them.

        A group is a number and as many items.
        """
        if count > self.values.size - start:
            raise Irregular
        starts = np.empty(count, np.int64)
        end = group_starts(self.values, self.whole, start, starts)
        if end < 0:
            raise Irregular
        items = np.ones(end - start, np.bool_)
        items[starts - start] = False
        return self.values[starts].astype(np.int64), start + np.flatnonzero(items), end

    def listed(self, count: int) -> tuple[Ints, int]:
        """Positions of the factors of an FG file, and the position behind them."""
        if count > self.values.size:
            raise Irregular
        starts = np.empty(count, np.int64)
        end = listed_starts(self.values, self.whole, starts)
        if end < 0:
            raise Irregular
        return starts, end

    def listed_logs(self, starts: Ints, sizes: Ints, entries: Ints) -> Floats:
        """The tables of the factors of an FG file as one array, the last variable fastest."""
        pairs = starts + 1 + 2 * sizes
        counts = self.wholes(pairs, 1, math.inf)
        indices = ranges(pairs + 1, counts, 2)
        self.wholes(indices, 0, math.inf)
        places = np.empty(indices.size, np.int64)
        if not listed_places(self.values, starts, np.cumsum(entries) - entries, places):
            raise Irregular
        logs = self.logs(indices + 1)
        seen = np.zeros(entries.sum(), np.bool_)
        seen[places] = True
        if np.count_nonzero(seen) < places.size:
            raise Irregular
        table = np.full(seen.size, -np.inf)
        table[places] = logs
        return table

    def logs(self, places: Ints) -> Floats:
        """Natural logarithms of entries of tables."""
        values = self.values[places]
        closer = {}
        for k in np.flatnonzero(np.isnan(values)).tolist():
            word = self._words[places[k]]
            if not is_number(word):
                raise Irregular
            values[k] = float(word)
            if not SMALLEST <= values[k] < np.inf:
                try:
                    closer[k] = exact_log(word)
                except (InvalidOperation, ValueError):
                    raise Irregular from None
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(values)
        logs[list(closer)] = list(closer.values())
        return logs


def prepare() -> None:
    """Call every kernel, so that it is compiled."""
    numbers = Numbers("1 1 0 1 1 0 1")
    numbers.groups(0, 1)
    starts, _ = numbers.listed(1)
    numbers.listed_logs(starts, starts, starts)


@cache
def _powers() -> tuple[Floats, Floats]:
    """Powers of 10 as sums of two doubles."""
    exact = [Fraction(10) ** e for e in range(LOWEST, HIGHEST + 1)]
    high = [float(power) for power in exact]
    return np.array(high), np.array([float(p - Fraction(h)) for p, h in zip(exact, high, strict=True)])


def ranges(starts: Ints, counts: Ints, step: int = 1) -> Ints:
    """The numbers start, start + step, ... of each of k ranges, as many as its count, one range after the
    other; shape (sum of counts,).

    Parameters
    ----------
    starts, counts : shape (k,).
    """
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    found: Ints = np.repeat(starts, counts) + step * within
    return found


def products(numbers: Ints, counts: Ints) -> Floats:
    """The product of the first numbers, as many as the first count, then that of the next ones; shape
    (counts,), 1 for a count of 0.
    """
    result = np.ones(counts.size)
    filled = counts > 0
    if filled.any():
        with np.errstate(over="ignore"):
            result[filled] = np.multiply.reduceat(numbers.astype(np.float64), (np.cumsum(counts) - counts)[filled])
    return result


def factors(cardinalities: Ints, scopes: Ints, sizes: Ints, entries: Ints, logs: Floats) -> list[Factor]:
    """Make the factors of a model; tables of one shape are cut from one array.

    Parameters
    ----------
    cardinalities : number of states of each variable.
    scopes, sizes : the variables of all factors, and how many of them each has.
    entries : how many entries the table of each factor has.
    logs : the entries of all tables, the last variable fastest.

    Raises
    ------
    Irregular : a scope names a variable twice, a table has another shape than its scope, or is
        `-inf` everywhere.
    """
    if sizes.size and sizes.max() >= MOST_AXES:
        raise Irregular
    made: list[Factor] = [Factor((), logs)] * len(sizes)
    first, begin = np.cumsum(sizes) - sizes, np.cumsum(entries) - entries
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        variables = scopes[first[rows, None] + np.arange(size)]
        shapes = cardinalities[variables]
        ordered = np.sort(variables, axis=1)
        with np.errstate(over="ignore"):
            right = shapes.prod(axis=1, dtype=np.float64) == entries[rows]
        if not right.all() or (ordered[:, 1:] == ordered[:, :-1]).any():
            raise Irregular
        for same in _alike(shapes):
            tables = logs[begin[rows[same], None] + np.arange(entries[rows[same[0]]])]
            if (tables.max(axis=1) == -np.inf).any():
                raise Irregular
            scope = zip(*variables[same].T.tolist(), strict=True) if size else [()] * len(same)
            shaped = tables.reshape(-1, *shapes[same[0]]) if size else [table.reshape(()) for table in tables]
            with _no_search_for_garbage():
                for j, factor in zip(rows[same].tolist(), map(Factor, scope, shaped), strict=True):
                    made[j] = factor
    return made


@contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """While many objects are made that all stay, a search among them takes longer than making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _alike(shapes: Ints) -> list[Ints]:
    """The indices of equal rows."""
    key = np.zeros(len(shapes), np.int64)
    for column in shapes.T:
        if (column != column[0]).any():
            pairs = np.unique(column, return_inverse=True)[1] + key * len(shapes)
            key = np.unique(pairs, return_inverse=True)[1]
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
