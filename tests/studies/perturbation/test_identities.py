import math

import numpy as np
import pytest
from scipy.special import logsumexp

from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.studies.perturbation.identities import (
    clamping_rows,
    curve_rows,
    entropy_rows,
    influence_of,
    noise_rows,
    subset_rows,
    tilted_rows,
    variance_rows,
)

PHI = 0.5 * np.random.default_rng(0).standard_normal((2, 3))
GRAPH = FactorGraph(PHI.shape, [Factor((0, 1), PHI)])
FLAT = PHI.ravel()


@pytest.fixture(scope="module")
def maxima():
    solver, seeds = Elimination(GRAPH), np.random.SeedSequence(1).spawn(2)
    return low_rank_maxima(solver, 20_000, seeds[0]), low_rank_maxima(solver, 20_000, seeds[1], scale="average")


def rows_of(rows, quantity):
    return [row for row in rows if row[0] == quantity]


@pytest.mark.parametrize("alpha", [-0.2, 0.0, 0.5])
def test_influences_have_mean_zero(alpha):
    values = np.random.default_rng(2).gumbel(size=100)
    assert influence_of(values, alpha).mean() == pytest.approx(0, abs=1e-12)


def test_bounds_lie_on_their_sides(maxima):
    rows = [*curve_rows(*maxima, FLAT), *clamping_rows(GRAPH, FLAT, 5_000, np.random.default_rng(3))]
    for _, _, _, value, error in rows_of(rows, "U") + rows_of(rows, "clamped"):
        assert value > -5 * error - 1e-12
    for _, _, _, value, error in rows_of(rows, "L"):
        assert value < 5 * error


def test_tilted_noise_agrees_with_sample_means(maxima):
    states = np.indices(PHI.shape).reshape(2, -1).T
    plain = next(row for row in curve_rows(*maxima, FLAT) if row[:2] == ("U", -0.25))
    rows = tilted_rows(Elimination(GRAPH), states, FLAT, 20_000, np.random.SeedSequence(4))
    tilted = next(row for row in rows if row[:2] == ("U tilted", -0.25))
    assert abs(plain[3] - tilted[3]) < 5 * math.hypot(plain[4], tilted[4])


def test_variance_and_entropies_keep_their_bounds(maxima):
    rows = [*variance_rows(maxima[0]), *noise_rows(maxima[0]), *entropy_rows(*maxima, FLAT)]
    limits = {"variance": 1.0, "variance of the noise": 1.0}
    for name, limit in limits.items():
        (row,) = rows_of(rows, name)
        assert row[3] < limit + 5 * row[4]
    (row,) = rows_of(rows, "B less H(x*)")
    assert row[3] > -5 * row[4]
    p = np.exp(FLAT - logsumexp(FLAT))
    assert rows_of(rows, "H(p)")[0][3] == pytest.approx(-(p @ np.log(p)))


def test_noise_on_a_subset_has_its_closed_form():
    for row in rows_of(subset_rows(GRAPH, FLAT, 2_000, np.random.SeedSequence(5)), "subset, closed form"):
        assert abs(row[3]) < 5 * row[4]
