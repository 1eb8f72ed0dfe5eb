"""Sampled gradients of ln Z and their deviations (Vembu et al. 2.3)."""

import math

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.meta import Coupled, Direct, Truncated
from thesis_cli.structured.online import hoeffding_probability, sampled_gradients

CUBE = space("hypercube", 4, "pairs")
WEIGHTS = np.random.default_rng(0).normal(size=(3, CUBE.dimension)) / 2


@pytest.mark.parametrize("sampler", [Direct(), Coupled(), Truncated(distance=1e-4)], ids=lambda s: type(s).__name__)
def test_sampled_gradients_are_mean_features(sampler):
    found = sampled_gradients(CUBE, WEIGHTS, 500, sampler, np.random.default_rng(1))
    missed = np.abs(found.mean - CUBE.mean_features(WEIGHTS))
    assert (missed <= 5 * found.standard_errors + 1e-4).all()
    shares = CUBE.mean_features(WEIGHTS)
    np.testing.assert_allclose(found.standard_errors, np.sqrt(shares * (1 - shares) / 500), rtol=0.5)
    assert (found.steps > 0) == (not isinstance(sampler, Direct))


def test_one_sample_has_no_standard_error():
    found = sampled_gradients(CUBE, WEIGHTS, 1, Direct(), np.random.default_rng(1))
    assert np.isinf(found.standard_errors).all()


def test_hoeffding():
    assert hoeffding_probability(2.0, 0.1, 1000) == pytest.approx(2 * math.exp(-(0.1**2) * 1000 / 2))


def test_refusals():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="1 or more"):
        sampled_gradients(CUBE, WEIGHTS, 0, Direct(), rng)
    with pytest.raises(InputError, match="weight"):
        sampled_gradients(CUBE, WEIGHTS[:, 1:], 5, Direct(), rng)
    for width, error in ((0, 0.1), (1, 0), (math.nan, 1)):
        with pytest.raises(InputError):
            hoeffding_probability(width, error, 10)
