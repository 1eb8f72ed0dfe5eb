"""The most probable configuration of models beyond proof: what is found in 15 s of one core.

`python benchmarks/mpe.py [SECONDS] [NAME ...]`. Families are like side chains of proteins, objects in pictures,
Potts models, and grids with few or two states. Columns: TRW-S alone, which is what `map` found before it had moves of
blocks; moves of blocks from there, in CPU seconds; toulbar2's variable neighbourhood search alone, in CPU
seconds of a process of its own; `map` as it is, in wall-clock seconds, with its bound. Times to load code are not
counted but for `map`.
"""

import subprocess
import sys
import time

import numpy as np

from thesis_cli.inference.best_configuration import best_configuration
from thesis_cli.inference.external.cost_function_process import MapProblem, Model, _post
from thesis_cli.inference.message_passing.block_search import BlockSearch
from thesis_cli.inference.message_passing.trws import TRWS
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass

SECONDS = 15.0


def protein(residues, states, reach, rng):
    """Points in a box with a quarter of `states` up to as many rotamers; near ones are tied, a tenth of pairs clash."""
    points, sizes = rng.random((residues, 3)), rng.integers(states // 4, states + 1, residues)
    factors = [Factor((i,), -rng.gamma(1.0, 2.0, k)) for i, k in enumerate(sizes)]
    for i in range(residues):
        for j in range(i):
            if np.linalg.norm(points[i] - points[j]) < reach:
                table = rng.normal(size=(sizes[j], sizes[i]))
                factors.append(Factor((j, i), table - 10 * (rng.random(table.shape) < 0.1)))
    return FactorGraph(sizes, factors)


def objects(parts, places, rng):
    """All pairs tied, by one table of places times a weight and noise."""
    factors, shared = [Factor((i,), rng.normal(0, 2, places)) for i in range(parts)], rng.normal(size=(places, places))
    for i in range(parts):
        factors += [Factor((j, i), shared * rng.normal() + rng.normal(0, 0.5, shared.shape)) for j in range(i)]
    return FactorGraph([places] * parts, factors)


def potts(parts, states, degree, rng):
    """Random pairs, each with a reward or a cost for the same state."""
    factors = [Factor((i,), rng.normal(0, 1, states)) for i in range(parts)]
    for i in range(parts):
        for j in range(i):
            if rng.random() < degree / (parts - 1):
                factors.append(Factor((j, i), rng.normal(0, 2) * np.eye(states)))
    return FactorGraph([states] * parts, factors)


def grid(side, states, rng):
    """A grid of random tables; of two states, a spin glass."""
    if states == 2:
        return random_spin_glass(side, side, 2.0, 1.0, "mixed", rng).graph()
    at = np.arange(side**2).reshape(side, side)
    pairs = [*zip(at[:, :-1].flat, at[:, 1:].flat, strict=True), *zip(at[:-1].flat, at[1:].flat, strict=True)]
    factors = [Factor((i,), rng.normal(size=states)) for i in range(side**2)]
    return FactorGraph([states] * side**2, factors + [Factor(p, rng.normal(0, 2, (states, states))) for p in pairs])


MODELS = {
    "protein-20x20": (protein, 20, 20, 0.5),
    "protein-40x40": (protein, 40, 40, 0.4),
    "protein-60x80": (protein, 60, 80, 0.35),
    "objects-60x20": (objects, 60, 20),
    "objects-30x60": (objects, 30, 60),
    "potts-100x20": (potts, 100, 20, 20),
    "potts-200x40": (potts, 200, 40, 8),
    "grid-40x5": (grid, 40, 5),
    "grid-60x5": (grid, 60, 5),
    "grid-80x3": (grid, 80, 3),
    "grid-40x2": (grid, 40, 2),
    "grid-80x2": (grid, 80, 2),
}


def model(name):
    kind, *sizes = MODELS[name]
    return kind(*sizes, np.random.default_rng(list(name.encode())))


def by_blocks(graph, states, seconds):
    search = BlockSearch(graph)
    search.improve(states, visits=1)  # compiles
    began = time.process_time()
    while time.process_time() - began < seconds:
        value, states = search.improve(states, seconds=0.1)
    return value


def by_neighbourhoods(name, seconds):
    """toulbar2's search, from its first solution; prints the log-potential that it ends with."""
    import pytoulbar2

    graph = model(name)
    none = np.empty((0, len(graph.cardinalities)), np.int64)
    problem = MapProblem(np.zeros(sum(graph.cardinalities)), -np.inf, None, none)
    whole = Model(graph.cardinalities, graph.factors)
    costs = whole.costs(problem)
    network = pytoulbar2.CFN(vns=-4)
    network.CFN.timer(int(seconds))
    _post(network, whole, costs, none)
    found = network.Solve()
    states = np.zeros((1, len(graph.cardinalities)), np.int64)
    if found is not None:
        states[0, whole.kept] = found[0]
    print("found", graph.log_potential(states)[0] if found is not None else -np.inf)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    print(f"{'model':14} {'TRW-S':>11} {'blocks':>11} {'toulbar2':>11} {'map':>11} {'bound':>11}  method of map")
    for name in sys.argv[2:] or MODELS:
        graph = model(name)
        solver = TRWS(graph)
        solver.limit(seconds / 4)
        values, states, _ = solver.solve(np.zeros((1, sum(graph.cardinalities))))
        moved = by_blocks(graph, states[0], seconds)
        how = [sys.executable, __file__, "toulbar2", name, str(seconds)]
        said = subprocess.run(how, capture_output=True, text=True, check=False).stdout.split()
        peer = float(said[-1]) if "found" in said else -np.inf
        whole = best_configuration(graph, time_limit=seconds)
        row = " ".join(f"{value:11.3f}" for value in (values[0], moved, peer, whole.value, whole.bound))
        print(f"{name:14} {row}  {whole.method}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["toulbar2"]:
        by_neighbourhoods(sys.argv[2], float(sys.argv[3]))
    else:
        main()
