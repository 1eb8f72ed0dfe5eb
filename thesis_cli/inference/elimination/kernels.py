"""Compiled steps of variable elimination; tests compare them with enumeration.

A table has its axes in the order of elimination, the next variable fastest, so a step sums along
the fastest axis, and writes its message in the order in which it reads the tables. It works on a
block of the fastest axes at a time, which stays in the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import ZERO, helper, kernel

SAFE = -600.0
"""ln of the least nonzero product that is computed without logarithms: underflow is at -708."""

PRODUCT: Any = np.int64(0)
LOG: Any = np.int64(1)
SUM: Any = np.int64(2)
"""How a row of a table comes from its inputs: a product, its logarithm, or the sum of logarithms."""


class StepArrays(NamedTuple):
    """The steps of an elimination; step j sums over the last of its axes.

    Attributes
    ----------
    axes : dims[axes[j]:axes[j + 1]] are the numbers of states along step j's axes, slowest first.
    blocks : entries along the fastest axes that a step works on at once.
    rows : blocks of a table.
    inputs : inputs[j] to inputs[j + 1] are the inputs of step j.
    sources : the table that an input is: message of a step, or number of steps + number of a group
        of factors.
    strides : of each input along each axis of its step, from strides[starts[q]] on.
    whole : whether an input has all axes of a block.
    owners : the step that eliminates the variable of each axis.
    """

    axes: Ints
    dims: Ints
    blocks: Ints
    rows: Ints
    inputs: Ints
    sources: Ints
    starts: Ints
    strides: Ints
    whole: Ints
    owners: Ints


class Tables(NamedTuple):
    """Entries of messages and of groups of factors.

    Attributes
    ----------
    messages, groups : entries.
    at : where a table begins, by the numbers of `StepArrays.sources`.
    kinds : 0 for entries that are weights, 1 for logarithms.
    tops : the largest entry, which consumers divide by or subtract.
    lows : ln of the smallest nonzero entry / the largest.
    """

    messages: Floats
    groups: Floats
    at: Ints
    kinds: Ints
    tops: Floats
    lows: Floats


@helper(cache=True)
def message_size(steps: StepArrays, j: int) -> int:
    """Entries of a message."""
    entries: int = steps.rows[j] * (steps.blocks[j] // steps.dims[steps.axes[j + 1] - 1])
    return entries


@helper(cache=True)
def prepare_rows(steps: StepArrays, tables: Tables, j: int, row: int, bases: Ints, offsets: Ints, turns: Ints) -> None:
    """Start of each input for a row, and the offset of each entry of a block from there."""
    first, last = steps.axes[j], steps.axes[j + 1]
    block, inputs = steps.blocks[j], steps.inputs[j]
    size: int = 1
    inner = last
    while size < block:
        inner -= 1
        size *= steps.dims[inner]
    for q in range(inputs, steps.inputs[j + 1]):
        bases[q - inputs] = tables.at[steps.sources[q]]
        if steps.whole[q]:  # offsets 0, 1, ...
            continue
        low = (q - inputs) * block
        offsets[low] = 0
        size = 1
        for a in range(last - 1, inner - 1, -1):
            stride = steps.strides[steps.starts[q] + a - first]
            for x in range(1, steps.dims[a]):
                for i in range(size):
                    offsets[low + x * size + i] = offsets[low + i] + x * stride
            size *= steps.dims[a]
    for a in range(inner - 1, first - 1, -1):
        turns[a - first] = row % steps.dims[a]
        row //= steps.dims[a]
        for q in range(inputs, steps.inputs[j + 1]):
            bases[q - inputs] += turns[a - first] * steps.strides[steps.starts[q] + a - first]
    turns[last - first] = inner - first


@helper(cache=True)
def next_row(steps: StepArrays, j: int, bases: Ints, turns: Ints) -> None:
    """Move on by a row."""
    first, inputs = steps.axes[j], steps.inputs[j]
    a = turns[steps.axes[j + 1] - first] - 1
    while a >= 0:
        turns[a] += 1
        back: int = 0
        if turns[a] == steps.dims[first + a]:
            turns[a] = 0
            back = steps.dims[first + a]
        for q in range(inputs, steps.inputs[j + 1]):
            bases[q - inputs] += (1 - back) * steps.strides[steps.starts[q] + a]
        if back == 0:
            return
        a -= 1


@helper(cache=True)
def take_row(steps: StepArrays, tables: Tables, j: int, mode: int, bases: Ints, offsets: Ints, row: Floats) -> None:
    """One row of a step's table: product, logarithm of the product, or sum of its inputs."""
    block, inputs = steps.blocks[j], steps.inputs[j]
    count = steps.inputs[j + 1] - inputs
    if mode == SUM:
        for i in range(block):
            row[i] = 0.0
    scale: float = 1.0
    if mode == PRODUCT:
        for p in range(count):
            scale /= tables.tops[steps.sources[inputs + p]]
    for p in range(count):
        source = steps.sources[inputs + p]
        data = tables.messages if source < steps.blocks.size else tables.groups
        base, low, whole = bases[p], p * block, steps.whole[inputs + p]
        if mode == LOG:
            top = tables.tops[source] if tables.kinds[source] else np.log(tables.tops[source])
            for i in range(block):
                value = data[base + (i if whole else offsets[low + i])]
                value = (value if tables.kinds[source] else np.log(value)) - top
                row[i] = value if p == 0 else row[i] + value
        elif mode == SUM:
            if whole:
                view = data[base : base + block]
                for i in range(view.size):
                    row[i] += view[i]
            else:
                for i in range(block):
                    row[i] += data[base + offsets[low + i]]
        elif whole:
            view = data[base : base + block]
            if p == 0:
                for i in range(view.size):
                    row[i] = scale * view[i]
            else:
                for i in range(view.size):
                    row[i] *= view[i]
        elif p == 0:
            for i in range(block):
                row[i] = scale * data[base + offsets[low + i]]
        else:
            for i in range(block):
                row[i] *= data[base + offsets[low + i]]


