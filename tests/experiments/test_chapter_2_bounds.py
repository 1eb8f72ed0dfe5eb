"""Experiments on bounds from low-rank perturbations (Thesis 2.3, 2.4, 2.5.3), against exact numbers and fresh noise."""

import math

import numpy as np
import pytest

from tests.experiments.runs import assert_near, one, rows, run, whole
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.spin_glass import published_spin_glass
from thesis_cli.perturbation.low_rank.low_rank import low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds, slope_at_zero

UNIT = math.pi**2 / 6
TERMS = 100


def test_without_couplings_the_bounds_of_figure_2_4_are_ln_z():
    """U is then ln Z less c plus a sum of 100 Gumbel variables."""
    found = run("fig-2-4", kind="mixed", solver="exact", coupling=0.0, order=0, estimators=60, samples=10)
    log_z = Elimination(published_spin_glass(0.0, "mixed", 10, 10).graph()).log_partition_function()
    np.testing.assert_allclose(found.log_z, log_z, rtol=1e-12)
    assert_near(found["mean"], found.mean_error, log_z, rounding=0.1)  # an estimate from 10 samples has a small bias
    assert_near(found.bound, found.bound_error, log_z)
    gumbel = one(found, alpha=0.0)
    assert gumbel.bound == pytest.approx(gumbel["mean"], rel=1e-12)
    assert_near(gumbel.mse, gumbel.mse_error, UNIT * TERMS / 10)
    assert_near(gumbel.variance, gumbel.variance_error, UNIT * TERMS / 10)
    assert gumbel.bound_error == pytest.approx(math.sqrt(UNIT * TERMS / 600), rel=0.2)
    assert_near(gumbel.variance_ratio, gumbel.variance_ratio_error, 1)
    assert gumbel.variance_ratio_error == pytest.approx(math.sqrt(2 / 600), rel=0.2)
    np.testing.assert_allclose(found.mse, (found["mean"] - log_z) ** 2 + found.variance * 59 / 60)
    np.testing.assert_allclose(found.saving, 1 - found.mse / gumbel.mse, atol=1e-12)
    assert (found.optimal == 1).all()
    small = {"kind": "mixed", "coupling": 0.0, "order": 0, "estimators": 2, "samples": 5}
    first, second = (run("fig-2-4", solver=name, **small) for name in ("exact", "belief propagation"))
    np.testing.assert_allclose(first[["mean", "mse", "bound"]], second[["mean", "mse", "bound"]], rtol=1e-9)
    assert (second.optimal == 1).all()


def test_figure_2_4_has_the_bounds_of_the_published_model():
    whole("fig-2-4", thirds=[0, 1], estimators=2, orders=1)
    found = run("fig-2-4", kind="mixed", solver="exact", coupling=1.0, order=0, estimators=10, samples=50)
    assert one(found, alpha=0.0).bound == pytest.approx(one(found, alpha=0.0)["mean"], rel=1e-12)
    solver = GridTransfer(published_spin_glass(1.0, "mixed", 10, 10).graph())
    assert found.log_z.to_numpy() == pytest.approx(solver.log_partition_function())
    fresh = low_rank_maxima(solver, 500, np.random.SeedSequence(1))
    bounds, errors = power_bounds(fresh.values, TERMS, found.alpha.to_numpy())
    assert_near(found.bound, np.hypot(found.bound_error, errors), bounds)
    by_propagation = run(
        "fig-2-4", kind="mixed", solver="belief propagation", coupling=1.0, order=0, estimators=2, samples=6
    )
    exact = run("fig-2-4", kind="mixed", solver="exact", coupling=1.0, order=0, estimators=2, samples=6)
    assert (by_propagation.bound <= exact.bound + 1e-9).all()
    assert 0 < by_propagation.optimal.iloc[0] < 1


@pytest.mark.parametrize("coupling", [0.0, 3.0])
def test_figure_2_4_of_fresh_models_has_gaps_savings_and_variances(coupling):
    found = run("fig-2-4-fresh", kind="attractive", coupling=coupling, models=0, estimators=100, samples=50).iloc[0]
    solver = GridTransfer(published_spin_glass(coupling, "attractive", 10, 10).graph())
    fresh = low_rank_maxima(solver, 5000, np.random.SeedSequence(1))
    assert found.origin == "published"
    assert found.log_z == pytest.approx(solver.log_partition_function())
    gap = fresh.values.mean() - found.log_z
    error = fresh.values.std() / math.sqrt(5000)
    assert_near(found.gap, math.hypot(found.gap_error, error), gap)
    assert found.gap_error == pytest.approx(error, rel=0.1)
    slope, slope_error = slope_at_zero(fresh)
    unit = 2 / (UNIT * TERMS)
    assert_near(found.variance_ratio, math.hypot(found.variance_ratio_error, unit * slope_error), 1 - unit * slope)
    assert found.variance_ratio_error == pytest.approx(unit * slope_error, rel=0.3)
    biases = power_bounds(fresh.values, TERMS, np.array([-0.05, 0.0]))[0] - found.log_z
    if coupling == 0:
        assert_near(found.gap, found.gap_error, 0)
    else:
        bias, gumbel = biases**2 + fresh.values.var() / 50
        assert_near(found.frechet_saving, found.frechet_saving_error, 1 - bias / gumbel, rounding=4 * error / gap)
    assert found.saving >= found.frechet_saving
    assert (found.saving > found.frechet_saving) == (found.best_alpha != -0.05)


