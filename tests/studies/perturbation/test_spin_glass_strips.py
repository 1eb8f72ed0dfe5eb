import numpy as np
import pytest

from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.perturbation.spin_glass_strips import PerturbedGlass, Strips, energy

KINDS = ["attractive", "mixed"]


def glass(kind, rows=7, columns=5, coupling=1.5):
    return random_spin_glass(rows, columns, coupling, 1.0, kind, np.random.default_rng(3))


@pytest.mark.parametrize("kind", KINDS)
def test_strips_bound_ln_z(kind):
    model = glass(kind)
    exact, marginals = GridTransfer(model.graph()).marginals()
    found = Strips(model, 4).log_partition_function(0.5 * np.sign(model.fields))
    assert found.lower < exact < found.upper < found.lower + 5
    assert abs(found.estimate - exact) < 0.8 * (exact - found.lower)
    whole = Strips(model, 9).log_partition_function()
    assert whole[:3] == pytest.approx((exact,) * 3, abs=1e-9)
    np.testing.assert_allclose(whole.means.ravel(), 2 * marginals[1::2] - 1, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_strips_find_maxima(kind):
    model, rng = glass(kind), np.random.default_rng(1)
    shift = rng.logistic(size=(9, *model.fields.shape))
    noise = np.stack([-shift, shift], axis=3).reshape(9, -1)
    exact = GridTransfer(model.graph()).maximise(noise)[0]
    fields = model.fields + shift
    for width, least in ((4, -0.5), (7, -1e-9)):
        values, spins = Strips(model, width).search(fields)
        np.testing.assert_allclose(values, energy(model, fields, spins), atol=1e-9)
        assert (values <= exact + 1e-9).all()
        assert (values >= exact + least).all()


def test_energy_is_that_of_the_graph():
    model, rng = glass("mixed"), np.random.default_rng(2)
    states = rng.integers(0, 2, (4, 35))
    spins = 2.0 * states.reshape(4, 7, 5) - 1
    assert energy(model, model.fields, spins) == pytest.approx(model.graph().log_potential(states))


@pytest.mark.parametrize(("kind", "rows"), [("mixed", 4), ("attractive", 12), ("mixed", 12)])
def test_maximisers_under_noise_are_those_of_exact_solvers(kind, rows):
    model = glass(kind, rows, rows)
    perturbed = PerturbedGlass(model, kind)
    assert perturbed.exact == (kind == "attractive" or rows == 4)
    (drawn,) = perturbed.draw(8, np.random.default_rng(5))
    total = np.stack([-drawn.half, drawn.half], axis=3).reshape(8, -1)
    values, states = GridTransfer(model.graph()).maximise(total)
    np.testing.assert_array_equal(drawn.spins.reshape(8, -1), 2 * states - 1)
    at_max = values - energy(model, model.fields, drawn.spins) + drawn.mean
    np.testing.assert_allclose(drawn.at_max, at_max, atol=1e-9)


def test_noise_is_gumbel():
    (drawn,) = PerturbedGlass(glass("mixed", 2, 2), "mixed").draw(20_000, np.random.default_rng(5))
    up = drawn.mean + drawn.half.sum(axis=(1, 2))
    assert abs(up.mean()) < 5 * np.sqrt(4 * np.pi**2 / 6 / 20_000)
    assert up.var() == pytest.approx(4 * np.pi**2 / 6, rel=0.1)
