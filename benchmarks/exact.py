"""ln Z of Ising grids: exact by each route and by pgmpy, in one process, and Bethe and TRW on large
grids.
"""

import math
import time

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteMarkovNetwork

from thesis_cli.inference.belief_propagation import bethe_log_partition_function
from thesis_cli.inference.elimination import Elimination
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.grid import GridTransfer
from thesis_cli.inference.trw import trw_log_partition_function
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.examples import ising


def timed(function):
    """Result and seconds of one call."""
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def by_pgmpy(graph):
    """pgmpy's partition function, which multiplies the factors into one table."""
    network = DiscreteMarkovNetwork([f.scope for f in graph.factors if len(f.scope) == 2])
    for factor in graph.factors:
        network.add_factors(DiscreteFactor(factor.scope, factor.table.shape, np.exp(factor.table)))
    return math.log(network.get_partition_function())


def main():
    rng = np.random.default_rng(0)
    graph = ising(4, 4, 1.0, rng)
    for route in (log_partition_function, bethe_log_partition_function, trw_log_partition_function):
        route(graph)  # compiles
    GridTransfer(graph).log_partition_function()
    routes = {
        "elimination": lambda: Elimination(graph).log_partition_function(),
        "enumeration": lambda: log_partition_function(graph),
        "pgmpy": lambda: by_pgmpy(graph),
    }
    answers = {name: timed(route) for name, route in routes.items()}
    for name, (value, seconds) in answers.items():
        ratio = seconds / answers["elimination"][1]
        print(f"4 x 4   {name:<12} ln Z {value:.10f}  {1e3 * seconds:9.2f} ms  ratio {ratio:.1f}")
    for n in (10, 16, 20):
        grid = ising(n, n, 1.0, rng)
        for kind in (GridTransfer, Elimination):
            solver, planned = timed(lambda k=kind, g=grid: k(g))
            value, seconds = timed(solver.log_partition_function)
            print(f"{n} x {n} {kind.name:<13} ln Z {value:.8f}  plan {planned:.3f} s, sum {seconds:.4f} s")
    for kind, coupling in (("attractive", 1.0), ("attractive", 3.0), ("mixed", 1.0)):
        glass = random_spin_glass(100, 100, coupling, 1.0, kind, rng).graph()
        for name, method in (("Bethe", bethe_log_partition_function), ("TRW", trw_log_partition_function)):
            result, seconds = timed(lambda m=method, g=glass: m(g))
            end = "" if result.converged else ", not converged"
            print(f"100 x 100 {kind}, coupling {coupling:g}: {name} {result.value:.2f}, {seconds:.2f} s{end}")


if __name__ == "__main__":
    main()
