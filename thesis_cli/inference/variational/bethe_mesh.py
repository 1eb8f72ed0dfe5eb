"""The global maximum of the Bethe approximation of ln Z, for attractive binary pairwise models.

With pair marginals at their best for given q_i = p(x_i = 1), the Bethe free energy F is a function
of q alone, of pair terms whose mixed derivatives are at most 0 (Weller and Jebara 2013; Korc,
Kolmogorov and Lampert 2012). So on a mesh of values of q its minimum is one minimum cut, whose
distance from the minimum over all q has a bound. And since exp(-F) <= Z at the minimum (Ruozzi 2012),
-F at any q bounds ln Z from below.

Where messages from below and from above meet there is one stationary point and no mesh. Otherwise
the interval between them, where all stationary points lie, is cut into cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr, expit, log1p

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, UnsuitableModel
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel, CutForm, MinimumCut
from thesis_cli.inference.graph_cut.maximum_flow import Network
from thesis_cli.models.factor_graph import FactorGraph

SWEEPS = 10_000
"""Most rounds of messages; any number of them bounds the stationary points."""
SETTLED = 1e-13
"""Change of a message, in nats, at which they have converged."""
ROUNDING = 1e-13
"""Share of the costs by which a cut may miss the minimum."""


@dataclass(frozen=True)
class Attractive:
    """ln p(x) + ln Z = constant + sum_i field_i x_i + sum_e coupling_e x_i x_j, x_i in {0, 1}.

    Attributes
    ----------
    constant : nats.
    field : shape (n,).
    edges : shape (E, 2).
    coupling : above 0, shape (E,).
    """

    constant: float
    field: Floats
    edges: Ints
    coupling: Floats

    @classmethod
    def of(cls, graph: FactorGraph) -> Attractive:
        """A model in this form, flipped where that makes it attractive; without variables of one
        state.

        Raises
        ------
        UnsuitableModel : three states or more, factors of three variables or more, a forbidden
            configuration, or a frustrated cycle.
        """
        model = BinaryModel.of(graph)
        free = np.array(graph.cardinalities) == 2
        if not (np.isfinite(model.unary[free]).all() and np.isfinite(model.tables).all()):
            raise UnsuitableModel("a factor forbids a configuration", "use bound --method bethe")
        form, flips = CutForm.of(model), MinimumCut(model).flips
        i, j = form.edges.T
        n, half = len(free), form.capacities[:, 0]
        field = np.where(flips, -form.log_odds, form.log_odds) - np.bincount(i, half, n) - np.bincount(j, half, n)
        place = np.cumsum(free) - 1
        constant = form.constant + float(form.log_odds[flips & free].sum())
        return cls(constant, field[free], place[form.edges], 2 * half)

    @property
    def degree(self) -> Ints:
        return np.bincount(self.edges.ravel(), minlength=len(self.field))

    def stationary(self) -> tuple[Floats, Floats]:
        """Log odds of q between which every stationary point of F lies, shape (n,) each.

        A message ln((1 + e^(h + w)) / (1 + e^h)) rises with h, the log odds of its sender without
        its receiver. So messages from 0 stay below those of any fixed point, and messages from w
        above.
        """
        i, j = self.edges.T
        senders, receivers = np.concatenate([i, j]), np.concatenate([j, i])
        weight = np.concatenate([self.coupling, self.coupling])
        back = np.concatenate([np.arange(len(i)) + len(i), np.arange(len(i))])
        found = []
        for message in (np.zeros(len(weight)), weight.copy()):
            for _ in range(SWEEPS):
                odds = self.field + np.bincount(receivers, message, len(self.field))
                h = odds[senders] - message[back]
                new = np.logaddexp(0, h + weight) - np.logaddexp(0, h)
                moved = np.abs(new - message).max(initial=0.0)
                message = new
                if moved <= SETTLED:
                    break
            found.append(self.field + np.bincount(receivers, message, len(self.field)))
        low, high = found
        return np.minimum(low, high) - SETTLED, np.maximum(low, high) + SETTLED

    def value(self, q: Floats) -> float:
        """-F at marginals q, in nats: at most ln Z; shape (n,)."""
        i, j = self.edges.T
        single = self.field @ q - (self.degree - 1) @ (entr(q) + entr(1 - q))
        return float(self.constant + single - self._pairs(self.coupling, q[i], q[j]).sum())

    def _pairs(self, coupling: Floats, q: Floats, r: Floats) -> Floats:
        """Pair terms of F, -w xi - S(xi), at the best xi = p(1, 1)."""
        xi = best_pairs(coupling, q, r)
        cells = (xi, np.maximum(q - xi, 0), np.maximum(r - xi, 0), np.maximum(1 + xi - q - r, 0))
        return np.asarray(-coupling * xi - sum(entr(p) for p in cells))

    def gradient(self, q: Floats) -> Floats:
        """dF/dq, shape (n,)."""
        i, j = self.edges.T
        xi = best_pairs(self.coupling, q[i], q[j])
        neither = np.maximum(1 + xi - q[i] - q[j], 1e-300)
        n, parts = len(q), []
        for own in (i, j):
            alone = np.maximum(q[own] - xi, 1e-300)
            parts.append(np.bincount(own, np.log(neither) - np.log(alone) + _log_odds(q[own]), n))
        return np.asarray(_log_odds(q) - self.field - parts[0] - parts[1])


def best_pairs(coupling: Floats, q: Floats, r: Floats) -> Floats:
    """p(x_i = 1, x_j = 1) that minimises F at marginals q and r (Welling and Teh 2001); all of one shape."""
    with np.errstate(over="ignore"):
        k = 1 / np.expm1(coupling)
    root = np.sqrt((q - r) ** 2 + k * k + 2 * k * (q + r - 2 * q * r))
    return np.asarray(2 * (1 + k) * q * r / np.maximum(q + r + k + root, 1e-300))


class Mesh(NamedTuple):
    """Cells of each q.

    Attributes
    ----------
    points : the middle of each cell, for each variable, shapes (k_i,).
    errors : most that moving one q from a minimum within a cell to its middle adds to F, the same
        shapes. Moving all adds at most the sum.
    """

    points: list[Floats]
    errors: list[Floats]

    @property
    def sizes(self) -> Ints:
        return np.array([len(p) for p in self.points])


@dataclass(frozen=True)
class BetheOptimum:
    """Bounds on the global maximum of -F.

    Attributes
    ----------
    value : -F at `marginals`: at most the maximum, and at most ln Z.
    upper : upper bound on the maximum; ln Z may be above it.
    marginals : q, shape (n,), of the model after its flips.
    sizes : cells of each variable in the finest mesh, shape (n,); 1 if messages met.
    cuts : number of minimum cuts.
    """

    value: float
    upper: float
    marginals: Floats
    sizes: Ints
    cuts: int


def bethe_optimum(graph: FactorGraph, epsilon: float, most_arcs: int) -> BetheOptimum:
    """The global maximum of the Bethe approximation, between bounds.

    Meshes are made finer until the bounds are close. Errors fall with the square of the number of
    cells, so that numbers in proportion to the cube root of the errors of one cell serve best.

    Parameters
    ----------
    graph : attractive, perhaps after flips, with binary variables and factors of at most two.
    epsilon : nats between the bounds from which a finer mesh is not sought.
    most_arcs : largest number of arcs of a cut, which ends the refinement.

    Raises
    ------
    UnsuitableModel : not such a model.
    InputError : `epsilon` is not positive.
    """
    if not epsilon > 0:
        raise InputError(f"epsilon is {epsilon:g}", "it must be above 0")
    model = Attractive.of(graph)
    if not model.field.size:
        return BetheOptimum(model.constant, model.constant, model.field, np.zeros(0, np.int64), 0)
    low, high = model.stationary()
    best = max((expit(low), expit(high)), key=model.value)
    upper, cuts, scale = math.inf, 0, 1.0
    single = np.array([e[0] for e in mesh_of(model, low, high, np.ones(len(low), np.int64)).errors])
    share = np.cbrt(single / single.max()) if single.max() > 0 else np.ones(len(single))
    i, j = model.edges.T
    while True:
        sizes = np.maximum(1, np.ceil(scale * share)).astype(np.int64)
        if cuts and int(((sizes[i] - 1) * (sizes[j] - 1)).sum() + sizes.sum()) > most_arcs:
            break
        mesh = mesh_of(model, low, high, sizes)
        chosen, least = minimum_on(model, mesh)
        cuts += 1
        upper = min(upper, -least)
        best = max((best, polished(model, chosen, low, high)), key=model.value)
        if upper - model.value(best) <= epsilon:
            break
        scale *= 2.0
    value = model.value(best)
    return BetheOptimum(value, max(value, upper), best, mesh.sizes, cuts)


def mesh_of(model: Attractive, low: Floats, high: Floats, sizes: Ints) -> Mesh:
    """Cells of equal width in arcsin(sqrt(q)), in which curvatures of F are of one size.

    Parameters
    ----------
    low, high : log odds between which the marginals lie, shape (n,).
    sizes : number of cells of each variable, shape (n,).
    """
    ends = np.arctan(np.exp(np.clip([low, high], -700, 700) / 2))
    points, errors = [], []
    for v, (first, last, size) in enumerate(zip(*ends, sizes.tolist(), strict=True)):
        angles = np.linspace(first, last, 2 * size + 1)
        points.append(np.sin(angles[1::2]) ** 2)
        errors.append(_errors(model, v, np.sin(angles) ** 2))
    return Mesh(points, errors)


def _errors(model: Attractive, variable: int, q: Floats) -> Floats:
    """Errors of cells, from their ends and middles in turn, shape (2 k + 1,); shape (k,): the least
    of what curvatures and slopes allow."""
    own = (model.edges == variable).any(axis=1)
    weight = model.coupling[own]
    middle, ends = q[1::2], np.stack([q[:-1:2], q[2::2]])
    # From an end to the middle F rises at most by this: its slope is between log odds(q) - field -
    # sum_j w and log odds(q) - field.
    area = _entropy(ends) - _entropy(middle)
    field = model.field[variable]
    up = area[0] - field * (middle - ends[0])
    down = area[1] + (field + weight.sum()) * (ends[1] - middle)
    return np.asarray(np.fmin(curved_errors(weight, ends, middle), np.maximum(up, down)))


def curved_errors(coupling: Floats, ends: Floats, middle: Floats) -> Floats:
    """Errors of cells by the curvature of F, which is flat at a minimum.

    Let v = q (1 - q), and s = sinh(w / 2). For given q the squared correlation r of a pair is largest
    where r / (1 - r) is (sqrt(1 + 4 v s^2) - 1) / 2, which makes |d2F / dq dq_j| at most s over the
    root of either v, and v d2F / dq2 at most 1 more than the sum of these ratios over the neighbours.

    Parameters
    ----------
    coupling : w of the variable's edges, shape (d,).
    ends, middle : q at the ends and in the middle of each cell, shapes (2, k) and (k,).
    """
    s = np.sinh(np.minimum(coupling, 1000.0) / 2)
    v = np.minimum(ends * (1 - ends), middle * (1 - middle))
    ratios = (np.sqrt(1 + 4 * v[..., None] * s * s) - 1).sum(axis=-1) / 2
    with np.errstate(all="ignore"):  # NaN, which says nothing, where q (1 - q) is too small
        errors = (ends - middle) ** 2 * ((1 + ratios) / v + s.sum() / np.sqrt(v)) / 2
    return np.asarray(errors.max(axis=0))


def _entropy(q: Floats) -> Floats:
    return np.asarray(entr(q) + entr(1 - q))


def minimum_on(model: Attractive, mesh: Mesh) -> tuple[Floats, float]:
    """The best point of a mesh if its errors are taken off F, shape (n,), and F less them there, at
    most the minimum over all q; by one minimum cut.

    State k of a variable is k labels 1 among those of its cell borders. The mixed difference of a
    pair term at two borders, at most 0, is the gain if both labels are 1.
    """
    sizes = mesh.sizes
    start = np.concatenate([[0], np.cumsum(sizes - 1)])
    costs = np.zeros(start[-1])
    arcs, capacities = [np.zeros((0, 2), np.int64)], [np.zeros((0, 2))]
    for v, q in enumerate(mesh.points):
        alone = -model.field[v] * q + (model.degree[v] - 1) * _entropy(q)
        costs[start[v] : start[v + 1]] += np.diff(alone - mesh.errors[v])
        borders = np.arange(start[v], start[v + 1] - 1)
        arcs.append(np.stack([borders, borders + 1], axis=1))
        capacities.append(np.tile([np.inf, 0.0], (len(borders), 1)))
    for (i, j), weight in zip(model.edges.tolist(), model.coupling, strict=True):
        term = model._pairs(weight, mesh.points[i][:, None], mesh.points[j])
        of_i, of_j = slice(start[i], start[i + 1]), slice(start[j], start[j + 1])
        gain = np.maximum(0.0, -np.diff(np.diff(term, axis=0), axis=1)) / 2
        costs[of_i] += np.diff(term[:, 0]) - gain.sum(axis=1)
        costs[of_j] += np.diff(term[0]) - gain.sum(axis=0)
        borders = np.stack(np.meshgrid(np.arange(start[i], start[i + 1]), np.arange(start[j], start[j + 1])), axis=-1)
        arcs.append(borders.swapaxes(0, 1).reshape(-1, 2))
        capacities.append(np.repeat(gain.reshape(-1, 1), 2, axis=1))
    labels = np.zeros(len(costs), np.int64)
    if len(costs):
        network = Network(np.concatenate(arcs), np.concatenate(capacities), np.zeros((len(costs), 2), np.bool_))
        labels = network.labels(costs[None])[0]
    states = [int(labels[start[v] : start[v + 1]].sum()) for v in range(len(sizes))]
    q = np.array([points[k] for points, k in zip(mesh.points, states, strict=True)])
    taken = math.fsum(float(errors[k]) for errors, k in zip(mesh.errors, states, strict=True))
    return q, -model.value(q) - taken - ROUNDING * (1 + float(np.abs(costs).sum()))


def polished(model: Attractive, q: Floats, low: Floats, high: Floats) -> Floats:
    """Marginals, shape (n,), where F is no larger than at q, by descent over log odds between bounds.

    Parameters
    ----------
    q : marginals P(x_i = 1), shape (n,).
    low, high : bounds on the log odds, shape (n,).
    """

    def objective(odds: Floats) -> tuple[float, Floats]:
        at = expit(odds)
        return -model.value(at), model.gradient(at) * at * (1 - at)

    found = minimize(
        objective,
        np.clip(_log_odds(q), low, high),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
    )
    better = expit(found.x)
    return better if model.value(better) > model.value(q) else q


def _log_odds(q: Floats) -> Floats:
    """Log odds, finite where q rounds to 0 or 1."""
    return np.asarray(np.log(np.maximum(q, 1e-300)) - log1p(-np.minimum(q, 1 - 2.0**-53)))
