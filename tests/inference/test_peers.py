"""Answers of other programs to the same questions; each test needs its program, from the extra
`dev`.
"""

import numpy as np
import pytest

from tests.inference.graph_cut.test_qpbo import mixed_grid
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel, GraphCut
from thesis_cli.inference.graph_cut.qpbo import QPBO
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.studies.models.examples import asia, ising, random_3_sat


def random_model(rng, n=12):
    """Variables of 2 or 3 states, factors of 1 to 3 variables over distinct scopes, one in ten
    entries -inf.
    """
    cardinalities = rng.integers(2, 4, n)
    scopes = {tuple(sorted(rng.choice(n, rng.integers(1, 4), replace=False).tolist())) for _ in range(20)}
    state = [int(rng.integers(k)) for k in cardinalities]
    factors = []
    for scope in sorted(scopes):
        table = rng.normal(0, 2, cardinalities[list(scope)])
        table[rng.random(table.shape) < 0.1] = -np.inf
        table[tuple(state[i] for i in scope)] = 1.0  # so that some configuration is possible
        factors.append(Factor(scope, table))
    return FactorGraph(cardinalities, factors)


MODELS = {
    "asia": asia(),
    "3-SAT": random_3_sat(12, 30, np.random.default_rng(4)),
    **{f"random {seed}": random_model(np.random.default_rng(seed)) for seed in range(10)},
}


def toulbar2_maximum(graph):
    """max_x phi(x) to nine decimals."""
    tb2 = pytest.importorskip("pytoulbar2")
    problem = tb2.CFN(resolution=9)
    for i, k in enumerate(graph.cardinalities):
        problem.AddVariable(f"x{i}", range(k))
    for factor in graph.factors:
        costs = np.where(factor.table == -np.inf, problem.Top, -factor.table)
        problem.AddFunction(list(factor.scope), costs.reshape(-1).tolist())
    return -problem.Solve()[1]


@pytest.mark.parametrize("name", MODELS)
def test_maximum_is_that_of_toulbar2(name):
    graph = MODELS[name]
    value = Elimination(graph).maximise(np.zeros((1, sum(graph.cardinalities))))[0][0]
    assert toulbar2_maximum(graph) == pytest.approx(value, abs=1e-9 * (len(graph.factors) + 1))


@pytest.mark.parametrize("side", [10, 30])
def test_minimum_cut_is_that_of_toulbar2(side):
    graph = ising(side, side, 0.5, np.random.default_rng(side))
    value = GraphCut(graph).maximise(np.zeros((1, 2 * side**2)))[0][0]
    assert toulbar2_maximum(graph) == pytest.approx(value, abs=1e-9 * len(graph.factors))


@pytest.mark.parametrize("name", MODELS)
def test_marginals_and_ln_z_are_those_of_pyagrum(name):
    gum = pytest.importorskip("pyagrum")
    graph = MODELS[name]
    network = gum.MarkovRandomField()
    for i, k in enumerate(graph.cardinalities):
        network.add(gum.RangeVariable(f"x{i}", "", 0, k - 1))
    tables = {(i,): np.zeros(k) for i, k in enumerate(graph.cardinalities)}  # it takes one for each scope
    for factor in graph.factors:
        order = np.argsort(factor.scope)
        scope = tuple(factor.scope[a] for a in order)
        tables[scope] = tables.get(scope, 0.0) + factor.table.transpose(order)
    for scope, table in tables.items():
        tensor = network.addFactor([f"x{i}" for i in scope])
        tensor[:] = np.ascontiguousarray(np.exp(table).T)  # its first variable runs fastest
    everything = Elimination(graph)
    log_z = everything.log_partition_function()
    inference = gum.ShaferShenoyMRFInference(network)
    inference.makeInference()
    for i in range(len(graph.cardinalities)):
        for state, p in enumerate(inference.posterior(f"x{i}").toarray()):
            if p > 0:
                clamped = Elimination(graph.condition({i: state})).log_partition_function()
                assert np.exp(clamped - log_z) == pytest.approx(p, rel=1e-9)
    # ln Z = phi(x) - ln p(x), p(x) by the chain rule
    best = everything.maximise(np.zeros((1, sum(graph.cardinalities))))[1]
    log_p = 0.0
    for i, state in enumerate(best[0].tolist()):
        inference.setEvidence({f"x{j}": int(best[0, j]) for j in range(i)})
        inference.makeInference()
        log_p += np.log(inference.posterior(f"x{i}").toarray()[state])
    assert graph.log_potential(best)[0] - log_p == pytest.approx(log_z, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("coupling", [0.5, 1.0, 2.0])
def test_labels_and_bounds_are_those_of_thinqpbo(coupling):
    thinqpbo = pytest.importorskip("thinqpbo")
    rng = np.random.default_rng(5)
    graph = mixed_grid(12, coupling, rng)
    model = BinaryModel.of(graph)
    noise = rng.gumbel(size=(20, 2 * 144))
    states, bounds = QPBO(graph).persistent(noise)
    for x, bound, row in zip(states, bounds, noise.reshape(20, 144, 2), strict=True):
        peer = thinqpbo.QPBODouble(144, len(model.edges))
        peer.add_node(144)
        for i, (zero, one) in enumerate((-model.unary - row).tolist()):
            peer.add_unary_term(i, zero, one)
        for (i, j), table in zip(model.edges.tolist(), -model.tables, strict=True):
            peer.add_pairwise_term(i, j, *table.reshape(-1).tolist())
        peer.solve()
        assert [max(-1, peer.get_label(i)) for i in range(144)] == x.tolist()
        assert -peer.compute_twice_lower_bound() / 2 == pytest.approx(bound, rel=1e-12)
