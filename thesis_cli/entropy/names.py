"""Names of what can be asked of a distribution; light enough for the command line to import at its start."""

from __future__ import annotations

import math
from typing import Literal

Quantity = Literal[
    "renyi", "shannon", "hartley", "min", "collision-probability", "inverse-participation-ratio", "tsallis"
]

TrickName = Literal["gumbel", "exponential", "weibull", "frechet"]

Approximation = Literal["bethe", "trw"]

Design = Literal["independent", "stratified"]

ORDER: dict[Quantity, float] = {
    "shannon": 1.0,
    "hartley": 0.0,
    "min": math.inf,
    "collision-probability": 2.0,
    "inverse-participation-ratio": 2.0,
}
"""Quantities that are of one order alpha."""

ENTROPIES: tuple[Quantity, ...] = ("renyi", "shannon", "hartley", "min")
"""Quantities that are Renyi entropies; the others are functions of one."""
