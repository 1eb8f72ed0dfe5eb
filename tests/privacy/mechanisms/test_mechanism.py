import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import norm

from tests.privacy.seeded_laplace import SeededLaplace
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.mechanisms import mechanism
from thesis_cli.privacy.mechanisms.mechanism import (
    Budget,
    OpenDPGaussian,
    OpenDPLaplace,
    analytic_scale,
    best_guess,
    choose,
    gaussian_delta,
    opendp,
    risk_line,
    zcdp_epsilon,
)
from thesis_cli.studies.privacy.seeded import NOT_PRIVATE, SeededGaussian

ONE = Budget(1.0, 1e-6)
DRAWS = 20_000
NOISES = [
    OpenDPGaussian(),
    OpenDPLaplace(),
    SeededGaussian(np.random.default_rng(0)),
    SeededLaplace(np.random.default_rng(0)),
]


def gaussian_map(size, scale, sensitivity, delta, granularity):
    """Epsilon, by OpenDP, of a measurement that the test makes."""
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
    noise = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale, k=round(math.log2(granularity)))
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(noise), delta).map(sensitivity)[0]


@pytest.fixture
def handed(monkeypatch):
    """Arguments that OpenDP's constructors get."""
    dp, calls = opendp(), []

    def recorder(name, make):
        def recorded(domain, metric, scale, k):
            calls.append((name, str(metric), domain, scale, k))
            return make(domain, metric, scale=scale, k=k)

        return recorded

    for name in ("make_gaussian", "make_laplace"):
        monkeypatch.setattr(dp.m, name, recorder(name, getattr(dp.m, name)))
    return calls


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_is_checked(epsilon):
    with pytest.raises(InputError, match=r"epsilon is .*above 0"):
        Budget(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, math.inf])
def test_delta_is_checked(delta):
    with pytest.raises(InputError, match="delta is"):
        Budget(1.0, delta)


@settings(max_examples=examples(5))
@given(
    size=st.integers(1, 10_000),
    sensitivity=st.floats(1e-9, 1e3),
    epsilon=st.floats(0.01, 10.0),
    delta=st.floats(1e-12, 1e-3),
)
def test_gaussian_scale_is_the_least_that_the_map_allows(size, sensitivity, epsilon, delta):
    found = OpenDPGaussian().calibrate(size, sensitivity, Budget(epsilon, delta))
    assert gaussian_map(size, found.scale, sensitivity, delta, found.granularity) <= epsilon
    assert gaussian_map(size, 0.99 * found.scale, sensitivity, delta, found.granularity) > epsilon
    assert found.epsilon <= epsilon
    assert found.delta == delta
    # The rounding of F coordinates adds sqrt(F) granularity.
    apart = sensitivity + math.sqrt(size) * found.granularity
    assert found.rho == pytest.approx(apart**2 / found.scale**2 / 2, rel=1e-12)
    assert gaussian_map(1, found.scale, apart, delta, 2.0**-1074) == pytest.approx(found.epsilon, rel=1e-9)
    assert zcdp_epsilon(found.rho, delta) == pytest.approx(found.epsilon, rel=1e-12)
    assert zcdp_epsilon(found.rho, delta) >= found.epsilon
    # The least scale of continuous noise, for a sensitivity without rounding.
    assert found.scale >= found.analytic_scale


@settings(max_examples=examples(15))
@given(size=st.integers(1, 10_000), sensitivity=st.floats(1e-9, 1e3), epsilon=st.floats(0.01, 10.0))
def test_laplace_scale_is_the_least_for_the_l1_sensitivity(size, sensitivity, epsilon):
    found = OpenDPLaplace().calibrate(size, sensitivity, Budget(epsilon, 1e-6))
    l1 = math.sqrt(size) * sensitivity
    assert found.norm == 1
    assert l1 <= found.sensitivity <= l1 * (1 + 1e-14)
    assert found.scale >= (found.sensitivity + size * found.granularity) / epsilon * (1 - 1e-15)
    assert found.scale == pytest.approx(l1 / epsilon, rel=1e-9)
    assert found.epsilon <= epsilon
    assert (found.delta, found.rho) == (0.0, None)


@given(
    exponent=st.integers(-60, 0),
    pair=st.integers(1, 8).flatmap(
        lambda size: st.tuples(*[st.lists(st.floats(-1, 1), min_size=size, max_size=size)] * 2)
    ),
)
def test_rounded_neighbours_are_within_the_bound_that_is_counted(exponent, pair):
    one, other = (np.array(v) for v in pair)
    grid = 2.0**exponent
    rounded = np.linalg.norm(np.rint(one / grid) * grid - np.rint(other / grid) * grid)
    assert rounded <= (np.linalg.norm(one - other) + math.sqrt(one.size) * grid) * (1 + 1e-12)


