"""Layout of a binary pairwise model as spins, for compiled kernels that need one number a message."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.enumeration import starts
from thesis_cli.inference.message_passing.message_arrays import Forests, Spins
from thesis_cli.inference.pairwise import Pairwise

BLOCK = 2**16
"""Numbers in one temporary array of a batch."""

FEWEST, MOST, PLACES = 4, 24, 2_400_000
"""Least and most forests that a search uses, and about how many places they have together."""


class Fields(NamedTuple):
    """A binary pairwise model in the order of places, for any unary log-potentials.

    Attributes
    ----------
    low, high : where the two states of each variable lie among the unary log-potentials; equal for
        a variable with one state, shape (n,).
    tables : log-potentials of each edge with axes (earlier, later), shape (E, 2, 2).
    fields : contribution of the tables to h at each place, shape (n,).
    base : log-potential that does not depend on the states.
    """

    low: Ints
    high: Ints
    tables: Floats
    fields: Floats
    base: float

    def of(self, unary: Floats) -> tuple[Floats, Floats]:
        """h and the constant under unary log-potentials, shape (batch, states)."""
        low, high = unary[:, self.low], unary[:, self.high]
        constant = self.base + float(self.tables.mean(axis=(1, 2)).sum())
        # One memory order, whatever that of the unary log-potentials: kernels are compiled for each.
        return np.ascontiguousarray(self.fields + (high - low) / 2), constant + (high + low).sum(axis=1) / 2

    def values(self, spins: Spins, unary: Floats, states: Ints) -> Floats:
        """phi of states 0 and 1 by place, shape (batch, n), under unary log-potentials, shape
        (batch, states)."""
        flat, edges = self.tables.reshape(-1), 4 * np.arange(len(self.tables))
        found = np.full(len(states), self.base)
        rows = max(1, BLOCK // (1 + edges.size))
        for start in range(0, len(states), rows):
            part = states[start : start + rows]
            own = np.take_along_axis(unary[start : start + rows], np.where(part == 1, self.high, self.low), axis=1)
            pairs = flat[edges + 2 * part[:, spins.earlier] + part[:, spins.later]]
            found[start : start + rows] += own.sum(axis=1) + pairs.sum(axis=1)
        return found


def spins_of(form: Pairwise) -> tuple[Spins, Fields]:
    """The layout of a model of finite log-potentials whose variables have at most two states."""
    n = len(form.cardinalities)
    tables = np.array(form.tables).reshape(-1, 2, 2)
    variables = np.argsort(_levels(n, form.edges), kind="stable")
    place = np.empty(n, np.int64)
    place[variables] = np.arange(n)
    ends = place[form.edges]
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    (earlier, later), tables = ends[order].T.copy(), tables[order]
    ups, downs = np.bincount(earlier, minlength=n), np.bincount(later, minlength=n)
    ends = np.concatenate([earlier, later])
    near = np.argsort(ends, kind="stable")
    chains = np.maximum(np.maximum(ups, downs), 1)
    fields = np.zeros(n)
    own, other = tables.mean(axis=2), tables.mean(axis=1)
    np.add.at(fields, earlier, (own[:, 1] - own[:, 0]) / 2)
    np.add.at(fields, later, (other[:, 1] - other[:, 0]) / 2)
    couplings = (tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]) / 4
    layout = Spins(
        variables,
        starts(ups),
        later,
        earlier,
        couplings,
        starts(downs),
        np.argsort(later, kind="stable"),
        1 / chains,
        (chains - downs) / chains,
        starts(ups + downs),
        np.concatenate([later, earlier])[near],
        np.tile(couplings, 2)[near],
        np.bincount(ends, np.tile(np.abs(couplings), 2), n).astype(np.float64),
    )
    low, high = form.offsets[:-1][variables], form.offsets[1:][variables] - 1
    return layout, Fields(low, high, tables, fields, form.constant)


def forests_of(spins: Spins) -> Forests:
    """Forests in random places, to which no place can be added."""
    from thesis_cli.inference.message_passing.spin_kernels import grow

    n = len(spins.variables)
    rng = np.random.default_rng(0)
    members, parents, links = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    found = []
    for _ in range(max(FEWEST, min(MOST, PLACES // n))):
        size = grow(spins, rng.permutation(n), members, parents, links)
        found.append((members[:size].copy(), parents[:size].copy(), links[:size].copy()))
    sizes = np.array([len(part[0]) for part in found])
    return Forests(starts(sizes), *(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _levels(n: int, edges: Ints) -> Ints:
    """Length of the longest ascending path to each variable; edges ascend, sorted by their lower
    end."""
    from thesis_cli.inference.message_passing.spin_kernels import levels

    found: Ints = levels(n, edges)
    return found
