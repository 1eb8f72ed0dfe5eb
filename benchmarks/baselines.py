"""ln Z by methods without perturbations: the tables of docs/estimate-z.md, and the time that a step of
each takes, in processor time of one core.
"""

import time
from functools import partial

import numpy as np

from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.inference.parity.constraints import HashLimits
from thesis_cli.inference.sampling.annealing import annealed
from thesis_cli.inference.variational.frank_wolfe import frank_wolfe
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.mesh_bethe import mesh_bethe
from thesis_cli.perturbation.wish import wish


def grid(side, coupling, field, kind):
    return random_spin_glass(side, side, coupling, field, kind, np.random.default_rng(0)).graph()


def complete(count, deviation):
    """A complete graph of spins with normal couplings."""
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i in range(count) for j in range(i)]
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    return FactorGraph([2] * count, [Factor(pair, rng.normal(0, deviation) * signs) for pair in pairs])


def hashes(name, graph, samples, seconds):
    began = time.process_time()
    found = wish(graph, samples, np.random.SeedSequence(1), limits=HashLimits(seconds=seconds))
    took = time.process_time() - began
    truth = exact_log_partition_function(graph)[0]
    solver, _ = map_solver(graph)
    largest = solver.maximise(np.zeros((1, sum(graph.cardinalities))))[0][0]
    rows = ", ".join(f"{each.kind}: {each.value:.2f} [{each.low:.2f}, {each.high:.2f}]" for each in found)
    print(f"wish  {name:26s} ln Z {truth:8.3f}, largest {largest:8.3f}  {rows}  {took:.1f} s")


def meshes():
    for coupling in (1, 2, 3):
        graph = grid(10, coupling, 0.1, "attractive")
        truth = exact_log_partition_function(graph)[0]
        took, (found,) = timed(partial(mesh_bethe, graph))
        line = f"ln Z {truth:.3f}, bound {found.value:.3f}, maximum at most {found.high:.3f}"
        print(f"mesh-bethe  10x10, c = {coupling}: {line}, {took:.2f} s")


def steps():
    graph = grid(10, 3.0, 1.0, "mixed")
    took, _ = timed(partial(annealed, graph, 100, 1000, np.random.SeedSequence(1)))
    print(f"Gibbs step: {took / 1e7 * 1e9:.0f} ns")
    took, _ = timed(partial(frank_wolfe, graph, 200))
    print(f"Frank-Wolfe, 10x10: {took / 200 * 1e3:.1f} ms a call")
    small = grid(4, 1.0, 1.0, "mixed")
    took, _ = timed(partial(wish, small, 1000, np.random.SeedSequence(1)))
    print(f"WISH by enumeration: {took / 1000 / 2**16 * 1e9:.1f} ns a configuration and hash")


def timed(work):
    """Processor time of a second call, and what it gives; the first one compiles."""
    work()
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def main():
    steps()
    meshes()
    hashes("6x6, U[-1, 1]", grid(6, 1.0, 1.0, "mixed"), 20, 60)
    hashes("10x10, U[-1, 1]", grid(10, 1.0, 1.0, "mixed"), 10, 60)
    hashes("10x10, U[-3, 3]", grid(10, 3.0, 1.0, "mixed"), 10, 60)
    hashes("20x20, U[-1, 1]", grid(20, 1.0, 1.0, "mixed"), 4, 60)
    hashes("complete graph of 28 spins", complete(28, 0.3), 8, 20)


if __name__ == "__main__":
    main()
