import itertools
import math

import numpy as np
import pytest
from scipy import stats

from thesis_cli.base.errors import InputError, NoConfiguration, WorkFailed
from thesis_cli.models.proposals import Normal, Uniform
from thesis_cli.models.quadrature import integrate, log_densities
from thesis_cli.models.targets import Mixture, Regression, published_regression, tempered
from thesis_cli.perturbation.a_star import a_star as module
from thesis_cli.perturbation.a_star.a_star import a_star, successive
from thesis_cli.perturbation.tricks import full_rank as groups

SEED = np.random.SeedSequence
LEVEL = 1e-6
"""Level of every test of a distribution: a correct sampler fails for one seed in a million."""


def regression(dimension, n=60, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dimension))
    return Regression(x, x.sum(axis=1) + 0.3 * rng.standard_cauchy(n))


def mixture(dimension):
    rng = np.random.default_rng(dimension)
    return Mixture(
        [1.0, 2.0],
        rng.normal(size=(2, dimension)),
        rng.uniform(0.2, 0.8, (2, dimension)),
        Normal(np.zeros(dimension), np.full(dimension, 2.0)),
    )


class Plain:
    """A copy of a target that does not run compiled, with changes."""

    def __init__(self, base, log_ratio=None, bound=None):
        self.proposal = base.proposal
        self.log_ratio = log_ratio or base.log_ratio
        self.bound = bound or base.bound


def gumbel(values, log_z):
    return stats.kstest(values, stats.gumbel_r(log_z - np.euler_gamma).cdf).pvalue


@pytest.mark.parametrize(
    ("target", "count"),
    [
        (published_regression(), 20_000),
        (tempered(published_regression(), 0.5), 5000),
        (tempered(published_regression(), 2.0), 5000),
        (regression(2), 5000),
        (mixture(3), 2000),
    ],
    ids=["published", "alpha 1/2", "alpha 2", "2 features", "3 dimensions"],
)
def test_values_are_gumbel(target, count):
    """Thesis section 2.5.1: Gumbel(ln Z - c), with ln Z by quadrature."""
    assert gumbel(a_star(target, count, SEED(1)).values, integrate(target).log_z) > LEVEL


def test_four_dimensions():
    target = mixture(4)
    found = a_star(target, 1500, SEED(2))
    assert gumbel(found.values, math.log(3)) > LEVEL


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_locations_are_exact_samples_on_a_line(alpha):
    target = tempered(published_regression(), alpha)
    found = a_star(target, 20_000, SEED(3))
    grid = np.linspace(-4, 2, 200_001)
    density = np.exp(log_densities(target, grid[:, np.newaxis]) - integrate(target).log_z)
    cdf = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2))) * (grid[1] - grid[0])
    assert cdf[-1] == pytest.approx(1, abs=1e-6)
    assert stats.kstest(found.locations[:, 0], lambda x: np.interp(x, grid, cdf)).pvalue > LEVEL
    np.testing.assert_allclose(found.potentials, log_densities(target, found.locations), rtol=1e-12)


def test_locations_are_exact_samples_in_the_plane():
    weights, means, scales = np.array([0.25, 0.75]), np.array([[-1.0, 0.5], [1.0, 0.0]]), np.full((2, 2), 0.4)
    found = a_star(Mixture(weights, means, scales, Uniform(-np.full(2, 4.0), np.full(2, 4.0))), 10_000, SEED(4))
    mean = weights @ means
    covariance = (means.T * weights) @ means - np.outer(mean, mean) + np.diag([0.16, 0.16])
    x = found.locations - mean
    np.testing.assert_array_less(np.abs(x.mean(axis=0)), 5 * x.std(axis=0) / 100)
    for d, e in itertools.combinations_with_replacement(range(2), 2):
        products = x[:, d] * x[:, e]
        assert abs(products.mean() - covariance[d, e]) < 5 * products.std() / 100
    assert gumbel(found.values, 0.0) > LEVEL


