import decimal
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.entropy.exact import STEP, exact_entropies, renyi
from thesis_cli.inference.enumeration import BLOCK
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.examples import ising

ALPHAS = (0, 0.3, 1 - 1e-9, 1, 1 + 1e-9, 2, 7.5, math.inf)


def brute_force(phi, alpha):
    """By definition; within 1e-8 of 1 by two terms of the Taylor series, whose third is below
    1e-12.
    """
    log_p = phi[phi > -np.inf] - logsumexp(phi)
    p = np.exp(log_p)
    if alpha == 0:
        return math.log(log_p.size)
    if alpha == math.inf:
        return -log_p.max()
    if abs(alpha - 1) < 1e-8:
        mean = p @ log_p
        return -mean - (alpha - 1) / 2 * (p @ (log_p - mean) ** 2)
    return logsumexp(alpha * log_p) / (1 - alpha)


@st.composite
def vectors(draw, most=40):
    """Log-potentials of three scales, some of them -inf, at least one finite."""
    size = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.normal(0, draw(st.sampled_from([1e-3, 1.0, 50.0])), size)
    values[rng.permutation(size)[: draw(st.integers(0, size - 1))]] = -np.inf
    return values


@settings(max_examples=examples(30))
@given(vectors())
def test_entropies_of_a_vector_are_brute_force(phi):
    found = exact_entropies(LogPotentials(phi), ALPHAS)
    np.testing.assert_allclose(found.entropies, [brute_force(phi, a) for a in ALPHAS], rtol=1e-11, atol=1e-12)
    assert found.log_z == pytest.approx(logsumexp(phi), rel=1e-14, abs=1e-14)
    assert found.method == "enumeration"
    assert (np.diff(found.entropies) <= 1e-12).all()
    p = np.exp(phi - logsumexp(phi))
    assert found.entropies[ALPHAS.index(1)] == pytest.approx(stats.entropy(p), rel=1e-12, abs=1e-13)


@settings(max_examples=examples(30))
@given(factor_graphs(), st.booleans())
def test_entropies_of_a_graph_are_brute_force_by_either_route(graph, narrow):
    phi = graph.log_potential(all_states(graph))
    memory = 1 if narrow else 2**30
    if phi.max() == -np.inf:
        with pytest.raises(NoConfiguration):
            exact_entropies(graph, ALPHAS, memory=memory)
        return
    found = exact_entropies(graph, ALPHAS, memory=memory)
    np.testing.assert_allclose(found.entropies, [brute_force(phi, a) for a in ALPHAS], rtol=1e-10, atol=1e-11)
    assert found.log_z == pytest.approx(logsumexp(phi), rel=1e-12, abs=1e-11)
    assert (np.diff(found.entropies) <= 1e-10).all()
    assert ("enumeration" in found.method) == narrow


@settings(max_examples=examples(20))
@given(vectors(most=8), st.sampled_from([1e-1, 1e-5, 1e-9, 1e-13, -1e-2, -1e-9, -1e-15]))
def test_near_1_no_digits_are_lost(phi, excess):
    """Against the definition in 60 digits."""
    alpha = 1 + excess
    with decimal.localcontext(prec=60):
        weights = [Decimal(v).exp() for v in phi[phi > -np.inf]]
        power_sum = sum((w / sum(weights)) ** Decimal(alpha) for w in weights)
        expected = float(power_sum.ln() / (1 - Decimal(alpha)))
    vector = exact_entropies(LogPotentials(phi), [alpha]).entropies[0]
    graph = exact_entropies(FactorGraph([phi.size], [Factor((0,), phi)]), [alpha]).entropies[0]
    assert vector == pytest.approx(expected, rel=1e-13, abs=1e-15)
    assert graph == pytest.approx(expected, rel=1e-12, abs=1e-14)


@given(vectors())
def test_orders_near_0_1_and_inf_are_near_their_limits(phi):
    for model in (LogPotentials(phi), FactorGraph([phi.size], [Factor((0,), phi)])):
        at = exact_entropies(model, [0, 1e-300, 1e-12, 1 - 1e-12, 1, 1 + 1e-12, 1e12, 1e300, math.inf]).entropies
        np.testing.assert_allclose(at[[1, 2, 3, 5, 6, 7]], at[[0, 0, 4, 4, 8, 8]], rtol=1e-9, atol=1e-9)


