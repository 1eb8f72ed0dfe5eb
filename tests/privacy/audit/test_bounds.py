import math

import numpy as np
import pytest
from scipy import stats

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.audit.bounds import (
    clopper_pearson_lower_bound,
    gaussian_epsilon,
    gdp_lower_bound,
)
from thesis_cli.privacy.mechanisms.mechanism import Budget, analytic_scale

RUNS = 200_000


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.1])
@pytest.mark.parametrize("seed", range(2))
def test_a_tight_claim_holds_and_a_scale_too_small_breaks_it(delta, seed):
    """The analytic scale has no slack, so a smaller one breaks epsilon itself, by either form if
    delta is large.
    """
    rng, scale = np.random.default_rng(seed), analytic_scale(1.0, Budget(1.0, delta))

    def found(factor):
        scores = [rng.normal(mean, factor * scale, RUNS) for mean in (1.0, 0.0)]
        return [bound(*scores, delta=delta).epsilon for bound in (gdp_lower_bound, clopper_pearson_lower_bound)]

    tight, broken, badly = found(1.0), found(0.9), found(math.sqrt(0.5))
    assert max(tight) <= 1
    assert badly[0] > 1
    if delta >= 0.01:
        assert min(broken) > 1
        assert badly[1] > broken[1]


def test_bounds_cover_the_truth_as_often_as_they_say():
    """A mechanism with mu = 1, and randomised response with epsilon = 1, whose bound is tight."""
    rng, runs, n, confidence = np.random.default_rng(7), 400, 400, 0.8
    mu = [
        gdp_lower_bound(rng.normal(1, 1, n), rng.normal(0, 1, n), delta=0.01, confidence=confidence).mu
        for _ in range(runs)
    ]
    truth = math.e / (1 + math.e)
    epsilon = [
        clopper_pearson_lower_bound(
            (rng.random(n) < truth) * 1.0, (rng.random(n) > truth) * 1.0, delta=0.0, confidence=confidence
        ).epsilon
        for _ in range(runs)
    ]
    error = 5 * math.sqrt(confidence * (1 - confidence) / runs)
    assert np.mean(np.array(mu) <= 1) >= confidence - error
    assert np.mean(np.array(epsilon) <= 1) >= confidence - error
    # The bounds are not trivial either.
    assert np.mean(mu) > 0.6
    assert np.mean(epsilon) > 0.6


def test_randomised_response_by_hand():
    """With one threshold: the rates of three of four runs, and their Clopper-Pearson bounds by the
    beta quantile.
    """
    scores_in, scores_out = np.tile([1.0, 1.0, 1.0, 1.0, 0.0, 0.0], 50), np.tile([0.0, 0.0, 0.0, 0.0, 1.0, 1.0], 50)
    found = clopper_pearson_lower_bound(scores_in, scores_out, delta=0.05, confidence=0.9)
    upper = stats.beta.ppf(0.95, 75 + 1, 225 - 75)
    assert (found.false_positives, found.false_negatives) == pytest.approx((upper, upper))
    assert found.epsilon == pytest.approx(math.log((1 - 0.05 - upper) / upper))
    gdp = gdp_lower_bound(scores_in, scores_out, delta=0.05, confidence=0.9)
    assert gdp.mu == pytest.approx(-2 * stats.norm.ppf(upper))
    assert gdp.above
    assert gdp.runs == 225
    turned = gdp_lower_bound(-scores_in, -scores_out, delta=0.05, confidence=0.9)
    assert turned.mu == pytest.approx(gdp.mu)
    assert not turned.above


def test_the_better_of_two_scores_is_taken():
    rng = np.random.default_rng(0)
    good = rng.normal(2, 1, 1000), rng.normal(0, 1, 1000)
    poor = rng.normal(0, 1, 1000), rng.normal(0, 1, 1000)
    for order in (0, 1), (1, 0):
        both = [np.stack([(good, poor)[i][side] for i in order]) for side in range(2)]
        assert gdp_lower_bound(*both, delta=1e-6) == gdp_lower_bound(*good, delta=1e-6)


def test_likelihood_ratios_of_few_runs_are_cut_at_0():
    found = gdp_lower_bound(np.full(24, 1.0), np.full(24, -1.0), delta=1e-6, confidence=1 - 1e-4)
    assert (found.threshold, found.above) == (0.0, True)
    assert found.mu > 0


def test_many_runs_are_cut_at_0_too():
    """However many lie on either side: no test of both tables then errs in any run."""
    rng = np.random.default_rng(1)
    scores = rng.uniform(1, 2, 4000), rng.uniform(-2, -1, 4000)
    found = clopper_pearson_lower_bound(*scores, delta=1e-6)
    assert found.false_positives == found.false_negatives == pytest.approx(1 - 0.025 ** (1 / found.runs))


def test_equal_releases_prove_nothing():
    scores = np.random.default_rng(0).normal(size=1000)
    for bound in (gdp_lower_bound, clopper_pearson_lower_bound):
        assert bound(scores, scores, delta=1e-6).epsilon == 0
        assert bound(np.ones(100), np.ones(100), delta=1e-6).epsilon == 0


def test_a_release_without_noise_is_found_out():
    for bound in (gdp_lower_bound, clopper_pearson_lower_bound):
        assert bound(np.ones(10_000), np.zeros(10_000), delta=1e-6).epsilon > 6


@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.5])
def test_gaussian_epsilon_inverts_the_analytic_scale(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    if epsilon == 0:
        assert 2 * stats.norm.cdf(mu / 2) - 1 <= delta
    else:
        assert 1 / analytic_scale(1.0, Budget(epsilon, delta)) == pytest.approx(mu, rel=1e-6)
    assert gaussian_epsilon(mu, 0.0) == math.inf
    assert gaussian_epsilon(0.0, delta) == 0


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (np.zeros(19), {}, "20 runs"),
        (np.zeros((2, 19)), {}, r"shape \(2, 19\)"),
        (np.array([0.0] * 30 + [math.nan]), {}, "not finite"),
        (np.zeros(30), {"delta": 1.0}, "delta is 1"),
        (np.zeros(30), {"confidence": 1.0}, "the confidence is 1"),
    ],
)
def test_bad_input_is_one_line(scores, options, message):
    with pytest.raises(InputError, match=message):
        gdp_lower_bound(scores, scores, **{"delta": 1e-6, **options})
