"""Bounds on the mean of weights by bets: they hold as often as they promise, and are narrow."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from thesis_cli.inference.mini_bucket.betting import EXACT, Ratios


def ratios(logs, error=0.05, batch=64):
    found = Ratios(error, len(logs))
    for start in range(0, len(logs), batch):
        found.add(logs[start : start + batch])
    return found


@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0, 6.0])
def test_bounds_fail_no_more_often_than_promised(spread):
    """Weights exp(-spread * E) with E ~ Exp(1) have the mean 1 / (1 + spread); shifted down by 5 nats."""
    rng, trials, fails = np.random.default_rng(0), 300, 0
    log_mean = -5 - math.log1p(spread)
    for _ in range(trials):
        found = ratios(-5 - spread * rng.exponential(size=256), 0.2)
        fails += not found.low() <= log_mean <= found.high()
    assert fails <= 0.2 * trials + 3 * math.sqrt(0.2 * 0.8 * trials)


def test_rare_large_weights_are_covered():
    """One weight in 400 is 1, and the others are 0: the lower bound must not believe a lucky start."""
    rng, fails = np.random.default_rng(1), 0
    for _ in range(300):
        with np.errstate(divide="ignore"):
            found = ratios(np.log((rng.random(256) < 1 / 400).astype(float)), 0.2)
        fails += not found.low() <= math.log(1 / 400) <= found.high()
    assert fails <= 60 + 3 * math.sqrt(48)


@settings(max_examples=examples(40))
@given(st.integers(1, 400), st.floats(0, 8), st.floats(0, 30), st.integers(0, 99))
def test_bounds_refute_what_lies_beyond_them(count, spread, depth, seed):
    """The fortune of a bet against the bound is 1 / error there, written as plain products."""
    logs = np.minimum(np.random.default_rng(seed).normal(-depth, spread, count), 0.0)
    found, low_error, high_error = ratios(logs), 0.03, 0.02
    mean = np.exp(logs).mean()
    low, high = found.low(), found.high()
    assert low <= math.log(mean) + 1e-8 <= high + 1e-7
    assert low >= math.log(mean) + math.log(low_error / 2) - 2 * EXACT
    weights, stakes = np.exp(logs), np.concatenate([np.full(sum(map(len, p)), s) for s, p in found._epochs])
    fortune = np.exp(np.log1p(stakes * (weights / math.exp(low) - 1)).sum())
    assert (fortune + mean / math.exp(low)) / 2 >= 1 / low_error * (1 - 1e-6)
    if high < 0:
        m, rest = math.exp(high), -math.expm1(high)
        stakes = np.minimum(stakes, 0.9 * m / rest)
        fortune = np.exp(np.log1p(stakes * (1 - weights / m)).sum())
        all_against = np.prod(-np.expm1(logs) / rest)  # two products would underflow
        assert (fortune + all_against) / 2 >= 1 / high_error * (1 - 1e-6)


def test_no_weight_above_zero_and_the_bound_itself():
    nothing = ratios(np.full(100, -np.inf))
    assert nothing.low() == -math.inf
    assert nothing.high() == pytest.approx(math.log(-math.expm1(-math.log(2 / 0.02 - 1) / 100)))
    assert ratios(np.zeros(100)).high() == 0
    assert ratios(np.zeros(50)).low() == pytest.approx(math.log(0.03 / 2 / (1 - 0.03 / 2)), abs=1e-6)
    assert -0.05 < ratios(np.zeros(1000)).low() < 0


def test_bounds_are_narrower_than_by_bernstein_and_markov():
    """Maurer and Pontil 2009, Theorem 4, and Markov's inequality, with the same error."""
    rng = np.random.default_rng(4)
    for spread, depth in ((0.5, 2), (2, 8), (6, 30)):
        logs = np.minimum(rng.normal(-depth, spread, 20_000), 0.0)
        found, n, weights = ratios(logs, batch=1024), logs.size, np.exp(logs)

        def deviation(d, n=n, weights=weights):
            return math.sqrt(2 * weights.var(ddof=1) * math.log(2 / d) / n) + 7 * math.log(2 / d) / 3 / (n - 1)

        mean = weights.mean()
        assert found.high() < math.log(mean + deviation(0.025))
        assert found.low() > math.log(max(mean - deviation(0.0125), mean * 0.0125))
