"""Cooling schedules, their variance bounds and the numbers of samples (Vembu et al. 2.2)."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured import schedules

RADII = st.floats(0, 40)
STEPS = st.integers(1, 8)


@settings(max_examples=examples(20))
@given(STEPS, RADII)
def test_the_corrected_schedule_rises_to_1_in_steps_that_are_short_enough(p, radius):
    found = schedules.corrected_schedule(p, radius)
    assert found.betas[0] == 0
    assert found.betas[-1] == 1
    assert (found.steps > 0).all()
    assert (found.steps * radius <= (1 + 1e-9) / p).all()
    assert found.ratios == max(1, math.ceil(p * radius * (1 - 1e-12)))


@settings(max_examples=examples(20))
@given(st.lists(st.floats(-20, 20), min_size=2, max_size=6), st.floats(0.01, 1))
def test_variance_bound(values, step):
    """Bound of Var f / (E f)^2 for any distribution, f = exp(-step potential)."""
    energies = np.array(values)
    span = float(np.ptp(energies))
    bound = schedules.Schedule(np.array([1 - step, 1.0]), "").variance_bounds(span)[0]
    assert schedules.step_variance(energies, step) <= bound * (1 + 1e-9) + 1e-12


def test_the_variance_bound_is_attained_by_two_values():
    """Of f in {a, b} with mean 2ab / (a + b)."""
    a, b = math.exp(-1 / 3), math.exp(1 / 3)
    high = (2 * a * b / (a + b) - a) / (b - a)
    mean = a + high * (b - a)
    variance = ((b - mean) * (mean - a)) / mean**2
    bound = schedules.corrected_schedule(3, 1.0).variance_bounds(2.0)
    np.testing.assert_allclose(bound, variance)
    np.testing.assert_allclose(bound, 0.11529, atol=1e-5)


def test_printed_numbers():
    assert schedules.printed_samples(6, 3, 0.5) == math.ceil(65 * 4 * 6 * math.exp(2 / 3))
    assert schedules.printed_distance(6, 3, 0.5) == pytest.approx(0.5 / (30 * math.exp(2 / 3)))


@settings(max_examples=examples(20))
@given(st.lists(st.floats(0, 3), min_size=1, max_size=8), st.floats(0.01, 0.9), st.floats(0.5, 0.99))
def test_samples_are_enough_and_few(variances, error, confidence):
    v, target = np.array(variances), schedules.relative_variance(error, confidence)
    counts = schedules.needed_samples(v, target)
    assert np.prod(1 + v / counts) - 1 <= target * (1 + 1e-9)
    deviation = math.sqrt(target / (1 - confidence))
    assert 1 / (1 - deviation) == pytest.approx(1 + error)
    costly = schedules.needed_samples(v, target, np.full(len(v), 7.0))
    assert np.array_equal(costly, counts) or np.abs(costly - counts).max() == 1


def test_costly_ratios_get_fewer_samples():
    counts = schedules.needed_samples(np.array([1.0, 1.0]), 0.001, np.array([1.0, 100.0]))
    assert counts[0] / counts[1] == pytest.approx(10, rel=0.01)
    assert (1 + 1 / counts).prod() - 1 <= 0.001


def test_adaptive_steps_have_the_variance_that_is_aimed_at():
    energies = np.arange(20.0)

    def pilot(beta):
        masses = np.exp(beta * energies - beta * 19)
        return np.repeat(energies, np.ceil(1e5 * masses / masses.sum()).astype(int))

    found, variances = schedules.adaptive_schedule(pilot, 0.5)
    assert found.betas[0] == 0
    assert found.betas[-1] == 1
    assert (found.steps > 0).all()
    assert variances.max() <= 0.5
    assert variances[1:] == pytest.approx(0.5, rel=0.01)  # but for the last step down, to 0


@pytest.mark.parametrize(("p", "radius"), [(0, 1), (-1, 1), (math.nan, 1), (3, -1), (3, math.nan), (3, math.inf)])
def test_bad_schedules(p, radius):
    with pytest.raises(InputError):
        schedules.corrected_schedule(p, radius)


def test_refusals():
    with pytest.raises(ModelTooLarge, match="steps"):
        schedules.corrected_schedule(3, 1e9)
    with pytest.raises(InputError, match="error"):
        schedules.relative_variance(1.0)
    with pytest.raises(InputError, match="confidence"):
        schedules.relative_variance(0.1, 1.0)
    with pytest.raises(ModelTooLarge, match="samples"):
        schedules.needed_samples(np.array([1e300]), 0.1)
    with pytest.raises(ModelTooLarge, match="schedule"):
        schedules.adaptive_schedule(lambda _: np.arange(1000.0), 1e-3, most=3)
