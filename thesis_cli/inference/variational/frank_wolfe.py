"""Bounds on ln Z from MAP problems alone: Frank-Wolfe over the marginal polytope.

`Objective` is the variational objective for ln Z over the marginals of a pairwise model, whose
vertices MAP calls find.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.enumeration import starts
from thesis_cli.inference.message_passing.trw import maximum_spanning_forest, uniform_spanning_trees
from thesis_cli.inference.names import EntropyName, StepName
from thesis_cli.inference.pairwise import Pairwise, pairwise
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import Factor, FactorGraph

TINY = 1e-300
"""Marginals below this count as this in logarithms."""


class Objective:
    """F(mu) = <theta, mu> + sum_i H(mu_i) - sum_e rho_e I(mu_e), for marginals mu of the variables
    and edges.

    With the appearance probabilities rho of edges in a mixture of spanning trees the entropy is at
    least that of any distribution with these marginals, and concave over the marginal polytope
    (Wainwright, Jaakkola and Willsky 2005); so max F >= ln Z. With rho = 1 it is Bethe's, exact on
    trees and otherwise neither.

    Marginals are flat: those of variable 0, then of variable 1, ..., then the joint ones of each
    edge. A vertex of the polytope is a configuration, given by the entries that are 1: one for each
    variable, then one for each edge.

    Parameters
    ----------
    form : the model, without impossible configurations.
    rho : weights of the edges, shape (E,).

    Attributes
    ----------
    size : number of marginals.
    """

    def __init__(self, form: Pairwise, rho: Floats) -> None:
        self.form = form
        self._places = int(form.offsets[-1]) + starts([t.size for t in form.tables])
        self.size = int(self._places[-1])
        self.theta = np.concatenate([form.unary, *(t.reshape(-1) for t in form.tables)])
        cardinalities = np.array(form.cardinalities, np.int64)
        self._columns = cardinalities[form.edges[:, 1]]
        self._shares = np.empty(self.size)
        self._lengths = np.diff(self._places)
        self.reweigh(rho)

    def reweigh(self, rho: Floats) -> None:
        """Take other weights of the edges."""
        degree = np.bincount(self.form.edges.reshape(-1), np.repeat(rho, 2), minlength=len(self.form.cardinalities))
        self.rho = rho
        self._shares = np.concatenate([np.repeat(1 - degree, self.form.cardinalities), np.repeat(rho, self._lengths)])

    def value(self, mu: Floats) -> tuple[float, Floats]:
        """F without the constant of the model, and its gradient."""
        logs = np.log(np.maximum(mu, TINY))
        entropies = self._shares * logs
        return float((self.theta - entropies) @ mu), self.theta - entropies - self._shares

    def potential(self, gradient: Floats) -> FactorGraph:
        """The model whose MAP is the vertex of largest inner product with a gradient."""
        form = self.form
        factors = [Factor((i,), gradient[a:b]) for i, (a, b) in enumerate(_pairs(form.offsets))]
        for edge, table, (a, b) in zip(form.edges.tolist(), form.tables, _pairs(self._places), strict=True):
            factors.append(Factor(tuple(edge), gradient[a:b].reshape(table.shape)))
        return FactorGraph.unchecked(form.cardinalities, factors)

    def vertices(self, states: Ints) -> Ints:
        """Entries that are 1 of configurations, shape (batch, n) -> (batch, n + E)."""
        i, j = self.form.edges.T
        edges = self._places[:-1] + states[:, i] * self._columns + states[:, j]
        return np.concatenate([self.form.offsets[:-1] + states, edges], axis=1)

    def independent(self, marginals: Floats) -> Floats:
        """The marginals of independent variables with given ones, shape (sum of cardinalities,)."""
        parts = [marginals[a:b] for a, b in _pairs(self.form.offsets)]
        joint = [np.outer(parts[i], parts[j]).reshape(-1) for i, j in self.form.edges.tolist()]
        return np.concatenate([marginals, *joint])

    def information(self, mu: Floats) -> Floats:
        """Mutual information of each edge in nats, shape (E,)."""
        found = np.empty(len(self.form.edges))
        for e, (table, (a, b)) in enumerate(zip(self.form.tables, _pairs(self._places), strict=True)):
            joint = mu[a:b].reshape(table.shape)
            product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            found[e] = joint.reshape(-1) @ np.log(np.maximum(joint, TINY) / np.maximum(product, TINY)).reshape(-1)
        return np.maximum(found, 0.0)


def _pairs(ends: Ints) -> list[tuple[int, int]]:
    return list(itertools.pairwise(ends.tolist()))


EVERY, INNER = 10, 60
"""MAP problems between two corrections, and most iterations of L-BFGS-B in each. Between them steps
along a line gain more in the same time."""
CONTRACTION, SHRINK, LEAST = 0.3, 0.8, 1e-7
"""Weight that the interior point keeps at first, its factor after each MAP problem, and its least."""
FORGET = 3.0
"""A vertex without weight is dropped if its inner product with the gradient is this far, in nats,
below that of the marginals."""
REMEDY = "annealed importance sampling takes any model"
HALVINGS = 50
"""Bisections of a line search."""


@dataclass(frozen=True)
class FrankWolfe:
    """Point at which Frank-Wolfe ended.

    Attributes
    ----------
    value : objective at the marginals in nats, at most its maximum.
    upper : least value plus gap on the way. With the TRW entropy and exact MAP it is at least the
        maximum of the objective over the marginal polytope, and so at least ln Z, up to rounding.
    gap : duality gap of the last marginals: how far a concave objective may rise.
    converged : whether the gap is within the tolerance.
    guarantee : guarantee of the MAP solvers.
    map_calls : MAP problems solved.
    trace : value and `upper` after each MAP problem, shape (map_calls, 2).
    marginals : marginals of the variables, those of variable 0 first, shape (sum of cardinalities,).
    weights : weights of the edges of `pairwise(graph)`, shape (E,).
    """

    value: float
    upper: float
    gap: float
    converged: bool
    guarantee: Guarantee
    map_calls: int
    trace: Floats
    marginals: Floats
    weights: Floats


def frank_wolfe(
    graph: FactorGraph,
    map_calls: int = 200,
    *,
    entropy: EntropyName = "trw",
    steps: StepName = "corrective",
    tolerance: float = 1e-4,
    memory: int = DEFAULT_MEMORY,
    progress: Tick | None = None,
) -> FrankWolfe:
    """Maximise a variational objective over the marginal polytope by MAP calls (Krishnan,
    Lacoste-Julien and Sontag 2015; Belanger, Sheldon and McCallum 2013).

    The vertex that a gradient points to is the MAP of the model whose potential is that gradient.
    All points are mixtures of vertices and of one interior point, so that they are marginals of a
    distribution, where message passing only makes those of edges and variables agree. The gap
    <gradient, vertex - mu> bounds what is left of a concave objective.

    The gradient of an entropy is infinite at the boundary, so that the interior point keeps some
    weight, which shrinks. With the TRW entropy, edge weights start as those of uniform spanning
    trees and move towards the spanning tree with the most mutual information when that promises
    more than the gap.

    Parameters
    ----------
    graph : a model with factors of at most two variables, and without impossible configurations.
    map_calls : most MAP problems.
    entropy : `trw` for an upper bound on ln Z, `bethe` for a local maximum of Bethe's
        approximation, restricted to the marginal polytope.
    steps : `plain` moves towards the new vertex, by a search of the line; `pairwise` moves weight to
        it from the worst vertex; `corrective` moves as `plain`, and after every `EVERY` MAP problems
        maximises over the mixtures of all vertices.
    tolerance : gap at which the search ends, as a share of max(1, |value|).
    memory : bytes for the MAP solver.
    progress : called after each MAP problem.

    Raises
    ------
    InputError : fewer than one MAP call.
    UnsuitableModel : a factor has three variables or more, or forbids something.
    ModelTooLarge : the model is too wide for `uniform_spanning_trees`.
    """
    if map_calls < 1:
        raise InputError(f"{map_calls} MAP calls", "it must be at least one")
    form = _soft_pairwise(graph)
    rho = np.ones(len(form.edges))
    if entropy == "trw":
        rho = uniform_spanning_trees(len(form.cardinalities), form.edges)
    objective = Objective(form, rho)
    mixture = _Mixture(objective, _start(objective))
    upper, turns, exact = math.inf, 0, True
    trace: list[tuple[float, float]] = []
    while True:
        value, gradient = objective.value(mixture.mu)
        solver, _ = map_solver(objective.potential(gradient), memory=memory)
        highest, states = solver.maximise(np.zeros((1, int(form.offsets[-1]))))
        exact &= solver.guarantee == "exact"
        gap = float(highest[0] - gradient @ mixture.mu)
        upper = min(upper, value + gap)
        trace.append((value + form.constant, upper + form.constant))
        if progress:
            progress(1)
        negligible = tolerance * max(1.0, abs(value))
        turned = entropy == "trw" and _turn(objective, mixture.mu, 2 / (turns + 4), max(gap, negligible))
        turns += turned
        converged = gap <= negligible and not turned
        if converged or len(trace) >= map_calls:
            break
        mixture.add(objective.vertices(states)[0], steps, len(trace))
    return FrankWolfe(
        value + form.constant,
        upper + form.constant,
        gap,
        converged,
        "exact" if exact else "approximate",
        len(trace),
        np.array(trace),
        mixture.mu[: form.offsets[-1]],
        objective.rho,
    )


def _soft_pairwise(graph: FactorGraph) -> Pairwise:
    try:
        form = pairwise(graph)
    except UnsuitableModel as error:
        raise UnsuitableModel(f"Frank-Wolfe takes pairwise models, and {error.problem}", REMEDY) from error
    if not form.soft:
        raise UnsuitableModel("Frank-Wolfe takes no impossible configurations", REMEDY)
    return form


def _turn(objective: Objective, mu: Floats, step: float, worth: float) -> bool:
    """Move the edge weights towards the best spanning forest if that promises more than `worth`."""
    information = objective.information(mu)
    direction = maximum_spanning_forest(len(objective.form.cardinalities), objective.form.edges, information)
    direction -= objective.rho
    if direction @ information <= worth:
        return False
    objective.reweigh(objective.rho + step * direction)
    return True


def _start(objective: Objective) -> Floats:
    """Independent variables with the distributions of the unary factors, mixed with uniform ones."""
    offsets = objective.form.offsets
    states = np.diff(offsets)
    unary = objective.form.unary
    weights = np.exp(unary - np.repeat(np.maximum.reduceat(unary, offsets[:-1]), states))
    weights /= np.repeat(np.add.reduceat(weights, offsets[:-1]), states)
    return objective.independent((weights + np.repeat(1 / states, states)) / 2)


class _Mixture:
    """A mixture, of marginals `mu`, of an interior point, whose weight is the first, and of vertices."""

    def __init__(self, objective: Objective, interior: Floats) -> None:
        self._objective, self._interior = objective, interior
        self._vertices: Ints = np.empty((0, len(objective.form.cardinalities) + len(objective.form.edges)), np.int64)
        self._weights = np.ones(1)
        self.mu = interior

    def _mixed(self, weights: Floats) -> Floats:
        spread = np.repeat(weights[1:], self._vertices.shape[1])
        mixed = np.bincount(self._vertices.reshape(-1), spread, minlength=self._objective.size)
        return np.asarray(mixed + weights[0] * self._interior)

    def _products(self, gradient: Floats) -> Floats:
        """Inner products of the gradient with the interior point and the vertices."""
        return np.concatenate([[gradient @ self._interior], gradient[self._vertices].sum(axis=1)])

    def add(self, vertex: Ints, steps: StepName, turn: int) -> None:
        """Take a vertex into the mixture and choose new weights."""
        known = np.flatnonzero((self._vertices == vertex).all(axis=1))
        if known.size:
            at = 1 + int(known[0])
        else:
            self._vertices = np.concatenate([self._vertices, vertex[None]])
            self._weights = np.append(self._weights, 0.0)
            at = self._weights.size - 1
        self._search(at, away=steps == "pairwise")
        if steps == "corrective" and turn % EVERY == 0:
            self._correct(max(LEAST, CONTRACTION * SHRINK**turn))

    def _correct(self, least: float) -> None:
        """Maximise over all mixtures in which the interior point keeps the least weight."""
        from scipy.optimize import Bounds, minimize

        def loss(weights: Floats) -> tuple[float, Floats]:
            total = weights.sum()
            shares = weights / total
            value, gradient = self._objective.value(self._mixed(shares))
            slopes = self._products(gradient)
            return -value, (slopes @ shares - slopes) / total

        start = np.maximum(self._weights, [least] + [0.0] * (self._weights.size - 1))
        limits = Bounds(np.array([least] + [0.0] * (start.size - 1)), np.inf)
        found = minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": INNER, "maxcor": 20}
        )
        self._weights = found.x / found.x.sum()
        self.mu = self._mixed(self._weights)
        _, gradient = self._objective.value(self.mu)
        kept = (self._weights > 0) | (self._products(gradient) - gradient @ self.mu > -FORGET)
        self._vertices, self._weights = self._vertices[kept[1:]], self._weights[kept]

    def _search(self, at: int, away: bool) -> None:
        """Search the line to a vertex, from all others or from the worst that has weight."""
        towards = np.zeros(self._weights.size)
        towards[at] = 1.0
        most = 1.0
        if away:
            _, gradient = self._objective.value(self.mu)
            products = np.where(self._weights > 0, self._products(gradient), np.inf)
            worst = int(products.argmin())
            if worst == at:
                return
            most = float(self._weights[worst])
            direction = towards * most
            direction[worst] = -most
        else:
            direction = towards - self._weights
        move = self._mixed(direction)
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            _, gradient = self._objective.value(self.mu + middle * move)
            low, high = (middle, high) if gradient @ move > 0 else (low, middle)
        self._weights = np.maximum(self._weights + low * direction, 0.0)
        self._weights /= self._weights.sum()
        self.mu = self._mixed(self._weights)
