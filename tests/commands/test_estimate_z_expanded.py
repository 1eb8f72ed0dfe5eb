import json
import math

import numpy as np
import pytest

import thesis_cli as tc
from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.commands.ln_z import baselines
from thesis_cli.models.factor_graph import Factor, FactorGraph

ASIA, ISING, ZIPF = (MODELS / n for n in ("asia.uai", "ising-4x4.uai", "zipf-1000.csv"))


def test_rows_say_what_each_number_is(cli):
    result = cli("estimate-z", ISING, "--method", "expanded", "--copies", 200, "--seed", 1, "--exact", "--json")
    found = json.loads(result.out)
    exact, maximum, mean_field, corollary = found["estimates"]
    assert maximum["kind"] == "epsilon 0, not proven to be a bound"
    assert (mean_field["kind"], mean_field["method"]) == ("lower bound", "mean field")
    assert corollary["kind"] == "lower bound with probability 95%, says nothing: below the certain one"
    assert mean_field["value"] < exact["value"] - 0.1
    epsilon = math.sqrt(math.pi**2 * (2**16 - 1) / (6 * 200 * 0.05))
    assert corollary["value"] == pytest.approx(maximum["value"] - 16 * epsilon)
    assert found["copies"].startswith("200 of each of 16 variables: ")
    assert f"eq. 20 needs epsilon {epsilon:.3g} at 95% and says nothing here" in found["meaning"]
    assert f"ln Z >= {mean_field['value']:.6g} for certain" in found["meaning"]


def test_the_statement_of_corollary_4_says_something_of_few_variables():
    """One uniform variable: epsilon^2 = pi^2 / (6 M (1 - confidence))."""
    graph = FactorGraph([2], [Factor((0,), np.zeros(2))])
    found = tc.estimate_z(graph, method="expanded", copies=10**6, confidence=0.9, seed=0)
    maximum, mean_field, corollary = found.estimates
    assert corollary.value == pytest.approx(maximum.value - math.pi / math.sqrt(6e5))
    assert found.copies == "1,000,000 of each of 1 variable: their maximum is proven"
    assert mean_field.value <= math.log(2) + 1e-12
    assert corollary.kind.startswith("lower bound with probability 90%")


def test_epsilon_beyond_a_double_is_told():
    graph = FactorGraph([2] * 4000, [])
    found = tc.estimate_z(graph, method="expanded", copies=2, seed=0)
    assert found.estimates[2].value == -math.inf
    assert "epsilon 4.66e+602 at 95% and says nothing here" in found.meaning
    assert found.to_dict()["estimates"][2]["value"] is None


def test_units_and_observed_variables():
    in_z = tc.estimate_z(ASIA, method="expanded", copies=50, seed=0, quantity="Z", evidence="6=0")
    in_log = tc.estimate_z(ASIA, method="expanded", copies=50, seed=0, evidence="6=0")
    assert in_log.copies.startswith("50 of each of 7 variables")
    assert math.log(in_z.estimates[1].value) == pytest.approx(in_log.estimates[1].value)


def test_long_work_is_told_before_it_starts(cli, monkeypatch):
    monkeypatch.setattr(baselines, "ANNOUNCED", 0.0)
    assert (
        "160 copies take about 0 s and 2.81 KiB" in cli("estimate-z", ISING, "--method", "expanded", "--copies", 10).err
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"copies": 10**9},
            "copies exceed --memory: 1,000,000,000 of each variable take 268 GiB; take --copies 7456540",
        ),
        ({"copies": 10, "quantity": "f"}, "--quantity f does not go with --method expanded"),
        ({"copies": 10, "samples": 5}, "--samples does not go with --method expanded"),
        ({"copies": 10, "uai": "a.PR"}, "--uai does not go with --method expanded"),
        ({"copies": 0}, "--copies is 0; it must be a whole number from 1 to"),
        ({"copies": 10, "method": "exact"}, "--copies does not go with --method exact; it is for expanded"),
        ({"model": ZIPF}, "--method expanded takes models with variables, not a vector; use full-rank"),
    ],
)
def test_refusals_are_one_line(options, message):
    with pytest.raises(InputError) as raised:
        tc.estimate_z(**{"model": ISING, "method": "expanded", **options})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
