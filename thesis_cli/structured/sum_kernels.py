"""Compiled sums over subsets of labels and over orders of items, for a batch of weight vectors.

Sums over subsets and orders work with potentials, not with their logarithms, so that a structure
costs two multiplications and no exponential. Callers give potentials that cannot overflow and
repeat in log space the rows whose sum underflows (`hypercube.PairHypercube.sums`,
`orderings.sums_over_orders`); the sums in log space are the references.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel

Work = npt.NDArray[np.floating[Any]]

REORDERED = {"reassoc", "contract", "nsz"}
"""Changes of the order of a sum that let the processor add several numbers at once."""


@kernel(fastmath=REORDERED)
def pair_sums(weights: Floats, rows: Ints, labels: int, work: Work, log_z: Floats, mean: Floats) -> None:
    """Sum over all subsets of d labels with weights of labels and of pairs, and its gradient.

    The potentials of subsets whose highest label is k are those without k times exp(w_k) and the
    exp(w_jk) of their labels j. Sums fold back in the opposite order: the subsets with label k are
    added to those without, and so are, among the former, those with each label j < k.

    Parameters
    ----------
    weights : w_k, then w_jk for j < k in the order of `pair_table`, shape (n, d (d + 1) / 2).
    rows : rows of the weights to sum for, shape (k,).
    labels : d.
    work : room for potentials, in whose precision they are summed, shape (2, 2^d).
    log_z : written at these rows, shape (n,).
    mean : expected labels and pairs, in the order of the weights; written at these rows, same shape.
    """
    d = labels
    sums, gains, real = work[0], work[1], work.dtype.type
    for r in rows:
        sums[0] = 1.0
        for k in range(d):
            gains[0] = np.exp(weights[r, k])
            for j in range(k):
                factor, half = real(np.exp(weights[r, d + j * (2 * d - j - 1) // 2 + k - j - 1])), 1 << j
                low, high = gains[:half], gains[half : 2 * half]
                for s in range(half):
                    high[s] = low[s] * factor
            half = 1 << k
            low, high = sums[:half], sums[half : 2 * half]
            for s in range(half):
                high[s] = low[s] * gains[s]
        for k in range(d - 1, -1, -1):
            half = 1 << k
            low, high = sums[:half], sums[half : 2 * half]
            for s in range(half):
                low[s] += high[s]
            for j in range(k - 1, -1, -1):
                half = 1 << j
                without, within, total = high[:half], high[half : 2 * half], real(0.0)
                for s in range(half):
                    total += within[s]
                    without[s] += within[s]
                mean[r, d + j * (2 * d - j - 1) // 2 + k - j - 1] = total
            mean[r, k] = high[0]
        log_z[r] = np.log(sums[0])
        for c in range(mean.shape[1]):
            mean[r, c] /= sums[0]


@kernel()
def conditional_sums(weights: Floats, bits: Ints, values: Floats, slopes: Floats) -> None:
    """Sum of the log-probabilities of each label given all others, and its gradient.

    Parameters
    ----------
    weights : those of `pair_sums`, shape (n, d (d + 1) / 2).
    bits : labels, shape (n, d).
    values : written, shape (n,).
    slopes : written, shape of the weights.
    """
    n, d = bits.shape
    fields = np.empty(d)
    for r in range(n):
        for k in range(d):
            fields[k] = weights[r, k]
        at = d
        for j in range(d):
            for k in range(j + 1, d):
                fields[j] += weights[r, at] * bits[r, k]
                fields[k] += weights[r, at] * bits[r, j]
                at += 1
        values[r] = 0.0
        for k in range(d):
            apart = np.exp(-abs(fields[k]))
            values[r] += bits[r, k] * fields[k] - max(fields[k], 0.0) - np.log1p(apart)
            fields[k] = bits[r, k] - (1.0 if fields[k] > 0.0 else apart) / (1.0 + apart)
            slopes[r, k] = fields[k]
        at = d
        for j in range(d):
            for k in range(j + 1, d):
                slopes[r, at] = fields[j] * bits[r, k] + fields[k] * bits[r, j]
                at += 1


@kernel(fastmath=REORDERED)
def order_sums(factors: Floats, row_of: Ints, before: Ints, log_z: Floats, masses: Floats) -> None:
    """Sum over the orders of d items that respect which items come before others, and its gradient.

    Positions get items one after the other. Item i after the set S, as bits, has the potential
    factors[row_of[S], i], and that of an order is the product.

    Parameters
    ----------
    factors : shape (n, rows, d).
    row_of : shape (2^d,).
    before : items that must come before each, as bits, shape (n, d).
    log_z : written, -inf if the sum underflows; shape (n,).
    masses : expected number of uses of each factor; written, shape (n, rows, d).
    """
    n, rows, d = factors.shape
    full = (1 << d) - 1
    forward, backward = np.empty(full + 1), np.empty(full + 1)
    for r in range(n):
        for a in range(rows):
            for i in range(d):
                masses[r, a, i] = 0.0
        forward[0] = 1.0
        for reached in range(1, full + 1):
            total = 0.0
            for i in range(d):
                if reached >> i & 1 and before[r, i] & ~reached == 0:
                    at = reached ^ (1 << i)
                    total += forward[at] * factors[r, row_of[at], i]
            forward[reached] = total
        log_z[r] = np.log(forward[full])
        if forward[full] == 0.0:
            continue
        backward[full] = 1.0 / forward[full]
        for reached in range(full - 1, -1, -1):
            total, at = 0.0, row_of[reached]
            for i in range(d):
                if not reached >> i & 1 and before[r, i] & ~reached == 0:
                    mass = factors[r, at, i] * backward[reached | (1 << i)]
                    masses[r, at, i] += forward[reached] * mass
                    total += mass
            backward[reached] = total


@kernel()
def chain_sums(scores: Floats, order: Ints, drawn: Ints, ranked: Ints, values: Floats, slopes: Floats) -> None:
    """Logarithm of the probability that Plackett-Luce draws items one after the other, and its gradient.

    Parameters
    ----------
    scores : shape (n, d).
    order : the items of each chain from the first to the last, then the others, shape (n, d).
    drawn : number of items that are drawn, each from itself and those of the chain after it, shape (n,).
    ranked : number of items of the chain, shape (n,).
    values : written, shape (n,).
    slopes : written, shape (n, d).
    """
    n, d = scores.shape
    rest = np.empty(d)
    for r in range(n):
        values[r] = 0.0
        for k in range(d - 1, -1, -1):
            item, last = order[r, k], ranked[r] - 1
            slopes[r, item] = 0.0
            if k == last:
                rest[k] = scores[r, item]
            elif k < last:
                apart = scores[r, item] - rest[k + 1]
                rest[k] = max(scores[r, item], rest[k + 1]) + np.log1p(np.exp(-abs(apart)))
            if k < drawn[r]:
                values[r] += scores[r, item] - rest[k]
        chances = 0.0  # of the items to be drawn so far, times the sum of those that are left
        for k in range(ranked[r]):
            item = order[r, k]
            if k > 0:
                chances *= np.exp(rest[k] - rest[k - 1])
            if k < drawn[r]:
                chances += 1.0
                slopes[r, item] = 1.0
            slopes[r, item] -= chances * np.exp(scores[r, item] - rest[k])


@kernel()
def best_orders(scores: Floats, row_of: Ints, values: Floats, items: Ints) -> None:
    """The orders of d items with the largest sums of scores, the best first.

    Parameters
    ----------
    scores : scores of the items that follow a set of items, shape (n, rows, d).
    row_of : row of each set, by its bits, shape (2^d,).
    values : their sums; written, shape (n, count), of which there must not be more than orders.
    items : the items from first to last; written, shape (n, count, d).
    """
    n, count = values.shape
    d = scores.shape[2]
    full = (1 << d) - 1
    best = np.empty((full + 1, count))
    added, came = np.empty((full + 1, count), np.int64), np.empty((full + 1, count), np.int64)
    for r in range(n):
        for reached in range(full + 1):
            for k in range(count):
                best[reached, k] = -np.inf
        best[0, 0] = 0.0
        for reached in range(1, full + 1):
            for i in range(d):
                if not reached >> i & 1:
                    continue
                at = reached ^ (1 << i)
                score = scores[r, row_of[at], i]
                for k in range(count):
                    value = best[at, k] + score
                    if not value > best[reached, count - 1]:
                        break
                    place = count - 1
                    while place > 0 and value > best[reached, place - 1]:
                        best[reached, place] = best[reached, place - 1]
                        added[reached, place] = added[reached, place - 1]
                        came[reached, place] = came[reached, place - 1]
                        place -= 1
                    best[reached, place], added[reached, place], came[reached, place] = value, i, k
        for k in range(count):
            values[r, k] = best[full, k]
            at, place = full, k
            for position in range(d - 1, -1, -1):
                item = added[at, place]
                items[r, k, position] = item
                place = came[at, place]
                at ^= 1 << item


@kernel()
def best_subsets(weights: Floats, labels: int, values: Floats, found: Ints) -> None:
    """The subsets of d labels with the largest log-potentials, the best first; the first ones of equals.

    Parameters
    ----------
    weights : those of `pair_sums`, shape (n, d (d + 1) / 2).
    labels : d.
    values : log-potentials; written, shape (n, count), of which there must not be more than subsets.
    found : the subsets as bits; written, shape (n, count).
    """
    (n, count), d = values.shape, labels
    scores, gains = np.empty(1 << d), np.empty(1 << d)
    for r in range(n):
        scores[0] = 0.0
        for k in range(d):
            gains[0] = weights[r, k]
            for j in range(k):
                gain, half = weights[r, d + j * (2 * d - j - 1) // 2 + k - j - 1], 1 << j
                low, high = gains[:half], gains[half : 2 * half]
                for s in range(half):
                    high[s] = low[s] + gain
            half = 1 << k
            low, high = scores[:half], scores[half : 2 * half]
            for s in range(half):
                high[s] = low[s] + gains[s]
        for k in range(count):
            values[r, k] = -np.inf
        for s in range(scores.size):
            if scores[s] > values[r, count - 1]:
                place = count - 1
                while place > 0 and scores[s] > values[r, place - 1]:
                    values[r, place], found[r, place] = values[r, place - 1], found[r, place - 1]
                    place -= 1
                values[r, place], found[r, place] = scores[s], s
