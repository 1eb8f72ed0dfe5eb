"""A space at which the bounds on schedules and on META are tight."""

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.hypercube import Hypercube
from thesis_cli.structured.space import Maxima


class Needle(Hypercube):
    """Vertices of a hypercube with one feature, 1 where all bits are 1 and -1 elsewhere.

    All log-potentials are R |theta| or -R |theta|, so Cauchy and Schwarz lose nothing, and 2^elements
    decides at which temperature the two have equal masses.
    """

    name = "needle"

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.dimension, self.radius = 1, 1.0

    def features(self, structures: Ints) -> Floats:
        found: Floats = np.where(structures.all(axis=1), 1.0, -1.0)[:, None]
        return found

    def log_partition(self, weights: Floats) -> Floats:
        theta = self.checked(weights)[:, 0]
        found: Floats = np.logaddexp(theta, np.log(2.0**self.elements - 1) - theta)
        return found

    def mean_features(self, weights: Floats) -> Floats:
        theta = self.checked(weights)[:, :1]
        found: Floats = np.tanh(theta - np.log(2.0**self.elements - 1) / 2)
        return found

    def maximise(self, weights: Floats) -> Maxima:
        theta = self.checked(weights)[:, 0]
        rows = np.repeat((theta > 0).astype(np.int64)[:, None], self.width, axis=1)
        return Maxima(np.abs(theta), rows, exact=True)

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        share = (1 + self.mean_features(weights[None])[0, 0]) / 2
        rows = self.sample(count, rng)
        while (needles := rows.all(axis=1)).any():
            rows[needles] = self.sample(int(needles.sum()), rng)
        rows[rng.random(count) < share] = 1
        return rows
