"""The most probable configuration of models beyond proof: what `map` and toulbar2's variable neighbourhood search
(Ouali et al. 2017) find in 15 CPU seconds, with those of child processes, so that the load of the machine does not
matter.

`python benchmarks/mpe.py [SECONDS] [NAME ...]` makes the models from seeds of their names: side chains of proteins,
objects in pictures, dense and Potts models, grids with few or two states, a torus. Each search runs in a process of
its own, whose time to load code counts for `map` alone. Prints a table in Markdown; docs/map.md has it.
"""

import subprocess
import sys
import time

import numpy as np
from clock import cpu_seconds

from thesis_cli.inference.best_configuration import best_configuration
from thesis_cli.inference.external.cost_function_process import MapProblem, Model, _post
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models import network

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


def dense(parts, states, rng):
    """All pairs tied, by tables of their own."""
    factors = [Factor((i,), rng.normal(size=states)) for i in range(parts)]
    for i in range(parts):
        factors += [Factor((j, i), rng.normal(size=(states, states))) for j in range(i)]
    return FactorGraph([states] * parts, factors)


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


def torus(side, coupling, rng):
    """The torus of `make families`, of another size."""
    return network.torus(side, coupling, rng).graph


MODELS = {
    "protein-20x20": (protein, 20, 20, 0.5),
    "protein-40x40": (protein, 40, 40, 0.4),
    "protein-60x80": (protein, 60, 80, 0.35),
    "objects-60x20": (objects, 60, 20),
    "objects-30x60": (objects, 30, 60),
    "dense-40x20": (dense, 40, 20),
    "dense-80x40": (dense, 80, 40),
    "potts-100x20": (potts, 100, 20, 20),
    "potts-200x40": (potts, 200, 40, 8),
    "grid-40x5": (grid, 40, 5),
    "grid-60x5": (grid, 60, 5),
    "grid-80x3": (grid, 80, 3),
    "grid-40x2": (grid, 40, 2),
    "grid-80x2": (grid, 80, 2),
    "torus-40": (torus, 40, 2.0),
}


def model(name):
    kind, *sizes = MODELS[name]
    return kind(*sizes, np.random.default_rng(list(name.encode())))


def by_map(graph, seconds):
    time.monotonic = cpu_seconds  # the limits of the search
    found = best_configuration(graph, time_limit=seconds)
    return found.value, found.bound


def by_neighbourhoods(graph, seconds):
    """toulbar2's search, from its first solution."""
    import pytoulbar2

    none = np.empty((0, len(graph.cardinalities)), np.int64)
    problem = MapProblem(np.zeros(sum(graph.cardinalities)), -np.inf, None, none)
    whole = Model(graph.cardinalities, graph.factors)
    costs = whole.costs(problem)
    network = pytoulbar2.CFN(vns=-4)
    network.CFN.timer(int(seconds))
    _post(network, whole, costs, none)
    found = network.Solve()
    if found is None:
        return (-np.inf,)
    states = np.zeros((1, len(graph.cardinalities)), np.int64)
    states[0, whole.kept] = found[0]
    return (graph.log_potential(states)[0],)


SEARCHES = {"map": by_map, "toulbar2": by_neighbourhoods}


def found_by(search, name, seconds):
    """Numbers that a search prints at the end, in a process of its own; none if it dies."""
    how = [sys.executable, __file__, search, name, str(seconds)]
    said = subprocess.run(how, capture_output=True, text=True, check=False).stdout.splitlines()
    return [float(word) for word in said[-1].split()[1:]] if said and said[-1].startswith("found") else []


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    print("| model | `map` | toulbar2 | `map` less toulbar2 | bound of `map` |\n| --- | --: | --: | --: | --: |")
    for name in sys.argv[2:] or MODELS:
        value, bound, _ = found_by("map", name, seconds)
        peer, *_ = found_by("toulbar2", name, seconds) or [-np.inf]
        theirs, less = ("none", "") if peer == -np.inf else (f"{peer:.1f}", f"{round(value - peer, 1) + 0.0}")
        print(f"| {name} | {value:.1f} | {theirs} | {less} | {bound:.1f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in SEARCHES:
        numbers = SEARCHES[sys.argv[1]](model(sys.argv[2]), float(sys.argv[3]))
        print("\nfound", *map(float, numbers), cpu_seconds())
    else:
        main()
