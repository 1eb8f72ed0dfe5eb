"""Bounds on ln Z from MAP problems alone: Frank-Wolfe over the marginal polytope."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.message_passing.trw import maximum_spanning_forest, uniform_spanning_trees
from thesis_cli.inference.pairwise import Pairwise, pairwise
from thesis_cli.inference.solver import Guarantee
from thesis_cli.inference.variational.entropy_objective import Objective
from thesis_cli.models.factor_graph import FactorGraph

EntropyName = Literal["trw", "bethe"]
StepName = Literal["corrective", "pairwise", "plain"]

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
    """Where Frank-Wolfe ended.

    Attributes
    ----------
    value : objective at the marginals in nats, at most its maximum.
    upper : least value plus gap on the way. With the TRW entropy and exact MAP it is at least the
        maximum of the objective over the marginal polytope, and so at least ln Z, up to rounding.
    gap : of the last marginals: how far the objective may rise, if it is concave.
    converged : whether the gap is within the tolerance.
    guarantee : that of the MAP solvers.
    map_calls : MAP problems solved.
    trace : value and `upper` after each MAP problem, shape (map_calls, 2).
    marginals : of the variables, those of variable 0 first, shape (sum of cardinalities,).
    weights : of the edges of `pairwise(graph)`, shape (E,).
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
    """A mixture of an interior point, whose weight is the first, and of vertices.

    Attributes
    ----------
    mu : its marginals.
    """

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
