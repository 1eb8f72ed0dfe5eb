import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.conftest import all_states, factor_graphs
from thesis_cli.base.errors import InputError, ModelTooLarge, NoConfiguration
from thesis_cli.entropy import integrals
from thesis_cli.entropy.integrals import PairedMaxima, exact_log_expectation, log_expectation, paired_maxima
from thesis_cli.entropy.pair_kernels import race_pairs, race_pairs_reference
from thesis_cli.inference.enumeration import log_partition_function
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.models.vector import LogOf
from thesis_cli.perturbation.tricks.full_rank import perturbed_maxima
from thesis_cli.studies.models.examples import asia, zipf

SEED = np.random.SeedSequence
SIGMAS = 5
GUMBEL_VARIANCE = math.pi**2 / 6


def vector(size, seed=0, spread=2.0, impossible=0.2):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, spread, size)
    values[rng.random(size) < impossible] = -np.inf
    values[seed % size] = 0.0
    return LogPotentials(values)


def truth(model, integrand):
    """ln E_p[f] of two vectors, in plain NumPy."""
    with np.errstate(divide="ignore"):
        top = np.log(np.exp(model.values + integrand.values).sum())
    return top - np.log(np.exp(model.values).sum())


def constant(size, log_value=0.0):
    return LogPotentials(np.full(size, log_value))


