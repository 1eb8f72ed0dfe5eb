import subprocess
import sys

import numpy as np
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork, LinearGaussianBayesianNetwork
from pgmpy.models import FactorGraph as PgmpyFactorGraph
from pgmpy.readwrite import BIFReader

from tests.conftest import MODELS, ROOT, all_states
from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.models.files import model_of
from thesis_cli.studies.models.examples import ASIA, asia


def markov():
    network = DiscreteMarkovNetwork([("a", "b"), ("b", "c")])
    rng = np.random.default_rng(0)
    names = {"a": ["no", "yes"], "b": [10, 20, 30], "c": [True, False]}
    network.add_factors(
        DiscreteFactor(["a", "b"], [2, 3], rng.random(6), {k: names[k] for k in "ab"}),
        DiscreteFactor(["c", "b"], [2, 3], rng.random(6), {k: names[k] for k in "bc"}),
    )
    return network


def test_a_bayesian_network_keeps_its_names():
    network = BIFReader(str(MODELS / "asia.bif")).get_model()
    found = model_of(network, ["xray=yes"])
    order = [ASIA.index(found.variable_name(i)) for i in range(8)]
    states = all_states(found)
    states[:, order.index(6)] = 0
    same = np.empty_like(states)
    for i, j in enumerate(order):
        same[:, j] = [["yes", "no"].index(found.state_name(i, k)) for k in states[:, i]]
    total = np.exp(asia().log_potential(same)).sum()
    assert total == pytest.approx(0.11029004, rel=1e-9)
    assert np.exp(found.log_potential(all_states(found))).sum() == pytest.approx(total, rel=1e-12)


def test_a_markov_network_and_its_factor_graph():
    network = markov()
    direct, through = model_of(network), model_of(network.to_factor_graph())
    assert isinstance(network.to_factor_graph(), PgmpyFactorGraph)
    for found in (direct, through):
        assert len(found.cardinalities) == 3
        log_z = np.log(np.exp(found.log_potential(all_states(found))).sum())
        assert log_z == pytest.approx(np.log(network.get_partition_function()))
        b = found.names.variables.index("b")
        assert [found.state_name(b, k) for k in range(3)] == ["10", "20", "30"]


def test_tables_that_list_states_in_other_orders_are_aligned():
    network = DiscreteBayesianNetwork([("a", "b")])
    network.add_cpds(
        TabularCPD("a", 2, [[0.2], [0.8]], state_names={"a": ["x", "y"]}),
        TabularCPD("b", 2, [[0.9, 0.4], [0.1, 0.6]], ["a"], [2], state_names={"b": ["u", "v"], "a": ["y", "x"]}),
    )
    found = model_of(network, ["a=x", "b=u"])
    assert np.exp(found.log_potential(np.zeros((1, 2), int))[0]) == pytest.approx(0.2 * 0.4)


def test_vectors_of_any_real_type():
    np.testing.assert_array_equal(model_of([0.0, -1.0]).values, [0, -1])
    np.testing.assert_allclose(model_of(np.array([1, 3]), probabilities=True).values[:], np.log([1, 3]))
    for model in (LogPotentials(np.zeros(3)), FactorGraph([2], [])):
        assert model_of(model) is model


def incomplete():
    network = markov()
    network.add_node("d")
    return network


def disagreeing():
    network = DiscreteBayesianNetwork([("a", "b")])
    network.add_cpds(
        TabularCPD("a", 2, [[0.2], [0.8]], state_names={"a": ["x", "y"]}),
        TabularCPD("b", 2, [[0.9, 0.4], [0.1, 0.6]], ["a"], [2], state_names={"b": ["u", "v"], "a": ["y", "z"]}),
    )
    return network


@pytest.mark.parametrize(
    ("source", "options", "fragment"),
    [
        (object(), {}, "of type object is no model"),
        ([[1.0], [2.0, 3.0]], {}, "of type list is no model"),
        (np.zeros((2, 2)), {}, "shape (2, 2)"),
        ([0.0, np.nan], {}, "NaN at entry 1"),
        ([0.5, -0.5], {"probabilities": True}, "probability 1 is -0.5"),
        ([0.5, 0.5], {"evidence": ["0=1"]}, "no variables to observe"),
        (incomplete(), {}, "variable d has no table"),
        (disagreeing(), {}, "disagree on the states of a"),
        (LinearGaussianBayesianNetwork([("a", "b")]), {}, "no tables of discrete variables"),
        (FactorGraph([2], [Factor((0,), np.array([0.0, -np.inf]))]), {"evidence": ["0=1"]}, "forbids the evidence"),
    ],
)
def test_invalid_models_are_refused(source, options, fragment):
    with pytest.raises(InputError) as caught:
        model_of(source, **options)
    assert fragment in str(caught.value)


READ_ALL = """
import sys
from thesis_cli.models.factor_matrix import load_factor_matrix
from thesis_cli.models.files import load_model
from thesis_cli.models.files import model_of
model_of([1.0])
for name in "asia.uai", "asia.bif", "zipf-1000.csv":
    load_model("data/models/" + name)
load_model("data/models/asia.bif", evidence=["data/models/asia-xray.evid"])
load_factor_matrix("data/models/factors-5x2000.npy")
print(sorted({name.split(".")[0] for name in sys.modules} & {"matplotlib", "numba", "pandas", "pgmpy", "scipy"}))
"""


def test_reading_a_model_imports_no_large_package():
    done = subprocess.run([sys.executable, "-c", READ_ALL], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
