"""META as a matrix: exact distances from its stationary distribution (Vembu et al. appendix A, B)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured.meta import mixing_bound, mixing_steps
from thesis_cli.structured.space import Space

MOST_STATES = 1000
"""Largest matrix."""


def all_potentials(space: Space, weights: Floats) -> Floats:
    """Log-potentials of all structures under one weight vector, shape (size,). Raises ModelTooLarge
    if there are more than 1,000."""
    if space.size() > MOST_STATES:
        raise ModelTooLarge(f"{space.name} has {space.size():,} structures", f"a matrix takes {MOST_STATES:,}")
    return np.concatenate([space.scores(block, weights) for block in space.blocks()])


def acceptance(potentials: Floats) -> float:
    """Probability Z / (|Y| exp(max E)) that all states accept a step at once."""
    return float(np.exp(potentials - potentials.max()).mean())


def transition_matrix(potentials: Floats) -> Floats:
    """Probabilities of a step of META from each state (row) to each other, shape (n, n)."""
    count = len(potentials)
    matrix = np.exp(np.minimum(0.0, potentials[None, :] - potentials[:, None])) / count
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, 1.0 - matrix.sum(axis=1))
    return matrix


def spectral_gap(potentials: Floats) -> float:
    """1 less the second largest eigenvalue of the transition matrix, by LAPACK."""
    matrix, roots = transition_matrix(potentials), np.exp((potentials - potentials.max()) / 2)
    symmetric = matrix * roots[:, None] / roots[None, :]  # META is reversible
    values = np.linalg.eigvalsh((symmetric + symmetric.T) / 2)
    return float(1 - values[-2]) if len(values) > 1 else 1.0


def worst_distance(powers: Floats, potentials: Floats) -> float:
    """Total variation distance from the worst start (Definition A.1), given P^t."""
    masses = np.exp(potentials - potentials.max())
    return float(np.abs(powers - masses / masses.sum()).sum(axis=1).max() / 2)


def mixing_time(potentials: Floats, distance: float) -> int:
    """Least t after which the distance from the worst start stays within `distance` (Definition A.2).

    The distance never rises, so that t is found from the powers P^(2^k). Raises InputError if the
    distance is not between 0 and 1.
    """
    if not 0 < distance < 1:
        raise InputError(f"the distance is {distance:g}", "it must be between 0 and 1")
    powers = [transition_matrix(potentials)]
    if worst_distance(np.eye(len(potentials)), potentials) <= distance:
        return 0
    while worst_distance(powers[-1], potentials) > distance:
        powers.append(powers[-1] @ powers[-1])
    reached, steps = np.eye(len(potentials)), 0
    for level in range(len(powers) - 1, -1, -1):
        further = reached @ powers[level]
        if worst_distance(further, potentials) > distance:
            reached, steps = further, steps + 2**level
    return steps + 1


def printed_mixing_bound(radius: float, distance: float) -> float:
    """ceil(ln(1/epsilon) / ln(1 / (1 - exp(-2BR)))) with BR = `radius` (Theorem B.2)."""
    return math.ceil(math.log(1 / distance) / -math.log1p(-math.exp(-2 * radius)))


def mixing_numbers(potentials: Floats, radius: float, distance: float) -> dict[str, float]:
    """The exact `mixing time`, and its bounds by `Theorem B.2` with BR = `radius`, by the `span` of the
    log-potentials, and by the probability that all states accept a step (`acceptance`).
    """
    return {
        "mixing time": float(mixing_time(potentials, distance)),
        "Theorem B.2": printed_mixing_bound(radius, distance),
        "span": mixing_bound(float(np.ptp(potentials)), distance),
        "acceptance": mixing_steps(acceptance(potentials), distance),
    }


def distances(potentials: Floats, steps: Sequence[int]) -> list[float]:
    """Total variation distances from the worst start after numbers of steps that rise."""
    matrix, found, at = transition_matrix(potentials), [], 0
    powers = np.eye(len(matrix))
    for step in steps:
        powers, at = powers @ np.linalg.matrix_power(matrix, step - at), step
        found.append(worst_distance(powers, potentials))
    return found
