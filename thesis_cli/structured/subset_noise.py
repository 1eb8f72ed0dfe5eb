"""Maxima under noise on states that no feature of a space stands for, by programs over subsets.

Each program keeps its values in an array of shape (subsets, problems), so that one step gathers
whole rows for a batch of problems. Subsets are bits of an integer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from thesis_cli.base.arrays import Floats, Ints

LARGEST_PLAN = 2**20
"""Most transitions of a program."""


@dataclass(frozen=True)
class Layer:
    """Subsets of one size, or states of such subsets, with what leads to each.

    Attributes
    ----------
    at : index of each state, shape (states,).
    previous : index of each predecessor, shape (states, choices).
    step : index of what the step to the state adds, shape (states, choices).
    """

    at: Ints
    previous: Ints
    step: Ints


def batch(transitions: int) -> int:
    """Problems to solve at once, so that a layer's arrays stay within some 32 MiB."""
    return int(np.clip(2**21 // max(1, transitions), 1, 128))


def _members(sets: Ints, elements: int) -> Ints:
    """Members of subsets of one size, shape (sets, size)."""
    bits = (sets[:, np.newaxis] >> np.arange(elements)) & 1
    found: Ints = np.nonzero(bits)[1].reshape(len(sets), -1)
    return found


def _sets(elements: int, size: int) -> Ints:
    """Subsets of a size, ascending."""
    masks = np.arange(2**elements)
    found: Ints = masks[np.bitwise_count(masks) == size]
    return found


def _layer_maxima(values: Floats, layer: Layer, gain: Floats) -> Ints:
    """Fill in the values of a layer; the best choice of each state, shape (states, problems)."""
    candidates = values[layer.previous] + gain
    choice: Ints = candidates.argmax(axis=1)
    values[layer.at] = np.take_along_axis(candidates, choice[:, np.newaxis], axis=1)[:, 0]
    return choice


# Orders


@cache
def _order_layers(items: int) -> tuple[Layer, ...]:
    """Sets of items that come first; a step adds the last of them."""
    found = []
    for size in range(1, items + 1):
        sets = _sets(items, size)
        members = _members(sets, items)
        found.append(Layer(sets, sets[:, np.newaxis] - (1 << members), members))
    return tuple(found)


def order_transitions(items: int) -> int:
    """Transitions of `order_maxima`."""
    return items << (items - 1)


def order_maxima(before: Floats, noise: Floats) -> tuple[Floats, Ints]:
    """Best orders of items.

    Parameters
    ----------
    before : what item j adds if it comes before item i, shape (d, d).
    noise : what item i adds at position k, shape (problems, d, d).

    Returns
    -------
    values : shape (problems,).
    positions : of the items, shape (problems, d).
    """
    items, problems = len(before), len(noise)
    gains = np.zeros((2**items, items))
    for j in range(items):
        gains[1 << j : 2 << j] = gains[: 1 << j] + before[j]
    at_position = np.ascontiguousarray(noise.transpose(2, 1, 0))
    values, choices = np.zeros((2**items, problems)), []
    layers = _order_layers(items)
    for k, layer in enumerate(layers):
        gain = gains[layer.previous, layer.step][..., np.newaxis] + at_position[k][layer.step]
        choices.append(_layer_maxima(values, layer, gain))
    positions = np.empty((problems, items), np.int64)
    sets, problem = np.full(problems, 2**items - 1), np.arange(problems)
    for k in range(items - 1, -1, -1):
        row = np.searchsorted(layers[k].at, sets)
        item = layers[k].step[row, choices[k][row, problem]]
        positions[problem, item] = k
        sets = sets - (1 << item)
    return values[-1].copy(), positions


# Cycles


@cache
def _cycle_layers(vertices: int, all_of_them: bool) -> tuple[Layer, ...]:
    """Paths from the least vertex of a set through all of it, by set and last vertex."""
    found = []
    for size in range(2, vertices + 1):
        sets = _sets(vertices, size)
        if all_of_them:
            sets = sets[sets & 1 == 1]
        members = _members(sets, vertices)
        last = members[:, 1:]
        rest = sets[:, np.newaxis] - (1 << last)
        at = (sets[:, np.newaxis] * vertices + last).ravel()
        if size == 2:
            before = members[:, :1, np.newaxis]
        else:
            keep = ~np.eye(size - 1, dtype=bool)
            before = np.broadcast_to(last[:, np.newaxis], (len(sets), size - 1, size - 1))[:, keep]
            before = before.reshape(len(sets), size - 1, size - 2)
        previous = (rest[..., np.newaxis] * vertices + before).reshape(at.size, -1)
        step = (before * vertices + last[..., np.newaxis]).reshape(at.size, -1)
        found.append(Layer(at, previous, step))
    return tuple(found)


def cycle_transitions(vertices: int, all_of_them: bool) -> int:
    """Transitions of `cycle_maxima`."""
    others = vertices - 1
    one = max(others, 1) * max(others - 1, 1) << max(others - 2, 0)
    return one if all_of_them else 2 * one


def cycle_maxima(arcs: Floats, all_of_them: bool) -> tuple[Floats, Ints]:
    """Best directed cycles of at least three vertices.

    Parameters
    ----------
    arcs : what an arc from i to j adds, shape (problems, d, d); the diagonal is not read.
    all_of_them : whether a cycle goes through all vertices.

    Returns
    -------
    values : shape (problems,).
    vertices : in the order of the cycle from the least, padded with -1, shape (problems, d).
    """
    problems, d = arcs.shape[:2]
    flat = np.ascontiguousarray(arcs.reshape(problems, -1).T)
    values, choices = np.full((2**d * d, problems), -np.inf), []
    values[(1 << np.arange(d)) * d + np.arange(d)] = 0.0
    layers, problem = _cycle_layers(d, all_of_them), np.arange(problems)
    best, end = np.full(problems, -np.inf), np.zeros((2, problems), np.int64)
    for k, layer in enumerate(layers):
        choices.append(_layer_maxima(values, layer, flat[layer.step]))
        if k == 0 or (all_of_them and k < d - 2):
            continue
        sets, last = layer.at // d, layer.at % d
        closed = values[layer.at] + flat[last * d + _least(sets)]
        row = closed.argmax(axis=0)
        better = closed[row, problem] > best
        best[better] = closed[row, problem][better]
        end[:, better] = np.array([np.full(problems, k), row])[:, better]
    return best, _cycle_back(layers, choices, end, d)


def _cycle_back(layers: tuple[Layer, ...], choices: list[Ints], end: Ints, d: int) -> Ints:
    """The vertices of paths that end in a layer at a row, from the first to the last."""
    found = np.full((end.shape[1], d), -1, np.int64)
    for k in range(len(layers) - 1, -1, -1):
        problem = np.flatnonzero(end[0] == k)
        if not problem.size:
            continue
        row = end[1, problem]
        found[problem, k + 1] = layers[k].at[row] % d
        previous = layers[k].previous[row, choices[k][row, problem]]
        if k == 0:
            found[problem, 0] = previous % d
        else:
            end[0, problem] = k - 1
            order = np.argsort(layers[k - 1].at)
            end[1, problem] = order[np.searchsorted(layers[k - 1].at, previous, sorter=order)]
    return found


def _least(sets: Ints) -> Ints:
    """Least member of each nonempty set."""
    found: Ints = np.log2(sets & -sets).astype(np.int64)
    return found


# Partitions


@cache
def _partition_layers(elements: int) -> tuple[Layer, ...]:
    """Sets of elements that are left, without the first element, and all elements; a step is the
    block of the least one.
    """
    found = []
    for size in range(1, elements + 1):
        sets = _sets(elements, size)
        sets = sets[(sets & 1 == 0) | (size == elements)]
        if not sets.size:
            continue
        members = _members(sets, elements)
        inside = (np.arange(2 ** (size - 1))[:, np.newaxis] >> np.arange(size - 1)) & 1
        blocks = (1 << members[:, :1]) + (1 << members[:, 1:]) @ inside.T
        found.append(Layer(sets, sets[:, np.newaxis] - blocks, blocks))
    return tuple(found)


def partition_transitions(elements: int) -> int:
    """Transitions of `partition_maxima`."""
    return int((3 ** (elements - 1) - 1) // 2 + 2 ** (elements - 1))


def partition_maxima(pairs: Floats, noise: Floats) -> tuple[Floats, Ints]:
    """Best partitions of elements.

    Parameters
    ----------
    pairs : what a pair in one block adds, shape (d, d); the entries above the diagonal are read.
    noise : what element j adds in a block whose least element is i <= j, shape (problems, d, d).

    Returns
    -------
    values : shape (problems,).
    blocks : number of each element's block, by first appearance, shape (problems, d).
    """
    problems, d = noise.shape[:2]
    by_element = np.ascontiguousarray(noise.transpose(1, 2, 0))
    joined, potentials = np.zeros((2**d, d)), np.zeros((2**d, problems))
    for j in range(d):
        joined[1 << j : 2 << j] = joined[: 1 << j] + pairs[j]
    for j in range(d):
        lower = np.arange(1, 1 << j)
        potentials[1 << j] = by_element[j, j]
        potentials[(1 << j) + lower] = (
            potentials[lower] + joined[lower, j][:, np.newaxis] + by_element[j, _least(lower)]
        )
    values, choices = np.zeros((2**d, problems)), []
    layers = _partition_layers(d)
    for layer in layers:
        choices.append(_layer_maxima(values, layer, potentials[layer.step]))
    labels = np.zeros((problems, d), np.int64)
    sets, number, problem = np.full(problems, 2**d - 1), 0, np.arange(problems)
    sizes = {int(layer.at[0]).bit_count(): k for k, layer in enumerate(layers)}
    while problem.size:
        for size in np.unique(np.bitwise_count(sets[problem])).tolist():
            now = problem[np.bitwise_count(sets[problem]) == size]
            layer, choice = layers[sizes[size]], choices[sizes[size]]
            row = np.searchsorted(layer.at, sets[now])
            block = layer.step[row, choice[row, now]]
            labels[now] += number * ((block[:, np.newaxis] >> np.arange(d)) & 1)
            sets[now] -= block
        number += 1
        problem = np.flatnonzero(sets)
    return values[-1].copy(), labels
