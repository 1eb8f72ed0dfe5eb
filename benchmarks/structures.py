"""Processor time of exact answers on the largest spaces of structures that have them; of exact answers,
uniform structures and MAP calls on the spaces of the experiment `structured-perturb`; and of RKHS norms
on the line against sums over all pairs of points.
"""

import time
from functools import partial

import numpy as np

from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.embeddings.kernels import KERNELS
from thesis_cli.structured.catalogue import space

LARGEST = (
    ("permutations", 22, "positions"),
    ("permutations", 18, "orders"),
    ("cycles", 18, "edges"),
    ("cycle-sets", 18, "edges"),
    ("partitions", 14, "pairs"),
    ("hypercube", 20, "pairs"),
)


COMPARED = (
    *(("hypercube", 10, "linear"), ("hypercube", 10, "pairs"), ("cycles", 8, "edges"), ("cycle-sets", 7, "edges")),
    *(("permutations", 7, "positions"), ("permutations", 7, "ranks"), ("permutations", 7, "orders")),
    *(("subtrees", 14, "nodes"), ("partitions", 8, "pairs")),
)
MANY, BATCH = 100_000, 200
"""Uniform structures, and weight vectors of exact answers and of MAP calls."""


def timed(work):
    """Least processor time of two calls, and what the last one gives; the first lists the lattice."""
    seconds = []
    for _ in range(2):
        began = time.process_time()
        found = work()
        seconds.append(time.process_time() - began)
    return min(seconds), found


def spaces():
    print(f"{'space':28s} {'ln Z, s':>8s} {'mean features, s':>17s} {'100 draws, s':>13s}")
    for name, elements, features in LARGEST:
        one = space(name, elements, features)
        weights = np.random.default_rng(0).normal(size=(1, one.dimension))
        log_z, _ = timed(partial(one.log_partition, weights))
        mean, _ = timed(partial(one.mean_features, weights))
        draws, _ = timed(partial(one.draw, weights[0], 100, np.random.default_rng(1)))
        print(f"{f'{name}, {features}, {elements}':28s} {log_z:8.2f} {mean:17.2f} {draws:13.2f}")


def costs():
    for name, elements, features in COMPARED:
        parents = [(node - 1) // 2 for node in range(elements)] if name == "subtrees" else None
        one = space(name, elements, features, parents and [-1, *parents[1:]])
        weights = np.random.default_rng(0).normal(size=(BATCH, one.dimension))
        exact, _ = timed(partial(one.log_partition, weights))
        best, _ = timed(partial(one.maximise, weights))
        uniform, _ = timed(partial(scored, one, weights[0]))
        exact, best, uniform = exact / BATCH, best / BATCH, uniform / MANY
        line = f"exact {exact * 1e3:.3f} ms, MAP {best * 1e6:.1f} us, uniform structure {uniform * 1e6:.3f} us"
        print(f"{f'{name}, {features}, {elements}':28s} {line}; exact is {exact / uniform:,.0f} structures")


def scored(one, weights):
    """Log-potentials of uniform structures."""
    return one.scores(one.sample(MANY, np.random.default_rng(0)), weights)


def norms():
    rng = np.random.default_rng(0)
    many = Expansion(rng.normal(size=40_000), rng.dirichlet(np.ones(40_000)))
    for name, kind in KERNELS.items():
        kernel = kind(0.5)
        seconds, norm = timed(partial(kernel.norm, many))
        began = time.process_time()
        square = sum(
            float(many.weights[part] @ kernel.matrix(many.points[part], many.points) @ many.weights)
            for part in (slice(start, start + 500) for start in range(0, len(many), 500))
        )
        plain = time.process_time() - began
        apart = abs(norm**2 / square - 1)
        print(f"norm of 40,000 points, {name}: {seconds:.3f} s, all pairs {plain:.1f} s; squares differ by {apart:.1e}")


if __name__ == "__main__":
    spaces()
    costs()
    norms()
