"""Random pairwise models with positive tables: grids, tori, regular graphs, bipartite graphs."""

from __future__ import annotations

import numpy as np

from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import Kind, random_spin_glass
from thesis_cli.studies.models.network import Network

_SPIN = np.array([-1.0, 1.0])


def grid(side: int, coupling: float, kind: Kind, rng: np.random.Generator) -> Network:
    """Ising grid with fields in [-1, 1], as Grids of UAI 2008 to 2014.

    Parameters
    ----------
    coupling : largest coupling in nats; those of the competition are up to 10.
    """
    return Network(random_spin_glass(side, side, coupling, 1.0, kind, rng).graph())


def torus(side: int, coupling: float, rng: np.random.Generator) -> Network:
    """Ising grid with mixed couplings that wraps around, as `grid...wrap` of UAI 2008."""
    at = np.arange(side**2).reshape(side, side)
    edges = [pair for axis in (0, 1) for pair in zip(at.ravel(), np.roll(at, -1, axis).ravel(), strict=True)]
    return _ising(side**2, [(int(i), int(j)) for i, j in edges], coupling, rng)


def bipartite(visible: int, hidden: int, coupling: float, rng: np.random.Generator) -> Network:
    """Complete bipartite Ising model with mixed couplings, as the DBN of UAI 2014.

    Its width is the smaller of the two numbers.
    """
    edges = [(i, visible + j) for i in range(visible) for j in range(hidden)]
    return _ising(visible + hidden, edges, coupling, rng)


def regular(variables: int, degree: int, states: int, strength: float, rng: np.random.Generator) -> Network:
    """Random regular graph whose tables are normal, as the many-state pairwise models of UAI 2010
    (protein side chains, object detection, image segmentation).

    Parameters
    ----------
    degree : number of neighbours of each variable; `variables * degree` must be even.
    strength : standard deviation of the log-potentials in nats.
    """
    edges = _regular_edges(variables, degree, rng)
    factors = [Factor((i,), rng.normal(0, strength, states)) for i in range(variables)]
    factors += [Factor(edge, rng.normal(0, strength, (states, states))) for edge in edges]
    return Network(FactorGraph([states] * variables, factors))


def _ising(variables: int, edges: list[tuple[int, int]], coupling: float, rng: np.random.Generator) -> Network:
    """Fields in [-1, 1] and couplings in [-coupling, coupling] on a graph."""
    factors = [Factor((i,), rng.uniform(-1, 1) * _SPIN) for i in range(variables)]
    factors += [Factor(edge, coupling * rng.uniform(-1, 1) * np.outer(_SPIN, _SPIN)) for edge in edges]
    return Network(FactorGraph([2] * variables, factors))


def _regular_edges(variables: int, degree: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Pair the ends of edges at random until no edge is a loop or double."""
    ends = np.repeat(np.arange(variables), degree)
    while True:
        pairs = np.sort(rng.permutation(ends).reshape(-1, 2), axis=1)
        edges = {(int(i), int(j)) for i, j in pairs if i != j}
        if len(edges) == len(pairs):
            return sorted(edges)
