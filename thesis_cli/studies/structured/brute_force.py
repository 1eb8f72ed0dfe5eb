"""Combinatorial structures counted by their definitions alone, without the spaces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.structured.pairs import bit_rows, pair_table, subset_sums


def count(name: str, elements: int, parents: Sequence[int] | None = None) -> int:
    """Number of structures of a space, found among all bit vectors, rows or sets of pairs.

    Parameters
    ----------
    elements : number of labels, items, vertices or nodes; up to 6 take a moment.
    parents : parents of the nodes, for subtrees.
    """
    if name == "hypercube":
        return len(bit_rows(np.arange(2**elements), elements))
    if name == "permutations":
        rows = itertools.product(range(elements), repeat=elements)
        return sum(len(set(row)) == elements for row in rows)
    if name == "subtrees" and parents is not None:
        return len(subtrees(parents))
    graphs = adjacencies(elements)
    if name == "partitions":
        related = graphs | np.eye(elements, dtype=bool)
        return int((related == (related.astype(np.int64) @ related > 0)).all(axis=(1, 2)).sum())
    degrees = graphs.sum(axis=2)
    all_two = ((degrees == 2) | (degrees == 0)).all(axis=1) & degrees.any(axis=1)
    if name == "cycles":
        all_two &= (degrees == 2).all(axis=1)
    reached = graphs[all_two] | np.eye(elements, dtype=bool)
    for _ in range(elements):
        reached = reached.astype(np.int64) @ reached > 0
    connected = (reached == (degrees[all_two] > 0)[:, None, :]) | (degrees[all_two] == 0)[:, :, None]
    return int(connected.all(axis=(1, 2)).sum())


def adjacencies(vertices: int) -> Bools:
    """Adjacency matrices of all labelled graphs, as booleans, shape (2^pairs, vertices, vertices);
    bit i of a graph's number is the pair i of `pair_table`.
    """
    edges = bit_rows(np.arange(2 ** (vertices * (vertices - 1) // 2)), vertices * (vertices - 1) // 2) > 0
    found: Bools = edges[:, pair_table(vertices)]
    found[:, np.arange(vertices), np.arange(vertices)] = False
    return found


def subtrees(parents: Sequence[int]) -> Ints:
    """All nonempty sets of nodes that are subtrees with the root, as rows of bits."""
    bits = bit_rows(np.arange(2 ** len(parents)), len(parents))
    closed = [(bits[:, node] <= bits[:, parent]) for node, parent in enumerate(parents) if parent >= 0]
    return np.asarray(bits[np.logical_and.reduce([bits[:, 0] == 1, *closed])])


def ryser(matrix: Floats) -> float:
    """Permanent of a nonnegative matrix by Ryser's signed sum, for comparison; its rows are scaled to
    sums of 1, so that the terms are at most 1. Those of opposite sign cancel.
    """
    size = len(matrix)
    scales = matrix.sum(axis=1)
    products = np.prod(subset_sums(matrix / scales[:, None]), axis=0)
    signs = 1 - 2 * (bit_rows(np.arange(2**size), size).sum(axis=1) % 2)
    return float((-1) ** size * (products @ signs) * np.prod(scales))
