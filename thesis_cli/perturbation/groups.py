"""Groups of perturbations, each with its own random stream, that threads share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

GROUPS = 32
"""Most groups; each has a random stream."""


def groups(count: int) -> list[slice]:
    """Split `count` perturbations into groups of consecutive ones, the larger groups first."""
    return [slice(int(g[0]), int(g[-1]) + 1) for g in np.array_split(np.arange(count), min(GROUPS, count))]


def streams(count: int, seed: np.random.SeedSequence) -> list[np.random.Generator]:
    """The random stream of each group of `count` perturbations."""
    return [np.random.default_rng(child) for child in seed.spawn(len(groups(count)))]


def rounds(count: int, most: int) -> Iterator[list[slice]]:
    """Split groups into parts of at most `most` perturbations: all first parts, all second, ...

    Each round is a list of parts, one for each of the first groups; later rounds may have fewer.
    """
    whole = groups(count)
    for offset in range(0, whole[0].stop, most):
        parts = [slice(g.start + offset, min(g.start + offset + most, g.stop)) for g in whole]
        yield [part for part in parts if part.start < part.stop]
