"""Compiled races between states on subsamples of their factors, and a plain reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import ZERO, helper, kernel
from thesis_cli.perturbation.racing.race_arrays import Field, Outcome
from thesis_cli.perturbation.tricks.clock_kernels import HALF_STEP

CHUNK = 128
"""Factors whose rows stay in a cache while one state after the other reads them."""
FAST = {"reassoc", "contract", "nsz"}


@kernel()
def race(rng: np.random.Generator, field: Field, exact: bool, outcome: Outcome) -> None:
    """Race the states once for each perturbation of a group.

    At look t the remaining states have been evaluated on the same ends[t] factors. State x drops
    out if the leader's lead exceeds spread[t] times the standard deviation of their difference on
    those factors, plus reach[t] times its range. Races that are open after the last look end on all
    factors.

    Parameters
    ----------
    rng : for each perturbation, draws K uniforms for its noise, then one for each factor that is
        seen.
    field : the states and the bounds that decide between them.
    exact : sum all factors of a winner found on fewer, at their cost.
    outcome : the result of each race of the group; written.
    """
    rows, totals, prior, ends, _, _, _ = field
    values, states, evaluations, looks, losses = outcome
    s, k = rows.shape
    order, racing = np.empty(s, np.int64), np.empty(k, np.int64)
    noisy, sums, work = np.empty(k), np.empty(k), np.empty((2, k))
    for i in range(s):
        order[i] = i
    for m in range(values.size):
        left = 0
        for x in range(k):
            noisy[x] = prior[x] - np.euler_gamma - np.log(-np.log1p(-(rng.random() + HALF_STEP)))
            sums[x] = 0.0
            if prior[x] > -np.inf:
                racing[left] = x
                left += 1
        seen = spent = looked = ZERO
        while looked < ends.size and left > 1:
            _evaluate(rng, rows, order, seen, ends[looked], racing[:left], sums)
            spent += left * (ends[looked] - seen)
            seen = ends[looked]
            left = _keep(field, looked, order[:seen], noisy, sums, racing[:left], work)
            looked += 1
        winner = racing[0]
        if left > 1 or exact or seen == 0:
            spent += left * (s - seen)
            for a in range(1, left):
                if totals[racing[a]] + noisy[racing[a]] > totals[winner] + noisy[winner]:
                    winner = racing[a]
            values[m] = totals[winner] + noisy[winner]
        else:
            values[m] = s / seen * sums[winner] + noisy[winner]
        states[m] = winner
        evaluations[m] = spent
        looks[m] = looked
        most = -np.inf
        for x in range(k):
            most = max(most, totals[x] + noisy[x])
        losses[m] = most - (totals[winner] + noisy[winner])


@helper()
def _evaluate(
    rng: np.random.Generator, rows: npt.NDArray[Any], order: Ints, seen: int, end: int, racing: Ints, sums: Floats
) -> None:
    """Draw further factors, up to `end`, and add them to the sums of the remaining states."""
    for j in range(seen, end):
        i = j + int(rng.random() * (order.size - j))
        factor = order[i]
        order[i] = order[j]
        order[j] = factor
    for start in range(seen, end, CHUNK):
        part = order[start : min(start + CHUNK, end)]
        for x in racing:
            sums[x] += _sum(rows, part, x)


@helper(fastmath=FAST)
def _sum(rows: npt.NDArray[Any], factors: Ints, x: int) -> float:
    total = 0.0
    for factor in factors:
        total += rows[factor, x]
    return total


@helper(fastmath=FAST)
def _squares(rows: npt.NDArray[Any], factors: Ints, best: Floats, x: int, mean: float) -> float:
    """Sum of the squared deviations of the leader's lead over a state from its mean."""
    total = 0.0
    for b in range(factors.size):
        apart = best[b] - rows[factors[b], x] - mean
        total += apart * apart
    return total


@helper()
def _keep(field: Field, look: int, sample: Ints, noisy: Floats, sums: Floats, racing: Ints, work: Floats) -> int:
    """Drop states that are surely behind; returns how many remain, the first of `racing`.

    Parameters
    ----------
    sample : the factors seen so far.
    noisy, sums : noise and prior, and the sums over the sample, shape (K,).
    racing : the states that are not out, reordered.
    work : means and squares of the differences, shape (2, K); written.
    """
    rows, _, _, _, spread, reach, widths = field
    means, squares = work[0], work[1]
    s, seen = rows.shape[0], sample.size
    scale = s / seen
    leader = racing[0]
    for x in racing[1:]:
        if scale * sums[x] + noisy[x] > scale * sums[leader] + noisy[leader]:
            leader = x
    for a in range(racing.size):
        means[a] = (sums[leader] - sums[racing[a]]) / seen
        squares[a] = 0.0
    best = np.empty(CHUNK)
    for start in range(0, seen, CHUNK):
        part = sample[start : start + CHUNK]
        for b in range(part.size):
            best[b] = rows[part[b], leader]
        for a in range(racing.size):
            squares[a] += _squares(rows, part, best, racing[a], means[a])
    kept = 0
    for a in range(racing.size):
        x = racing[a]
        lead = s * means[a] + noisy[leader] - noisy[x]
        bound = spread[look] * np.sqrt(squares[a] / (seen - 1))
        bound += reach[look] * (widths[leader] + widths[x])
        if x == leader or not lead > bound:
            racing[kept] = x
            kept += 1
    return kept


def race_reference(rng: np.random.Generator, field: Field, exact: bool, outcome: Outcome) -> None:
    """`race` in plain NumPy."""
    rows, totals, prior, ends, spread, reach, widths = field
    values, states, evaluations, looks, losses = outcome
    s, k = rows.shape
    order = np.arange(s)
    for m in range(values.size):
        noisy = prior - np.euler_gamma - np.log(-np.log1p(-(rng.random(k) + HALF_STEP)))
        racing = np.flatnonzero(prior > -np.inf)
        seen = spent = looked = 0
        while looked < ends.size and racing.size > 1:
            end = ends[looked]
            for j, u in enumerate(rng.random(end - seen), start=seen):
                i = j + int(u * (s - j))
                order[[i, j]] = order[[j, i]]
            spent += racing.size * (end - seen)
            seen = end
            sample = rows[order[:seen]][:, racing].astype(np.float64)
            leader = int((s * sample.mean(axis=0) + noisy[racing]).argmax())
            apart = sample[:, [leader]] - sample
            lead = s * apart.mean(axis=0) + noisy[racing[leader]] - noisy[racing]
            bound = spread[looked] * apart.std(axis=0, ddof=1) + reach[looked] * (
                widths[racing[leader]] + widths[racing]
            )
            stays = ~(lead > bound)
            stays[leader] = True
            racing = racing[stays]
            looked += 1
        winner = racing[(totals + noisy)[racing].argmax()]
        if racing.size > 1 or exact or seen == 0:
            spent += racing.size * (s - seen)
            values[m] = totals[winner] + noisy[winner]
        else:
            values[m] = s * rows[order[:seen], winner].mean(dtype=np.float64) + noisy[winner]
        states[m], evaluations[m], looks[m] = winner, spent, looked
        losses[m] = (totals + noisy).max() - (totals + noisy)[winner]
