r"""An upper bound on the expanded maximum of attractive binary models, by one minimum cut.

The counts of each variable are split into blocks. With W_e >= 0 and S_i the sum of the W_e at i,

    W q_i q_j = W (q_i^2 + q_j^2) / 2 - W (q_i - q_j)^2 / 2,

so that the value is a sum of functions of one variable, u_i q + h_i + S_i q^2 / 2, each at most its
maximum over a block, and of -W (q_i - q_j)^2 / 2, at most -W / 2 times the squared distance of two
blocks. The sum of these bounds over blocks, one for each variable, is supermodular, and a minimum
cut with a node for each boundary between blocks maximises it (Ishikawa, 2003). Blocks of one count
have no error; splitting those of the maximiser lowers the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel, MinimumCut
from thesis_cli.perturbation.expanded.pairs import Box, PairwiseCopies

ARCS = 2**18
"""Most links of a cut."""

FEW = 4
"""Blocks of a variable below which a cut is not worth its time."""

PARTS = 4
"""Blocks into which one is split."""


class BlockBound(NamedTuple):
    """An upper bound on the maximum over a box, and where it is attained.

    Attributes
    ----------
    upper : nats.
    chosen : the blocks that attain it, with bounds that include both ends.
    """

    upper: float
    chosen: Box


@dataclass(frozen=True)
class Blocks:
    """Blocks of the counts of each variable of an attractive model.

    Attributes
    ----------
    starts : the least counts of the blocks of each variable, ascending, the first that of the box.
    """

    pairs: PairwiseCopies
    box: Box
    starts: tuple[Ints, ...]

    @classmethod
    def around(cls, pairs: PairwiseCopies, box: Box, centre: Ints) -> Blocks | None:
        """Blocks that are small near the ends of the box and near a centre.

        None if the model is not attractive, or has so many edges that there could be few blocks.
        """
        edges = len(pairs.couplings)
        most = pairs.noise.copies + 1 if not edges else int((ARCS / edges) ** 0.5)
        if (pairs.couplings < 0).any() or most < FEW:
            return None
        found = [_blocks(int(a), int(b), int(c), most) for a, b, c in zip(box.low, box.high, centre, strict=True)]
        return cls(pairs, box, tuple(found))

    @property
    def links(self) -> int:
        """An upper bound on the number of links of the cut."""
        sizes = np.array([s.size for s in self.starts])
        i, j = self.pairs.model.edges.T
        return int((sizes[i] * sizes[j]).sum())

    def split(self, chosen: Box) -> Blocks:
        """The same blocks, those that were chosen in smaller ones."""
        starts = []
        for old, low, high in zip(self.starts, chosen.low, chosen.high, strict=True):
            ends = np.linspace(low, high + 1, PARTS + 1).astype(np.int64)[:-1]
            starts.append(np.unique(np.concatenate([old, ends])))
        return Blocks(self.pairs, self.box, tuple(starts))

    def bound(self) -> BlockBound:
        """The maximum of the bounds over all choices of blocks."""
        m = self.pairs.noise.copies
        lows = [s / m for s in self.starts]
        highs = [np.append(s[1:] - 1, high) / m for s, high in zip(self.starts, self.box.high, strict=True)]
        own = self._own()
        first = np.cumsum([0, *(s.size - 1 for s in self.starts)])
        unary = np.concatenate([np.diff(one) for one in own])
        constant = self.pairs.constant + sum(float(one[0]) for one in own)
        edges, tables = _chains(first)
        for (i, j), w in zip(self.pairs.model.edges, self.pairs.couplings, strict=True):
            gaps = np.maximum(np.subtract.outer(lows[i], highs[j]), -np.subtract.outer(highs[i], lows[j]))
            joint = -w / 2 * np.maximum(gaps, 0.0) ** 2
            constant += float(joint[0, 0])
            unary[first[i] : first[i + 1]] += np.diff(joint[:, 0])
            unary[first[j] : first[j + 1]] += np.diff(joint[0])
            both = np.diff(np.diff(joint, axis=0), axis=1)
            a, b = np.nonzero(both > 0)
            edges.append(np.stack([first[i] + a, first[j] + b], axis=1))
            tables.append(np.zeros((a.size, 2, 2)))
            tables[-1][:, 1, 1] = both[a, b]
        model = BinaryModel(
            np.stack([np.zeros(unary.size), unary], axis=1), np.concatenate(edges), np.concatenate(tables), constant
        )
        values, states = MinimumCut(model).maximise(np.zeros((1, unary.size, 2)))
        picks = np.add.reduceat(np.append(states[0], 0), first[:-1]) * (np.diff(first) > 0)
        low = np.array([s[p] for s, p in zip(self.starts, picks, strict=True)])
        high = np.array([np.append(s[1:] - 1, h)[p] for s, h, p in zip(self.starts, self.box.high, picks, strict=True)])
        return BlockBound(float(values[0]) + 1e-12 * abs(float(values[0])), Box(low, high))

    def _own(self) -> list[Floats]:
        """Maxima of u_i q + h_i + S_i q^2 / 2 over the blocks of each variable."""
        pairs, m = self.pairs, self.pairs.noise.copies
        i, j = pairs.model.edges.T
        n = len(self.starts)
        squares = np.bincount(i, pairs.couplings, n) + np.bincount(j, pairs.couplings, n)
        found = []
        for v, starts in enumerate(self.starts):
            counts = np.arange(self.box.low[v], self.box.high[v] + 1)
            q = counts / m
            values = pairs.field[v] * q + pairs.means(v, counts) + squares[v] / 2 * q**2
            found.append(np.maximum.reduceat(values, starts - starts[0]))
        return found


def _chains(first: Ints) -> tuple[list[Ints], list[Floats]]:
    """Links between the boundaries of each variable: none is passed before the one below it."""
    below = np.setdiff1d(np.arange(first[-1] - 1), first[1:-1] - 1)
    tables = np.zeros((below.size, 2, 2))
    tables[:, 0, 1] = -np.inf
    return [np.stack([below, below + 1], axis=1)], [tables]


def _blocks(low: int, high: int, centre: int, most: int) -> Ints:
    """Least counts of at most `most` blocks of the counts from low to high."""
    if high - low < most:
        return np.arange(low, high + 1)
    even = np.linspace(low, high, most // 3).astype(np.int64)
    doubling = max(1, most // 6)
    steps = np.unique(np.round((high - low) ** (np.arange(doubling) / doubling)).astype(np.int64))
    near = np.concatenate([low + steps, high - steps, centre - steps, centre + steps, [high, centre, centre + 1]])
    found: Ints = np.unique(np.concatenate([even, near[(near >= low) & (near <= high)]]))
    return found
