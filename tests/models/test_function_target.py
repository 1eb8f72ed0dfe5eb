"""Targets made from functions on a box."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thesis_cli.base.errors import InputError
from thesis_cli.models.target_objects import FunctionTarget


def waves(x):
    return np.sin(3 * x).sum()


@given(st.integers(1, 3), st.integers(0, 2**32))
def test_bounds_hold(dimension, seed):
    rng = np.random.default_rng(seed)
    target = FunctionTarget(waves, [-2.0] * dimension, [2.0] * dimension, 3.0)
    low = rng.uniform(-2, 2, dimension)
    high = low + rng.uniform(0, 1, dimension) * (2 - low)
    level = target.bound(low, high)
    for x in rng.uniform(low, high, (50, dimension)):
        assert target.log_ratio(x) <= level + 1e-12


def test_a_linear_function_attains_its_bound():
    target = FunctionTarget(lambda x: 3 * x.sum(), [-2, -2], [2, 2], 3)
    low, high = np.array([-1.0, 0.0]), np.array([0.5, 2.0])
    assert target.bound(low, high) == pytest.approx(target.log_ratio(high))


def test_the_ratio_is_the_function_over_the_proposal():
    target = FunctionTarget(lambda x: 1.5, [0, 0], [2, 3], 0)
    point = np.ones(2)
    assert target.log_ratio(point) + target.proposal.log_density(point) == pytest.approx(1.5)
    assert target.log_ratio(point) == pytest.approx(1.5 + math.log(6))


@pytest.mark.parametrize("slope", [-1.0, math.inf, math.nan])
def test_a_slope_must_be_finite(slope):
    with pytest.raises(InputError, match="slope"):
        FunctionTarget(waves, [0], [1], slope)


def test_the_function_must_be_finite_in_the_box():
    target = FunctionTarget(lambda x: -math.inf, [0], [1], 1)
    with pytest.raises(InputError, match="must be finite"):
        target.bound(*map(np.array, ([0.0], [1.0])))
