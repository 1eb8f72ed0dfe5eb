import math

import numpy as np
from scipy.special import logsumexp

from thesis_cli.studies.entropy.identities import (
    independence_rows,
    integral_rows,
    limit_rows,
    participation_rows,
    power_sum_rows,
)
from thesis_cli.studies.models.examples import asia

SIGMAS = 5


def log_p():
    values = np.array([0.0, -np.inf, -0.5, -1.0, -3.0])
    return values - logsumexp(values)


def test_means_are_the_exact_numbers():
    p, seed = log_p(), np.random.SeedSequence(5)
    rows = [
        *participation_rows(p, 4_000, seed),
        *integral_rows(p, {"p": p, "x": np.log1p(np.arange(5))}, 4_000, seed),
        *independence_rows(p, 2.0, 4_000, seed),
    ]
    assert len(rows) == 1 + 2 + 2 * 3  # the fourth possible configuration is rare
    for quantity, argument, value, error, expected in rows:
        assert 0 < error < 0.15, (quantity, argument)
        assert abs(value - expected) < SIGMAS * error, (quantity, argument)


def test_expected_numbers_are_direct_sums():
    p = log_p()
    (row,) = integral_rows(p, {"x": np.log1p(np.arange(5))}, 2, np.random.SeedSequence(0))
    assert math.isclose(row[-1], math.log(np.exp(p) @ np.arange(1, 6)))


def test_entropies_near_the_limits_and_by_two_sums():
    for quantity, argument, value, _, expected in [*limit_rows(log_p()), *power_sum_rows(asia(), [0.5, 2.0])]:
        tolerance = 1e-5 if quantity == "limit" else 1e-12
        assert math.isclose(value, expected, abs_tol=tolerance), (quantity, argument)
        assert expected > 0.1
