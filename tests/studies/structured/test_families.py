"""The spaces of the experiments, and estimates on each of them."""

import numpy as np
import pytest

from thesis_cli.structured.meta import Coupled, Direct
from thesis_cli.structured.ranges import map_range, norm_range
from thesis_cli.structured.telescoping import TelescopingPlan, telescoping
from thesis_cli.studies.structured.exact_ratios import needed_numbers
from thesis_cli.studies.structured.families import DIRECTIONS, FAMILIES, family, weights_of_length
from thesis_cli.studies.structured.gradient_tails import deviations, width
from thesis_cli.studies.structured.products import Contaminated, measured_work, repeated


@pytest.mark.parametrize("name", [*FAMILIES, "needle 4"])
def test_estimates_are_within_their_promise_on_every_space(name):
    found, rng = family(name), np.random.default_rng(1)
    weights = weights_of_length(found, 2.1, "random", rng)
    exact = float(found.log_partition(weights[None])[0])
    for sampler in (Direct(), Coupled()):
        estimate = telescoping(found, weights, TelescopingPlan(error=0.2, confidence=0.99), sampler, rng).estimate
        assert estimate.low <= exact <= estimate.high


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", [*FAMILIES, "needle 4"])
def test_weights_have_the_length_that_is_asked_for(name, direction):
    found = family(name)
    weights = weights_of_length(found, 3.0, direction, np.random.default_rng(2))
    assert norm_range(found, weights).high == pytest.approx(3)
    limits = map_range(found, weights)
    if direction == "aligned" and name != "subtrees":
        assert limits.high == pytest.approx(3)
    assert -3 * (1 + 1e-9) <= limits.low <= limits.high <= 3 * (1 + 1e-9)


def test_contaminated_samples_are_as_far_off_as_stated():
    found, weights = family("needle 2"), np.array([1.0])
    draws = Contaminated(0.2)(found, weights, 20000, np.random.default_rng(3), map_range(found, weights))
    share = (1 - found.features(draws.structures).mean()) / 2  # of the three structures of -1
    exact = (1 - found.mean_features(weights[None])[0, 0]) / 2
    # the structure that takes up the 0.2 is one of these three
    assert share - exact == pytest.approx(0.2 * (1 - exact) / (1 - exact / 3), abs=5 * 0.5 / 20000**0.5)


def test_numbers_of_samples_fall_step_by_step():
    found = family("rankings")
    weights = weights_of_length(found, 4.0, "random", np.random.default_rng(4))
    numbers = list(needed_numbers(found, weights, 4.0, 3, 0.1).values())
    assert numbers[:4] == sorted(numbers[:4], reverse=True)
    assert max(numbers[4:]) < numbers[3]


def test_measured_work_and_errors():
    found, rng = family("labels"), np.random.default_rng(5)
    weights = weights_of_length(found, 1.0, "random", rng)
    work = measured_work(found, weights, 40, 0.2, rng)
    assert all(value > 0 and error > 0 for value, error in work.values())
    runs = repeated(found, weights, "sharper", 20, 0.2, rng)
    numbers = runs.numbers(0.2)
    assert numbers["covered"][0] >= 0.75
    assert numbers["root mean square"][0] < 0.2
    assert runs.numbers(1e-9)["covered"][0] == 0


def test_deviations_have_the_variance_of_a_mean():
    found = family("labels")
    weights, z = np.zeros(8), np.ones(8) / 8**0.5
    missed = deviations(found, weights, z, 10, 4000, np.random.default_rng(6))
    assert abs(missed.mean()) < 5 * missed.std() / 4000**0.5
    assert missed.var() == pytest.approx(0.25 / 10, rel=0.15)
    assert width(found, z) == pytest.approx(8**0.5)
