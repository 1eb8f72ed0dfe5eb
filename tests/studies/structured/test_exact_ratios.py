"""Exact ratios of schedules, and the space at which bounds are tight."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from thesis_cli.structured.catalogue import space
from thesis_cli.structured.ranges import map_range
from thesis_cli.structured.schedules import Schedule, corrected_schedule
from thesis_cli.structured.space import Space
from thesis_cli.studies.structured.exact_ratios import equal_variances, exact_ratios, uniform_variance, work
from thesis_cli.studies.structured.families import Needle
from thesis_cli.studies.structured.mixing import all_potentials

NEEDLE = Needle(4)


@pytest.mark.parametrize("theta", [-1.0, 0.0, 0.7])
def test_the_needle_is_what_enumeration_says(theta):
    weights = np.array([[theta]])
    assert NEEDLE.log_partition(weights) == pytest.approx(Space.log_partition(NEEDLE, weights))
    assert NEEDLE.mean_features(weights)[0] == pytest.approx(Space.mean_features(NEEDLE, weights)[0])
    assert NEEDLE.maximise(weights).values == pytest.approx(Space.maximise(NEEDLE, weights).values)
    assert NEEDLE.scores(NEEDLE.maximise(weights).structures, weights[0])[0] == pytest.approx(abs(theta))
    draws = NEEDLE.draw(weights[0], 4000, np.random.default_rng(0))
    share = NEEDLE.features(draws).mean()
    assert abs(share - NEEDLE.mean_features(weights)[0, 0]) < 5 / math.sqrt(4000)
    others = np.bincount((draws[~draws.all(axis=1)] @ [1, 2, 4, 8]), minlength=16)[:15]
    assert others.min() > 0.5 * others.mean()


def test_ratios_are_sums_over_structures():
    cube = space("hypercube", 4, "pairs")
    weights = np.random.default_rng(1).normal(size=cube.dimension)
    schedule, limits = corrected_schedule(2, 2.0), map_range(cube, weights)
    found, energies = exact_ratios(cube, weights, schedule, limits), all_potentials(cube, weights)
    for at in range(schedule.ratios):
        low, high = schedule.betas[at : at + 2]
        masses = np.exp(high * energies - logsumexp(high * energies))
        f = np.exp((low - high) * energies)
        mean = masses @ f
        assert found.logs[at] == pytest.approx(math.log(mean))
        assert found.variances[at] == pytest.approx(masses @ (f - mean) ** 2 / mean**2)
        assert found.steps[at] == pytest.approx(1 / np.exp(high * (energies - energies.max())).mean())
    f = np.exp(energies)
    assert uniform_variance(cube, weights) == pytest.approx(f.var() / f.mean() ** 2)


def test_the_needle_attains_the_variance_bound():
    schedule = Schedule(np.array([0.0, 1.0]), "one step")
    weights = np.array([1 / 3])
    (variance,) = exact_ratios(Needle(1), weights, schedule, map_range(Needle(1), weights)).variances
    assert variance == pytest.approx(math.sinh(1 / 3) ** 2)
    assert variance == pytest.approx(schedule.variance_bounds(2 / 3)[0])


def test_equal_variances():
    cube, weights = space("hypercube", 6), np.linspace(1, 2, 6)
    schedule = equal_variances(cube, weights, 0.2)
    found = exact_ratios(cube, weights, schedule, map_range(cube, weights))
    assert found.variances[1:] == pytest.approx(0.2, abs=1e-4)
    assert 0 < found.variances[0] <= 0.2
    assert (schedule.betas[0], schedule.betas[-1]) == (0, 1)


def test_work():
    """Cost and variance of a product at the best numbers of samples."""
    v, c = np.array([1.0, 4.0]), np.array([9.0, 1.0])
    counts = np.sqrt(v / c)
    assert work(v, c) == pytest.approx((v / counts).sum() * (c * counts).sum())
