"""Names of the quantities and methods of this package; light, so that the command line starts
quickly."""

from __future__ import annotations

import math
from typing import Literal

Quantity = Literal[
    "renyi", "shannon", "hartley", "min", "collision-probability", "inverse-participation-ratio", "tsallis"
]

Approximation = Literal["bethe", "trw"]

Design = Literal["independent", "stratified"]

ORDER: dict[Quantity, float] = {
    "shannon": 1.0,
    "hartley": 0.0,
    "min": math.inf,
    "collision-probability": 2.0,
    "inverse-participation-ratio": 2.0,
}
"""Quantities that have one fixed order."""

ENTROPIES: tuple[Quantity, ...] = ("renyi", "shannon", "hartley", "min")
"""Quantities that are Renyi entropies; the others are functions of one."""
