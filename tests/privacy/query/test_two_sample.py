import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tests.privacy.embedding.test_means import kernel_and_rows
from tests.privacy.seeded_laplace import SeededLaplace
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.embedding.features import Features, draw_features
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.query import two_sample
from thesis_cli.privacy.query.two_sample import (
    NoisyMean,
    noisy_mean_test,
    null_statistics,
    permutation_test,
    random_rows,
    spectrum,
)
from thesis_cli.studies.privacy.seeded import SeededGaussian

RUNS, ALPHA = 400, 0.05
MARGIN = 5 * math.sqrt(ALPHA * (1 - ALPHA) / RUNS)
KERNEL = RowKernel(np.array([2.0]), np.array([0.4]))
"""RowKernel of a real and a category of three levels."""


def table(rng, size, shift=0.0):
    return Rows(rng.normal(0.5 + shift, 0.2, (size, 1)), rng.choice(3, (size, 1), p=[0.5, 0.3, 0.2]))


def unbiased(kernel, a, b):
    """The estimate of Gretton et al. 2012, eq. 3, pair by pair."""

    def mean(rows):
        matrix = kernel.matrix(rows, rows)
        pairs = itertools.permutations(range(len(rows)), 2)
        return math.fsum(matrix[pair] for pair in pairs) / (len(rows) * (len(rows) - 1))

    return mean(a) + mean(b) - 2 * kernel.matrix(a, b).mean()


# Permutations


@pytest.mark.parametrize("block", [1, 100, 2**21])
def test_the_estimate_is_unbiased_mmd(block, monkeypatch):
    monkeypatch.setattr(two_sample, "BLOCK", block)
    kernel, a, b = kernel_and_rows(3, 2, (3,), 9, 14)
    found = permutation_test(kernel, a, b, 20, np.random.default_rng(0))
    assert found.mmd_squared == found.statistic == pytest.approx(unbiased(kernel, a, b), abs=1e-14)
    assert (found.rows, found.other_rows, found.draws) == (9, 14, 20)


def test_the_p_value_is_near_that_of_all_permutations():
    kernel, a, b = kernel_and_rows(1, 1, (), 4, 5)
    pooled = Rows.concatenate([a, b])
    observed, as_large, every = unbiased(kernel, a, b), 0, 0
    for chosen in itertools.combinations(range(9), 4):
        inside = np.isin(np.arange(9), chosen)
        as_large += unbiased(kernel, pooled[inside], pooled[~inside]) >= observed - 1e-12
        every += 1
    share, draws = as_large / every, 20_000
    found = permutation_test(kernel, a, b, draws, np.random.default_rng(5))
    assert 0.02 < share < 0.98
    assert abs(found.p_value - share) < 5 * math.sqrt(share * (1 - share) / draws) + 1 / draws


def test_permutations_keep_their_level_and_find_a_shift():
    rng = np.random.default_rng(11)
    null = [permutation_test(KERNEL, table(rng, 20), table(rng, 30), 99, rng).p_value for _ in range(RUNS)]
    assert abs(np.mean(np.array(null) <= ALPHA) - ALPHA) < MARGIN
    assert stats.kstest(null, "uniform").pvalue > 1e-6
    assert permutation_test(KERNEL, table(rng, 100), table(rng, 100, 0.2), 999, rng).p_value == 0.001


def test_equal_rows_are_no_evidence():
    """Every permutation ties, in spite of rounding."""
    same = Rows(np.full((7, 1), 0.3), np.zeros((7, 1), np.int64))
    found = permutation_test(KERNEL, same, same[:4], 50, np.random.default_rng(0))
    assert found.p_value == 1
    assert found.mmd_squared == pytest.approx(0, abs=1e-15)


def test_large_tables_are_sampled():
    rng = np.random.default_rng(2)
    rows = table(rng, 50)
    part = random_rows(rows, 20, rng)
    assert len(part) == 20
    assert len(np.unique(part.reals)) == 20
    assert np.isin(part.reals, rows.reals).all()
    assert random_rows(rows, 50, rng) is rows
    found = permutation_test(KERNEL, rows, table(rng, 10), 9, rng, most=20)
    assert (found.rows, found.other_rows) == (20, 10)


# The noisy mean


