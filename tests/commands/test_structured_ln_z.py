"""The command structured ln-z: each method against the exact answer, what auto chooses, refusals."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import thesis_cli as tc
from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.structured.catalogue import space

TREE = str(MODELS / "taxonomy.toml")
LOG_Z = 4.785455372496806

METHODS = [
    {"method": "full-rank", "samples": 400},
    {"method": "uniform", "samples": 2000},
    {"method": "telescoping", "error": 0.5},
    {"method": "telescoping", "error": 0.5, "sampler": "meta"},
    {"method": "telescoping", "error": 0.9, "sampler": "truncated"},
    {"method": "telescoping", "error": 0.9, "sampler": "truncated", "steps": 30},
    {"method": "telescoping", "error": 0.5, "schedule": "adaptive", "confidence": 0.9},
]


@pytest.mark.parametrize("options", METHODS, ids=lambda o: "-".join(str(v) for v in o.values()))
def test_methods_agree_with_the_exact_answer(options):
    found = tc.structured_ln_z(TREE, exact=True, seed=1, **options)
    exact, estimate = found.estimates
    assert (exact.kind, exact.value) == ("exact", pytest.approx(LOG_Z))
    bias = 0.05 if options.get("sampler") == "truncated" else 0
    assert estimate.value == pytest.approx(LOG_Z, abs=5 * estimate.standard_error + bias)
    assert found.settings["confidence"] == options.get("confidence", 0.75 if "error" in options else 0.95)
    assert ("uniform_structures" in found.to_dict()) == (options["method"] == "telescoping")
    if options.get("sampler") in ("meta", "truncated"):
        assert found.costs["uniform_structures"] > found.costs["samples"] > 0
        assert "uniform structures" in found.summary()


def test_bounds(cli):
    told = json.loads(cli("structured", "ln-z", TREE, "--method", "perturb", "--seed", 1, "--json").out)
    upper, lower = told["estimates"]
    assert upper["kind"] == "upper bound in expectation"
    assert lower["kind"] == "lower bound in expectation"
    assert upper["value"] + 5 * upper["standard_error"] > LOG_Z > lower["value"] - 5 * lower["standard_error"]
    assert told["seed"] == 1
    by_name = tc.structured_ln_z(TREE, noise="nodes", samples=50, seed=1)
    assert by_name.estimates[0].method == "U(0), noise on nodes"
    assert "work   100 MAP calls" in by_name.summary()
    methods = [e.method for e in tc.structured_ln_z(TREE, alpha=-0.1, samples=50, seed=1).estimates]
    assert methods == ["U(-0.1), noise on nodes", "L(-0.1), noise on nodes"]


def test_auto_is_exact_where_that_fits_and_bounds_elsewhere():
    (exact,) = tc.structured_ln_z(TREE).estimates
    assert exact.value == pytest.approx(LOG_Z)
    large = (space("permutations", 23, "positions"), np.zeros(23 * 23))
    upper, lower, average = tc.structured_ln_z(large, seed=1).estimates
    log_size = math.lgamma(24)
    assert upper.kind == "upper bound in expectation"
    assert lower.value < log_size < upper.value
    assert average.value == pytest.approx(log_size)


def test_labels_in_pairs_are_summed_as_a_factor_graph():
    labels, rng = 300, np.random.default_rng(0)
    pairs = space("hypercube", labels, "pairs")
    single, chain = rng.normal(size=labels), rng.normal(size=labels - 1)
    matrix = np.zeros((labels, labels))
    matrix[np.arange(labels - 1), np.arange(1, labels)] = chain
    weights = np.concatenate([single, matrix[np.triu_indices(labels, 1)]])
    without, within = 0.0, single[0]  # ln of sums over the labels so far, by the last one
    for weight, pair in zip(single[1:], chain, strict=True):
        without, within = np.logaddexp(without, within), weight + np.logaddexp(without, within + pair)
    (exact,) = tc.structured_ln_z((pairs, weights)).estimates
    assert (exact.kind, exact.value) == ("exact", pytest.approx(np.logaddexp(without, within), rel=1e-12))


def test_annealing_of_labels_in_pairs():
    rng = np.random.default_rng(0)
    some = space("hypercube", 21, "pairs")
    weights = 0.3 * rng.normal(size=some.dimension)
    exact, estimate, lower = tc.structured_ln_z((some, weights), method="ais", exact=True, seed=1).estimates
    assert exact.kind == "exact"
    assert estimate.value == pytest.approx(exact.value, abs=5 * estimate.standard_error)
    assert 0 < estimate.standard_error < 0.1
    assert lower.value < exact.value
    many = space("hypercube", 40, "pairs")
    estimate, lower = tc.structured_ln_z((many, 0.1 * rng.normal(size=many.dimension)), seed=1).estimates
    assert (estimate.method, lower.value < estimate.value) == ("ais", True)
    with pytest.raises(InputError, match="--method ais does not go with subtrees; it takes pairs of labels"):
        tc.structured_ln_z(TREE, method="ais")


def test_the_posterior_is_that_of_the_perturbations():
    found = tc.structured_ln_z(TREE, method="full-rank", samples=200, seed=2)
    assert found.posterior.shape == 200
    assert found.posterior.mean_log_z == pytest.approx(LOG_Z, abs=5 / math.sqrt(200))
    assert found.problems == 200


def test_rankings_whose_log_potentials_are_not_linear(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text('space = "permutations"\nfeatures = "mallows"\nelements = 3\nweights = [3, 2, 1, 0.7]\n')
    (exact,) = tc.structured_ln_z(path).estimates
    shares = np.exp(-0.7 * np.arange(3)).cumsum()
    assert exact.value == pytest.approx(np.log(shares).sum())
    average = tc.structured_ln_z(path, method="uniform", samples=1000, seed=1).estimates[0]
    assert average.value == pytest.approx(exact.value, abs=5 * average.standard_error)
    for method in ("perturb", "telescoping"):
        with pytest.raises(InputError, match=f"--method {method} does not go with mallows"):
            tc.structured_ln_z(path, method=method)
    with pytest.raises(InputError, match="--method meta does not go with mallows"):
        tc.structured_sample(path, method="meta")


REFUSED = [
    ({"method": "exact", "samples": 5}, "--samples does not go with --method exact; it is for perturb"),
    ({"method": "telescoping", "steps": 5}, "--steps goes with --sampler truncated"),
    ({"method": "uniform", "samples": 1}, "needs 2 or more"),
    ({"noise": "pairs"}, "has no noise on 'pairs'; must be one of: nodes"),
    ({"noise": "nodes", "error": 0.2}, "does not go"),
    ({"method": "telescoping", "error": 1.0}, "--error is 1"),
    ({"method": "telescoping", "schedule": "theorem", "confidence": 0.9}, "Theorem 2.5 has the confidence 3/4"),
    ({"method": "telescoping", "sampler": "meta", "most_steps": 3}, "taxonomy.toml: coupling from the past"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refusals(options, message):
    with pytest.raises(InputError) as caught:
        tc.structured_ln_z(TREE, seed=1, **options)
    assert message in str(caught.value)


def test_refused_models():
    strong = (space("permutations", 4, "orders"), np.full(6, -1e4))
    with pytest.raises(InputError, match=r"a product of 90,000 ratios takes .* samples; at most 100,000,000"):
        tc.structured_ln_z(strong, method="telescoping")
    with pytest.raises(InputError, match="exact sums over partitions take at most 14"):
        tc.structured_ln_z((space("partitions", 15), np.zeros(105)), method="exact")
    with pytest.raises(InputError, match="the model is of type int"):
        tc.structured_ln_z(3)
    with pytest.raises(InputError, match="the weights are no numbers"):
        tc.structured_ln_z((space("hypercube", 2), "ab"))
    with pytest.raises(InputError, match="the weights are no numbers"):
        tc.structured_ln_z((space("hypercube", 2, "linear"), [1j, 2]))
    with pytest.raises(InputError, match="weights have shape"):
        tc.structured_ln_z((space("hypercube", 2), np.zeros(3)))
