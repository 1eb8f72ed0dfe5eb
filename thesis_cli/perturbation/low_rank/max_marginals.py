"""A lower bound on ln Z from max-marginals, which needs no noise (docs/low-rank.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.estimate import Estimate, fixed_estimate
from thesis_cli.perturbation.low_rank.low_rank import BLOCK_ENTRIES, Pace, check_found

BLOCK = 16
"""MAP problems in a block."""


def max_marginals(solver: MapSolver, *, jobs: int = 1, progress: Tick | None = None) -> list[Floats]:
    """max phi(x) over the configurations in which a variable has a given state.

    There is one MAP problem for each state of each variable with two states or more (one in all if
    there is no such variable), with a penalty on the other states of the variable. The penalty
    exceeds the range of phi, so an exact solver leaves the state only where no configuration of
    finite potential has it.

    Parameters
    ----------
    solver : prepared for the model.
    jobs : threads.
    progress : called with the number of MAP problems just solved, of `problems` in all.

    Returns
    -------
    list : for each such variable an array of shape (k,), in nats; `-inf` where no configuration was
        found. Values of an approximate solver may be too low, never too high.

    Raises
    ------
    NoConfiguration : no configuration is possible.
    WorkFailed : an approximate solver found no configuration.
    """
    graph = solver.graph
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)])
    variables = _variables(graph)
    held = [(i, k) for i in variables for k in range(graph.cardinalities[i])]
    penalty = 1 + sum(float(np.ptp(f.table[f.table > -np.inf])) for f in graph.factors)
    rows = max(1, min(BLOCK, BLOCK_ENTRIES // int(offsets[-1])))
    values = np.full(len(held), -np.inf)

    with Threads(jobs) as threads:
        pace = Pace(threads)

        def solve(start: int) -> int:
            block = held[start : start + rows]
            noise = np.zeros((len(block), offsets[-1]))
            for row, (i, k) in zip(noise, block, strict=True):
                row[offsets[i] : offsets[i + 1]] = -penalty
                row[offsets[i] + k] = 0.0
            found, states = pace.maximise(solver, noise)
            kept = [state[i] == k for state, (i, k) in zip(states, block, strict=True)]
            values[start : start + len(block)] = np.where(kept, found, -np.inf)
            return len(block)

        threads.run(solve, range(0, len(held), rows), progress=progress)
    check_found(np.array([values.max()]), solver)
    return np.split(values, np.cumsum([graph.cardinalities[i] for i in variables])[:-1])


def problems(graph: FactorGraph) -> int:
    """Number of MAP problems that the max-marginals of a model take."""
    return sum(graph.cardinalities[i] for i in _variables(graph))


def _variables(graph: FactorGraph) -> list[int]:
    """Those with two states or more; the first, if there is none."""
    return [i for i, k in enumerate(graph.cardinalities) if k > 1] or [0]


def max_marginal_bound(solver: MapSolver, *, jobs: int = 1, progress: Tick | None = None) -> Estimate:
    """The lower bound max_i ln sum_{x_i} max e^phi on ln Z, the inner maximum over all but x_i.

    Each sum is one over some of the configurations. The mean of its logarithm over i is at least
    every L(alpha) (docs/low-rank.md), and the largest is at least the mean. It is a lower bound
    whatever the solver.

    Parameters
    ----------
    solver, jobs, progress : as for `max_marginals`.

    Raises
    ------
    NoConfiguration, WorkFailed : as for `max_marginals`.
    """
    value = max(float(np.logaddexp.reduce(m)) for m in max_marginals(solver, jobs=jobs, progress=progress))
    found = fixed_estimate(value, "lower bound", "max-marginal", "docs/low-rank.md")
    return replace(found, map_calls=problems(solver.graph))
