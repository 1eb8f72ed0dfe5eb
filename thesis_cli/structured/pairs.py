"""Numbering of unordered pairs of elements, and sums over the subsets of a set."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from thesis_cli.base.arrays import Floats, Ints


@lru_cache(maxsize=32)
def pair_table(elements: int) -> Ints:
    """Number of each pair, shape (elements, elements), symmetric; pairs (0, 1), (0, 2), ... in order
    of their first and then of their second element. The diagonal is 0 and means nothing.
    """
    table = np.zeros((elements, elements), np.int64)
    first, second = np.triu_indices(elements, 1)
    table[first, second] = table[second, first] = np.arange(len(first))
    table.flags.writeable = False
    return table


def as_matrices(weights: Floats, elements: int) -> Floats:
    """Symmetric matrices with zero diagonal of weights of pairs (n, pairs), shape (n, elements,
    elements).
    """
    matrices = weights[:, pair_table(elements)] if weights.shape[1] else np.zeros((len(weights), elements, elements))
    matrices[:, np.arange(elements), np.arange(elements)] = 0.0
    return matrices


def subset_sums(values: Floats) -> Floats:
    """Sum of the values of the members of each subset; (n, k) to (n, 2^k), bit i for value i."""
    found = np.zeros((len(values), 2 ** values.shape[1]))
    for bit in range(values.shape[1]):
        found[:, 2**bit : 2 ** (bit + 1)] = found[:, : 2**bit] + values[:, bit, None]
    return found


def member_sums(masses: Floats) -> Floats:
    """Total mass of the subsets that each element is a member of; (n, 2^k) to (n, k).

    The adjoint of `subset_sums`.
    """
    bits = masses.shape[1].bit_length() - 1
    found = np.empty((len(masses), bits))
    for bit in range(bits)[::-1]:
        below, above = masses[:, : 2**bit], masses[:, 2**bit :]
        found[:, bit] = above.sum(axis=1)
        masses = below + above
    return found


def inner_sums(matrices: Floats) -> Floats:
    """Sum of the pairs within each subset; symmetric (n, k, k) to (n, 2^k)."""
    elements = matrices.shape[1]
    found = np.zeros((len(matrices), 2**elements))
    for bit in range(elements):
        found[:, 2**bit : 2 ** (bit + 1)] = found[:, : 2**bit] + subset_sums(matrices[:, bit, :bit])
    return found


def inner_masses(masses: Floats) -> Floats:
    """Total mass of the subsets that hold each pair; (n, 2^k) to (n, pairs).

    The adjoint of `inner_sums`.
    """
    elements = masses.shape[1].bit_length() - 1
    table = pair_table(elements)
    found = np.empty((len(masses), elements * (elements - 1) // 2))
    for bit in range(elements)[::-1]:
        below, above = masses[:, : 2**bit], masses[:, 2**bit :]
        found[:, table[bit, :bit]] = member_sums(above)
        masses = below + above
    return found


def bit_rows(numbers: Ints, width: int) -> Ints:
    """Binary digits of numbers, the lowest first, shape (count, width)."""
    return (numbers[:, None] >> np.arange(width)) & 1


def chunks(count: int, each: int, most: int = 2**22) -> Iterator[slice]:
    """Slices of a batch, so that each takes at most about `most` numbers if a member takes `each`."""
    step = max(1, most // max(1, each))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
