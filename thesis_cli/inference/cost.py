"""Predicted seconds and bytes of a computation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Predicted time and memory of one computation.

    Attributes
    ----------
    seconds : on one core of a common machine.
    memory : bytes.
    """

    seconds: float
    memory: int
