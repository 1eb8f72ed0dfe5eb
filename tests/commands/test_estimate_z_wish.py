import json
import math

import pytest

import thesis_cli as tc
from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.inference.parity import ends as parity_ends
from thesis_cli.models.factor_graph import FactorGraph

ASIA, ISING, ZIPF = (MODELS / n for n in ("asia.uai", "ising-4x4.uai", "zipf-1000.csv"))


def test_rows_say_what_each_number_is(cli):
    result = cli("estimate-z", ISING, "--method", "wish", "--samples", 30, "--seed", 1, "--exact", "--json")
    found = json.loads(result.out)
    exact, wish = found["estimates"]
    assert wish["low"] < exact["value"] < wish["high"]
    assert wish["kind"] == "within a factor of 16 with probability 95%"
    assert wish["map_calls"] == 30 * 16 + 1
    assert found["meaning"] == "ln Z is in the interval with probability 95% at least"


def test_few_samples_are_told_how_many_promise_a_factor_of_16():
    found = tc.estimate_z(ASIA, method="wish", samples=1, seed=1)
    assert found.meaning.endswith("; 23 samples promise a factor of 16 beforehand")


def test_an_estimate_outside_of_its_interval_is_not_to_be_believed():
    """Ranks are powers of 2, so that 12 configurations count as 16."""
    found = tc.estimate_z(FactorGraph([2, 3, 2], []), method="wish", samples=100, seed=0)
    assert found.estimate.value == pytest.approx(math.log(16))
    assert found.estimate.high == pytest.approx(math.log(12))
    assert found.meaning.endswith("; the estimate of Algorithm 1 is outside of it; believe the interval")


def test_vectors_and_units():
    in_z = tc.estimate_z(ZIPF, method="wish", samples=50, seed=0, quantity="Z")
    in_log = tc.estimate_z(ZIPF, method="wish", samples=50, seed=0)
    assert math.log(in_z.estimate.value) == pytest.approx(in_log.estimate.value)
    assert math.log(in_z.estimate.high) == pytest.approx(in_log.estimate.high)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantity": "f"}, "--quantity f does not go with --method wish"),
        ({"copies": 10}, "--copies does not go with --method wish; it is for expanded"),
        ({"trick": "gumbel"}, "--trick does not go with --method wish; it is for full-rank"),
        ({"samples": 0}, "--samples is 0; add --exact"),
        ({"model": ZIPF, "max_configurations": 100}, "more than --max-configurations 100"),
    ],
)
def test_refusals_are_one_line(options, message):
    with pytest.raises(InputError) as raised:
        tc.estimate_z(**{"model": ISING, "method": "wish", **options})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_models_that_are_not_enumerated_keep_their_interval():
    found = tc.estimate_z(ISING, method="wish", samples=25, seed=1, max_configurations=100, exact=True)
    exact, estimate = found.estimates
    assert estimate.low < exact.value < estimate.high < estimate.low + 4
    assert estimate.kind == "within a factor of 32 with probability 95%"


def test_larger_models_get_a_lower_bound(monkeypatch):
    monkeypatch.setattr(parity_ends, "GAP", -1)
    options = {"samples": 5, "seed": 1, "max_configurations": 100, "time_limit": 1.0, "exact": True}
    found = tc.estimate_z(ISING, method="wish", **options)
    exact, estimate, bound = found.estimates
    assert bound.kind == "lower bound with probability 95%"
    assert bound.value == estimate.low < exact.value
    assert found.meaning == f"ln Z >= {bound.value:.6g} with probability 95% at least; no more is known"
