"""Choices and comparisons from the table of the experiment on learning, by hand."""

import math

import pandas as pd
import pytest

from thesis_cli.studies.structured.learning_figure import by_fold, chosen, passes_until, standard_error


def losses(task, loss, numbers):
    """Rows of one method: {regularisation: [(validation, test), ...] by fold}."""
    facts = {"kind": "loss", "data": "d", "task": task, "method": "m", "decision": "map", "loss": loss}
    return pd.DataFrame(
        {**facts, "regularisation": weight, "fold": fold, "validation": validation, "test": test}
        for weight, folds in numbers.items()
        for fold, (validation, test) in reversed(list(enumerate(folds)))
    )


def test_the_best_validation_loss_is_chosen_whatever_the_test_loss():
    frame = losses("multilabel", "zero_one", {0.1: [(0.2, 0.1), (0.4, 0.2)], 0.01: [(0.1, 0.5), (0.3, 0.6)]})
    assert chosen(frame, "d", "m") == 0.01
    assert by_fold(frame, "d", "m").tolist() == [0.5, 0.6]
    assert chosen(frame, "d", "other") is None
    assert by_fold(frame, "d", "m", "marginal") is None


def test_the_largest_kendall_tau_is_the_best():
    frame = losses("ranking", "kendall_tau", {0.1: [(0.2, 0.1)], 0.01: [(0.1, 0.5)]})
    assert chosen(frame, "d", "m") == 0.1
    assert by_fold(frame, "d", "m").tolist() == [0.1]


def test_passes_until_a_share_is_left_are_counted_for_each_draw():
    rows = [(0, 1, 0.5), (0, 2, 0.1), (0, 4, 0.05), (1, 1, 0.1), (1, 2, 0.2), (2, 4, 0.3)]
    frame = pd.DataFrame(
        {"kind": "trace", "data": "d", "method": "m", "draw": draw, "passes": passes, "left": left}
        for draw, passes, left in rows
    )
    assert passes_until(frame, "m", 0.1) == {"d": [2, 1, math.inf]}
    assert passes_until(frame, "other", 0.1) == {}
    assert standard_error([1.0, 3.0]) == pytest.approx(1.0)
