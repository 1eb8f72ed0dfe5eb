"""Compiled race of exponential clocks, one for each configuration, and a plain reference."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel

HALF_STEP = 2.0**-54
"""Half the spacing of `Generator.random`; with it added, no uniform and no time is 0."""


@kernel()
def race(rng: np.random.Generator, waits: Floats, top: float, start: int, best: Floats, winner: Ints) -> None:
    """Let the clocks of one block join the races of a group of perturbations.

    Clock x of a perturbation rings at T_x = E_x waits[x] in units of exp(-top), E_x = -ln(1 - u).
    The logarithm is taken only of a clock that may be first: E_x >= u, so u waits[x] bounds T_x
    below.

    Parameters
    ----------
    rng : source of one uniform for each clock of each perturbation, perturbation by perturbation.
    waits : mean waiting times exp(top - phi(x)) of the block, shape (B,); inf where impossible.
    top : the largest phi of the block.
    start : index of the block's first configuration.
    best : largest phi(x) - ln E_x so far, shape (G,); updated.
    winner : index of the configuration that attains it, shape (G,); updated.
    """
    for g in range(best.size):
        first = np.exp(top - best[g])
        at = -1
        for x in range(waits.size):
            u = rng.random() + HALF_STEP
            if u * waits[x] < first:
                time = -np.log1p(-u) * waits[x]
                if time < first:
                    first = time
                    at = x
        if at >= 0:
            best[g] = top - np.log(first)
            winner[g] = start + at


def race_reference(rng: np.random.Generator, waits: Floats, top: float, start: int, best: Floats, winner: Ints) -> None:
    """`race` in plain NumPy."""
    for g in range(best.size):
        times = -np.log1p(-(rng.random(waits.size) + HALF_STEP)) * waits
        at = int(times.argmin())
        value = top - np.log(times[at])
        if value > best[g]:
            best[g] = value
            winner[g] = start + at
