"""Telescoping products and uniform averages, held against exact partition functions."""

import math

import numpy as np
import pytest

from tests.structured.toy import potentials
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.meta import Coupled, Direct, Truncated
from thesis_cli.structured.ranges import PotentialRange, map_range
from thesis_cli.structured.schedules import Schedule, corrected_schedule
from thesis_cli.structured.telescoping import SCHEDULES, TelescopingPlan, sampled_ratios, telescoping, uniform_average

CUBE = space("hypercube", 6)
WEIGHTS = np.linspace(-1, 1.5, 6)
EXACT = float(CUBE.log_partition(WEIGHTS[None])[0])
SAMPLERS = Direct(), Coupled(), Truncated()


def test_a_mean_that_few_structures_bear_has_no_error():
    """One structure of 128 has nearly all of Z."""
    found = uniform_average(space("hypercube", 7, "linear"), np.full(7, 50.0), 40, np.random.default_rng(1))
    assert found.standard_error == math.inf
    assert (found.low, found.high) == (pytest.approx(found.value + math.log(0.05)), math.inf)
    assert "only 3 effective" in found.kind


def test_each_ratio_is_that_of_the_exact_partition_functions():
    schedule = corrected_schedule(2, 1.5)
    counts = np.full(schedule.ratios, 5000)
    limits = map_range(CUBE, WEIGHTS)
    ratios = sampled_ratios(CUBE, WEIGHTS, schedule, counts, Direct(), np.random.default_rng(1), limits)
    betas = np.append(schedule.betas, 2 * schedule.betas[:-1] - schedule.betas[1:])
    log_z = CUBE.log_partition(betas[:, None] * WEIGHTS)
    first, second = log_z[: schedule.ratios + 1], log_z[schedule.ratios + 1 :]
    for ratio, low, high, twice in zip(ratios, first[:-1], first[1:], second, strict=True):
        assert abs(ratio.log_mean - (low - high)) < 5 * math.sqrt(ratio.variance / ratio.samples)
        assert ratio.variance == pytest.approx(math.expm1(twice + high - 2 * low), rel=0.2)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
def test_estimates(schedule, sampler):
    error = 0.9 if schedule == "theorem" else 0.1
    if schedule == "theorem" and isinstance(sampler, Truncated):
        weights, exact = WEIGHTS / 6, float(CUBE.log_partition(WEIGHTS[None] / 6)[0])
    else:
        weights, exact = WEIGHTS, EXACT
    plan = TelescopingPlan(error=error, schedule=schedule, pilot=300)
    found = telescoping(CUBE, weights, plan, sampler, np.random.default_rng(2))
    estimate = found.estimate
    # approximate samples may be off by a tenth of ln(1 + epsilon) beyond the standard error
    slack = 0.1 * math.log1p(error) if isinstance(sampler, Truncated) else 0.0
    assert abs(estimate.value - exact) < 5 * estimate.standard_error + slack
    assert found.samples >= len(found.ratios)
    assert (found.steps > 0) == (not isinstance(sampler, Direct))
    if schedule != "adaptive":
        assert estimate.low == pytest.approx(estimate.value - math.log1p(error))
        assert estimate.high == pytest.approx(estimate.value - math.log1p(-error))
        assert "probability 0.75" in estimate.kind


def test_the_plans_variance_is_kept():
    """Var X / (E X)^2 of the product, from exact ratios, is at most that of the plan."""
    plan = TelescopingPlan(error=0.2)
    found = telescoping(CUBE, WEIGHTS, plan, Direct(), np.random.default_rng(3))
    total = 0.0
    for r in found.ratios:
        log_z = CUBE.log_partition(np.outer([r.low, r.high, 2 * r.low - r.high], WEIGHTS))
        total += math.expm1(log_z[2] + log_z[1] - 2 * log_z[0]) / r.samples
    assert total < (0.2 / 1.2) ** 2 / 4


