r"""Expanded binary pairwise models: what all maximisers share, an upper bound, a cut.

With c_i copies of variable i in state 1, q_i = c_i / M, the value is

    sum_i (u_i q_i + h_i(c_i)) + sum_e W_e q_i q_j + constant,

where h_i is concave: the best c copies are those of the largest differences of noise. Given the
others, the best c_i is the number of differences above -(u_i + sum_j W_ij q_j).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import UnsuitableModel
from thesis_cli.inference.graph_cut import BinaryModel, MinimumCut
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.expanded_kernels import CopyNoise

ROUNDS = 1000
"""Most steps of a bracket, which only a model near its critical coupling needs."""

ARCS = 2**18
"""Most links of a cut: 0.3 s."""

FEW = 4
"""Groups of copies of a variable below which a cut is not worth its time."""

STEPS = 200
"""Most evaluations of the dual for an upper bound."""


@dataclass(frozen=True)
class Box:
    """Bounds on the numbers of copies in state 1, shape (n,) each."""

    low: Ints
    high: Ints

    @property
    def single(self) -> bool:
        return bool((self.low == self.high).all())


@dataclass(frozen=True)
class PairwiseCopies:
    """An expanded binary pairwise model without impossible configurations.

    Attributes
    ----------
    noise : of the copies.
    model : the binary model.
    free : variables with two states, shape (n,).
    """

    noise: CopyNoise
    model: BinaryModel
    free: Bools

    @classmethod
    def of(cls, graph: FactorGraph, noise: CopyNoise) -> Self | None:
        """The model in this form; None if it has more states, larger factors or `-inf`."""
        if graph.has_zeros or max(graph.cardinalities) > 2:
            return None
        try:
            return cls(noise, BinaryModel.of(graph), np.array(graph.cardinalities) == 2)
        except UnsuitableModel:  # a factor of three variables
            return None

    @cached_property
    def _field(self) -> Floats:
        """u, shape (n,)."""
        i, j = self.model.edges.T
        t, n = self.model.tables, len(self.free)
        own = np.where(self.free, self.model.unary[:, 1] - self.model.unary[:, 0], 0.0)
        own += np.bincount(i, t[:, 1, 0] - t[:, 0, 0], n) + np.bincount(j, t[:, 0, 1] - t[:, 0, 0], n)
        return np.asarray(own)

    @cached_property
    def _couplings(self) -> Floats:
        """W, shape (E,)."""
        t = self.model.tables
        return np.asarray(t[:, 0, 0] + t[:, 1, 1] - t[:, 0, 1] - t[:, 1, 0])

    @cached_property
    def _attractive(self) -> bool:
        """Whether no edge is repulsive after some flips."""
        try:
            MinimumCut(self.model)
        except UnsuitableModel:  # a frustrated cycle
            return False
        return True

    @property
    def _constant(self) -> float:
        """The value with all copies in state 0, without their noise."""
        return float(self.model.constant + self.model.unary[:, 0].sum() + self.model.tables[:, 0, 0].sum())

    def best_counts(self, tilt: Floats, box: Box) -> Ints:
        """Number of copies of each variable whose difference of noise is above -tilt, within a box."""
        low, high = box.low.copy(), box.high.copy()
        places = self.noise.places[:-1]
        while (open_ := low < high).any():
            middle = (low + high) // 2
            more = open_.copy()
            more[open_] = self.noise.numbers[(places + middle)[open_]] > -tilt[open_]
            low, high = np.where(more, middle + 1, low), np.where(more, high, np.where(open_, middle, high))
        return low

    def mean_noise(self, counts: Ints) -> Floats:
        """h_i at these counts, shape (n,)."""
        last = self.noise.places[:-1] + self.noise.copies + counts - 1
        found = self.noise.base.copy()
        some = counts > 0
        found[some] += self.noise.numbers[last[some]] / self.noise.copies
        return found

    def bracket(self) -> Box:
        """Bounds that hold at all maximisers, and at all counts that no variable can improve alone.

        If the counts of all lie in a box, the tilt of each variable lies in an interval, and so does
        its best count. In an attractive model this is ascent from all copies in state 0 and from all
        in state 1.
        """
        i, j = self.model.edges.T
        n, m, w = len(self.free), self.noise.copies, self._couplings
        heads, tails = np.concatenate([i, j]), np.concatenate([j, i])
        both = np.concatenate([w, w]) / m
        rise, fall = np.maximum(both, 0.0), np.minimum(both, 0.0)
        whole = box = Box(np.zeros(n, np.int64), m * self.free.astype(np.int64))
        for _ in range(ROUNDS):
            least = self._field + np.bincount(heads, rise * box.low[tails] + fall * box.high[tails], n)
            most = self._field + np.bincount(heads, rise * box.high[tails] + fall * box.low[tails], n)
            slack = 1e-12 * (1 + np.abs(least) + np.abs(most))
            new = Box(self.best_counts(least - slack, whole), self.best_counts(most + slack, whole))
            if (new.low == box.low).all() and (new.high == box.high).all():
                break
            box = new
        return box

    def upper(self, box: Box) -> float:
        """An upper bound on the maximum over a box, by the envelopes of q_i q_j (McCormick).

        W q_i q_j is at most W times a mean of two linear functions; with that in its place, the
        variables fall apart. The bound is convex in the weights of the means; any weights are valid.
        """
        from scipy import optimize

        minimize: Any = optimize.minimize  # its stubs do not take a function that returns its gradient
        i, j = self.model.edges.T
        n, m, w = len(self.free), self.noise.copies, self._couplings
        low, high = box.low / m, box.high / m
        # W > 0: from above by chords at (low, high) and (high, low); W < 0: from below by those at
        # (low, low) and (high, high).
        other = np.where(w > 0, high[j], low[j]), np.where(w > 0, low[j], high[j])
        one, two = (low[i], other[0]), (high[i], other[1])
        of_i, of_j = np.stack([one[1], two[1]]), np.stack([one[0], two[0]])
        constants = -of_i * of_j

        def bound(weights: Floats) -> tuple[float, Floats]:
            mix = np.stack([weights, 1 - weights])
            tilt = self._field + np.bincount(i, w * (mix * of_i).sum(0), n) + np.bincount(j, w * (mix * of_j).sum(0), n)
            counts = self.best_counts(tilt, box)
            q = counts / m
            value = (tilt * q + self.mean_noise(counts)).sum() + (w * (mix * constants).sum(0)).sum()
            planes = of_i * q[i] + of_j * q[j] + constants
            return float(value + self._constant), np.asarray(w * (planes[0] - planes[1]))

        start = np.full(len(w), 0.5)
        if not len(w):
            return bound(start)[0]
        limits = [(0.0, 1.0)] * len(w)
        found = minimize(bound, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxfun": STEPS})
        return min(bound(start)[0], bound(np.clip(found.x, 0.0, 1.0))[0])

    def cut(self, box: Box, centre: Ints | None = None) -> tuple[Ints, bool] | None:
        """The best counts among some in a box, by one minimum cut with a node for a group of copies.

        Copies that are neighbours in the order of their differences change together. The groups are
        small near the ends of the box and near a centre.

        Returns
        -------
        counts : of the best states of the groups, shape (n,).
        whole : whether each group is one copy, so that these counts are the best of the box.

        None if the model is not attractive after any flips, or has too many links.
        """
        i, j = self.model.edges.T
        n, m, w = len(self.free), self.noise.copies, self._couplings
        most = m if not len(w) else int((ARCS / len(w)) ** 0.5)
        if most < FEW or not self._attractive:
            return None
        groups = [_groups(box.low[v], box.high[v], most, None if centre is None else centre[v]) for v in range(n)]
        first = np.cumsum([0, *(len(g) - 1 for g in groups)])
        owner = np.repeat(np.arange(n), np.diff(first))
        begin = np.concatenate([g[:-1] for g in groups]).astype(np.int64)
        end = np.concatenate([g[1:] for g in groups]).astype(np.int64)
        sizes = (end - begin) / m
        before = self.noise.places[owner] + m - 1  # the place of a partial sum of no differences
        partial = self.noise.numbers[before + end] - np.where(begin > 0, self.noise.numbers[before + begin], 0.0)
        tilt = self._field + np.bincount(i, w * box.low[j] / m, n) + np.bincount(j, w * box.low[i] / m, n)
        unary = np.stack([np.zeros(first[-1]), partial / m + sizes * tilt[owner]], axis=1)
        edges, tables = self._links(first, sizes)
        _, states = MinimumCut(BinaryModel(unary, edges, tables)).maximise(np.zeros((1, first[-1], 2)))
        counts = box.low + np.bincount(owner, states[0] * (end - begin), n).astype(np.int64)
        return counts, bool((end - begin == 1).all())

    def _links(self, first: Ints, sizes: Floats) -> tuple[Ints, Floats]:
        """Links between all groups of neighbours, and their tables."""
        edges, tables = [np.empty((0, 2), np.int64)], [np.empty((0, 2, 2))]
        for (i, j), w in zip(self.model.edges, self._couplings, strict=True):
            a, b = np.arange(first[i], first[i + 1]), np.arange(first[j], first[j + 1])
            edges.append(np.stack([np.repeat(a, b.size), np.tile(b, a.size)], axis=1))
            table = np.zeros((a.size * b.size, 2, 2))
            table[:, 1, 1] = w * np.multiply.outer(sizes[a], sizes[b]).reshape(-1)
            tables.append(table)
        return np.concatenate(edges), np.concatenate(tables)


def _groups(low: int, high: int, most: int, centre: int | None) -> Ints:
    """Ends of at most `most` groups of the copies between two counts, the first and last included."""
    if high - low <= most:
        return np.arange(low, high + 1)
    places = [low, high] if centre is None else [low, high, int(np.clip(centre, low, high))]
    doubling = max(1, most // (2 * len(places)))
    steps = np.unique(np.round((high - low) ** (np.arange(doubling) / doubling)).astype(np.int64))
    near = np.concatenate([place + sign * steps for place in places for sign in (-1, 1)])
    kept = np.unique(np.concatenate([places, near[(near > low) & (near < high)]]))
    return kept[np.round(np.linspace(0, len(kept) - 1, min(len(kept), most + 1))).astype(np.int64)]
