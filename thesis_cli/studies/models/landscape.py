"""All configurations of a small model: random potentials, how ragged they are, and how few dominate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.noise import gumbel


@dataclass(frozen=True, eq=False)
class Landscape:
    """Log-potentials of all configurations of n binary variables (Hazan et al. Figure 3).

    Configurations are numbered in binary, variable 0 first: flipping variable i changes the number
    by 2^(n - 1 - i). Neighbours differ in one variable.

    Attributes
    ----------
    table : log-potentials in nats, an axis of length 2 for each variable.
    """

    table: Floats

    @property
    def values(self) -> Floats:
        """Log-potentials by number, shape (2^n,)."""
        return self.table.reshape(-1)

    @cached_property
    def probabilities(self) -> Floats:
        """Shape (2^n,)."""
        return np.asarray(np.exp(self.values - logsumexp(self.values)))

    @cached_property
    def neighbours(self) -> Floats:
        """Log-potentials of the neighbours, shape (n, 2^n)."""
        return np.stack([np.flip(self.table, axis).reshape(-1) for axis in range(self.table.ndim)])

    @property
    def local_maxima(self) -> int:
        """Number of configurations above all their neighbours."""
        return int((self.values > self.neighbours.max(axis=0)).sum())

    def dominating(self, share: float) -> Ints:
        """The fewest configurations that hold at least this share of the probability, highest first."""
        order = np.argsort(-self.probabilities, kind="stable")
        count = int(np.searchsorted(np.cumsum(self.probabilities[order]), share)) + 1
        return order[:count]

    @property
    def entropy(self) -> float:
        """Shannon entropy in nats."""
        return float(logsumexp(self.values) - self.probabilities @ self.values)

    @property
    def dependence(self) -> float:
        """Total variation between the distribution and the product of its marginals."""
        n = self.table.ndim
        p = self.probabilities.reshape(self.table.shape)
        product = np.ones(())
        for axis in range(n):
            product = np.multiply.outer(product, p.sum(axis=tuple(j for j in range(n) if j != axis)))
        return 0.5 * float(np.abs(p - product).sum())

    @property
    def unevenness(self) -> float:
        """Largest deviation of a step, the change of the log-potential when one variable goes from
        state 0 to 1, from its mean over the configurations of the others, in nats."""
        steps = [np.diff(self.table, axis=axis) for axis in range(self.table.ndim)]
        return max(float(np.abs(step - step.mean()).max()) for step in steps)

    def climb(self) -> Ints:
        """Configurations to which the best single flips, as long as one is better, lead from each configuration."""
        n = self.table.ndim
        number = np.arange(self.values.size)
        to = np.where(
            self.neighbours.max(axis=0) > self.values, number ^ (1 << (n - 1 - self.neighbours.argmax(axis=0))), number
        )
        while (to[to] != to).any():
            to = to[to]
        return to

    def perturbed(self, count: int, rng: np.random.Generator) -> Ints:
        """Maximisers under Gumbel noise on each state of each variable, shape (count,)."""
        n = self.table.ndim
        bits = np.indices(self.table.shape).reshape(n, -1)
        noise = gumbel(rng, count, 2 * n).reshape(count, n, 2)
        total = self.values + sum(noise[:, i, bits[i]] for i in range(n))
        return np.asarray(total.argmax(axis=1))


def landscape(graph: FactorGraph) -> Landscape:
    """The landscape of a model of few binary variables."""
    states = np.indices(graph.cardinalities).reshape(len(graph.cardinalities), -1).T
    return Landscape(graph.log_potential(states).reshape(graph.cardinalities))


GRID, TABLE = (2, 3), (3, 2, 4)
"""Rows and columns of the spin glasses, and shape of the tables."""


def small_potentials(
    kind: Literal["attractive", "mixed", "table"], strength: float, rng: np.random.Generator
) -> Floats:
    """Log-potential of every configuration, an axis for each variable.

    Parameters
    ----------
    kind : `table` for independent normal numbers of deviation `strength`; otherwise `attractive` or
        `mixed`, a 2 x 3 spin glass with fields from [-1, 1] and couplings up to `strength`.
    """
    if kind == "table":
        return strength * rng.standard_normal(TABLE)
    graph = random_spin_glass(*GRID, strength, 1.0, kind, rng).graph()
    states = np.indices(graph.cardinalities).reshape(len(graph.cardinalities), -1).T
    return graph.log_potential(states).reshape(graph.cardinalities)
