import json
import math

import numpy as np
import pytest

import thesis_cli as tc
from tests.conftest import MODELS
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.files import load_model

ASIA, ISING, ZIPF = (MODELS / n for n in ("asia.uai", "ising-4x4.uai", "zipf-1000.csv"))


def test_rows_of_frank_wolfe(cli):
    result = cli("estimate-z", ISING, "--method", "frank-wolfe", "--map-calls", 30, "--exact", "--json")
    found = json.loads(result.out)
    exact, upper = found["estimates"]
    assert (upper["kind"], upper["map_calls"]) == ("upper bound", 30)
    assert exact["value"] < upper["value"] < exact["value"] + 3
    assert found["meaning"].startswith(f"ln Z <= {upper['value']:.6g} for certain; the objective is ")


def test_steps_and_entropies_are_heeded():
    bounds = {
        steps: tc.estimate_z(ISING, method="frank-wolfe", map_calls=25, steps=steps).estimate.value
        for steps in ("corrective", "pairwise", "plain")
    }
    assert len(set(bounds.values())) == 3
    bethe = tc.estimate_z(ISING, method="frank-wolfe", map_calls=5, entropy="bethe")
    assert bethe.estimate.kind.startswith("approximation, not converged, gap ")
    assert "its error is not known" in bethe.meaning


def test_approximate_maxima_make_no_bound(monkeypatch):
    from thesis_cli.inference.message_passing.belief_propagation import MaxProduct
    from thesis_cli.inference.variational import frank_wolfe

    monkeypatch.setattr(frank_wolfe, "map_solver", lambda graph, memory: (MaxProduct(graph), ""))
    found = tc.estimate_z(ISING, method="frank-wolfe", map_calls=2)
    assert found.estimate.kind == "no bound, since MAP is approximate"
    assert "if each MAP was right" in found.meaning


def test_rows_of_annealing(cli):
    sizes = "--chains", 50, "--temperatures", 100
    result = cli("estimate-z", ASIA, "--method", "ais", *sizes, "--reverse", "--seed", 1, "--exact", "--json")
    found = json.loads(result.out)
    exact, estimate, lower, upper = found["estimates"]
    assert estimate["kind"] == "Z unbiased"
    assert abs(estimate["value"] - exact["value"]) < 5 * estimate["standard_error"]
    assert lower["kind"] == "lower bound with probability 95%"
    assert upper["kind"] == "upper bound with probability 95%"
    assert lower["value"] < exact["value"] < upper["value"] < exact["value"] + 3
    assert "however badly the chains mix" in found["meaning"]
    assert found["meaning"].endswith(" effective chains of 50")


def test_rows_of_coupling(cli):
    """The bound comes close where chains from all configurations meet, and models with zeros are refused by name."""
    result = cli("estimate-z", ISING, "--method", "coupling", "--chains", 40, "--seed", 1, "--exact", "--json")
    exact, upper = json.loads(result.out)["estimates"]
    assert upper["kind"] == "upper bound with probability 95%"
    assert exact["value"] < upper["value"] < exact["value"] + 0.5
    refused = cli("estimate-z", ASIA, "--method", "coupling")
    assert refused.status == 2
    assert "coupling needs a model without zeros; take --method ais" in refused.err


def test_evidence_and_units_of_annealing():
    """Reverse chains start in samples that are numbered as without evidence."""
    how = {"method": "ais", "chains": 200, "temperatures": 60, "seed": 2, "evidence": "6=1"}
    in_log, in_z = tc.estimate_z(ASIA, reverse=True, **how), tc.estimate_z(ASIA, quantity="Z", **how)
    exact = tc.estimate_z(ASIA, method="exact", evidence="6=1").estimate.value
    estimate, lower, upper = in_log.estimates
    assert lower.value < exact < upper.value < exact + 2
    assert math.log(in_z.estimate.value) == pytest.approx(estimate.value)


def test_few_effective_chains_give_no_standard_error():
    rng = np.random.default_rng(0)
    factors = [Factor((i, i + 1), rng.normal(0, 8, (3, 3))) for i in range(11)]
    found = tc.estimate_z(FactorGraph([3] * 12, factors), method="ais", chains=20, temperatures=2, seed=0)
    assert "but only 1 effective chain" in found.estimate.kind
    assert (found.estimate.standard_error, found.estimate.high) == (math.inf, math.inf)
    assert found.estimate.low == found.estimates[1].value


def test_rows_of_the_integral():
    found = tc.estimate_z(ISING, method="thermodynamic", chains=20, temperatures=30, sweeps=6, seed=1)
    exact = exact_log_partition_function(load_model(ISING))[0]
    assert abs(found.estimate.value - exact) < 5 * found.estimate.standard_error
    assert found.estimate.kind == "consistent if the chains mix"
    assert found.meaning.startswith("nothing is proven; in equilibrium ln Z is between ")


def test_chains_that_find_nothing_possible():
    """Two variables that must be 0 and 1, and 1 at the first."""
    forced = np.array([[-np.inf, 0.0], [-np.inf, -np.inf]])
    graph = FactorGraph([2, 2], [Factor((0, 1), forced), Factor((0,), np.array([-np.inf, 0.0]))])
    found = tc.estimate_z(graph, method="ais", chains=5, temperatures=5, seed=0)
    estimate, lower = found.estimates
    assert (estimate.value, lower.value, estimate.high) == (-math.inf, -math.inf, math.inf)
    assert estimate.kind.endswith("only 0 effective chains")
    with pytest.raises(WorkFailed, match="no chain ended in a possible configuration"):
        tc.estimate_z(graph, method="thermodynamic", chains=5, temperatures=5, seed=0)


def test_potentials_beyond_sums_are_refused():
    graph = FactorGraph([2, 2], [Factor((0, 1), np.diag([1e200, 0.0]))])
    with pytest.raises(InputError, match=r"a log-potential has the size 1e\+200; Gibbs sampling takes up to 1e\+100"):
        tc.estimate_z(graph, method="ais", seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "ais", "chains": 1}, "--chains is 1; it must be a whole number from 2 to"),
        ({"method": "ais", "sweeps": 4}, "--sweeps does not go with --method ais; it is for thermodynamic"),
        ({"method": "ais", "quantity": "f"}, "--quantity f does not go with --method ais"),
        ({"method": "ais", "model": ZIPF}, "--method ais takes models with variables, not a vector; use full-rank"),
        ({"method": "thermodynamic", "reverse": True}, "--reverse does not go with --method thermodynamic"),
        ({"method": "frank-wolfe", "uai": "a.PR"}, "--uai does not go with --method frank-wolfe; it holds"),
        ({"method": "frank-wolfe", "confidence": 0.9}, "--confidence does not go with --method frank-wolfe"),
        ({"method": "frank-wolfe", "entropy": "x"}, "--entropy is x; it must be one of trw, bethe"),
        (
            {"method": "frank-wolfe", "model": ASIA},
            "Frank-Wolfe takes pairwise models, and factor 5 has 3 variables; annealed importance sampling takes any",
        ),
    ],
)
def test_refusals_are_one_line(options, message):
    with pytest.raises(InputError) as raised:
        tc.estimate_z(**{"model": ISING, **options})
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
