"""Compiled coordinate ascent over the copies of an expanded model, and a plain reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.inference.enumeration import FlatTables, factors_of


class CopyNoise(NamedTuple):
    """The noise of M copies of each variable, in the form that best responses need.

    Attributes
    ----------
    copies : number M of copies of each variable.
    places : the numbers of variable i are numbers[places[i] : places[i + 1]].
    numbers : of a variable with two states, the M differences of its noise at states 1 and 0,
        descending, then their M partial sums; with more states, its noise, copy by copy; with one,
        none.
    base : mean noise of state 0 of a variable with two states, else 0, shape (n,).
    """

    copies: int
    places: Ints
    numbers: Floats
    base: Floats


class Neighbours(NamedTuple):
    """Tables that name a variable, and places of its states in an array of frequencies.

    Attributes
    ----------
    tables : those of variable i are tables[first[i] : first[i + 1]].
    offsets : the frequencies of variable i are q[offsets[i] : offsets[i + 1]].
    """

    tables: Ints
    first: Ints
    offsets: Ints


@helper()
def field(t: FlatTables, near: Neighbours, q: Floats, v: int, out: Floats) -> None:
    """Write the derivatives of E_q[phi] by the frequencies of variable v; 0 times -inf is 0."""
    for a in range(t.sizes[v]):
        out[a] = 0.0
    for u in range(near.first[v], near.first[v + 1]):
        f = near.tables[u]
        for e in range(t.places[f], t.places[f + 1]):
            rest = e - t.places[f]
            weight, own = 1.0, 0
            for s in range(t.first[f + 1] - 1, t.first[f] - 1, -1):
                w = t.scopes[s]
                state = rest % t.sizes[w]
                rest //= t.sizes[w]
                if w == v:
                    own = state
                else:
                    weight *= q[near.offsets[w] + state]
            if weight > 0:
                out[own] += weight * t.tables[e]


@helper()
def respond(noise: CopyNoise, v: int, k: int, tilt: Floats, counts: Ints) -> float:
    """Count the copies of variable v that choose each of its k states; returns their mean noise.

    Every copy takes the state of the largest tilt plus noise."""
    m, start = noise.copies, noise.places[v]
    if k == 1:
        counts[0] = m
        return 0.0
    if k == 2:
        least = tilt[0] - tilt[1]
        low, high = 0, m
        while low < high:
            middle = (low + high) // 2
            if noise.numbers[start + middle] > least:
                low = middle + 1
            else:
                high = middle
        counts[0], counts[1] = m - low, low
        return float(noise.base[v]) + (noise.numbers[start + m + low - 1] / m if low else 0.0)
    for a in range(k):
        counts[a] = 0
    total = 0.0
    for copy in range(m):
        row = start + copy * k
        best, at = -np.inf, 0
        for a in range(k):
            if tilt[a] + noise.numbers[row + a] > best:
                best, at = tilt[a] + noise.numbers[row + a], a
        counts[at] += 1
        total += noise.numbers[row + at]
    return total / m


@kernel()
def mean_potential(t: FlatTables, offsets: Ints, q: Floats) -> float:
    """E_q[phi], the extended potential of copies with these frequencies; 0 times -inf is 0."""
    total = 0.0
    for f in range(t.first.size - 1):
        for e in range(t.places[f], t.places[f + 1]):
            rest, weight = e - t.places[f], 1.0
            for s in range(t.first[f + 1] - 1, t.first[f] - 1, -1):
                w = t.scopes[s]
                weight *= q[offsets[w] + rest % t.sizes[w]]
                rest //= t.sizes[w]
            if weight > 0:
                total += weight * t.tables[e]
    return total


@kernel()
def ascend(t: FlatTables, near: Neighbours, noise: CopyNoise, q: Floats, means: Floats, most: int) -> int:
    """Let all copies of each variable in turn choose their best states, until none changes.

    The maximum over the copies of one variable, given the others, is theirs, so that the value
    never falls.

    Parameters
    ----------
    q : frequencies of the states; where it starts, and then those found, shape (sum of
        cardinalities,).
    means : mean noise of the copies of each variable; written, shape (n,).
    most : number of sweeps after which it stops.

    Returns
    -------
    Number of sweeps.
    """
    largest = 1
    for k in t.sizes:
        largest = max(largest, k)
    tilt, counts = np.empty(largest), np.empty(largest, np.int64)
    for sweep in range(most):
        changed = False
        for v in range(t.sizes.size):
            k, low = t.sizes[v], near.offsets[v]
            field(t, near, q, v, tilt)
            possible = False
            for a in range(k):
                possible = possible or tilt[a] > -np.inf
            if not possible:
                continue  # the start is impossible, and its value -inf
            means[v] = respond(noise, v, k, tilt, counts)
            for a in range(k):
                share = counts[a] / noise.copies
                changed = changed or share != q[low + a]
                q[low + a] = share
        if not changed:
            return sweep + 1
    return most


def ascend_reference(t: FlatTables, near: Neighbours, noise: CopyNoise, q: Floats, means: Floats, most: int) -> int:
    """`ascend` in plain NumPy."""
    factors, parts = factors_of(t), np.split(q, near.offsets[1:-1])  # views of q
    for sweep in range(most):
        before = q.copy()
        for v, k in enumerate(t.sizes):
            tilt = sum((contracted(f.scope, f.table, parts, v) for f in factors if v in f.scope), np.zeros(k))
            if tilt.max() == -np.inf:
                continue
            rows = noisy_rows(noise, v, int(k))
            chosen = (tilt + rows).argmax(axis=1)
            parts[v][:] = np.bincount(chosen, minlength=k) / noise.copies
            means[v] = rows[np.arange(noise.copies), chosen].mean() + noise.base[v]
        if (q == before).all():
            return sweep + 1
    return most


def contracted(scope: tuple[int, ...], table: Floats, parts: list[Floats], kept: int) -> Floats:
    """Mean of a table over its variables but one, shape (states of that one,); 0 times -inf is 0."""
    weights = np.ones(())
    for w in scope:
        weights = np.multiply.outer(weights, np.ones(len(parts[w])) if w == kept else parts[w])
    axes = tuple(axis for axis, w in enumerate(scope) if w != kept)
    return np.asarray(np.where(weights > 0, weights * np.where(weights > 0, table, 0.0), 0.0).sum(axis=axes))


def noisy_rows(noise: CopyNoise, v: int, k: int) -> Floats:
    """The noise of the copies of variable v without its base, shape (M, k)."""
    numbers = noise.numbers[noise.places[v] : noise.places[v + 1]]
    if k == 2:
        return np.stack([np.zeros(noise.copies), numbers[: noise.copies]], axis=1)
    return numbers.reshape(noise.copies, -1) if k > 2 else np.zeros((noise.copies, 1))
