"""Compiled Gibbs sampling; tests compare it with a plain reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel


class Uses(NamedTuple):
    """The variables that sweeps move, and the tables that name each.

    Attributes
    ----------
    variables : variables in the order of their moves, shape (m,).
    offsets : where the unary log-potentials of each variable of the model start, shape (n + 1,).
    unary : nats, flat.
    first : variable number p of the order is in tables factors[first[p] : first[p + 1]].
    factors : tables.
    strides : distance of two states of the variable in each of these tables.
    """

    variables: Ints
    offsets: Ints
    unary: Floats
    first: Ints
    factors: Ints
    strides: Ints


@kernel(_nrt=False)
def sweep(uses: Uses, tables: Floats, uniforms: Floats, terms: Floats, states: Ints, entries: Ints) -> None:
    """Draw each variable of each chain anew given the others, in place.

    Parameters
    ----------
    uses : the model.
    tables : log-potentials of all tables, flat, finite.
    uniforms : one number in [0, 1) for each chain and move, shape (chains, m); the new state is the
        first whose cumulative probability exceeds it.
    terms : scratch, as long as the most states of a variable.
    states, entries : see `gibbs.Chains`.
    """
    for c in range(states.shape[0]):
        for p in range(uses.variables.size):
            v = uses.variables[p]
            low = uses.offsets[v]
            k = uses.offsets[v + 1] - low
            old = states[c, v]
            top = -np.inf
            for x in range(k):
                term = uses.unary[low + x]
                for q in range(uses.first[p], uses.first[p + 1]):
                    term += tables[entries[c, uses.factors[q]] + (x - old) * uses.strides[q]]
                terms[x] = term
                top = max(top, term)
            total = 0.0
            for x in range(k):
                total += np.exp(terms[x] - top)
                terms[x] = total
            level = uniforms[c, p] * total
            new = 0
            while new < k - 1 and terms[new] <= level:
                new += 1
            for q in range(uses.first[p], uses.first[p + 1]):
                entries[c, uses.factors[q]] += (new - old) * uses.strides[q]
            states[c, v] = new