def test_the_spectrum_is_that_of_the_covariance():
    rng = np.random.default_rng(0)
    for n, size in ((50, 6), (4, 6), (7, 7), (2, 6)):
        sample = rng.normal(size=(n, size)) @ rng.normal(size=(size, size))
        expected = np.linalg.eigvalsh(np.cov(sample.T))[-min(n - 1, size) :]
        np.testing.assert_allclose(spectrum(sample), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("block", [50, 2**21])
def test_the_law_of_the_statistic(block, monkeypatch):
    """Chi-square if all weights are equal, otherwise the first two moments."""
    monkeypatch.setattr(two_sample, "BLOCK", block)
    rng, draws = np.random.default_rng(3), 4000 if block == 50 else 50_000
    same = null_statistics(np.full(4, 1.75), 0.5, 4, "gaussian", draws, rng)
    assert len(same) == draws
    assert stats.kstest(same / 2, stats.chi2(4).cdf).pvalue > 1e-6
    assert (
        stats.kstest(null_statistics(np.zeros(2), 0.5, 9, "gaussian", draws, rng) * 4, stats.chi2(9).cdf).pvalue > 1e-6
    )
    spread = np.array([0.1, 2.0, 5.0])
    variances = np.array([0.0, 0.0, *spread]) + 0.25
    gaussian = null_statistics(spread, 0.5, 5, "gaussian", draws, rng)
    laplace = null_statistics(spread, 0.5 / math.sqrt(2), 5, "laplace", draws, rng)
    for found, excess in ((gaussian, 0.0), (laplace, 5 * 3 * 0.25**2)):
        assert abs(found.mean() - variances.sum()) < 5 * found.std() / math.sqrt(draws)
        expected = 2 * (variances**2).sum() + excess
        error = np.sqrt(np.var((found - found.mean()) ** 2) / draws)
        assert abs(found.var() - expected) < 5 * error


def released(rng, features, rows, name, epsilon):
    """Vector of a release of these rows, with noise of a seeded generator."""
    noise = SeededGaussian(rng, "analytic") if name == "gaussian" else SeededLaplace(rng)
    found = noise.add(features.mean([rows]), features.l2_sensitivity(len(rows)), Budget(epsilon, 1e-5))
    return NoisyMean(found.values, found.calibration.scale, len(rows), name)


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [("gaussian", 1.0), ("gaussian", 100.0), ("laplace", 5.0)],
)
def test_the_noisy_mean_keeps_its_level_and_finds_a_shift(name, epsilon):
    """With noise that outweighs sampling, with hardly any noise, and with Laplace noise."""
    rng = np.random.default_rng(21)
    features = draw_features(KERNEL, (3,), 8, rng)

    def p_value(rows, other_rows, shift=0.0, epsilon=epsilon, draws=999):
        rows, other = table(rng, rows), table(rng, other_rows, shift)
        found = released(rng, features, rows, name, epsilon)
        return noisy_mean_test(features, found, other, rng, draws=draws).p_value

    null = np.array([p_value(200, 150) for _ in range(RUNS)])
    assert abs(np.mean(null <= ALPHA) - ALPHA) < MARGIN
    assert stats.kstest(null, "uniform").pvalue > 1e-6
    assert p_value(2000, 2000, 0.3, epsilon=10.0) == 0.001


def test_the_estimate_has_no_part_of_the_noise():
    rng = np.random.default_rng(8)
    features = draw_features(KERNEL, (3,), 16, rng)
    rows, other = table(rng, 300), table(rng, 400, 0.1)
    truth = ((features.mean([rows]) - features.mean([other])) ** 2).sum()
    for name in ("gaussian", "laplace"):
        estimates = []
        for _ in range(200):
            found = released(rng, features, rows, name, 1.0)
            test = noisy_mean_test(features, found, other, rng, draws=1)
            estimates.append(test.mmd_squared)
        assert abs(np.mean(estimates) - truth) < 5 * np.std(estimates) / math.sqrt(200)
        assert test.statistic == pytest.approx(((found.vector - features.mean([other])) ** 2).sum())


def test_the_same_seed_gives_the_same_answer_and_the_sample_does_not_move_the_mean():
    rng = np.random.default_rng(0)
    features, other = draw_features(KERNEL, (3,), 6, rng), table(rng, 80)
    vector = features.mean([table(rng, 100)])
    one, two = (
        noisy_mean_test(features, NoisyMean(vector, 0.1, 100), other, np.random.default_rng(4)) for _ in range(2)
    )
    assert one == two
    part = noisy_mean_test(features, NoisyMean(vector, 0.1, 100), other, np.random.default_rng(4), most=10, draws=100)
    assert part.statistic == one.statistic
    assert (part.rows, part.other_rows, part.draws) == (100, 80, 100)
    assert noisy_mean_test(features, NoisyMean(vector + 9, 0.1, 100), other, rng, draws=99).p_value == 0.01


def test_what_is_refused():
    rng = np.random.default_rng(0)
    rows, features = table(rng, 5), Features(np.ones((3, 1)), (np.zeros((3, 3)),))
    with pytest.raises(InputError, match="permutations is 0"):
        permutation_test(KERNEL, rows, rows, 0, rng)
    with pytest.raises(InputError, match="5 and 1 rows"):
        permutation_test(KERNEL, rows, rows[:1], 9, rng)
    with pytest.raises(InputError, match="4 numbers; it must have 6"):
        noisy_mean_test(features, NoisyMean(np.zeros(4), 1.0, 5), rows, rng)
    with pytest.raises(InputError, match="has 1 rows"):
        noisy_mean_test(features, NoisyMean(np.zeros(6), 1.0, 5), rows[:1], rng)
