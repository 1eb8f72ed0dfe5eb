"""A variational objective for ln Z over the marginals of a pairwise model, and its vertices."""

from __future__ import annotations

import itertools

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.flat_tables import starts
from thesis_cli.inference.pairwise import Pairwise
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