def test_value_and_location_are_independent():
    found = a_star(published_regression(), 20_000, SEED(5))
    left = found.locations[:, 0] < -1
    assert 0.05 < left.mean() < 0.95
    assert stats.ks_2samp(found.values[left], found.values[~left]).pvalue > LEVEL
    assert stats.spearmanr(found.values, found.locations[:, 0]).pvalue > LEVEL
    assert stats.spearmanr(found.values[1:], found.values[:-1]).pvalue > LEVEL


@pytest.mark.parametrize("target", [regression(1), mixture(2)], ids=["line", "plane"])
def test_successive_points_are_a_poisson_process(target):
    """Times exp(-value - c) have Exponential(Z) steps, and all places are samples of the target."""
    rng = np.random.default_rng(6)
    log_z = integrate(target).log_z
    processes = [list(itertools.islice(successive(target, rng), 8)) for _ in range(60)]
    values = np.array([[point.value for point in points] for points in processes])
    assert (np.diff(values, axis=1) < 0).all()
    times = np.exp(-values - np.euler_gamma + log_z)
    steps = np.diff(times, axis=1, prepend=0)
    assert stats.kstest(steps.ravel(), stats.expon.cdf).pvalue > LEVEL
    for k in (0, 3, 7):
        assert stats.kstest(times[:, k], stats.gamma(k + 1).cdf).pvalue > LEVEL
    late = np.array([point.location for points in processes for point in points[1:]])
    samples = a_star(target, 2000, SEED(0)).locations
    for d in range(late.shape[1]):
        assert stats.ks_2samp(late[:, d], samples[:, d]).pvalue > LEVEL
    potential = np.array([point.ratio for point in processes[0]])
    np.testing.assert_allclose(potential, [target.log_ratio(point.location) for point in processes[0]], rtol=1e-12)


