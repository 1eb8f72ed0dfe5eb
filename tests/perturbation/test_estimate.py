from statistics import StatisticsError

import numpy as np
import pytest
from scipy.special import ndtri

from thesis_cli.perturbation.estimate import normal_quantile


def test_the_quantiles_are_those_of_scipy():
    p = np.concatenate([np.linspace(0, 1, 1001), 10.0 ** -np.arange(1, 308, 7), 1 - 10.0 ** -np.arange(2, 16)])
    found = np.array([normal_quantile(float(x)) for x in p])
    np.testing.assert_allclose(found, ndtri(p), rtol=1e-14)


def test_no_quantile_beyond_the_probabilities():
    with pytest.raises(StatisticsError):
        normal_quantile(1.5)
