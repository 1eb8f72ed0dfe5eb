"""MAP estimation against closed forms, scikit-learn, finite differences and its own certificate."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from thesis_cli.base.errors import InputError
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.learn import TOLERANCE, Problem, fit
from thesis_cli.structured.meta import Coupled, Direct
from thesis_cli.structured.online import TrainingPace, fit_online, sampled_gradient, smoothness

SPACES = [
    ("hypercube", 3, "pairs", None),
    ("permutations", 3, "positions", None),
    ("permutations", 4, "orders", None),
    ("subtrees", 4, "nodes", (-1, 0, 0, 2)),
]


def problem(name="permutations", elements=3, features="ranks", parents=None, count=12, regularisation=0.05):
    found = space(name, elements, features, parents)
    rng = np.random.default_rng(3)
    inputs = np.column_stack([rng.normal(size=(count, 2)), np.ones(count)])
    return Problem(found, inputs, found.sample(count, rng), regularisation)


@pytest.mark.parametrize("case", SPACES, ids=lambda case: f"{case[0]}-{case[2]}")
def test_gradients_are_differences_of_the_objective(case):
    one = problem(*case)
    at, way = np.random.default_rng(1).normal(size=(2, *one.shape))
    step = 1e-6
    difference = (one.objective(at + step * way) - one.objective(at - step * way)) / (2 * step)
    assert np.sum(one.gradient(at) * way) == pytest.approx(difference, rel=1e-6)


def test_without_interactions_it_is_logistic_regression_for_each_label():
    one = problem("hypercube", 2, "linear", count=40, regularisation=0.02)
    found = fit(one)
    strength = 1 / (2 * one.regularisation * len(one.inputs))
    for label in range(2):
        other = LogisticRegression(C=strength, fit_intercept=False, tol=1e-12, max_iter=1000)
        other.fit(one.inputs, one.structures[:, label])
        np.testing.assert_allclose(found.parameters[:, label], other.coef_[0], atol=2e-5)


def test_the_certificate_bounds_the_distance_to_the_minimum():
    one = problem()
    best = fit(one)
    assert best.excess <= 1e-9
    assert best.trace["objective"][0] == pytest.approx(math.log(6))
    for iterations in (0, 1, 3):
        early = fit(one, iterations)
        assert early.objective - best.objective <= early.excess
        assert len(early.trace["iteration"]) == iterations + 1
    rough = fit(one, tolerance=0.01)
    assert TOLERANCE < rough.excess <= 0.01
    again = fit(one, start=best.parameters)
    assert len(again.trace["iteration"]) == 1


@pytest.mark.parametrize("regularisation", [1e-4, 0.1, 10.0])
def test_norms_are_below_both_bounds(regularisation):
    one = problem(regularisation=regularisation)
    norm = np.linalg.norm(fit(one).parameters)
    first, second = one.norm_bounds()
    assert first == pytest.approx(math.sqrt(math.log(6) / regularisation))
    assert 0 < norm <= min(first, second)


def test_the_radius_bounds_all_joint_features():
    one = problem()
    everyone = np.concatenate(list(one.space.blocks()))
    norms = np.linalg.norm(one.inputs, axis=1).max() * np.linalg.norm(one.space.features(everyone), axis=1).max()
    assert one.radius == pytest.approx(norms)


@pytest.mark.parametrize("sampler", [Direct(), Coupled()], ids=["direct", "coupled"])
def test_sampled_gradients_are_unbiased(sampler):
    one = problem()
    at = np.random.default_rng(1).normal(size=one.shape)
    rows, rng = np.arange(len(one.inputs)), np.random.default_rng(0)
    found = np.array([sampled_gradient(one, at, rows, 2, sampler, rng)[0] for _ in range(100)])
    errors = found.std(axis=0) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - one.gradient(at)) < 5 * errors).all()


def test_sampled_gradients_come_near_the_minimum_and_more_passes_nearer():
    one, seen = problem(regularisation=0.2), []
    best = fit(one).objective
    found = fit_online(one, TrainingPace(60, 4, 1), seed=0, seen=seen.append)
    assert [state.done for state in seen] == list(range(1, 61))
    np.testing.assert_array_equal(seen[-1].mean, found.parameters)
    excess = [one.objective(state.mean) - best for state in seen]
    assert 0 <= excess[-1] < 0.005 < excess[0]
    assert found.objective == pytest.approx(excess[-1] + best)
    assert found.excess >= excess[-1]
    assert list(found.trace["samples"])[-1] == 60 * 12
    again = fit_online(one, TrainingPace(60, 4, 1), seed=0, start=seen[40])
    np.testing.assert_array_equal(again.parameters, found.parameters)


def test_steps_shrink_and_later_ones_weigh_more(monkeypatch):
    one = problem(regularisation=0.2)
    push = np.full(one.shape, 0.01)
    monkeypatch.setattr("thesis_cli.structured.online.sampled_gradient", lambda *_: (push, 0))
    found = fit_online(one, TrainingPace(passes=2, batch=4), seed=0)
    curvature = smoothness(one, np.random.default_rng([0, 0]))
    ways = np.cumsum([1 / (0.2 * step + curvature) for step in range(1, 7)])
    expected = -push * np.average(ways, weights=range(1, 7))
    np.testing.assert_allclose(found.parameters, expected)


def test_smoothness_is_the_curvature_at_zero():
    one, rng = problem("hypercube", 3, "linear"), np.random.default_rng(0)
    expected = 2 * one.regularisation + np.linalg.eigvalsh(one.inputs.T @ one.inputs / len(one.inputs)).max() / 4
    assert smoothness(one, rng) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    ("inputs", "structures", "regularisation", "message"),
    [
        (np.ones(3), [[0, 1]] * 3, 1.0, "a row of numbers an observation"),
        (np.ones((0, 2)), [[0, 1]], 1.0, "a row of numbers an observation"),
        (np.ones((3, 1)), [[0, 1]] * 2, 1.0, "3 inputs and 2 structures"),
        (np.array([[1.0], [math.nan]]), [[0, 1]] * 2, 1.0, "input 2 has a number that is not finite"),
        (np.ones((1, 1)), [[0, 1]], 0.0, "must be positive"),
        (np.ones((1, 1)), [[0, 1]], math.nan, "must be positive"),
        (np.ones((1, 1)), [[0, 2]], 1.0, "is not in the space"),
    ],
)
def test_bad_problems_are_refused(inputs, structures, regularisation, message):
    with pytest.raises(InputError, match=message):
        Problem(space("hypercube", 2), inputs, np.array(structures), regularisation)
