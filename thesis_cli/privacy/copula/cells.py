"""Public cells of the columns of a schema, and bins of them of near equal mass.

Every encoded row has one cell in each column. Levels, and whole numbers of a short range, have
cells of their own. Other numbers go up to the next round number, such as a multiple of 0.05: a real
column often has values that occur many times. A missing value is the last cell. The type of the column
says where they end (`Column.points`).

Bins, and orthonormal functions on them, are made from distributions that are public: noisy ones of
an earlier stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.tables.column import Column
from thesis_cli.privacy.tables.schema import Schema

WHOLE = 256
"""Largest number of whole numbers that have cells of their own."""
SCALES = 16, 128
"""Equal groups of cells in which a line of many cells is counted too."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of one column.

    Attributes
    ----------
    real, code : places of the column among the reals and the codes of an encoded row; -1 if it has
        none.
    points : encoded numbers of the cells on the line, rising from 0 to 1; none for a category
        without order. A number has the cell of the least point that is not below it.
    count : number of cells.
    whole : whether no other number than the points can occur.
    atoms : cells of the column's atoms, in the order of their codes. They are on the line too: the
        point of an atom is the number nearest to it.
    """

    real: int
    code: int
    points: Floats
    count: int
    whole: bool
    atoms: tuple[int, ...] = ()

    @property
    def line(self) -> int:
        """Number of cells on the line."""
        return len(self.points)

    @property
    def numbers(self) -> Ints:
        """Cells on the line that are no atoms."""
        return np.delete(np.arange(self.line), self.atoms)

    @property
    def coded(self) -> tuple[int, ...]:
        """Cells of a number's codes 1, 2 and on: atoms, then a missing value."""
        return (*self.atoms, self.line) if self.gap else self.atoms

    @property
    def gap(self) -> bool:
        """Whether the last cell is a missing value of a number."""
        return 0 < self.line < self.count

    def scales(self) -> list[Ints]:
        """Group of each cell at nested scales, the coarsest first; the last has single cells.

        Both ends of the line, where values are clamped, atoms and missing values are groups of their
        own.
        """
        found = []
        for groups in SCALES:
            if self.line > 2 * groups:
                own = 1 + np.minimum((self.points * groups).astype(np.int64), groups - 1)
                numbers = self.numbers
                own[numbers[0]], own[numbers[-1]] = 0, groups + 1
                own = np.append(own, [groups + 2] * (self.count - self.line)).astype(np.int64)
                starts = np.append(True, own[1:] != own[:-1])
                for atom in self.atoms:
                    starts[atom : atom + 2] = True
                found.append(np.cumsum(starts) - 1)
        return [*found, np.arange(self.count)]

    def of(self, rows: Rows) -> Ints:
        """Cell of each row, shape (N,)."""
        if not self.line:
            return rows.codes[:, self.code]
        numbers = self.numbers
        found = np.searchsorted(self.points[numbers], rows.reals[:, self.real])
        found = numbers[np.minimum(found, len(numbers) - 1)]
        if self.code < 0:
            return found
        codes = rows.codes[:, self.code]
        return np.where(codes > 0, np.array([0, *self.coded])[codes], found)

    def write(self, found: Ints, rows: Rows, within: Floats | None = None) -> None:
        """Set the column of encoded rows to the points of the cells `found`, or to numbers at places
        in [0, 1) below them.
        """
        if self.code >= 0:
            codes = np.zeros(self.count, np.int64) if self.line else np.arange(self.count)
            for code, cell in enumerate(self.coded, 1):
                codes[cell] = code
            rows.codes[:, self.code] = codes[found]
        if self.line:
            x = np.append(self.points, 0.5)[found]
            if within is not None and not self.whole:
                widths = np.zeros(self.line + 1)
                widths[self.numbers[1:]] = np.diff(self.points[self.numbers])
                x -= within * widths[found]
            rows.reals[:, self.real] = x


def schema_cells(schema: Schema, most: int = WHOLE, equal: int | None = None) -> tuple[Cells, ...]:
    """Cells of each column.

    Parameters
    ----------
    most : largest number of whole numbers that have cells of their own.
    equal : number of equal cells of any other number, instead of round numbers.
    """
    found = []
    real = code = 0
    for column in schema.encoded:
        points, whole = column.points(most, equal)
        points, atoms = _with_atoms(column, points, whole)
        places = real if column.on_line else -1, code if column.cardinality else -1
        count = len(points) + column.missing if column.on_line else column.cardinality
        found.append(Cells(*places, points, count, whole, atoms))
        real, code = real + column.on_line, code + bool(column.cardinality)
    return tuple(found)


