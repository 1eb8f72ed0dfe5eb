"""Renyi entropies: the staircase beside a race of all clocks and plain NumPy; many orders beside
one.

Prints seconds and ratios, in one process on one core; `make bench` runs it.
"""

import numpy as np
from clock import least_seconds
from scipy.stats import entropy

from thesis_cli.entropy.estimators import entropy_maxima
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.perturbation.tricks.full_rank import perturbed_maxima

REPEATS = 3
SEED = 1


def seconds(function):
    return least_seconds(function, REPEATS)


def staircase(phi, samples, orders):
    model, alphas = LogPotentials(phi), np.linspace(0.05, 5, orders)
    return lambda: entropy_maxima(model, alphas, samples, np.random.SeedSequence(SEED))


def main():
    rng = np.random.default_rng(0)
    print("60 orders against one, seconds: the same perturbations")
    for size, samples in ((500, 10_000), (10**4, 1_000), (10**6, 100), (10**7, 100)):
        phi = rng.normal(size=size)
        one, many = (seconds(staircase(phi, samples, orders)) for orders in (1, 60))
        print(f"  {size:>10,} configurations, M = {samples:>6,}: {one:.3f} {many:.3f}  ratio {many / one:.2f}")
    phi, samples = rng.normal(size=10**6), 100
    ours = seconds(staircase(phi, samples, 1))
    print(f"maxima at one order, 1,000,000 configurations, M = {samples}")
    print(f"  {'staircase':<46} {ours:.3f} s")
    waits = np.exp(-phi)
    peers = {
        "race of all clocks (estimate-z)": (
            lambda: perturbed_maxima(LogPotentials(phi), samples, np.random.SeedSequence(SEED)),
            1,
        ),
        "numpy: max of phi + Generator.gumbel": (lambda: (phi + rng.gumbel(size=phi.size)).max(), samples),
        "numpy: min of Generator.exponential * wait": (
            lambda: (rng.standard_exponential(phi.size) * waits).min(),
            samples,
        ),
    }
    for name, (peer, times) in peers.items():
        took = times * seconds(peer)
        print(f"  {name:<46} {took:.3f} s  ratio {took / ours:.0f}")
    p = rng.gamma(0.3, size=10**7)
    p /= p.sum()
    log_p = np.log(p)
    exact = seconds(lambda: exact_entropies(LogPotentials(log_p), [1.0]))
    peer = seconds(lambda: entropy(p))
    print(f"exact H_1 of 10,000,000 probabilities: {exact:.3f} s")
    print(f"  {'scipy.stats.entropy':<46} {peer:.3f} s  ratio {peer / exact:.2f}")


if __name__ == "__main__":
    main()