@pytest.mark.parametrize("noise", [OpenDPGaussian(), OpenDPLaplace()], ids=["gaussian", "laplace"])
def test_opendp_draws_with_the_scale_and_the_grid_of_the_record(noise, handed):
    vector = np.array([0.1, -0.2, 0.3])
    found = noise.calibrate(3, 0.01, ONE)
    handed.clear()
    mechanism.measurement.cache_clear()
    noised = noise.add(vector, 0.01, ONE)
    ((name, metric, domain, scale, k),) = handed
    assert name == {1: "make_laplace", 2: "make_gaussian"}[found.norm]
    assert f"L{found.norm}Distance" in metric
    assert "size=3" in str(domain)
    assert (scale, 2.0**k) == (found.scale, found.granularity)
    assert noised.calibration == found
    assert (noised.values / found.granularity % 1 == 0).all()
    assert 0 < found.granularity * 3 <= 0.01 * 2**-39


@pytest.mark.parametrize("noise", [OpenDPGaussian(), OpenDPLaplace()], ids=["gaussian", "laplace"])
def test_noise_has_the_distribution_of_its_record(noise):
    found = noise.calibrate(1, 0.01, ONE)
    values = noise._draw(np.full(DRAWS, 0.25), found)
    law = stats.norm if found.norm == 2 else stats.laplace
    assert stats.kstest((values - 0.25) / found.scale, law.cdf).pvalue > 1e-6


def test_coordinates_of_one_vector_have_independent_noise():
    values = OpenDPGaussian().add(np.zeros(DRAWS), 1.0, ONE)
    z = values.values / values.calibration.scale
    assert abs(z[1:] @ z[:-1]) / DRAWS < 5 / math.sqrt(DRAWS)
    assert stats.kstest(z, stats.norm.cdf).pvalue > 1e-6


def test_no_seed_changes_the_noise():
    drawn = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        for noise in (OpenDPGaussian(), OpenDPLaplace()):
            drawn.append(tuple(noise.add(np.zeros(3), 1.0, ONE).values))
    assert len(set(drawn)) == 4
    assert len({choose(np.zeros(1000), 1.0, 1.0).index for _ in range(40)}) > 1


def test_a_forked_process_has_noise_of_its_own():
    OpenDPGaussian().add(np.zeros(3), 1.0, ONE)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, OpenDPGaussian().add(np.zeros(3), 1.0, ONE).values.tobytes())
        os._exit(0)
    here = OpenDPGaussian().add(np.zeros(3), 1.0, ONE).values
    os.waitpid(child, 0)
    there = np.frombuffer(os.read(reader, 24))
    os.close(reader), os.close(writer)
    assert not np.isin(there, here).any()


def test_the_module_loads_neither_opendp_nor_scipy():
    code = "import sys, thesis_cli.privacy.accounting.ledger"
    code += "; print({'opendp', 'scipy', 'numba', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("noise", NOISES, ids=lambda n: type(n).__name__)
def test_bad_vectors_and_sensitivities_are_refused(noise):
    secret = 0.123456789
    for bad in ([], [secret, math.nan], [secret, math.inf], [[secret]], secret):
        with pytest.raises(InputError) as caught:
            noise.add(np.array(bad), 1.0, ONE)
        assert "\n" not in str(caught.value)
        assert "0.1234" not in str(caught.value)
    for sensitivity in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="the sensitivity is"):
            noise.add(np.zeros(2), sensitivity, ONE)
    with pytest.raises(InputError, match="empty"):
        noise.calibrate(0, 1.0, ONE)


@pytest.mark.parametrize("noise", [NOISES[0], NOISES[2]], ids=["opendp", "seeded"])
def test_gaussian_noise_needs_a_delta(noise):
    with pytest.raises(InputError, match="delta is 0 with Gaussian noise"):
        noise.add(np.zeros(2), 1.0, Budget(1.0))


def test_a_budget_that_opendp_cannot_map_is_one_line():
    with pytest.raises(InputError, match="OpenDP finds no scale"):
        OpenDPGaussian().calibrate(1, 1.0, Budget(1e6, 1e-6))


@pytest.mark.parametrize(
    ("sensitivity", "budget"),
    [(1e-300, ONE), (1e300, ONE), (1.0, Budget(1e-6, 1e-300)), (1.0, Budget(1e-3, 0.9)), (1.0, Budget(1e4, 1e-6))],
)
def test_extreme_budgets_have_a_scale(sensitivity, budget):
    found = OpenDPGaussian().calibrate(3, sensitivity, budget)
    assert found.epsilon <= budget.epsilon
    assert 1 <= found.scale / found.analytic_scale < 2
    assert np.isfinite(OpenDPGaussian().add(np.zeros(3), sensitivity, budget).values).all()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-6), (1.0, 1e-6), (1.0, 0.1), (20.0, 1e-9)])
