"""Memory that solvers may take, that they are predicted to take, with their time, and that this process has taken."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass

DEFAULT_MEMORY = 2**31
"""Bytes for the tables of one solver."""


def bytes_text(count: int) -> str:
    """`512 MiB`, however large."""
    power = max(0, (count.bit_length() - 1) // 10)
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    if power >= len(units):
        return f"2^{count.bit_length() - 1} bytes"
    return f"{count / 1024**power:.3g} {units[power]}"


def peak_memory() -> int:
    """Most bytes of this process that have been in memory at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


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
