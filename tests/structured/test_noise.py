"""MAP problems under noise on variables, against all structures one by one."""

from __future__ import annotations

from itertools import combinations
from typing import get_args

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.structured.catalogue import ENTRIES, kind_of, noise_names, noise_on, space
from thesis_cli.structured.names import FeatureName, NoiseName
from thesis_cli.structured.tasks import SPACES

TREE = [-1, 0, 0, 1, 1]


def of_bits(bits, noise):
    """Noise of states 0 or 1, two numbers for each."""
    pairs = noise.reshape(-1, 2)
    return sum(pairs[k, int(bit)] for k, bit in enumerate(bits))


def of_positions(row, noise):
    table = noise.reshape(len(row) - 1, len(row))
    return sum(table[i, row[i]] for i in range(len(row) - 1))


def of_orders(row, noise):
    return of_bits([row[i] < row[j] for i, j in combinations(range(len(row)), 2)], noise)


def of_edges(row, noise):
    cycle = [v for v in row.tolist() if v >= 0]
    edges = {frozenset(e) for e in zip(cycle, cycle[1:] + cycle[:1], strict=True)}
    return of_bits([frozenset(e) in edges for e in combinations(range(len(row) - 1), 2)], noise)


def of_blocks(row, noise):
    """Element j >= 1 has j + 1 numbers, one for each least element of its block."""
    least = [row.tolist().index(block) for block in row]
    return sum(noise[(j * (j + 1)) // 2 - 1 + least[j]] for j in range(1, len(row)))


def of_pairs(row, noise):
    return of_bits([row[i] == row[j] for i, j in combinations(range(len(row)), 2)], noise)


CASES = [
    ("hypercube", 4, "linear", None, "bits", of_bits, 4),
    ("hypercube", 4, "pairs", None, "bits", of_bits, 4),
    ("permutations", 4, "positions", None, "positions", of_positions, 3),
    ("permutations", 4, "ranks", None, "positions", of_positions, 3),
    ("permutations", 4, "orders", None, "positions", of_positions, 3),
    ("permutations", 4, "orders", None, "orders", of_orders, 6),
    ("cycles", 5, "edges", None, "edges", of_edges, 6),
    ("cycle-sets", 5, "edges", None, "edges", of_edges, 6),
    ("subtrees", 5, "nodes", TREE, "nodes", lambda row, noise: of_bits(row[1:], noise), 4),
    ("partitions", 4, "pairs", None, "blocks", of_blocks, 3),
    ("partitions", 4, "pairs", None, "pairs", of_pairs, 6),
]
IDS = [f"{case[0]}-{case[2]}-{case[4]}" for case in CASES]


@pytest.mark.parametrize(("name", "elements", "features", "parents", "noise", "total", "terms"), CASES, ids=IDS)
def test_maxima_are_those_of_all_structures(name, elements, features, parents, noise, total, terms):
    found = space(name, elements, features, parents)
    assert kind_of(found) == features
    rng = np.random.default_rng(1)
    weights = rng.normal(size=found.dimension)
    model = noise_on(found, weights, noise)
    assert model.terms == terms
    numbers = 2 * rng.normal(size=(12, model.entries))
    maxima = model.maximise(numbers)
    assert maxima.exact
    rows = np.concatenate(list(found.blocks()))
    scores = found.scores(rows, weights)
    for problem, row in enumerate(numbers):
        values = scores + np.array([total(structure, row) for structure in rows])
        assert maxima.values[problem] == pytest.approx(values.max())
        assert maxima.structures[problem].tolist() == rows[values.argmax()].tolist()
    assert len(np.unique(maxima.structures, axis=0)) > 2


def test_the_variables_with_noise_determine_the_structure():
    """Each structure has a sum of noise of its own: no two share the states of all variables."""
    rng = np.random.default_rng(2)
    for name, elements, features, parents, noise_name, total, _ in CASES:
        found = space(name, elements, features, parents)
        noise = rng.normal(size=200)
        rows = np.concatenate(list(found.blocks()))
        entries = noise_on(found, np.zeros(found.dimension), noise_name).entries
        assert len({round(total(row, noise[:entries]), 9) for row in rows}) == len(rows)


def test_one_element_takes_no_noise_or_little():
    for name, features, parents in (
        ("permutations", "positions", None),
        ("permutations", "orders", None),
        ("partitions", "pairs", None),
        ("subtrees", "nodes", [-1]),
    ):
        found = space(name, 1, features, parents)
        for kind in noise_names(found):
            model = noise_on(found, np.zeros(found.dimension), kind)
            assert (model.terms, model.entries) == (0, 0)
            assert model.maximise(np.zeros((2, 0))).values.tolist() == [0, 0]


def test_unknown_and_too_large():
    with pytest.raises(InputError, match="no noise on 'pairs'; must be one of: nodes"):
        noise_on(space("subtrees", 2, None, [-1, 0]), np.zeros(2), "pairs")
    assert noise_names(space("permutations", 19, "orders")) == ["orders"]
    assert noise_names(space("partitions", 15)) == ["pairs"]


def test_options_name_the_noise_and_the_features_of_the_catalogue():
    entries = [entry for kinds in ENTRIES.values() for entry in kinds.values()]
    assert set(get_args(NoiseName)) == {name for entry in entries for name in entry.noises}
    assert set(get_args(FeatureName)) == {name for space in SPACES.values() for name in ENTRIES[space]}
