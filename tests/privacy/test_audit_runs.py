"""Faults that are planted on the path from the table to the record are contradicted, and noise that
keeps its promise is not.

Planted noise comes from NumPy, with a fixed seed, at a budget where bounds are tight.
"""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from thesis_cli.base.errors import InputError
from thesis_cli.privacy import exponential, mechanism, release
from thesis_cli.privacy.audit_pairs import by_record, vector_pair
from thesis_cli.privacy.audit_runs import audit
from thesis_cli.privacy.audit_scores import subject
from thesis_cli.privacy.features import Features
from thesis_cli.privacy.mechanism import Budget, Choice, OpenDPGaussian, OpenDPLaplace
from thesis_cli.privacy.staged import OpenDPStages
from thesis_cli.privacy.subspace import Subspace

GAUSSIAN, PURE = Budget(20.0, 1e-6), Budget(2.0)
RUNS, FEW = 1400, 60
SURE = 1 - 1e-7
"""High enough not to accuse a real mechanism, whose noise is fresh in every run."""


@cache
def worst(method, noise="gaussian"):
    """Pairs of tables, searched for once, before any fault is planted."""
    budget = GAUSSIAN if noise == "gaussian" and method != "exponential" else PURE
    return subject(method, noise, budget, RUNS // 2, 0.95)


@pytest.fixture
def noise(monkeypatch):
    """Plants noise: `draw` makes it from a generator, a scale and a shape."""

    def plant(draw=None, factor=1.0):
        rng = np.random.default_rng(1)

        class Gaussian(OpenDPGaussian):
            def _draw(self, vector, found):
                drawn = rng.normal(0, factor, vector.shape) if draw is None else draw(rng, vector.shape)
                return vector + found.scale * drawn

        class Laplace(OpenDPLaplace):
            def _draw(self, vector, found):
                return vector + found.scale * rng.laplace(0, factor, vector.shape)

        monkeypatch.setitem(release.NOISES, "gaussian", Gaussian)
        monkeypatch.setitem(release.NOISES, "laplace", Laplace)

        def choose(scores, sensitivity, epsilon):
            """The exponential mechanism by Gumbel noise on the scores; permute-and-flip by
            exponential noise.
            """
            scale = factor * 2 * sensitivity / epsilon
            return Choice(int((scores + scale * rng.exponential(size=scores.size)).argmax()), scale, epsilon, "planted")

        monkeypatch.setattr(mechanism, "choose", choose)

    plant()
    return plant


@pytest.mark.parametrize("method", ["features", "subspace"])
def test_right_noise_is_not_contradicted_and_a_fifth_less_is(noise, method):
    right = audit(worst(method), RUNS)
    assert (right.verdict, right.contradictions, right.repeats, right.public) == ("not contradicted", [], 0, "")
    assert 0.75 < right.share < 1
    assert 0.8 < right.fault < 0.95
    assert right.mu == pytest.approx(1 / mechanism.analytic_scale(1.0, GAUSSIAN))
    noise(factor=0.8)
    wrong = audit(worst(method), RUNS)
    assert wrong.contradictions == [f"mu is at least {wrong.gdp.mu:.4g}, not {wrong.mu:.4g}"]


def test_sensitivities_that_are_too_small_are_contradicted(monkeypatch):
    for method, kind, factor, runs in (("features", Features, 1.3, RUNS), ("subspace", Subspace, 10, 300)):
        right = kind.l2_sensitivity
        monkeypatch.setattr(kind, "l2_sensitivity", lambda self, rows, right=right, f=factor: right(self, rows) / f)
        found = audit(worst(method), runs)
        assert found.share > 1
        assert vector_pair(method, "gaussian", GAUSSIAN).reach == pytest.approx(factor, rel=1e-3)


@pytest.mark.usefixtures("noise")
def test_features_that_are_longer_than_claimed_are_contradicted(monkeypatch):
    right = Features.mean
    monkeypatch.setattr(Features, "mean", lambda self, *rest: 1.2 * right(self, *rest))
    assert audit(worst("features"), 2000, confidence=0.9).share > 1
    found = audit(replace(worst("features"), pair=vector_pair("features", "gaussian", GAUSSIAN)), FEW)
    assert found.contradictions[-1].startswith("two neighbours are 1.2 sensitivities")


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, shape: np.zeros(shape),
        lambda rng, shape: np.random.default_rng(0).normal(size=shape),
        lambda rng, shape: np.full(shape, rng.normal()),
    ],
    ids=["none", "restarts", "shared by coordinates"],
)
def test_missing_and_reused_noise_is_contradicted(noise, draw):
    noise(draw)
    found = audit(worst("features"), FEW)
    assert found.repeats > found.most_repeats == 0
    assert any("occur again" in text for text in found.contradictions)


