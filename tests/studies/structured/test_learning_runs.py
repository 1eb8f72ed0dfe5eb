"""Rivals of structured predictors, and what the experiment on learning measures, on data of a few rows."""

import math

import numpy as np
import pytest

from thesis_cli.structured.learn import Problem, fit
from thesis_cli.structured.online import TrainingPace
from thesis_cli.structured.tasks import Task
from thesis_cli.studies.structured.datasets import NAMES, Dataset, dataset, folds
from thesis_cli.studies.structured.learning_runs import (
    BASELINES,
    EXACT,
    NORMALISED,
    ONLINE,
    bit_chances,
    fit_facts,
    logistic,
    losses_of_fold,
    normalised_fold,
    pairwise,
    problem_of,
    regression,
    splits,
    traces,
)

RANKING = Task("ranking", ("a", "b", "c"), "positions")


def separable(count=60):
    """Items whose order is that of x and two constants, and inputs x, 1."""
    x = np.random.default_rng(0).uniform(-2, 2, count)
    scores = np.column_stack([x, np.full(count, -0.7), np.full(count, 0.7)])
    positions = np.argsort(np.argsort(scores, axis=1), axis=1)
    return Dataset("made", RANKING, x[:, None], ("x",), positions)


@pytest.mark.parametrize("name", NAMES)
def test_data_sets_are_observations_of_structures(name):
    data = dataset(name)
    assert data.inputs.shape == (len(data.structures), len(data.input_names))
    data.task.space.check(data.structures)
    assert len(np.unique(data.structures, axis=0)) > 1


def test_folds_are_disjoint_and_whole():
    parts = folds(17, 5, np.random.default_rng(0))
    assert sorted(np.concatenate(parts).tolist()) == list(range(17))
    assert {len(part) for part in parts} == {3, 4}
    for split in splits(17, 5, np.random.default_rng(0)):
        whole = np.concatenate([split.train, split.validation, split.test])
        assert sorted(whole.tolist()) == list(range(17))


@pytest.mark.parametrize("learn", [pairwise, regression])
def test_rankings_that_inputs_determine_are_learnt(learn):
    data = separable()
    problem = problem_of(data, RANKING, np.arange(60), 1e-4)
    found = learn(RANKING, problem)(problem.inputs)
    assert (found == data.structures).all(axis=1).mean() > 0.85


def test_logistic_regression_has_the_same_objective():
    data = separable()
    problem = problem_of(data, RANKING, np.arange(60), 0.01)
    bits = (data.structures[:, 0] == 0).astype(np.int64)
    found = logistic(problem, bits)
    chances = found.predict_proba(problem.inputs)[:, 1]
    gradient = problem.inputs.T @ (chances - bits) / 60 + 2 * 0.01 * found.coef_[0]
    np.testing.assert_allclose(gradient, 0, atol=1e-5)


def test_constant_bits_and_unseen_parents_stay():
    task = Task("hierarchy", ("r", "a", "b"), "nodes", (-1, 0, 1))
    structures = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0]])
    problem = Problem(task.space, np.array([[-1.0], [1.0], [2.0]]), structures, 0.01)
    chances = bit_chances(problem)(problem.inputs)
    assert chances[:, 0].tolist() == [1, 1, 1]
    assert chances[:, 2].tolist() == [0, 0, 0]
    for baseline in BASELINES["hierarchy"]:
        task.space.check(baseline.learn(task, problem)(np.array([[-5.0], [0.0], [5.0]])))


def test_rows_of_a_fold_have_every_method_and_loss():
    data, (split, *_) = separable(), splits(60, 3, np.random.default_rng(0))
    rows = [*losses_of_fold(data, split, [0.01], 1e-6), *normalised_fold(data, split)]
    found = {(row["method"], row["decision"], row["loss"]) for row in rows if row["kind"] == "loss"}
    methods = {("positions", "map"), ("orders", "marginal"), ("pairwise comparison", "map"), (NORMALISED, "map")}
    assert {(*one, loss) for one in methods for loss in ("zero_one", "kendall_tau")} <= found
    assert len(found) == 2 * (3 * 2 + 2 + 1)
    ours = next(row for row in rows if row["kind"] == "loss" and row["method"] == "positions")
    assert 0 <= ours["test"] < 0.3
    normalised = next(row for row in rows if row["kind"] == "fit" and row["method"] == NORMALISED)
    assert normalised["radius"] == pytest.approx(1)
    assert normalised["regularisation"] == pytest.approx(math.log(6))
    assert normalised["norm"] <= normalised["bound_gradient"] < 1


def test_proposals_of_meta_are_counted_by_enumeration():
    data = separable()
    problem = problem_of(data, RANKING, np.arange(60), 0.1)
    found = fit(problem)
    rows = np.concatenate(list(problem.space.blocks()))
    scores = problem.space.features(rows) @ (problem.inputs @ found.parameters).T
    steps = len(rows) * np.exp(scores.max(axis=0)) / np.exp(scores).sum(axis=0)
    facts = fit_facts(problem, found)
    assert math.exp(facts["log_steps"]) == pytest.approx(steps.mean())
    assert facts["log_steps"] <= facts["log_bound"] == 2 * problem.radius * facts["norm"]


def test_traces_fall_from_one():
    problem = problem_of(separable(), RANKING, np.arange(60), 0.1)
    rows = list(traces(problem, TrainingPace(passes=8, batch=10), [1, 2]))
    exact = [row["left"] for row in rows if row["method"] == EXACT]
    assert exact[0] == pytest.approx(1)
    assert len(exact) <= 8
    assert exact[-1] < 0.01
    for method in ONLINE.values():
        for draw in (0, 1):
            left = [row["left"] for row in rows if row["method"] == method and row["draw"] == draw]
            assert len(left) == 6
            assert left[-1] < min(left[0], 0.1)
