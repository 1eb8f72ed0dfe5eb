"""Extremely randomised trees that learn expected labels, whose predictions serve as further inputs.

A kernel grows them, since to import scikit-learn's takes longer than to learn from most tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints

TREES, LEAST = 100, 5
"""Number of trees, and fewest rows of a leaf."""

ROWS, SHARE = 500, 4
"""One tree learns from so many rows, or from all if there are fewer, and from one in four if these are more."""

ARRAYS = ("roots", "feature", "threshold", "left", "values")


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees one after the other.

    Attributes
    ----------
    roots : number of the root of each tree, and the number of nodes.
    feature : feature by which each node splits, -1 for a leaf.
    threshold : rows up to it go left.
    left : left child, counted from the root; the right one is the next.
    values : means of the targets at each node, less that at the root, shape (nodes, k).
    """

    roots: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    values: Floats

    def predict(self, inputs: Floats, used: Ints | None = None) -> Floats:
        """Means over the trees, or over those that are used for a row; shape (n, p) -> (n, k)."""
        from thesis_cli.structured.forest_kernels import leaf_means

        found = np.empty((len(inputs), self.values.shape[1]))
        used = np.zeros((0, 0), np.int64) if used is None else used
        inputs = np.ascontiguousarray(inputs, np.float64)
        leaf_means(inputs, self.roots, self.feature, self.threshold, self.left, self.values, used, found)
        return found

    def arrays(self) -> dict[str, Floats]:
        """The trees as arrays of numbers, by name."""
        return {name: np.asarray(getattr(self, name), np.float64) for name in ARRAYS}

    @classmethod
    def of(cls, arrays: Mapping[str, Floats], columns: int) -> Forest:
        """The inverse of `arrays`. Raises ValueError if they make no trees on so many columns."""
        roots, feature, left = (arrays[name].astype(np.int64) for name in ("roots", "feature", "left"))
        threshold, values, nodes = arrays["threshold"], arrays["values"], len(feature)
        sizes = np.diff(roots)
        if (
            any(array.ndim != 1 for array in (roots, feature, left, threshold))
            or not len(threshold) == len(left) == len(values) == nodes == roots[-1]
            or values.ndim != 2
            or roots[0] != 0
            or (sizes < 1).any()
        ):
            raise ValueError
        inner, size = feature >= 0, np.repeat(sizes, sizes)
        place = np.arange(nodes) - np.repeat(roots[:-1], sizes)
        if (
            (inner & ((left <= place) | (left + 1 >= size))).any()
            or (feature >= columns).any()
            or not np.isfinite(values).all()
        ):
            raise ValueError
        return cls(roots, feature, threshold, left, values)


def grown(inputs: Floats, targets: Floats, rng: np.random.Generator) -> tuple[Forest, Floats]:
    """Trees on samples of the rows with replacement, and what the trees whose sample lacks a row predict
    for it; shapes (m, p), (m, k) -> (m, k).

    The latter are what predictions of new rows are like, so that a model may learn from them. They are
    differences from the mean of the tree's sample: a mean that lacks a row tells, among other rows, what that
    row is. A tree compares about the square root of p splits at a node.
    """
    from thesis_cli.structured.forest_kernels import grow

    inputs, targets = np.ascontiguousarray(inputs), np.ascontiguousarray(targets, np.float64)
    count = len(inputs)
    size = min(count, max(ROWS, count // SHARE))
    absent, parts = np.ones((TREES, count), np.int64), []
    for tree in range(TREES):
        rows = rng.integers(count, size=size)
        absent[tree, rows] = 0
        tries = max(1, round(inputs.shape[1] ** 0.5))
        feature, threshold, left, values = grow(rng, inputs, targets, rows, tries, LEAST)
        parts.append((feature, threshold, left, values - values[0]))
    roots = np.cumsum([0, *(len(part[0]) for part in parts)])
    found = Forest(roots, *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    absent[:, absent.sum(axis=0) == 0] = 1
    return found, found.predict(inputs, absent)
