import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.perturbation.models import product, seed, triangle
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import entropy_bound, lower_bound, upper_bound
from thesis_cli.perturbation.low_rank.subsets import edges, undetermined, with_subset_variables
from thesis_cli.perturbation.noise import gumbel


@st.composite
def graphs_with_subsets(draw):
    graph = draw(factor_graphs(most_variables=4))
    every = [s for k in (1, 2, 3) for s in itertools.combinations(range(len(graph.cardinalities)), k)]
    return graph, draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))


@settings(max_examples=examples(25))
@given(graphs_with_subsets(), st.integers(0, 2**32))
def test_noise_on_a_subset_variable_is_noise_on_its_joint_states(case, entropy):
    graph, subsets = case
    larger, variables = with_subset_variables(graph, subsets)
    noise = np.zeros((3, sum(larger.cardinalities)))
    offsets = np.cumsum([0, *larger.cardinalities])
    states = all_states(graph)
    expected = np.tile(graph.log_potential(states), (3, 1))
    for subset, v in zip(subsets, variables, strict=True):
        own = gumbel(np.random.default_rng((entropy, v)), 3, larger.cardinalities[v])
        noise[:, offsets[v] : offsets[v + 1]] = own
        shape = [graph.cardinalities[i] for i in subset]
        expected += own[:, np.ravel_multi_index(tuple(states[:, list(subset)].T), shape)]
    values, found = Elimination(larger).maximise(noise)
    np.testing.assert_allclose(values, expected.max(axis=1), rtol=1e-12, atol=1e-11)
    log_z = Elimination(graph).log_partition_function()
    assert Elimination(larger).log_partition_function() == pytest.approx(log_z, rel=1e-12, abs=1e-11)
    if log_z > -np.inf:
        assert (graph.log_potential(found[:, : len(graph.cardinalities)]) > -np.inf).all()


@settings(max_examples=examples(15))
@given(graphs_with_subsets(), st.integers(0, 2**32))
def test_bounds_hold_for_subsets(case, entropy):
    graph, subsets = case
    log_z = Elimination(graph).log_partition_function()
    assume(log_z > -np.inf)
    larger, variables = with_subset_variables(graph, subsets)
    solver, slack = Elimination(larger), 1e-11 * max(1, abs(log_z))
    below = low_rank_maxima(solver, 400, seed(entropy), noisy=variables, scale="average")
    for alpha in (-0.1, 0.0, 0.5):
        found = lower_bound(below, alpha)
        assert found.value - 5 * found.standard_error <= log_z + slack
    above = low_rank_maxima(solver, 400, seed(entropy), noisy=variables)
    if above.undetermined:
        with pytest.raises(InputError, match=r"variable \d has no noise"):
            upper_bound(above, 0.0)
        return
    for alpha in (-0.1, 0.0, 0.5):
        found = upper_bound(above, alpha)
        assert found.value + 5 * found.standard_error >= log_z - slack


def test_one_subset_of_all_variables_is_full_rank():
    """Both bounds are then ln Z itself, and the entropy bound is the entropy."""
    graph = triangle()
    larger, variables = with_subset_variables(graph, [(2, 0, 3, 1)])
    phi = graph.log_potential(all_states(graph))
    log_z = np.logaddexp.reduce(phi)
    maxima = low_rank_maxima(Elimination(larger), 20_000, seed(), noisy=variables)
    assert maxima.terms == 1
    for alpha in (-0.2, 0.0, 1.0):
        for bound in (upper_bound, lower_bound):
            found = bound(maxima, alpha)
            assert abs(found.value - log_z) < 5 * found.standard_error < 0.1
    found = entropy_bound(maxima)
    p = np.exp(phi - log_z)
    assert abs(found.value + (p * np.log(p)).sum()) < 5 * found.standard_error


def test_larger_subsets_are_tighter_and_count_as_one_term_each():
    graph = triangle()
    log_z = Elimination(graph).log_partition_function()
    single = upper_bound(low_rank_maxima(Elimination(graph), 20_000, seed()), 0.0)
    larger, variables = with_subset_variables(graph, [(0, 1, 2), (3,)])
    assert variables == (4, 3)
    maxima = low_rank_maxima(Elimination(larger), 20_000, seed(), noisy=variables)
    triple = upper_bound(maxima, 0.0)
    assert maxima.terms == 2
    error = math.hypot(single.standard_error, triple.standard_error)
    assert log_z - 5 * triple.standard_error < triple.value < single.value - 5 * error
    pair, variables = with_subset_variables(graph, [(0, 1)])
    below = lower_bound(low_rank_maxima(Elimination(pair), 20_000, seed(), noisy=variables), 0.0)
    # Proposition 5: exactly the sum over x_0, x_1 of the maximum over the others
    inner = graph.log_potential(all_states(graph)).reshape(4, 4).max(axis=1)
    assert abs(below.value - np.logaddexp.reduce(inner)) < 5 * below.standard_error < log_z - below.value


