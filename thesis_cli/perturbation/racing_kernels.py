"""Compiled races between states on subsamples of the factors; beside them the plain reference."""

from __future__ import annotations

import numpy as np
from numba import njit

from thesis_cli.perturbation.clock_kernels import HALF_STEP
from thesis_cli.perturbation.race_arrays import Field, Outcome


@njit(cache=True, nogil=True)
def race(rng: np.random.Generator, field: Field, exact: bool, outcome: Outcome) -> None:
    """Race the states once for each perturbation of a group.

    At look t the states still in have been evaluated on the same ends[t] factors. A state is out if the leader's
    lead exceeds spread[t] times the standard deviation of their difference on those factors, plus reach[t] times
    its range. Races that are open after the last look end on all factors.

    Parameters
    ----------
    rng : draws K uniforms for the noise of each perturbation, then one for each factor that is seen.
    field : the factors and the bounds.
    exact : whether to sum all factors of a winner that was found on fewer.
    outcome : results of the races; written.
    """
    rows, totals, prior, ends, spread, reach, widths = field
    values, states, evaluations, looks, losses = outcome
    s, k = rows.shape
    order = np.arange(s)
    noisy = np.empty(k)
    sums = np.empty(k)
    squares = np.empty(k)
    means = np.empty(k)
    racing = np.empty(k, np.int64)
    for m in range(values.size):
        left = 0
        for x in range(k):
            noisy[x] = prior[x] - np.euler_gamma - np.log(-np.log1p(-(rng.random() + HALF_STEP)))
            sums[x] = 0.0
            if prior[x] > -np.inf:
                racing[left] = x
                left += 1
        seen = 0
        spent = 0
        looked = 0
        while looked < ends.size and left > 1:
            end = ends[looked]
            for j in range(seen, end):
                i = j + int(rng.random() * (s - j))
                factor = order[i]
                order[i] = order[j]
                order[j] = factor
                for a in range(left):
                    sums[racing[a]] += rows[factor, racing[a]]
            spent += left * (end - seen)
            seen = end
            scale = s / seen
            leader = racing[0]
            for a in range(1, left):
                x = racing[a]
                if scale * sums[x] + noisy[x] > scale * sums[leader] + noisy[leader]:
                    leader = x
            for a in range(left):
                means[a] = (sums[leader] - sums[racing[a]]) / seen
                squares[a] = 0.0
            for j in range(seen):
                factor = order[j]
                best = rows[factor, leader]
                for a in range(left):
                    apart = best - rows[factor, racing[a]] - means[a]
                    squares[a] += apart * apart
            kept = 0
            for a in range(left):
                x = racing[a]
                lead = s * means[a] + noisy[leader] - noisy[x]
                bound = spread[looked] * np.sqrt(squares[a] / (seen - 1))
                bound += reach[looked] * (widths[leader] + widths[x])
                if x == leader or not lead > bound:
                    racing[kept] = x
                    kept += 1
            left = kept
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
        losses[m] = np.max(totals + noisy) - (totals[winner] + noisy[winner])


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
