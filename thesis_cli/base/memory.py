"""Memory that solvers may take, that this process has taken, and its wording."""

import resource
import sys

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
