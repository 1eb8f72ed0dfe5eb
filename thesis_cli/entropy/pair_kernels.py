"""Compiled race of pairs of exponential clocks that share their noise, and its plain NumPy
reference."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.compiled import kernel
from thesis_cli.perturbation.tricks.clock_kernels import HALF_STEP


@kernel()
def race_pairs(rng: np.random.Generator, waits: Floats, tops: Floats, best: Floats) -> None:
    """Run the clocks of one block of configurations in two races, for every perturbation of a
    group.

    In race k the clock of x rings at E_x waits[k, x] in units of exp(-tops[k]), with the same E_x =
    -ln(1 - u) in both. Since E_x >= u, the logarithm is computed only for a clock that may be first
    in one of them.

    Parameters
    ----------
    rng : source of one uniform for each clock of each perturbation, perturbation by perturbation.
    waits : mean waiting times exp(tops[k] - phi_k(x)) of the block, shape (2, B); inf where
        impossible.
    tops : largest phi_k of the block, or any number if all its waits are inf, shape (2,).
    best : largest phi_k(x) - ln E_x so far, shape (2, G); updated.
    """
    waits_0, waits_1 = waits[0], waits[1]
    for g in range(best.shape[1]):
        first_0, first_1 = np.exp(tops[0] - best[0, g]), np.exp(tops[1] - best[1, g])
        won_0 = won_1 = False
        for x in range(waits_0.size):
            u = rng.random() + HALF_STEP
            if u * waits_0[x] < first_0 or u * waits_1[x] < first_1:
                clock = -np.log1p(-u)
                if clock * waits_0[x] < first_0:
                    first_0, won_0 = clock * waits_0[x], True
                if clock * waits_1[x] < first_1:
                    first_1, won_1 = clock * waits_1[x], True
        if won_0:
            best[0, g] = tops[0] - np.log(first_0)
        if won_1:
            best[1, g] = tops[1] - np.log(first_1)


def race_pairs_reference(rng: np.random.Generator, waits: Floats, tops: Floats, best: Floats) -> None:
    """`race_pairs` in plain NumPy."""
    for g in range(best.shape[1]):
        clocks = -np.log1p(-(rng.random(waits.shape[1]) + HALF_STEP))
        best[:, g] = np.maximum(best[:, g], tops - np.log((clocks * waits).min(axis=1)))
