"""Rivals of perturb-and-MAP on a model with an exact answer."""

import math

import numpy as np
import pytest

from tests.conftest import MODELS
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.files import load_model
from thesis_cli.studies.perturbation.baselines import METHODS, BaselineAnswer, answers, summary

ISING = load_model(MODELS / "ising-4x4.uai")
SIZES = {"annealing": [2, 2], "thermodynamic": [2, 2]}


@pytest.mark.parametrize("name", [name for name in METHODS if name != "wish, banded"])
def test_every_method_answers(name):
    found, seconds = answers(name, ISING, SIZES.get(name, [2]), np.random.SeedSequence(0))
    assert found
    assert seconds >= 0
    log_z = exact_log_partition_function(ISING)[0]
    for answer in found:
        assert math.isfinite(answer.value)
        assert answer.low <= log_z <= answer.high
        assert (answer.map_calls > 0) == (name not in ("annealing", "thermodynamic", "trw", "bethe"))


def test_models_that_a_method_does_not_take_have_no_answer():
    asia = load_model(MODELS / "asia.uai")
    assert answers("frank-wolfe", asia, [2], np.random.SeedSequence(0))[0] == []


@pytest.mark.long
def test_banded_constraints_bound_from_below():
    (estimate, bound), _ = answers("wish, banded", ISING, [3], np.random.SeedSequence(0))
    assert (estimate.side, bound.side) == ("neither", "lower")
    assert bound.value == bound.low < exact_log_partition_function(ISING)[0]


def test_summaries_by_hand():
    runs = [BaselineAnswer("any", "lower", 1.0, low=1.0), BaselineAnswer("any", "lower", 4.0, low=4.0)]
    found = summary(runs, 2.0)
    assert found == pytest.approx(
        {
            "error": 0.5,
            "error_deviation": 1.5,
            "rms": math.sqrt(2.5),
            "rms_deviation": 1.5 / (2 * math.sqrt(2.5)),
            "ratio": (math.exp(-1) + math.exp(2)) / 2,
            "ratio_deviation": (math.exp(2) - math.exp(-1)) / 2,
            "outside": 0.5,
        }
    )
    assert summary(runs[:1], 1.0)["outside"] == summary(runs[:1], 1.0)["rms_deviation"] == 0
