"""Random models that are small enough to list all configurations."""

from __future__ import annotations

from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.models.spin_glass import random_spin_glass

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
