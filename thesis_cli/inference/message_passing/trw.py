"""Tree-reweighted upper bound on ln Z."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.inference.message_passing.belief_propagation import messages_of, soft_binary, up_and_down
from thesis_cli.inference.pairwise import Pairwise, lifted, pairwise
from thesis_cli.models.factor_graph import FactorGraph

if TYPE_CHECKING:
    from scipy.sparse import csr_array

STRIDE = 20
"""Number of sweeps between two evaluations of the bound at the same edge weights."""

STEP_SWEEPS = 5
"""Number of sweeps after each step of the edge weights."""


@dataclass(frozen=True)
class TrwResult:
    """The tree-reweighted upper bound on ln Z.

    Attributes
    ----------
    value : bound in nats, at least ln Z up to rounding, whether `converged` or not: the smaller of
        `mixture` and the trivial bound sum_i ln k_i + sum_f max theta_f, which may be the smaller
        with factors of three variables.
    mixture : bound from the mixture of spanning forests.
    gap : 0 or more, and 0 when the pseudo-marginals of edges and of variables agree; `mixture` is
        then optimal for its `edge_appearance`. Dividing phi by the pseudo-marginals leaves a
        constant, and the gap is the distance of `mixture` from it.
    converged : whether gap <= tolerance max(1, |mixture|).
    iterations : number of sweeps over all messages, at all edge weights.
    edge_appearance : probability of each edge in the mixture of spanning forests, in the order of
        the edges of `pairwise(lifted(graph))`, shape (E,).
    marginals : pseudo-marginals of the variables of the graph, those of variable 0 first, shape
        (sum of cardinalities,).
    """

    value: float
    mixture: float
    gap: float
    converged: bool
    iterations: int
    edge_appearance: Floats
    marginals: Floats


def trw_log_partition_function(
    graph: FactorGraph, *, tolerance: float = 1e-6, weight_steps: int = 30, max_sweeps: int | None = None
) -> TrwResult:
    """Upper bound on ln Z by a mixture of spanning trees (Wainwright, Jaakkola and Willsky 2005).

    ln Z is convex, so if phi = sum_T rho_T theta_T then ln Z <= sum_T rho_T ln Z(theta_T). Messages
    choose the theta_T, and any messages give a bound, which is evaluated without listing trees
    (`trw_kernels.certify`). The bound depends on rho only through the appearance probabilities of
    edges. These start as those of uniform spanning trees and move by conditional gradient, each
    step towards the spanning tree with the most mutual information. The result is the lowest bound
    on the way, or the trivial one (see `TrwResult`), so moving the probabilities never loosens it.

    Parameters
    ----------
    graph : any model; a factor of three or more variables becomes a variable tied to those of its
        scope.
    tolerance : relative tolerance of message passing (see `TrwResult`) and of the gain from better
        edge weights.
    weight_steps : largest number of steps of conditional gradient, of `STEP_SWEEPS` sweeps each.
    max_sweeps : largest number of sweeps at the first and again at the last edge weights; by
        default enough to update a million messages, and at least 1000.

    Raises
    ------
    ModelTooLarge : the model is too wide for `uniform_spanning_trees`.
    """
    descent = _Descent(pairwise(lifted(graph)), tolerance)
    if max_sweeps is None:
        max_sweeps = max(1000, 10**6 // max(1, 2 * len(descent.form.edges)))
    best = point = descent.run(descent.start(), max_sweeps)
    for step in range(weight_steps):
        turned = descent.turn(point, 2 / (step + 4))
        if turned is None:
            break
        point = descent.run(turned, STEP_SWEEPS)
        best = min(best, point, key=lambda p: p.bound)
    best = descent.run(best, max_sweeps)
    largest = math.log(graph.size) + sum(float(factor.table.max()) for factor in graph.factors)
    value = min(best.bound, largest)
    converged = descent.negligible(best.gap, best)
    marginals = descent.marginals(best)[: sum(graph.cardinalities)]
    return TrwResult(value, best.bound, best.gap, converged, descent.sweeps, best.weights, marginals)


class _Point(NamedTuple):
    """Edge weights and messages, their bound on ln Z with its gap, and the mutual information of
    each edge."""

    weights: Floats
    messages: Floats
    bound: float
    gap: float
    information: Floats


class _Descent:
    """Descent of the bound over messages and edge weights."""

    def __init__(self, form: Pairwise, tolerance: float) -> None:
        self.form, self._tolerance = form, tolerance
        self._layout = messages_of(form)
        self._order = up_and_down(form.edges) if soft_binary(form) else None
        self._damping = 0.0
        self.sweeps = 0

    def start(self) -> _Point:
        weights = uniform_spanning_trees(len(self.form.cardinalities), self.form.edges)
        return self._at(weights, np.zeros(self._layout.starts[-1]))

    def _at(self, weights: Floats, messages: Floats) -> _Point:
        from thesis_cli.inference.message_passing.trw_kernels import certify

        information = np.zeros(weights.size)
        bound, gap = certify(self._layout, self.form.unary, weights, messages, information)
        return _Point(weights, messages, self.form.constant + bound, gap, information)

    def negligible(self, change: float, point: _Point) -> bool:
        return point.bound == -np.inf or change <= self._tolerance * max(1.0, abs(point.bound))

    def run(self, point: _Point, sweeps: int) -> _Point:
        """Pass messages at the same edge weights.

        Messages that raise the bound are undone, and damping increases. It then decreases again,
        because undamped messages are the fastest where they do not diverge."""
        from thesis_cli.inference.message_passing.trw_kernels import send, send_binary

        for done in range(0, sweeps, STRIDE):
            if self.negligible(point.gap, point):
                break
            stride = min(STRIDE, sweeps - done)
            messages = point.messages.copy()
            how = point.weights, self._damping, stride, messages
            if self._order is None:
                send(self._layout, self.form.unary, *how)
            else:
                send_binary(self._layout, self.form.unary, self._order, *how)
            self.sweeps += stride
            new = self._at(point.weights, messages)
            if new.bound <= point.bound:
                point = new
                self._damping *= 0.9
            else:  # also if the bound is NaN
                self._damping = (1 + self._damping) / 2
        return point

    def marginals(self, point: _Point) -> Floats:
        """Pseudo-marginals of all variables of the pairwise form: the normalised beliefs."""
        offsets, layout = self.form.offsets, self._layout
        lengths = np.diff(layout.starts)
        place = np.repeat(offsets[layout.target] - layout.starts[:-1], lengths) + np.arange(point.messages.size)
        beliefs = self.form.unary.copy()
        np.add.at(beliefs, place, point.messages)
        states = np.diff(offsets)
        tops = np.maximum.reduceat(beliefs, offsets[:-1])
        weights = np.exp(beliefs - np.repeat(np.where(tops == -np.inf, 0.0, tops), states))
        totals = np.add.reduceat(weights, offsets[:-1])
        weights /= np.repeat(np.where(totals > 0, totals, 1.0), states)
        return np.asarray(weights)

    def turn(self, point: _Point, step: float) -> _Point | None:
        """Move edge weights towards the best spanning forest; None if the gain is within the
        tolerance."""
        forest = maximum_spanning_forest(len(self.form.cardinalities), self.form.edges, point.information)
        direction = forest - point.weights
        if self.negligible(float(direction @ point.information), point):
            return None
        return self._at(point.weights + step * direction, point.messages)


def maximum_spanning_forest(n: int, edges: Ints, gains: Floats) -> Floats:
    """Indicator of the edges of a spanning forest of largest gain, shape (E,); `edges` ascend,
    gains are >= 0."""
    from scipy.sparse import coo_array, csgraph

    costs = coo_array((-1 - gains, tuple(edges.T)), shape=(n, n))  # an entry of 0 would be no edge
    forest = csgraph.minimum_spanning_tree(costs).tocoo()
    chosen = np.zeros(len(edges))
    chosen[np.searchsorted(edges @ [n, 1], forest.row.astype(np.int64) * n + forest.col)] = 1
    return chosen


def uniform_spanning_trees(n: int, edges: Ints) -> Floats:
    """Probability of each edge in a uniform spanning tree of its component: its effective
    resistance (Kirchhoff).

    Edges outside the 2-core, which remains when leaves are removed repeatedly, are in every tree.
    The Laplacian of the rest of a component, grounded at one vertex, is block tridiagonal in the
    distance from this vertex; the blocks of its inverse follow by recursion.

    Parameters
    ----------
    n : number of vertices.
    edges : distinct pairs, shape (E, 2).

    Raises
    ------
    ModelTooLarge : the blocks need more than `DEFAULT_MEMORY`.
    """
    from scipy.sparse import csgraph, csr_array, diags_array

    probabilities = np.ones(len(edges))
    core = np.flatnonzero(_two_core(n, edges))
    if not core.size:
        return probabilities
    i, j = edges[core].T
    links = csr_array((np.ones(2 * core.size), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n))
    laplacian: csr_array = diags_array(links.sum(axis=0)).tocsr() - links
    _, component = csgraph.connected_components(links, directed=False)
    for label in np.unique(component[i]):
        own = component[i] == label
        far = csgraph.dijkstra(links, indices=[int(i[own][0])], unweighted=True)[0]
        root = int(np.where(np.isfinite(far), far, -1).argmax())
        level = csgraph.dijkstra(links, indices=[root], unweighted=True)[0]
        probabilities[core[own]] = _resistances(laplacian, level, i[own], j[own])
    return probabilities


def _two_core(n: int, edges: Ints) -> list[bool]:
    """Whether each edge remains when leaves are removed until there are none."""
    degree = np.bincount(edges.reshape(-1), minlength=n).tolist()
    ends = edges.tolist()
    left, kept = [0] * n, [True] * len(ends)  # exclusive or of the edges at a vertex: at a leaf, its one edge
    for e, (i, j) in enumerate(ends):
        left[i] ^= e
        left[j] ^= e
    leaves = [v for v in range(n) if degree[v] == 1]
    while leaves:
        v = leaves.pop()
        if degree[v] != 1:
            continue
        e = left[v]
        kept[e] = False
        for u in ends[e]:
            left[u] ^= e
            degree[u] -= 1
            if degree[u] == 1:
                leaves.append(u)
    return kept


def _resistances(laplacian: csr_array, level: Floats, i: Ints, j: Ints) -> Floats:
    """Effective resistances between neighbours i and j, from the inverse of the Laplacian grounded
    at level 0."""
    near, far = np.where(level[i] <= level[j], (i, j), (j, i))
    depth = int(level[far].max())
    groups = [np.flatnonzero(level == k) for k in range(1, depth + 1)]
    if (needed := 24 * sum(g.size**2 for g in groups)) > DEFAULT_MEMORY:
        raise ModelTooLarge(
            f"the spanning trees of the model need {bytes_text(needed)}",
            "the Bethe approximation takes any model",
        )
    place = np.zeros(level.size, np.int64)
    for group in groups:
        place[group] = np.arange(group.size)
    down = [laplacian[a][:, b] for a, b in itertools.pairwise(groups)]
    schur: list[Floats] = [np.empty((0, 0))] * depth
    for k in reversed(range(depth)):
        block: Floats = laplacian[groups[k]][:, groups[k]].toarray()
        if k < depth - 1:
            block = block - down[k] @ schur[k + 1] @ down[k].T
        schur[k] = np.linalg.inv(block).astype(np.float64, copy=False)
    own, shared = np.zeros(level.size), np.zeros(i.size)  # diagonal of the inverse, and its entries at edges
    rank = level[near] + level[far]
    inverse: Floats = schur[0]
    for k in range(depth):
        if k > 0:
            across = -schur[k] @ down[k - 1].T @ inverse
            between = np.flatnonzero(rank == 2 * k + 1)
            shared[between] = across[place[far[between]], place[near[between]]]
            inverse = schur[k] - across @ down[k - 1] @ schur[k]
        own[groups[k]] = inverse.diagonal()
        within = np.flatnonzero(rank == 2 * k + 2)
        shared[within] = inverse[place[near[within]], place[far[within]]]
    resistances: Floats = own[near] + own[far] - 2 * shared
    return resistances
