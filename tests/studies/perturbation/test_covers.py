import itertools

import numpy as np
import pytest

from tests.perturbation.models import seed, triangle
from thesis_cli.base.errors import InputError, UnsuitableModel
from thesis_cli.inference.graph_cut.graph_cut import GraphCut
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.perturbation.expanded.copies import variable_noise
from thesis_cli.perturbation.expanded.expanded import expanded_maximum
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.studies.perturbation.grid_bounds import _linked, cover_maximum


def grid(rows, columns, coupling=1.5):
    return random_spin_glass(rows, columns, coupling, 0.5, "attractive", np.random.default_rng(2)).graph()


@pytest.mark.parametrize("copies", [1, 5])
def test_with_all_links_it_is_the_expanded_model(copies):
    for entropy in range(4):
        found = cover_maximum(grid(2, 3), copies, copies, entropy)
        expanded = expanded_maximum(grid(2, 3), copies, entropy)
        assert expanded.exact
        assert found.value == pytest.approx(expanded.value, abs=1e-12)
        np.testing.assert_allclose(found.frequencies, [q[1] for q in expanded.frequencies], atol=1e-12)


def test_each_copy_has_its_links():
    pairs = _linked(np.array([2, 5]), 7, 3, np.random.default_rng(0))
    assert len(np.unique(pairs, axis=0)) == 21
    np.testing.assert_array_equal(np.bincount(pairs[:, 0], minlength=21), [0] * 14 + [3] * 7)
    np.testing.assert_array_equal(np.bincount(pairs[:, 1], minlength=42), [0] * 35 + [3] * 7)


@pytest.mark.parametrize("links", [1, 2])
def test_it_is_the_maximum_over_all_configurations_of_its_copies(links):
    graph, copies = grid(1, 2), 4
    rng = np.random.default_rng(np.random.SeedSequence(9, spawn_key=(3,)))
    edges = _linked(np.array([0, 1]), copies, links, rng)
    noise = np.concatenate([variable_noise(seed(9), i, copies, 2) for i in range(2)])
    states = np.array(list(itertools.product((0, 1), repeat=8)))
    fields = np.repeat([graph.factors[0].table, graph.factors[1].table], copies, axis=0) + noise
    values = fields[np.arange(8), states].sum(axis=1)
    values += sum(graph.factors[2].table[states[:, a], states[:, b]] for a, b in edges) / links
    found = cover_maximum(graph, copies, links, 9)
    assert found.value == pytest.approx(values.max() / copies, abs=1e-12)
    assert (found.nodes, found.arcs) == (8, 4 * links)


def test_a_cover_of_a_tree_with_one_link_is_as_high_as_the_upper_bound():
    """Its parts are copies of the tree, so that its value is a mean of perturb-max values."""
    graph, copies = grid(1, 5), 2000
    cover = cover_maximum(graph, copies, 1, 0).value
    maxima = low_rank_maxima(GraphCut(graph), copies, seed(1)).values
    error = maxima.std() * (2 / copies) ** 0.5
    assert abs(cover - maxima.mean()) < 5 * error
    expanded = expanded_maximum(graph, copies, 0).value
    assert cover > expanded + 5 * error


def test_refusals():
    with pytest.raises(InputError, match="links is 6; it must be from 1 to the number of copies, 5"):
        cover_maximum(grid(2, 2), 5, 6, 0)
    with pytest.raises(UnsuitableModel, match="frustrated"):
        cover_maximum(triangle(), 5, 1, 0)
    assert cover_maximum(FactorGraph([2, 1], []), 3, 1, 0).arcs == 0
