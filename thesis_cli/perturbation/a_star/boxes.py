"""A binary tree of boxes, each half its parent by the mass of the proposal, with upper bounds of
the log-ratio."""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.models.proposals import MOST_DIMENSIONS
from thesis_cli.models.targets import Target, split_dimension

NARROWEST = 2.0**-26
"""Least width of a box relative to its coordinates; the halves of a narrower box could not be told
apart."""

MOST_BOXES = 2**16
"""Largest number of boxes of a tree; once it is reached, no box is split."""

SLACK = 1e-9
"""A bound counts as violated when o exceeds it by more than this, relatively."""

WASTE = 1.0
"""A box is split once it has cost this many evaluations that a tight bound would have saved."""

BUDGET = 1_000_000
"""Default limit on the evaluations of o in one sample."""

HALF_STEP = 2.0**-54
"""Half the spacing of `Generator.random`: added, the uniform is never 0."""

LEAST = float(np.finfo(np.float64).tiny)
"""Replaces a waiting time of 0, whose logarithm would be infinite."""

Box = tuple[Floats, Floats]


class Boxes:
    """The tree of one target. The bound of a box that is split is at most the larger bound of its
    halves.

    Attributes
    ----------
    bounds : upper bound of o by box.
    children : number of the first of two consecutive halves by box; 0 for a leaf.
    depths : depth by box; a box holds 2^-depth of the proposal's mass.
    parents : parent by box.
    evaluations, bounded, splits : evaluations of o, evaluations of bounds, and splits so far.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        low, high = np.asarray(target.proposal.low, float), np.asarray(target.proposal.high, float)
        if not (1 <= low.size <= MOST_DIMENSIONS and np.isfinite(high - low).all()):
            raise InputError(
                f"the proposal has {low.size} dimensions", f"it must have 1 to {MOST_DIMENSIONS}, with finite ends"
            )
        self._boxes: list[Box] = [(low, high)]
        self._halvings = [np.zeros(low.size, np.int64)]
        self._waste = [0.0]
        self.children, self.depths, self.parents = [0], [0], [0]
        self.evaluations = self.bounded = self.splits = 0
        self.bounds = [self._bound(low, high, math.inf)]

    def box(self, at: int) -> Box:
        """Lowest and highest corner of a box, shape (D,) each."""
        return self._boxes[at]

    def evaluate(self, at: int, rng: np.random.Generator) -> tuple[Floats, float]:
        """A point of the proposal within a box, shape (D,), and o there.

        Raises
        ------
        WorkFailed : o is more than its bound.
        InputError : o is nan or inf.
        """
        low, high = self._boxes[at]
        u = np.array([rng.random() + HALF_STEP for _ in range(low.size)])
        x = self.target.proposal.quantile(u, low, high)
        ratio = float(self.target.log_ratio(x))
        self.evaluations += 1
        check(x, ratio, self.bounds[at], self._boxes[at])
        self._waste[at] -= math.expm1(ratio - self.bounds[at])
        return x, ratio

    def ripe(self, at: int) -> bool:
        """Whether a leaf has wasted enough evaluations to be split."""
        return self._waste[at] >= WASTE and len(self.bounds) + 2 <= MOST_BOXES

    def split(self, at: int) -> bool:
        """Halve a leaf; False if it is too narrow."""
        low, high = self._boxes[at]
        dimension = split_dimension(self.target, low, high, self._halvings[at])
        self.bounded += 2 * low.size if low.size > 1 else 0
        middle = self.target.proposal.quantile(np.full(low.size, 0.5), low, high)[dimension]
        width = min(middle - low[dimension], high[dimension] - middle)
        if not width > NARROWEST * max(abs(low[dimension]), abs(high[dimension])):
            self._waste[at] = -math.inf
            return False
        self.children[at] = len(self.bounds)
        self.splits += 1
        left_high, right_low, halvings = high.copy(), low.copy(), self._halvings[at].copy()
        left_high[dimension] = right_low[dimension] = middle
        halvings[dimension] += 1
        for corner, other in ((low, left_high), (right_low, high)):
            self._boxes.append((corner, other))
            self._halvings.append(halvings)
            self._waste.append(0.0)
            self.children.append(0)
            self.depths.append(self.depths[at] + 1)
            self.parents.append(at)
            self.bounds.append(self._bound(corner, other, self.bounds[at]))
        while True:
            first = self.children[at]
            level = max(self.bounds[first], self.bounds[first + 1])
            if level >= self.bounds[at]:
                return True
            self.bounds[at] = level
            at = self.parents[at]

    def _bound(self, low: Floats, high: Floats, most: float) -> float:
        level = float(self.target.bound(low, high))
        self.bounded += 1
        if math.isnan(level):
            raise InputError(f"the bound of the box {corners(low, high)} is nan", "it must be an upper bound of o")
        return min(level, most)


def check(x: Floats, ratio: float, most: float, box: Box) -> None:
    """Refuse a value of o that is not finite or -inf (`InputError`), or beyond the bound of its box
    (`WorkFailed`).

    Parameters
    ----------
    x, ratio : point, shape (D,), and the value there.
    most, box : bound on o over the box, and its corners.
    """
    if math.isnan(ratio) or ratio == math.inf:
        raise InputError(f"the log-ratio is {ratio:g} at {place(x)}", "it must be a number or -inf")
    if ratio > most + SLACK * (1 + abs(most)):
        raise WorkFailed(
            f"the bound is violated: the log-ratio is {ratio:.12g} at {place(x)}, the bound of the box {corners(*box)} "
            f"is {most:.12g}"
        )


def too_loose(evaluations: int, most: float, best: float, box: Box) -> WorkFailed:
    """The error that the budget of evaluations is spent.

    Parameters
    ----------
    evaluations : their number.
    most, box : largest bound of a box that is open, and its corners.
    best : largest log-ratio found.
    """
    return WorkFailed(
        f"no sample after {evaluations:,} evaluations: the box {corners(*box)} has bound {most:.6g}, while the best "
        f"log-ratio found so far is {best:.6g}; use a tighter bound or a proposal closer to the target"
    )


def place(x: Floats) -> str:
    """A point, shape (D,), as text."""
    return f"({', '.join(f'{value:.6g}' for value in x)})"


def corners(low: Floats, high: Floats) -> str:
    """A box with corners of shape (D,) as text: a product of intervals."""
    return " x ".join(f"[{a:.6g}, {b:.6g}]" for a, b in zip(low, high, strict=True))
