"""Subtrees as Vembu et al. section 4 count and draw them, beside all subtrees, and chi-square statistics
of samplers of small spaces.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.partitions import Partitions
from thesis_cli.structured.space import Space

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


class ChiSquare(NamedTuple):
    """A test that structures are uniform.

    Attributes
    ----------
    statistic : chi-square over its degrees of freedom, 1 on average for a uniform sampler.
    standard_error : its standard deviation for a uniform sampler.
    """

    statistic: float
    standard_error: float


def fit(everyone: Ints, samples: Ints) -> ChiSquare:
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
    return ChiSquare(statistic / free, float((2 * free * (1 - 1 / len(samples))) ** 0.5 / free))


def fits(size: int, rng: np.random.Generator) -> Iterator[tuple[str, ChiSquare]]:
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
    return np.asarray(rng.choice(len(chances), size=size, p=chances / chances.sum()))


def _even_partitions(elements: int, size: int, rng: np.random.Generator) -> Ints:
    found = np.zeros((size, elements), np.int64)
    for element in range(1, elements):
        found[:, element] = rng.integers(0, found[:, :element].max(axis=1) + 2)
    return found


class Prefixes(NamedTuple):
    """Subtrees T' of a tree, taken as prefixes; arrays of shape (subtrees,).

    Attributes
    ----------
    leaves : number of nodes of T' without children in T'.
    containing : number of subtrees that contain T'.
    grown : number of those among them that add nodes below the leaves of T' alone.
    printed : prod f(v) - |L| over the leaves v, with f of equation 2.
    """

    leaves: Floats
    containing: Floats
    grown: Floats
    printed: Floats


def random_tree(nodes: int, rng: np.random.Generator) -> list[int]:
    """Parents of a random recursive tree: each node hangs off any of the earlier ones."""
    return [-1, *(int(rng.integers(node)) for node in range(1, nodes))]


def printed_counts(parents: Sequence[int]) -> list[int]:
    """f(v) = 1 + prod f(c) over the children c of each node v (equation 2); a parent has a smaller
    number than its children.
    """
    products = [1] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        products[parents[node]] *= 1 + products[node]
    return [1 + product for product in products]


def prefixes(parents: Sequence[int], subtrees: Ints) -> Prefixes:
    """Counts of the printed formula for each subtree as a prefix, and the true ones.

    Parameters
    ----------
    parents : parent of each node, smaller than the node; -1 for node 0, the root.
    subtrees : all subtrees as rows of bits.
    """
    counts = printed_counts(parents)
    children = np.zeros_like(subtrees)
    for node, parent in enumerate(parents[1:], 1):
        children[:, parent] += subtrees[:, node]
    leaf = (subtrees == 1) & (children == 0)
    contains = (subtrees[None] >= subtrees[:, None]).all(axis=2)
    inner = (subtrees == 1) & ~leaf  # nodes that may get no further child
    same = np.ones_like(contains)
    for node, parent in enumerate(parents[1:], 1):
        same &= ~inner[:, None, parent] | (subtrees[None, :, node] == subtrees[:, None, node])
    number = leaf.sum(axis=1)
    printed = [math.prod(counts[v] for v in np.flatnonzero(row)) - int(row.sum()) for row in leaf]
    return Prefixes(
        number.astype(float),
        contains.sum(axis=1).astype(float),
        (contains & same).sum(axis=1).astype(float),
        np.array(printed, dtype=float),
    )


def printed_coins(parents: Sequence[int]) -> Floats:
    """Success probability f(u) / f(v) of the coin of each node u with parent v, 1 for the root."""
    counts = printed_counts(parents)
    return np.array([1.0] + [counts[node] / counts[parents[node]] for node in range(1, len(parents))])


def probabilities(parents: Sequence[int], coins: Floats, subtrees: Ints) -> Floats:
    """Probability of each subtree if a node whose parent is in is in by its own coin."""
    bits = subtrees[:, 1:] == 1
    offered = subtrees[:, np.array(parents[1:], dtype=np.int64)] == 1
    return np.asarray(np.where(offered, np.where(bits, coins[1:], 1 - coins[1:]), 1.0).prod(axis=1))
