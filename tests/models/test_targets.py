import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.models import target_kernels as kernels
from thesis_cli.models.proposals import REACH, Normal, Uniform
from thesis_cli.models.quadrature import log_densities
from thesis_cli.models.targets import (
    Mixture,
    Regression,
    compiled,
    load_regression,
    log_ratios,
    published_regression,
    split_dimension,
    tempered,
)


def regression(dimension, n=40, seed=0, **settings):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dimension))
    return Regression(x, x.sum(axis=1) + 0.5 * rng.standard_cauchy(n), **settings)


def mixture(dimension=2, proposal=None):
    rng = np.random.default_rng(dimension)
    means, scales = rng.normal(size=(3, dimension)), rng.uniform(0.1, 0.8, (3, dimension))
    return Mixture([1.0, 2.0, 0.5], means, scales, proposal or Normal(np.full(dimension, 0.3), np.full(dimension, 2.0)))


TARGETS = [
    regression(1),
    regression(2, 70, scale=0.5),
    regression(4),
    mixture(),
    mixture(3, Uniform(np.full(3, -4.0), np.full(3, 5.0))),
    tempered(regression(2), 0.3),
    tempered(mixture(2), 2.5),
    tempered(tempered(mixture(2), 0.5), 3.0),
]


@given(st.sampled_from(TARGETS), st.integers(0, 2**32), st.floats(-3, 1))
def test_bounds_hold_and_kernels_equal_the_reference(target, seed, size):
    rng = np.random.default_rng(seed)
    dimension = target.proposal.low.size
    low = np.clip(rng.normal(0, 2, dimension), target.proposal.low, target.proposal.high)
    high = np.minimum(low + 10**size * rng.random(dimension), target.proposal.high)
    arrays = compiled(target)
    level = target.bound(low, high)
    assert kernels.bound(arrays, low, high) == pytest.approx(level, rel=1e-11, abs=1e-11)
    points = low + rng.random((50, dimension)) * (high - low)
    ratios = [target.log_ratio(x) for x in points]
    np.testing.assert_allclose(log_ratios(target, points), ratios, rtol=1e-11, atol=1e-11)
    assert max(ratios) <= level + 1e-10 * (1 + abs(level))
    middle = (low + high) / 2
    assert target.bound(middle, middle) == pytest.approx(target.log_ratio(middle), rel=1e-11, abs=1e-11)
    u = rng.random(dimension)
    quantiles = [kernels.quantile(arrays, d, u[d], low[d], high[d]) for d in range(dimension)]
    np.testing.assert_allclose(quantiles, target.proposal.quantile(u, low, high), rtol=1e-13, atol=1e-14)
    halvings = rng.integers(0, 3, dimension)
    assert kernels.split_dimension(arrays, low, high, halvings) == split_dimension(target, low, high, halvings)


def test_bounds_tighten_with_the_square_of_the_sides():
    """Many points need few boxes; the gap of interval arithmetic alone is linear in the sides."""
    target, x = published_regression(), np.array([-0.03])
    gaps = [target.bound(x - h, x + h) - max(target.log_ratio(x - h), target.log_ratio(x + h)) for h in (0.01, 0.005)]
    assert 0 < gaps[1] < gaps[0] / 3


def test_a_product_of_residuals_does_not_overflow():
    y = np.array([1e150, 3.0, -1e80] * 400)
    target = Regression(np.ones(y.size), y)
    expected = -400 * (2 * math.log(1e150) + math.log1p(9) + 2 * math.log(1e80))
    assert log_ratios(target, np.zeros((1, 1)))[0] == pytest.approx(expected, rel=1e-14)
    assert kernels.bound(target.compiled, np.zeros(1), np.zeros(1)) == pytest.approx(expected, rel=1e-14)


def test_the_split_sees_modes_at_the_median_and_beside_it():
    """Halving across the long side shows no gain at once: the halves are mirror images."""
    one = Mixture([1.0], [[0.0, 0.0]], [[1.0, 0.1]], Normal(np.zeros(2), np.full(2, 2.0)))
    two = Mixture([1.0, 1.0], [[0.0, 1.0], [0.0, -1.0]], [[1.0, 0.1]] * 2, Normal(np.zeros(2), np.full(2, 2.0)))
    for target in (one, two):
        assert split_dimension(target, target.proposal.low, target.proposal.high, np.array([0, 5])) == 1


def test_quantiles_in_the_tails_are_exact():
    q = Normal(np.zeros(1), np.ones(1))
    wide = Mixture([1.0], [[0.0]], [[0.5]], q)
    p = 10.0 ** -np.arange(1, 300, 7.0)
    np.testing.assert_allclose([kernels.lower_quantile(v) for v in p], stats.norm.ppf(p), rtol=1e-14)
    for low, high in ((20.0, REACH), (-REACH, -20.0), (8.0, 8.001), (-1.0, 30.0)):
        a, b = np.array([low]), np.array([high])
        middle = q.quantile(np.array([0.5]), a, b)
        side = stats.norm.sf if low > 0 else stats.norm.cdf
        assert abs(side(low) - side(middle[0])) == pytest.approx(abs(side(middle[0]) - side(high)), rel=1e-9)
        assert kernels.quantile(compiled(wide), 0, 0.5, low, high) == pytest.approx(middle[0], rel=1e-14)