def test_noise_is_told_apart_even_if_only_a_sum_of_coordinates_lacks_it(noise):
    """Noise of opposite signs repeats no value, and its law in each coordinate is right."""
    signs = np.array([1, -1, 1, -1])

    def draw(rng, shape):
        return signs * rng.normal() * (1 + 1e-4 * rng.normal(size=shape))

    noise(draw)
    found = audit(worst("features"), 400)
    assert found.repeats == 0
    assert found.share > 1


def test_noise_of_the_release_before_is_contradicted(noise):
    drawn = []

    def draw(rng, shape):
        drawn.append(rng.normal(size=shape))
        return drawn[(len(drawn) - 1) // 3 * 3]

    noise(draw)
    assert audit(worst("features"), FEW).repeats > FEW


def test_laplace_noise(noise):
    found = audit(worst("features", "laplace"), 800)
    assert (found.verdict, found.mu, found.gdp, found.delta) == ("not contradicted", None, None, 0.0)
    assert 0.5 < found.share < 1
    noise(factor=0.5)
    broken = audit(worst("features", "laplace"), 800)
    assert broken.contradictions == [f"epsilon is at least {broken.clopper_pearson.epsilon:.4g}, not 2"]


def test_the_exponential_mechanism(noise, monkeypatch):
    found = audit(worst("exponential"), 600)
    assert found.verdict == "not contradicted"
    assert 0.5 < found.share < 1
    noise(factor=0.2)
    assert audit(worst("exponential"), 400).share > 1
    noise()
    right = exponential.score_sensitivity
    monkeypatch.setattr(exponential, "score_sensitivity", lambda *rest: right(*rest) / 5)
    assert audit(worst("exponential"), 400).share > 1


@pytest.mark.parametrize("method", ["features", "exponential"])
@pytest.mark.usefixtures("noise")
def test_a_record_that_depends_on_the_table_is_contradicted(method):
    """By one bit, for one of the tables."""
    leaking = worst(method).pair.tables[1]

    def entry(table, request):
        record = by_record(table, request)
        return replace(record, size=record.size + (table is leaking))

    found = audit(worst(method), 40, entry)
    (contradiction,) = found.contradictions
    assert contradiction.startswith('the public part of a record depends on the table: "size": ')


def test_stages_without_noise_and_stages_that_depend_on_the_table_are_contradicted(monkeypatch):
    """Given the noisy vectors of earlier stages."""
    rng, factor = np.random.default_rng(1), 1.0

    def add(self, vector, scale, granularity):
        return vector + factor * scale * rng.normal(size=vector.size)

    monkeypatch.setattr(OpenDPStages, "add", add)
    found = audit(worst("copula"), 40)
    assert (found.verdict, found.repeats, found.public) == ("not contradicted", 0, "")
    assert 0.5 < found.reach <= 1
    leaking = worst("copula").pair.tables[1]

    def entry(table, request):
        record = by_record(table, request)
        last = record.stages[-1]
        changed = replace(last, sensitivity=last.sensitivity * (1 + 2**-52 * (table is leaking)))
        return replace(record, stages=(*record.stages[:-1], changed))

    assert '"sensitivity": ' in audit(worst("copula"), 40, entry).contradictions[0]
    factor = 0.0
    found = audit(worst("copula"), 40)
    assert found.repeats > found.most_repeats


@pytest.mark.parametrize("method", ["features", "subspace", "exponential"])
def test_opendp_is_not_contradicted(method):
    found = audit(worst(method), 300, confidence=SURE)
    assert (found.verdict, found.public, found.repeats) == ("not contradicted", "", 0)
    assert found.share <= 1


def test_progress_counts_every_release_and_time_ends_them(noise):
    done = []
    found = audit(worst("features"), 50, tick=done.append)
    assert (found.runs, sum(done)) == (50, 50)
    assert audit(worst("features"), 10**9, seconds=0.0).runs == 40


def test_the_summary_is_json(noise):
    summary = json.loads(json.dumps(audit(worst("features"), FEW).summary()))
    assert (summary["method"], summary["entry"], summary["verdict"]) == ("features", "record", "not contradicted")
    assert summary["share"] == summary["gdp"]["mu"] / summary["mu"]
    assert summary["epsilon"] == 20.0


def test_too_few_runs_are_refused():
    with pytest.raises(InputError, match="runs is 39; it must be at least 40"):
        audit(worst("features"), 39)
