"""One release audits a table: the bound is held against brute force and mechanisms whose epsilon is known."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import binom

from benchmarks.audit_faults import planted
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.audit import one_run
from thesis_cli.privacy.audit.cases import WIDE
from thesis_cli.privacy.audit.one_run import (
    GUESSED,
    canary_pairs,
    one_run_audit,
    one_run_lower_bound,
    right_guesses_tail,
    scores_of,
)
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.release.release import NoisyMean, ReleasePlan
from thesis_cli.privacy.tables.schema import Integer, Real, Schema

SURE = 1 - 1e-7
RULED = Schema.parse(
    """
[columns.low]
type = "integer"
low = 0
high = 9

[columns.high]
type = "integer"
low = 0
high = 9

[constraints]
rules = ["low <= high"]
"""
)


def tail(canaries, guesses, right, share, delta):
    """The bound of the paper in exact arithmetic, term by term."""

    def at_least(k):
        return sum(
            math.comb(guesses, w) * share**w * (1 - share) ** (guesses - w) for w in range(max(k, 0), guesses + 1)
        )

    beta = at_least(right)
    alpha = max([(at_least(right - i) - beta) / i for i in range(1, right + 1)], default=Fraction(0))
    return float(min(Fraction(1), beta + 2 * canaries * delta * alpha))


@pytest.mark.parametrize(("guesses", "right"), [(1, 1), (5, 0), (7, 7), (12, 9), (40, 33)])
def test_the_bound_on_right_guesses_is_that_of_exact_arithmetic(guesses, right):
    for share in (Fraction(1, 2), Fraction(3, 4), Fraction(19, 20)):
        for delta in (Fraction(0), Fraction(1, 10**4), Fraction(1, 20)):
            epsilon = math.log(share / (1 - share))
            found = right_guesses_tail(guesses + 3, guesses, right, epsilon, float(delta))
            assert found == pytest.approx(tail(guesses + 3, guesses, right, share, delta), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("confidence", [0.9, 0.999])
@pytest.mark.parametrize(("epsilon", "count"), [(0.5, 40), (1.0, 300), (3.0, 1000)])
def test_randomised_response_is_contradicted_as_rarely_as_stated(epsilon, count, confidence):
    """All its answers are guesses: the exact probability of a false alarm."""
    right = np.arange(count + 1)
    wrong = [right_guesses_tail(count, count, v, epsilon, 0.0) <= 1 - confidence for v in right]
    alarms = binom.pmf(right, count, expit(epsilon))[wrong].sum()
    assert alarms <= 1 - confidence
    limit = one_run_lower_bound(count, [(count, int(np.argmax(wrong)) - 1)], delta=0.0, confidence=confidence)
    assert limit <= epsilon
    assert count < 100 or alarms > (1 - confidence) / 3  # no needless caution


def test_answers_that_delta_gives_away_are_allowed_for():
    """Each of 100 answers is the truth with probability delta; without the term of delta that would be
    contradicted too often.
    """
    epsilon, delta, count, level = 0.5, 0.02, 100, 0.01
    right = np.arange(count + 1)
    law = binom.pmf(right, count, delta + (1 - delta) * expit(epsilon))

    def alarms(allowed):
        return law[[right_guesses_tail(count, count, v, epsilon, allowed) <= level for v in right]].sum()

    assert alarms(delta) <= level < alarms(0.0)


def test_guesses_of_the_clearest_scores_share_the_error():
    """Randomised response of known epsilon in 4,000 tables, answers with random clearness; 0.03 of them may
    be contradicted, with a standard error of 0.0027.
    """
    rng, count, epsilon, level = np.random.default_rng(0), 64, 1.0, 0.03
    right = rng.random((4000, count)) < expit(epsilon)  # in the order of their clearness
    wrong = np.zeros(len(right), bool)
    for part in GUESSED:
        r = count // part
        allowed = [right_guesses_tail(count, r, v, epsilon, 1e-9) <= level / len(GUESSED) for v in range(r + 1)]
        wrong |= np.array(allowed)[right[:, :r].sum(1)]
    assert 0 < wrong.mean() <= level + 5 * math.sqrt(level * (1 - level) / len(right))


def test_scores_guess_as_well_as_the_noise_allows_whatever_the_table_holds():
    """Canaries on coordinates of their own: a guess is right with probability Phi(mu / 2), of 400 with a
    standard error of 0.021.
    """
    rng, count, mu = np.random.default_rng(1), 400, 1.5
    schema = Schema((Integer("x", 0, count - 1), Real("sign", -1.0, 1.0)))
    places = np.arange(count)
    one, other = (schema.encode({"x": places, "sign": np.full(count, sign)}) for sign in (1.0, -1.0))
    rows = schema.encode({"x": rng.integers(0, 50, 5000), "sign": rng.choice([-1.0, 1.0], 5000)})

    def mean(blocks):
        found = Rows.concatenate(list(blocks))
        at = np.rint(found.reals[:, 0] * (count - 1)).astype(int)
        return np.bincount(at, 2 * found.reals[:, 1] - 1, count) / len(found)

    coins = rng.integers(0, 2, count)
    table = Rows.concatenate([rows, *(((one, other)[c])[i : i + 1] for i, c in enumerate(coins))])
    scale = 2 / len(table) / mu
    noisy = NoisyMean(mean, mean([table]) + scale * rng.normal(size=count), scale)
    right = (scores_of([noisy], rows, (one, other)) > 0) == (coins == 0)
    assert right.mean() == pytest.approx(ndtr(mu / 2), abs=5 * 0.021)


def test_canaries_are_rows_of_the_schema():
    for schema in (WIDE, RULED):
        pairs = canary_pairs(schema, 50, np.random.default_rng(2))
        for rows in pairs:
            again = schema.encode(schema.decode(rows))
            assert np.array_equal(again.reals, rows.reals)
            assert np.array_equal(again.codes, rows.codes)
            assert not schema.between.broken(schema.between.data(schema.decode(rows))).any()
    assert len(pairs[0]) == len(pairs[1]) == 50


@pytest.mark.parametrize(("method", "size"), [("copula", 1), ("features", 120), ("subspace", 120), ("marginals", 1)])
def test_right_releases_are_not_contradicted_and_guesses_beat_a_coin(counted, method, size):
    """At epsilon 2000 hardly any of 60 guesses is wrong; a coin has 30 right, with a standard error of 4."""
    schema = Schema(tuple(column for column in WIDE.columns if column.name in ("scale", "place", "flag")))
    rng = np.random.default_rng(3)
    rows = one_run.sample_rows(schema, rng, 400)
    report = one_run_audit(rows, ReleasePlan(schema, Budget(2000.0, 1e-6), method, size=size), 60, SURE, rng)
    assert report.contradictions == []
    assert (report.rows, [r for r, _ in report.guesses]) == (460, [60, 15, 3])
    assert report.guesses[0][1] > 30 + 5 * 4
    assert 0 <= report.proven <= report.most < 20


def test_less_noise_is_contradicted():
    schema = Schema(tuple(column for column in WIDE.columns if column.name in ("scale", "place", "day")))
    rng = np.random.default_rng(4)
    rows = one_run.sample_rows(schema, rng, 400)
    plan = ReleasePlan(schema, Budget(1.0, 1e-6), "copula")
    with planted("noise times 0.01"):
        report = one_run_audit(rows, plan, 100, 0.999, rng)
    assert report.contradictions == [f"epsilon is at least {report.proven:.4g}, not 1"]
    assert replace(report, epsilon=3.0).contradictions == []


def test_a_method_without_noisy_means_and_impossible_numbers_are_refused():
    schema = Schema((Integer("x", 0, 1),))
    rows, rng = schema.encode({"x": np.array([0, 1])}), np.random.default_rng(0)
    with pytest.raises(InputError, match="by exponential has no noisy means"):
        one_run_audit(rows, ReleasePlan(schema, Budget(1.0), "exponential"), 1, 0.9, rng)
    with pytest.raises(InputError, match="5 of 4 guesses about 9 canaries are right"):
        right_guesses_tail(9, 4, 5, 1.0, 0.0)


def test_jax_privacy_finds_the_same_bounds():
    auditing = pytest.importorskip("jax_privacy.auditing", reason="pip install jax-privacy")
    rng = np.random.default_rng(6)
    scores = [rng.normal(shift, 1, 400) for shift in (2.0, 0.0)]
    auditor = auditing.CanaryScoreAuditor(*scores)
    for threshold in (0.5, 2.0):
        guesses = [int((x >= threshold).sum()) for x in scores]
        found = auditor.epsilon_one_run(0.05, 1e-5, threshold_strategy=auditing.Explicit(threshold))
        own = one_run_lower_bound(800, [(sum(guesses), guesses[0])], delta=1e-5, confidence=0.95)
        assert own == pytest.approx(found, abs=1e-5)
