"""Compiled loops over the tables of mini-buckets."""

from __future__ import annotations

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel


@kernel(_nrt=False)
def spread(table: Floats, small: Floats, blocks: Ints, within: Ints) -> None:
    """Add a smaller table to each entry of `table` that it bears on; see `Offsets`."""
    width = within.size
    for b in range(blocks.size):
        start, base = b * width, blocks[b]
        for e in range(width):
            table[start + e] += small[base + within[e]]


@kernel(_nrt=False)
def gather(table: Floats, small: Floats, blocks: Ints, within: Ints) -> None:
    """Add each entry of `table` to the entry of the smaller table that it belongs to."""
    width = within.size
    for b in range(blocks.size):
        start, base = b * width, blocks[b]
        for e in range(width):
            small[base + within[e]] += table[start + e]
