"""Chi-square statistics of samplers of small spaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.partitions import Partitions
from thesis_cli.structured.space import Space
from thesis_cli.studies.structured.subtree_formulas import printed_coins, probabilities

PARENTS = [-1, 0, 0, 1, 1, 2, 2, 0, 3]
"""A tree of 9 nodes with 70 subtrees."""

SAMPLERS: dict[str, Space] = {
    "hypercube": space("hypercube", 7),
    "permutations": space("permutations", 5),
    "subtrees": space("subtrees", len(PARENTS), parents=PARENTS),
    "cycles": space("cycles", 6),
    "cycle sets": space("cycle-sets", 6),
    "partitions": space("partitions", 6),
}
"""Spaces of 60 to 203 structures, by the names of their rows."""


class Fit(NamedTuple):
    """A test that structures are uniform.

    Attributes
    ----------
    statistic : chi-square over its degrees of freedom, 1 on average for a uniform sampler.
    standard_error : its standard deviation for a uniform sampler.
    """

    statistic: float
    standard_error: float


def fit(everyone: Ints, samples: Ints) -> Fit:
    """Compare frequencies of structures with equal ones; every sample is one of all structures."""
    base = int(max(everyone.max(), samples.max())) + 2
    powers = base ** np.arange(everyone.shape[1])
    codes, sampled = (everyone + 1) @ powers, (samples + 1) @ powers
    order = np.argsort(codes)
    places = np.searchsorted(codes[order], sampled)
    counts = np.bincount(places, minlength=len(everyone))
    expected, free = len(samples) / len(everyone), len(everyone) - 1
    statistic = float(((counts - expected) ** 2).sum() / expected)
    # the variance of the statistic under a uniform multinomial distribution
    return Fit(statistic / free, float((2 * free * (1 - 1 / len(samples))) ** 0.5 / free))


def fits(size: int, rng: np.random.Generator) -> Iterator[tuple[str, Fit]]:
    """A test of each sampler by so many samples, and of two rules that are not uniform: the printed
    coins of subtrees, and partitions whose elements choose among blocks, and a new one, evenly.
    """
    for name, each in SAMPLERS.items():
        yield name, fit(np.concatenate(list(each.blocks())), each.sample(size, rng))
    tree = np.concatenate(list(SAMPLERS["subtrees"].blocks()))
    printed = probabilities(PARENTS, printed_coins(PARENTS), tree)
    yield "printed coins", fit(tree, tree[_indices(printed, size, rng)])
    even = np.concatenate(list(Partitions(6).blocks()))
    yield "even choices", fit(even, _even_partitions(6, size, rng))


def _indices(chances: Floats, size: int, rng: np.random.Generator) -> Ints:
    found: Ints = rng.choice(len(chances), size=size, p=chances / chances.sum())
    return found


def _even_partitions(elements: int, size: int, rng: np.random.Generator) -> Ints:
    found = np.zeros((size, elements), np.int64)
    for element in range(1, elements):
        found[:, element] = rng.integers(0, found[:, :element].max(axis=1) + 2)
    return found