@given(vectors(), vectors())
def test_entropies_of_independent_parts_add(first, second):
    both = exact_entropies(LogPotentials(np.add.outer(first, second).ravel()), ALPHAS).entropies
    graph = FactorGraph([first.size, second.size], [Factor((0,), first), Factor((1,), second)])
    parts = sum(exact_entropies(LogPotentials(v), ALPHAS).entropies for v in (first, second))
    np.testing.assert_allclose(both, parts, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(exact_entropies(graph, ALPHAS).entropies, parts, rtol=1e-10, atol=1e-11)


@given(vectors(), st.floats(-1e5, 1e5))
def test_a_constant_changes_ln_z_alone(phi, constant):
    plain = exact_entropies(LogPotentials(phi), ALPHAS)
    graph = FactorGraph([phi.size], [Factor((0,), phi), Factor((), np.array(constant))])
    for model in (LogPotentials(phi + constant), graph):
        moved = exact_entropies(model, ALPHAS)
        np.testing.assert_allclose(moved.entropies, plain.entropies, atol=2e-9)
        assert moved.log_z == pytest.approx(plain.log_z + constant, abs=1e-9)


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_a_uniform_distribution_has_ln_n_at_every_order(size):
    vector = LogPotentials(np.append(np.full(size, 3.7), -np.inf))
    for model in (vector, FactorGraph([size + 1], [Factor((0,), vector.values)])):
        found = exact_entropies(model, [*ALPHAS, 1e308])
        np.testing.assert_allclose(found.entropies, math.log(size), rtol=1e-13, atol=1e-14)


def test_a_sure_configuration_has_none():
    found = exact_entropies(LogPotentials(np.array([-np.inf, -7.0, -np.inf])), ALPHAS)
    assert [str(h) for h in found.entropies] == ["0.0"] * len(ALPHAS)


@given(vectors(), st.permutations([*ALPHAS, 1, math.inf, 2]))
def test_orders_come_in_any_order_and_repeatedly(phi, alphas):
    found = exact_entropies(LogPotentials(phi), alphas)
    np.testing.assert_array_equal(found.orders, alphas)
    one_by_one = [exact_entropies(LogPotentials(phi), [a]).entropies[0] for a in alphas]
    np.testing.assert_array_equal(found.entropies, one_by_one)
    assert exact_entropies(LogPotentials(phi), []).entropies.shape == (0,)


def test_a_vector_of_many_blocks_is_swept_twice():
    rng = np.random.default_rng(0)
    phi = rng.normal(0, 3, 3 * BLOCK + 17)
    phi[BLOCK : 2 * BLOCK] = -np.inf
    done = []
    found = exact_entropies(LogPotentials(phi), ALPHAS, progress=done.append)
    np.testing.assert_allclose(found.entropies, [brute_force(phi, a) for a in ALPHAS], rtol=1e-12)
    assert sum(done) == 2 * phi.size


def test_a_graph_that_is_not_enumerated_makes_no_progress():
    done = []
    assert exact_entropies(ising(3, 3, 1.0, np.random.default_rng(0)), ALPHAS, progress=done.append).log_z > 0
    assert not done


def test_independent_variables_beyond_enumeration():
    rng = np.random.default_rng(1)
    tables = rng.normal(0, 2, (300, 3))
    tables[::7, 1] = -np.inf
    links = [Factor((i, i + 1), np.zeros((3, 3))) for i in range(299)]  # so that entropies are passed on and on
    graph = FactorGraph([3] * 300, [Factor((i,), table) for i, table in enumerate(tables)] + links)
    alphas = [*ALPHAS, 0.6, 1.45]  # near 1 but for so large a model
    expected = [sum(brute_force(table, a) for table in tables) for a in alphas]
    np.testing.assert_allclose(exact_entropies(graph, alphas).entropies, expected, rtol=1e-11)


def test_each_order_of_a_grid_takes_its_route():
    graph = random_spin_glass(12, 12, 1.5, 0.5, "mixed", np.random.default_rng(0)).graph()
    found = exact_entropies(graph, ALPHAS)
    assert found.method == "grid transfer, elimination"
    assert exact_entropies(graph, [2, 0]).method == "grid transfer"
    h = 1e-4  # a grid's ln Z_alpha is good to 1e-13, its central difference to 1e-8
    low, high = (renyi(1 + e, exact_entropies(graph.tempered(1 + e), []).log_z, found.log_z) for e in (-h, h))
    assert found.entropies[ALPHAS.index(1)] == pytest.approx((low + high) / 2, abs=1e-6)
    assert (np.diff(found.entropies) < 0).all()


def test_a_grid_too_cold_for_transfer_is_left_to_elimination():
    graph = ising(12, 12, 0.4, np.random.default_rng(0))
    warm, cold = exact_entropies(graph, [1200, math.inf]).entropies
    assert exact_entropies(graph, [1200]).method == "grid transfer, elimination"
    assert cold < warm < 1200 / 1199 * cold * (1 + 1e-12)
    with pytest.raises(ModelTooLarge, match=r"elimination needs .* at width 12; raise the memory from 64 KiB"):
        exact_entropies(graph, [1200], memory=2**16)


@pytest.mark.parametrize("signs", ["mixed", "attractive"])
def test_a_grid_too_wide_for_elimination_is_interpolated_about_1(signs):
    graph = random_spin_glass(12, 12, 1.5, 0.5, signs, np.random.default_rng(0)).graph()
    alphas = [0.5, 1 - 1.5 * STEP, 1 - 0.9 * STEP, 1 - 1e-9, 1, 1 + 0.5 * STEP, 1 + 10 * STEP]
    found = exact_entropies(graph, alphas, memory=2**20)
    assert found.method == "grid transfer, interpolation around order 1"
    np.testing.assert_allclose(
        found.entropies, exact_entropies(graph, alphas).entropies, rtol=0, atol=1e-11 * found.log_z
    )


@pytest.mark.parametrize("model", ["vector", "graph"])
@pytest.mark.parametrize("alpha", [math.nan, -1e-9, -math.inf])
def test_what_is_no_order_is_refused(model, alpha):
    model = LogPotentials(np.zeros(2)) if model == "vector" else FactorGraph([2], [])
    with pytest.raises(InputError, match=f"the order is {alpha:g}; it must be 0 or more"):
        exact_entropies(model, [1, alpha])


@pytest.mark.parametrize("alpha", [math.nan, -0.5, 1, math.inf])
def test_the_formula_is_for_orders_in_general(alpha):
    with pytest.raises(InputError, match="not 1"):
        renyi(alpha, 0.0, 0.0)


def test_a_high_order_is_not_yet_the_limit():
    p = np.array([0.6, 0.4])
    for model in (LogPotentials(np.log(p)), FactorGraph([2], [Factor((0,), np.log(p))])):
        expected = [alpha / (alpha - 1) * -np.log(0.6) for alpha in (1e4, 1e12)]
        np.testing.assert_allclose(exact_entropies(model, [1e4, 1e12]).entropies, expected, rtol=1e-14)


def test_the_formula():
    p = np.array([0.5, 0.3, 0.2])
    assert renyi(2, np.log(9 * (p @ p)), np.log(3)) == pytest.approx(-np.log(p @ p), rel=1e-14)
    assert renyi(0, np.log(3), 5.0) == pytest.approx(np.log(3))


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([-np.inf, -np.inf], NoConfiguration, "no configuration is possible"),
        ([0, np.nan], InputError, "log-potential 1 is nan"),
        ([np.inf, 0], InputError, "log-potential 0 is inf"),
    ],
)
def test_what_is_no_distribution_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        exact_entropies(LogPotentials(np.array(values)), [1])


@pytest.mark.parametrize("alphas", [[], [0], [2], [math.inf]])
def test_a_graph_without_configurations_is_refused_whatever_is_asked(alphas):
    graph = FactorGraph([2], [Factor((0,), np.array([0, -np.inf])), Factor((0,), np.array([-np.inf, 0]))])
    with pytest.raises(NoConfiguration):
        exact_entropies(graph, alphas)


def test_beyond_every_route_the_width_is_said():
    graph = ising(4, 4, 1.0, np.random.default_rng(0))
    assert exact_entropies(graph, [1], memory=100).method == "enumeration"
    with pytest.raises(ModelTooLarge, match="width 4"):
        exact_entropies(graph, [1], memory=100, max_configurations=1000)
    with pytest.raises(ModelTooLarge, match="width 4"):
        exact_entropies(graph, [], memory=100, max_configurations=1000)
    with pytest.raises(ModelTooLarge, match="10"):
        exact_entropies(LogPotentials(np.zeros(11)), [1], max_configurations=10)
