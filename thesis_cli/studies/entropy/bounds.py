"""Low-rank bounds on Renyi entropies of graphs, beside the exact entropies and message passing
(Thesis eqs. 3.15, 3.16 and 3.27)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from thesis_cli.entropy.approximate import approximate_entropies
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.entropy.low_rank import TemperedSolvers, low_rank_bounds, shannon_sandwich
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.studies.entropy.evaluation import Row

BOUNDED = [0, 0.2, 0.5, 2, 5, math.inf]
"""Orders of the bounds (eq. 3.15); order 1 has the Shannon sandwich (eq. 3.16)."""

APPROXIMATED = [0.5, 1, 2, math.inf]
"""Orders of the approximations by message passing (eq. 3.27)."""


def low_rank_rows(
    graph: FactorGraph, samples: int, noise: np.random.SeedSequence, halves: np.random.SeedSequence, instance: int
) -> Iterator[Row]:
    """Bounds on the entropies of a model, less the exact entropies, with ln Z known and unknown.

    Parameters
    ----------
    graph : a model small enough for exact entropies.
    samples : MAP problems for each bound.
    noise, halves : seeds of the bounds and of the Shannon sandwich.
    instance : number of the model among those of its family.
    """
    exact, solvers = exact_entropies(graph, [*BOUNDED, 1]), TemperedSolvers(_solver, graph)
    entropy = dict(zip(exact.orders.tolist(), exact.entropies.tolist(), strict=True))

    def row(alpha: float, name: str, count: int, value: float, error: float) -> Row:
        numbers = value - entropy[alpha], error, math.nan, math.nan
        return instance, math.nan, alpha, entropy[alpha], name, count, 1, *numbers

    for name, log_z in (("known", exact.log_z), ("unknown", None)):
        bounds = low_rank_bounds(solvers, BOUNDED, samples, _same(noise), log_z=log_z)
        bounds.append(shannon_sandwich(solvers, samples, _same(halves), log_z=log_z))
        for b in bounds:
            for end, e in (("lower", b.lower), ("upper", b.upper)):
                yield row(b.order, f"{end}, ln Z {name}", samples, e.value, e.standard_error)
    bethe = approximate_entropies(graph, APPROXIMATED, "bethe")
    for found in (bethe, approximate_entropies(graph, APPROXIMATED, "trw")):
        for alpha, e in zip(APPROXIMATED, found, strict=True):
            yield row(alpha, e.method + e.kind.removeprefix("approximation"), 0, e.value, 0.0)


def _solver(graph: FactorGraph) -> MapSolver:
    return map_solver(graph, exact=True)[0]


def _same(seed: np.random.SeedSequence) -> np.random.SeedSequence:
    """A copy of a seed whose children are those that the seed itself would have."""
    return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
