"""MAP of perturbed Ising grids: each solver, its threads, and other programs on the same
perturbations, in one process.

Times are for one perturbation, ours the best of five passes over all of them; ratios are to the
graph cut. A peer that is installed builds its problem afresh for each, as it must. toulbar2 comes
with the extra `dev`, OR-tools with `peers`.
"""

import importlib.util
import inspect
import time

import numpy as np
from clock import timed

from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel, GraphCut, MinimumCut
from thesis_cli.inference.graph_cut.maximum_flow import Network
from thesis_cli.inference.graph_cut.qpbo import QPBO
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.message_passing.belief_propagation import MaxProduct
from thesis_cli.inference.message_passing.trws import TRWS
from thesis_cli.studies.models.examples import ising

COUPLING = 1.0
SIZES = {
    10: (200, [GraphCut, GridTransfer, Elimination, QPBO, TRWS, MaxProduct]),
    16: (64, [GraphCut, GridTransfer]),
    20: (4, [GraphCut, GridTransfer]),
    100: (10, [GraphCut, QPBO, TRWS, MaxProduct]),
}
"""Side of the grid -> perturbations, solvers."""
CUTS = {20: 100, 100: 10, 300: 3, 1000: 1}
"""Side of the grid -> perturbations."""
LIMIT = 30
"""Seconds that a peer may take for one perturbation."""
UNIT = 2.0**-30
"""Nats that count as 1 where a peer wants integers."""


def by_pymaxflow(model, field):
    import maxflow

    n, pairs = len(field), 2 * np.full(len(model.edges), COUPLING)
    graph = maxflow.GraphFloat(n, len(pairs))
    nodes = graph.add_grid_nodes(n)
    graph.add_edges(*model.edges.T, pairs, pairs)
    graph.add_grid_tedges(nodes, field[:, 0] - field[:, 1], np.zeros(n))
    graph.maxflow()
    return graph.get_grid_segments(nodes)


def by_ortools(model, field):
    """Its maximum flow, on integers."""
    from ortools.graph.python.max_flow import SimpleMaxFlow

    n = len(field)
    nodes, favour = np.arange(n), np.rint((field[:, 0] - field[:, 1]) / UNIT).astype(np.int64)
    pairs = np.full(len(model.edges), round(2 * COUPLING / UNIT))
    tails = [np.full(n, n), nodes, *model.edges.T]
    heads = [nodes, np.full(n, n + 1), *model.edges.T[::-1]]
    graph = SimpleMaxFlow()
    graph.add_arcs_with_capacity(
        *map(np.concatenate, (tails, heads, [np.maximum(favour, 0), np.maximum(-favour, 0), pairs, pairs]))
    )
    graph.solve(n, n + 1)
    states = np.zeros(n + 2, bool)
    states[graph.get_sink_side_min_cut()] = True
    return states[:n]


def by_toulbar2(model, field):
    import pytoulbar2

    problem = pytoulbar2.CFN(resolution=9, vac=1)
    for i, row in enumerate(field):
        problem.AddVariable(f"x{i}", (0, 1))
        problem.AddFunction([i], (row.max() - row).tolist())
    for edge in model.edges.tolist():
        problem.AddFunction(edge, [0.0, 2 * COUPLING, 2 * COUPLING, 0.0])
    found = problem.Solve(timeLimit=LIMIT)
    return None if found is None or problem.Limit else np.array(found[0]) == 1


