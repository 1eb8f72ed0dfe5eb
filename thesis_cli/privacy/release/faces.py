"""Compiled steps on the faces of a polytope, for Wolfe's nearest point (`subspace`).

A face keeps the Cholesky factor of its vertices' matrix. A vertex that enters or leaves changes the
factor in time of the face's squared size; another factorisation takes the cube.
"""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel


@kernel()
def enter(upper: Floats, solved: Floats, size: int, column: Floats, right: Floats, least: float) -> None:
    """Append a row and a column to a matrix A = U^T U, and a row to right-hand sides B.

    Parameters
    ----------
    upper : U, in the first `size` rows and columns, which become one more.
    solved : U^-T B, transposed, in the first `size` columns, which become one more.
    column : the new column, its diagonal element last, shape (size + 1,); overwritten.
    right : new row of B.
    least : bound below which the pivot can fall by rounding alone.
    """
    pivot = column[size]
    for i in range(size):
        column[i] /= upper[i, i]
        x = column[i]
        upper[i, size] = x
        pivot -= x * x
        for j in range(i + 1, size):
            column[j] -= upper[i, j] * x
    upper[size, size] = math.sqrt(max(pivot, least))
    for k in range(right.size):
        y = right[k]
        for i in range(size):
            y -= column[i] * solved[k, i]
        solved[k, size] = y / upper[size, size]


@kernel()
def leave(upper: Floats, solved: Floats, size: int, place: int) -> None:
    """Remove a row and a column of A and a row of B: drop a column of U, and make it triangular again by
    rotations of rows.

    Parameters
    ----------
    upper, solved : as for `enter`, in the first `size` rows and columns, which become one fewer.
    place : number of the row and column.
    """
    for i in range(size):
        for j in range(max(place, i - 1), size - 1):
            upper[i, j] = upper[i, j + 1]
    for i in range(place, size - 1):
        length = math.hypot(upper[i, i], upper[i + 1, i])
        cosine, sine = upper[i, i] / length, upper[i + 1, i] / length
        upper[i, i] = length
        for j in range(i + 1, size - 1):
            above, below = upper[i, j], upper[i + 1, j]
            upper[i, j] = cosine * above + sine * below
            upper[i + 1, j] = cosine * below - sine * above
        for k in range(solved.shape[0]):
            above, below = solved[k, i], solved[k, i + 1]
            solved[k, i] = cosine * above + sine * below
            solved[k, i + 1] = cosine * below - sine * above


@kernel(fastmath={"reassoc", "contract", "nsz"})
def affine(upper: Floats, solved: Floats, out: Floats) -> None:
    """Set `out` to the u of sum 1 that minimises u^T A u / 2 - b^T u.

    Parameters
    ----------
    upper, solved : as for `enter`; B has the columns b and 1.
    out : as long as A; set.
    """
    size = out.size
    shift = np.empty(size)
    total, shift_total = 0.0, 0.0
    for i in range(size - 1, -1, -1):
        x, y = solved[0, i], solved[1, i]
        for j in range(i + 1, size):
            x -= upper[i, j] * out[j]
            y -= upper[i, j] * shift[j]
        out[i], shift[i] = x / upper[i, i], y / upper[i, i]
        total += out[i]
        shift_total += shift[i]
    for i in range(size):
        out[i] += shift[i] * (1 - total) / shift_total


@kernel(fastmath={"contract"})
def combine(coefficients: Floats, slots: Ints, rows: Floats, out: Floats) -> None:
    """Add sum_i c_i row(slot_i) to `out`."""
    for i in range(slots.size):
        c, row = coefficients[i], rows[slots[i]]
        for m in range(out.size):
            out[m] += c * row[m]