def _with_atoms(column: Column, points: Floats, whole: bool) -> tuple[Floats, tuple[int, ...]]:
    """Points of a line with those of the column's atoms, and the places of these: each after the
    numbers that are not above it.
    """
    if not column.atoms:
        return points, ()
    near, beyond = column.near, np.isin(column.atoms, column.beyond)
    if whole:  # such a number always is the atom
        points = np.setdiff1d(points, near[~beyond])
    places = np.where(beyond & (near == 0), 0, np.searchsorted(points, near, "right"))
    return np.insert(points, places, near), tuple((places + np.arange(len(places))).tolist())


class PackedRows(Rows):
    """Rows of which the cells alone are kept: they are the codes, read-only, in the smallest type that
    holds them, and there are no reals. `cells_of` takes them for rows.
    """


def packed(cells: tuple[Cells, ...], rows: Rows) -> PackedRows:
    """The rows as the stages see them."""
    found = cells_of(cells, rows).astype(_packed_type(cells))
    found.setflags(write=False)
    return PackedRows(np.empty((len(rows), 0)), found)


def packed_bytes(cells: tuple[Cells, ...]) -> int:
    """Bytes of a packed row."""
    return len(cells) * _packed_type(cells).itemsize


def _packed_type(cells: tuple[Cells, ...]) -> np.dtype[Any]:
    return np.min_scalar_type(max(column.count for column in cells) - 1)


def cells_of(cells: tuple[Cells, ...], rows: Rows) -> Ints:
    """Cells of rows in the first columns of a table, or in all, shape (N, columns)."""
    if isinstance(rows, PackedRows):
        return rows.codes[:, : len(cells)]
    return np.stack([column.of(rows) for column in cells], 1)


def cells_of_last(cells: tuple[Cells, ...], rows: Rows) -> dict[int, Ints]:
    """Cells of the last columns, by number of the column, from encoded rows of these columns alone."""
    real = sum(column.real >= 0 for column in cells) - rows.reals.shape[1]
    code = sum(column.code >= 0 for column in cells) - rows.codes.shape[1]
    return {
        i: replace(own, real=max(-1, own.real - real), code=max(-1, own.code - code)).of(rows)
        for i, own in enumerate(cells)
        if own.real >= real or own.code >= code
    }


LEAST = 0.012
"""Least mass on each side of a cut between two bins."""


@dataclass(frozen=True)
class Tree:
    """Bins of one column, found by cutting the heaviest bin again and again near its middle.

    Attributes
    ----------
    bins : bin of each cell.
    masses : masses of the bins, shape (B,).
    functions : one for each cut, in order, shape (B, B - 1): constant on both sides of the cut, 0
        elsewhere; of mean 0 and mean square 1 under the masses.
    spans : 4 l r / (l + r) for a cut into masses l and r: the mass of a node that is cut in half.
    depths : number of cuts above each cut.
    """

    bins: Ints
    masses: Floats
    functions: Floats
    spans: Floats
    depths: Ints

    @property
    def count(self) -> int:
        """Number B of bins."""
        return len(self.masses)

    def alike(self) -> Floats:
        """Kernel of two bins: the share of scales, from all bins together to single ones, at which
        they are together; shape (B, B).
        """
        deepest = int(self.depths.max(initial=-1)) + 1
        found = np.eye(self.count)
        for depth in range(deepest + 1):
            cut = self.functions[:, self.depths < depth]
            together = np.abs(cut[:, None] - cut[None]).sum(2) == 0
            found += together
        return np.asarray(found / (deepest + 2))


def grow(cells: Cells, shares: Floats, most: int) -> Tree:
    """Tree of at most `most` bins of a column, from the shares of its cells, shape (cells,)."""
    starts: list[int] = [0]
    ends: list[int] = [len(shares)]
    cuts: list[tuple[int, int, int, int]] = []
    depths: list[int] = []
    below = [0]
    total = np.concatenate([[0.0], np.cumsum(shares)])
    total /= total[-1]
    while len(starts) < most:
        masses = total[ends] - total[starts]
        for leaf in np.argsort(-masses, kind="stable"):
            low, high = starts[leaf], ends[leaf]
            first = not cuts and cells.gap
            cut = high - 1 if first else _middle(total, low, high)
            if min(total[cut] - total[low], total[high] - total[cut]) >= LEAST:
                break
            if first and (other := _middle(total, low, high)) and _cuttable(total, low, other, high):
                cut = other
                break
        else:
            break
        cuts.append((low, cut, high, len(cuts)))
        depths.append(below[leaf])
        below[leaf] += 1
        ends[leaf] = cut
        starts.append(cut)
        ends.append(high)
        below.append(below[leaf])
    order = np.argsort(starts)
    bounds = np.append(np.array(starts)[order], len(shares))
    masses = np.diff(total[bounds])
    bins = np.repeat(np.arange(len(order)), np.diff(bounds))
    functions = np.zeros((len(order), len(cuts)))
    spans = np.zeros(len(cuts))
    for low, cut, high, k in cuts:
        left, right = total[cut] - total[low], total[high] - total[cut]
        spans[k] = 4 * left * right / (left + right)
        functions[(bounds[:-1] >= low) & (bounds[:-1] < cut), k] = -np.sqrt(right / left / (left + right))
        functions[(bounds[:-1] >= cut) & (bounds[:-1] < high), k] = np.sqrt(left / right / (left + right))
    return Tree(bins, masses, functions, spans, np.array(depths, np.int64))


