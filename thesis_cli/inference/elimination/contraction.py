"""Steps of an elimination that are products of matrices, which BLAS multiplies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.inference.elimination.kernels import Tables, extremes
from thesis_cli.inference.elimination.order import Clique

STATES = 3
"""A variable of fewer states is summed out by the kernel, which then waits for memory alone."""

LEAST = 2**15
"""Entries of a table from which a step is a product of matrices."""

GAIN = 8
"""The two factors together have that many times fewer entries than their product before it is summed."""

SIDE = 64
"""Entries of each of the matrices that a product makes, at least."""


@dataclass(frozen=True)
class Operand:
    """A factor of a product: some inputs of a step, multiplied.

    Attributes
    ----------
    axes : variables, in the order of the step's.
    inputs : numbers and axes of the tables.
    """

    axes: Clique
    inputs: list[tuple[int, Clique]]


@dataclass(frozen=True)
class Contraction:
    """A step as batched products of matrices: rows of `left`, columns of `right`, summed over the last
    axis of the step.

    Attributes
    ----------
    shared, rows, columns : axes of both, of `left` alone and of `right` alone.
    scope : axes of the message.
    entries : of the largest arrays that the product makes.
    """

    left: Operand
    right: Operand
    shared: Clique
    rows: Clique
    columns: Clique
    scope: Clique
    entries: int


def contraction(
    clique: Clique, inputs: Sequence[tuple[int, Clique]], cardinalities: Sequence[int]
) -> Contraction | None:
    """The step that sums over the last of `clique` as a product of matrices, if that is quicker."""

    def size(axes: set[int] | Clique) -> int:
        return math.prod(cardinalities[i] for i in axes)

    entries = size(clique)
    if cardinalities[clique[-1]] < STATES or entries < LEAST or len(inputs) < 2:
        return None
    ordered = sorted(inputs, key=lambda each: -size(each[1]))
    sides: list[set[int]] = [set(ordered[0][1]), {clique[-1]}]
    parts: list[list[tuple[int, Clique]]] = [[ordered[0]], []]
    for each in ordered[1:]:
        into = min((0, 1), key=lambda s: (size(sides[s] | set(each[1])) - size(sides[s]), s))
        sides[into] |= set(each[1])
        parts[into].append(each)
    a, b = sides
    if GAIN * (size(a) + size(b)) > entries or size(a ^ b) < SIDE or not (a - b and b - a):
        return None

    def chosen(members: set[int]) -> Clique:
        return tuple(i for i in clique[:-1] if i in members)

    left, right = (
        Operand(tuple(i for i in clique if i in side), part) for side, part in zip(sides, parts, strict=True)
    )
    needed = 2 * (size(a) + size(b)) + entries // cardinalities[clique[-1]]
    return Contraction(left, right, chosen(a & b), chosen(a - b), chosen(b - a), clique[:-1], needed)


def contract(
    step: Contraction, tables: Tables, steps: int, cardinalities: Sequence[int], out: Floats
) -> tuple[float, float]:
    """Write the message of a step, one of so many `steps`, to `out`; returns its largest entry, and its
    smallest positive one.
    """

    def size(axes: Clique) -> int:
        return math.prod(cardinalities[i] for i in axes)

    last = step.left.axes[-1]
    left = _multiplied(step.left, (*step.shared, *step.rows, last), tables, steps, cardinalities)
    right = _multiplied(step.right, (*step.shared, last, *step.columns), tables, steps, cardinalities)
    batch, k = size(step.shared), cardinalities[last]
    product = np.matmul(left.reshape(batch, -1, k), right.reshape(batch, k, -1))
    found = (*step.shared, *step.rows, *step.columns)
    laid = product.reshape([cardinalities[i] for i in found]).transpose([found.index(i) for i in step.scope])
    out.reshape(laid.shape)[...] = laid
    high, least = extremes(out, 0, out.size, -math.inf, math.inf)
    return float(high), float(least)


def _multiplied(operand: Operand, axes: Clique, tables: Tables, steps: int, cardinalities: Sequence[int]) -> Floats:
    """The product of the inputs of an operand, each divided by its top, along `axes`."""
    total = np.ones([cardinalities[i] for i in axes])
    for source, own in operand.inputs:
        data = tables.messages if source < steps else tables.groups
        start = int(tables.at[source])
        shape = [cardinalities[i] for i in own]
        table = data[start : start + math.prod(shape)].reshape(shape)
        there = sorted(range(len(own)), key=lambda a: axes.index(own[a]))
        total *= (
            (table / tables.tops[source]).transpose(there).reshape([cardinalities[i] if i in own else 1 for i in axes])
        )
    return total
