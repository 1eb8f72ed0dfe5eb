"""A space of a few structures, with features that a test chooses."""

from __future__ import annotations

import numpy as np

from thesis_cli.structured.space import Space


class Toy(Space):
    """Structures 0, 1, ... with given feature vectors."""

    name = "toy"

    def __init__(self, table) -> None:
        self.table = np.asarray(table, dtype=float)
        self.elements, self.width, self.dimension = len(self.table), 1, self.table.shape[1]
        self.radius = float(np.linalg.norm(self.table, axis=1).max())

    def size(self):
        return len(self.table)

    def sample(self, count, rng):
        return rng.integers(0, len(self.table), (count, 1))

    def features(self, structures):
        return self.table[structures[:, 0]]

    def valid(self, structures):
        return (structures[:, 0] >= 0) & (structures[:, 0] < len(self.table))

    def blocks(self, rows=2**14):
        yield np.arange(len(self.table))[:, None]


def potentials(values) -> tuple[Toy, np.ndarray]:
    """A space whose structures have these log-potentials under the returned weights."""
    return Toy(np.asarray(values, dtype=float)[:, None]), np.ones(1)
