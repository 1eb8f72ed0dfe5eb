import math

import numpy as np
import pytest

from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.spin_glass import published_spin_glass
from thesis_cli.studies.entropy.relatives import bound_rows, error_rows, tempered
from thesis_cli.studies.entropy.variance import apart_rows

SIGMAS = 5
TRICKS = np.array([-0.2, 0, 0.5])


def one_variable():
    return FactorGraph([6], [Factor((0,), np.array([0.0, 1.0, -1.0, 2.0, 0.5, -np.inf]))])


@pytest.mark.parametrize("order", [0.5, 2.0])
def test_with_one_variable_every_trick_is_exact(order):
    model = tempered(one_variable(), order)
    assert model.entropy == pytest.approx(exact_entropies(one_variable(), [order]).entropies[0])
    rows = list(bound_rows(model, TRICKS, 4_000, np.random.SeedSequence(1)))[1:]
    assert [row[0] for row in rows[:3]] == ["upper" if order < 1 else "lower"] * 3
    for name, trick, slack, error in rows:
        assert abs(slack) < SIGMAS * error < 1, (name, trick)


def test_errors_with_one_variable_are_those_of_the_gumbel_trick():
    model = tempered(one_variable(), 2.0)
    found = {(row[0], row[1]): row[2:] for row in error_rows(model, TRICKS, 400, 10, np.random.SeedSequence(2))}
    mse, error = found["mse", 0]
    assert abs(mse - math.pi**2 / 60) < SIGMAS * error < 0.1
    (variance, error), _ = (value for (name, _), value in found.items() if name in ("variance", "deviation"))
    assert abs(variance - math.pi**2 / 24) < SIGMAS * error < 0.2


@pytest.mark.parametrize("order", [0.5, 2.0])
def test_bounds_lie_outside(order):
    model = tempered(published_spin_glass(3.0, "mixed", 2, 2).graph(), order)
    for name, trick, value, error in list(bound_rows(model, TRICKS, 2_000, np.random.SeedSequence(3)))[1:]:
        assert (value if name == "upper" else -value) > -SIGMAS * error, (name, trick)


def test_two_estimators_with_noise_of_their_own():
    alphas = np.array([0.5, 2.0, 3.0])
    rows = apart_rows(np.array([0.0, -np.inf, 0.0]), alphas, (1 - alphas) ** 2, 5_000, np.random.SeedSequence(4))
    misses = (rows.value / rows.expected - 1).to_numpy()
    errors = (rows.standard_error / rows.expected).to_numpy()
    assert (np.abs(misses) < SIGMAS * errors).all()
    assert (errors < 0.1).all()
    assert (np.abs(misses) > 1e-6).all()  # under shared noise the ratio would be exact
