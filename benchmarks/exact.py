"""Exact ln Z of Ising grids: variable elimination beside enumeration and beside pgmpy, in one process."""

import math
import time

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteMarkovNetwork

from thesis_cli.inference.elimination import Elimination
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.examples import ising


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
    log_partition_function(graph)  # compiles
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
        solver, planned = timed(lambda g=grid: Elimination(g))
        value, seconds = timed(solver.log_partition_function)
        print(
            f"{n} x {n} elimination  ln Z {value:.8f}  plan {planned:.3f} s, sum {seconds:.3f} s, width {solver.width}"
        )
        if n == 10:
            noise = rng.gumbel(size=(200, 2 * n * n))
            _, seconds = timed(lambda s=solver, g=noise: s.maximise(g))
            print(f"10 x 10 elimination  MAP under unary noise, batch of 200: {5 * seconds:.2f} ms each")


if __name__ == "__main__":
    main()
