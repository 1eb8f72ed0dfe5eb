"""How good predicted probabilities are, and what they are compared with."""

import numpy as np
import pytest

from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.training import metrics
from thesis_cli.synthesis.training.corpora import held_out


def test_average_precision_is_the_mean_precision_at_the_true_cases() -> None:
    rng = np.random.default_rng(1)
    scores, truth = rng.integers(0, 6, 40) / 6, rng.random(40) < 0.3
    expected = np.mean([truth[scores >= score].mean() for score in scores[truth]])
    assert metrics.average_precision(scores, truth) == pytest.approx(expected)
    assert metrics.average_precision(scores, np.zeros(40, dtype=bool)) is None


def test_a_perfect_and_a_useless_prediction() -> None:
    rng = np.random.default_rng(2)
    truth = rng.random((500, len(ATTRIBUTES))) < 0.2
    perfect = metrics.report(np.where(truth, 1 - 1e-6, 1e-6), truth)
    assert perfect["mean_average_precision"] == 1
    assert perfect["loss"] < 1e-3
    assert perfect["calibration_error"] < 1e-5
    useless = metrics.report(np.full(truth.shape, 0.7), truth)
    assert useless["calibration_error"] == pytest.approx(0.7 - truth.mean())
    assert useless["loss"] == pytest.approx(metrics.cross_entropy(np.full(len(ATTRIBUTES), 0.7), truth))


def test_the_baseline_by_types_counts_programs_of_equal_types() -> None:
    corpus = held_out(3)
    train, validation = corpus.subset(slice(200)), corpus.subset(slice(200, 300))
    train.test[:] = False
    known = [(sorted(task.inputs, key=str), task.output) for task in map(train.task, range(200))]
    probabilities = []
    for task in map(validation.task, range(100)):
        alike = [row for row in range(200) if known[row] == (sorted(task.inputs, key=str), task.output)]
        counted = train.attributes[alike or slice(None)]
        probabilities.append((counted.sum(axis=0) + 1) / (len(counted) + 2))
    found = metrics.baselines((train.types, train.attributes), (validation.types, validation.attributes))
    assert found["by_types"] == pytest.approx(metrics.cross_entropy(np.array(probabilities), validation.attributes))
    assert found["by_types"] < found["prior"]
