"""Weights that all pixels share: evidence, gradients, files."""

import dataclasses

import numpy as np
import pytest

from tests.learning.models import all_images, pairs, scores
from tests.learning.test_train import differences
from thesis_cli.base.errors import InputError
from thesis_cli.learning.decoding import map_images
from thesis_cli.learning.perturb_max import PerturbMaxObjective, _of_some
from thesis_cli.learning.problem import Problem
from thesis_cli.learning.settings import Settings
from thesis_cli.learning.shared_model import SharedLayout, load_weights
from thesis_cli.learning.smooth import conditionals, likelihood
from thesis_cli.learning.train import train

SHARED = Settings(weights="shared", patch=3, schedule="adam", perturbations=3, iterations=5)
NETWORK = dataclasses.replace(SHARED, hidden=2)


def weights(units=2, side=3, seed=0):
    layout = SharedLayout(4, 3, side, units)
    vector = np.random.default_rng(seed).normal(0, 0.5, layout.size)
    return layout.model(np.abs(vector) * np.where(np.arange(layout.size) < layout.unary, np.sign(vector), 1))


def test_evidence_is_that_of_each_patch():
    found, noisy = weights(), np.random.default_rng(1).normal(size=(2, 4, 3))
    evidence, padded = found.evidence(noisy), np.pad(noisy, ((0, 0), (1, 1), (1, 1)))
    for k, i, j in np.ndindex(2, 4, 3):
        patch = padded[k, i : i + 3, j : j + 3]
        expected = found.bias[0] + (found.linear * patch).sum()
        for hidden, offset, output in zip(found.hidden, found.offsets, found.output, strict=True):
            expected += output * max(0.0, offset + (hidden * patch).sum())
        assert evidence[k, i, j] == pytest.approx(expected)


@pytest.mark.parametrize("settings", [SHARED, NETWORK], ids=["linear", "network"])
@pytest.mark.parametrize("grey", [False, True])
def test_gradient_of_perturbed_maxima(settings, grey):
    """Under the same noise, by differences."""
    noisy, clean = pairs(3, 3, 4)
    signals = np.random.default_rng(2).normal(0, 1, noisy.shape) + clean if grey else noisy
    problem = Problem(signals, clean, settings)
    vector = problem.feasible(np.random.default_rng(0).normal(0.3, 0.5, problem.layout.size)) + 0.01

    def estimate(v):
        return _of_some(problem, v, np.array([0, 2]), np.random.default_rng(5))

    assert estimate(vector)[1] == pytest.approx(differences(lambda v: estimate(v)[0], vector), abs=1e-6)


def test_both_estimates_of_the_objective_agree():
    problem = Problem(*pairs(2), dataclasses.replace(SHARED, perturbations=2000))
    vector = np.full(problem.layout.size, 0.1)
    value, gradient = _of_some(problem, vector, np.arange(2), np.random.default_rng(0))
    other, theirs = PerturbMaxObjective(problem, 1).estimate(vector, 0)
    assert value == pytest.approx(other, abs=5 * 2 * 9**0.5 * 1.3 / 4000**0.5)  # 9 Gumbels of deviation 1.3 an image
    assert gradient == pytest.approx(theirs, abs=5 * 2 * 12 / 4000**0.5)  # features are at most 12


@pytest.mark.parametrize("objective", [likelihood, conditionals])
def test_gradients_of_smooth_objectives(objective):
    problem = Problem(*pairs(), Settings(weights="shared", patch=3))
    vector = np.random.default_rng(0).normal(0.2, 0.3, problem.layout.size)
    assert objective(problem, vector)[1] == pytest.approx(differences(lambda v: objective(problem, v)[0], vector))


def test_the_best_image_is_that_of_enumeration_at_every_size():
    found, images = weights(), all_images(3, 3)
    noisy, _ = pairs(4, 3, 3)
    own = found.evidence(np.where(noisy, 1.0, -1.0))
    grid = found.on(3, 3)
    for k in range(4):
        totals = scores(grid, np.zeros((3, 3)), images) + (own[k] * images).sum(axis=(1, 2))
        assert np.array_equal(map_images(found, noisy[k : k + 1])[0], images[totals.argmax()] > 0)
    assert map_images(found, np.zeros((2, 1, 1), bool)).shape == (2, 1, 1)


def test_a_file_keeps_shared_weights(tmp_path):
    kept, path = dataclasses.replace(weights(), about={"seed": 3}), tmp_path / "w.safetensors"
    kept.save(path)
    found = load_weights(path)
    assert found.to_bytes() == path.read_bytes()
    assert found.about == {"seed": 3}
    with pytest.raises(InputError, match=r"output has shape|hidden has shape"):
        dataclasses.replace(kept, hidden=kept.hidden[:1])
    with pytest.raises(InputError, match="linear has a NaN"):
        dataclasses.replace(kept, linear=np.full((3, 3), np.nan))


def test_settings_that_do_not_go_together_are_refused():
    with pytest.raises(InputError, match="is 2; it must be odd"):
        train(*pairs(), dataclasses.replace(SHARED, patch=2), 0)
    with pytest.raises(InputError, match="hidden units go with shared weights"):
        train(*pairs(), dataclasses.replace(NETWORK, schedule="halving"), 0)
