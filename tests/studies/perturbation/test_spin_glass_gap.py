import math

import numpy as np
import pytest

from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.studies.perturbation.spin_glass_gap import bulk, controlled_mean, gap, misfit, power_law


@pytest.mark.parametrize(("kind", "size"), [("attractive", 5), ("mixed", 5), ("attractive", 12), ("mixed", 12)])
def test_the_gap_is_that_of_perturbed_maxima(kind, size):
    glass, found = gap(kind, 2.0, size, 200, np.random.SeedSequence(1))
    solver = GridTransfer(glass.graph())
    assert found.log_z.lower == pytest.approx(solver.log_partition_function())
    maxima = low_rank_maxima(solver, 200, np.random.SeedSequence(2)).values
    error = math.hypot(found.upper_error, maxima.std() / math.sqrt(200))
    assert abs(found.upper - maxima.mean()) < 5 * error
    assert found.upper_error < 0.9 * maxima.std() / math.sqrt(200)  # the control helps
    assert found.missed == pytest.approx(0, abs=0.5)
    assert found.uncertified == pytest.approx(0, abs=1e-6)


def test_without_couplings_there_is_no_gap():
    found = gap("mixed", 0.0, 24, 60, np.random.SeedSequence(1))[1]
    assert found.log_z.lower == pytest.approx(found.log_z.upper)
    assert found.upper == pytest.approx(found.log_z.estimate, abs=1e-6)


def test_a_controlled_mean_is_unbiased():
    rng = np.random.default_rng(0)
    means = []
    for _ in range(400):
        controls = rng.exponential(size=30) - 1
        means.append(controlled_mean(3 + 2 * controls + 0.1 * rng.standard_normal(30), controls))
    values, errors = np.transpose(means)
    assert abs(values.mean() - 3) < 5 * values.std() / 20
    assert values.std() == pytest.approx(errors.mean(), rel=0.3)
    assert controlled_mean(np.arange(4.0), np.zeros(4))[0] == pytest.approx(1.5)


def test_growth():
    sides = np.array([10.0, 20, 40, 80])
    errors = np.array([0.1, 0.2, 0.3, 0.4])
    exponent, error = power_law(sides**2, 3 * sides**1.4, errors)
    assert exponent == pytest.approx(0.7)
    assert error == pytest.approx(power_law(sides**2, 3 * sides**1.4, 2 * errors)[1] / 2)
    limit, error = bulk(sides, 0.3 - 2 / sides, errors)
    assert limit == pytest.approx(0.3)
    assert error > 0
    rng = np.random.default_rng(0)
    limits = [bulk(sides, 0.3 - 2 / sides + errors * rng.standard_normal(4), errors)[0] for _ in range(2000)]
    assert np.std(limits) == pytest.approx(error, rel=0.1)
    bent = power_law(sides, sides * [1, 1.5, 1, 1.5], errors)[1]
    assert bent > 10 * power_law(sides, sides, errors)[1]
    assert misfit(
        sides,
        5 * sides,
    ) == pytest.approx(0)
    assert misfit(np.array([1.0, 1]), np.array([1.0, 2])) == pytest.approx(math.sqrt(0.1))
