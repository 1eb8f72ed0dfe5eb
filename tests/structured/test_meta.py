"""META, coupling from the past and truncated chains (Vembu et al. section 3, appendix B)."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.structured.toy import potentials
from thesis_cli.base.errors import InputError, ModelTooLarge, WorkFailed
from thesis_cli.structured import meta
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.meta import (
    Coupled,
    Direct,
    Truncated,
    distance_bound,
    from_the_past,
    metropolis,
    mixing_bound,
)
from thesis_cli.structured.ranges import PotentialRange, map_range, norm_range

VALUES = [0.0, 1.0, -1.0, 2.0, 1.5]
TOY, ONE = potentials(VALUES)
MASSES = np.exp(VALUES) / np.exp(VALUES).sum()
LIMITS = map_range(TOY, ONE)
LEAST_P = 1e-6
"""Significance of one test in a million."""


def fits(structures, masses) -> bool:
    counts = np.bincount(structures, minlength=len(masses))
    return chisquare(counts, masses * counts.sum()).pvalue > LEAST_P


def test_ranges():
    assert PotentialRange(-1.0, 2.0, exact=True) == LIMITS
    bound = norm_range(TOY, ONE)
    assert (bound.low, bound.high, bound.exact) == (-2.0, 2.0, False)
    assert LIMITS.at(0.5).span == 1.5


@pytest.mark.parametrize("limits", [LIMITS, norm_range(TOY, ONE), PotentialRange(-1, 3)])
def test_coupled_samples_are_exact_and_take_as_long_as_stated(limits):
    count = 4000
    draws = Coupled()(TOY, ONE, count, np.random.default_rng(1), limits)
    assert fits(draws.structures[:, 0], MASSES)
    mean = len(VALUES) * math.exp(limits.high) / np.exp(VALUES).sum()
    assert abs(draws.steps / count - mean) < 5 * math.sqrt(mean * (mean - 1) / count)
    assert draws.distance == 0


@pytest.mark.parametrize("blind", [False, True])
def test_coupling_from_the_past(blind):
    rng, count = np.random.default_rng(2), 1500
    runs = [from_the_past(TOY, ONE, rng, blind=blind) for _ in range(count)]
    assert fits([int(run.structure[0]) for run in runs], MASSES)
    masses = np.full(len(VALUES), 0.2) if blind else MASSES
    assert fits([int(run.met[0]) for run in runs], masses)
    mean = math.exp(3.0) if blind else len(VALUES) * math.exp(2) / np.exp(VALUES).sum()
    steps = np.mean([run.steps for run in runs])
    assert abs(steps - mean) < 5 * math.sqrt(mean * (mean - 1) / count)


def test_a_chain_of_one_step_has_the_transition_matrix():
    states = np.full((20000, 1), 3)
    ends = metropolis(TOY, ONE, states, 1, np.random.default_rng(3))[:, 0]
    row = np.minimum(1.0, np.exp(np.array(VALUES) - 2.0)) / len(VALUES)
    row[3] += 1 - row.sum()
    assert fits(ends, row)
    assert (states == 3).all()


def test_few_chains_walk_as_many_do():
    scores, proposed, clocks = np.random.default_rng(6).normal(size=7), *np.random.default_rng(7).random((2, 40, 7))
    expected = meta._walk_many(scores, proposed, clocks / 2)
    np.testing.assert_array_equal(meta._walk_few(scores, proposed, clocks / 2), expected)
    assert (expected > 0).any()
    assert (meta._walk_few(scores + 9, proposed, clocks) == -1).all()


def test_few_chains_are_as_exact():
    rng = np.random.default_rng(8)
    ends = [int(metropolis(TOY, ONE, TOY.sample(2, rng), 60, rng)[0, 0]) for _ in range(600)]
    assert fits(ends, MASSES)


def test_truncated_chains_keep_their_distance():
    draws = Truncated(distance=1e-3)(TOY, ONE, 3000, np.random.default_rng(4), LIMITS)
    length = mixing_bound(3.0, 1e-3)
    assert draws.steps == 3000 * length
    assert draws.distance <= 1e-3
    assert fits(draws.structures[:, 0], MASSES)
    short = Truncated(steps=0)(TOY, ONE, 3000, np.random.default_rng(4), LIMITS)
    assert short.distance == 1
    assert fits(short.structures[:, 0], np.full(len(VALUES), 0.2))
    assert not fits(short.structures[:, 0], MASSES)


@pytest.mark.parametrize(("span", "distance"), [(0.0, 0.1), (1.0, 0.5), (3.0, 1e-3), (8.0, 0.01), (1e-9, 0.1)])
def test_mixing_bound(span, distance):
    """Least t with (1 - exp(-span))^t <= distance."""
    steps = mixing_bound(span, distance)
    assert distance_bound(span, int(steps)) <= distance * (1 + 1e-9)
    assert steps == 1 or distance_bound(span, int(steps) - 1) > distance


def test_steps_beyond_the_range_of_a_double_are_infinite():
    assert mixing_bound(600.0, 0.1) == pytest.approx(math.log(10) * math.exp(600))
    for span in (700.0, 740.0, 1e4):
        assert mixing_bound(span, 0.1) == math.inf
        assert distance_bound(span, 10) == 1


def test_direct_samples():
    draws = Direct()(TOY, ONE, 4000, np.random.default_rng(5), LIMITS)
    assert fits(draws.structures[:, 0], MASSES)
    assert draws.steps == 0


def test_empty_and_equal_weights():
    assert len(Coupled()(TOY, ONE, 0, np.random.default_rng(0), LIMITS).structures) == 0
    assert len(Truncated()(TOY, ONE, 0, np.random.default_rng(0), LIMITS).structures) == 0
    flat = map_range(TOY, np.zeros(1))
    assert flat.span == 0
    assert Coupled()(TOY, np.zeros(1), 100, np.random.default_rng(0), flat).steps == 100


def test_a_maximum_that_is_none_is_refused():
    for draw in (Coupled(), lambda *a: from_the_past(*a[:2], a[3], a[4])):
        with pytest.raises(WorkFailed, match="above the maximum"):
            draw(TOY, ONE, 1000, np.random.default_rng(0), PotentialRange(-1, 1))


def test_work_is_refused_in_time():
    far = PotentialRange(-2, 60)
    with pytest.raises(ModelTooLarge, match="0 of 10 samples"):
        Coupled(most=1000)(TOY, ONE, 10, np.random.default_rng(0), far)
    with pytest.raises(ModelTooLarge, match="chains"):
        Truncated()(TOY, ONE, 10, np.random.default_rng(0), far)
    with pytest.raises(ModelTooLarge, match="chains"):
        Truncated()(TOY, ONE, 10, np.random.default_rng(0), PotentialRange(-1e4, 1e4))


@pytest.mark.parametrize("weights", [np.ones(2), np.array([np.nan]), np.array([np.inf]), np.ones((1, 1)), np.ones(())])
def test_bad_weights(weights):
    for use in (norm_range, map_range, lambda s, w: from_the_past(s, w, np.random.default_rng(0))):
        with pytest.raises(InputError, match="weight"):
            use(TOY, weights)


def test_a_space_that_has_no_exact_map_keeps_the_bound_of_cauchy_and_schwarz():
    large = space("hypercube", 30, "pairs")
    weights = np.random.default_rng(0).normal(size=large.dimension)
    assert map_range(large, weights) == norm_range(large, weights)
