import math

import numpy as np
import pytest
from scipy.stats import binom

from tests.perturbation.models import product, seed, triangle
from thesis_cli.base.errors import InputError
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.inference.parity.constraints import ParityMaxima, enumerated_maxima
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.perturbation import wish as module
from thesis_cli.perturbation.wish import estimate, interval, promise, sufficient_samples, wish


def maxima_of(values, configurations):
    values = np.asarray(values, float)
    return ParityMaxima(values, values, np.arange(values.shape[1]), configurations, values.size)


def test_the_estimate_is_algorithm_1():
    """M_0 + sum_i M_{i+1} 2^i with medians, the lower of two in the middle."""
    values = np.log([[9, 3, 1], [9, 5, 2], [9, 4, 2], [9, 7, 1]])
    assert estimate(values[None], np.arange(3))[0] == pytest.approx(math.log(9 + 4 + 2 * 1))
    assert estimate(values[None, :3], np.arange(3))[0] == pytest.approx(math.log(9 + 4 + 2 * 2))
    assert estimate(values[None, :3, [0, 2]], np.array([0, 2]))[0] == pytest.approx(math.log(9 + 3 * 2))


def test_failures_of_medians_are_binomial_tails():
    for samples in (1, 4, 9):
        middle = sorted(range(samples))[(samples - 1) // 2] + 1
        high = sum(binom.pmf(k, samples, 1 / 8) for k in range(samples - middle + 1, samples + 1))
        low = sum(binom.pmf(k, samples, 1 / 5) for k in range(middle, samples + 1))
        assert module._failures(samples, 3, 2) == pytest.approx(high + low)


def test_the_promise_is_the_least_factor():
    """27 hashes do for a factor of 16 on 16 bits; the rate that Theorem 1 prints asks for 1,374."""
    assert sufficient_samples(16, 0.95) == 27
    assert promise(27, 16, 0.95).bits == 4
    assert promise(25, 16, 0.95).bits == 5
    assert str(promise(100, 16, 0.95)) == "within a factor of 8"


def test_staircases_bound_sums_and_meet_where_all_ranks_are_known():
    weights = np.sort(np.random.default_rng(0).exponential(size=40))[::-1]
    log_z = math.log(weights.sum())
    ranks = np.arange(1, 41)
    for stride in (1, 3, 8):
        at = ranks[::stride]
        low = module._staircase_below(np.log(at), np.log(weights[at - 1]))
        high = module._staircase_above(np.log(at), np.log(weights[at - 1]), math.log(40))
        assert low <= log_z + 1e-12
        assert high >= log_z - 1e-12
        if stride == 1:
            assert (low, high) == pytest.approx((log_z, log_z), abs=1e-12)
        else:
            assert high - low > 0.1


def test_intervals_cover():
    """The probability of failure is at most a tenth; four times that would be five errors off."""
    rng = np.random.default_rng(1)
    missed = 0
    for k in range(100):
        model = LogPotentials(rng.normal(0, 1 + k % 4, 64))
        (found,) = wish(model, 9, seed(k), confidence=0.9)
        missed += not found.low <= log_partition_function(model) <= found.high
    assert missed <= 25


def test_more_hashes_give_a_narrower_interval_and_an_estimate_within_the_promise():
    graph = product([2, 3, 2, 3, 2])
    log_z = log_partition_function(graph)
    few, many = (wish(graph, count, seed(1))[0] for count in (9, 400))
    assert many.low <= log_z <= many.high
    assert many.high - many.low < 0.6 * (few.high - few.low)
    assert many.standard_error < few.standard_error
    assert abs(many.value - log_z) <= promise(400, 7, 0.95).bits * math.log(2)
    assert many.kind == "within a factor of 8 with probability 95%"
    assert many.map_calls == 400 * 7 + 1


def test_what_is_not_proven_bounds_from_below_only():
    exact = enumerated_maxima(triangle(), 21, np.random.default_rng(0))
    low, high = interval(exact, 0.95)
    worse = exact._replace(values=exact.values - 1)
    assert interval(worse, 0.95) == (pytest.approx(low - 1), high)
    unknown = exact._replace(bounds=np.full_like(exact.bounds, np.inf))
    assert interval(unknown, 0.95) == (low, math.inf)
    (found,) = module.estimates(worse, 0.95, np.random.default_rng(0))
    assert "not proven" in found.kind
    dependent = interval(exact._replace(independent=False), 0.95)
    assert dependent[0] >= low
    assert dependent[1] == pytest.approx(exact.values[0, 0] + math.log(16))


def test_many_levels_do_not_overflow():
    values = np.zeros((3, 2001))
    low, high = interval(maxima_of(values, 2**2000), 0.95)
    assert low <= 2000 * math.log(2) <= high < low + 20
    assert np.isfinite(estimate(values[None], np.arange(2001))).all()


@pytest.mark.parametrize(("samples", "confidence"), [(0, 0.95), (1, 1.0), (1, 0.0), (1, math.nan)])
def test_refusals(samples, confidence):
    with pytest.raises(InputError):
        wish(triangle(), samples, seed(), confidence=confidence)
