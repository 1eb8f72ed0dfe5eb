"""Predicted seconds and bytes of a computation."""

from __future__ import annotations

from dataclasses import dataclass

SECONDS_A_BYTE = 1e-9
"""Time of a byte of memory when it is touched first: with it, 25 sums of elimination and contraction took .52 to
1.93 times the predicted seconds, and the quicker of the two was predicted to be in all but one of 12 pairs
(`benchmarks/exact_memory.py`)."""


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
