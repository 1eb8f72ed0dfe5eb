"""Perturbed maxima that tests of estimators share."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from thesis_cli.entropy.estimators import Noise, entropy_maxima, renyi_entropy
from thesis_cli.models.factor_graph import LogPotentials

VARIANCE = math.pi**2 / 6
ORDERS = (0.0, 0.5, 0.999, 1.0, 1.001, 2.0, math.inf)
PHI = np.array([1.2, -0.3, -np.inf, 0.9, 2.0, -1.5, 0.1])
LOG_Z = float(logsumexp(PHI))


def maxima_of(phi, count, seed=0, orders=ORDERS, **noise):
    return entropy_maxima(LogPotentials(phi), np.array(orders), count, np.random.SeedSequence(seed), Noise(**noise))


def entropy(phi, alpha):
    """By definition."""
    log_p = phi[phi > -np.inf] - logsumexp(phi)
    if alpha == math.inf:
        return -log_p.max()
    if alpha == 1:
        return -np.exp(log_p) @ log_p
    return logsumexp(alpha * log_p) / (1 - alpha)


def parts(maxima, m):
    """The first, second, ... m perturbations, each as maxima of their own."""
    for start in range(0, maxima.samples - m + 1, m):
        at = slice(start, start + m)
        yield replace(
            maxima,
            values=maxima.values[at],
            at_one=maxima.at_one[at],
            potential=maxima.potential[at],
            replicates=np.arange(m),
        )


def repeated(maxima, m, alpha, **options):
    """Values, standard errors and intervals of an estimate by m perturbations, again and again."""
    rows = [renyi_entropy(part, alpha, **options)[0] for part in parts(maxima, m)]
    return np.array([(e.value, e.standard_error, e.low, e.high) for e in rows]).T


def error_of_variance(x):
    return ((x - x.mean()) ** 2).std() / math.sqrt(x.size)


@pytest.fixture(scope="module")
def many():
    """Shared noise."""
    return maxima_of(PHI, 100_000, seed=1, orders=(*ORDERS, 0.25, 4.0))


@pytest.fixture(scope="module")
def partly():
    return maxima_of(PHI, 100_000, seed=3, orders=(*ORDERS, 0.25, 4.0), share_above=1.0)


@pytest.fixture(scope="module")
def unshared():
    return maxima_of(PHI, 100_000, seed=2, orders=(*ORDERS, 0.25, 4.0), share_above=math.inf)


@pytest.fixture(scope="module")
def stratified():
    """300 designs of 18 sets."""
    return [maxima_of(PHI, 324, seed=seed, orders=[0.0, 0.5, 2.0], design="stratified") for seed in range(300)]
