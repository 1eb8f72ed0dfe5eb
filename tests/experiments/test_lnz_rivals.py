"""Rivals of perturb-and-MAP at sizes with exact answers."""

import math

import pytest

from tests.conftest import MODELS
from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.inference.message_passing.trw import trw_log_partition_function
from thesis_cli.models.files import load_model

NAME = "ising-4x4.uai"


def test_claims_read_small_results():
    methods = {
        "unary": [[3]],
        "average": [[3]],
        "frank-wolfe": [[3], [6]],
        "annealing": [[3, 5]],
        "trw": [[]],
        "wish": [[2]],
    }
    found = whole("lnz-rivals", models=["mixed 3", NAME, "asia.uai"], methods=methods, runs=2)
    assert set(found.method) >= {"unary noise", "annealing", "annealing, below", "WISH"}
    assert set(rows(found, method="Frank-Wolfe").model) == {"mixed 3", NAME}  # asia has a factor of three variables


def test_numbers_are_distances_from_the_exact_answer():
    found = one(run("lnz-rivals", model=NAME, method="trw", sizes=[[]], runs=7))
    bound = trw_log_partition_function(load_model(MODELS / NAME)).value - found.log_z
    assert (found.error, found.rms, found.runs) == pytest.approx((bound, bound, 1))
    assert found.ratio == pytest.approx(math.exp(bound))
    assert (found.error_deviation, found.outside) == (0, 0)


def test_sampled_numbers_have_the_errors_of_their_means():
    found = run("lnz-rivals", model=NAME, method="annealing", sizes=[[20, 60]], runs=12)
    estimate, bound = (one(found, method=name) for name in ("annealing", "annealing, below"))
    assert_near(estimate.ratio, estimate.ratio_deviation, 1.0)
    assert bound.error < estimate.error
    assert estimate.rms >= abs(estimate.error)
    assert bound.outside <= 0.2
    assert (found.map_calls == 0).all()
