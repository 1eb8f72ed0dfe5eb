"""Faults that are planted on the path from the table to the record are contradicted, and noise that
keeps its promise is not.

Planted noise comes from NumPy, with a fixed seed, at a budget where bounds are tight. Runs are so
many that errors of 5 standard errors change no verdict.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.audit.pairs import by_record, vector_pair
from thesis_cli.privacy.audit.runs import audit
from thesis_cli.privacy.audit.scores import subject
from thesis_cli.privacy.embedding.features import Features
from thesis_cli.privacy.mechanisms import mechanism
from thesis_cli.privacy.mechanisms.mechanism import Budget, Choice, OpenDPGaussian, OpenDPLaplace
from thesis_cli.privacy.mechanisms.stages import OpenDPStages
from thesis_cli.privacy.release import exponential, vectors
from thesis_cli.privacy.release.subspace import Subspace
from thesis_cli.privacy.release.vectors import NoisyVector

GAUSSIAN, PURE = Budget(20.0, 1e-6), Budget(2.0)
MANY, RUNS, FEW = 4800, 300, 60
USUALLY = 0.8
"""Confidence with which many runs contradict noise that is a fifth too small."""
NEVER = 0.999
"""Confidence with which they do not contradict right noise."""
SURE = 1 - 1e-7
"""High enough not to accuse a real mechanism, whose noise is fresh in every run."""


@pytest.fixture(scope="module")
def worst():
    """Pairs of tables by method and noise, searched for before any test plants a fault."""
    budgets = {("features", "laplace"): PURE, ("exponential", "gaussian"): PURE}
    budgets |= {(method, "gaussian"): GAUSSIAN for method in ("features", "subspace", "copula")}
    found = {key: subject(*key, budget, 500, 0.95) for key, budget in budgets.items()}
    return lambda method, noise="gaussian": found[method, noise]


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

        monkeypatch.setitem(vectors.NOISES, "gaussian", Gaussian)
        monkeypatch.setitem(vectors.NOISES, "laplace", Laplace)

        def choose(scores, sensitivity, epsilon):
            """The exponential mechanism by Gumbel noise on the scores; permute-and-flip by
            exponential noise.
            """
            scale = factor * 2 * sensitivity / epsilon
            return Choice(int((scores + scale * rng.exponential(size=scores.size)).argmax()), scale, epsilon, "planted")

        monkeypatch.setattr(mechanism, "choose", choose)

    plant()
    return plant


@pytest.fixture
def quick(noise):
    """An entry point that releases each table once, without noise, and adds noise of the scale in
    the record to the vector as often as it is called.
    """

    def entry_point(factor=1.0):
        rng, records = np.random.default_rng(2), {}

        def entry(table, request):
            if id(table) not in records:
                noise(lambda rng, shape: np.zeros(shape))
                record = by_record(table, request)
                records[id(table)] = record, np.array(record.output.vector), factor * record.mechanism.scale
            record, vector, scale = records[id(table)]
            return replace(record, output=NoisyVector(tuple((vector + scale * rng.normal(size=vector.size)).tolist())))

        return entry

    return entry_point


def errors(mu, runs, level):
    """Expected mu that a bound proves of Gaussian noise, and its standard error, by the asymptotic
    variance of both rates of errors at the best threshold.
    """
    evaluated, rate, density = runs / 2 * 3 / 4, stats.norm.sf(mu / 2), stats.norm.pdf(mu / 2)
    error = np.sqrt(rate * (1 - rate) / evaluated) / density
    return mu - 2 * stats.norm.isf(level / 2) * error, np.sqrt(2) * error


def test_right_noise_is_not_contradicted_and_a_fifth_less_is(worst, quick):
    right = audit(worst("features"), 1500, quick(), confidence=NEVER)
    assert (right.verdict, right.contradictions, right.repeats, right.public) == ("not contradicted", [], 0, "")
    assert right.mu == pytest.approx(1 / mechanism.analytic_scale(1.0, GAUSSIAN))
    true = right.reach / mechanism.OpenDPGaussian().calibrate(4, 1.0, GAUSSIAN).scale
    expected, error = errors(true, 1500, 1 - NEVER)
    assert right.gdp.mu < expected + 5 * error < right.mu
    assert 0.5 < right.fault < 1
    expected, error = errors(true / 0.8, MANY, 1 - USUALLY)
    assert right.mu < expected - 5 * error
    wrong = audit(worst("features"), MANY, quick(0.8), confidence=USUALLY)
    assert wrong.contradictions == [f"mu is at least {wrong.gdp.mu:.4g}, not {wrong.mu:.4g}"]


@pytest.mark.parametrize("method", ["features", "subspace"])
def test_much_less_noise_on_the_whole_path_is_contradicted(worst, noise, method):
    assert audit(worst(method), RUNS, confidence=NEVER).share < 1
    noise(factor=0.4)
    assert audit(worst(method), RUNS).share > 1


def test_sensitivities_that_are_too_small_are_contradicted(worst, monkeypatch, quick):
    for method, kind, factor, runs in (("features", Features, 1.3, 3000), ("subspace", Subspace, 10, RUNS)):
        right = kind.l2_sensitivity
        monkeypatch.setattr(kind, "l2_sensitivity", lambda self, rows, right=right, f=factor: right(self, rows) / f)
        assert audit(worst(method), runs, quick(), confidence=USUALLY).share > 1
        assert vector_pair(method, "gaussian", GAUSSIAN).reach == pytest.approx(factor, rel=1e-3)


@pytest.mark.parametrize(("norm", "runs"), [(1.2, None), (np.sqrt(2), 2400)])
def test_features_that_are_longer_than_claimed_are_contradicted(worst, monkeypatch, quick, norm, runs):
    """The search finds it, and many releases do."""
    right = Features.mean
    monkeypatch.setattr(Features, "mean", lambda self, *rest: norm * right(self, *rest))
    if runs:
        assert audit(worst("features"), runs, quick(), confidence=USUALLY).share > 1
    found = audit(replace(worst("features"), pair=vector_pair("features", "gaussian", GAUSSIAN)), FEW, quick())
    assert found.contradictions[-1].startswith(f"two neighbours are {norm:.4g} sensitivities")


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, shape: np.zeros(shape),
        lambda rng, shape: np.random.default_rng(0).normal(size=shape),
        lambda rng, shape: np.full(shape, rng.normal()),
    ],
    ids=["none", "restarts", "shared by coordinates"],
)
def test_missing_and_reused_noise_is_contradicted(worst, noise, draw):
    noise(draw)
    found = audit(worst("features"), FEW)
    assert found.repeats > found.most_repeats == 0
    assert any("occur again" in text for text in found.contradictions)


def test_noise_is_told_apart_even_if_only_a_sum_of_coordinates_lacks_it(worst, noise):
    """Noise of opposite signs repeats no value, and its law in each coordinate is right."""
    signs = np.array([1, -1, 1, -1])

    def draw(rng, shape):
        return signs * rng.normal() * (1 + 1e-4 * rng.normal(size=shape))

    noise(draw)
    found = audit(worst("features"), 400)
    assert found.repeats == 0
    assert found.share > 1


def test_noise_of_the_release_before_is_contradicted(worst, noise):
    drawn = []

    def draw(rng, shape):
        drawn.append(rng.normal(size=shape))
        return drawn[(len(drawn) - 1) // 3 * 3]

    noise(draw)
    assert audit(worst("features"), FEW).repeats > FEW


def test_laplace_noise(worst, noise):
    found = audit(worst("features", "laplace"), 600, confidence=SURE)
    assert (found.verdict, found.mu, found.gdp, found.delta) == ("not contradicted", None, None, 0.0)
    assert 0.1 < found.share < 1
    noise(factor=0.3)
    broken = audit(worst("features", "laplace"), 800)
    assert broken.contradictions == [f"epsilon is at least {broken.clopper_pearson.epsilon:.4g}, not 2"]


def test_the_exponential_mechanism(worst, noise, monkeypatch):
    found = audit(worst("exponential"), 600, confidence=SURE)
    assert found.verdict == "not contradicted"
    assert 0.1 < found.share < 1
    noise(factor=0.2)
    assert audit(worst("exponential"), 400).share > 1
    noise()
    right = exponential.score_sensitivity
    monkeypatch.setattr(exponential, "score_sensitivity", lambda *rest: right(*rest) / 5)
    assert audit(worst("exponential"), 400).share > 1


@pytest.mark.parametrize("method", ["features", "exponential"])
@pytest.mark.usefixtures("noise")
def test_a_record_that_depends_on_the_table_is_contradicted(worst, method):
    """By one bit, for one of the tables."""
    leaking = worst(method).pair.tables[1]

    def entry(table, request):
        record = by_record(table, request)
        return replace(record, size=record.size + (table is leaking))

    found = audit(worst(method), 40, entry)
    (contradiction,) = found.contradictions
    assert contradiction.startswith('the public part of a record depends on the table: "size": ')


def test_stages_without_noise_and_stages_that_depend_on_the_table_are_contradicted(worst, monkeypatch):
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
        last = record.output.stages[-1]
        changed = replace(last, sensitivity=last.sensitivity * (1 + 2**-52 * (table is leaking)))
        return replace(record, output=replace(record.output, stages=(*record.output.stages[:-1], changed)))

    assert '"sensitivity": ' in audit(worst("copula"), 40, entry).contradictions[0]
    factor = 0.0
    found = audit(worst("copula"), 40)
    assert found.repeats > found.most_repeats


@pytest.mark.parametrize("method", ["features", "subspace", "exponential"])
def test_opendp_is_not_contradicted(worst, method):
    found = audit(worst(method), 300, confidence=SURE)
    assert (found.verdict, found.public, found.repeats) == ("not contradicted", "", 0)
    assert found.share <= 1


def test_progress_counts_every_release_and_time_ends_them(worst, noise):
    done = []
    found = audit(worst("features"), 50, tick=done.append)
    assert (found.runs, sum(done)) == (50, 50)
    assert audit(worst("features"), 10**9, seconds=0.0).runs == 40


def test_the_summary_is_json(worst, noise):
    summary = json.loads(json.dumps(audit(worst("features"), FEW).summary()))
    assert (summary["method"], summary["entry"], summary["verdict"]) == ("features", "record", "not contradicted")
    assert summary["share"] == summary["gdp"]["mu"] / summary["mu"]
    assert summary["epsilon"] == 20.0


def test_too_few_runs_are_refused(worst):
    with pytest.raises(InputError, match="runs is 39; it must be at least 40"):
        audit(worst("features"), 39)
