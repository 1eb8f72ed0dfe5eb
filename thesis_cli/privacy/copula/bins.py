"""Bins of columns, of near equal mass, and orthonormal functions on them.

All of it is made from distributions that are public: noisy ones of an earlier stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.privacy.copula.cells import Cells

LEAST = 0.012
"""Least mass on each side of a cut between two bins."""


@dataclass(frozen=True)
class Tree:
    """Bins of one column, found by cutting the heaviest bin again and again near its middle.

    Attributes
    ----------
    bins : bin of each cell.
    masses : of the bins, shape (B,).
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
    """Tree of at most `most` bins of a column, from the shares of its cells."""
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
class Features:
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


def features(tree: Tree, most: int, decay: float) -> Features:
    """Features by the first `most` - 1 cuts of a tree, of weights span^decay."""
    count = min(most, tree.count) - 1
    weights = tree.spans[:count] ** decay
    points = tree.functions[:, :count] * np.sqrt(weights)
    if not count:
        return Features(points, weights, weights, 0.0)
    centre = _centre(points)
    apart = points - centre
    largest = float((apart**2).sum(1).max())
    offset = centre / np.sqrt(weights)
    values, weights = apart / np.sqrt(largest), weights / largest
    return Features(values, weights, offset, min(0.0, float((values @ values.T).min())))


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


def squared_diameter(found: Sequence[Features], pairs: Ints) -> float:
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
