import math

import numpy as np
import pytest

from tests.privacy.release.test_release import BUDGET, METHODS, MIXED, free, request, table
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.mechanisms import stages
from thesis_cli.privacy.mechanisms.mechanism import Budget
from thesis_cli.privacy.mechanisms.stages import Unit, total_rho
from thesis_cli.privacy.release.release import (
    VALUE_BYTES,
    ReleasePlan,
    expected,
    expected_stages,
    implementation_of,
    private_record,
)
from thesis_cli.privacy.release.vectors import vector_method


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_expected_noise_is_that_of_the_release(method, noise):
    asked = request(method, noise=noise)
    (stage,) = expected(asked, 50).stages
    record = private_record([table(asked.schema, 50, 0)], 50, asked, free)
    assert stage.scale == pytest.approx(record.mechanism.scale, rel=1e-12)
    assert stage.sensitivity == pytest.approx(record.mechanism.sensitivity, rel=1e-12)
    if method != "exponential":
        assert stage.size == len(record.output.vector)
        assert stage.noise == pytest.approx(record.mechanism.deviation * math.sqrt(stage.size), rel=1e-12)


def test_errors_fall_from_those_of_a_guess_to_nothing():
    numbers = MIXED.encode(MIXED.decode(table(MIXED, 5000, 1))).reals
    guess = math.sqrt(numbers.var(0).mean()), 1 / 2
    found = [expected(request("features", budget=Budget(epsilon, 1e-6), size=400), 1000) for epsilon in (1e-4, 1, 100)]
    assert found[0].mean == pytest.approx(guess[0], rel=0.1)
    assert found[0].mean > 2 * found[1].mean > 10 * found[2].mean
    assert guess[1] > found[0].share > 2 * found[1].share > 2.5 * found[2].share
    assert [x.stages[0].noise_dominated for x in found] == [True, False, False]


def test_the_expected_error_is_that_of_linear_estimates_of_noisy_vectors():
    """The mean of a number, estimated by the same weights from vectors with noise drawn anew."""
    asked, count = request("features", budget=Budget(0.5, 1e-6), size=200), 300
    embedding, stage = vector_method(asked.method).embedding(asked), expected(asked, count).stages[0]
    rows, other = (MIXED.encode(MIXED.decode(table(MIXED, *given))) for given in ((500, 1), (2000, 2)))
    rng = np.random.default_rng(3)
    vectors, middle = embedding.embed(rows), rows.reals - rows.reals.mean(0)
    gram = vectors.T @ vectors + 500 * stage.scale**2 * np.eye(200)
    weights = np.linalg.solve(gram, vectors.T @ middle)
    missed = embedding.embed(other) @ weights - (other.reals - rows.reals.mean(0))
    noise = rng.normal(size=(2000, 200)) * stage.scale @ weights
    # Two public samples of rows differ by some 10 %.
    assert expected(asked, count).mean == pytest.approx(math.sqrt(((missed + noise) ** 2).mean()), rel=0.2)


def test_bad_settings_are_refused_as_by_a_release():
    with pytest.raises(InputError, match="delta is 0"):
        expected(request("features", budget=Budget(1)), 5)
    assert expected(request("exponential", budget=Budget(1)), 5).mean is None


def test_counts_of_single_columns_spend_half_of_rho():
    """Gaussian noise of scale s on a vector of sensitivity d is d^2 / (2 s^2)-zCDP."""
    (stage,) = expected_stages(ReleasePlan(MIXED, BUDGET, "marginals"), 50)
    spent = len(MIXED.columns) * (stage.sensitivity / stage.scale) ** 2 / 2
    assert spent == pytest.approx(total_rho(BUDGET) / 2)


@pytest.mark.parametrize("method", ["copula", "marginals"])
def test_stages_have_their_noise_and_errors(method):
    found = expected(ReleasePlan(MIXED, Budget(1, 1e-6), method, entropy=7), 5000)
    assert found.share < 0.1
    assert found.mean < 0.05
    assert not any(stage.noise_dominated for stage in found.stages)
    noisier = expected(ReleasePlan(MIXED, Budget(0.001, 1e-6), method, entropy=7), 5000)
    assert noisier.share > 2 * found.share
    assert any(stage.noise_dominated for stage in noisier.stages)
    if method == "copula":
        asked = ReleasePlan(MIXED, Budget(1, 1e-6), method, entropy=7)
        record = private_record([table(MIXED, 5000, 0)], 5000, asked, free)
        assert [s.name for s in found.stages] == [s.name for s in record.output.stages]
        assert found.stages[0].scale == pytest.approx(record.output.stages[0].scale, rel=1e-6)
        assert found.stages[0].size == len(record.output.stages[0].vector)


def test_the_memory_to_expect_is_that_of_the_packed_table_or_it_is_read_again(monkeypatch):
    """A packed row of MIXED has two bytes for each of 4 columns."""
    method, asked = implementation_of("copula"), request("copula")
    needs = [method.needs(asked, count, 10) for count in (10**6, 10**7)]
    assert [(found.memory, found.passes) for found in needs] == [(8 * 10**6, 0), (8 * 10**7, 0)]
    assert method.needs(asked, 10, 10**6).memory == 10**6 * 4 * VALUE_BYTES
    monkeypatch.setattr(stages, "HELD", 1)
    again = method.needs(asked, 10**6, 10)
    assert (again.memory, again.passes) == (10 * 4 * VALUE_BYTES, method.passes(asked) - 1)
    secret = method.needs(request("copula", unit=Unit("add-remove")), 10**6, 10)
    assert (secret.memory, secret.passes) == (8 * 10**6, 0)
