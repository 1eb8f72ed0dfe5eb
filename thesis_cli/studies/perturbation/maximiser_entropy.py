"""The entropy of the perturb-max distribution of a spin glass, and its two upper bounds (Hazan et al.
III-C): the noise at the maximiser (Theorem 4), and the sum of the entropies of the marginals."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.models.spin_glass import Kind, SpinGlass
from thesis_cli.studies.perturbation.spin_glass_strips import PerturbedGlass

LARGEST = 16
"""Spins up to which configurations are counted."""


class MaximiserEntropy(NamedTuple):
    """Entropy and bounds in nats, each with its standard error.

    Attributes
    ----------
    entropy : entropy of the maximiser; nan above `LARGEST` spins.
    correction : part of `entropy` that takes away what two halves of the samples show of the
        estimator's bias; what is left of it should be smaller.
    noise : E sum_i gamma_i(x_i*).
    marginal : sum_i H(p_i).
    advantage_error : standard error of `marginal` less `noise`, which come from the same samples.
    """

    entropy: float
    entropy_error: float
    correction: float
    noise: float
    noise_error: float
    marginal: float
    marginal_error: float
    advantage_error: float


def maximiser_entropy(glass: SpinGlass, kind: Kind, samples: int, seed: np.random.SeedSequence) -> MaximiserEntropy:
    """Entropy of the maximiser under noise on each spin, and its bounds, from `samples` maximisers."""
    n, spins, at_max = glass.fields.size, [], []
    for drawn in PerturbedGlass(glass, kind).draw(samples, np.random.default_rng(seed)):
        spins.append((drawn.spins > 0).reshape(-1, n))
        at_max.append(drawn.at_max)
    ups, noise = np.concatenate(spins), np.concatenate(at_max)
    entropy = _by_counting(ups) if n <= LARGEST else (math.nan,) * 3
    counts = ups.sum(axis=0)
    marginal = sum(entropy_of(np.array([samples - count, count]))[0] for count in counts)
    shares = np.clip(counts / samples, 1e-300, 1 - 1e-16)
    surprise = np.where(ups, -np.log(shares), -np.log1p(-shares)).sum(axis=1)
    errors = (float(x.std(ddof=1)) / math.sqrt(samples) for x in (noise, surprise, surprise - noise))
    noise_error, marginal_error, advantage_error = errors
    return MaximiserEntropy(*entropy, float(noise.mean()), noise_error, marginal, marginal_error, advantage_error)


def _by_counting(ups: Bools) -> tuple[float, float, float]:
    """Entropy of configurations, its standard error, and its correction by halves (a jackknife)."""
    n = ups.shape[1]
    halves = [np.bincount(half @ 2 ** np.arange(n), minlength=2**n) for half in np.array_split(ups, 2)]
    value, error = entropy_of(halves[0] + halves[1])
    correction = value - sum(entropy_of(half)[0] for half in halves) / 2
    return value + correction, error, correction


def entropy_of(counts: Ints) -> tuple[float, float]:
    """Entropy of the distribution that some counts were drawn from, in nats, and its standard error.

    The estimator is that of Chao, Wang and Jost (2013). Of the series H = sum_k p_k sum_r (1 -
    p_k)^r / r the counts give the first N - 1 terms without bias, sum_k (n_k / N) (psi(N) -
    psi(n_k)). The rest is that of states of one probability, which the numbers of states seen once
    and twice suggest.
    """
    from scipy.special import exp1, psi

    seen = counts[counts > 0].astype(np.float64)
    total = float(seen.sum())
    value = float((seen * (psi(total) - psi(seen))).sum() / total)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    if once and twice and counts.size > 2:
        missed = 2 * twice / once  # N times the probability of a rare state
        value += once / total * math.exp(missed) * float(exp1(missed))
    surprise = np.log(total / seen)
    mean = float((seen * surprise).sum() / total)
    variance = float((seen * (surprise - mean) ** 2).sum() / total)
    return value, math.sqrt(variance / total)


def product_entropy(fields: Floats) -> float:
    """Entropy of independent spins with weights e^{field x}, in nats: the perturb-max distribution
    of a glass without couplings is its Gibbs distribution (Hazan et al. Corollary 6)."""
    size = np.abs(fields)
    return float((np.log1p(np.exp(-2 * size)) + 2 * size / (1 + np.exp(2 * size))).sum())
