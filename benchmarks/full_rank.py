"""Full-rank perturb-and-MAP: the compiled race of clocks beside plain NumPy, in one process on one
core.

Prints perturbed configurations a second and ratios; `make bench` runs it.
"""

from functools import partial

import numpy as np
from clock import least_seconds

from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.perturbation.tricks.full_rank import perturbed_maxima
from thesis_cli.studies.models.examples import ising

SIZE, REPEATS = 2**22, 5


def seconds(function, *arguments):
    return least_seconds(partial(function, *arguments), REPEATS)


def main():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=SIZE)
    model = LogPotentials(phi)
    waits = np.exp(-phi)
    samples = 4
    ours = SIZE * samples / seconds(perturbed_maxima, model, samples, np.random.SeedSequence(1))
    peers = {
        "numpy: max of phi + Generator.gumbel": lambda: (phi + rng.gumbel(size=SIZE)).max(),
        "numpy: min of Generator.exponential * wait": lambda: (rng.standard_exponential(SIZE) * waits).min(),
    }
    print(f"{'compiled race of clocks':<46} {ours:.3g} perturbed configurations / s")
    for name, peer in peers.items():
        rate = SIZE / seconds(peer)
        print(f"{name:<46} {rate:.3g}  ratio {ours / rate:.1f}")
    graph = ising(4, 5, 1.0, rng)
    print(
        f"{'exact ln Z of an Ising grid, by enumeration':<46} {graph.size / seconds(log_partition_function, graph):.3g}"
    )


if __name__ == "__main__":
    main()
