"""Compiled perturbed maxima of alpha phi for many alphas at once; beside it the plain reference."""

from __future__ import annotations

import numpy as np
from numba import njit

from thesis_cli.base.arrays import Floats

LEAST = np.finfo(np.float64).tiny
"""Stands for a clock that rings at exactly 0, whose logarithm would be infinite."""


@njit(cache=True, nogil=True)
def climb(
    rng: np.random.Generator,
    levels: Floats,
    first: Floats,
    alphas: Floats,
    values: Floats,
    at_one: Floats,
    potential: Floats,
) -> None:
    """Let the configurations of one block join the races of a group of perturbations, at every alpha at once.

    A configuration beaten by another both in potential and in clock E(x) wins at no alpha >= 0. The others are a
    staircase: in order of their clocks, their potentials rise. The earliest clock of r configurations rings after
    Exp(1) / r, and is any one's; the rest, having no memory, start afresh then, and of them only those above it
    matter. So a step halves them on average, and some ln B steps stand for B clocks. The top configuration has a clock
    of its own, drawn first, and ends the staircase.

    Parameters
    ----------
    rng : source of the steps.
    levels : potentials phi of the block, descending, finite, shape (B,).
    first : uniforms in [0, 1) for the clock of the top configuration and the first step below it, shape (G, 2).
    alphas : finite, 0 or above, shape (A,).
    values : largest alpha phi(x) - ln E(x) so far, shape (G, A); updated.
    at_one, potential : largest phi(x) - ln E(x) so far, and phi of that configuration, shape (G,); updated.
    """
    for g in range(first.shape[0]):
        end = -np.log1p(-first[g, 0])
        clock = 0.0
        step = -np.log1p(-first[g, 1])
        above = levels.size - 1  # ranks 1 to this one are in the race still
        while True:
            rank = 0
            if above > 0:
                clock += step / above
                if clock < end:
                    rank = 1 + int(rng.random() * above)
            noise = -np.log(max(clock if rank > 0 else end, LEAST))
            phi = levels[rank]
            for a in range(alphas.size):
                values[g, a] = max(values[g, a], alphas[a] * phi + noise)
            if phi + noise > at_one[g]:
                at_one[g] = phi + noise
                potential[g] = phi
            if rank == 0:
                break
            above = rank - 1
            step = rng.standard_exponential()


def climb_reference(
    rng: np.random.Generator,
    levels: Floats,
    first: Floats,
    alphas: Floats,
    values: Floats,
    at_one: Floats,
    potential: Floats,
) -> None:
    """`climb` in plain NumPy: the staircase listed, then maximised over."""
    for g, (top, below) in enumerate(-np.log1p(-first)):
        clocks, ranks = [top], [0]
        clock, above, step = 0.0, levels.size - 1, below
        while above and (clock := clock + step / above) < top:
            clocks.append(clock)
            ranks.append(1 + int(rng.random() * above))
            above, step = ranks[-1] - 1, rng.standard_exponential()
        noise = -np.log(np.maximum(clocks, LEAST))
        phi = levels[ranks]
        values[g] = np.maximum(values[g], (np.multiply.outer(alphas, phi) + noise).max(axis=1))
        best = int((phi + noise).argmax())
        if phi[best] + noise[best] > at_one[g]:
            at_one[g], potential[g] = phi[best] + noise[best], phi[best]
