"""Memory that solvers may take, and its wording."""

DEFAULT_MEMORY = 2**31
"""Bytes for the tables of one solver."""


def bytes_text(count: int) -> str:
    """`512 MiB`, however large."""
    power = max(0, (count.bit_length() - 1) // 10)
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    if power >= len(units):
        return f"2^{count.bit_length() - 1} bytes"
    return f"{count / 1024**power:.3g} {units[power]}"
