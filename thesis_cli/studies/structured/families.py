"""The exponential families of the experiments on schedules and chains."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.space import Space
from thesis_cli.studies.structured.needle import Needle

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
    scaled: Floats = vector * (bound / (found.radius * np.linalg.norm(vector)))
    return scaled


def _longest(features: Floats) -> Floats:
    return features[[np.linalg.norm(features, axis=1).argmax()]]
