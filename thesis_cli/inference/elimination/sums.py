"""The tables of one elimination, and the passes over its steps; a backward pass keeps the messages of a
segment of the steps at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.parallel import Threads
from thesis_cli.inference.elimination.back_kernels import draw_states, maximise_batch, send_back
from thesis_cli.inference.elimination.kernels import SAFE, Tables, close_step, sum_out, sum_rows
from thesis_cli.inference.elimination.plan import Plan

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
    sent = plan.sent
    n = len(sent)
    done = np.cumsum(np.array(sent, dtype=np.float64))
    cuts = np.searchsorted(done, done[-1] * np.arange(1, count) / count) + 1 if n else np.array([], np.int64)
    bounds = sorted({0, n, *(int(c) for c in cuts if c < n)})
    forward_at, forward_size = plan.places
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


LARGE = 2**17
"""Entries of a table from which threads share it."""

Held = Mapping[int, int]


class Sum:
    """Sums over the variables of one slice.

    Parameters
    ----------
    plan : the steps.
    log_groups : entries of the groups of factors; overwritten.
    at, messages : places of messages, and the array that holds them.
    jobs : number of threads.
    """

    def __init__(self, plan: Plan, log_groups: Floats, at: Ints, messages: Floats, jobs: int) -> None:
        self._plan, self._jobs, self._sent, self._arriving = plan, jobs, plan.sent, plan.arriving
        n = len(plan.order)
        kinds, tops, lows = (np.concatenate([np.zeros(n), found]) for found in _weights(log_groups, plan.group_at))
        self._constant = float(tops[n:].sum()) if -np.inf in tops[n:] else math.fsum(tops[n:].tolist())
        tops[n:] = np.where(kinds[n:] > 0, 0.0, 1.0)
        self._kinds, self._tops, self._lows, self._groups = kinds.astype(np.int64), tops, lows, log_groups
        self._logs = np.zeros(n)
        self._large = [j for j, size in enumerate(plan.sizes) if size >= LARGE] if jobs > 1 else []
        self._place(at, messages)

    def _place(self, at: Ints, messages: Floats) -> None:
        starts = np.concatenate([at, self._plan.group_at[:-1]])
        self._tables = Tables(messages, self._groups, starts, self._kinds, self._tops, self._lows)

    def forward(self, start: int, stop: int) -> None:
        """Steps start to stop: a call for those between two that threads share."""
        plan = self._plan
        with Threads(self._jobs) as threads:
            for j in [j for j in self._large if start <= j < stop]:
                if not sum_out(plan.steps, self._tables, start, j, self._logs):
                    return
                start = j + 1
                self._logs[j] = close_step(plan.steps, self._tables, j, *self._share(threads, j))
                if self._logs[j] == -np.inf:
                    return
            sum_out(plan.steps, self._tables, start, stop, self._logs)

    def _share(self, threads: Threads, j: int) -> tuple[float, float]:
        """Compute a message in threads."""
        parts = 4 * self._jobs if self._jobs > 1 else 1
        cuts = [int(self._plan.steps.rows[j]) * part // parts for part in range(parts + 1)]
        found = list(threads.map(lambda *span: sum_rows(self._plan.steps, self._tables, j, *span), cuts[:-1], cuts[1:]))
        return max(each[0] for each in found), min(each[1] for each in found)

    def log_z(self) -> float:
        """ln of the sum, after all steps; without factors that have no variable."""
        logs = self._logs.tolist()
        return -math.inf if -math.inf in logs or self._constant == -math.inf else self._constant + math.fsum(logs)

    def backward(self, parts: Segments, *, replacing: bool = False) -> Iterator[int]:
        """All steps, the last first; at each, the messages that it takes are there.

        If `replacing`, the message of each step is as `send_back` at a later one left it.
        """
        plan, sent = self._plan, self._sent
        crossing: list[dict[int, Floats]] = []
        count = len(parts.bounds) - 1
        if count > 1:
            messages = np.empty(parts.forward_size)
            self._place(parts.forward_at, messages)
            for s in range(count):
                crossing.append(parts.copies(sent, s, messages))
                if s + 1 < count:
                    self.forward(parts.bounds[s], parts.bounds[s + 1])
            del messages
        kept = np.empty(parts.kept_size)
        returned: dict[int, Floats] = {}
        for s in reversed(range(count)):
            low, high, at = parts.bounds[s], parts.bounds[s + 1], parts.kept_at[s]
            self._place(at, kept)
            for k in parts.entering[s]:
                kept[at[k] : at[k] + sent[k]] = crossing[s][k]
            self.forward(low, high)
            if replacing:
                for k in [k for k in returned if k >= low]:
                    kept[at[k] : at[k] + sent[k]] = returned.pop(k)
                for j in range(low, high):
                    if plan.consumers[j] < 0:  # P() / message
                        kept[at[j]] = -kept[at[j]] if self._kinds[j] else 1 / kept[at[j]]
            yield from reversed(range(low, high))
            if replacing:
                for k in parts.entering[s]:
                    returned[k] = kept[at[k] : at[k] + sent[k]].copy()
            if crossing:
                crossing.pop()

    def send_back(self, j: int) -> Floats:
        """Unnormalised marginal of the variable of step j, in a backward pass that replaces messages."""
        steps = self._plan.steps
        own = np.zeros(int(steps.dims[steps.axes[j + 1] - 1]))
        back = np.zeros(sum(self._sent[k] for k in self._arriving[j]))
        send_back(steps, self._tables, j, self._logs, back, own)
        return own

    def draw(self, j: int, uniforms: Floats, states: Ints) -> None:
        """Draw the states of the variable of step j, in a backward pass."""
        draw_states(self._plan.steps, self._tables, j, uniforms, states)


def _weights(logs: Floats, group_at: Ints) -> tuple[Floats, Floats, Floats]:
    """Kind, ln of the top, and low of each group; `logs` becomes entries relative to the top: weights
    for kind 0, else logarithms.
    """
    starts = group_at[:-1]
    if not starts.size:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    tops = np.maximum.reduceat(logs, starts)
    sizes = np.diff(group_at)
    logs -= np.repeat(np.where(tops == -np.inf, 0.0, tops), sizes)
    lows = np.minimum.reduceat(np.where(logs == -np.inf, 0.0, logs), starts)
    kinds = lows < SAFE
    linear = np.repeat(~kinds, sizes)
    np.exp(logs, out=logs, where=linear)
    return kinds.astype(np.float64), tops, lows


class SliceMaxima:
    """Maxima over the variables of one slice, under noise.

    Parameters
    ----------
    plan : the steps.
    log_groups : entries of the groups of factors.
    noise_at : where the noise of the variable of each step begins.
    parts : segments for the maximisers.
    kind : type of the number of a state.
    """

    def __init__(self, plan: Plan, log_groups: Floats, noise_at: Ints, parts: Segments, kind: type[Any]) -> None:
        self._plan, self._noise_at, self._parts = plan, noise_at, parts
        n, groups = len(plan.order), len(plan.groups)
        starts = np.concatenate([parts.forward_at, plan.group_at[:-1]])
        unused = np.zeros(n + groups)
        self._messages = np.empty(parts.forward_size)
        self._tables = Tables(self._messages, log_groups, starts, np.zeros(n + groups, np.int64), unused, unused)
        self._choices = np.empty(parts.kept_size, kind)
        self._spans = [np.array(span) for span in pairwise(parts.bounds)]

    def of(self, noise: Floats) -> tuple[Floats, Ints]:
        """The largest value under each row of noise, shape (batch, sum of cardinalities), and the
        states of the steps' variables.
        """
        values, states = np.zeros(len(noise)), np.zeros((len(noise), len(self._plan.order)), np.int64)
        if len(self._spans) == 1:
            self._pass(0, noise, values, states)
        else:
            for b in range(len(noise)):
                self._in_segments(noise[b : b + 1], values[b : b + 1], states[b : b + 1])
        return values, states

    def _pass(self, s: int, noise: Floats, values: Floats, states: Ints) -> None:
        places = np.stack([self._noise_at, self._parts.kept_at[s]])
        maximise_batch(self._plan.steps, self._tables, self._spans[s], noise, places, self._choices, values, states)

    def _in_segments(self, noise: Floats, values: Floats, states: Ints) -> None:
        """A forward pass that keeps the messages between segments, then each segment again, the last
        first.
        """
        parts, sent = self._parts, self._plan.sent
        crossing: list[dict[int, Floats]] = []
        for s in range(len(self._spans)):
            crossing.append(parts.copies(sent, s, self._messages))
            if s + 1 < len(self._spans):
                self._pass(s, noise, values, states)
        values[:] = 0.0
        for s in reversed(range(len(self._spans))):
            for k, message in crossing[s].items():
                self._messages[parts.forward_at[k] : parts.forward_at[k] + sent[k]] = message
            self._pass(s, noise, values, states)
