import math

import numpy as np
import pytest
from scipy.special import logsumexp

from thesis_cli.base.rounding import difference, log_of_sum, log_sum_exp, mean_of, sample_deviation

UNIT = np.finfo(float).eps


def test_what_rounding_leaves_of_a_difference_is_zero():
    assert difference(0.3, 0.1 + 0.2) == 0
    assert difference(700 * (1 + UNIT), 700.0) == 0
    assert difference(700.0, 700.0 - 1e-12) > 0
    assert difference(0.0, 1e-17) == 0
    assert difference(-math.inf, 1.0) == -math.inf
    found = difference(np.array([1.0, 2.0, -np.inf]), np.array([1.0 + UNIT, 1.0, 5.0]))
    np.testing.assert_array_equal(found, [0.0, 1.0, -np.inf])


def test_the_logarithm_of_a_sum_of_one_is_zero():
    assert log_of_sum(math.log(sum([0.1] * 10))) == 0
    assert log_of_sum(1e-12) == 1e-12
    assert log_of_sum(-math.inf) == -math.inf


def test_equal_values_have_their_mean_and_no_deviation():
    values = np.full(20, 0.1)
    assert values.mean() != 0.1  # why there is a function
    assert (mean_of(values), sample_deviation(values)) == (0.1, 0.0)
    two = np.array([[0.1, 0.1], [1.0, 3.0]])
    np.testing.assert_allclose(sample_deviation(two), [0.0, math.sqrt(2)], rtol=1e-15)


@pytest.mark.parametrize("shape", [(1,), (2,), (40,), (30, 5), (4, 3, 7)])
@pytest.mark.parametrize("spread", [1e-9, 1.0, 30.0, 800.0])
def test_finite_and_infinite_values(shape, spread):
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.normal(0, spread, shape)
        for values in (x, np.round(x), np.where(rng.random(shape) < 0.3, -np.inf, x), np.full(shape, -np.inf), x.T):
            np.testing.assert_array_equal(log_sum_exp(values), logsumexp(values, axis=-1))
    assert np.isposinf(log_sum_exp(np.array([1.0, np.inf])))
    assert np.isnan(log_sum_exp(np.array([1.0, np.nan])))
