"""Conditioning against conjugate posteriors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from thesis_cli.embeddings.expansion import Expansion
from thesis_cli.semantics.composition import compose
from thesis_cli.semantics.conditioning import RIDGES, LowRank, _Ridge, conditional_weights, monotone
from thesis_cli.semantics.denotation import Settings
from thesis_cli.semantics.parser import parse

SIZE = Settings(size=60)


@pytest.mark.parametrize(
    ("text", "mean", "variance"),
    [
        ("let x = normal(0, 1) given normal(x, 0.5) == 1.2 in x", 0.96, 0.2),
        ("let x = normal(0, 1), y = normal(x, 1) given y == 1 in x", 0.5, 0.5),
        ("let m = normal(0, 2) given normal(m, 1) == 1, normal(m, 1) == 3 in m", 16 / 9, 4 / 9),
        ("let x = normal(0, 1), y = normal(0, 1) given x + y == 2 in x", 1, 0.5),
        ("let p = uniform(0, 1) given bernoulli(p) == 1, bernoulli(p) == 1, bernoulli(p) == 0 in p", 0.6, 0.04),
        ("let p = uniform(0, 1) given bernoulli(p) == 1 in bernoulli(p)", 2 / 3, 2 / 9),
        ("let t = 2 in let x = normal(0, 1) given normal(x, 1) == t in x", 1, 0.5),
    ],
)
def test_observed_values(text, mean, variance):
    """Conditional mean embeddings of expansions by cells are accurate to a few percent at this size."""
    found = compose(parse(text), SIZE).expansion
    assert abs(found.mean() - mean) < 0.05 * math.sqrt(variance)
    assert found.var() == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("let p = uniform(0, 1) given bernoulli(p) > 0, not bernoulli(p) > 0 in p", 0.5),
        ("let p = uniform(0, 1) given p < 0.5 in p", 0.25),
        ("let x = categorical(0.2, 0.3, 0.5) given x > 0 in x", 13 / 8),
        ("let x = bernoulli(0.5), y = bernoulli(0.5) given x + y > 0 in x + y", 4 / 3),
    ],
)
def test_events_are_exact(text, mean):
    assert compose(parse(text), SIZE).expansion.mean() == pytest.approx(mean, rel=5e-3)


def test_random_rows():
    """A joint sample, not a grid: within 5 standard errors of an oracle with that many rows nearby."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    y = x + 0.5 * rng.normal(size=2000)
    weights = conditional_weights(np.full(2000, 1 / 2000), y[:, np.newaxis], np.array([1.0]), x[:, np.newaxis])
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    deviation = math.sqrt(0.2 * (weights**2).sum())
    assert abs(weights @ x - 0.8) < 5 * deviation
    assert deviation < 0.1


def test_features_of_full_rank_have_the_products_of_a_gaussian_kernel():
    points, width = np.random.default_rng(2).normal(size=(7, 2)), 0.7
    kernel = np.exp(-((points[:, None] - points) ** 2).sum(axis=2) / (2 * width**2))
    found = LowRank.of(points[:6], width, 6)
    assert found.features @ found.features.T == pytest.approx(kernel[:6, :6])
    assert found.features @ found.at(points[6]) == pytest.approx(kernel[:6, 6])


def test_errors_on_rows_left_out_are_those_of_fits_without_each_row():
    """By weighted least squares with an intercept, which has no ridge."""
    rng = np.random.default_rng(1)
    weights, y, targets = rng.dirichlet(np.ones(12)), rng.normal(size=(12, 1)), rng.normal(size=(12, 2))
    fitted = _Ridge.of(weights, y, 0.5)
    features = np.column_stack([np.ones(12), fitted.features.features])
    for ridge, error in zip(RIDGES, fitted.errors(targets - weights @ targets), strict=True):
        penalty = ridge * fitted.values[-1] * np.diag([0.0] + [1.0] * (features.shape[1] - 1))
        squares = []
        for i, kept in enumerate(~np.eye(12, dtype=bool)):
            scaled = features[kept].T * weights[kept]
            fit = np.linalg.solve(scaled @ features[kept] + penalty, scaled @ targets[kept])
            squares.append(((targets[i] - features[i] @ fit) ** 2).sum())
        assert error == pytest.approx(weights @ squares)


def test_no_row_near_the_observed_value():
    rows = np.arange(10.0)[:, np.newaxis]
    assert conditional_weights(np.full(10, 0.1), rows, np.array([40.0]), rows) is None


def test_a_constant_observation_changes_nothing():
    rows = np.ones((5, 1))
    weights = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    assert conditional_weights(weights, rows, np.array([1.0]), np.arange(5.0)[:, np.newaxis]) == pytest.approx(weights)


def test_the_nearest_distribution():
    """Its distribution function is monotone; here the mean stays."""
    given = Expansion(np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.5, -0.2, 0.4, 0.3]))
    found = monotone(given)
    assert found.is_distribution()
    assert found.mean() == pytest.approx(given.mean())
    kept = Expansion(np.array([0.0, 1.0]), np.array([0.25, 0.75]))
    assert monotone(kept).weights == pytest.approx(kept.weights)
    assert monotone(Expansion(np.array([3.0]), np.array([0.5]))).weights.tolist() == [0.5]