@st.composite
def integrands(draw, of):
    """A vector of ln f for the configurations of a graph, or a graph with its variables."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def table(shape):
        values = rng.normal(0, 2, shape).reshape(-1)
        values[rng.permutation(values.size)[: draw(st.integers(0, values.size - 1))]] = -np.inf
        return values.reshape(shape)

    if draw(st.booleans()):
        return LogPotentials(table([of.size]))
    scope = tuple(draw(st.lists(st.integers(0, len(of.cardinalities) - 1), max_size=3, unique=True)))
    return FactorGraph(of.cardinalities, [Factor(scope, table([of.cardinalities[i] for i in scope]))])


pairs = factor_graphs(most_variables=4).flatmap(lambda graph: st.tuples(st.just(graph), integrands(graph)))


def potentials(model):
    return model.values if isinstance(model, LogPotentials) else model.log_potential(all_states(model))


@given(st.integers(1, 200), st.integers(0, 2**32), st.floats(-800, 800), st.booleans())
def test_the_compiled_race_is_the_plain_one(size, seed, top, weightless):
    rng = np.random.default_rng(seed)
    phi = rng.normal(0, 3, (2, size))
    phi[rng.random((2, size)) < 0.2] = -np.inf
    phi[:, 0] = 0.0, -np.inf if weightless else 1.0
    phi[1] = -np.inf if weightless else phi[1]
    tops = np.maximum(phi.max(axis=1), 0.0)
    waits = np.exp(tops[:, np.newaxis] - phi)
    start = np.full((2, 4), -np.inf)
    start[:, 1:3] = [[top - 3, top + 900], [top + 3, top - 900]]
    results = []
    for function in (race_pairs, race_pairs_reference):
        best = start.copy()
        function(np.random.default_rng(seed), waits, tops, best)
        results.append(best)
    rounding = 16 * np.finfo(float).eps  # of exp, log1p and log, some units in the last place each
    np.testing.assert_allclose(results[0], results[1], rtol=rounding, atol=rounding * (1 + tops.max()))


@pytest.mark.parametrize("model", [asia(), vector(2**16 + 100)], ids=["asia", "two blocks"])
def test_the_plain_maxima_are_those_of_full_rank_noise(model):
    found = paired_maxima(model, vector(model.size, seed=1), 50, SEED(3))
    np.testing.assert_array_equal(found.plain, perturbed_maxima(model, 50, SEED(3)).values)


@pytest.mark.parametrize("block", [7, 2**16])
def test_each_pair_is_two_races_of_the_same_clocks(monkeypatch, block):
    """The whole of it in plain NumPy: values are ln of the first clock, negated, less c."""
    monkeypatch.setattr(integrals, "BLOCK", block)
    model, integrand = vector(40, impossible=0.0), vector(40, seed=1)
    integrand.values[:8] = -np.inf  # a whole block without weight
    found = paired_maxima(model, integrand, 5, SEED(7))
    for m, child in enumerate(SEED(7).spawn(5)):
        clocks = -np.log1p(-(np.random.default_rng(child).random(40) + 2.0**-54))
        for values, phi in (found.plain, model.values), (found.weighted, model.values + integrand.values):
            assert values[m] == pytest.approx(-math.log((clocks * np.exp(-phi)).min()) - np.euler_gamma, abs=1e-12)


def test_maxima_do_not_depend_on_jobs():
    integrand = vector(256, seed=1)
    one, two = (paired_maxima(asia(), integrand, 500, SEED(3), jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.weighted, two.weighted)
    np.testing.assert_array_equal(one.plain, two.plain)


def test_progress_counts_the_clocks():
    done = []
    paired_maxima(asia(), vector(256), 70, SEED(3), progress=done.append)
    assert sum(done) == 256 * 70


@given(pairs, st.integers(1, 30))
def test_estimates_agree_with_brute_force(pair, block):
    model, integrand = pair
    phi, log_f = potentials(model), potentials(integrand)
    log_z = np.logaddexp.reduce(phi)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integrals, "BLOCK", block)
        if log_z == -np.inf:
            for function in paired_maxima, exact_log_expectation:
                with pytest.raises(NoConfiguration):
                    function(model, integrand, *([3, SEED(0)] if function is paired_maxima else []))
            return
        found = paired_maxima(model, integrand, 200, SEED(0))
        exact, _ = exact_log_expectation(model, integrand)
    expected = np.logaddexp.reduce(phi + log_f) - log_z
    assert exact == pytest.approx(expected, abs=1e-9)
    for known in (None, float(log_z)):
        estimate = log_expectation(found, log_z=known)
        if expected == -np.inf:
            assert (estimate.value, estimate.standard_error, estimate.kind) == (-np.inf, 0, "exact")
        else:
            assert abs(estimate.value - expected) < SIGMAS * math.sqrt(2 * GUMBEL_VARIANCE / 200)


CASES = {
    "random f": (vector(60), vector(60, seed=1)),
    "likely configurations": (vector(60), LogPotentials(vector(60).values / 2)),
    "unlikely configurations": (LogPotentials(zipf(60, 2.0)), LogPotentials(zipf(60, -3.0))),
    "probabilities": (LogPotentials(LogOf(np.arange(60.0))), LogPotentials(LogOf(np.arange(60.0) % 7))),
}


def plain_vectors(case):
    return tuple(LogPotentials(model.values[:]) for model in CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_the_estimate_is_within_its_error(case):
    model, integrand = CASES[case]
    expected = truth(*plain_vectors(case))
    assert exact_log_expectation(model, integrand) == (pytest.approx(expected, abs=1e-12), "enumeration")
    found = paired_maxima(model, integrand, 20_000, SEED(5))
    plain = log_expectation(found)
    controlled = log_expectation(found, log_z=log_partition_function(model))
    for estimate in plain, controlled:
        assert abs(estimate.value - expected) < SIGMAS * estimate.standard_error
        assert (estimate.kind, estimate.target, estimate.map_calls) == ("unbiased", "ln E[f]", 40_000)
    assert controlled.standard_error <= plain.standard_error * 1.001
    assert controlled.standard_error <= math.sqrt(GUMBEL_VARIANCE / 20_000) * 1.02


@pytest.mark.parametrize("case", CASES)
def test_shared_noise_correlates_positively(case):
    """Harris' inequality, as in Proposition 8: the difference varies less than under independent
    noise.
    """
    m = 20_000
    found = paired_maxima(*CASES[case], m, SEED(6))
    products = (found.weighted - found.weighted.mean()) * (found.plain - found.plain.mean())
    assert products.mean() > SIGMAS * products.std() / math.sqrt(m)
    difference = found.weighted - found.plain
    error = math.sqrt((stats.moment(difference, 4) - difference.var() ** 2) / m)
    assert difference.var() + SIGMAS * error < 2 * GUMBEL_VARIANCE


@pytest.mark.parametrize("values", ["weighted", "plain"])
def test_both_maxima_are_gumbel(values):
    model, integrand = plain_vectors("random f")
    phi = {"weighted": model.values + integrand.values, "plain": model.values}[values]
    found = getattr(paired_maxima(model, integrand, 20_000, SEED(8)), values)
    law = stats.gumbel_r(np.logaddexp.reduce(phi) - np.euler_gamma)
    assert stats.kstest(found, law.cdf).pvalue > 1e-6


def repeated(case, count, m, seed):
    """`count` sets of M pairs."""
    found = paired_maxima(*CASES[case], count * m, SEED(seed))
    sets = zip(found.weighted.reshape(count, m), found.plain.reshape(count, m), strict=True)
    return [PairedMaxima(*each) for each in sets]


@pytest.mark.parametrize(
    ("case", "m"),
    [(case, m) for case in CASES for m in ((1, 2, 15, 16, 17, 40) if case == "random f" else (1, 17))],
)
@pytest.mark.parametrize("known", [False, True])
def test_the_estimate_is_unbiased(case, m, known):
    log_z = log_partition_function(CASES[case][0]) if known else None
    values = np.array([log_expectation(pair, log_z=log_z).value for pair in repeated(case, 2000, m, seed=m)])
    assert abs(values.mean() - truth(*plain_vectors(case))) < SIGMAS * values.std() / math.sqrt(len(values))


def test_coefficients_come_from_the_other_half():
    """Those of the own half would bias the estimate: here by 8 standard errors of the mean."""
    log_z = log_partition_function(CASES["random f"][0])
    values = np.array([log_expectation(pair, log_z=log_z).value for pair in repeated("random f", 10_000, 16, seed=3)])
    assert abs(values.mean() - truth(*plain_vectors("random f"))) < SIGMAS * values.std() / math.sqrt(values.size)


@pytest.mark.parametrize(("known", "m"), [(False, 3), (False, 40), (True, 40)])
def test_the_standard_error_is_the_deviation_of_the_estimate(known, m):
    log_z = log_partition_function(CASES["random f"][0]) if known else None
    found = [log_expectation(pair, log_z=log_z) for pair in repeated("random f", 3000, m, seed=1)]
    values = np.array([e.value for e in found])
    squares = np.array([e.standard_error for e in found]) ** 2
    error = math.sqrt((stats.moment(values, 4) - values.var() ** 2 + squares.var()) / values.size)
    assert abs(values.var() - squares.mean()) < SIGMAS * error


@pytest.mark.parametrize("known", [False, True])
def test_intervals_cover(known):
    expected = truth(*plain_vectors("random f"))
    log_z = log_partition_function(CASES["random f"][0]) if known else None
    pairs = repeated("random f", 2000, 40, seed=1)
    found = [log_expectation(pair, log_z=log_z, confidence=0.9) for pair in pairs]
    inside = np.mean([e.low <= expected <= e.high for e in found])
    assert abs(inside - 0.9) < SIGMAS * math.sqrt(0.9 * 0.1 / len(found))


def test_a_control_variate_takes_two_halves_of_eight():
    log_z = log_partition_function(CASES["random f"][0])
    for m, method in (15, "gumbel"), (16, "gumbel, control variate"):
        pair = repeated("random f", 1, m, seed=2)[0]
        assert log_expectation(pair, log_z=log_z).method == method
        assert (log_expectation(pair, log_z=log_z).value == log_expectation(pair).value) == (m == 15)


@pytest.mark.parametrize("m", [1, 2, 100])
@pytest.mark.parametrize("model", [asia(), vector(50)], ids=["asia", "vector"])
@pytest.mark.parametrize("known", [None, 0.3])
def test_one_has_expectation_one(model, m, known):
    estimate = log_expectation(paired_maxima(model, constant(model.size), m, SEED(9)), log_z=known)
    assert estimate.value == 0
    assert estimate.standard_error == (0 if m > 1 else math.inf)
    assert exact_log_expectation(model, constant(model.size))[0] == 0


def test_a_constant_comes_out_of_the_expectation():
    estimate = log_expectation(paired_maxima(asia(), constant(256, -700.5), 100, SEED(9)))
    assert estimate.value == pytest.approx(-700.5, abs=1e-12)
    assert estimate.standard_error < 1e-12


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0, 3.0])
def test_powers_of_p_give_renyi_entropies(alpha):
    p = np.exp(zipf(200, 1.2))
    p /= p.sum()
    model, integrand = LogPotentials(np.log(p)), LogPotentials((alpha - 1) * np.log(p))
    entropy = math.log((p**alpha).sum()) / (1 - alpha)
    assert exact_log_expectation(model, integrand)[0] == pytest.approx((1 - alpha) * entropy, abs=1e-12)
    estimate = log_expectation(paired_maxima(model, integrand, 5000, SEED(10)))
    assert abs(estimate.value - (1 - alpha) * entropy) < SIGMAS * estimate.standard_error


def test_two_graphs_take_two_eliminations():
    """E_p[p~] = Z_2 / Z."""
    graph = asia()
    value, method = exact_log_expectation(graph, graph.tempered(1.0))
    phi = potentials(graph)
    assert method == "elimination"
    assert value == pytest.approx(np.logaddexp.reduce(2 * phi) - np.logaddexp.reduce(phi), abs=1e-12)
    assert exact_log_expectation(graph, graph, memory=1)[1] == "enumeration"


def test_an_indicator_gives_the_probability_of_an_event():
    """P(dyspnoea) of the chest clinic, whose order of configurations is that of its states."""
    graph = asia()
    event = FactorGraph(graph.cardinalities, [Factor((7,), np.array([0.0, -np.inf]))])
    inside = all_states(graph)[:, 7] == 0
    probability = np.exp(graph.log_potential(all_states(graph)))[inside].sum()
    as_vector = LogPotentials(LogOf(inside.astype(np.int8)))
    found = paired_maxima(graph, as_vector, 5000, SEED(11))
    np.testing.assert_allclose(found.weighted, paired_maxima(graph, event, 5000, SEED(11)).weighted, rtol=1e-12)
    for integrand in event, as_vector:
        assert exact_log_expectation(graph, integrand)[0] == pytest.approx(math.log(probability), abs=1e-12)
    estimate = log_expectation(found)
    assert abs(estimate.value - math.log(probability)) < SIGMAS * estimate.standard_error
    assert (found.weighted <= found.plain + 1e-12).all()


@pytest.mark.parametrize("model", [asia(), vector(256)], ids=["asia", "vector"])
def test_an_integrand_that_is_zero_on_all_that_is_possible(model):
    impossible = potentials(model) == -np.inf
    integrand = LogPotentials(np.where(impossible, 0.0, -np.inf))
    assert exact_log_expectation(model, integrand)[0] == -np.inf
    for known in (None, 0.0):
        estimate = log_expectation(paired_maxima(model, integrand, 10, SEED(0)), log_z=known)
        assert (estimate.value, estimate.low, estimate.high, estimate.standard_error) == (-np.inf, -np.inf, -np.inf, 0)
        assert (estimate.kind, estimate.text()) == ("exact", "-inf")


@pytest.mark.parametrize("shift", [1e5, -1e5])
def test_potentials_of_any_size(shift):
    model, integrand = plain_vectors("random f")
    plain = paired_maxima(model, integrand, 20, SEED(4))
    shifted = paired_maxima(
        LogPotentials(model.values + shift), LogPotentials(integrand.values - 2 * shift), 20, SEED(4)
    )
    np.testing.assert_allclose(shifted.plain - shift, plain.plain, atol=1e-9)
    np.testing.assert_allclose(shifted.weighted + shift, plain.weighted, atol=1e-9)
    value = exact_log_expectation(model, LogPotentials(integrand.values + shift))[0]
    assert value == pytest.approx(truth(model, integrand) + shift, abs=1e-9)


def test_an_impossible_block_in_either_changes_nothing(monkeypatch):
    monkeypatch.setattr(integrals, "BLOCK", 5)
    phi, log_f = vector(20).values, vector(20, seed=1).values
    phi[5:10] = log_f[10:15] = -np.inf
    model, integrand = LogPotentials(phi), LogPotentials(log_f)
    estimate = log_expectation(paired_maxima(model, integrand, 5000, SEED(12)))
    assert abs(estimate.value - truth(model, integrand)) < SIGMAS * estimate.standard_error
    assert exact_log_expectation(model, integrand)[0] == pytest.approx(truth(model, integrand), abs=1e-12)


def test_lowest_numbers_do_not_overflow():
    model = LogPotentials(np.array([0.0, -1.7e308]))
    found = paired_maxima(model, model, 3, SEED(0))
    np.testing.assert_array_equal(found.weighted, found.plain)


ASIA_LIKE = FactorGraph([4] * 4, [])


@pytest.mark.parametrize(
    ("model", "integrand", "message"),
    [
        (vector(5), vector(6), "the integrand has 6 configurations; it must have 5"),
        (asia(), vector(255), "the integrand has 255 configurations; it must have 256"),
        (vector(255), asia(), "the integrand has 256 configurations; it must have 255"),
        (asia(), ASIA_LIKE, r"its variables have \[4, 4, 4, 4\] states"),
        (vector(3), LogPotentials(np.array([0, 1, np.nan])), "^the integrand: log-potential 2 is nan"),
        (vector(3), LogPotentials(LogOf(np.array([0, 1, -1]))), "^the integrand: probability 2 is -1"),
        (LogPotentials(np.array([0, np.inf])), vector(2), "^log-potential 1 is inf"),
        (LogPotentials(np.full(3, -np.inf)), vector(3), "no configuration is possible"),
    ],
)
def test_what_does_not_fit_gets_one_line(model, integrand, message):
    with pytest.raises(InputError, match=message):
        paired_maxima(model, integrand, 3, SEED(0))
    with pytest.raises(InputError, match=message):
        exact_log_expectation(model, integrand)


def test_bad_arguments():
    with pytest.raises(InputError, match="perturbations is 0"):
        paired_maxima(vector(3), vector(3), 0, SEED(0))
    with pytest.raises(ModelTooLarge):
        paired_maxima(vector(3), vector(3), 1, SEED(0), max_configurations=2)
    pair = paired_maxima(vector(3), vector(3), 9, SEED(0))
    with pytest.raises(InputError, match="confidence is 1"):
        log_expectation(pair, confidence=1.0)
    with pytest.raises(InputError, match="ln Z is -inf"):
        log_expectation(pair, log_z=-math.inf)


def test_one_pair_has_no_standard_error():
    estimate = log_expectation(paired_maxima(vector(9), vector(9, seed=1), 1, SEED(0)))
    assert (estimate.standard_error, estimate.low, estimate.high) == (math.inf, -math.inf, math.inf)
