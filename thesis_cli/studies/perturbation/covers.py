"""Expanded models with few links: what a grid of 1000 x 1000 nodes with four links each can be.

In the extended potential (Hazan et al. eq. 18) each copy of a variable is linked to all copies of
its neighbours. A graph with M copies of each variable in which a copy has as many links as its
variable is a cover of the model: each copy has one copy of each neighbour, by a permutation of the
copies for each edge. Here `links` permutations are averaged; as many as copies make eq. (18).
Corollary 4 says nothing of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel, MinimumCut
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.expanded.copies import variable_noise


@dataclass(frozen=True)
class CoverMaximum:
    """The maximum of a cover, per copy.

    Attributes
    ----------
    value : maximum over the states of all copies, divided by the number of copies, nats.
    frequencies : shares of the copies of each variable in state 1, shape (n,).
    nodes, arcs : size of the cut that was solved.
    """

    value: float
    frequencies: Floats
    nodes: int
    arcs: int


def cover_maximum(graph: FactorGraph, copies: int, links: int, seed: np.random.SeedSequence | int) -> CoverMaximum:
    """Maximise a random cover exactly, by one minimum cut.

    The noise of the copies is that of `expanded_maximum` with this seed.

    Parameters
    ----------
    graph : an attractive binary pairwise model.
    copies : number M of copies of each variable.
    links : number of copies of each neighbour that a copy is linked to, 1 to M.
    seed : root of the random streams; links have one of their own.

    Raises
    ------
    InputError : the number of links is not from 1 to M.
    UnsuitableModel : graph cuts do not take the model.
    NoConfiguration : no configuration is possible.
    """
    if not 1 <= links <= copies:
        raise InputError(f"the number of links is {links}", f"it must be from 1 to the number of copies, {copies}")
    root = np.random.SeedSequence(seed) if isinstance(seed, int) else seed
    model, n = BinaryModel.of(graph), len(graph.cardinalities)
    rng = np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, n + 1)))
    unary = np.repeat(model.unary, copies, axis=0)
    for i, k in enumerate(graph.cardinalities):
        if k == 2:
            unary[i * copies : (i + 1) * copies] += variable_noise(root, i, copies, 2)
    edges = np.concatenate([_linked(edge, copies, links, rng) for edge in model.edges] or [np.empty((0, 2), np.int64)])
    tables = np.repeat(model.tables / links, copies * links, axis=0)
    cover = BinaryModel(unary, edges, tables, model.constant * copies)
    values, states = MinimumCut(cover).maximise(np.zeros((1, n * copies, 2)))
    if values[0] == -np.inf:
        raise NoConfiguration()
    return CoverMaximum(float(values[0]) / copies, states.reshape(n, copies).mean(axis=1), n * copies, len(edges))


def _linked(edge: Ints, copies: int, links: int, rng: np.random.Generator) -> Ints:
    """Pairs of copies of two variables, each copy in `links` of them, shape (copies * links, 2).

    Two random orders are put side by side, shifted by as many different steps.
    """
    first, second = rng.permutation(copies), rng.permutation(copies)
    steps = rng.permutation(copies)[:links]
    return np.stack(
        [
            np.repeat(edge[0] * copies + first, links),
            edge[1] * copies + second[(np.arange(copies)[:, None] + steps) % copies].reshape(-1),
        ],
        axis=1,
    )
