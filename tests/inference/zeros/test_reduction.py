import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import all_states, factor_graphs
from tests.tiers import examples
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.inference.zeros.reduction import reduced
from thesis_cli.models.factor_graph import Factor, FactorGraph

NO = -np.inf


@st.composite
def constrained_graphs(draw, most_variables=7):
    """Factors with many zeros over 1 to 3 of a few variables of 1 to 3 states; some constraints,
    equalities and repeated scopes among them.
    """
    n = draw(st.integers(1, most_variables))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = rng.integers(1, 4, n).tolist()
    factors = []
    for _ in range(draw(st.integers(0, 9))):
        scope = tuple(rng.choice(n, rng.integers(0, min(n, 3) + 1), replace=False).tolist())
        shape = [sizes[i] for i in scope]
        table = np.where(
            rng.random(shape) < rng.choice([0.0, 0.4, 0.7]), NO, rng.normal(0, 3, shape) * rng.integers(0, 2)
        )
        if len(scope) == 2 and shape[0] == shape[1] and rng.random() < 0.7:
            table[np.eye(shape[0])[rng.permutation(shape[0])] == 0] = NO
        factors.append(Factor(scope, table if table.max() > NO else np.zeros(shape)))
    return FactorGraph(sizes, factors)


def log_sum(graph):
    return np.logaddexp.reduce(graph.log_potential(all_states(graph)))


def brute_force_marginals(graph):
    states = all_states(graph)
    phi = graph.log_potential(states)
    p = np.exp(phi - np.logaddexp.reduce(phi))
    return np.array([p[states[:, i] == x].sum() for i, k in enumerate(graph.cardinalities) for x in range(k)])


@settings(max_examples=examples(60))
@given(constrained_graphs() | factor_graphs())
def test_a_reduction_keeps_every_answer(graph):
    states = all_states(graph)
    phi = graph.log_potential(states)
    if phi.max() == NO:
        try:
            assert log_sum(reduced(graph).graph) == NO
        except NoConfiguration:
            return
        return
    small = reduced(graph)
    assert small.constant + log_sum(small.graph) == pytest.approx(np.logaddexp.reduce(phi), rel=1e-12, abs=1e-12)
    inner = all_states(small.graph)
    found = small.original_states(inner)
    expected = small.graph.log_potential(inner) + small.potential
    np.testing.assert_allclose(graph.log_potential(found), expected, atol=1e-10)
    drawn = small.original_states(np.repeat(inner, 20, axis=0), np.random.default_rng(0))
    np.testing.assert_allclose(graph.log_potential(drawn), np.repeat(expected, 20), atol=1e-10)
    np.testing.assert_allclose(
        small.original_marginals(brute_force_marginals(small.graph)), brute_force_marginals(graph), atol=1e-10
    )
    assert sum(map(len, small.components)) == len(small.graph.cardinalities)


def test_variables_that_determine_each_other_become_one():
    rng = np.random.default_rng(0)
    for _ in range(10):
        pairs = [(int(rng.integers(i)), i) for i in range(1, 6)]
        states = [np.arange(4), *(np.empty(4, np.int64) for _ in pairs)]
        factors = [Factor((i,), rng.normal(size=4)) for i in range(6)]
        for a, b in pairs:
            link = rng.permutation(4)
            states[b] = link[states[a]]
            table = np.where(link[:, None] == np.arange(4), rng.normal(size=(4, 1)), NO)
            factors.append(Factor((a, b), table) if rng.random() < 0.5 else Factor((b, a), table.T))
        graph = FactorGraph([4] * 6, [factors[i] for i in rng.permutation(len(factors))])
        small = reduced(graph)
        assert small.graph.cardinalities == (4,)
        expected = np.logaddexp.reduce(graph.log_potential(np.stack(states, axis=1)))
        assert small.constant + log_sum(small.graph) == pytest.approx(expected, rel=1e-12)
        found = small.original_states(np.arange(4)[:, None])
        assert {tuple(row) for row in found} == set(zip(*(s.tolist() for s in states), strict=True))
