"""Samplers of the posterior of Figure 2.3a: samples a second, and evaluations a sample, beside each
other.

One process, one core, processor seconds; `make bench` runs it. `anew` starts every sample without
boxes, as the source did; the others keep them.
"""

import time

import numpy as np

from thesis_cli.models.quadrature import log_densities
from thesis_cli.models.targets import published_regression
from thesis_cli.perturbation.a_star.a_star import a_star, successive
from thesis_cli.perturbation.a_star.boxes import Boxes
from thesis_cli.perturbation.tricks.full_rank import GROUPS
from thesis_cli.studies.perturbation.sampler_costs import rejection


class Plain:
    """The target without its compiled form."""

    def __init__(self, target, most=None):
        self.proposal, self.log_ratio = target.proposal, target.log_ratio
        self.bound = target.bound if most is None else lambda low, high: most


def anew(target, count, seed, boxes=None):
    rng = np.random.default_rng(seed)
    points = [next(successive(target, rng, boxes=boxes)) for _ in range(count)]
    return np.array([point.evaluations for point in points]), np.array([point.bounds for point in points])


def kept(target, count, seed):
    return anew(target, count, seed, Boxes(target))


def compiled(target, count, seed):
    found = a_star(target, count, seed)
    return found.evaluations, found.bounds


def compiled_anew(target, count, seed):
    parts = [compiled(target, GROUPS, child) for child in seed.spawn(count // GROUPS)]
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def rejected(adaptive):
    def draw(target, count, seed):
        found = rejection(target, count, seed, adaptive=adaptive)
        return found.evaluations, found.bounds

    return draw


def main():
    target = published_regression()
    grid = np.linspace(-3, 1, 10_001)[:, np.newaxis]
    most = float((log_densities(target, grid) - target.proposal.log_density(grid)).max()) + 1e-9
    plain = Plain(target)
    samplers = {
        "A*, compiled": (compiled, target, 100_000),
        "A*, compiled, anew": (compiled_anew, target, 100 * GROUPS),
        "A*, NumPy": (kept, plain, 3_000),
        "A*, NumPy, anew": (anew, plain, 300),
        "OS*, NumPy": (rejected(True), plain, 3_000),
        "rejection, best bound, NumPy": (rejected(False), Plain(target, most), 500),
    }
    compiled(target, 32, np.random.SeedSequence(0))
    print("exact samples of a regression's posterior, 1,000 points: samples a second; evaluations and bounds a sample")
    first = None
    for name, (draw, chosen, count) in samplers.items():
        began = time.process_time()
        evaluations, bounds = draw(chosen, count, np.random.SeedSequence(1))
        rate = count / (time.process_time() - began)
        first = first or rate
        print(f"  {name:<30}{rate:10,.0f}  (1/{first / rate:.0f})  {evaluations.mean():6.2f} {bounds.mean():6.2f}")


if __name__ == "__main__":
    main()
