"""Compiled maxima with their maximisers, marginals and draws by variable elimination."""

from __future__ import annotations

from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import ZERO, kernel
from thesis_cli.inference.elimination_kernels import (
    PRODUCT,
    SUM,
    Steps,
    Tables,
    message_size,
    mode_of,
    next_row,
    prepare_rows,
    take_row,
)


@kernel()
def maximise_out(
    steps: Steps, tables: Tables, span: Ints, noise: Floats, noise_at: Ints, choices_at: Ints, choices: Any
) -> float:
    """Messages of steps span[0] to span[1], maxima of sums of all inputs and of noise[noise_at[j]:]
    for the variable of step j, and the maximisers; returns the sum of messages without axes.
    """
    total: float = 0.0
    for j in range(span[0], span[1]):
        block, inputs, axes = steps.blocks[j], steps.inputs[j], steps.axes[j + 1] - steps.axes[j]
        count, k = steps.inputs[j + 1] - inputs, steps.dims[steps.axes[j + 1] - 1]
        bases, turns = np.empty(count, np.int64), np.empty(axes + 1, np.int64)
        offsets, row = np.empty(count * block, np.int64), np.empty(block)
        prepare_rows(steps, tables, j, ZERO, bases, offsets, turns)
        left = block // k
        at, chosen_at = tables.at[j], choices_at[j]
        for _ in range(steps.rows[j]):
            take_row(steps, tables, j, SUM, bases, offsets, row)
            for o in range(left):
                best = row[o * k] + noise[noise_at[j]]
                chosen: int = 0
                for x in range(1, k):
                    value = row[o * k + x] + noise[noise_at[j] + x]
                    if value > best:
                        best = value
                        chosen = x
                tables.messages[at + o] = best
                choices[chosen_at + o] = chosen
            at += left
            chosen_at += left
            next_row(steps, j, bases, turns)
        if axes == 1:
            total += tables.messages[tables.at[j]]
    return total


@kernel()
def trace_back(steps: Steps, span: Ints, choices_at: Ints, choices: Any, states: Ints) -> None:
    """States of the steps span[0] to span[1], from those of later ones."""
    for j in range(span[1] - 1, span[0] - 1, -1):
        entry: int = 0
        for a in range(steps.axes[j], steps.axes[j + 1] - 1):
            entry = entry * steps.dims[a] + states[steps.owners[a]]
        states[j] = choices[choices_at[j] + entry]


@kernel()
def send_back(steps: Steps, tables: Tables, j: int, logs: Floats, back: Floats, own: Floats) -> None:
    """Add the marginal of the variable of step j to `own`, and replace each message k that the step
    takes by P(its axes) / message, or ln of it if the message holds logarithms; message j is
    replaced already.

    Parameters
    ----------
    back : zeros, as many as entries of all messages that the step takes; again zeros on return.
    """
    block, inputs, axes = steps.blocks[j], steps.inputs[j], steps.axes[j + 1] - steps.axes[j]
    count, states = steps.inputs[j + 1] - inputs, steps.dims[steps.axes[j + 1] - 1]
    bases, turns = np.empty(count, np.int64), np.empty(axes + 1, np.int64)
    offsets, row, places = np.empty(count * block, np.int64), np.empty(block), np.empty(count + 1, np.int64)
    prepare_rows(steps, tables, j, ZERO, bases, offsets, turns)
    mode = mode_of(steps, tables, j)
    places[0] = 0
    for p in range(count):
        k = steps.sources[inputs + p]
        places[p + 1] = places[p] + (message_size(steps, k) if k < steps.blocks.size else 0)
    at = tables.at[j]
    for _ in range(steps.rows[j]):
        take_row(steps, tables, j, mode, bases, offsets, row)
        for i in range(block):
            ratio = tables.messages[at + i // states]
            if mode == PRODUCT:
                row[i] *= ratio
            elif tables.kinds[j]:
                row[i] = np.exp(row[i] + ratio)
            else:
                row[i] = np.exp(row[i] - logs[j]) * ratio
            own[i % states] += row[i]
        at += block // states
        for p in range(count):
            k = steps.sources[inputs + p]
            if k < steps.blocks.size:
                low = places[p] + bases[p] - tables.at[k]
                for i in range(block):
                    back[low + offsets[p * block + i]] += row[i]
        next_row(steps, j, bases, turns)
    for p in range(count):
        k = steps.sources[inputs + p]
        for i in range(places[p + 1] - places[p]):
            found = back[places[p] + i]
            back[places[p] + i] = 0.0
            message = tables.messages[tables.at[k] + i]
            if tables.kinds[k]:
                tables.messages[tables.at[k] + i] = np.log(found) - message if found > 0 else -np.inf
            else:
                tables.messages[tables.at[k] + i] = found / message if found > 0 else 0.0


@kernel()
def draw_states(steps: Steps, tables: Tables, j: int, uniforms: Floats, states: Ints) -> None:
    """Draw the state of the variable of step j in each row of `states`, given those of later steps."""
    inputs, last = steps.inputs[j], steps.axes[j + 1] - 1
    k, mode = steps.dims[last], mode_of(steps, tables, j)
    row = np.empty(k)
    for c in range(states.shape[0]):
        for x in range(k):
            row[x] = 1.0 if mode == PRODUCT else 0.0
        for q in range(inputs, steps.inputs[j + 1]):
            source = steps.sources[q]
            data = tables.messages if source < steps.blocks.size else tables.groups
            at, top = tables.at[source], tables.tops[source]
            for a in range(steps.axes[j], last):
                at += steps.strides[steps.starts[q] + a - steps.axes[j]] * states[c, steps.owners[a]]
            for x in range(k):
                value = data[at + x]
                if mode == PRODUCT:
                    row[x] *= value / top
                elif tables.kinds[source]:
                    row[x] += value - top
                else:
                    row[x] += np.log(value / top)
        if mode != PRODUCT:
            high = row.max()
            for x in range(k):
                row[x] = np.exp(row[x] - high)
        for x in range(1, k):
            row[x] += row[x - 1]
        level = uniforms[c] * row[k - 1]
        x = 0
        while x < k - 1 and row[x] <= level:
            x += 1
        states[c, j] = x
