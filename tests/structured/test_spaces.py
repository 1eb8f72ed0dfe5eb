"""Every space against enumeration: counts, samplers, features, ln Z, gradients, maxima, exact draws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured import cycles, local_search, orderings, partitions, permutations
from thesis_cli.structured.catalogue import space
from thesis_cli.structured.observations import Known
from thesis_cli.structured.pairs import as_matrices
from thesis_cli.structured.space import Space

SMALL = [
    ("hypercube", 4, "linear", None),
    ("hypercube", 4, "pairs", None),
    ("permutations", 4, "positions", None),
    ("permutations", 4, "ranks", None),
    ("permutations", 4, "orders", None),
    ("cycles", 5, "edges", None),
    ("cycle-sets", 5, "edges", None),
    ("subtrees", 6, "nodes", [-1, 3, 0, 0, 2, 3]),
    ("partitions", 5, "pairs", None),
]


@pytest.fixture(params=SMALL, ids=lambda case: f"{case[0]}-{case[2]}-{case[1]}")
def small(request):
    return space(*request.param)


def everything(small):
    return np.concatenate(list(small.blocks(rows=7)))


def weights_of(small, count=3, scale=1.0):
    return scale * np.random.default_rng(5).normal(size=(count, small.dimension))


def test_structures_are_valid_and_counted(small):
    rows = everything(small)
    assert len(rows) == len(np.unique(rows, axis=0)) == small.size()
    assert small.valid(rows).all()
    assert small.features(rows).shape == (len(rows), small.dimension)
    norms = np.linalg.norm(small.features(rows), axis=1)
    assert norms.max() == pytest.approx(small.radius)


@pytest.mark.parametrize(
    "lattice",
    [
        cycles.cycle_lattice(6, True),
        cycles.cycle_lattice(6, False),
        partitions.block_lattice(5),
        orderings.assignments(4),
        orderings.orders(4),
    ],
    ids=lambda lattice: type(lattice).__name__,
)
def test_the_size_of_a_lattice_is_known_before_it_is_listed(lattice):
    sizes = [lattice.level(number).sources.size for number in range(lattice.levels)]
    assert (lattice.edges, lattice.largest) == (sum(sizes), max(sizes))


def test_scores_are_products_of_features_and_weights(small):
    rows, weights = everything(small), weights_of(small)[0]
    np.testing.assert_allclose(small.scores(rows, weights), small.features(rows) @ weights, atol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
def test_sums_are_those_of_an_enumeration(small, scale):
    rows, weights = everything(small), weights_of(small, scale=scale)
    features = small.features(rows)
    scores = features @ weights.T
    log_z = logsumexp(scores, axis=0)
    np.testing.assert_allclose(small.log_partition(weights), log_z, rtol=1e-12, atol=1e-12)
    expected = np.exp(scores - log_z).T @ features
    np.testing.assert_allclose(small.mean_features(weights), expected, atol=1e-10)
    together = small.sums(weights)
    np.testing.assert_allclose(together[0], log_z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(together[1], expected, atol=1e-10)


LEVELS = np.array(
    [[0, 1, 2, 3, 4], [0, 0, 1, 2, 2], [-1, 0, 1, -1, 0], [1, 1, 1, 0, 1], [-1, -1, -1, -1, -1], [0, -1, 2, 1, -1]]
)
"""A whole ranking, ties, a chain with a tie, a top list, nothing, a chain."""


def agreeing(rows, levels):
    """Permutations that agree with the levels of items."""
    pairs = [(i, j) for i, j in itertools.permutations(range(len(levels)), 2) if 0 <= levels[i] < levels[j]]
    return rows[[all(row[i] < row[j] for i, j in pairs) for row in rows]]


@pytest.mark.parametrize("features", ["positions", "ranks", "orders", "plackett-luce", "mallows"])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_what_is_known_of_a_ranking_is_the_sum_of_all_that_agree(features, scale):
    one, known = space("permutations", 5, features), Known(LEVELS)
    rows, weights = everything(one), weights_of(one, len(LEVELS), scale)
    whole = np.argsort(np.argsort(LEVELS, axis=1, kind="stable"), axis=1)
    values, slopes = one.seen(weights, whole, known)
    for row, levels in enumerate(LEVELS):
        expected = logsumexp(one.scores(agreeing(rows, levels), weights[row]))
        assert values[row] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    for at in range(one.frozen, one.dimension):
        step = 1e-6 * np.eye(one.dimension)[at]
        difference = (one.seen(weights + step, whole, known)[0] - one.seen(weights - step, whole, known)[0]) / 2e-6
        np.testing.assert_allclose(slopes[:, at], difference, atol=1e-6 * scale)


def test_the_maximum_is_that_of_an_enumeration(small):
    weights = weights_of(small, 6)
    best = small.maximise(weights)
    assert best.exact
    small.check(best.structures)
    expected = (small.features(everything(small)) @ weights.T).max(axis=0)
    np.testing.assert_allclose(best.values, expected, atol=1e-12)
    found = [small.scores(row[None], w)[0] for row, w in zip(best.structures, weights, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_best_structures_are_those_of_an_enumeration(small, count):
    weights = weights_of(small, 5)
    rows, (values, found) = everything(small), small.best(weights, count)
    expected = -np.sort(-(small.features(rows) @ weights.T), axis=0)[:count].T
    np.testing.assert_allclose(values, expected, atol=1e-12)
    for vector, own, structures in zip(weights, values, found, strict=True):
        np.testing.assert_allclose(small.scores(structures, vector), own, atol=1e-12)
        assert len(np.unique(structures, axis=0)) == len(structures)


@pytest.mark.parametrize("features", ["plackett-luce", "mallows", "ranks"])
@pytest.mark.parametrize("count", [4, 120])
def test_the_best_rankings_by_swaps_are_those_of_an_enumeration(features, count, monkeypatch):
    monkeypatch.setattr(permutations, "LARGEST_PATHS", 0)
    one = space("permutations", 5, features)
    rows, weights = everything(one), weights_of(one, 6, 2.0)
    values, found = one.best(weights, count)
    for vector, own, structures in zip(weights, values, found, strict=True):
        np.testing.assert_allclose(own, -np.sort(-one.scores(rows, vector))[:count], atol=1e-12)
        np.testing.assert_allclose(one.scores(structures, vector), own, atol=1e-12)
        assert len(np.unique(structures, axis=0)) == count


@pytest.mark.parametrize("features", ["plackett-luce", "mallows", "ranks"])
def test_the_best_rankings_of_many_items(features):
    one = space("permutations", 40, features)
    weights = weights_of(one, 2)
    values, found = one.best(weights, 30)
    one.check(found.reshape(-1, 40))
    np.testing.assert_array_equal(found[:, 0], one.maximise(weights).structures)
    assert (np.diff(values, axis=1) <= 1e-12).all()
    assert all(len(np.unique(each, axis=0)) == 30 for each in found)


def frequencies_fit(rows, structures, chances):
    """Whether frequencies are within five standard errors of their chi-square statistic."""
    everyone = {tuple(row): at for at, row in enumerate(rows.tolist())}
    counts = np.bincount([everyone[tuple(row)] for row in structures.tolist()], minlength=len(rows))
    expected = chances * len(structures)
    statistic, free = ((counts - expected) ** 2 / expected).sum(), len(rows) - 1
    variance = 2 * free + ((1 / chances).sum() - len(rows) ** 2 - 2 * len(rows) + 2) / len(structures)
    return abs(statistic - free) <= 5 * variance**0.5


def test_uniform_samples_are_uniform(small):
    rows = everything(small)
    samples = small.sample(4000, np.random.default_rng(1))
    small.check(samples)
    assert frequencies_fit(rows, samples, np.full(len(rows), 1 / len(rows)))


def test_draws_follow_the_weights(small):
    rows, weights = everything(small), weights_of(small, 1, 0.7)
    samples = small.draw(weights[0], 4000, np.random.default_rng(2))
    small.check(samples)
    scores = small.features(rows) @ weights[0]
    assert frequencies_fit(rows, samples, np.exp(scores - logsumexp(scores)))


def test_bad_weights_are_refused(small):
    with pytest.raises(InputError, match="weights have shape"):
        small.log_partition(np.zeros((2, small.dimension + 1)))
    bad = np.zeros((2, small.dimension))
    bad[1, 0] = np.nan
    with pytest.raises(InputError, match="weight 1 of vector 2 is nan"):
        small.mean_features(bad)


def test_rows_of_a_wrong_width_or_with_wrong_numbers_are_refused(small):
    with pytest.raises(InputError, match="must have"):
        small.check(np.zeros((1, small.width + 1), np.int64))
    rows = np.concatenate([small.sample(1, np.random.default_rng(0)), np.full((1, small.width), 99)])
    with pytest.raises(InputError, match="row 2, "):
        small.check(rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cube", 3), "no space is called 'cube'; must be one of: hypercube"),
        (("hypercube", 3, "cubic"), "must be one of: linear, pairs"),
        (("hypercube", 0), "must have at least 1"),
        (("hypercube", 3, "linear", [-1, 0, 0]), "has no parents"),
        (("cycles", 2), "must have at least 3"),
        (("cycles", 4.0), "cycles of 4.0 elements; must be a whole number"),
        (("subtrees", 2), "needs the parents"),
        (("subtrees", 3, None, [-1, 0]), "3 nodes have 2 parents"),
        (("subtrees", 2, None, [0, 0]), "node 0 has the parent 0"),
        (("subtrees", 2, None, [-1, 5]), "node 1 has the parent 5; must be a node, from 0 to 1"),
        (("subtrees", 4, None, [-1, 0, 3, 2]), "node 2 does not descend from node 0; the parents have a cycle"),
    ],
)
def test_the_catalogue_refuses_what_it_does_not_know(arguments, message):
    with pytest.raises(InputError, match=message):
        space(*arguments)


@pytest.mark.parametrize(("name", "elements"), [("hypercube", 10**9), ("permutations", 10**4), ("partitions", 3000)])
def test_a_space_with_too_many_features_is_refused_before_it_is_made(name, elements):
    with pytest.raises(ModelTooLarge, match="at most"):
        space(name, elements)


class Enumerated(Space):
    """A space that offers what every space must, and nothing else."""

    name = "enumerated"

    def __init__(self, other):
        self.elements, self.width, self.dimension, self.radius = other.elements, other.width, other.dimension, 1.0
        self.size, self.sample, self.features = other.size, other.sample, other.features
        self.valid, self.blocks = other.valid, other.blocks

    size = sample = features = valid = blocks = None  # set for each instance


def test_a_space_without_algorithms_is_enumerated():
    known = space("permutations", 5, "orders")
    plain, weights = Enumerated(known), weights_of(known)
    np.testing.assert_allclose(plain.log_partition(weights), known.log_partition(weights), rtol=1e-12)
    np.testing.assert_allclose(plain.mean_features(weights), known.mean_features(weights), atol=1e-12)
    best, expected = plain.maximise(weights), known.maximise(weights)
    np.testing.assert_allclose(best.values, expected.values)
    assert best.structures.tolist() == expected.structures.tolist()
    rows = everything(known)
    scores = known.features(rows) @ weights[0]
    drawn = plain.draw(weights[0], 4000, np.random.default_rng(6))
    assert frequencies_fit(rows, drawn, np.exp(scores - logsumexp(scores)))


@pytest.mark.parametrize(("elements", "words"), [(11, "3.992e"), (400, "more than 1e300")])
def test_spaces_too_large_to_enumerate_are_refused(elements, words):
    plain = Enumerated(space("permutations", elements, "ranks"))
    for sums in (plain.log_partition, plain.mean_features, plain.maximise, lambda w: plain.draw(w[0], 1, None)):
        with pytest.raises(ModelTooLarge, match=words):
            sums(np.zeros((1, elements)))


LARGE = [
    ("hypercube", 21, "pairs", "at most 20 labels, not 21"),
    ("permutations", 19, "orders", "at most 18 items, not 19"),
    ("cycles", 19, "edges", "at most 18 vertices, not 19"),
    ("cycle-sets", 19, "edges", "at most 18 vertices, not 19"),
    ("partitions", 15, "pairs", "at most 14 elements, not 15"),
]


@pytest.mark.parametrize(("name", "elements", "features", "refusal"), LARGE)
def test_beyond_exact_sums_maxima_are_searched(name, elements, features, refusal):
    large = space(name, elements, features)
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(1, large.dimension))
    best = large.maximise(weights)
    assert not best.exact
    large.check(best.structures)
    assert large.scores(best.structures, weights[0])[0] == pytest.approx(best.values[0])
    assert best.values[0] > large.scores(large.sample(500, rng), weights[0]).max()
    for sums in (large.log_partition, large.mean_features, lambda w: large.draw(w[0], 1, rng)):
        with pytest.raises(ModelTooLarge, match=refusal):
            sums(weights)


@pytest.mark.parametrize(
    ("name", "search"),
    [
        ("permutations", lambda m: np.argsort(local_search.best_order(np.triu(m)))),
        ("cycles", lambda m: cycles.canonical(local_search.best_cycle(m, True)[None])[0]),
        ("cycle-sets", lambda m: local_search.best_cycle(m, False)),
        ("partitions", lambda m: partitions.canonical(local_search.best_partition(m)[None])[0]),
    ],
)
def test_local_searches_find_most_small_maxima(name, search):
    small = space(name, 6, "orders" if name == "permutations" else None)
    weights = weights_of(small, 10)
    best, reached = small.maximise(weights).values, 0
    for value, vector, matrix in zip(best, weights, as_matrices(weights, 6), strict=True):
        found = search(matrix)
        row = np.full((1, 6), -1)
        row[0, : len(found)] = found
        reached += small.scores(row, vector)[0] == pytest.approx(value)
    assert reached >= 8


def bell(count):
    row = [1]
    for _ in range(count - 1):
        row = list(itertools.accumulate([row[-1], *row]))
    return row[-1]


@pytest.mark.parametrize(
    ("name", "elements", "features", "expected"),
    [
        ("permutations", 12, "positions", math.factorial(12)),
        ("cycles", 11, "edges", math.factorial(10) // 2),
        ("cycle-sets", 10, "edges", sum(math.comb(10, k) * math.factorial(k - 1) // 2 for k in range(3, 11))),
        ("partitions", 11, "pairs", bell(11)),
        ("partitions", 300, "pairs", bell(300)),
        ("subtrees", 1001, "nodes", 2**1000),
    ],
    ids=["permutations", "cycles", "cycle-sets", "partitions", "many-partitions", "subtrees"],
)
def test_larger_spaces_have_known_sizes(name, elements, features, expected):
    parents = [-1] + [0] * (elements - 1) if name == "subtrees" else None
    large = space(name, elements, features, parents)
    assert large.size() == expected
    if elements < 20 or name == "subtrees":
        assert large.log_partition(np.zeros((1, large.dimension)))[0] == pytest.approx(math.log(expected), abs=1e-10)
    large.check(large.sample(3, np.random.default_rng(0)))


@pytest.mark.parametrize("features", ["plackett-luce", "mallows"])
def test_rankings_with_their_own_sums_are_those_of_an_enumeration(features):
    one = space("permutations", 4, features)
    rows, weights = everything(one), weights_of(one, 4, 2.0)
    best, (log_z, slopes) = one.maximise(weights), one.sums(weights)
    for row, vector in enumerate(weights):
        scores = one.scores(rows, vector)
        assert log_z[row] == pytest.approx(logsumexp(scores), abs=1e-12)
        assert best.values[row] == pytest.approx(scores.max(), abs=1e-12)
        chances = np.exp(scores - logsumexp(scores))
        placed = [[chances @ (rows[:, item] == place) for place in range(4)] for item in range(4)]
        np.testing.assert_allclose(one.chances(vector[None])[0], placed, atol=1e-12)
        np.testing.assert_allclose(one.expected_positions(vector[None])[0], chances @ rows, atol=1e-12)
        values, first = one.best(vector[None], 5)
        np.testing.assert_allclose(values[0], -np.sort(-scores)[:5], atol=1e-12)
        np.testing.assert_allclose(one.scores(first[0], vector), values[0], atol=1e-12)
        draws = one.draw(vector, 4000, np.random.default_rng(2))
        assert frequencies_fit(rows, draws, chances)
    for at in range(one.frozen, one.dimension):
        step = 1e-6 * np.eye(one.dimension)[at]
        difference = (one.log_partition(weights + step) - one.log_partition(weights - step)) / 2e-6
        np.testing.assert_allclose(slopes[:, at], difference, atol=1e-7)


@pytest.mark.parametrize("scale", [0.1, 10.0, 100.0, 1000.0])
def test_rough_sums_have_six_digits(scale):
    one = space("hypercube", 5, "pairs")
    weights = weights_of(one, 20, scale)
    log_z, mean = one.rough().sums(weights)
    np.testing.assert_allclose(log_z, one.log_partition(weights), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(mean, one.mean_features(weights), atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_the_surrogate_of_pairs_is_the_product_of_the_conditionals(scale):
    one = space("hypercube", 4, "pairs")
    rows = everything(one)
    weights = weights_of(one, len(rows), scale)
    values, slopes = one.surrogate().seen(weights, rows)
    here = np.array([one.scores(row[None], vector)[0] for row, vector in zip(rows, weights, strict=True)])
    expected, gradient = np.zeros(len(rows)), np.zeros(weights.shape)
    for label in range(4):
        flipped = rows ^ np.eye(4, dtype=np.int64)[label]
        there = np.array([one.scores(row[None], vector)[0] for row, vector in zip(flipped, weights, strict=True)])
        expected += here - np.logaddexp(here, there)
        gradient += expit(there - here)[:, None] * (one.features(rows) - one.features(flipped))
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slopes, gradient, atol=1e-12)


@pytest.mark.parametrize("features", ["positions", "ranks", "orders"])
def test_chances_of_positions_are_those_of_an_enumeration(features):
    one = space("permutations", 4, features)
    rows, weights = everything(one), weights_of(one, 2)
    chances = np.exp(one.features(rows) @ weights.T - one.log_partition(weights))
    placed = [[chances.T @ (rows[:, item] == place) for place in range(4)] for item in range(4)]
    np.testing.assert_allclose(one.chances(weights), np.transpose(placed, (2, 0, 1)), atol=1e-12)


def test_orders_of_equal_weights_are_mallows_model():
    """Z is the q-factorial at q = exp(w)."""
    weight = 0.3
    expected = sum(math.log(sum(math.exp(weight * k) for k in range(item))) for item in range(1, 13))
    large = space("permutations", 12, "orders")
    assert large.log_partition(np.full((1, large.dimension), weight))[0] == pytest.approx(expected, rel=1e-13)


def test_sums_over_positions_keep_what_ryser_loses():
    """A permanent with one large product and 8! small ones, to all digits."""
    large = space("permutations", 8, "positions")
    weights = np.where(np.eye(8) > 0, 0.0, -60.0).reshape(1, -1)
    means = large.mean_features(weights)[0].reshape(8, 8)
    assert means[0, 1] == pytest.approx(math.exp(-120), rel=1e-12)


def test_extensions_of_a_subtree_are_counted():
    tree = space("subtrees", 7, None, [-1, 0, 0, 1, 1, 2, 4])
    rows = everything(tree)
    for prefix in rows:
        assert tree.extensions(prefix) == (rows >= prefix).all(axis=1).sum()
