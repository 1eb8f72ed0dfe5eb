import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from thesis_cli.entropy.estimators import Noise, entropy_maxima
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.studies.entropy.variance import QUADRATURE, UNIT, DistinctProbabilities, independent, with_log_z
from thesis_cli.studies.perturbation.low_rank_mse import sample_variance

ALPHAS = np.array([0.2, 0.7, 1.4, 3.0])
LOG_WEIGHTS = {
    "few": np.array([0.0, -1.0, -1.0, -3.0, -8.0]),
    "geometric": np.log(0.8) * np.arange(60),
    "nearly certain": np.log(np.append(np.full(1000, 1e-5), 0.99)),
}


def integral(log_weights, alpha, shared):
    """The deficit by adaptive quadrature of its definition, configuration by configuration."""
    p = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    q = p**alpha / (p**alpha).sum()

    def integrand(u):
        both = np.where(shared, np.maximum(p, q * np.exp(-u)), p + q * np.exp(-u)).sum()
        return math.log(both / max(1.0, math.exp(-u)))

    kinks = np.unique(np.log(q / p)[np.abs(np.log(q / p)) < 40])
    edges = np.unique([-45, *kinks[:: max(1, kinks.size // 100)], 0, 45])
    return sum(quad(integrand, a, b, epsabs=1e-12, limit=200)[0] for a, b in itertools.pairwise(edges))


@pytest.mark.parametrize("name", LOG_WEIGHTS)
@pytest.mark.parametrize("first", [0, 1, 2])
def test_the_integral_is_what_it_is_said_to_be(name, first):
    steps = DistinctProbabilities(LOG_WEIGHTS[name])
    log_p = LOG_WEIGHTS[name] - np.logaddexp.reduce(LOG_WEIGHTS[name])
    threshold = steps.levels[first] if first < steps.levels.size else math.inf
    for alpha in ALPHAS:
        expected = integral(LOG_WEIGHTS[name], alpha, log_p >= threshold - 1e-12)
        assert steps.deficit(alpha, first) == pytest.approx(expected, rel=QUADRATURE, abs=1e-9)


@pytest.mark.parametrize("name", LOG_WEIGHTS)
def test_samples_vary_as_the_formulas_say(name):
    steps, model = DistinctProbabilities(LOG_WEIGHTS[name]), LogPotentials(LOG_WEIGHTS[name])
    log_z = np.logaddexp.reduce(LOG_WEIGHTS[name])
    for first in (0, 1, steps.levels.size):
        threshold = steps.levels[first] + log_z - 1e-12 if first < steps.levels.size else math.inf
        maxima = entropy_maxima(model, ALPHAS, 20_000, np.random.SeedSequence(first), Noise(share_above=threshold))
        estimates = (maxima.values - ALPHAS * maxima.at_one[:, np.newaxis]) / (1 - ALPHAS)
        variance, error = sample_variance(estimates)
        expected = np.array([steps.shared(a, first) for a in ALPHAS])
        assert (np.abs(variance - expected) < 5 * error).all()
    assert expected == pytest.approx(independent(ALPHAS), rel=1e-5)
    maxima = entropy_maxima(model, ALPHAS, 20_000, np.random.SeedSequence(9))
    for alpha in ALPHAS:
        residual = maxima.column(alpha) - np.polyval(np.polyfit(maxima.at_one, maxima.column(alpha), 1), maxima.at_one)
        variance, error = sample_variance(residual / (1 - alpha))
        assert abs(variance - steps.controlled(alpha)) < 5 * error
    for sample, expected in (
        (maxima.at_one - maxima.potential, steps.shared(1.0)),
        (log_z - maxima.potential, steps.controlled(1.0)),
    ):
        variance, error = sample_variance(sample)
        assert abs(variance - expected) < 5 * error


def test_uniform_distributions():
    steps = DistinctProbabilities(np.zeros(7))
    for alpha in ALPHAS:
        assert steps.deficit(alpha) == pytest.approx(0, abs=1e-12)
        assert steps.shared(alpha) == pytest.approx(UNIT)
        assert steps.controlled(alpha) == pytest.approx(0, abs=1e-10)
        assert steps.shared(alpha) < with_log_z(alpha) if alpha < 2 else steps.shared(alpha) > with_log_z(alpha)


def test_the_limit_at_one_is_theorem_9():
    steps = DistinctProbabilities(LOG_WEIGHTS["geometric"])
    for near in (1 - 1e-4, 1 + 1e-4):
        assert steps.shared(near) == pytest.approx(steps.shared(1.0), rel=1e-3)


def test_more_shared_noise_never_raises_the_variance():
    steps = DistinctProbabilities(LOG_WEIGHTS["geometric"])
    for alpha in ALPHAS:
        variances = [steps.shared(alpha, first) for first in range(steps.levels.size + 1)]
        assert (np.diff(variances) > -1e-9).all()
