import math

import numpy as np
import pytest

from thesis_cli.inference.elimination import Elimination
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.concentration import deviation, log_sobolev_deviation, poincare_deviation
from thesis_cli.perturbation.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank_bounds import lower_bound, upper_bound
from thesis_cli.perturbation.noise import gumbel

CASES = [(a, m, tail) for a in (0.3, 1.0, 10.0) for m in (1, 10, 1000) for tail in (0.4, 0.05, 1e-6)]
RATES = np.linspace(1e-5, 1 - 1e-5, 100_000)
"""lambda a over the range of Corollaries 9 and 11."""


def chernoff(log_moment, gradient, count, deviation):
    """Least bound on the tail by Markov's inequality from a bound on the moment generating
    function.
    """
    return math.exp(count * (log_moment - RATES * deviation / gradient).min())


@pytest.mark.parametrize(("gradient", "count", "tail"), CASES)
def test_deviations_follow_from_the_moment_bounds(gradient, count, tail):
    """Corollary 10 follows from 9, and 12 from 11; half the deviation follows from neither."""
    nine = np.log((1 + RATES) / (1 - RATES))
    eleven = 2 * RATES**2 * (5 - RATES) / (1 - RATES) + 8 * RATES * np.log(1 - RATES)
    for log_moment, bound in ((nine, poincare_deviation), (eleven, log_sobolev_deviation)):
        found = bound(gradient, count, tail)
        assert chernoff(log_moment, gradient, count, found) <= tail * (1 + 1e-9)
        assert chernoff(log_moment, gradient, count, found / 2) > tail


def test_published_numbers():
    assert poincare_deviation(1.0, 2, math.exp(-4)) == 2 * (1 + 1) ** 2
    assert log_sobolev_deviation(3.0, 8, math.exp(-1)) == pytest.approx(3 * 2)
    assert log_sobolev_deviation(3.0, 8, math.exp(-32)) == pytest.approx(3 * 16)


def test_the_interval_uses_the_better_bound_with_half_the_risk_on_each_side():
    for count in (1, 10, 100, 10_000):
        pair = [bound(2.0, count, (1 - 0.9) / 2) for bound in (poincare_deviation, log_sobolev_deviation)]
        assert deviation(2.0, count, 0.9) == min(pair)
    assert deviation(2.0, 10_000, 0.9) == log_sobolev_deviation(2.0, 10_000, (1 - 0.9) / 2)


@pytest.mark.parametrize(
    ("scale", "bound", "gradient"), [("sum", upper_bound, 3**0.5), ("average", lower_bound, 3**-0.5)]
)
def test_intervals_cover_the_expectation(scale, bound, gradient):
    solver = Elimination(FactorGraph([2, 1, 3, 2], []))
    truth = low_rank_maxima(solver, 50_000, np.random.SeedSequence(1), scale=scale).values.mean()
    for entropy in range(30):
        maxima = low_rank_maxima(solver, 4, np.random.SeedSequence(entropy), scale=scale)
        found = bound(maxima, 0.0, confidence=0.5, interval="concentration")
        assert found.low < truth < found.high
        assert found.high - found.value == pytest.approx(deviation(gradient, 4, 0.5), rel=1e-12)


def test_the_noise_at_the_maximiser_is_not_as_concentrated():
    """One noise term, 10^6 states of phi = 0 and one of ln 10^6: the variance is far above 4 a^2 =
    4.
    """
    log_k = math.log(1e6)
    single, rest = gumbel(np.random.default_rng(0), 2, 10_000)  # rest: the largest of 10^6 less ln 10^6
    at_max = np.where(single > rest, single, rest + log_k)
    assert at_max.var() > 0.9 * log_k**2 / 4 > 10 * 4
    assert np.maximum(single, rest).var() < 4
