"""The exact objectives, and the dual of the structured SVM."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.learning.models import all_images, pairs, scores
from tests.learning.test_train import differences, vectors
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.learning.problem import Problem
from thesis_cli.learning.settings import Settings
from thesis_cli.learning.smooth import conditionals, likelihood, moments
from thesis_cli.learning.structured_svm import Dual
from thesis_cli.learning.train import train


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (1, 5), (5, 1), (1, 1)])
def test_moments_are_those_of_enumeration(shape):
    rng = np.random.default_rng(0)
    h, w = shape
    own, right, down = rng.normal(0, 1, (2, h, w)), rng.normal(0, 1, (h, w - 1)), rng.normal(0, 1, (h - 1, w))
    images = all_images(h, w)
    found = moments(own, right, down)
    log_z, rights, downs = 0.0, np.zeros((h, w - 1)), np.zeros((h - 1, w))
    for field, means in zip(own, found.own, strict=True):
        pairs = (right * images[:, :, :-1] * images[:, :, 1:]).sum(axis=(1, 2))
        phi = (field * images).sum(axis=(1, 2)) + pairs + (down * images[:, :-1] * images[:, 1:]).sum(axis=(1, 2))
        log_z += np.logaddexp.reduce(phi)
        p = np.exp(phi - np.logaddexp.reduce(phi))
        assert means == pytest.approx(np.einsum("s,sij->ij", p, images))
        rights += np.einsum("s,sij->ij", p, images[:, :, :-1] * images[:, :, 1:])
        downs += np.einsum("s,sij->ij", p, images[:, :-1] * images[:, 1:])
    assert found.log_z == pytest.approx(log_z)
    assert found.right == pytest.approx(rights)
    assert found.down == pytest.approx(downs)


def test_moments_of_strong_weights_stay_finite():
    own = np.full((1, 4, 3), 5e3)
    own[0, 0] = -5e3
    found = moments(own, np.full((4, 2), 9e3), np.full((3, 3), 9e3))
    assert found.own == pytest.approx(np.ones((1, 4, 3)))
    assert found.log_z == pytest.approx(9 * 5e3 - 3 * 5e3 + 17 * 9e3)


@pytest.mark.parametrize("objective", [likelihood, conditionals])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients(objective, bias):
    problem = Problem(*pairs(), Settings(bias=bias))
    vector = vectors(problem)
    assert objective(problem, vector)[1] == pytest.approx(differences(lambda v: objective(problem, v)[0], vector))


def test_values_are_those_of_enumeration():
    problem = Problem(*pairs(2), Settings())
    vector = vectors(problem)
    weights, images = problem.weights(vector), all_images(3, 3)
    exact, pseudo = [], []
    for noisy, clean in zip(problem.noisy, problem.clean, strict=True):
        phi = scores(weights, noisy, images)
        own = scores(weights, noisy, clean[None])[0]
        exact.append(np.logaddexp.reduce(phi) - own)
        total = 0.0
        for i, j in itertools.product(range(3), range(3)):
            other = clean.copy()
            other[i, j] *= -1
            total += np.logaddexp(0, scores(weights, noisy, other[None])[0] - own)
        pseudo.append(total)
    norm = vector @ vector
    assert likelihood(problem, vector)[0] == pytest.approx(np.mean(exact) + norm)
    assert conditionals(problem, vector)[0] == pytest.approx(np.mean(pseudo) + norm)


def test_the_exact_gradient_refuses_wide_images():
    images = np.zeros((1, 13, 14), bool)
    with pytest.raises(ModelTooLarge, match="up to 12 pixels wide, and these are 13 x 14; give --method perturb-max"):
        train(images, images, Settings("crf"), 0)


@pytest.mark.parametrize("couplings", ["attractive", "any"])
def test_frank_wolfe_finds_the_least_objective(couplings):
    """Which a smooth solver finds of the primal, its maxima written out as constraints."""
    noisy, clean = pairs(3, 2, 2, share=0.3)
    noisy, clean = (images ^ [[True, False], [False, True]] for images in (noisy, clean))  # neighbours differ
    settings = Settings("svm-frank-wolfe", iterations=400, regularisation=0.3, couplings=couplings)
    found = train(noisy, clean, settings, 0)
    trace = found.trace
    lowest = found.weights.right.min()
    assert (lowest == 0) if couplings == "attractive" else (lowest < 0)
    assert (trace.gap > -1e-9).all()
    assert trace.gap.iloc[-1] <= 1e-3 * trace.objective.iloc[-1]
    assert trace.gap.iloc[-1] < 0.01 * trace.gap.iloc[0]
    assert trace.map_calls.iloc[-1] == 3 * (2 * trace.iteration.iloc[-1] + 1)
    problem, images = Problem(noisy, clean, settings), all_images(2, 2)
    rows, losses = [], []
    for x, y in zip(problem.noisy, problem.clean, strict=True):
        truth = problem.layout.features(x[None], y[None])
        rows.append([truth - problem.layout.features(x[None], image[None]) for image in images])
        losses.append((images != y).sum(axis=(1, 2)))
    psi, loss = np.array(rows), np.array(losses)  # (pair, image, weights), (pair, image)
    size = problem.layout.size

    def slack(z):
        return (z[size:, None] - loss + psi @ z[:size]).ravel()

    low = [(None, None)] * problem.layout.unary
    low += [(0 if couplings == "attractive" else None, None)] * (size - problem.layout.unary)
    start = np.concatenate([np.zeros(size), loss.max(axis=1)])
    least = minimize(
        lambda z: 0.3 * z[:size] @ z[:size] + z[size:].mean(), start, method="SLSQP",
        bounds=low + [(None, None)] * 3, constraints={"type": "ineq", "fun": slack}, options={"maxiter": 300},
    )  # fmt: skip
    assert least.success
    last = trace.iloc[-1]
    assert last.objective - last.gap - 1e-6 <= least.fun <= last.objective + 1e-6


def test_a_step_has_the_best_length():
    """Without a bound on couplings, when the dual is the quadratic itself."""
    problem = Problem(*pairs(4, 4, 4), Settings("svm-frank-wolfe", regularisation=0.05, couplings="any"))
    dual = Dual(problem, np.zeros((4, problem.layout.size)), np.zeros(4))
    inner = 0
    for k in (0, 1, 2, 3) * 3:
        shares, losses = dual.shares.copy(), dual.losses.copy()
        length = dual.step(k)
        if 0 < length < 1:
            inner += 1
            for more in (0.9, 1.1):
                other = [a + more * (b - a) for a, b in ((shares, dual.shares), (losses, dual.losses))]
                assert Dual(problem, *other).value() < dual.value()
    assert inner > 3
