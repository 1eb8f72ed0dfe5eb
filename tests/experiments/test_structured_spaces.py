"""The experiment on spaces of structures, against examples done by hand and closed forms."""

import numpy as np
import pytest

from tests.experiments.runs import one, rows, run, whole
from thesis_cli.structured.pairs import pair_table
from thesis_cli.studies.structured import hamiltonian


def graph(vertices, edges):
    found = np.zeros(vertices * (vertices - 1) // 2)
    for a, b in edges:
        found[pair_table(vertices)[a, b]] = 1.0
    return found


def test_a_path_and_two_triangles_have_no_hamiltonian_cycle():
    """A cycle of six passes the threshold of Theorem 2.1, as it should; two triangles pass only if
    edges count twice, because 18 cycles of the complete graph have four of their edges.
    """
    ring = [(i, (i + 1) % 6) for i in range(6)]
    triangles = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]
    edges = np.array([graph(6, ring), graph(6, triangles), graph(6, ring[:1])])
    found = hamiltonian.decisions(edges, 6)
    assert found.hamiltonian.tolist() == [True, False, False]
    assert (found.once >= 1).tolist() == [True, False, False]
    assert (found.twice >= 1).tolist() == [True, True, False]
    weight = np.log(720 * 6)
    assert found.twice[1] == pytest.approx((8 * weight + np.log(18)) / (6 * weight), abs=1e-6)


def test_all_graphs_of_four_vertices():
    """10 of the 64 contain a Hamiltonian cycle; doubled, all pass but the 7 with one edge or none."""
    found = run("structured-spaces", part="graphs", elements=4, trial=0, size=1)
    assert one(found, case="once", quantity="without Hamiltonian cycle").value == 54
    assert one(found, case="once", quantity="share wrong").value == 0
    assert one(found, case="twice", quantity="share wrong").value == 47 / 64


def test_sizes_and_formulas_on_small_trees():
    frame = whole("structured-spaces", samples=200, repetitions=1, nodes=5, trees=3, graphs=2, vertices=[4], items=6)
    sizes = rows(frame, part="counts", quantity="size over count, ln").value
    assert np.abs(sizes).max() < 1e-12
    assert set(rows(frame, case="equation 2").value) == {1}
    assert set(rows(frame, case="corrected", quantity="share right").value) == {1}
    assert rows(frame, part="permanents").value.max() < 1e-3
