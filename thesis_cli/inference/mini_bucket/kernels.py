"""Compiled loops over the tables of mini-buckets."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel


@kernel(_nrt=False)
def spread(table: Floats, small: Floats, blocks: Ints, within: Ints) -> None:
    """Add a smaller table to each entry of `table` that it bears on; see `Offsets`."""
    width = within.size
    for b in range(blocks.size):
        start, base = b * width, blocks[b]
        for e in range(width):
            table[start + e] += small[base + within[e]]


@kernel(_nrt=False)
def gather(table: Floats, small: Floats, blocks: Ints, within: Ints) -> None:
    """Add each entry of `table` to the entry of the smaller table that it belongs to."""
    width = within.size
    for b in range(blocks.size):
        start, base = b * width, blocks[b]
        for e in range(width):
            small[base + within[e]] += table[start + e]


class SequentialProposal(NamedTuple):
    """A distribution over configurations, one variable after the other, as one argument of kernels.

    Attributes
    ----------
    variables : variables in the order in which they are drawn, shape (n,).
    states : number of states of each, in the same order.
    first : mini-buckets first[i]:first[i + 1] belong to the variable drawn at i, shape (n + 1,).
    weights : Holder weight of each mini-bucket.
    starts : first entry of each mini-bucket in `shares`.
    scopes : the other variables of mini-bucket r are others[scopes[r]:scopes[r + 1]].
    others, strides : those variables, and how many entries apart their states are.
    shares : tables of all mini-buckets, the states of the drawn variable fastest.
    """

    variables: Ints
    states: Ints
    first: Ints
    weights: Floats
    starts: Ints
    scopes: Ints
    others: Ints
    strides: Ints
    shares: Floats


@kernel(_nrt=False)
def draw(
    proposal: SequentialProposal,
    start: int,
    uniforms: Floats,
    states: Ints,
    places: Ints,
    mixed: Floats,
    ratios: Floats,
) -> None:
    """Draw some variables of configurations, and ln of the product of weighted geometric over arithmetic means.

    Parameters
    ----------
    start : place of the first of them in the order; the variables before it are drawn.
    uniforms : shape (variables to draw, batch).
    states : receives the states, shape (number of variables of the model, batch).
    places, mixed : scratch, shapes (most mini-buckets of a variable, batch) and (most states,).
    ratios : to which the logarithms are added, each 0 or less, shape (batch,).
    """
    (variables, cardinalities, first, weights, starts, scopes, others, strides, shares) = proposal
    batch = ratios.size
    for i in range(start, start + len(uniforms)):
        k, low, high = cardinalities[i], first[i], first[i + 1]
        for r in range(low, high):
            for b in range(batch):
                places[r - low, b] = starts[r]
            for s in range(scopes[r], scopes[r + 1]):
                variable, stride = others[s], strides[s]
                for b in range(batch):
                    places[r - low, b] += stride * states[variable, b]
        if high - low == 1:
            for b in range(batch):
                place, level, x = places[0, b], uniforms[i - start, b], 0
                level -= shares[place]
                while x < k - 1 and level >= 0.0:
                    x += 1
                    level -= shares[place + x]
                states[variables[i], b] = x
                if not shares[place + x] > 0.0:
                    ratios[b] = -np.inf
            continue
        for b in range(batch):
            total = 0.0
            for x in range(k):
                mixed[x] = 0.0
            for r in range(low, high):
                weight, place = weights[r], places[r - low, b]
                for x in range(k):
                    mixed[x] += weight * shares[place + x]
            for x in range(k):
                total += mixed[x]
            level, x = uniforms[i - start, b] * total, 0
            level -= mixed[0]
            while x < k - 1 and level >= 0.0:
                x += 1
                level -= mixed[x]
            states[variables[i], b] = x
            mean = mixed[x] / total
            if not mean > 0.0:
                ratios[b] = -np.inf
                continue
            ratio = -math.log(mean)
            for r in range(low, high):
                ratio += weights[r] * math.log(shares[places[r - low, b] + x])
            ratios[b] += min(ratio, 0.0)