def test_analytic_scale_solves_its_equation(epsilon, delta):
    scale = analytic_scale(3.0, Budget(epsilon, delta)) / 3
    first, second = stats.norm.cdf([0.5 / scale - epsilon * scale, -0.5 / scale - epsilon * scale])
    assert first - math.exp(epsilon) * second == pytest.approx(delta, rel=1e-6)
    # The worst event of the definition (Thesis eq. 4.1), by integration: E[(p - e^epsilon q)^+].
    x = np.linspace(-40 * scale, 40 * scale, 2_000_001)
    gap = stats.norm.pdf(x, 1, scale) - math.exp(epsilon) * stats.norm.pdf(x, 0, scale)
    assert np.maximum(gap, 0).sum() * (x[1] - x[0]) == pytest.approx(delta, rel=1e-4)
    assert gaussian_delta(1 / scale, epsilon) == pytest.approx(delta, rel=1e-9)


def test_scales_at_the_published_budgets():
    """In units of the sensitivity at delta = 1e-6; the published experiments use the classical
    scale.
    """
    for epsilon, opendps, analytic, classical in [
        (0.01, 338.6826, 306.3504, 529.8803),
        (0.1, 39.46392, 36.30469, 52.98803),
    ]:
        found = OpenDPGaussian().calibrate(1, 1.0, Budget(epsilon, 1e-6))
        assert (found.scale, found.analytic_scale) == pytest.approx((opendps, analytic), rel=1e-6)
        assert found.classical_scale == pytest.approx(classical, rel=1e-6)
    assert OpenDPGaussian().calibrate(1, 1.0, ONE).classical_scale is None


def test_seeded_noise_is_marked_and_repeats():
    for formula in ("opendp", "analytic", "classical"):
        one, two = (
            SeededGaussian(np.random.default_rng(3), formula).add(np.ones(4), 0.1, Budget(0.5, 1e-6)) for _ in range(2)
        )
        assert one.calibration.mechanism.startswith(NOT_PRIVATE)
        np.testing.assert_array_equal(one.values, two.values)
        z = np.random.default_rng(3).standard_normal(4)
        np.testing.assert_allclose(one.values, 1 + one.calibration.scale * z)
    scales = [SeededGaussian(None, f).calibrate(4, 0.1, Budget(0.5, 1e-6)) for f in ("opendp", "analytic", "classical")]
    real = OpenDPGaussian().calibrate(4, 0.1, Budget(0.5, 1e-6))
    assert [c.scale for c in scales] == [real.scale, real.analytic_scale, real.classical_scale]
    laplace = SeededLaplace(np.random.default_rng(3)).add(np.ones(4), 0.1, ONE)
    assert laplace.calibration.mechanism.startswith(NOT_PRIVATE)
    np.testing.assert_allclose(laplace.values, 1 + np.random.default_rng(3).laplace(0, 0.2, 4))
    assert not any(n.calibrate(1, 1.0, ONE).mechanism.startswith(NOT_PRIVATE) for n in NOISES[:2])


def test_the_classical_formula_is_refused_where_it_is_not_proven():
    rng = np.random.RandomState(0)
    with pytest.raises(InputError, match="proven below 1"):
        SeededGaussian(rng, "classical").calibrate(1, 1.0, ONE)
    found = SeededGaussian(rng, "classical", published=True).calibrate(1, 1.0, ONE)
    assert found.scale == pytest.approx(math.sqrt(2 * math.log(1.25e6)))


def test_choice_is_permute_and_flip():
    scores, epsilon = np.array([0.0, 0.5, 2.0]), 1.5
    found = choose(scores, 1.0, epsilon)
    assert found.scale == pytest.approx(2 / epsilon)
    assert found.epsilon <= epsilon
    assert found.index in (0, 1, 2)
    # Walk a random order; stop at i with probability exp(epsilon (s_i - max) / 2); the maximum
    # stops for certain.
    stop = np.exp(epsilon * (scores - 2) / 2)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    chance = np.zeros(3)
    for order in orders:
        reach = 1.0
        for i in order:
            chance[i] += reach * stop[i] / len(orders)
            reach *= 1 - stop[i]
    runs = 800
    counts = np.bincount([choose(scores, 1.0, epsilon).index for _ in range(runs)], minlength=3)
    assert stats.chisquare(counts, runs * chance).pvalue > 1e-6


@pytest.mark.parametrize(
    ("scores", "sensitivity", "epsilon"), [([1.0, math.nan], 1, 1), ([], 1, 1), ([1.0], 0, 1), ([1.0], 1, 0)]
)
def test_bad_choices_are_refused(scores, sensitivity, epsilon):
    with pytest.raises(InputError):
        choose(np.array(scores), sensitivity, epsilon)


def test_a_calibration_is_found_once(handed, uncached):
    uncached(mechanism._gaussian, mechanism.measurement)
    OpenDPGaussian().calibrate(7, 0.3, ONE)
    first = len(handed)
    OpenDPGaussian().calibrate(7, 0.3, ONE)
    assert first > 10
    assert len(handed) == first


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
