import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from tests.conftest import all_states
from tests.tiers import examples
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.entropy import approximate
from thesis_cli.entropy.approximate import STEP, approximate_entropies
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import ising

ORDERS = (0.0, 0.3, 0.99, 1.01, 2.0, 5.0, math.inf)


@st.composite
def trees(draw):
    """Chains, stars and between, of one to six variables of one to four states, some pairs
    impossible.
    """
    cardinalities = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([0.1, 1.0, 5.0]))
    factors = [Factor((i,), rng.normal(0, scale, k)) for i, k in enumerate(cardinalities) if rng.random() < 0.7]
    for i in range(1, len(cardinalities)):
        j = draw(st.integers(0, i - 1))
        table = rng.normal(0, scale, (cardinalities[i], cardinalities[j]))
        flat = table.reshape(-1)
        if draw(st.booleans()):
            flat[rng.permutation(flat.size)[: flat.size // 3]] = -np.inf
        factors.append(Factor((i, j), table))
    return FactorGraph(cardinalities, factors)


def possible(graph):
    return graph.log_potential(all_states(graph)).max() > -np.inf


def triangle(coupling):
    return FactorGraph(
        [2, 2, 2], [Factor(s, coupling * np.array([[1.0, -1], [-1, 1]])) for s in ((0, 1), (1, 2), (0, 2))]
    )


@settings(max_examples=examples(20))
@given(trees(), st.sampled_from(["bethe", "trw"]))
def test_on_trees_both_are_exact(graph, name):
    """To what message passing leaves of ln Z, 1e-6 of it with TRW, over |1 - alpha|."""
    if not possible(graph):
        with pytest.raises(NoConfiguration):
            approximate_entropies(graph, ORDERS, name)
        return
    exact = exact_entropies(graph, [*ORDERS, 1.0])
    found = approximate_entropies(graph, [*ORDERS, 1.0], name)
    assert {e.kind for e in found} == {"approximation"}
    assert {e.method for e in found} == {"Bethe" if name == "bethe" else "TRW"}
    error = (1e-8 if name == "bethe" else 2e-6) * max(1.0, abs(exact.log_z))
    for alpha, entropy, estimate in zip(ORDERS, exact.entropies, found, strict=False):
        scale = (1 + alpha) / abs(1 - alpha) if alpha < math.inf else 1.0
        assert estimate.value == pytest.approx(entropy, abs=error * scale)
        assert (estimate.target, estimate.standard_error, estimate.map_calls) == (f"H_{alpha:g}", 0.0, 0)
        assert estimate.low == estimate.value == estimate.high
    # at 1 the mean of both neighbours, H_1 to second order
    assert found[-1].value == pytest.approx(found[2].value / 2 + found[3].value / 2, abs=4 * error / STEP)
    assert (found[-1].target, found[-1].low, found[-1].high) == ("H_1", found[-1].value, found[-1].value)
    near = exact_entropies(graph, [1 - STEP, 1 + STEP]).entropies
    assert found[-1].value == pytest.approx(near.mean(), abs=2 * error / STEP)


@pytest.mark.parametrize("name", ["bethe", "trw"])
def test_shannons_entropy_is_off_by_a_second_order_term(name):
    """STEP^2 / 2 of the second derivative of H_alpha, which differences of exact entropies tell."""
    rng = np.random.default_rng(0)
    graph = FactorGraph([3] * 6, [Factor((i, i + 1), rng.normal(0, 2, (3, 3))) for i in range(5)])
    below, at, above = exact_entropies(graph, [1 - STEP, 1, 1 + STEP]).entropies
    curvature = (below + above - 2 * at) / STEP**2
    found = approximate_entropies(graph, [1.0], name)[0]
    assert found.value - at == pytest.approx(STEP**2 / 2 * curvature, abs=2e-4 if name == "trw" else 1e-6)
    assert found.value == pytest.approx(at, abs=1e-3)


@pytest.mark.parametrize("name", ["bethe", "trw"])
def test_on_a_cycle_they_go_by_eq_3_27(name):
    """From ln Z_alpha and ln Z of the same approximation; TRW's is above each of them."""
    graph = triangle(0.4)
    log_z = approximate._bethe if name == "bethe" else approximate._trw
    found = approximate_entropies(graph, [0.0, 0.5, 2.0, math.inf], name)
    whole, _ = log_z(graph, 0)
    for alpha, estimate in zip((0.0, 0.5, 2.0), found, strict=False):
        tempered, _ = log_z(graph.tempered(alpha), 0)
        assert estimate.value == pytest.approx((tempered - alpha * whole) / (1 - alpha), abs=1e-12)
    assert found[0].value == pytest.approx(3 * math.log(2), abs=1e-6)
    assert found[-1].value == pytest.approx(whole - 1.2, abs=1e-12)
    exact = logsumexp(graph.log_potential(all_states(graph)))
    assert abs(whole - exact) > 1e-3
    assert name == "bethe" or whole > exact


@pytest.mark.parametrize("name", ["bethe", "trw"])
def test_a_uniform_distribution_with_hard_constraints(name):
    """Chains of 0s and 1s without two 1s in a row: 13 of them of length 5, equally likely at every
    order.
    """
    pair = np.array([[0.0, 0.0], [0.0, -np.inf]])
    graph = FactorGraph([2] * 5, [Factor((i, i + 1), pair) for i in range(4)])
    for estimate in approximate_entropies(graph, [0.0, 0.5, 1.0, 2.0, 10.0, math.inf], name):
        assert estimate.value == pytest.approx(math.log(13), abs=1e-3 if name == "trw" else 1e-7)


@pytest.mark.parametrize("name", ["bethe", "trw"])
def test_no_configuration(name):
    graph = FactorGraph([2], [Factor((0,), np.array([0, -np.inf])), Factor((0,), np.array([-np.inf, 0]))])
    for alphas in ([], [1.0], [math.inf]):
        with pytest.raises(NoConfiguration):
            approximate_entropies(graph, alphas, name)


@pytest.mark.parametrize("name", ["bethe", "trw"])
def test_no_configuration_that_only_the_maximum_tells(name):
    """A triangle of which any two corners must differ: locally all is well."""
    pair = np.array([[-np.inf, 0.0], [0.0, -np.inf]])
    graph = FactorGraph([2, 2, 2], [Factor(s, pair) for s in ((0, 1), (1, 2), (0, 2))])
    with pytest.raises(NoConfiguration):
        approximate_entropies(graph, [math.inf], name)


@pytest.mark.parametrize("name", ["bethe", "trw"])
@pytest.mark.parametrize("alpha", [-1.0, -math.inf, math.nan])
def test_orders_that_are_none(name, alpha):
    with pytest.raises(InputError, match="0 or more"):
        approximate_entropies(triangle(0.1), [alpha], name)


def test_what_did_not_converge_is_said_of_that_order_alone(monkeypatch):
    """Whatever else was asked for, and in whatever order. All rest on ln Z itself."""
    graph = triangle(0.3)
    real = approximate._bethe
    for stubborn, expected in ((2.0, [True, False, True, True]), (1.0, [False] * 4), (1 + STEP, [True] * 3 + [False])):

        def bethe(tempered, seed, stubborn=stubborn):
            value, _ = real(tempered, seed)
            return value, tempered.factors[0].table[0, 0] != stubborn * 0.3

        monkeypatch.setattr(approximate, "_bethe", bethe)
        kinds = [e.kind for e in approximate_entropies(graph, [0.5, 2.0, 3.0, 1.0], "bethe")]
        assert [k == "approximation" for k in kinds] == expected
        assert set(kinds) <= {"approximation", "approximation, not converged"}


def test_the_seed_is_passed_on(monkeypatch):
    seeds = set()
    real = approximate._bethe
    monkeypatch.setattr(approximate, "_bethe", lambda graph, seed: (seeds.add(seed), real(graph, seed))[1])
    graph = ising(3, 3, 0.2, np.random.default_rng(1))
    approximate_entropies(graph, [0.5, 2.0], "bethe", seed=7)
    assert seeds == {7}
