"""A space whose structures are the paths of a lattice."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.lattice import Lattice
from thesis_cli.structured.space import Maxima, Space


class LatticeSpace(Space):
    """Exact sums, gradients, maxima and draws by a lattice; subclasses say how features label its edges.

    Attributes
    ----------
    paths : number of paths of each structure.
    """

    paths = 1

    def log_partition(self, weights: Floats) -> Floats:
        weights = self.checked(weights)
        lattice = self._lattice()
        parts = [lattice.log_partition(self._labelled(weights[part])) for part in lattice.parts(len(weights))]
        return np.concatenate([np.empty(0), *parts]) - math.log(self.paths)

    def mean_features(self, weights: Floats) -> Floats:
        weights = self.checked(weights)
        lattice = self._lattice()
        found = np.empty((len(weights), self.dimension))
        for part in lattice.parts(len(weights)):
            found[part] = self._unlabelled(lattice.mean_labels(self._labelled(weights[part])))
        return found

    def draw(self, weights: Floats, count: int, rng: np.random.Generator) -> Ints:
        scores = self._labelled(self.checked(weights[None]))[0]
        return self._decoded(self._lattice().draws(scores, count, rng))

    def _best_paths(self, weights: Floats) -> Maxima:
        """Maxima by the lattice, for weights that were checked."""
        lattice = self._lattice()
        values, best = np.empty(len(weights)), np.empty((len(weights), self.width), np.int64)
        for part in lattice.parts(len(weights)):
            values[part], sets = lattice.best_paths(self._labelled(weights[part]))
            best[part] = self._decoded(sets)
        return Maxima(values, best, exact=True)

    @abstractmethod
    def _lattice(self) -> Lattice:
        """The lattice of the features, if it is not too large."""

    @abstractmethod
    def _labelled(self, weights: Floats) -> Floats:
        """Scores of the labels of the lattice, shape (n, labels)."""

    @abstractmethod
    def _unlabelled(self, masses: Floats) -> Floats:
        """Features of masses of labels, shape (n, dimension); the adjoint of `_labelled`."""

    @abstractmethod
    def _decoded(self, sets: Ints) -> Ints:
        """Structures of what paths cover step by step."""
