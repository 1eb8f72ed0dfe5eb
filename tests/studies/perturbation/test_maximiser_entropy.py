import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from thesis_cli.models.spin_glass import SpinGlass, random_spin_glass
from thesis_cli.studies.perturbation.maximiser_entropy import entropy_of, maximiser_entropy, product_entropy

SAMPLES = 40_000


def entropy(p):
    return float(-(p * np.log(p)).sum())


def test_two_spins_have_the_entropy_of_an_integral():
    """From +1 instead of -1 the spins gain u and v, which are logistic, and the coupling adds to that."""
    a, b, coupling = 0.3, -0.5, 0.8
    glass = SpinGlass(np.array([[a, b]]), np.array([[coupling]]), np.zeros((0, 2)))

    def both_up(u):
        """Density of u, and of a v for which (+1, +1) is best: u, v > -2J and u + v > 0."""
        return expit(u - 2 * a) * expit(2 * a - u) * expit(2 * b - max(-2 * coupling, -u))

    p_up = quad(both_up, -2 * coupling, 2 * coupling)[0] + quad(both_up, 2 * coupling, 50)[0]
    p = np.array(
        [
            p_up,
            expit(2 * a - 2 * coupling) * expit(-2 * coupling - 2 * b),  # u > 2J, v < -2J
            expit(-2 * coupling - 2 * a) * expit(2 * b - 2 * coupling),
        ]
    )
    truth = entropy(np.append(p, 1 - p.sum()))
    found = maximiser_entropy(glass, "mixed", SAMPLES, np.random.SeedSequence(1))
    assert abs(found.entropy - truth) < 5 * found.entropy_error
    assert found.noise > truth
    assert found.marginal > truth


@pytest.mark.parametrize("kind", ["attractive", "mixed"])
def test_independent_spins_attain_both_bounds(kind):
    glass = random_spin_glass(3, 4, 0.0, 1.0, kind, np.random.default_rng(1))
    found = maximiser_entropy(glass, kind, SAMPLES, np.random.SeedSequence(1))
    truth = product_entropy(glass.fields)
    p = expit(2 * glass.fields)
    assert truth == pytest.approx(entropy(p) + entropy(1 - p))
    assert abs(found.entropy - truth) < 5 * found.entropy_error + abs(found.correction)
    assert abs(found.noise - truth) < 5 * found.noise_error
    assert abs(found.marginal - truth) < 5 * found.marginal_error


def test_bounds_of_a_large_model_have_the_stated_errors():
    glass = random_spin_glass(12, 12, 1.0, 1.0, "attractive", np.random.default_rng(1))
    few = [maximiser_entropy(glass, "attractive", 100, seed) for seed in np.random.SeedSequence(1).spawn(12)]
    assert math.isnan(few[0].entropy)
    for name, error in (("noise", "noise_error"), ("marginal", "marginal_error")):
        values = np.array([getattr(found, name) for found in few])
        assert values.std(ddof=1) == pytest.approx(getattr(few[0], error), rel=0.7)
    advantages = np.array([found.marginal - found.noise for found in few])
    assert advantages.std(ddof=1) == pytest.approx(few[0].advantage_error, rel=0.7)
    assert advantages.mean() > 5 * few[0].advantage_error


def test_entropy_of_few_counts_is_nearly_unbiased():
    rng = np.random.default_rng(0)
    p = np.arange(1.0, 201) ** -1.0
    p /= p.sum()
    found = np.array([entropy_of(rng.multinomial(300, p)) for _ in range(300)])
    plain = [entropy(c[c > 0] / 300) for c in rng.multinomial(300, p, 300)]
    assert abs(found[:, 0].mean() - entropy(p)) < 0.05 < 0.2 < entropy(p) - np.mean(plain)
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=0.5)
    assert entropy_of(np.array([0, 5])) == (0.0, 0.0)
