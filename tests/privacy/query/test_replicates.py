import dataclasses
import math

import numpy as np
import pytest
from scipy.special import ndtri

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.query.query import ask
from thesis_cli.privacy.query.replicates import INFLATION, limits_of, replicates, simulated, with_errors
from thesis_cli.privacy.query.weighted_sample import WeightedSample
from thesis_cli.privacy.release.copula import recorded_stages
from thesis_cli.privacy.release.release import ReleasePlan, private_record, synthetic
from thesis_cli.privacy.tables.schema import Boolean, Integer, Real, Schema

SCHEMA = Schema((Real("x", 0, 10), Integer("k", 0, 7), Boolean("b")))
QUERIES = "mean(x)", "prob(b)", "corr(x, k)", "mean(x, by=b)"


def table(rows=2000):
    rng = np.random.default_rng(3)
    x = rng.beta(2, 4, rows)
    k = np.clip(8 * x + rng.normal(0, 1, rows), 0, 7).round() / 7
    return Rows(np.stack([x, k], 1), (rng.random((rows, 1)) < x[:, None]).astype(np.int64))


def record(epsilon, method="copula"):
    rows = table()
    request = ReleasePlan(SCHEMA, Budget(epsilon, 1e-6), method, size=40, entropy=5)
    return private_record([rows], len(rows), request, lambda budget, rho: None)


def answered(release, count=8):
    def answers(one):
        sample = WeightedSample.of_release(one)
        return [ask(sample, text, one.record.count.rows) for text in QUERIES]

    simulations = [answers(one) for one in replicates(release, count)]
    found = with_errors(answers(release), simulations, limits_of(SCHEMA, 2000))
    return simulations, [row for answer in found for row in answer.rows]


def test_a_simulated_record_has_the_settings_of_the_real_one_and_noise_of_its_scale():
    real, rows = record(1.0), table()
    found = simulated(real, rows, np.random.default_rng(0))
    assert found.mechanism == real.mechanism
    assert [dataclasses.replace(s, vector=()) for s in found.output.stages] == [
        dataclasses.replace(s, vector=()) for s in real.output.stages
    ]
    first = found.output.stages[0]
    noise = (np.array(first.vector) - recorded_stages(real).stage([]).mean([rows])) / first.scale
    assert abs(noise.mean()) < 5 / math.sqrt(noise.size)
    assert abs((noise**2).mean() - 1) < 5 * math.sqrt(2 / noise.size)


def test_errors_are_root_mean_squares_of_simulated_errors():
    simulations, rows = answered(synthetic(record(1.0), 300))
    truth, *draws = [[row.value for answer in answers for row in answer.rows] for answers in simulations]
    errors = INFLATION * np.sqrt(((np.array(draws) - truth) ** 2).mean(0))
    np.testing.assert_allclose([row.error for row in rows], errors, rtol=1e-12)
    for row in rows:
        half, (least, most) = ndtri(0.975) * row.error, limits_of(SCHEMA, 2000)(row)
        assert row.low == pytest.approx(max(least, row.value - half))
        assert row.high == pytest.approx(min(most, row.value + half))
        assert not row.guess


def test_errors_repeat_and_shrink_with_the_budget():
    release = synthetic(record(10.0), 300)
    precise = answered(release)[1]
    assert precise == answered(release)[1]
    assert answered(synthetic(record(0.1), 300))[1][0].error > 3 * precise[0].error


def test_an_interval_of_noise_alone_is_a_guess_within_the_possible_values():
    prob = answered(synthetic(record(0.002), 300))[1][1]
    assert prob.guess
    assert prob.low >= 0
    assert prob.high <= 1


def test_releases_by_features_are_simulated_and_others_refused():
    release = synthetic(record(1.0, "features"), 50)
    found = list(replicates(release, 1))
    assert found[0] is release
    assert found[1].record.output.vector != release.record.output.vector
    with pytest.raises(InputError, match="by subspace cannot be simulated"):
        list(replicates(synthetic(record(1.0, "subspace"), 50), 1))
