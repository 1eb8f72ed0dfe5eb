"""With one variable, or independent ones, every bound of section 2.3 is ln Z."""

import math

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, softmax

from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.studies.perturbation import statements

ONE = np.array([0.3, -1.0, 1.5, 0.9])
OTHER = np.array([-2.0, 1.0, 0.5, 3.0])
INDEPENDENT = ONE[:3, None] + np.array([0.2, -0.7])


def near(rows, quantity, expected):
    found = [(value, error) for name, _, _, value, error in rows if name == quantity]
    values, errors = (np.array(column) for column in zip(*found, strict=True))
    assert (np.abs(values - expected) <= 5 * errors + 1e-9).all(), (values, expected, errors)
    return errors


@pytest.mark.parametrize("alpha", [-0.8, -0.3, 0.0, 1.0])
@pytest.mark.parametrize("phi", [ONE, INDEPENDENT])
def test_bounds_without_dependence_are_ln_z(phi, alpha):
    value, error = statements.bound(phi, alpha, 4000, np.random.default_rng(5))
    assert value == pytest.approx(logsumexp(phi), abs=5 * error)
    assert 0.003 < error < 0.1


def test_tilted_noise_and_sample_means_give_the_same_bound_of_dependent_variables():
    phi, rng = np.where(np.eye(2) == 1, 0.0, -np.inf), np.random.default_rng(1)
    tilted, tilted_error = statements.bound(phi, -0.4, 20_000, rng)
    (plain,), (error,) = power_bounds(statements.maxima(phi, 40_000, rng), 2, np.array([-0.4]))
    assert tilted == pytest.approx(plain, abs=5 * math.hypot(error, tilted_error))
    assert tilted > math.log(2) + 5 * tilted_error


def test_statements_about_one_variable():
    rng = np.random.default_rng(2)
    for quantity in ("U limit at 0", "L limit at 0"):
        near(statements.limit_rows(ONE, 3000, rng), quantity, 0)
    lower = list(statements.lower_rows(ONE, 3000, rng))
    near(lower, "L", 0)
    near(lower, "Proposition 15", -gammaln(1 + statements.TILTED) / statements.TILTED - np.euler_gamma)
    shares = np.array([0.25, 0.5, 0.75])
    middle = [logsumexp(s * ONE + (1 - s) * OTHER) for s in shares]
    gaps = shares * logsumexp(ONE) + (1 - shares) * logsumexp(OTHER) - middle
    convexity = list(statements.convexity_rows(ONE, OTHER, 3000, rng))
    near(convexity, "L convexity", gaps)
    near(convexity, "U convexity", gaps)
    derivatives = list(statements.derivative_rows(ONE, 3000, rng))
    near(derivatives, "derivative", softmax(ONE))
    assert near(derivatives, "probability", softmax(ONE)).max() < 0.02


def test_clamping_and_noise_on_subsets_of_independent_variables():
    rng = np.random.default_rng(3)
    lemma = list(statements.lemma_rows(INDEPENDENT, 2000, rng))
    near(lemma, "lemma", 0)
    assert {(alpha, held) for _, alpha, held, _, _ in lemma} == {(a, j) for a in statements.CLAMPED for j in (0, 1)}
    rows = list(statements.subset_rows(INDEPENDENT, 2000, 5, rng))
    singles = [float(logsumexp(INDEPENDENT.max(axis=axis)) - logsumexp(INDEPENDENT)) for axis in (0, 1)]
    for value, error in [(v, e) for _, _, size, v, e in rows if size == 1]:
        assert min(abs(value - s) / error for s in singles) < 5
    near([row for row in rows if row[2] == 2], "subset", 0)


def test_a_maximiser_changes_in_proportion_to_a_small_change():
    rows = list(statements.continuity_rows(INDEPENDENT, 20_000, np.random.default_rng(4)))
    large, middle, small = (value for _, _, _, value, _ in rows)
    assert 0.005 < large < 0.1
    assert 0.05 < middle / large < 0.2
    assert small < middle / 3
