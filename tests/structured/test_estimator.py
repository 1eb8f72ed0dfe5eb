"""The estimator with scikit-learn's own checks, and beside the commands."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import thesis_cli as tc
from tests.conftest import ROOT
from thesis_cli.base.errors import InputError

LABELS = ROOT / "data" / "labels"
IRIS = pd.read_csv(LABELS / "iris-ranking-train.csv")
SPECIES = ["setosa", "versicolor", "virginica"]


@parametrize_with_checks([tc.StructuredPredictor(interactions="none", regularisation=0.01, decision="marginal")])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_it_learns_what_the_command_learns():
    inputs, ranks = IRIS.drop(columns=SPECIES), IRIS[SPECIES]
    found = tc.StructuredPredictor("ranking").fit(inputs, ranks)
    trained = tc.structured_train(IRIS, task="ranking", labels=3)
    assert (found.regularisation_, found.labels_) == (trained.regularisation, tuple(SPECIES))
    np.testing.assert_array_equal(found.predictor_.parameters, trained.predictor.parameters)
    test = pd.read_csv(LABELS / "iris-ranking-test.csv")
    predicted = tc.structured_predict(test, weights=trained)
    np.testing.assert_array_equal(found.predict(test[inputs.columns]), predicted.table[SPECIES])
    assert found.score(test[inputs.columns], test[SPECIES]) == pytest.approx(predicted.losses["kendall_tau"][0])
    chances = found.predict_proba(test[inputs.columns])
    assert chances.shape == (50, 3, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(test[inputs.columns]), found.predict(test[inputs.columns]))


def test_the_best_structures_and_their_probabilities():
    found = tc.StructuredPredictor("ranking", interactions="none").fit(IRIS[["petal_width"]], IRIS[SPECIES])
    ranks, chances = found.predict_best(IRIS[["petal_width"]], 6)
    assert ranks.shape == (100, 6, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (np.diff(chances, axis=1) <= 0).all()
    np.testing.assert_array_equal(ranks[:, 0], found.predict(IRIS[["petal_width"]]))


def test_labels_of_any_two_values_and_inputs_of_any_kind():
    table = pd.DataFrame({"colour": ["red", "blue", None] * 20, "size": [1.0, 2, np.nan] * 20})
    y = np.where(np.array(table[["colour"]] == "red"), "yes", "no")
    y = np.hstack([y, np.full_like(y, "no")])
    found = tc.StructuredPredictor().fit(table, y)
    assert [two.tolist() for two in found.classes_] == [["no", "yes"], ["no"]]
    np.testing.assert_array_equal(found.predict(table), y)
    assert found.score(table, y) == 1
    assert found.n_features_in_ == 2
    with pytest.raises(InputError, match="label 'y0' has other values than"):
        found.score(table, np.where(y == "no", "never", "yes"))


def test_preferences_trees_and_parameters():
    x = np.linspace(-1, 1, 60)[:, None]
    y = np.where(x[:, 0] > 0, "a > b = c", "c > a")
    found = tc.StructuredPredictor("ranking", regularisation=0.01).fit(x, y)
    assert found.labels_ == ("a", "b", "c")
    assert found.score(x, y) > 0.9
    bits = np.stack([np.ones(60), x[:, 0] > 0, x[:, 0] > 0.5], axis=1)
    tree = tc.StructuredPredictor("hierarchy", parents=[-1, 0, 1], regularisation=1e-4).fit(x, bits)
    assert tree.score(x, bits) > 0.9
    copy = clone(tree)
    assert copy.get_params() == tree.get_params()
    search = GridSearchCV(copy, {"regularisation": [1e-4, 1e3]}, cv=3).fit(x[::-1][np.arange(60) * 7 % 60], bits)
    assert search.best_params_ == {"regularisation": 1e-4}
    with pytest.raises(InputError, match="Only binary classification is supported: label 'y0' has 3 values"):
        tc.StructuredPredictor().fit(x, np.arange(60) % 3)


@pytest.mark.parametrize("features", ["positions", "orders", "mallows", "plackett-luce"])
def test_rankings_known_in_part_are_learnt_from(features):
    x = np.linspace(-1, 1, 60)[:, None]
    y = np.where(x > 0, (1, 1, np.nan, 2), (2, 1, 1, np.nan))
    found = tc.StructuredPredictor("ranking", features=features, regularisation=0.01).fit(x, y)
    assert found.score(x, y) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"task": "rank"}, "task is 'rank'; it must be one of: multilabel, ranking, hierarchy"),
        ({"interactions": True}, "interactions is True; it must be one of: none, trees"),
        ({"unranked": "first"}, "unranked is 'first'"),
        ({"decision": "mean"}, "decision is 'mean'"),
        ({"regularisation": "best"}, "regularisation is 'best'; it must be auto, or a number above 0"),
        ({"regularisation": -1}, "the regularisation is -1; it must be positive"),
        ({"categories": ["y0"]}, "the category 'y0' is no input; "),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(InputError, match=message):
        tc.StructuredPredictor(**parameters).fit(np.ones((9, 1)), np.arange(9) % 2)


def test_counts_and_numbers_are_checked():
    x, y = np.linspace(0, 1, 9)[:, None], np.arange(9) % 2
    found = tc.StructuredPredictor(regularisation=0.01).fit(x, y)
    for count in (0, 1.5):
        with pytest.raises(InputError, match="it must be a whole number, 1 or more"):
            found.predict_best(x, count)
    with pytest.raises(InputError, match=r"X has the number 1e\+150; it must be a number, at most 1e\+100"):
        found.predict(np.full((1, 1), 1e150))
