"""Maximisers of spin glasses of any size under Gumbel noise on the states of each spin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.inference.graph_cut.graph_cut import GraphCut
from thesis_cli.models.spin_glass import Kind, SpinGlass
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation.spin_glass_strips import Strips

SEARCHED, ALL_AT_ONCE = 10, 11
"""Rows of the strips that search for maxima, and rows up to which one strip has them all."""

ENTRIES = 2**21
"""Most noise entries drawn together."""


class Perturbed(NamedTuple):
    """Some perturbations, and the maximiser under each.

    Attributes
    ----------
    half : half of what the noise on spin +1 exceeds that on spin -1, shape (count, rows, columns):
        the noise at a spin x is its mean plus x times this.
    mean : sum over the sites of the mean of both, shape (count,).
    spins : the maximisers, shape (count, rows, columns).
    """

    half: Floats
    mean: Floats
    spins: Floats

    @property
    def at_max(self) -> Floats:
        """Noise at the maximisers, sum_i gamma_i(x_i*), shape (count,)."""
        return np.asarray(self.mean + (self.half * self.spins).sum(axis=(1, 2)))


class PerturbedGlass:
    """A spin glass prepared for perturbations.

    Attractive ones are maximised by graph cuts, others by grid transfer if they are narrow, and by
    `Strips.search` if not.

    Attributes
    ----------
    exact : whether the maximisers are certain; if not, they are the best found.
    """

    def __init__(self, glass: SpinGlass, kind: Kind) -> None:
        rows = len(glass.fields)
        self._glass = glass
        self._cut = GraphCut(glass.graph()) if kind == "attractive" and rows > ALL_AT_ONCE else None
        self._strips = Strips(glass, rows if rows <= ALL_AT_ONCE else SEARCHED)
        self.exact = self._cut is not None or rows <= ALL_AT_ONCE

    def spins(self, fields: Floats) -> Floats:
        """Maximisers under other fields, both of shape (batch, rows, columns)."""
        if self._cut is None:
            return self._strips.search(fields)[1]
        shift = (fields - self._glass.fields).reshape(len(fields), -1)
        states = self._cut.maximise(np.stack([-shift, shift], axis=2).reshape(len(fields), -1))[1]
        return np.asarray((2.0 * states - 1).reshape(fields.shape), np.float64)

    def draw(self, samples: int, rng: np.random.Generator) -> Iterator[Perturbed]:
        """Independent perturbations in blocks, `samples` in all."""
        shape = self._glass.fields.shape
        entries = 2 * self._glass.fields.size
        for start in range(0, samples, rows := max(1, ENTRIES // entries)):
            noise = gumbel(rng, min(rows, samples - start), entries).reshape(-1, *shape, 2)
            half, mean = (noise[..., 1] - noise[..., 0]) / 2, noise.sum(axis=(1, 2, 3)) / 2
            yield Perturbed(half, mean, self.spins(self._glass.fields + half))