def by_highs(model, field):
    """The linear programme of the cut, y_e >= |x_i - x_j|, whose vertices are integers, by the
    HiGHS within SciPy.

    highspy and OR-tools each bring a HiGHS of their own and do not load into one process.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    n, e = len(field), len(model.edges)
    i, j = model.edges.T
    rows, columns = np.tile(np.arange(2 * e), 3), np.concatenate([i, j, j, i, *[np.arange(n, n + e)] * 2])
    signs = np.repeat([1.0, -1.0, -1.0], 2 * e)
    solved = linprog(
        np.concatenate([field[:, 0] - field[:, 1], np.full(e, 2 * COUPLING)]),
        A_ub=coo_array((signs, (rows, columns)), shape=(2 * e, n + e)).tocsr(),
        b_ub=np.zeros(2 * e),
        bounds=(0, 1),
        options={"time_limit": LIMIT},
    )
    return solved.x[:n] > 0.5 if solved.status == 0 else None


PEERS = {
    "PyMaxflow": ("maxflow", by_pymaxflow),
    "OR-tools max flow": ("ortools", by_ortools),
    "toulbar2": ("pytoulbar2", by_toulbar2),
    "HiGHS in SciPy": ("scipy", by_highs),
}
"""Name -> module, route: model, unary log-potentials with noise (n, 2) -> states or None if not
proved in time.
"""


def grid_model(side, rng):
    """The model of `ising` in arrays."""
    spin = np.array([-1.0, 1.0])
    at = np.arange(side**2).reshape(side, side)
    pairs = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:])
    edges = np.concatenate([np.stack([i.ravel(), j.ravel()], axis=1) for i, j in pairs])
    tables = np.broadcast_to(COUPLING * np.outer(spin, spin), (len(edges), 2, 2))
    return BinaryModel(np.outer(rng.uniform(-1, 1, side**2), spin), edges, tables)


def report(side, name, seconds, ours, optimal):
    print(f"{side:>4} x {side:<4} {name:<41} {1e3 * seconds:11.3f} ms  ratio {seconds / ours:9.2f}  {optimal}")


def solvers(side, graph, noise, kinds):
    """Values and seconds of the first solver; the others beside it."""
    best = ours = None
    for kind in kinds:
        threads = (1, 2) if "jobs" in inspect.signature(kind).parameters else (None,)
        for jobs in threads:
            solver, planned = timed(lambda k=kind, j=jobs: k(graph) if j is None else k(graph, jobs=j))
            solver.maximise(noise[:2])  # compiles
            runs = [timed(lambda s=solver: s.maximise(noise)) for _ in range(5)]
            values, seconds = runs[0][0][0], min(spent for _, spent in runs) / len(noise)
            best, ours = (values, seconds) if best is None else (best, ours)
            name = solver.name + (f", {jobs} thread{'s' * (jobs > 1)}" if jobs else "")
            optimal = f"{np.isclose(values, best, rtol=1e-9).mean():.0%} optimal, prepared in {planned:.3f} s"
            report(side, name, seconds, ours, optimal)
    return best, ours


def peers(side, model, noise, best, ours, wanted=tuple(PEERS)):
    for name in wanted:
        module, route = PEERS[name]
        if importlib.util.find_spec(module) is None:
            print(f"{side:>4} x {side:<4} {name:<41} not installed")
            continue
        seconds, optimal, count = 0.0, 0, 0
        for row, value in zip(noise, best, strict=True):
            states, spent = timed(lambda r=route, f=model.unary + row: r(model, f))
            seconds, count = seconds + spent, count + 1
            if states is not None:
                found = model.values(states[None].astype(np.int64), row[None])[0]
                optimal += bool(np.isclose(found, value, rtol=1e-9))
            if seconds > LIMIT:
                break
        report(side, name, seconds / count, ours, f"{optimal / count:.0%} optimal of {count}")


def cuts():
    """Minimum cuts of attractive spin glasses, fields U[-1, 1] and couplings U[0, c], against
    PyMaxflow built afresh for each perturbation: CPU time, the least of several passes."""
    import maxflow

    def afresh(edges, capacities, costs):
        graph = maxflow.GraphFloat(len(costs), len(edges))
        nodes = graph.add_grid_nodes(len(costs))
        graph.add_edges(*edges.T, capacities, capacities)
        graph.add_grid_tedges(nodes, costs, np.zeros(len(costs)))
        graph.maxflow()
        return graph.get_grid_segments(nodes)

    rng = np.random.default_rng(0)
    for side, batch in CUTS.items():
        edges = grid_model(side, rng).edges
        for coupling in (0.5, 1, 2, 4):
            capacities = 2 * rng.uniform(0, coupling, len(edges))
            costs = 2 * rng.uniform(-1, 1, side**2) + rng.logistic(size=(batch, side**2))
            network = Network(edges, np.stack([capacities] * 2, axis=1), np.zeros((side**2, 2), bool))
            network.labels(costs[:1])  # compiles
            ours = theirs = np.inf
            for _ in range(3):
                start = time.process_time()
                labels = network.labels(costs)
                middle = time.process_time()
                expected = [afresh(edges, capacities, row) for row in costs]
                ours, theirs = min(ours, middle - start), min(theirs, time.process_time() - middle)
            same = f"{(labels == expected).mean():.4%} of labels equal"
            report(side, f"graph cut, couplings to {coupling}", ours / batch, ours / batch, same)
            report(side, "PyMaxflow", theirs / batch, ours / batch, "")


def main():
    cuts()
    rng = np.random.default_rng(0)
    for side, (batch, kinds) in SIZES.items():
        graph = ising(side, side, COUPLING, rng)
        noise = rng.gumbel(size=(batch, 2 * side**2))
        best, ours = solvers(side, graph, noise, kinds)
        peers(side, BinaryModel.of(graph), noise.reshape(batch, -1, 2), best, ours)
    side, batch = 1000, 2
    model = grid_model(side, rng)
    noise = rng.gumbel(size=(batch, side**2, 2))
    solver, planned = timed(lambda: MinimumCut(model))
    (best, _), seconds = timed(lambda: solver.maximise(noise))
    report(side, GraphCut.name, seconds / batch, seconds / batch, f"prepared in {planned:.3f} s")
    peers(side, model, noise, best, seconds / batch, ("PyMaxflow", "OR-tools max flow"))


if __name__ == "__main__":
    main()