@pytest.mark.parametrize(
    "target",
    [published_regression(), regression(2), regression(4, 6), mixture(1), mixture(3), tempered(regression(3), 0.7)],
    ids=["published", "2 features", "4 features", "mixture", "3 dimensions", "tempered"],
)
def test_the_compiled_search_is_the_plain_one(target, monkeypatch):
    monkeypatch.setattr(groups, "GROUPS", 2)
    compiled, plain = a_star(target, 12, SEED(7)), a_star(Plain(target), 12, SEED(7))
    np.testing.assert_allclose(compiled.values, plain.values, rtol=1e-11)
    np.testing.assert_allclose(compiled.locations, plain.locations, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(compiled.potentials, plain.potentials, rtol=1e-11)
    for name in ("evaluations", "bounds", "splits"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(plain, name))


def test_the_result_does_not_depend_on_jobs():
    one, two = (a_star(regression(2), 700, SEED(8), jobs=jobs) for jobs in (1, 2))
    for name in ("values", "locations", "potentials", "evaluations", "bounds", "splits"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert len(set(one.values)) == 700


def test_progress_adds_up():
    done = []
    a_star(mixture(1), 100, SEED(0), progress=done.append)
    assert sum(done) == 100


def test_a_tight_bound_takes_one_evaluation():
    target = Plain(mixture(2), lambda x: -700.0, lambda low, high: -700.0)
    found = a_star(target, 300, SEED(9))
    assert (found.evaluations == 1).all()
    assert (found.splits == 0).all()
    assert gumbel(found.values, -700.0) > LEVEL
    assert stats.kstest(found.locations[:, 0], stats.norm(0, 2).cdf).pvalue > LEVEL


def test_samples_share_their_boxes():
    found = a_star(published_regression(), 32 * 200, SEED(10))
    first = np.array([part[0] for part in np.array_split(np.arange(6400), 32)])
    last = np.array([part[-100:] for part in np.array_split(np.arange(6400), 32)])
    assert found.evaluations[first].mean() > 10
    assert found.evaluations[last].mean() < 1.5


def test_a_full_tree_still_gives_exact_samples(monkeypatch):
    monkeypatch.setattr("thesis_cli.perturbation.a_star.boxes.MOST_BOXES", 9)
    monkeypatch.setattr(module, "MOST_BOXES", 9)
    compiled, plain = (a_star(target, 200, SEED(11)) for target in (mixture(1), Plain(mixture(1))))
    np.testing.assert_allclose(compiled.values, plain.values, rtol=1e-11)
    assert compiled.splits.sum() <= 4 * 32
    assert gumbel(a_star(mixture(1), 5000, SEED(11)).values, math.log(3)) > LEVEL


def test_a_target_far_out_in_the_tail_of_its_proposal():
    """At 10 to 20 standard deviations the mass of the proposal is 1e-23 to 1e-89."""
    for at in (20.0, -40.0):
        target = Mixture([1.0], [[at]], [[0.5]], Normal(np.zeros(1), np.array([2.0])))
        found = a_star(target, 2000, SEED(12))
        assert gumbel(found.values, 0.0) > LEVEL
        assert stats.kstest(found.locations[:, 0], stats.norm(at, 0.5).cdf).pvalue > LEVEL


def test_boxes_too_narrow_for_their_coordinates_are_not_split():
    """Half a box of width 1e-15 about 4.5 is not half its mass; below 7e-8 rejection takes over."""
    target = Mixture([1.0], [[4.5]], [[1e-9]], Normal(np.zeros(1), np.array([2.0])))
    compiled, plain = a_star(target, 1000, SEED(19)), a_star(Plain(target), 3, SEED(19))
    assert gumbel(compiled.values, 0.0) > LEVEL
    assert stats.kstest((compiled.locations[:, 0] - 4.5) / 1e-9, stats.norm.cdf).pvalue > LEVEL
    again = a_star(target, 3, SEED(19))
    np.testing.assert_array_equal(again.evaluations, plain.evaluations)
    np.testing.assert_array_equal(again.bounds, plain.bounds)


def test_part_of_the_target_may_be_empty():
    def log_ratio(x):
        return 0.0 if x[0] > 1 else -math.inf

    target = Plain(mixture(1), log_ratio, lambda low, high: 0.0 if high[0] > 1 else -math.inf)
    found = a_star(target, 500, SEED(13))
    assert (found.locations > 1).all()
    assert gumbel(found.values, stats.norm.logsf(0.5)) > LEVEL


def lowered(target, by):
    return Plain(target, bound=lambda low, high: target.bound(low, high) - by)


def test_the_error_of_a_violated_bound_names_the_point():
    target = lowered(regression(1), 1.0)
    with pytest.raises(WorkFailed, match=r"bound is violated: the log-ratio is -\d+\.\d+ at \(.*\), the bound .* is -"):
        a_star(target, 500, SEED(14))


def test_a_violated_bound_of_a_compiled_target_is_an_error():
    mixed = mixture(1)
    mixed.__dict__["compiled"] = mixed.compiled._replace(power=-mixed.compiled.power)
    with pytest.raises(WorkFailed, match="bound is violated"):
        a_star(mixed, 50, SEED(15))


def test_rounding_is_no_violation():
    target = lowered(regression(1), 1e-10)
    assert a_star(target, 50, SEED(16)).values.size == 50


@pytest.mark.parametrize(
    ("change", "error", "complaint"),
    [
        ({"log_ratio": lambda x: math.nan}, InputError, "the log-ratio is nan at"),
        ({"log_ratio": lambda x: math.inf, "bound": lambda low, high: math.inf}, InputError, "the log-ratio is inf"),
        ({"bound": lambda low, high: math.nan}, InputError, "the bound of the box .* is nan"),
        ({"bound": lambda low, high: 1e4}, WorkFailed, "no sample after 200 evaluations: the box .* has bound 10000"),
        ({"bound": lambda low, high: math.inf}, WorkFailed, "no sample after 200 evaluations.*bound inf"),
        ({"bound": lambda low, high: -math.inf}, NoConfiguration, "0 everywhere"),
    ],
)
def test_errors_of_bad_targets_are_one_line(change, error, complaint):
    with pytest.raises(error, match=complaint) as caught:
        a_star(Plain(mixture(2), **change), 3, SEED(17), budget=200)
    assert "\n" not in str(caught.value)


def test_the_budget_of_a_compiled_target():
    with pytest.raises(WorkFailed, match="no sample after 5 evaluations"):
        a_star(published_regression(), 3, SEED(18), budget=5)


def test_no_samples():
    with pytest.raises(InputError, match="0 samples"):
        a_star(mixture(1), 0, SEED(0))
