import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials, Names


@given(factor_graphs())
def test_log_potential_is_the_sum_of_the_entries(graph):
    states = all_states(graph)
    expected = [sum(f.table[tuple(x[i] for i in f.scope)] for f in graph.factors) for x in states]
    np.testing.assert_allclose(graph.log_potential(states), np.array(expected, float), rtol=1e-13, atol=1e-12)
    assert graph.size == len(states)


@given(factor_graphs(impossible=False), st.data())
def test_conditioning_keeps_configurations_that_agree_with_the_evidence(graph, data):
    n = len(graph.cardinalities)
    chosen = data.draw(st.lists(st.integers(0, n - 1), unique=True))
    evidence = {i: data.draw(st.integers(0, graph.cardinalities[i] - 1)) for i in chosen}
    states = all_states(graph)
    agree = np.all([states[:, i] == s for i, s in evidence.items()], axis=0) if evidence else np.full(len(states), True)
    conditioned = graph.condition(evidence)
    np.testing.assert_allclose(
        conditioned.log_potential(all_states(conditioned)), graph.log_potential(states[agree]), atol=1e-12
    )


@given(factor_graphs(), st.sampled_from([0, 1e-3, 0.5, 1, 2, 7.5]))
def test_tempering_multiplies_finite_log_potentials(graph, alpha):
    states = all_states(graph)
    phi = graph.log_potential(states)
    expected = np.full(len(phi), -np.inf)
    expected[phi > -np.inf] = alpha * phi[phi > -np.inf]
    np.testing.assert_allclose(graph.tempered(alpha).log_potential(states), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(graph.log_potential(states), phi)


@pytest.mark.parametrize("alpha", [-0.5, np.inf, np.nan])
def test_invalid_alphas_are_refused(alpha):
    with pytest.raises(InputError, match=f"alpha is {alpha:g}; it must be a finite"):
        FactorGraph([2], []).tempered(alpha)


@given(factor_graphs(most_variables=3), st.integers(0, 2**32))
def test_the_potential_of_a_product_is_the_sum_of_potentials(graph, seed):
    rng = np.random.default_rng(seed)
    factors = [Factor((i,), rng.normal(size=k)) for i, k in enumerate(graph.cardinalities)]
    other = FactorGraph(graph.cardinalities, factors)
    states = all_states(graph)
    both = graph.log_potential(states) + other.log_potential(states)
    for product in (graph.times(other), other.times(graph)):
        np.testing.assert_allclose(product.log_potential(states), both, rtol=1e-12, atol=1e-12)


def test_powers_and_products_keep_the_evidence():
    graph = FactorGraph([2, 3], [Factor((0, 1), np.arange(6.0).reshape(2, 3))])
    seen = graph.condition({1: 2})
    assert seen.tempered(2).observed == seen.times(seen).observed == {1: 2}
    assert seen.times(seen.tempered(2)).original_states(np.array([[1, 0]])).tolist() == [[1, 2]]
    for other in (graph, graph.condition({1: 1}), FactorGraph([2, 2], [])):
        with pytest.raises(InputError, match=r"those of the model have \[2, 1\]"):
            seen.times(other)


@pytest.mark.parametrize(
    ("cardinalities", "factors", "message"),
    [
        ([], [], "no variables"),
        ([2, 0], [], "variable 1 has 0 states"),
        ([2], [Factor((1,), np.zeros(2))], "names variable 1; the variables are 0 to 0"),
        ([2, 2], [Factor((0, 0), np.zeros((2, 2)))], "names a variable twice"),
        ([2, 3], [Factor((0, 1), np.zeros((3, 2)))], r"shape \(3, 2\); .* \(2, 3\)"),
        ([2], [Factor((0,), np.array([0, np.nan]))], "NaN at entry 1"),
        ([2], [Factor((0,), np.array([0, np.inf]))], r"\+inf at entry 1"),
        ([2], [Factor((0,), np.full(2, -np.inf))], "-inf everywhere"),
        ([2], [Factor((0,), np.zeros(2)), Factor((0,), np.array([0, np.nan]))], "factor 1 has a NaN at entry 1"),
    ],
)
def test_invalid_models_are_refused(cardinalities, factors, message):
    with pytest.raises(InputError, match=message):
        FactorGraph(cardinalities, factors)


@pytest.mark.parametrize(
    ("evidence", "message"),
    [({2: 0}, "names variable 2"), ({0: 2}, "in state 2"), ({0: 1}, "forbids the evidence")],
)
def test_invalid_evidence_is_refused(evidence, message):
    graph = FactorGraph([2, 2], [Factor((0,), np.array([0, -np.inf]))])
    with pytest.raises(InputError, match=message):
        graph.condition(evidence)


def test_size_of_a_large_model_is_exact():
    assert FactorGraph([2] * 400, []).size == 2**400
    assert "2.58e120 configurations" in FactorGraph([2] * 400, []).describe()
    assert "3.98e6020 configurations" in FactorGraph([2] * 20000, []).describe()


@pytest.mark.parametrize("shape", [(0,), (2, 2), ()])
def test_a_vector_has_one_axis(shape):
    with pytest.raises(InputError, match="shape"):
        LogPotentials(np.zeros(shape))


def test_names_survive_evidence_powers_and_products():
    names = Names(("rain", "wet"), (("no", "yes"), ()))
    graph = FactorGraph([2, 3], [], names=names)
    for made in (graph, graph.condition({0: 1}), graph.tempered(2), graph.times(graph)):
        assert [made.variable_name(i) for i in range(2)] == ["rain", "wet"]
        assert [made.state_name(0, 1), made.state_name(1, 2)] == ["yes", "2"]
    plain = FactorGraph([2], [])
    assert (plain.variable_name(0), plain.state_name(0, 1)) == ("0", "1")


@pytest.mark.parametrize(
    ("variables", "states", "fragment"),
    [
        (("a",), (), "1 name of variables"),
        (("a", "a"), (), "two variables are called 'a'"),
        (("a", "b"), (("x", "y"), ("x",)), "variable b has 1 name of states"),
        (("a", "b"), (("x", "y"),), "1 variables have names of states"),
    ],
)
def test_names_that_do_not_fit_are_refused(variables, states, fragment):
    with pytest.raises(InputError, match=fragment):
        FactorGraph([2, 2], [], names=Names(variables, states))


def test_a_variable_that_was_observed_keeps_its_state():
    """Its one state is number 0 of the conditioned model."""
    assert FactorGraph([3, 2], []).condition({0: 2}).condition({0: 0, 1: 1}).observed == {0: 2, 1: 1}


def test_marginals_over_the_states_without_evidence():
    graph = FactorGraph([2, 3], []).condition({1: 2})
    found = graph.original_marginals(np.array([0.25, 0.75, 1.0]))
    assert [table.tolist() for table in found] == [[0.25, 0.75], [0, 0, 1]]
    assert graph.tempered(2).unobserved == (2, 3)


@pytest.mark.parametrize("cardinalities", [[7] * 9, [10] * 7, [2] * 24, [3] * 500 + [1, 2], [2**30] * 64])
def test_a_large_number_of_configurations_is_rounded_as_a_decimal_number(cardinalities):
    size = math.prod(cardinalities)
    graph = FactorGraph(cardinalities, [])
    assert graph.size == size
    assert graph.describe().endswith(f", {Decimal(size):.2e} configurations".replace("e+", "e"))
