"""Logarithms of sums, to the bit those of SciPy."""

import numpy as np
import pytest
from scipy.special import logsumexp

from thesis_cli.base.rounding import log_sum_exp


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
