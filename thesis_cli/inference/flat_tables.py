"""The tables of a factor graph in one array, so that one compiled pass serves them all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.models.factor_graph import Factor


class FlatTables(NamedTuple):
    """Tables of log-potentials.

    Attributes
    ----------
    sizes : number of states of each variable.
    first : the variables of table f are scopes[first[f] : first[f + 1]].
    scopes : variables.
    places : the entries of table f are tables[places[f] : places[f + 1]], last variable fastest.
    tables : nats.
    """

    sizes: Ints
    first: Ints
    scopes: Ints
    places: Ints
    tables: Floats


def flat_tables(sizes: Ints, factors: Sequence[Factor]) -> FlatTables:
    return FlatTables(
        sizes,
        starts([len(f.scope) for f in factors]),
        np.fromiter(chain.from_iterable(f.scope for f in factors), np.int64),
        starts([f.table.size for f in factors]),
        np.concatenate([np.empty(0), *(f.table.reshape(-1) for f in factors)]),
    )


def starts(lengths: Sequence[int] | Ints) -> Ints:
    """Starts of parts of lengths, shape (parts,), and the end of the last one; shape (parts + 1,)."""
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def joined(a: FlatTables, b: FlatTables) -> FlatTables:
    """The tables of both, over the same variables."""
    return FlatTables(
        a.sizes,
        np.concatenate([a.first, a.first[-1] + b.first[1:]]),
        np.concatenate([a.scopes, b.scopes]),
        np.concatenate([a.places, a.places[-1] + b.places[1:]]),
        np.concatenate([a.tables, b.tables]),
    )


def factor_of(t: FlatTables, f: int) -> Factor:
    """Table f as a factor."""
    scope = t.scopes[t.first[f] : t.first[f + 1]]
    return Factor(tuple(scope.tolist()), t.tables[t.places[f] : t.places[f + 1]].reshape(t.sizes[scope]))


def factors_of(t: FlatTables) -> list[Factor]:
    """Factors whose tables are views of the flat ones."""
    first, places, scopes = t.first.tolist(), t.places.tolist(), t.scopes.tolist()
    shapes = t.sizes[t.scopes].tolist()
    return [
        Factor(
            tuple(scopes[first[f] : first[f + 1]]),
            t.tables[places[f] : places[f + 1]].reshape(shapes[first[f] : first[f + 1]]),
        )
        for f in range(len(first) - 1)
    ]


def products(values: Ints, first: Ints) -> Ints:
    """Product of values[first[k] : first[k + 1]] for each k, shape (parts,); 1 for an empty part."""
    found = np.ones(first.size - 1, np.int64)
    filled = first[1:] > first[:-1]
    if filled.any():
        found[filled] = np.multiply.reduceat(values, first[:-1][filled])
    return found


def users_of(t: FlatTables) -> tuple[Ints, Ints]:
    """The tables that name each variable, one variable after the other, shape (sum of scopes,), and
    where those of each variable start, shape (n + 1,).
    """
    owner = np.repeat(np.arange(t.first.size - 1), np.diff(t.first))
    order = np.argsort(t.scopes, kind="stable")
    return owner[order], starts(np.bincount(t.scopes, minlength=t.sizes.size))
