"""The exponential families of the experiments on schedules and chains.

On the needle, the bounds on schedules and on META are tight.
"""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.hypercube import Hypercube
from thesis_cli.structured.space import Maxima, Space


class Needle(Hypercube):
    """Vertices of a hypercube with one feature, 1 where all bits are 1 and -1 elsewhere.

    All log-potentials are R |theta| or -R |theta|, so Cauchy and Schwarz lose nothing, and 2^elements
    decides at which temperature the two have equal masses.
    """

    name = "needle"

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.dimension, self.radius = 1, 1.0

    def features(self, structures: Ints) -> Floats:
        return np.asarray(np.where(structures.all(axis=1), 1.0, -1.0)[:, None])

    def log_partition(self, weights: Floats) -> Floats:
        theta = self.checked(weights)[:, 0]
        return np.asarray(np.logaddexp(theta, np.log(2.0**self.elements - 1) - theta))

    def mean_features(self, weights: Floats) -> Floats:
        theta = self.checked(weights)[:, :1]
        return np.asarray(np.tanh(theta - np.log(2.0**self.elements - 1) / 2))

    def maximise(self, weights: Floats) -> Maxima:
        theta = self.checked(weights)[:, 0]
        rows = np.repeat((theta > 0).astype(np.int64)[:, None], self.width, axis=1)
        return Maxima(np.abs(theta), rows, exact=True)

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        share = (1 + self.mean_features(weights[None])[0, 0]) / 2
        rows = self.sample(count, rng)
        while (needles := rows.all(axis=1)).any():
            rows[needles] = self.sample(int(needles.sum()), rng)
        rows[rng.random(count) < share] = 1
        return rows


TREE = [-1, *((node - 1) // 2 for node in range(1, 15))]
"""Parents of the 15 nodes of a complete binary tree."""

FAMILIES: dict[str, tuple[str, int, str | None]] = {
    "labels": ("hypercube", 8, "linear"),
    "label pairs": ("hypercube", 8, "pairs"),
    "rankings": ("permutations", 5, "positions"),
    "item scores": ("permutations", 5, "ranks"),
    "cycles": ("cycle-sets", 6, "edges"),
    "subtrees": ("subtrees", 15, "nodes"),
    "partitions": ("partitions", 6, "pairs"),
}
"""Spaces of a few hundred structures: name, elements and features."""

NEEDLE = "needle"
DIRECTIONS = "random", "aligned", "opposite"


def family(name: str) -> Space:
    """A space of `FAMILIES`, or `needle DIGITS` for a `Needle` of so many bits."""
    if name.startswith(NEEDLE):
        return Needle(int(name.removeprefix(NEEDLE)))
    kind, elements, features = FAMILIES[name]
    return space(kind, elements, features, TREE if kind == "subtrees" else None)


def weights_of_length(found: Space, bound: float, direction: str, rng: np.random.Generator) -> Floats:
    """A weight vector with R |theta| = bound, shape (dimension,).

    Parameters
    ----------
    direction : `random`; `aligned` with the features of a structure for which |phi| = R, so that its
        log-potential attains the bound; or `opposite` to them.
    """
    if direction == "random":
        vector = rng.normal(size=found.dimension)
    else:
        longest = np.concatenate([_longest(found.features(block)) for block in found.blocks()])
        vector = _longest(longest)[0] * (1 if direction == "aligned" else -1)
    return np.asarray(vector * (bound / (found.radius * np.linalg.norm(vector))))


def _longest(features: Floats) -> Floats:
    return features[[np.linalg.norm(features, axis=1).argmax()]]
