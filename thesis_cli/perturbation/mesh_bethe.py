"""The Bethe approximation of ln Z at its certified global maximum, as an estimate."""

from __future__ import annotations

from thesis_cli.inference.variational.bethe_mesh import bethe_optimum
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.estimate import Estimate

EPSILON = 0.05
"""Nats between the bounds on the maximum that end the refinement."""

ARCS = 10**6
"""Most arcs of a minimum cut: a second."""


def mesh_bethe(graph: FactorGraph, *, epsilon: float = EPSILON, most_arcs: int = ARCS) -> list[Estimate]:
    """Bound ln Z from below by the Bethe approximation of an attractive model.

    Parameters
    ----------
    graph : attractive, perhaps after flips, with binary variables and factors of at most two.
    epsilon : nats up to which the global maximum of the approximation is sought.
    most_arcs : largest number of arcs of a minimum cut, which ends the refinement.

    Returns
    -------
    One estimate: `value` is a lower bound on ln Z (Ruozzi 2012), and the interval from `low` to
    `high` holds the global maximum of the Bethe approximation, not ln Z.

    Raises
    ------
    UnsuitableModel : not such a model.
    """
    found = bethe_optimum(graph, epsilon, most_arcs)
    source = "Weller and Jebara 2014; Ruozzi 2012"
    return [
        Estimate(
            found.value, 0.0, found.value, found.upper, "ln Z", "lower bound", 1.0, found.cuts, "mesh-bethe", source
        )
    ]