def _middle(total: Floats, low: int, high: int) -> int:
    """Cut of cells low to high that comes nearest to half of their mass; `low` if there is none."""
    if high - low < 2:
        return low
    inner = total[low + 1 : high]
    return low + 1 + int(np.abs(inner - (total[low] + total[high]) / 2).argmin())


def _cuttable(total: Floats, low: int, cut: int, high: int) -> bool:
    return bool(min(total[cut] - total[low], total[high] - total[cut]) >= LEAST)


@dataclass(frozen=True)
class BinFunctions:
    """Feature vectors of the bins of one column: the first functions of its tree, weighted.

    Bin b has the vector sqrt(w) * (functions[b] - offset), with w the weights, of norm at most 1;
    the offset is near the centre of the least ball around all of them.

    Attributes
    ----------
    values : shape (B, r).
    weights, offset : shape (r,).
    least : least inner product of two of the vectors, or 0 if that is larger.
    """

    values: Floats
    weights: Floats
    offset: Floats
    least: float

    @property
    def count(self) -> int:
        """Number r of functions."""
        return len(self.weights)


def features(tree: Tree, most: int, decay: float) -> BinFunctions:
    """BinFunctions by the first `most` - 1 cuts of a tree, of weights span^decay."""
    count = min(most, tree.count) - 1
    weights = tree.spans[:count] ** decay
    points = tree.functions[:, :count] * np.sqrt(weights)
    if not count:
        return BinFunctions(points, weights, weights, 0.0)
    centre = _known_centre(points.tobytes(), count)
    apart = points - centre
    largest = float((apart**2).sum(1).max())
    offset = centre / np.sqrt(weights)
    values, weights = apart / np.sqrt(largest), weights / largest
    return BinFunctions(values, weights, offset, min(0.0, float((values @ values.T).min())))


@lru_cache(maxsize=64)
def _known_centre(points: bytes, dimension: int) -> Floats:
    """The centre, kept since the stages of a release and its rows ask for the same ones."""
    return _centre(np.frombuffer(points).reshape(-1, dimension))


def _centre(points: Floats, steps: int = 300) -> Floats:
    """Nearly the centre of the least ball around points (Badoiu and Clarkson 2003)."""
    centre = points.mean(0)
    if points.shape[1] == 1:  # the same in plain numbers, to the last bit, and many times faster
        line, at = points[:, 0].tolist(), float(centre[0])
        for step in range(1, steps):
            apart = [(x - at) * (x - at) for x in line]
            at = at + (line[apart.index(max(apart))] - at) / (step + 1)
        return np.array([at])
    for step in range(1, steps):
        far = ((points - centre) ** 2).sum(1).argmax()
        centre = centre + (points[far] - centre) / (step + 1)
    return np.asarray(centre)


def squared_diameter(found: Sequence[BinFunctions], pairs: Ints) -> float:
    r"""Bound on the squared distance of the products of two rows' vectors over pairs of columns.

    With n, n' <= 1 the squared norms of the two rows' vectors in a column, and -m <= k <= 1 their
    inner product, the squared distance over the pairs is sum n_i n_j + n'_i n'_j - 2 k_i k_j, at
    most 2 P - 2 sum k_i k_j. The sum of the k_i k_j is at least the sum over the pairs of
    -max(m_i, m_j), and at least lambda d / 2 with lambda the least eigenvalue of the pairs' graph
    on its d columns. For all pairs of d columns, lambda = -1; then t k_i - t^2 / 2 <= (sum k)^2 / 2
    sharpens it, for any t.
    """
    least = np.array([f.least for f in found])
    active = np.array([f.count > 0 for f in found])
    pairs = pairs[active[pairs].all(1)]
    if not len(pairs):
        return 0.0
    columns = np.unique(pairs)
    count, d = len(pairs), len(columns)
    lowest = -float(np.maximum(-least[pairs[:, 0]], -least[pairs[:, 1]]).sum())
    if count == d * (d - 1) // 2:
        m = -least[columns]
        for t in np.linspace(-0.5, 1, 61):
            ends = np.minimum(2 * t - 1, -2 * t * m - m**2).sum() / 2 - t**2 / 2
            lowest = max(lowest, float(ends))
    else:
        graph = np.zeros((d, d))
        at = np.searchsorted(columns, pairs)
        graph[at[:, 0], at[:, 1]] = graph[at[:, 1], at[:, 0]] = 1
        lowest = max(lowest, d / 2 * (float(np.linalg.eigvalsh(graph)[0]) - 1e-9 * d))
    return 2 * (count - lowest)