@kernel(fastmath={"nnan", "nsz"})
def extremes(values: Floats, start: int, stop: int, high: float, least: float) -> tuple[float, float]:
    """The larger of `high` and the largest of values[start:stop]; the smaller of `least` and the
    smallest positive one. Their order does not matter, so they may be vector instructions.
    """
    view = values[start:stop]
    for i in range(view.size):
        high = max(high, view[i])
    for i in range(view.size):
        value = view[i] if view[i] > 0.0 else np.inf
        least = min(least, value)
    return high, least


@helper()
def sum_row(row: Floats, block: int, states: int, out: Floats, at: int) -> None:
    """Sums over the fastest axis."""
    if states == 2:
        to = out[at : at + block // 2]
        for o in range(to.size):
            to[o] = row[2 * o] + row[2 * o + 1]
        return
    for o in range(block // states):
        low = o * states
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for x in range(low, low + states - 3, 4):
            a += row[x]
            b += row[x + 1]
            c += row[x + 2]
            d += row[x + 3]
        for x in range(low + states - states % 4, low + states):
            a += row[x]
        out[at + o] = (a + b) + (c + d)


@helper()
def sum_logs(row: Floats, block: int, states: int, out: Floats, at: int) -> None:
    """ln of the sums of exponentials over the fastest axis."""
    for o in range(block // states):
        low = o * states
        top = row[low]
        for x in range(low + 1, low + states):
            top = max(top, row[x])
        total: float = 0.0
        if top > -np.inf:
            for x in range(low, low + states):
                total += 1.0 if row[x] == top else np.exp(row[x] - top)
            total = np.log(total)
        out[at + o] = top + total


@helper()
def sum_pairs(a: Floats, at_a: int, b: Floats, at_b: int, out: Floats, at: int, scale: float, count: int) -> None:
    """Sums of products over the fastest axis, of two states; views let the loop be vector instructions."""
    one, two, to = a[at_a : at_a + 2 * count], b[at_b : at_b + 2 * count], out[at : at + count]
    for o in range(to.size):
        to[o] = scale * (one[2 * o] * two[2 * o] + one[2 * o + 1] * two[2 * o + 1])


@kernel()
def mode_of(steps: StepArrays, tables: Tables, j: int) -> int:
    """PRODUCT if no product of a step can underflow or overflow."""
    low: float = 0.0
    scale: float = 0.0
    for q in range(steps.inputs[j], steps.inputs[j + 1]):
        source = steps.sources[q]
        if tables.kinds[source]:
            low = -np.inf
        low += tables.lows[source]
        scale += 0.0 if tables.kinds[source] else np.log(tables.tops[source])
    found: int = PRODUCT if low >= SAFE and abs(scale) <= -SAFE else LOG
    return found


@kernel()
def sum_rows(steps: StepArrays, tables: Tables, j: int, start: int, stop: int) -> tuple[float, float]:
    """Rows start to stop of the message of step j; returns its largest entry, and its smallest
    nonzero one, or both as logarithms.
    """
    block, inputs, axes = steps.blocks[j], steps.inputs[j], steps.axes[j + 1] - steps.axes[j]
    count, states = steps.inputs[j + 1] - inputs, steps.dims[steps.axes[j + 1] - 1]
    bases, turns = np.empty(count, np.int64), np.empty(axes + 1, np.int64)
    offsets, row = np.empty(count * block, np.int64), np.empty(block)
    prepare_rows(steps, tables, j, start, bases, offsets, turns)
    mode = mode_of(steps, tables, j)
    out, left = tables.messages, block // states
    high, least = -np.inf, np.inf
    paired = mode == PRODUCT and states == 2 and count == 2 and steps.whole[inputs] + steps.whole[inputs + 1] == 2
    for r in range(start, stop):
        at = tables.at[j] + r * left
        if paired:
            s, t = steps.sources[inputs], steps.sources[inputs + 1]
            a = tables.messages if s < steps.blocks.size else tables.groups
            b = tables.messages if t < steps.blocks.size else tables.groups
            sum_pairs(a, bases[0], b, bases[1], out, at, 1.0 / tables.tops[s] / tables.tops[t], left)
        else:
            take_row(steps, tables, j, mode, bases, offsets, row)
            if mode == PRODUCT:
                sum_row(row, block, states, out, at)
            else:
                sum_logs(row, block, states, out, at)
        if mode == PRODUCT:
            high, least = extremes(out, at, at + left, high, least)
        else:
            for i in range(at, at + left):
                high = max(high, out[i])
                if out[i] > -np.inf:
                    least = min(least, out[i])
        next_row(steps, j, bases, turns)
    return high, least


@kernel()
def close_step(steps: StepArrays, tables: Tables, j: int, high: float, least: float) -> float:
    """Note what the message of a step is, as weights where they can be; returns ln of its top."""
    size, start = message_size(steps, j), tables.at[j]
    if mode_of(steps, tables, j) == PRODUCT:
        tables.kinds[j], tables.tops[j] = 0, high
        tables.lows[j] = np.log(least / high) if high > 0 else 0.0
        return float(np.log(high)) if high > 0 else -np.inf
    if high == -np.inf:
        return high
    tables.lows[j] = least - high
    if least - high >= SAFE:
        tables.kinds[j], tables.tops[j] = 0, 1.0
        for i in range(start, start + size):
            tables.messages[i] = np.exp(tables.messages[i] - high)
    else:
        tables.kinds[j], tables.tops[j] = 1, high
    return high


@kernel()
def sum_out(steps: StepArrays, tables: Tables, start: int, stop: int, logs: Floats) -> bool:
    """Steps start to stop of a sum; logs[j] is ln of the top of message j (output). False if no
    configuration is possible.
    """
    for j in range(start, stop):
        high, least = sum_rows(steps, tables, j, ZERO, steps.rows[j])
        logs[j] = close_step(steps, tables, j, high, least)
        if logs[j] == -np.inf:
            return False
    return True
