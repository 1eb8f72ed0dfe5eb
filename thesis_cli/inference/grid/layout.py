"""Grids among models: which variable is where, and the tables of its sites in order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import UnsuitableModel
from thesis_cli.inference.pairwise import Pairwise


class Gains(NamedTuple):
    """Tables of binary sites as those of states 0, plus what states 1 gain.

    Attributes
    ----------
    base : log-potential of all states 0.
    gain : gain of state 1 of each site, shape (sites,); may be -inf.
    right, down : interactions of a site with its left and with its upper neighbour, both in state
        1, shape (sites,); may be -inf.
    """

    base: float
    gain: Floats
    right: Floats
    down: Floats


def layout(form: Pairwise) -> tuple[int, Ints]:
    """Columns of the grid, its shorter side, and the variable of each site in order, shape (sites,), -1
    where a row is not full.

    Raises
    ------
    UnsuitableModel : neither numbered along the rows or columns of a grid, nor a whole grid in
        another order.
    """
    n = len(form.cardinalities)
    steps = form.edges[:, 1] - form.edges[:, 0]
    width = int(steps.max(initial=1))
    beside = (steps == 1) & (width > 1)
    wrong = np.flatnonzero(((steps != 1) & (steps != width)) | (beside & (form.edges[:, 0] % width == width - 1)))
    if wrong.size:
        found = in_any_order(n, form.edges)
        if found is None:
            i, j = form.edges[wrong[0]]
            raise UnsuitableModel(
                f"the edge between variables {i} and {j} is not one of a grid numbered along rows {width} long",
                "elimination takes such a model if its width is small",
            )
        return found
    rows = -(-n // width)
    variables = np.full(rows * width, -1, np.int64)
    variables[:n] = np.arange(n)
    return (width, variables) if width <= rows else (rows, variables.reshape(rows, width).T.ravel())


def in_any_order(n: int, edges: Ints) -> tuple[int, Ints] | None:
    """`layout` of a grid without missing edges, whatever the order of its variables; None if it is
    none.

    The distances of a site from two corners at the ends of a shorter side say where it is.

    Parameters
    ----------
    n : number of variables.
    edges : pairs of neighbours, shape (edges, 2).
    """
    # A grid of r x c sites has 2 r c - r - c edges.
    around = 2 * n - len(edges)
    root = math.isqrt(max(0, around * around - 4 * n))
    width = (around - root) // 2
    if width < 2 or width * (around - width) != n:
        return None
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for i, j in edges.tolist():
        neighbours[i].append(j)
        neighbours[j].append(i)
    corners = [i for i in range(n) if len(neighbours[i]) == 2]
    if not corners:
        return None
    near = _distances(corners[0], neighbours)
    other = next((i for i in corners if near[i] == width - 1), None)
    if other is None:
        return None
    far = _distances(other, neighbours)
    column, row = (near - far + width - 1) // 2, (near + far - width + 1) // 2
    sites = row * width + column
    if (near < 0).any() or not np.array_equal(np.sort(sites), np.arange(n)):
        return None
    between = np.abs(row[edges[:, 0]] - row[edges[:, 1]]) + np.abs(column[edges[:, 0]] - column[edges[:, 1]])
    return (width, np.argsort(sites)) if (between == 1).all() else None


def _distances(start: int, neighbours: list[list[int]]) -> Ints:
    """Edges between a variable and each other one, -1 if they are not connected."""
    distances = np.full(len(neighbours), -1, np.int64)
    layer, away = [start], 0
    distances[start] = 0
    while layer:
        away += 1
        reached = []
        for i in layer:
            for j in neighbours[i]:
                if distances[j] < 0:
                    distances[j] = away
                    reached.append(j)
        layer = reached
    return distances


def slots(form: Pairwise, variables: Ints, count: int) -> Ints:
    """Places of the states of each site in a vector of all states, then 0, then -inf; shape (sites,
    count).

    What has one state (evidence) or none (a site without a variable) takes any, all the same.
    """
    zero, states = form.offsets[-1], np.arange(count)
    k = np.where(variables >= 0, np.asarray(form.cardinalities)[variables], 0)[:, None]
    first = np.where(variables >= 0, np.asarray(form.offsets)[variables], zero)[:, None]
    found: Ints = np.where(k > 1, np.where(states < k, first + states, zero + 1), first)
    return found


def tables(form: Pairwise, variables: Ints, width: int, count: int) -> tuple[Floats, Floats]:
    """Log-potentials of each site with its left and with its upper neighbour, shapes (sites, count, count).

    Parameters
    ----------
    variables, width : as `layout` returns them.
    count : largest number of states of a variable.
    """
    right, down = np.zeros((2, len(variables), count, count))
    site = np.empty(len(form.cardinalities), np.int64)
    site[variables[variables >= 0]] = np.flatnonzero(variables >= 0)
    for (i, j), table in zip(site[form.edges].tolist(), form.tables, strict=True):
        first, last, laid = (i, j, table) if i < j else (j, i, table.T)
        beside = last - first == 1 and width > 1
        (right if beside else down)[last, : laid.shape[0], : laid.shape[1]] = laid
    return right, down


def gains(unary: Floats, right: Floats, down: Floats, width: int) -> Gains | None:
    """The tables of binary sites as gains; None if a pair with a state 0 is impossible, or a state 0.

    Parameters
    ----------
    unary : log-potentials, shape (sites, 2).
    right, down : log-potentials with the left and the upper neighbour, shape (sites, 2, 2).
    width : columns of the grid.
    """
    if unary.shape[1] != 2 or not all(
        np.isfinite(entries).all() for entries in (unary[:, 0], right[:, 0], right[:, 1, 0], down[:, 0], down[:, 1, 0])
    ):
        return None
    sites = len(right)
    gain = np.append(np.zeros(width), unary[:, 1] - unary[:, 0])
    for pairs, back in ((right, 1), (down, width)):
        gain[width:] += pairs[:, 0, 1] - pairs[:, 0, 0]
        gain[width - back : width - back + sites] += pairs[:, 1, 0] - pairs[:, 0, 0]
    interactions = [t[:, 0, 0] + t[:, 1, 1] - t[:, 0, 1] - t[:, 1, 0] for t in (right, down)]
    base = unary[:, 0].sum() + right[:, 0, 0].sum() + down[:, 0, 0].sum()
    return Gains(float(base), gain[width:], interactions[0], interactions[1])
