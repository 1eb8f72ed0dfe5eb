"""Compiled perturbed maxima of `order` phi for many orders at once, and their plain NumPy
reference."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.compiled import kernel

LEAST = np.finfo(np.float64).tiny
"""Replaces the time of a clock that rings at exactly 0, whose logarithm would be infinite."""


@kernel()
def climb(
    rng: np.random.Generator,
    levels: Floats,
    first: Floats,
    orders: Floats,
    values: Floats,
    at_one: Floats,
    potential: Floats,
) -> None:
    """Run the configurations of one block in the races of a group of perturbations, at every order
    at once.

    A configuration that another beats both in potential and in clock E(x) wins at no order. The
    remaining ones form a staircase: sorted by their clocks, their potentials increase. The earliest
    of r clocks rings after Exp(1) / r and is equally likely to be any of them. Clocks have no
    memory, so the others then start afresh, and only those of higher potential matter. A step
    halves their number on average, so about ln B steps replace B clocks. The configuration of
    highest potential has a clock of its own, drawn first, which ends the staircase.

    Parameters
    ----------
    rng : source of the steps.
    levels : potentials phi of the block, descending, finite, shape (B,).
    first : uniforms in [0, 1) for the clock of the top configuration and the first step below it,
        shape (G, 2).
    orders : finite, 0 or more, shape (A,).
    values : largest orders phi(x) - ln E(x) so far, shape (G, A); updated.
    at_one, potential : largest phi(x) - ln E(x) so far, and phi of that configuration, shape (G,);
        updated.
    """
    for g in range(first.shape[0]):
        end = -np.log1p(-first[g, 0])
        clock = 0.0
        step = -np.log1p(-first[g, 1])
        above = levels.size - 1  # ranks 1 to this one are still in the race
        while True:
            rank = 0
            if above > 0:
                clock += step / above
                if clock < end:
                    rank = 1 + int(rng.random() * above)
            noise = -np.log(max(clock if rank > 0 else end, LEAST))
            phi = levels[rank]
            for a in range(orders.size):
                values[g, a] = max(values[g, a], orders[a] * phi + noise)
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
    orders: Floats,
    values: Floats,
    at_one: Floats,
    potential: Floats,
) -> None:
    """`climb` in plain NumPy: list the staircase, then maximise over it."""
    for g, (top, below) in enumerate(-np.log1p(-first)):
        clocks, ranks = [top], [0]
        clock, above, step = 0.0, levels.size - 1, below
        while above and (clock := clock + step / above) < top:
            clocks.append(clock)
            ranks.append(1 + int(rng.random() * above))
            above, step = ranks[-1] - 1, rng.standard_exponential()
        noise = -np.log(np.maximum(clocks, LEAST))
        phi = levels[ranks]
        values[g] = np.maximum(values[g], (np.multiply.outer(orders, phi) + noise).max(axis=1))
        best = int((phi + noise).argmax())
        if phi[best] + noise[best] > at_one[g]:
            at_one[g], potential[g] = phi[best] + noise[best], phi[best]
