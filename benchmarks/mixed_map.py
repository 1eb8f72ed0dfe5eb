"""MAP of perturbed spin glasses with couplings of both signs: what each solver knows after so much
time of one core, ours and other programs' on the same perturbations, in one process.

Fields are U[-1, 1] plus Gumbel noise, couplings U[-C, C] (Hazan et al., section V). `value` and
`bound` are relative distances to the best value that any solver found; where a solver's two meet,
that value is the maximum. TRW-S on tables is what TRW-S was before it kept one number a message.
toulbar2 comes with the extra `solvers`, thinqpbo with `dev`; the time for handing a model to them
is not counted. PyMaxflow's moves of labels take one symmetric table for all pairs and OpenGM is not
on PyPI for this Python, so that neither can take part.
"""

import importlib.util
import time
from itertools import pairwise

import numpy as np

from thesis_cli.inference.external.cost_function_search import CostFunctionSearch
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel
from thesis_cli.inference.graph_cut.qpbo import QPBO
from thesis_cli.inference.grid.strips import GridStrips
from thesis_cli.inference.message_passing.belief_propagation import messages_of
from thesis_cli.inference.message_passing.trws import TRWS
from thesis_cli.models.spin_glass import random_spin_glass

TIMES = 0.05, 0.1, 0.2, 0.5, 1.0
"""Seconds after which a solver is asked."""
RUNS = (20, (1.0, 3.0)), (100, (0.5, 1.0, 2.0, 3.0))
"""Sides of the grids, and their couplings."""
ROUNDS = 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000


class OnTables(TRWS):
    """TRW-S with messages of two numbers and the search that any model takes."""

    def __init__(self, graph, **options):
        super().__init__(graph, **options)
        self._model = messages_of(self._form)


def ours(kind, graph, noise):
    """Points (seconds, value, bound) from runs with more and more iterations."""
    for most, more in pairwise([*ROUNDS, None]):
        solver = kind(graph, max_iterations=most)
        solver.solve(noise)  # compiles
        began = time.process_time()
        values, _, bounds = solver.solve(noise)
        seconds = time.process_time() - began
        yield seconds, values[0], bounds[0]
        if seconds > TIMES[-1] or more is None or solver.iterations[0] < most:
            return


def by_roof_duality(graph, noise):
    """The roof dual, and TRW-S for what it leaves open."""
    solver = QPBO(graph)
    solver.maximise(noise)
    began = time.process_time()
    value = solver.maximise(noise)[0][0]
    yield time.process_time() - began, value, solver.persistent(noise)[1][0]


def by_toulbar2(graph, noise):
    solver = CostFunctionSearch(graph)
    for seconds in TIMES:
        solver.time_limit = seconds
        found = solver.solve(noise)
        yield seconds, found.values[0], found.bounds[0]


def by_thinqpbo(graph, noise):
    """Its roof dual, completed by QPBO-I from a random configuration."""
    import thinqpbo

    model = BinaryModel.of(graph)
    unary, n = model.unary + noise.reshape(-1, 2), len(model.unary)
    peer = thinqpbo.QPBODouble(n, len(model.edges))
    peer.add_node(n)
    for i, (zero, one) in enumerate(-unary):
        peer.add_unary_term(i, zero, one)
    for (i, j), table in zip(model.edges.tolist(), -model.tables, strict=True):
        peer.add_pairwise_term(i, j, *table.ravel())
    began = time.process_time()
    peer.solve()
    bound = model.constant - peer.compute_twice_lower_bound() / 2
    peer.compute_weak_persistencies()
    rng = np.random.default_rng(0)
    for i in range(n):
        if peer.get_label(i) < 0:
            peer.set_label(i, int(rng.integers(2)))
    while (spent := time.process_time() - began) <= TIMES[-1]:
        states = np.array([[peer.get_label(i) for i in range(n)]])
        yield spent, model.values(np.maximum(states, 0), noise.reshape(1, -1, 2))[0], bound
        peer.improve()


SOLVERS = {
    "TRW-S on tables": lambda graph, noise: ours(OnTables, graph, noise),
    "TRW-S": lambda graph, noise: ours(TRWS, graph, noise),
    "grid strips": lambda graph, noise: ours(GridStrips, graph, noise),
    "QPBO": by_roof_duality,
    "toulbar2": by_toulbar2,
    "thinqpbo, QPBO-I": by_thinqpbo,
}
MODULES = {"toulbar2": "pytoulbar2", "thinqpbo, QPBO-I": "thinqpbo"}


def known_after(points, seconds):
    """The highest value and the lowest bound by then."""
    by_then = [(value, bound) for spent, value, bound in points if spent <= seconds]
    return max((v for v, _ in by_then), default=-np.inf), min((b for _, b in by_then), default=np.inf)


def report(name, points, best):
    """A line of what is known after each time, and how soon the solver ends."""
    cells = []
    for seconds in TIMES:
        value, bound = known_after(points, seconds)
        cells.append(f"{(best - value) / best:8.1e} {(bound - best) / best:8.1e}" if value > -np.inf else f"{'-':>17}")
    proved = [spent for spent, value, bound in points if value >= bound - 1e-9 * best]
    print(f"  {name:<18}" + " |".join(cells) + (f" | proved in {min(proved):.3f} s" if proved else ""), flush=True)


def times_to(points, value):
    return min((spent for spent, found, _ in points if found >= value - 1e-12 * abs(value)), default=np.inf)


def main():
    for side, couplings in RUNS:
        for coupling in couplings:
            graph = random_spin_glass(side, side, coupling, 1.0, "mixed", np.random.default_rng(0)).graph()
            noise = np.random.default_rng(1).gumbel(size=(1, 2 * side**2))
            print(f"{side} x {side}, C = {coupling:g}: value and bound after " + ", ".join(f"{t:g} s" for t in TIMES))
            points = {
                name: list(route(graph, noise))
                for name, route in SOLVERS.items()
                if name not in MODULES or importlib.util.find_spec(MODULES[name])
            }
            best = max(value for found in points.values() for _, value, _ in found)
            for name, found in points.items():
                report(name, found, best)
            before = points["TRW-S on tables"]
            reached = max(value for _, value, _ in before)
            soonest = times_to(before, reached)
            for name in ("TRW-S", "grid strips"):
                seconds = times_to(points[name], reached)
                print(f"  {name} has the best value of TRW-S on tables {soonest / seconds:.1f} times sooner")


if __name__ == "__main__":
    main()
