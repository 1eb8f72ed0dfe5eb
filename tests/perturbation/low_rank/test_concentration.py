import math

import numpy as np
import pytest

from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import lower_bound, maximum_deviation, upper_bound
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation.concentration import deviation, exceeds


@pytest.mark.parametrize(("terms", "count"), [(1, 1), (1, 10), (20, 4)])
@pytest.mark.parametrize("confidence", [0.95, 0.999])
def test_sums_of_gumbel_variables_stay_within_the_deviation(terms, count, confidence):
    """They attain the bound on moments: 0.4 of the deviation is not enough."""
    half, tail = maximum_deviation(terms, count, confidence), (1 - confidence) / 2
    above, below = exceeds(terms * count, half / terms), 1 - exceeds(terms * count, -half / terms)
    assert below < above < tail
    assert exceeds(terms * count, 0.4 * half / terms) > tail


@pytest.mark.parametrize("terms", [1, 100, 10**6])
def test_the_deviation_is_less_than_the_corollaries_allow(terms):
    for count in (1, 100, 10**6):
        for confidence in (0.5, 0.95, 1 - 1e-9):
            half = maximum_deviation(terms, count, confidence)
            assert half < deviation(math.sqrt(terms), count, confidence)
            normal = math.sqrt(2 * terms * math.pi**2 / 6 / count * math.log(2 / (1 - confidence)))
            assert half > normal
            if terms * count >= 10**6:
                assert half == pytest.approx(normal, rel=0.01)
    assert maximum_deviation(0, 1, 0.95) == 0


@pytest.mark.parametrize(("scale", "bound", "divisor"), [("sum", upper_bound, 1), ("average", lower_bound, 3)])
def test_intervals_cover_the_expectation(scale, bound, divisor):
    solver = Elimination(FactorGraph([2, 1, 3, 2], []))
    truth = low_rank_maxima(solver, 50_000, np.random.SeedSequence(1), scale=scale).values.mean()
    for entropy in range(30):
        maxima = low_rank_maxima(solver, 4, np.random.SeedSequence(entropy), scale=scale)
        found = bound(maxima, 0.0, confidence=0.95, interval="concentration")
        assert found.low < truth < found.high
        assert found.high - found.value == pytest.approx(maximum_deviation(3, 4, 0.95) / divisor, rel=1e-12)


def test_the_noise_at_the_maximiser_is_not_as_concentrated():
    """One noise term, 10^6 states of phi = 0 and one of ln 10^6: the variance is far above 4 a^2 =
    4.
    """
    log_k = math.log(1e6)
    single, rest = gumbel(np.random.default_rng(0), 2, 10_000)  # rest: the largest of 10^6 less ln 10^6
    at_max = np.where(single > rest, single, rest + log_k)
    assert at_max.var() > 0.9 * log_k**2 / 4 > 10 * 4
    assert np.maximum(single, rest).var() < 4
