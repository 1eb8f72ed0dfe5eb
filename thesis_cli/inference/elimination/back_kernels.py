"""Compiled maxima with their maximisers, marginals and draws by variable elimination."""

from __future__ import annotations

from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import ZERO, helper, kernel
from thesis_cli.inference.elimination.kernels import (
    PRODUCT,
    SUM,
    StepArrays,
    Tables,
    message_size,
    mode_of,
    next_row,
    prepare_rows,
    take_row,
)


@helper()
def maximise_row(
    row: Floats, noise: Floats, noise_at: int, k: int, out: Floats, at: int, choices: Any, to: int
) -> None:
    """Maxima over the fastest axis, of k states, of `row` plus noise; and the maximisers."""
    if k == 2:
        a, b = noise[noise_at], noise[noise_at + 1]
        best_of, chosen_of = out[at : at + row.size // 2], choices[to : to + row.size // 2]
        for o in range(best_of.size):
            first, second = row[2 * o] + a, row[2 * o + 1] + b
            best_of[o] = second if second > first else first
            chosen_of[o] = second > first
        return
    for o in range(row.size // k):
        best = row[o * k] + noise[noise_at]
        chosen: int = 0
        for x in range(1, k):
            value = row[o * k + x] + noise[noise_at + x]
            if value > best:
                best = value
                chosen = x
        out[at + o] = best
        choices[to + o] = chosen


@helper()
def maximise_span(
    steps: StepArrays, tables: Tables, span: Ints, noise: Floats, noise_at: Ints, choices_at: Ints, choices: Any
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
        for r in range(steps.rows[j]):
            take_row(steps, tables, j, SUM, bases, offsets, row)
            at, to = tables.at[j] + r * left, choices_at[j] + r * left
            maximise_row(row, noise, noise_at[j], k, tables.messages, at, choices, to)
            next_row(steps, j, bases, turns)
        if axes == 1:
            total += tables.messages[tables.at[j]]
    return total


@helper()
def trace_back(steps: StepArrays, span: Ints, choices_at: Ints, choices: Any, states: Ints) -> None:
    """States of the steps span[0] to span[1], from those of later ones."""
    for j in range(span[1] - 1, span[0] - 1, -1):
        entry: int = 0
        for a in range(steps.axes[j], steps.axes[j + 1] - 1):
            entry = entry * steps.dims[a] + states[steps.owners[a]]
        states[j] = choices[choices_at[j] + entry]


@kernel()
def maximise_batch(
    steps: StepArrays,
    tables: Tables,
    span: Ints,
    noise: Floats,
    places: Ints,
    choices: Any,
    values: Floats,
    states: Ints,
) -> None:
    """Add the maxima of steps span[0] to span[1] under each row of noise to `values`, and write the
    states of their variables to `states`, where those of later steps are.

    Parameters
    ----------
    places : where the noise of the variable of each step begins, and its maximisers, shape (2, steps).
    """
    for b in range(values.size):
        values[b] += maximise_span(steps, tables, span, noise[b], places[0], places[1], choices)
        trace_back(steps, span, places[1], choices, states[b])


@kernel()
def send_back(steps: StepArrays, tables: Tables, j: int, logs: Floats, back: Floats, own: Floats) -> None:
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
                    back[low + (i if steps.whole[inputs + p] else offsets[p * block + i])] += row[i]
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
def draw_states(steps: StepArrays, tables: Tables, j: int, uniforms: Floats, states: Ints) -> None:
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
