"""The risk of an attack beside the best one that there is, by brute force."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from thesis_cli.privacy.mechanisms.mechanism import Budget, OpenDPGaussian, gaussian_delta
from thesis_cli.privacy.mechanisms.risk import best_guess, risk_line


def best_of_all(one, other):
    """Share of right guesses of the best of all 2^n rules for n outcomes."""
    rules = np.array(list(np.ndindex(*(2,) * len(one))))
    return float((rules @ one + (1 - rules) @ other).max() / 2)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 0.0), (1.0, 0.1), (5.0, 1e-3), (800.0, 0.0)])
def test_randomised_response_attains_it(epsilon, delta):
    """With probability delta it tells the truth in clear, and otherwise it lies at times."""
    truth = 1 / (1 + math.exp(-epsilon))
    one = np.array([delta, 0, (1 - delta) * truth, (1 - delta) * (1 - truth)])
    assert best_of_all(one, one[[1, 0, 3, 2]]) == pytest.approx(best_guess(epsilon, delta), rel=1e-12)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 3.0])
def test_no_attack_on_gaussian_noise_is_better_and_the_best_is_near(rho):
    """Of all thresholds; any (epsilon, delta) of the noise bounds it, too."""
    shift = math.sqrt(2 * rho)
    thresholds = np.linspace(-5, shift + 5, 20_001)
    best = float((norm.cdf(thresholds) + norm.sf(thresholds - shift)).max() / 2)
    assert best == pytest.approx(norm.cdf(shift / 2), abs=1e-6)
    found = best_guess(50.0, 1e-6, rho)
    assert best <= found
    assert best - 0.5 >= 0.75 * (found - 0.5)  # sqrt(2 / pi) for small rho
    for epsilon in (0.1, 1.0, 3.0):
        assert best <= best_guess(epsilon, gaussian_delta(shift, epsilon)) + 1e-9


def test_the_line_rounds_up():
    assert risk_line(math.log(0.62 / 0.38), 0.0, None)[1].endswith("than 62 % (50 % is a coin)")
    assert "62.1 %" in risk_line(math.log(0.6201 / 0.3799), 0.0, None)[1]
    rho = OpenDPGaussian().calibrate(1, 1.0, Budget(1.0, 1e-6)).rho
    assert 0.5 < best_guess(1.0, 1e-6, rho) < 0.56 < best_guess(1.0, 1e-6)
