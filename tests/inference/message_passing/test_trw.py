"""The tree-reweighted bound beside brute force, explicit trees, and its definition from
pseudo-marginals.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import MODELS, all_states, factor_graphs
from tests.inference.message_passing.test_belief_propagation import binary_graphs, forests, grid
from tests.tiers import examples
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.message_passing import trw, trw_kernels
from thesis_cli.inference.message_passing.belief_propagation import messages_of, up_and_down
from thesis_cli.inference.message_passing.trw import (
    _Descent,
    maximum_spanning_forest,
    trw_log_partition_function,
    uniform_spanning_trees,
)
from thesis_cli.inference.pairwise import lifted, pairwise
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.files import load_model


@st.composite
def graphs(draw):
    """Number of vertices and ascending edges, shape (E, 2)."""
    n = draw(st.integers(1, 6))
    pairs = list(itertools.combinations(range(n), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return n, np.array(sorted(chosen), np.int64).reshape(-1, 2)


def spanning_forests(n, edges):
    """Every spanning forest of most edges as 0 and 1, shape (forests, E)."""

    def components(chosen):
        label = list(range(n))
        for i, j in edges[list(chosen)].tolist():
            a, b = label[i], label[j]
            label = [b if c == a else c for c in label]
        return len(set(label))

    size = n - components(range(len(edges)))
    found = [t for t in itertools.combinations(range(len(edges)), size) if components(t) == n - size]
    return np.array([[e in t for e in range(len(edges))] for t in found], np.float64).reshape(len(found), -1)


def log_z(graph):
    return np.logaddexp.reduce(graph.log_potential(all_states(graph)))


@given(graphs())
def test_uniform_spanning_trees_are_those_enumerated(drawn):
    n, edges = drawn
    np.testing.assert_allclose(uniform_spanning_trees(n, edges), spanning_forests(n, edges).mean(axis=0), atol=1e-12)


def test_uniform_spanning_trees_by_the_pseudo_inverse():
    rng = np.random.default_rng(0)
    for n, density in ((40, 0.05), (40, 0.1), (60, 0.5)):
        edges = np.argwhere(np.triu(rng.random((n, n)) < density, 1))
        i, j = edges.T
        laplacian = np.zeros((n, n))
        np.add.at(laplacian, (np.r_[i, j, i, j], np.r_[i, j, j, i]), np.repeat([1.0, -1.0], 2 * len(edges)))
        inverse = np.linalg.pinv(laplacian)
        expected = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
        np.testing.assert_allclose(uniform_spanning_trees(n, edges), expected, atol=1e-9)


def test_too_wide_a_model_for_spanning_trees_is_refused(monkeypatch):
    monkeypatch.setattr(trw, "DEFAULT_MEMORY", 1000)
    edges = np.array(list(itertools.combinations(range(12), 2)))
    with pytest.raises(ModelTooLarge, match=r"spanning trees of the model need 2\.84 KiB; the Bethe"):
        uniform_spanning_trees(12, edges)


@given(graphs(), st.integers(0, 2**32))
def test_maximum_spanning_forest_gains_most(drawn, seed):
    n, edges = drawn
    gains = np.random.default_rng(seed).integers(0, 4, len(edges)).astype(np.float64)  # ties and zeros
    chosen = maximum_spanning_forest(n, edges, gains)
    forests = spanning_forests(n, edges)
    assert (forests == chosen).all(axis=1).any()
    assert chosen @ gains == (forests @ gains).max()


def pseudo_marginals(form, weights, messages):
    """Wainwright's tau_s and tau_st of log-messages (source, target) -> M^rho, and the norms of
    them all.
    """
    n = len(form.cardinalities)
    beliefs = [form.unary[form.offsets[i] : form.offsets[i + 1]].copy() for i in range(n)]
    for (_, j), message in messages.items():
        beliefs[j] += message
    norms = [np.logaddexp.reduce(b) for b in beliefs]
    pairs, pair_norms = [], []
    for e, (i, j) in enumerate(form.edges.tolist()):
        joint = np.full(form.tables[e].shape, -np.inf)
        alive = np.ix_(beliefs[i] > -np.inf, beliefs[j] > -np.inf)
        joint[alive] = (form.tables[e][alive] - messages[j, i][alive[0]] - messages[i, j][alive[1]]) / weights[e]
        joint[alive] += beliefs[i][alive[0]] + beliefs[j][alive[1]]
        pair_norms.append(np.logaddexp.reduce(joint, axis=None))
        pairs.append(joint - pair_norms[-1])
    return [b - a for b, a in zip(beliefs, norms, strict=True)], pairs, np.array(norms), np.array(pair_norms)


def as_dictionary(layout, messages):
    ends = zip(layout.source.tolist(), layout.target.tolist(), strict=True)
    return {pair: messages[layout.starts[d] : layout.starts[d + 1]] for d, pair in enumerate(ends)}


def certify(form, weights, messages):
    information = np.zeros(weights.size)
    bound, gap = trw_kernels.certify(messages_of(form), form.unary, weights, messages, information)
    return bound, gap, information


@settings(max_examples=examples(25))
@given(factor_graphs(), st.integers(0, 2**32), st.integers(0, 2))
def test_the_certificate_is_its_definition(graph, seed, sweeps):
    form = pairwise(lifted(graph))
    layout = messages_of(form)
    weights = uniform_spanning_trees(len(form.cardinalities), form.edges)
    messages = np.random.default_rng(seed).normal(size=layout.starts[-1])
    trw_kernels.send(layout, form.unary, weights, 0.3, sweeps, messages)
    bound, gap, information = certify(form, weights, messages)
    if bound == -np.inf:
        assert log_z(graph) == -np.inf
        return
    one, two, norms, pair_norms = pseudo_marginals(form, weights, as_dictionary(layout, messages))
    constant, slack = norms.sum(), 0.0
    for e, (i, j) in enumerate(form.edges.tolist()):
        constant += weights[e] * (pair_norms[e] - norms[i] - norms[j])
        rows, columns = np.logaddexp.reduce(two[e], axis=1), np.logaddexp.reduce(two[e], axis=0)
        ratio_i = (rows[one[i] > -np.inf] - one[i][one[i] > -np.inf]).max()
        ratio_j = (columns[one[j] > -np.inf] - one[j][one[j] > -np.inf]).max()
        slack += weights[e] * max(ratio_i, ratio_j)
        alive = two[e] > -np.inf
        mutual = np.exp(two[e][alive]) @ (two[e] - np.where(alive, rows[:, None] + columns, 0))[alive]
        assert information[e] == pytest.approx(mutual, rel=1e-7, abs=1e-7)
    assert gap == pytest.approx(slack, rel=1e-8, abs=1e-8)
    assert bound == pytest.approx(constant + slack, rel=1e-10, abs=1e-8)
    assert form.constant + bound >= log_z(graph) - 1e-9


def test_the_certificate_is_above_a_mixture_of_explicit_trees():
    """At any messages bound >= sum_T rho_T ln Z(theta_T) >= ln Z; the T are the 8 trees of a cycle
    with a chord.
    """
    rng = np.random.default_rng(0)
    pairs = [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)]
    graph = FactorGraph(
        [2, 3, 2, 3],
        [Factor((i,), rng.normal(size=k)) for i, k in enumerate([2, 3, 2, 3])]
        + [Factor(p, rng.normal(0, 2, [[2, 3, 2, 3][i] for i in p])) for p in pairs],
    )
    form = pairwise(graph)
    layout = messages_of(form)
    trees = spanning_forests(4, form.edges)
    assert len(trees) == 8
    share = rng.dirichlet(np.ones(8))
    weights = share @ trees
    messages = np.zeros(layout.starts[-1])
    states = all_states(graph)
    for sweeps in range(4):
        bound, gap, _ = certify(form, weights, messages)
        one, two, norms, pair_norms = pseudo_marginals(form, weights, as_dictionary(layout, messages))
        i, j = form.edges.T
        constant = norms.sum() + weights @ (pair_norms - norms[i] - norms[j])
        theta = np.full((8, len(states)), constant) + sum(one[v][states[:, v]] for v in range(4))
        for e, (a, b) in enumerate(form.edges.tolist()):
            term = two[e][states[:, a], states[:, b]] - one[a][states[:, a]] - one[b][states[:, b]]
            theta += trees[:, e, None] * term
        np.testing.assert_allclose(share @ theta, graph.log_potential(states), atol=1e-10)
        mixture = share @ np.logaddexp.reduce(theta, axis=1)
        assert bound >= mixture - 1e-12
        assert mixture >= log_z(graph)
        assert bound - gap == pytest.approx(constant)
        trw_kernels.send(layout, form.unary, weights, 0.0, sweeps + 1, messages)
    assert bound == pytest.approx(mixture, abs=1e-2)


@settings(max_examples=examples(25))
@given(binary_graphs(), st.integers(0, 2**32), st.sampled_from([0.0, 0.4]))
def test_binary_sweeps_are_the_general_ones(graph, seed, damping):
    form = pairwise(graph)
    layout, rng = messages_of(form), np.random.default_rng(seed)
    weights = rng.uniform(0.1, 1, len(form.edges))
    general = rng.normal(size=layout.starts[-1])
    binary = general.copy()
    trw_kernels.send(layout, form.unary, weights, damping, 2, general)
    trw_kernels.send_binary(layout, form.unary, up_and_down(form.edges), weights, damping, 2, binary)
    np.testing.assert_allclose(np.diff(binary)[::2], np.diff(general)[::2], rtol=1e-9, atol=1e-9)


def test_binary_and_general_sweeps_reach_the_same_bound():
    graph = grid(6, 5, 2.0, np.random.default_rng(0), attractive=False)
    found = []
    for general in (False, True):
        descent = _Descent(pairwise(graph), 1e-9)
        assert descent._order is not None
        if general:
            descent._order = None
        point = descent.run(descent.start(), 2000)
        assert descent.negligible(point.gap, point)
        found.append((point.bound, descent.sweeps))
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_the_bound_on_100_small_models():
    """Converged or not; what is called converged has no gap to speak of."""
    rng = np.random.default_rng(0)
    converged = 0
    for _ in range(100):
        graph = grid(*rng.integers(1, 4, 2), rng.uniform(0, 3), rng, int(rng.integers(2, 4)), bool(rng.integers(2)))
        limits = {"weight_steps": int(rng.integers(0, 10)), "max_sweeps": int(rng.choice([1, 1000]))}
        result = trw_log_partition_function(graph, **limits)
        assert result.value >= Elimination(graph).log_partition_function() - 1e-9
        assert result.converged == (result.gap <= 1e-6 * max(1.0, abs(result.mixture)))
        converged += result.converged
    assert 75 < converged < 100


def test_sweeps_are_at_most_as_many_as_asked_for_at_given_edge_weights():
    graph = grid(5, 5, 3.0, np.random.default_rng(0), attractive=False)
    for sweeps in (1, 7, 43):
        result = trw_log_partition_function(graph, weight_steps=0, max_sweeps=sweeps)
        assert result.iterations in (sweeps, 2 * sweeps)
        assert not result.converged


@settings(max_examples=examples(25))
@given(factor_graphs(), st.integers(0, 5), st.sampled_from([1, 20, 200]))
def test_the_bound_holds_however_little_is_done(graph, steps, sweeps):
    result = trw_log_partition_function(graph, weight_steps=steps, max_sweeps=sweeps)
    exact = log_z(graph)
    assert result.value >= exact - 1e-9 * max(1.0, abs(exact) if exact > -np.inf else 0.0)
    assert result.gap >= -1e-9
    assert result.edge_appearance.shape == (len(pairwise(lifted(graph)).edges),)
    most = np.log(graph.cardinalities).sum() + sum(factor.table.max() for factor in graph.factors)
    assert result.value == pytest.approx(min(result.mixture, most), rel=1e-12, abs=1e-12)


def test_the_trivial_bound_is_returned_where_lifting_is_looser():
    graph = load_model(MODELS / "sat-16-60.uai")
    result = trw_log_partition_function(graph, weight_steps=3)
    assert result.value == pytest.approx(16 * np.log(2))
    assert result.mixture > 50
    assert Elimination(graph).log_partition_function() <= result.value
    assert result.converged == (result.gap <= 1e-6 * result.mixture)


def test_the_mixture_is_returned_where_it_is_tighter():
    graph = grid(4, 4, 1.0, np.random.default_rng(0))
    result = trw_log_partition_function(graph)
    assert result.value == result.mixture < 16 * np.log(2) + sum(factor.table.max() for factor in graph.factors) - 1


@settings(max_examples=examples(25))
@given(forests())
def test_forests_are_exact(graph):
    result = trw_log_partition_function(graph, tolerance=1e-11)
    assert result.converged
    assert result.value == pytest.approx(log_z(graph), rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(result.edge_appearance, 1.0)


@settings(max_examples=examples(20))
@given(factor_graphs(impossible=False))
def test_better_edge_weights_never_loosen_the_bound_and_stay_in_the_polytope(graph):
    fixed = trw_log_partition_function(graph, weight_steps=0, max_sweeps=100)
    moved = trw_log_partition_function(graph, weight_steps=8, max_sweeps=100)
    assert moved.value <= fixed.value
    form = pairwise(lifted(graph))
    n = len(form.cardinalities)
    forests = spanning_forests(n, form.edges) if len(form.edges) <= 10 else None
    for result in (fixed, moved):
        assert (result.edge_appearance > 0).all()
        if forests is not None:
            assert result.edge_appearance.sum() == pytest.approx(forests[0].sum())
        for size in range(2, min(n, 7) + 1):
            for chosen in itertools.combinations(range(n), size):
                inside = np.isin(form.edges, chosen).all(axis=1)
                assert result.edge_appearance[inside].sum() <= size - 1 + 1e-9


def test_a_step_too_far_is_not_taken():
    """Almost equal couplings: the first weights are almost the best, and a step towards one tree
    leads away.
    """
    spin = np.array([-1.0, 1.0])
    cycle = [Factor((i, (i + 1) % 5), (1.5 + 0.05 * i) * np.outer(spin, spin)) for i in range(5)]
    graph = FactorGraph([2] * 5, [*cycle, Factor((0,), 0.01 * spin)])
    fixed, moved = (trw_log_partition_function(graph, weight_steps=steps, tolerance=1e-9) for steps in (0, 1))
    assert moved.iterations > fixed.iterations
    assert moved.value == fixed.value
    np.testing.assert_array_equal(moved.edge_appearance, fixed.edge_appearance)


def test_a_cycle_without_fields():
    """n spins of coupling J: by symmetry rho = 1 - 1/n, and each tree is a chain of coupling J /
    rho.
    """
    spin = np.array([-1.0, 1.0])
    for n, coupling in ((3, 0.4), (5, 1.5), (8, -0.7)):
        graph = FactorGraph([2] * n, [Factor((i, (i + 1) % n), coupling * np.outer(spin, spin)) for i in range(n)])
        result = trw_log_partition_function(graph, tolerance=1e-10)
        expected = n * np.log(2) + (n - 1) * np.log(np.cosh(coupling * n / (n - 1)))
        assert result.converged
        assert result.value == pytest.approx(expected, rel=1e-9)
        np.testing.assert_allclose(result.edge_appearance, 1 - 1 / n, atol=1e-4)


def test_a_converged_bound_is_the_optimum_of_the_free_energy():
    """The primal of Wainwright et al.: <theta, tau> + sum_s H_s - sum_st rho_st I_st at the
    pseudo-marginals.
    """
    graph = grid(4, 4, 1.0, np.random.default_rng(5), states=3, attractive=False)
    form = pairwise(graph)
    descent = _Descent(form, 1e-12)
    point = descent.run(descent.start(), 5000)
    one, two, _, _ = pseudo_marginals(form, point.weights, as_dictionary(messages_of(form), point.messages))
    primal = sum(np.exp(t) @ (form.unary[form.offsets[v] :][: t.size] - t) for v, t in enumerate(one))
    for e, (i, j) in enumerate(form.edges.tolist()):
        primal += (np.exp(two[e]) * (form.tables[e] - point.weights[e] * (two[e] - one[i][:, None] - one[j]))).sum()
        np.testing.assert_allclose(np.logaddexp.reduce(two[e], axis=1), one[i], atol=1e-6)
    assert point.bound == pytest.approx(primal, abs=1e-6)
    assert point.gap < 1e-9


def test_edge_weights_that_gain_no_more_are_a_stationary_point():
    """Conditional gradient ends where no spanning tree has more mutual information than the mixture
    has.
    """
    graph = grid(3, 3, 1.0, np.random.default_rng(1))
    tight = trw_log_partition_function(graph, tolerance=1e-8, weight_steps=2000)
    form = pairwise(graph)
    descent = _Descent(form, 1e-10)
    messages = np.zeros(messages_of(form).starts[-1])
    point = descent.run(descent._at(tight.edge_appearance, messages), 5000)
    trees = spanning_forests(9, form.edges)
    assert (trees @ point.information).max() - point.weights @ point.information < 0.02
    for tree in trees[::10]:
        other = descent.run(descent._at(0.9 * tight.edge_appearance + 0.1 * tree, messages), 5000)
        assert other.bound >= tight.value - 2e-3
    loose = trw_log_partition_function(graph, weight_steps=0).value
    assert tight.value < loose - 0.1


def test_messages_that_diverge_undamped_are_damped():
    """3-SAT: undamped, each sweep raises the bound some thousandfold."""
    rng = np.random.default_rng(0)
    factors = []
    for _ in range(20):
        table = np.zeros((2, 2, 2))
        table[tuple(rng.integers(0, 2, 3))] = -np.inf
        factors.append(Factor(tuple(rng.choice(8, 3, replace=False)), table))
    graph = FactorGraph([2] * 8, factors)
    result = trw_log_partition_function(graph, weight_steps=3)
    assert result.converged
    assert Elimination(graph).log_partition_function() <= result.mixture < 8 * np.log(7) + 10


def test_a_larger_grid_converges_and_is_bounded():
    graph = grid(10, 10, 1.0, np.random.default_rng(0))
    exact = Elimination(graph).log_partition_function()
    result = trw_log_partition_function(graph)
    assert result.converged
    assert exact < result.value < exact + 5
    assert result.iterations < 1000


def test_an_impossible_model():
    agree = np.where(np.eye(2) > 0, 0.0, -np.inf)
    factors = [Factor((0, 1), agree), Factor((0,), np.array([0.0, -np.inf])), Factor((1,), np.array([-np.inf, 0.0]))]
    result = trw_log_partition_function(FactorGraph([2, 2], factors))
    assert result.value == -np.inf
    assert result.converged