PROPOSALS = [Normal(np.array([1.0, 0.0]), np.array([2.0, 3.0])), Uniform(-np.full(2, 9.0), np.full(2, 9.0))]


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_a_mixture_has_the_density_of_its_components(proposal):
    rng = np.random.default_rng(0)
    weights, means, scales = rng.random(3), rng.normal(size=(3, 2)), rng.uniform(0.1, 0.8, (3, 2))
    points = rng.normal(size=(20, 2))
    each = stats.norm(means, scales).pdf(points[:, None]).prod(axis=2)
    np.testing.assert_allclose(log_densities(Mixture(weights, means, scales, proposal), points), np.log(each @ weights))


@pytest.mark.parametrize("alpha", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("proposal", PROPOSALS)
def test_tempering_multiplies_the_log_density(alpha, proposal):
    base = mixture(2, proposal)
    target = tempered(base, alpha)
    points = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(log_densities(target, points), alpha * log_densities(base, points), rtol=1e-11)
    assert (target is base) == (alpha == 1)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Regression([[1.0, math.nan]], [1.0]), "row 1"),
        (lambda: Regression(np.zeros((3, 5)), np.zeros(3)), "5 features"),
        (lambda: Regression([1.0, 2.0], [1.0]), "shape"),
        (lambda: Regression([], []), "shape"),
        (lambda: Regression([1.0], [1.0], prior_scale=0), "scale of a normal proposal is 0"),
        (lambda: Regression([1.0], [1.0], scale=-1), "noise is -1"),
        (lambda: Uniform(np.zeros(1), np.zeros(1)), "side of a uniform"),
        (lambda: Normal(np.array([math.inf]), np.ones(1)), "mean of a normal proposal is inf"),
        (lambda: Normal(np.zeros(5), np.ones(5)), "1 to 4"),
        (lambda: Mixture([1.0], [[0.0]], [[0.0]], Normal(np.zeros(1), np.ones(1))), "mixture"),
        (lambda: Mixture([1.0], [[0.0]], [[1.0]], Normal(np.zeros(1), np.ones(1))), "a wider proposal"),
        (lambda: tempered(regression(1), 0.0), "alpha is 0"),
    ],
)
def test_invalid_targets_are_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


@pytest.mark.parametrize(("x", "y"), [(1e17, 1.0), (1e300, 1.0), (1.0, 1e200)])
def test_data_beyond_floating_point_resolution_are_refused(x: float, y: float) -> None:
    with pytest.raises(InputError, match="noise of scale 1"):
        Regression([x, 1.0], [y, 1.0])


def test_proposals_take_lists() -> None:
    assert Uniform([0.0, 0.0], [1.0, 2.0]).log_density(np.array([0.5, 0.5])) == pytest.approx(-math.log(2))
    assert Normal([0.0], [1.0]).low == pytest.approx(-REACH)


@settings(max_examples=examples(15))
@given(st.integers(1, 4), st.integers(1, 20), st.booleans(), st.integers(0, 2**32))
def test_the_numbers_of_a_table_are_read(tmp_path_factory, dimension, n, heading, seed):
    values = np.random.default_rng(seed).normal(size=(n, dimension + 1))
    names = [*(f"a{d}" for d in range(dimension)), "z"]
    lines = [",".join(names)] * heading + [",".join(map(repr, row)) for row in values.tolist()]
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_text("\n".join(lines) + "\n\n")
    target = load_regression(path, prior_scale=3)
    np.testing.assert_array_equal(target.x, values[:, :-1])
    np.testing.assert_array_equal(target.y, values[:, -1])
    assert target.names == tuple(names[:-1] if heading else (f"x{d + 1}" for d in range(dimension)))
    assert (target.proposal.scale == 3).all()


def test_the_response_may_be_any_column_called_y(tmp_path):
    (tmp_path / "t.csv").write_text('"y", dose\n1,2\n3,4\n')
    target = load_regression(tmp_path / "t.csv")
    assert target.y.tolist() == [1, 3]
    assert target.names == ("dose",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no rows"),
        ("x,y\n", "has no rows"),
        ("x,y\n1,2\n1,nan\n", "t.csv:3: 'nan' is no finite number"),
        ("x,y\n1,inf\n", "t.csv:2: 'inf'"),
        ("x,y\n1,\n", "t.csv:2: ''"),
        ("1,2\n1,two\n", "t.csv:2: 'two'"),
        ("x,x\n1,2\n", "t.csv:1: two columns are named 'x'"),
        ("x,y\n1,2\n1,2,3\n", "t.csv:3: has 3 values"),
        ("1,2,3,4,5,6\n", "has 6 columns"),
        ("y\n1\n", "has 1 column;"),
    ],
)
def test_the_error_for_a_bad_table_is_one_line(tmp_path, text, complaint):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        load_regression(tmp_path / "t.csv")
    assert "\n" not in str(caught.value)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_regression(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text"):
        load_regression(tmp_path / "b.csv")


def test_features_that_overflow_are_refused(tmp_path):
    (tmp_path / "d.csv").write_text("x,y\n1.7e308,1\n")
    with pytest.raises(InputError, match="x is up to inf"):
        load_regression(tmp_path / "d.csv", prior_scale=10.0)
