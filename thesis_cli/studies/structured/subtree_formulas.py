"""Formulas of Vembu et al. section 4 for subtrees as printed, beside the counts of all subtrees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints


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
    """What the printed formula says of each subtree as a prefix, and what is so.

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
    found: Floats = np.where(offered, np.where(bits, coins[1:], 1 - coins[1:]), 1.0).prod(axis=1)
    return found
