"""Each generator makes the networks that it says, on sizes that enumeration takes."""

import itertools
import math

import numpy as np
import pytest

from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.evidence import condition
from thesis_cli.models.files import load_model
from thesis_cli.studies.models import families
from thesis_cli.studies.models.network import (
    BayesianNetwork,
    _noisy_or,
    bipartite,
    circuit,
    deterministic_grid,
    diagnosis,
    grid,
    multiplier,
    noisy_or_chain,
    pedigree,
    regular,
    torus,
)


def drawn(generator, *arguments):
    return generator(*arguments, np.random.default_rng(5))


def possible(graph):
    """All configurations that no factor forbids, as rows."""
    states = np.indices(graph.cardinalities).reshape(len(graph.cardinalities), -1).T
    return states[graph.log_potential(states) > -np.inf]


@pytest.mark.parametrize(
    ("generator", "arguments"),
    [
        (deterministic_grid, (3, 0.5)),
        (circuit, (4, 10, 6)),
        (diagnosis, (4, 5, 2)),
        (pedigree, (2, 1, 1, 3, 0.5)),
        (families.lineage, (2, 2, 1, 2, 0.5)),
        (families.dynamic, (2, 2, 2, 1)),
        (families.causes, (3, 2, 2, 0.9)),
    ],
)
def test_a_causal_network_is_normalised_and_its_evidence_is_possible(generator, arguments):
    network = drawn(generator, *arguments)
    assert log_partition_function(network.graph) == pytest.approx(0, abs=1e-12)
    assert network.evidence
    assert -20 < log_partition_function(network.conditioned()) < 0


def test_a_chain_is_the_table_of_a_noisy_or():
    found = []
    for add in (_noisy_or, noisy_or_chain):
        net = BayesianNetwork(np.random.default_rng(0))
        parents = [net.add([], [1 - p, p]) for p in (0.1, 0.3, 0.6)]
        finding = add(net, parents, np.array([0.2, 0.5, 0.9]), 0.05)
        found.append(log_partition_function(net.network([]).graph.condition({finding: 1})))
    off = 0.95 * (0.9 + 0.1 * 0.2) * (0.7 + 0.3 * 0.5) * (0.4 + 0.6 * 0.9)
    assert found == pytest.approx([math.log(1 - off)] * 2, abs=1e-13)


def test_a_circuit_counts_the_inputs_that_give_its_outputs():
    network = drawn(circuit, 5, 9, 6)
    parents = {i for factor in network.graph.factors for i in factor.scope[1:]}
    assert set(network.evidence) == set(range(5, 14)) - parents
    inputs = 2**5 * math.exp(log_partition_function(network.conditioned()))
    assert inputs == pytest.approx(round(inputs), abs=1e-9)
    assert inputs >= 1


def test_a_multiplier_multiplies():
    """Over 4^bits, Z is the number of pairs that have the observed product."""
    conditioned = drawn(multiplier, 3).conditioned()
    product = sum(bit << k for k, bit in enumerate(conditioned.observed.values()))
    pairs = sum(a * b == product for a in range(8) for b in range(8))
    assert 64 * math.exp(Elimination(conditioned).log_partition_function()) == pytest.approx(pairs)


def test_a_child_has_what_the_selector_says():
    """One locus, two founders, one child: a selector says which allele a parent passes on."""
    graph = drawn(pedigree, 2, 1, 1, 2, 0.5).graph
    rows = possible(graph)
    assert len(rows) == 2**6
    inherited = [factor.scope for factor in graph.factors if len(factor.scope) == 4]
    assert len(inherited) == 2
    for child, first, second, selector in inherited:
        assert (rows[:, child] == np.where(rows[:, selector] == 0, rows[:, first], rows[:, second])).all()


def test_hard_transitive_friends_are_the_partitions_of_the_people():
    assert len(possible(drawn(families.transitive_friends, 5, np.inf).graph)) == 52


