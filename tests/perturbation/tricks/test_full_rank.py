import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import polygamma

from tests.conftest import factor_graphs
from thesis_cli.base.errors import InputError
from thesis_cli.inference import enumeration
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.factor_graph import LogPotentials
from thesis_cli.perturbation.tricks.clock_kernels import race, race_reference
from thesis_cli.perturbation.tricks.full_rank import perturbed_maxima
from thesis_cli.studies.models.examples import asia, zipf

SEED = np.random.SeedSequence


@given(st.integers(1, 200), st.integers(0, 2**32), st.floats(-800, 800))
def test_the_compiled_race_is_the_plain_one(size, seed, top):
    phi = np.random.default_rng(seed).normal(0, 3, size)
    phi[np.random.default_rng(seed + 1).random(size) < 0.2] = -np.inf
    phi[0] = 0.0
    waits = np.exp(phi.max() - phi)
    start = np.full(4, -np.inf)
    start[1:3] = top - 3, top + 900
    results = []
    for function in (race, race_reference):
        best, winner = start.copy(), np.full(4, -1)
        function(np.random.default_rng(seed), waits, top, 1000, best, winner)
        results.append((best, winner))
    rounding = 16 * np.finfo(float).eps  # of exp, log1p and log, some units in the last place each
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=rounding, atol=rounding * (1 + phi.max()))
    np.testing.assert_array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize("model", [asia(), LogPotentials(zipf(1000, 1.1))], ids=["asia", "zipf"])
def test_maxima_are_gumbel_and_their_states_samples(model):
    """Eqs. 2.1' and 2.2'."""
    m = 20_000
    log_z = log_partition_function(model)
    found = perturbed_maxima(model, m, SEED(1))
    x = found.values - log_z
    assert abs(x.mean()) < 5 * math.pi / math.sqrt(6 * m)
    deviation = math.sqrt((polygamma(3, 1) + 2 * (math.pi**2 / 6) ** 2) / m)
    assert abs(x.var() - math.pi**2 / 6) < 5 * deviation
    assert stats.kstest(x, stats.gumbel_r(-np.euler_gamma).cdf).pvalue > 1e-6
    phi = next(enumeration.Enumeration(model).blocks())
    expected = m * np.exp(phi - log_z)
    counts = np.bincount(found.states, minlength=phi.size)
    assert counts[expected == 0].sum() == 0
    common = expected > 5
    rest = expected[~common].sum()
    observed, wanted = np.append(counts[common], counts[~common].sum()), np.append(expected[common], rest)
    assert stats.chisquare(observed[wanted > 0], wanted[wanted > 0]).pvalue > 1e-6
    assert found.highest == phi.max()


def test_values_and_states_do_not_depend_on_jobs():
    one = perturbed_maxima(asia(), 500, SEED(3), jobs=1)
    two = perturbed_maxima(asia(), 500, SEED(3), jobs=2)
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.states, two.states)


def test_different_perturbations_get_different_noise():
    values = perturbed_maxima(asia(), 500, SEED(3)).values
    assert len(set(values)) == 500


@given(factor_graphs(most_variables=4), st.integers(1, 30))
def test_blocks_join_one_race(graph, block):
    """With small blocks the distribution is the same: means over 300 perturbations agree with ln Z."""
    log_z = log_partition_function(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "BLOCK", block)
        if log_z == -np.inf:
            with pytest.raises(InputError, match="no configuration is possible"):
                perturbed_maxima(graph, 3, SEED(0))
            return
        found = perturbed_maxima(graph, 300, SEED(0))
    assert abs(found.values.mean() - log_z) < 6 * math.pi / math.sqrt(6 * 300)
    assert found.states.min() >= 0
    assert found.states.max() < graph.size


def test_no_perturbations_is_an_error():
    with pytest.raises(InputError, match="perturbations is 0"):
        perturbed_maxima(asia(), 0, SEED(0))


@pytest.mark.parametrize("shift", [1e5, -1e5])
def test_potentials_of_any_size(shift):
    plain = perturbed_maxima(LogPotentials(zipf(50, 1.0)), 20, SEED(4)).values
    shifted = perturbed_maxima(LogPotentials(zipf(50, 1.0) + shift), 20, SEED(4)).values
    np.testing.assert_allclose(shifted - shift, plain, atol=1e-9)


def test_each_perturbation_is_a_race_in_its_stream():
    """All of it in plain NumPy, to the last bit: a value is -ln of the first clock's time, less c."""
    phi = next(enumeration.Enumeration(asia()).blocks()).copy()
    found = perturbed_maxima(asia(), 5, SEED(7))
    for child, value, state in zip(SEED(7).spawn(5), found.values, found.states, strict=True):
        with np.errstate(divide="ignore"):
            clocks = -np.log1p(-(np.random.default_rng(child).random(phi.size) + 2.0**-54)) / np.exp(phi)
        assert value == pytest.approx(-math.log(clocks.min()) - 0.5772156649015329, abs=1e-12)
        assert state == clocks.argmin()


def test_states_are_numbered_through_the_blocks(monkeypatch):
    monkeypatch.setattr(enumeration, "BLOCK", 7)
    phi = np.zeros(100)
    phi[70] = 100.0
    assert set(perturbed_maxima(LogPotentials(phi), 50, SEED(8)).states) == {70}
