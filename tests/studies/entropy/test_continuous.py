import math

import numpy as np
import pytest
from scipy import stats

from thesis_cli.base.errors import InputError
from thesis_cli.entropy.estimators import MOST_VALUES, renyi_entropy
from thesis_cli.entropy.quantities import estimate_quantity
from thesis_cli.models.proposals import Normal, Uniform
from thesis_cli.models.quadrature import integrate, log_densities
from thesis_cli.models.targets import Mixture, published_regression, tempered
from thesis_cli.perturbation.tricks.tricks import gumbel, power
from thesis_cli.studies.entropy.continuous import continuous_maxima

C = np.euler_gamma
LEVEL = 1e-6
"""Of every test of a distribution: a correct sampler fails one seed in a million."""
ALPHAS = np.array([0.3, 0.5, 2, 4])
PROPOSAL = Normal(np.zeros(2), np.full(2, 2.0))
SCALES = np.array([0.5, 1.5])
WEIGHT = 3.0
GAUSSIAN = Mixture([WEIGHT], [[0.5, -1.0]], [SCALES], PROPOSAL)
CUT = Mixture([1.0], [[2.0]], [[0.5]], Uniform(np.zeros(1), np.ones(1)))
TWO_HILLS = Mixture([1.0, 1.0], [[-1.0, -1.0], [1.0, 1.0]], [[0.5, 0.5], [0.45, 0.45]], PROPOSAL)


def maxima_of(target, alphas=ALPHAS, count=20_000, seed=0, **options):
    return continuous_maxima(target, np.array(alphas, float), count, np.random.SeedSequence(seed), **options)


def entropy(alpha):
    """Of the Gaussian."""
    more = 1.0 if alpha == 1 else 0.0 if alpha == math.inf else math.log(alpha) / (alpha - 1)
    return np.log(SCALES * math.sqrt(2 * math.pi)).sum() + more


@pytest.fixture(scope="module")
def gaussian():
    return maxima_of(GAUSSIAN)


@pytest.mark.parametrize("target", [CUT, TWO_HILLS, published_regression()], ids=["cut", "two", "regression"])
def test_values_are_gumbel(target):
    """Thesis eq. 3.7: Gumbel(ln Z_alpha - c), at alpha = 1 too."""
    found = maxima_of(target, count=5000)
    for alpha, values in zip((1, *ALPHAS), (found.at_one, *found.values.T), strict=True):
        log_z = integrate(tempered(target, alpha), 1e-5).log_z
        assert stats.kstest(values, stats.gumbel_r(log_z - C).cdf).pvalue > LEVEL


def test_no_noise_is_shared():
    """The same noise would do the same at orders next to each other."""
    found = maxima_of(GAUSSIAN, [1 + 1e-9, 1 + 2e-9], 2000)
    correlations = np.corrcoef(np.column_stack([found.at_one, found.values]).T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 5 / math.sqrt(2000)


def test_fields(gaussian):
    np.testing.assert_array_equal(gaussian.orders, ALPHAS)
    np.testing.assert_array_equal(gaussian.column(2.0), gaussian.values[:, 2])
    assert (gaussian.samples, gaussian.sets, gaussian.share_above) == (20_000, 20_000, math.inf)
    assert gaussian.independent


def test_potentials_are_those_of_exact_samples(gaussian):
    """phi(x*) = sup phi - chi^2 / 2, independent of the maximum."""
    top = math.log(WEIGHT) - entropy(math.inf)
    assert stats.kstest(2 * (top - gaussian.potential), stats.chi2(2).cdf).pvalue > LEVEL
    assert abs(np.corrcoef(gaussian.at_one, gaussian.potential)[0, 1]) < 5 / math.sqrt(gaussian.samples)


@pytest.mark.parametrize("trick", [gumbel(), power(1.0), power(0.5)], ids=lambda trick: trick.label)
@pytest.mark.parametrize("log_z", [None, math.log(WEIGHT)])
@pytest.mark.parametrize("alpha", [*ALPHAS, 1, math.inf])
def test_entropies_of_a_gaussian(gaussian, trick, log_z, alpha):
    found, _ = renyi_entropy(gaussian, alpha, trick=trick, log_z=log_z)
    assert found.value == pytest.approx(entropy(alpha), abs=5 * found.standard_error + 1e-9)
    assert found.standard_error < 0.05


def test_the_expected_density(gaussian):
    """exp(-H_2), the integral of p^2, by the estimator of other quantities."""
    found = estimate_quantity(gaussian, "power-sum", 2.0)
    assert found.value == pytest.approx(math.exp(-entropy(2)), abs=5 * found.standard_error)


def test_orders_that_need_no_run():
    found = maxima_of(GAUSSIAN, [1, 2, 2, math.inf], 10)
    np.testing.assert_array_equal(found.orders, [2])
    assert found.values.shape == (10, 1)


@pytest.mark.parametrize(
    ("target", "highest"),
    [
        (GAUSSIAN, math.log(WEIGHT) - entropy(math.inf)),
        (CUT, -2 - math.log(0.5 * math.sqrt(2 * math.pi))),
    ],
    ids=["within", "at the end of the support"],
)  # fmt: skip
def test_the_highest(target, highest):
    assert maxima_of(target, [], 20).highest == pytest.approx(highest, abs=1e-9)


def test_the_highest_is_sought_within_the_support():
    class Guarded:
        proposal, bound = CUT.proposal, staticmethod(CUT.bound)

        def log_ratio(self, x):
            assert 0 <= x[0] <= 1
            return CUT.log_ratio(x)

    assert maxima_of(Guarded(), [], 5).highest == pytest.approx(-2 - math.log(0.5 * math.sqrt(2 * math.pi)), abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_higher_of_two_hills(seed):
    """Only the run at the largest alpha is sure to be there."""
    grid = np.stack(np.meshgrid(*[np.linspace(0.9, 1.1, 401)] * 2), axis=-1).reshape(-1, 2)
    top = log_densities(TWO_HILLS, grid).max()
    assert maxima_of(TWO_HILLS, [0.3, 50], 1, seed).highest == pytest.approx(top, abs=1e-5)


def test_a_known_highest_is_taken():
    assert maxima_of(GAUSSIAN, [2], 3, highest=-0.5).highest == -0.5


def test_threads_and_progress_change_nothing():
    ticks = []
    one, other = maxima_of(GAUSSIAN, count=100), maxima_of(GAUSSIAN, count=100, jobs=3, progress=ticks.append)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.at_one, other.at_one)
    assert sum(ticks) == 100 * (1 + ALPHAS.size)


@pytest.mark.parametrize(
    ("alphas", "count", "complaint"),
    [
        ([0, 2], 10, "the order is 0; .* must be above 0"),
        ([-1], 10, "the order is -1"),
        ([math.nan], 10, "the order is nan"),
        ([2], 0, "0 samples"),
        ([2], MOST_VALUES, "must be below"),
    ],
)
def test_bad_input(alphas, count, complaint):
    with pytest.raises(InputError, match=complaint):
        maxima_of(GAUSSIAN, alphas, count)
