"""The experiment on learning to denoise, at sizes of milliseconds, against what its parts must be."""

import numpy as np
import pytest

from tests.experiments.runs import one, rows, run, whole
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.learning.grid_model import GridWeights
from thesis_cli.models.spin_glass import SpinGlass
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.learning.denoising import (
    COUPLINGS,
    PARTS,
    Part,
    bound_gap,
    draw_images,
    gibbs_images,
    one_coupling,
    thinned,
)
from thesis_cli.studies.learning.denoising_table import as_digits, chosen, error_by_draw, from_digits

TINY = {"count": 3, "height": 16, "width": 8, "exact": True, "regularisations": [1.0]}


def test_every_claim_reads_the_table_and_the_table_says_what_was_learnt():
    found = whole("hazan-denoising", sizes={"men": TINY}, draws={"men": 2}, steps=40, samples=5)
    assert one(found, images="men", draw=1, method="none").test_error == pytest.approx(0.1, abs=0.06)
    learnt = rows(found, images="men", method="perturb-max", kind="error")
    assert (learnt.parameters == 16 * 8 + 15 * 8 + 16 * 7).all()
    assert (learnt.map_calls >= 30 * 5 * 3).all()
    assert (learnt.train_error < 0.1).any()
    svm = rows(found, images="men", method="structured SVM", kind="error")
    assert (svm.map_calls == 40).all()
    assert (svm.objective >= 0).all()
    images = rows(found, images="men", kind="picture")
    assert len(images) == 4
    clean, noisy = (from_digits(one(images, method=name).pixels, 16) for name in ("clean", "noisy"))
    assert clean.shape == noisy.shape == (16, 8)
    assert 0 < (clean != noisy).mean() < 0.4


def test_the_regularisation_is_chosen_on_validation_images():
    sizes = {**TINY, "exact": False, "regularisations": [1.0, 0.01]}
    found = run("hazan-denoising", images="men", draw=0, steps=20, samples=3, **sizes)
    errors = rows(found, kind="error", method="structured SVM").set_index("regularisation")
    best = errors.validation_error.idxmin()
    assert chosen(found, "men", "structured SVM") == best
    assert error_by_draw(found, "men", "structured SVM")[0] == errors.test_error[best]
    assert error_by_draw(found, "men", "structured SVM", 1.0)[0] == errors.test_error[1.0]
    assert chosen(found, "men", "one coupling") is None
    assert len(error_by_draw(found, "men", "one coupling")) == 1


def test_parts_are_other_images_and_flips_are_other_flips():
    parts = draw_images("men", 5, 40, 28, np.random.default_rng(0))
    assert list(parts) == list(PARTS)
    every = np.concatenate([part.clean for part in parts.values()]).reshape(15, -1)
    assert len(np.unique(every, axis=0)) == 15
    same = draw_images("one man", 5, 40, 28, np.random.default_rng(0))
    assert len(np.unique(np.concatenate([part.clean for part in same.values()]).reshape(15, -1), axis=0)) == 1
    flips = np.concatenate([part.clean != part.noisy for part in same.values()]).reshape(15, -1)
    assert len(np.unique(flips, axis=0)) == 15


def test_one_coupling_is_the_best_of_those_tried():
    rng = np.random.default_rng(0)
    clean = np.zeros((4, 12, 12), bool)
    clean[:, 3:9, 3:9] = True
    part = Part(clean, clean ^ (rng.random(clean.shape) < 0.1))
    weights = one_coupling(part)
    assert weights.right[0, 0] in COUPLINGS
    assert (weights.right == weights.down[0, 0]).all()
    assert weights.right[0, 0] > COUPLINGS[0]


def test_gaps_and_marginals_are_those_of_the_exact_model():
    rng = np.random.default_rng(0)
    weights = GridWeights(rng.random((4, 3)), rng.random((4, 2)), rng.random((3, 3)))
    noisy = rng.random((2, 4, 3)) < 0.5
    marginals = [Elimination(weights.graph(image)).marginals()[1][1::2].reshape(4, 3) for image in noisy]
    np.testing.assert_array_equal(gibbs_images(weights, noisy), np.array(marginals) > 0.5)
    free = GridWeights(rng.random((4, 3)), np.zeros((4, 2)), np.zeros((3, 3)))
    gap, error = bound_gap(free, noisy[0], 2000, np.random.SeedSequence(0))  # without couplings it is tight
    assert abs(gap) < 5 * error < 1


def test_pictures_and_places_go_through_a_table():
    image = np.random.default_rng(0).random((9, 13)) < 0.5
    np.testing.assert_array_equal(from_digits(as_digits(image), 9), image)
    assert thinned(3, 40) == [0, 1, 2]
    places = thinned(1000, 40)
    assert places[0] == 0
    assert places[-1] == 999
    assert len(places) <= 40


def test_a_segmentation_and_its_samples_are_those_of_another_solver():
    height, width, samples = 12, 8, 400
    found = run("hazan-segmentation", height=height, width=width, samples=samples)
    assert set(found.man) == {0, 1}
    own = 0.5 * found.brightness.to_numpy()
    graph = SpinGlass(own.reshape(height, width), np.ones((height, width - 1)), np.ones((height - 1, width))).graph()
    solver = map_solver(graph, "grid")[0]
    noise = gumbel(np.random.default_rng(1), samples, 2 * height * width)
    np.testing.assert_array_equal(found.maximum, solver.maximise(np.zeros((1, noise.shape[1])))[1][0])
    theirs = solver.maximise(noise)[1].mean(axis=0)
    shares = found["count"] / samples
    assert (np.abs(shares - theirs) < 5 * np.sqrt((shares * (1 - shares) + 1 / samples) * 2 / samples)).all()