def test_the_schedule_cancels_what_all_structures_share():
    """A constant in all log-potentials costs nothing: their span counts, not R |theta|."""
    toy, one = potentials([100.0, 101.0, 100.5])
    found = telescoping(toy, one, TelescopingPlan(), Direct(), np.random.default_rng(4))
    assert len(found.ratios) == 2
    assert abs(found.estimate.value - float(toy.log_partition(one[None])[0])) < 5 * found.estimate.standard_error


def test_zero_weights_are_exact():
    for schedule in SCHEDULES:
        found = telescoping(CUBE, np.zeros(6), TelescopingPlan(schedule=schedule), Coupled(), np.random.default_rng(5))
        assert found.estimate.value == pytest.approx(6 * math.log(2))
        assert found.estimate.standard_error < 1e-12


def test_chains_of_given_length_promise_nothing():
    found = telescoping(CUBE, WEIGHTS, TelescopingPlan(), Truncated(steps=20), np.random.default_rng(6))
    assert found.estimate.kind.startswith("no guarantee")
    assert found.steps == 20 * found.samples
    assert found.ratios[-1].distance > found.ratios[0].distance > 0


def test_uniform_average():
    found = uniform_average(CUBE, WEIGHTS, 20000, np.random.default_rng(7))
    assert abs(found.value - EXACT) < 5 * found.standard_error
    variance = math.expm1(6 * math.log(2) + float(CUBE.log_partition(2 * WEIGHTS[None])[0]) - 2 * EXACT)
    assert found.standard_error == pytest.approx(math.sqrt(variance / 20000), rel=0.1)


def test_sizes_beyond_a_double():
    huge = space("hypercube", 2000)
    found = uniform_average(huge, np.full(2000, 0.001), 100, np.random.default_rng(8))
    assert abs(found.value - 2000 * math.log1p(math.exp(0.001))) < 5 * found.standard_error


def test_refusals():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="schedule"):
        telescoping(CUBE, WEIGHTS, TelescopingPlan(schedule="none"), Direct(), rng)
    with pytest.raises(InputError, match="error"):
        telescoping(CUBE, WEIGHTS, TelescopingPlan(error=0), Direct(), rng)
    with pytest.raises(InputError, match="confidence"):
        telescoping(CUBE, WEIGHTS, TelescopingPlan(confidence=1), Direct(), rng)
    with pytest.raises(InputError, match="3/4"):
        telescoping(CUBE, WEIGHTS, TelescopingPlan(confidence=0.9, schedule="theorem"), Direct(), rng)
    with pytest.raises(InputError, match="pilot"):
        telescoping(CUBE, WEIGHTS, TelescopingPlan(schedule="adaptive", pilot=1), Direct(), rng)
    with pytest.raises(InputError, match="weight"):
        telescoping(CUBE, np.full(6, np.nan), TelescopingPlan(), Direct(), rng)
    with pytest.raises(ModelTooLarge, match="chains"):
        telescoping(CUBE, 20 * WEIGHTS, TelescopingPlan(), Truncated(), rng)
    with pytest.raises(InputError, match="2 or more"):
        uniform_average(CUBE, WEIGHTS, 1, rng)


def test_a_schedule_may_be_given_with_its_counts():
    limits = PotentialRange(-10, 10)
    schedule = Schedule(np.array([0.0, 1.0]), "one step")
    (ratio,) = sampled_ratios(CUBE, WEIGHTS, schedule, np.array([3]), Direct(), np.random.default_rng(0), limits)
    assert (ratio.low, ratio.high, ratio.samples) == (0.0, 1.0, 3)


@pytest.mark.parametrize(("schedule", "most"), [("equal", 4000), ("adaptive", 9000)])
def test_a_limit_on_steps_is_one_of_all_ratios_together(schedule, most):
    plan = TelescopingPlan(schedule=schedule)
    found = telescoping(CUBE, WEIGHTS, plan, Coupled(), np.random.default_rng(0))
    assert max(ratio.steps for ratio in found.ratios) < most < found.steps
    with pytest.raises(ModelTooLarge, match="coupling from the past"):
        telescoping(CUBE, WEIGHTS, plan, Coupled(most=most), np.random.default_rng(0))
