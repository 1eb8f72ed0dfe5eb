"""Bounds from perturbed maxima, and noise on every structure, against exact ln Z."""

from __future__ import annotations

import math

import numpy as np
import pytest

from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured.catalogue import noise_names, noise_on, space
from thesis_cli.structured.perturb import full_rank_maxima, structured_bound, structured_maxima

SPACES = [
    space("hypercube", 4, "pairs"),
    space("permutations", 4, "positions"),
    space("permutations", 5, "orders"),
    space("cycles", 6),
    space("cycle-sets", 5),
    space("subtrees", 6, None, [-1, 0, 0, 1, 1, 2]),
    space("partitions", 5),
]


def weights_of(found):
    return np.random.default_rng(3).normal(size=found.dimension)


@pytest.mark.parametrize("found", SPACES, ids=lambda s: f"{s.name}-{s.dimension}")
def test_bounds_are_on_their_sides(found):
    weights = weights_of(found)
    log_z = found.log_partition(weights[None])[0]
    for name in noise_names(found):
        noise = noise_on(found, weights, name)
        for scale, sign in (("sum", 1), ("average", -1)):
            maxima = structured_maxima(noise, 300, np.random.SeedSequence(4), scale=scale)
            found.check(maxima.structures)
            bound = structured_bound(maxima)
            assert sign * (bound.value - log_z) > -5 * bound.standard_error
            assert bound.kind == ("upper" if sign > 0 else "lower") + " bound in expectation"
            assert bound.map_calls == 300


def test_independent_bits_have_a_tight_upper_bound_and_exact_samples():
    cube, weights = space("hypercube", 4, "linear"), np.array([-1.0, 0, 1, 2])
    maxima = structured_maxima(noise_on(cube, weights), 4000, np.random.SeedSequence(5))
    bound = structured_bound(maxima)
    assert bound.value == pytest.approx(cube.log_partition(weights[None])[0], abs=5 * bound.standard_error)
    assert bound.standard_error == pytest.approx(math.pi * math.sqrt(4 / 6 / 4000), rel=0.1)
    for alpha in (-0.2, 0.1, 1.0):
        other = structured_bound(maxima, alpha=alpha)
        assert other.value == pytest.approx(bound.value, abs=5 * (bound.standard_error + other.standard_error))
        assert other.kind == "upper bound in " + ("the limit" if alpha < 0 else "expectation")
    chances = 1 / (1 + np.exp(-weights))
    assert maxima.structures.mean(axis=0) == pytest.approx(chances, abs=5 * 0.5 / math.sqrt(4000))


def test_alpha_of_the_lower_bound():
    """L(alpha) is U(alpha) of n times the maxima, over n."""
    found = space("partitions", 4)
    maxima = structured_maxima(noise_on(found, weights_of(found)), 500, np.random.SeedSequence(6), scale="average")
    low, zero, high = (structured_bound(maxima, alpha=alpha) for alpha in (-0.1, 0.0, 0.1))
    assert [b.kind for b in (low, zero, high)] == ["lower bound in expectation"] * 2 + ["lower bound in the limit"]
    powers = np.exp(0.1 * 3 * maxima.values).mean()
    shift = math.lgamma(0.9) / -0.1 + np.euler_gamma
    assert low.value == pytest.approx(shift + math.log(powers) / 0.1 / 3)
    assert zero.value == pytest.approx(maxima.values.mean())
    assert high.value < zero.value + 5 * zero.standard_error
    with pytest.raises(InputError, match=r"alpha is -0\.5; it must be above -0\.288"):
        structured_bound(maxima, alpha=-0.5)


def test_first_maxima_do_not_depend_on_how_many_follow():
    cycles = space("cycles", 5)
    noise, seed = noise_on(cycles, weights_of(cycles)), 8
    few, many = (structured_maxima(noise, count, np.random.SeedSequence(seed)).values for count in (100, 300))
    assert few.tolist() == many[:100].tolist()


def test_noise_on_every_structure_gives_ln_z_and_samples():
    found = space("partitions", 4)
    weights = weights_of(found)
    done = []
    values, structures = full_rank_maxima(found, weights, 3000, np.random.SeedSequence(9), done.append)
    assert sum(done) == 3000
    log_z = found.log_partition(weights[None])[0]
    assert values.mean() == pytest.approx(log_z, abs=5 * math.pi / math.sqrt(6 * 3000))
    rows = np.concatenate(list(found.blocks()))
    chances = np.exp(found.scores(rows, weights) - log_z)
    shares = (structures[:, None] == rows).all(axis=2).mean(axis=0)
    assert np.abs(shares - chances).max() < 5 * 0.5 / math.sqrt(3000)


def test_local_search_gives_no_upper_bound():
    found = space("partitions", 15)
    maxima = structured_maxima(noise_on(found, np.zeros(found.dimension)), 2, np.random.SeedSequence(1))
    assert structured_bound(maxima).kind == "approximate upper bound"


def test_refusals():
    found = space("permutations", 11)
    with pytest.raises(InputError, match="number of perturbations is 0"):
        structured_maxima(noise_on(found, np.zeros(121)), 0, np.random.SeedSequence(1))
    with pytest.raises(ModelTooLarge, match="more than 1,048,576 structures"):
        full_rank_maxima(found, np.zeros(121), 1, np.random.SeedSequence(1))
