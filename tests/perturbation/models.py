"""Small models and a solver that tests of low-rank noise share."""

import numpy as np

from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph


def seed(n=0):
    return np.random.SeedSequence(n)


def product(cardinalities, spread=1.5):
    rng = np.random.default_rng(3)
    return FactorGraph(cardinalities, [Factor((i,), rng.normal(0, spread, k)) for i, k in enumerate(cardinalities)])


def triangle():
    """A frustrated triangle of strong couplings with a fourth variable, whose bounds are loose."""
    spin = np.array([-1.0, 1.0])
    pairs = [((0, 1), -1.2), ((1, 2), -1.2), ((0, 2), -1.2), ((2, 3), 1.5)]
    return FactorGraph(
        [2] * 4, [Factor(e, c * np.outer(spin, spin)) for e, c in pairs] + [Factor((3,), np.array([0.0, 0.5]))]
    )


class Worse(Elimination):
    """An approximate solver: the maximiser with its first variable set to state 0."""

    name = "worse"
    guarantee = "approximate"

    def maximise(self, noise):
        _, states = super().maximise(noise)
        states[:, 0] = 0
        offsets = np.cumsum([0, *self.graph.cardinalities[:-1]])
        return self.graph.log_potential(states) + np.take_along_axis(noise, states + offsets, axis=1).sum(
            axis=1
        ), states


class Misses(Elimination):
    """An approximate solver that returns the all-zero configuration for four problems in five."""

    name = "misses"
    guarantee = "approximate"

    def maximise(self, noise):
        values, states = super().maximise(noise)
        lost = np.mod(np.abs(noise[:, 0]) * 1000, 1) < 0.8
        states[lost] = 0
        offsets = np.cumsum([0, *self.graph.cardinalities[:-1]])
        tilts = np.take_along_axis(noise, states + offsets, axis=1).sum(axis=1)
        return np.where(lost, self.graph.log_potential(states) + tilts, values), states
