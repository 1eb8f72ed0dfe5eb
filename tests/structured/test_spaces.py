"""Every space against enumeration: counts, samplers, features, ln Z, gradients, maxima, exact draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured.catalogue import space

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


def test_the_maximum_is_that_of_an_enumeration(small):
    weights = weights_of(small, 6)
    best = small.maximise(weights)
    assert best.exact
    small.check(best.structures)
    expected = (small.features(everything(small)) @ weights.T).max(axis=0)
    np.testing.assert_allclose(best.values, expected, atol=1e-12)
    found = [small.scores(row[None], w)[0] for row, w in zip(best.structures, weights, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


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
    ],
)
def test_the_catalogue_refuses_what_it_does_not_know(arguments, message):
    with pytest.raises(InputError, match=message):
        space(*arguments)


def test_a_space_with_too_many_features_is_refused_before_it_is_made():
    with pytest.raises(ModelTooLarge):
        space("hypercube", 10**6, "pairs")


def test_pairs_beyond_exact_sums_are_searched():
    large = space("hypercube", 21, "pairs")
    weights = weights_of(large, 2)
    best = large.maximise(weights)
    assert not best.exact
    np.testing.assert_allclose([large.scores(best.structures[i : i + 1], weights[i])[0] for i in range(2)], best.values)
    with pytest.raises(ModelTooLarge, match="at most 20 labels, not 21"):
        large.log_partition(weights)