@pytest.fixture(scope="module")
def identities():
    return whole("low-rank-identities", samples=3000, clamped_samples=500)


PRODUCTS = {"independent", "uniform", "one configuration"}


def test_bounds_of_product_distributions_are_exact(identities):
    products = identities[identities.kind.isin(PRODUCTS)]
    for quantity in ("U", "U tilted", "clamped", "slope", "U derivative", "L derivative", "Proposition 6"):
        found = rows(products, quantity=quantity)
        assert_near(found.value, found.standard_error, 0, rounding=1e-9)
    found = rows(products, quantity="variance")
    assert_near(found.value, found.standard_error, 1)


def test_bounds_and_entropies_of_a_uniform_table_have_closed_forms(identities):
    found, full = rows(identities, kind="uniform"), math.log(24)
    third = full / 3
    exact = {
        "H(p)": full,
        "B": full,
        "B of independence": 0,
        "B less H(p)": 0,
        "A": third,
        "max-marginals": third - full,
        "L limit at -1": third - full,
        "variance of the noise": UNIT / 4,
    }
    for quantity, value in exact.items():
        number = one(found, quantity=quantity)
        assert_near(number.value, number.standard_error, value, rounding=1e-9)
    lower = one(found, quantity="L", alpha=0.0)
    assert_near(lower.value, lower.standard_error, third - full)
    assert lower.standard_error == pytest.approx(math.sqrt(UNIT / 3 / 3000), rel=0.2)


def test_the_noise_at_the_maximiser_of_a_plateau_varies_as_its_potential():
    """The maximum is independent of the maximiser, whose potential is 0 or ln 10,000 with equal probability."""
    found = run("low-rank-identities", kind="plateau", strength=0, model=0, samples=50_000, clamped_samples=0)
    number = one(found, quantity="variance of the noise")
    assert_near(number.value, number.standard_error, (UNIT + math.log(10_000) ** 2 / 4) / 4)


def test_bounds_of_a_coupled_model_agree_with_each_other(identities):
    found = rows(identities, kind="mixed")
    upper = rows(found, quantity="U")
    assert (upper.value > -5 * upper.standard_error).all()
    assert one(upper, alpha=0.0).value > 5 * one(upper, alpha=0.0).standard_error
    for alpha in (-0.2, 0.0):
        first, second = one(upper, alpha=alpha), one(found, quantity="clamped", alpha=alpha, size=0)
        assert_near(first.value, math.hypot(first.standard_error, second.standard_error), second.value)
    for quantity in ("subset, closed form", "slope", "U derivative", "L derivative"):
        zero = rows(found, quantity=quantity)
        assert_near(zero.value, zero.standard_error, 0)
    lemma = rows(found, quantity="lemma")
    assert (lemma.value > -5 * lemma.standard_error - 1e-9).all()
    lower = rows(found, quantity="L")
    assert (lower.value < 0).all()


@pytest.mark.parametrize("strength", [0, 60])
def test_the_sequential_sampler_always_accepts_where_the_bound_is_exact(strength):
    """With the potentials all 0, or one far above the others, exp(U) is Z."""
    sizes = {"samples": 2000, "draws": 100, "reference": 4000, "repeats": 2, "sizes": [100]}
    frame = run("sequential-sampler", kind="table", strength=strength, model=0, **sizes)
    library = rows(frame, method="library")
    assert_near(library.prediction, library.prediction_error, 1)
    assert (library.prediction_error > 0).all()
    ratio = library.estimate_error / library.prediction_error
    np.testing.assert_allclose(ratio, math.sqrt(2), rtol=1e-9)
    assert_near(library.given_estimates, library.estimate_error, 1)
    for method in ("shared", "own"):
        computed = one(frame, method=method)
        assert 0.7 < computed.acceptance <= 1
        assert computed.distance < 0.2


def test_the_sequential_sampler_accepts_as_often_as_its_bound_says():
    sizes = {"samples": {"mixed": 300, "table": 4000}, "draws": 200, "reference": 4000, "repeats": 2, "sizes": [30]}
    frame = whole("sequential-sampler", **sizes)
    library = rows(frame, method="library")
    errors = np.hypot(library.prediction_error, library.estimate_error)
    assert_near(library.given_estimates, errors, library.prediction)
    assert 0.1 < library.prediction.min() < library.prediction.max() < 1
    free = rows(library, clipped=0)
    assert_near(free.acceptance, free.acceptance_error, free.given_estimates)
    deviation = np.sqrt(library.acceptance * (1 - library.acceptance) * library.acceptance / 200)
    np.testing.assert_allclose(library.acceptance_error, deviation, rtol=1e-9)
    for found in (free, rows(frame, method="backward")):
        assert_near(found.distance, found.exact_deviation, found.exact_distance)
    shared, own = (rows(frame, method=method) for method in ("shared", "own"))
    assert (shared.distance < own.distance).all()
    reference = library[library.alpha == 0].groupby("kind").prediction.first().loc[shared.kind].to_numpy()
    np.testing.assert_allclose(shared.prediction, reference)
