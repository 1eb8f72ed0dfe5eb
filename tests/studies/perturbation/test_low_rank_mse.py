import math

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.studies.perturbation.low_rank_mse import mse_curve, sample_variance

ALPHAS = np.array([-0.05, 0.0, 0.3])


def plain_bound(values, terms, alpha):
    """Thesis eq. 2.8 for one repetition, term by term."""
    if alpha == 0:
        return sum(values) / len(values)
    mean = sum(math.exp(-alpha * u) for u in values) / len(values)
    return terms * (math.lgamma(1 + alpha) / alpha + np.euler_gamma) - math.log(mean) / alpha


def test_the_curve_is_that_of_plain_sums():
    values = np.random.default_rng(0).gumbel(2.0, 1.5, (7, 11))
    curve = mse_curve(values, 3, 1.25, ALPHAS)
    for a, alpha in enumerate(ALPHAS):
        estimates = [plain_bound(row, 3, alpha) for row in values]
        squares = [(u - 1.25) ** 2 for u in estimates]
        gumbel = [(plain_bound(row, 3, 0.0) - 1.25) ** 2 for row in values]
        ratio = sum(squares) / sum(gumbel)
        differences = [s - ratio * g for s, g in zip(squares, gumbel, strict=True)]
        assert curve.mean[a] == pytest.approx(np.mean(estimates))
        assert curve.mean_error[a] == pytest.approx(np.std(estimates, ddof=1) / math.sqrt(7))
        assert curve.variance[a] == pytest.approx(np.var(estimates, ddof=1))
        assert curve.mse[a] == pytest.approx(np.mean(squares))
        assert curve.mse_error[a] == pytest.approx(np.std(squares, ddof=1) / math.sqrt(7))
        assert curve.saving[a] == pytest.approx(1 - ratio)
        assert curve.saving_error[a] == pytest.approx(
            np.std(differences, ddof=1) / math.sqrt(7) / np.mean(gumbel), abs=1e-12
        )
    assert (curve.saving[1], curve.saving_error[1]) == (0, 0)


def test_standard_errors_are_the_spread_over_repeated_experiments():
    """The errors that curves state, against how 2,000 curves differ."""
    rng = np.random.default_rng(1)
    curves = [mse_curve(rng.gumbel(0.4, 1.0, (200, 10)), 1, 0.0, ALPHAS) for _ in range(2000)]
    for name in ("mean", "variance", "mse", "saving"):
        seen = np.array([getattr(c, name) for c in curves])
        stated = np.array([getattr(c, f"{name}_error") for c in curves])
        spread, spread_error = sample_variance(seen)
        mean_square = (stated**2).mean(axis=0)
        noise = np.hypot(spread_error, (stated**2).std(axis=0) / math.sqrt(len(curves)))
        assert (np.abs(mean_square - spread) <= 5 * noise).all(), name


def test_mse_is_squared_bias_and_variance():
    curve = mse_curve(np.random.default_rng(2).gumbel(1.0, 1.0, (50, 4)), 1, 3.0, ALPHAS)
    np.testing.assert_allclose(curve.mse, (curve.mean - 3.0) ** 2 + curve.variance * 49 / 50)


def test_the_variance_of_a_sample_and_its_error():
    values = np.random.default_rng(3).exponential(2.0, (100_000, 2))
    variance, error = sample_variance(values)
    np.testing.assert_allclose(variance, values.var(axis=0, ddof=1))
    assert (np.abs(variance - 4) < 5 * error).all()
    # an exponential's fourth central moment is 9 of its squared variance
    np.testing.assert_allclose(error, 4 * math.sqrt(8 / 100_000), rtol=0.2)


def test_a_constant_sample_has_no_variance():
    assert sample_variance(np.full(5, 0.1))[0] == pytest.approx(0, abs=1e-30)


@pytest.mark.parametrize(
    ("rows", "alphas", "message"), [(1, [0.0, 0.1], "1 repetitions"), (3, [-0.1, 0.1], "no alpha is 0")]
)
def test_what_makes_no_curve_is_refused(rows, alphas, message):
    with pytest.raises(InputError, match=message):
        mse_curve(np.ones((rows, 4)), 1, 0.0, np.array(alphas))
