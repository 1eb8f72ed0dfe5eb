"""Exact ln Z of narrow grid models and the means of y_i and y_i y_j, for many images at once: what the
gradient of a conditional random field takes, which the marginals of single variables do not give.

A table over the states of a boundary, one pixel of each column, moves on by a pixel at a time, and
the derivatives of ln Z are carried back through the same steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats

_SPIN = np.array([-1.0, 1.0])

_LARGEST = 700.0
"""Nats whose exponential a float still holds."""


class Moments(NamedTuple):
    """Sums over a batch of models, and means under each, added up.

    Attributes
    ----------
    log_z : nats, summed over the batch.
    own : E[y_i] of each model, shape (batch, h, w).
    right, down : E[y_i y_j] summed over the batch, shapes (h, w - 1), (h - 1, w).
    """

    log_z: float
    own: Floats
    right: Floats
    down: Floats


def table_bytes(height: int, width: int) -> int:
    """Bytes of the tables of one model, all of which are kept."""
    return 8 * height * width << width


def moments(own: Floats, right: Floats, down: Floats) -> Moments:
    """Moments of sum_i own_i y_i + sum_ij coupling_ij y_i y_j, in time and memory h w 2^w a model.

    Parameters
    ----------
    own : of each model, shape (batch, h, w).
    right, down : couplings, shapes (h, w - 1), (h - 1, w).
    """
    if own.shape[2] > own.shape[1]:
        found = moments(own.swapaxes(1, 2), down.T, right.T)
        return Moments(found.log_z, found.own.swapaxes(1, 2), found.down.T, found.right.T)
    batch, height, width = own.shape
    tables = [np.zeros((batch, 1))]
    for r in range(height):
        for c in range(width):
            couplings = right[r, c - 1] if c else None, down[r - 1, c] if r else None
            tables.append(_step(tables[-1], 2**c, own[:, r, c], *couplings))
    last = tables.pop()
    top = last.max(axis=1, keepdims=True)
    weights = np.exp(last - top)
    sums = weights.sum(axis=1, keepdims=True)
    weights /= sums
    means, rights, downs = np.empty_like(own), np.empty_like(right), np.empty_like(down)
    for r in reversed(range(height)):
        for c in reversed(range(width)):
            old = tables.pop()
            now = weights.reshape(batch, 2**c, 2, -1)
            means[:, r, c] = np.einsum("bhni,n->b", now, _SPIN)
            if c:
                rights[r, c - 1] = np.einsum("bhlni,l,n->", now.reshape(batch, -1, 2, *now.shape[2:]), _SPIN, _SPIN)
            if not r:
                weights = now.sum(axis=2).reshape(batch, -1)
                continue
            old = old.reshape(batch, 2**c, 2, 1, -1)
            odds = old[:, :, 1] - old[:, :, 0] + 2 * down[r - 1, c] * _SPIN[:, None]
            above = now / (1 + np.exp(np.minimum(-odds, _LARGEST)))  # where the pixel above is +1
            downs[r - 1, c] = np.einsum("bhni,n->", 2 * above - now, _SPIN)
            weights = np.stack([(now - above).sum(axis=2), above.sum(axis=2)], axis=2).reshape(batch, -1)
    return Moments(float((top + np.log(sums)).sum()), means, rights, downs)


def _step(table: Floats, before: int, own: Floats, right: float | None, down: float | None) -> Floats:
    """The table with the next pixel in place of the one above it; in the first row, as another one.

    Parameters
    ----------
    table : ln of the sums over the pixels that have left the boundary, by the states of those on
        it, shape (batch, 2^boundary); the first column is the slowest.
    before : joint states of the columns before that of the pixel.
    own : of the pixel, shape (batch,).
    right, down : couplings to the pixels on its left and above; None if there is none.
    """
    batch = len(table)
    term = own[:, None, None] * _SPIN  # by the state of the pixel on the left and its own
    if right is not None:
        term = term + right * np.multiply.outer(_SPIN, _SPIN)
    if down is None:
        summed = table.reshape(batch, before, 1, 1)
    else:
        above = table.reshape(batch, before, 2, 1, -1)
        coupled = down * _SPIN[:, None]
        summed = np.logaddexp(above[:, :, 0] - coupled, above[:, :, 1] + coupled)
    left = term.shape[1]
    found = summed.reshape(batch, before // left, left, *summed.shape[2:]) + term[:, None, :, :, None]
    return np.asarray(found.reshape(batch, -1))