def test_friends_and_smokers_weighs_its_rules():
    """Two people: phi of a world is the weight of the rules that hold in it."""
    network = drawn(families.friends_and_smokers, 2, 1.0)
    assert set(network.evidence) == {4, 5}
    states = np.array(list(itertools.product((0, 1), repeat=6)))
    a, b, ill_a, ill_b, ab, ba = states.T
    weight = 1.4 * (2 - a - b) + 2.3 * (2 - ill_a - ill_b) + (2 - ab - ba)
    weight += 1.5 * (((a == 0) | (ill_a == 1)).astype(int) + ((b == 0) | (ill_b == 1)))
    weight += 1.1 * (1 - ab * a * (1 - b)) + 1.1 * (1 - ba * b * (1 - a))
    np.testing.assert_allclose(network.graph.log_potential(states), weight)


def test_transport_counts_plans():
    """Two places, a truck and a package: against a walk over the states, step by step."""
    network = drawn(families.transport, 2, 1, 1, 4)
    steps = {
        (t, p): {(u, q) for u in (0, 1) for q in {p, t if p == 2 else 2 if p == t else p}}
        for t in (0, 1)
        for p in range(3)
    }
    plans = {(network.evidence[0], network.evidence[1]): 1}
    for _ in range(3):
        then: dict[tuple[int, int], int] = {}
        for state, count in plans.items():
            for follower in steps[state]:
                then[follower] = then.get(follower, 0) + count
        plans = then
    wanted = sum(count for (_, package), count in plans.items() if package == network.evidence[7])
    assert wanted > 0
    assert math.exp(log_partition_function(network.conditioned())) == pytest.approx(wanted)


def test_packages_never_share_a_truck_and_the_drawn_plan_is_legal():
    network = drawn(families.transport, 2, 1, 2, 3)
    rows = possible(network.conditioned())
    assert len(rows)
    assert not ((rows[:, 4] == 2) & (rows[:, 5] == 2)).any()


def test_3_sat_has_its_clauses_and_a_solution():
    network = drawn(families.satisfiability, 10, 6.0)
    assert len(network.graph.factors) == 60
    assert len(possible(network.graph)) >= 1


def test_the_shapes_of_pairwise_models():
    scopes = [f.scope for f in drawn(regular, 10, 3, 4, 1.0).graph.factors if len(f.scope) == 2]
    assert len(set(scopes)) == 15
    assert np.bincount(np.ravel(scopes)).tolist() == [3] * 10
    scopes = [f.scope for f in drawn(torus, 4, 1.0).graph.factors if len(f.scope) == 2]
    assert np.bincount(np.ravel(scopes)).tolist() == [4] * 16
    assert len(drawn(bipartite, 3, 5, 1.0).graph.factors) == 8 + 15
    assert len(drawn(grid, 4, 1.0, "mixed").graph.factors) == 16 + 24


def test_files_hold_the_networks(tmp_path, monkeypatch, capsys):
    kept = [member for member in families.MEMBERS if member.name in ("circuit-100", "grid-mixed-10")]
    monkeypatch.setattr(families, "MEMBERS", kept)
    monkeypatch.setattr("sys.argv", ["families", str(tmp_path)])
    assert families.main() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "circuit-100.evid",
        "circuit-100.uai",
        "grid-mixed-10.uai",
    ]
    assert "19 observed" in capsys.readouterr().out
    for member in kept:
        network = member.network()
        evidence = [tmp_path / f"{member.name}.evid"] if network.evidence else []
        read = condition(load_model(tmp_path / f"{member.name}.uai"), evidence)
        assert read.observed == network.evidence
        for one, other in zip(read.factors, network.conditioned().factors, strict=True):
            assert one.scope == other.scope
            np.testing.assert_allclose(one.table, other.table, atol=1e-14)


def test_regions_of_a_picture_prefer_the_label_of_their_neighbours():
    graph = drawn(families.segmentation, 2, 3, 1.0, 0.5).graph
    pairs = [f for f in graph.factors if len(f.scope) == 2]
    assert sorted(f.scope for f in pairs) == [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]
    assert all((np.diag(f.table) > 0).all() and (f.table[~np.eye(3, dtype=bool)] == 0).all() for f in pairs)


def test_the_children_of_a_lineage_have_alleles_of_their_parents():
    network = drawn(families.lineage, 4, 5, 2, 2, 0.3)
    assert network.graph.size > 2**60
    assert -200 < Elimination(network.conditioned()).log_partition_function() < 0
