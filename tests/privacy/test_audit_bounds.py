import math

import numpy as np
import pytest
from scipy import stats

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.audit_bounds import (
    audit,
    clopper_pearson_lower_bound,
    gaussian_epsilon,
    gdp_lower_bound,
    repeats,
)
from thesis_cli.privacy.mechanism import Budget, OpenDPGaussian, OpenDPLaplace, analytic_scale
from thesis_cli.studies.privacy.seeded import SeededGaussian

RUNS = 200_000
CONFIDENCE = 1 - 1e-6
"""The tests draw fresh randomness in every run, and accuse a real mechanism once in a million
runs.
"""


def noise_of_opendp(noise, budget):
    """2e5 scalar runs, half of them for either table, with their calibration."""
    found = noise.repeat(0.0, 1.0, budget, RUNS)
    return found, found.values.reshape(2, -1)


def audited(noises, factor, delta, confidence):
    """Audit a mechanism whose noise is a multiple of these, on tables whose vectors are 1 and 0."""
    return audit(
        lambda n: 1.0 + factor * noises[0], lambda n: factor * noises[1], RUNS // 2, delta=delta, confidence=confidence
    )


def test_the_real_gaussian_passes_and_planted_scales_fail():
    """At delta = 0.1, where 5e4 runs a side detect a tenth with 7 sigma to spare."""
    found, noises = noise_of_opendp(OpenDPGaussian(), Budget(1.0, 0.1))
    claimed = found.calibration.sensitivity / found.calibration.scale
    real = audited(noises, 1.0, 0.1, CONFIDENCE)
    assert 0.8 * claimed < real.gdp.mu <= claimed
    assert real.gdp.epsilon <= 1
    assert real.clopper_pearson.epsilon <= 1
    assert real.repeats <= 2  # of an expected 0.003
    assert real.gdp.runs == RUNS // 4
    assert audited(noises, 0.9, 0.1, 0.95).gdp.mu > claimed
    broken = audited(noises, math.sqrt(0.5), 0.1, 0.95)
    assert broken.gdp.mu > claimed
    assert broken.gdp.epsilon > 1
    assert broken.clopper_pearson.epsilon > 1


def test_the_real_laplace_passes_and_planted_scales_fail():
    _, noises = noise_of_opendp(OpenDPLaplace(), Budget(1.0))
    real = audited(noises, 1.0, 0.0, CONFIDENCE).clopper_pearson
    assert 0.85 < real.epsilon <= 1
    for factor in (0.9, math.sqrt(0.5)):
        assert audited(noises, factor, 0.0, 0.95).clopper_pearson.epsilon > 1


def test_the_tables_reach_opendp():
    """The mechanism gets the vectors themselves, which the tests above add to its noise
    afterwards.
    """
    budget, noise = Budget(1.0, 0.1), OpenDPGaussian()
    one, other = (noise.repeat(value, 1.0, budget, 20_000).values for value in (1.0, 0.0))
    assert abs(one.mean() - other.mean() - 1) < 5 * noise.calibrate(1, 1.0, budget).scale * math.sqrt(2 / 20_000)


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_a_tight_claim_holds_and_a_scale_too_small_breaks_it(delta, seed):
    """The analytic scale has no slack, so a smaller one breaks epsilon itself, by either form if
    delta is large.
    """
    rng, scale = np.random.default_rng(seed), analytic_scale(1.0, Budget(1.0, delta))

    def found(factor, runs=RUNS):
        return audit(
            lambda n: rng.normal(1.0, factor * scale, n),
            lambda n: rng.normal(0.0, factor * scale, n),
            runs,
            delta=delta,
        )

    tight, broken, badly = found(1.0), found(0.9), found(math.sqrt(0.5))
    assert tight.gdp.epsilon <= 1
    assert tight.clopper_pearson.epsilon <= 1
    assert badly.gdp.epsilon > 1
    if delta >= 0.01:
        assert broken.gdp.epsilon > 1
        assert broken.clopper_pearson.epsilon > 1
        assert badly.clopper_pearson.epsilon > broken.clopper_pearson.epsilon


def test_a_seeded_generator_is_found_by_repetition():
    def release():
        return SeededGaussian(np.random.default_rng(0)).add(np.zeros(5), 1.0, Budget(1.0, 1e-6)).values

    assert repeats(np.stack([release() for _ in range(3)])) == 2
    real = OpenDPGaussian()
    assert repeats(np.stack([real.add(np.zeros(5), 1.0, Budget(1.0, 1e-6)).values for _ in range(3)])) == 0
    scores = audit(lambda n: np.full(n, 1.0), lambda n: np.full(n, 0.0), 100, delta=0.0)
    assert scores.repeats == 198


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
    """With one threshold: the rates of the second half, and their Clopper-Pearson bounds by the
    beta quantile.
    """
    scores_in, scores_out = np.tile([1.0, 1.0, 1.0, 1.0, 0.0, 0.0], 50), np.tile([0.0, 0.0, 0.0, 0.0, 1.0, 1.0], 50)
    found = clopper_pearson_lower_bound(scores_in, scores_out, delta=0.05, confidence=0.9)
    upper = stats.beta.ppf(0.95, 50 + 1, 150 - 50)
    assert (found.false_positives, found.false_negatives) == pytest.approx((upper, upper))
    assert found.epsilon == pytest.approx(math.log((1 - 0.05 - upper) / upper))
    gdp = gdp_lower_bound(scores_in, scores_out, delta=0.05, confidence=0.9)
    assert gdp.mu == pytest.approx(-2 * stats.norm.ppf(upper))
    assert gdp.above
    assert gdp.runs == 150
    turned = gdp_lower_bound(-scores_in, -scores_out, delta=0.05, confidence=0.9)
    assert turned.mu == pytest.approx(gdp.mu)
    assert not turned.above


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
        (np.zeros((30, 2)), {}, r"shape \(30, 2\)"),
        (np.array([0.0] * 30 + [math.nan]), {}, "not finite"),
        (np.zeros(30), {"delta": 1.0}, "delta is 1"),
        (np.zeros(30), {"confidence": 1.0}, "the confidence is 1"),
    ],
)
def test_bad_input_is_one_line(scores, options, message):
    with pytest.raises(InputError, match=message):
        gdp_lower_bound(scores, scores, **{"delta": 1e-6, **options})