def test_evidence_and_its_original_states_survive():
    larger, variables = with_subset_variables(triangle().condition({1: 1}), [(0, 1), (2,), (1,), (3, 2)])
    maxima = low_rank_maxima(Elimination(larger), 50, seed(), noisy=variables)
    assert larger.cardinalities == (2, 1, 2, 2, 2, 4)
    assert (maxima.noisy, maxima.undetermined) == ((2, 4, 5), ())
    assert (larger.original_states(maxima.states)[:, 1] == 1).all()


@pytest.mark.parametrize(
    ("subsets", "message"),
    [
        ([()], r"subset 0 is \(\)"),
        ([(0,), (1, 1)], r"subset 1 is \(1, 1\)"),
        ([(0, 13)], r"subset 0 is \(0, 13\)"),
        ([tuple(range(13))], "subset 0 has 8,192 joint states"),
        ([(0, 1), (1, 0)], "a subset comes twice"),
    ],
)
def test_bad_subsets_are_refused(subsets, message):
    with pytest.raises(InputError, match=message):
        with_subset_variables(FactorGraph([2] * 13, []), subsets)


def test_edges_are_the_pairs_and_the_variables_in_none():
    tables = [(1, 0), (0, 1), (2, 1, 4), (2, 3, 5), (6,)]
    graph = FactorGraph([2, 2, 2, 2, 1, 2, 2], [])
    graph = FactorGraph(graph.cardinalities, [Factor(s, np.zeros([graph.cardinalities[i] for i in s])) for s in tables])
    assert edges(graph) == [(0, 1), (1, 2), (3,), (5,), (6,)]
    larger, variables = with_subset_variables(graph, edges(graph))
    assert undetermined(larger, variables) == ()


def test_determined_variables_need_no_noise():
    """With x_2 = x_0 xor x_1 and x_3 = x_2, two terms bound ln Z more tightly than four."""
    xor = np.full((2, 2, 2), -np.inf)
    for a, b in itertools.product(range(2), repeat=2):
        xor[a, b, a ^ b] = 0.1 * a + b
    follow = np.array([[0.3, -np.inf, -np.inf], [-np.inf, -np.inf, 1.0]])
    graph = FactorGraph([2, 2, 2, 3], [Factor((2, 3), follow), Factor((0, 1, 2), xor)])
    assert undetermined(graph, (0,)) == (1, 2, 3)
    assert undetermined(graph, (3, 0)) == ()
    assert undetermined(graph, (0, 1)) == ()
    assert undetermined(FactorGraph([2, 2], [Factor((0, 1), np.array([[0.0, -np.inf], [0.0, 0.0]]))]), (0,)) == (1,)
    log_z = Elimination(graph).log_partition_function()
    two = upper_bound(low_rank_maxima(Elimination(graph), 10_000, seed(), noisy=(0, 1)), 0.0)
    four = upper_bound(low_rank_maxima(Elimination(graph), 10_000, seed()), 0.0)
    assert log_z - 5 * two.standard_error < two.value < four.value - 5 * four.standard_error


@settings(max_examples=examples(25))
@given(factor_graphs(most_variables=4), st.data())
def test_determined_variables_are_functions_of_the_noisy_ones(graph, data):
    """By brute force: possible configurations that agree on the noisy variables agree on these."""
    noisy = data.draw(st.lists(st.integers(0, len(graph.cardinalities) - 1), unique=True))
    free = undetermined(graph, noisy)
    states = all_states(graph)
    states = states[graph.log_potential(states) > -np.inf]
    known = [i for i in range(len(graph.cardinalities)) if i not in free]
    assert len(np.unique(states[:, noisy], axis=0)) == len(np.unique(states[:, known], axis=0)) or not len(states)
    assert not any(k == 1 for i, k in enumerate(graph.cardinalities) if i in free)


def test_a_product_with_pairs_stays_tight():
    graph = product([2, 3, 2])
    larger, variables = with_subset_variables(graph, [(0, 1), (2,)])
    found = upper_bound(low_rank_maxima(Elimination(larger), 20_000, seed(), noisy=variables), 0.2)
    assert abs(found.value - Elimination(graph).log_partition_function()) < 5 * found.standard_error < 0.1
