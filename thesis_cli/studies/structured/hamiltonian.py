"""The reduction of Theorem 2.1 of Vembu et al.: is there a Hamiltonian cycle, by a partition function."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Bools, Floats
from thesis_cli.structured.cycles import CycleSets, HamiltonianCycles

LISTED = 6
"""Vertices of the largest graphs whose cycles are listed."""


class Decisions(NamedTuple):
    """Decisions of ln Z about graphs; arrays of shape (graphs,).

    Attributes
    ----------
    hamiltonian : whether a graph has a Hamiltonian cycle.
    once, twice : ln Z over the threshold |V| ln(|V|! |V|), with each edge of a cycle counted once,
        and twice as psi over ordered pairs and a symmetric theta count it. At 1 and above the
        reduction says that there is a Hamiltonian cycle.
    """

    hamiltonian: Bools
    once: Floats
    twice: Floats


def strength(vertices: int) -> float:
    """ln(|V|! |V|), the weight of an edge of the graph."""
    return math.lgamma(vertices + 1) + math.log(vertices)


def decisions(edges: Floats, vertices: int) -> Decisions:
    """Decide for graphs given as 0 and 1 for each pair, shape (graphs, pairs).

    Cycles of up to six vertices are listed; larger ones are summed and maximised by a lattice.
    """
    weight = strength(vertices)
    if vertices <= LISTED:
        features = np.concatenate([CycleSets(vertices).features(block) for block in CycleSets(vertices).blocks()])
        shared = edges @ features.T  # edges of the graph on each cycle
        whole = features.sum(axis=1) == vertices
        hamiltonian = (shared[:, whole] == vertices).any(axis=1)
        log_z = [logsumexp(times * weight * shared, axis=1) for times in (1, 2)]
    else:
        hamiltonian = HamiltonianCycles(vertices).maximise(edges).values == vertices
        log_z = [CycleSets(vertices).log_partition(times * weight * edges) for times in (1, 2)]
    once, twice = (values / (vertices * weight) for values in log_z)
    return Decisions(hamiltonian, once, twice)


def random_graphs(count: int, vertices: int, rng: np.random.Generator) -> Floats:
    """Random graphs near the threshold of Hamiltonian ones: (n / 2) (ln n + ln ln n) edges on
    average; shape (count, pairs).
    """
    pairs = vertices * (vertices - 1) // 2
    chance = vertices / 2 * (math.log(vertices) + math.log(math.log(vertices))) / pairs
    return (rng.random((count, pairs)) < chance).astype(float)
