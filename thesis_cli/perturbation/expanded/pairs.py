r"""Expanded binary pairwise models: what all maximisers share, and an upper bound.

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
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.expanded.kernels import CopyNoise

ROUNDS = 1000
"""Most steps of a bracket, which only a model near its critical coupling needs."""

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
    def field(self) -> Floats:
        """u, shape (n,)."""
        i, j = self.model.edges.T
        t, n = self.model.tables, len(self.free)
        own = np.where(self.free, self.model.unary[:, 1] - self.model.unary[:, 0], 0.0)
        own += np.bincount(i, t[:, 1, 0] - t[:, 0, 0], n) + np.bincount(j, t[:, 0, 1] - t[:, 0, 0], n)
        return np.asarray(own)

    @cached_property
    def couplings(self) -> Floats:
        """W, shape (E,)."""
        t = self.model.tables
        return np.asarray(t[:, 0, 0] + t[:, 1, 1] - t[:, 0, 1] - t[:, 1, 0])

    @property
    def constant(self) -> float:
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

    def means(self, v: int, counts: Ints) -> Floats:
        """h_v at these counts of one variable."""
        sums = self.noise.numbers[self.noise.places[v] + self.noise.copies + np.maximum(counts, 1) - 1]
        return np.asarray(self.noise.base[v] + np.where(counts > 0, sums, 0.0) / self.noise.copies)

    def bracket(self) -> Box:
        """Bounds that hold at all maximisers, and at all counts that no variable can improve alone.

        If the counts of all lie in a box, the tilt of each variable lies in an interval, and so does
        its best count. In an attractive model this is ascent from all copies in state 0 and from all
        in state 1.
        """
        i, j = self.model.edges.T
        n, m, w = len(self.free), self.noise.copies, self.couplings
        heads, tails = np.concatenate([i, j]), np.concatenate([j, i])
        both = np.concatenate([w, w]) / m
        rise, fall = np.maximum(both, 0.0), np.minimum(both, 0.0)
        whole = box = Box(np.zeros(n, np.int64), m * self.free.astype(np.int64))
        for _ in range(ROUNDS):
            least = self.field + np.bincount(heads, rise * box.low[tails] + fall * box.high[tails], n)
            most = self.field + np.bincount(heads, rise * box.high[tails] + fall * box.low[tails], n)
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
        n, m, w = len(self.free), self.noise.copies, self.couplings
        low, high = box.low / m, box.high / m
        # W > 0: from above by chords at (low, high) and (high, low); W < 0: from below by those at
        # (low, low) and (high, high).
        other = np.where(w > 0, high[j], low[j]), np.where(w > 0, low[j], high[j])
        one, two = (low[i], other[0]), (high[i], other[1])
        of_i, of_j = np.stack([one[1], two[1]]), np.stack([one[0], two[0]])
        constants = -of_i * of_j

        def bound(weights: Floats) -> tuple[float, Floats]:
            mix = np.stack([weights, 1 - weights])
            tilt = self.field + np.bincount(i, w * (mix * of_i).sum(0), n) + np.bincount(j, w * (mix * of_j).sum(0), n)
            counts = self.best_counts(tilt, box)
            q = counts / m
            value = (tilt * q + self.mean_noise(counts)).sum() + (w * (mix * constants).sum(0)).sum()
            planes = of_i * q[i] + of_j * q[j] + constants
            return float(value + self.constant), np.asarray(w * (planes[0] - planes[1]))

        start = np.full(len(w), 0.5)
        if not len(w):
            return bound(start)[0]
        limits = [(0.0, 1.0)] * len(w)
        found = minimize(bound, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxfun": STEPS})
        return min(bound(start)[0], bound(np.clip(found.x, 0.0, 1.0))[0])
