"""Messages of an elimination for a backward pass: a segment of the steps at a time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.elimination.plan import Plan, places

FEWEST, MOST = 1, 256
"""Numbers of segments that are tried."""


@dataclass(frozen=True)
class Segments:
    """Steps in segments whose messages are kept all at once; messages that cross from a segment
    into a later one are kept from the forward pass.

    Attributes
    ----------
    bounds : the segments are steps bounds[s] to bounds[s + 1].
    entering : messages that each segment takes from earlier ones.
    crossing : messages from before each segment to it or to later ones.
    forward_at, forward_size : places of messages in the forward pass.
    kept_at, kept_size : places of messages while a segment is kept, and the largest such size.
    memory : bytes.
    """

    bounds: list[int]
    entering: list[list[int]]
    crossing: list[list[int]]
    forward_at: Ints
    forward_size: int
    kept_at: list[Ints]
    kept_size: int
    memory: int

    def copies(self, sent: list[int], s: int, messages: Floats) -> dict[int, Floats]:
        """Copies of the messages, of these sizes, that cross into segment s in the forward pass."""
        return {k: messages[self.forward_at[k] : self.forward_at[k] + sent[k]].copy() for k in self.crossing[s]}


def segments(plan: Plan, memory: int, bytes_kept: int) -> Segments:
    """The fewest segments, among powers of two, that fit into the memory; if none do, those that
    need least.

    Parameters
    ----------
    bytes_kept : for each entry of a message that is kept: 8 for the message itself, or those of a
        maximiser on top of messages that are not kept.
    """
    best = None
    count = FEWEST
    while best is None or count <= min(MOST, len(plan.order)):
        found = _divide(plan, count, bytes_kept)
        if best is None or found.memory < best.memory:
            best = found
        if found.memory <= memory:
            break
        count *= 2
    return best


def _divide(plan: Plan, count: int, bytes_kept: int) -> Segments:
    sent = plan.sent()
    n = len(sent)
    done = np.cumsum(np.array(sent, dtype=np.float64))
    cuts = np.searchsorted(done, done[-1] * np.arange(1, count) / count) + 1 if n else np.array([], np.int64)
    bounds = sorted({0, n, *(int(c) for c in cuts if c < n)})
    forward_at, forward_size = places(plan)
    entering, crossing, kept_at = [], [], []
    largest = 0
    for low, high in pairwise(bounds):
        entering.append([k for k in range(low) if low <= plan.consumers[k] < high])
        crossing.append([k for k in range(low) if plan.consumers[k] >= low])
        at, size = np.zeros(n, np.int64), 0
        for k in (*entering[-1], *range(low, high)):
            at[k] = size
            size += sent[k]
        kept_at.append(at)
        largest = max(largest, size)
    stored = sum(sent[k] for group in crossing for k in group)
    memory = 8 * (stored + forward_size + 2 * int(plan.group_at[-1])) + bytes_kept * largest
    return Segments(bounds, entering, crossing, forward_at, forward_size, kept_at, largest, memory)
