"""Settings chosen by cross-validation."""

import dataclasses

import numpy as np
import pytest

from tests.learning.models import pairs
from tests.learning.test_train import Stopped
from thesis_cli.base.errors import InputError
from thesis_cli.learning.choose import FACTORS, STRENGTHS, Learner
from thesis_cli.learning.decoding import denoised
from thesis_cli.learning.settings import Settings
from thesis_cli.learning.train import train
from thesis_cli.learning.values import Values

PIXEL = Settings(iterations=3, schedule="adam", perturbations=1)
KINDS = [PIXEL, dataclasses.replace(PIXEL, weights="shared", patch=1)]
TWO = Values()


def test_the_least_error_on_images_held_out_once_each_decides():
    noisy, clean = pairs(7, 5, 4, share=0.15)
    found = Learner(noisy, clean, TWO, 3).learn(KINDS, strengths=True)
    assert len(found.candidates) == len(KINDS) + len(STRENGTHS) - 1
    assert [one.error for one in found.candidates] == sorted(one.error for one in found.candidates)
    fold = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(7,))).permutation(7) % 3
    for one in found.candidates:
        errors = np.zeros(len(FACTORS))
        for part in range(3):
            kept = fold != part
            settings = dataclasses.replace(one.settings, regularisation=one.strength / kept.sum())
            weights = train(noisy[kept], clean[kept], settings, 3).weights
            for k, factor in enumerate(FACTORS):
                images = denoised(weights.scaled(factor), TWO, noisy[~kept])
                errors[k] += (images != clean[~kept]).mean(axis=(1, 2)).sum()
        assert one.error == pytest.approx(errors.min() / 7)
        assert one.factor == FACTORS[errors.argmin()]
    best = found.candidates[0]
    assert found.settings == dataclasses.replace(best.settings, regularisation=best.strength / 7)
    plain = train(noisy, clean, found.settings, 3).weights.scaled(best.factor)
    kept = dataclasses.replace(plain, about=found.trained.weights.about)
    assert kept.to_bytes() == found.trained.weights.to_bytes()
    assert found.trained.weights.about["coupling_factor"] == best.factor


def test_no_choice_is_one_training():
    noisy, clean = pairs(1, 5, 4)
    found = Learner(noisy, clean, TWO, 0).learn(KINDS[:1], strengths=False)
    assert (found.candidates, found.settings) == ([], PIXEL)
    with pytest.raises(InputError, match="there is one pair of images, and none to hold out"):
        Learner(noisy, clean, TWO, 0).learn(KINDS, strengths=False)


def test_a_choice_that_was_cut_short_ends_in_the_same_weights(tmp_path):
    noisy, clean = pairs(4, 4, 3)
    whole, file, left = Learner(noisy, clean, TWO, 1).learn(KINDS, strengths=False), tmp_path / "checkpoint", [0]

    def stop(done):
        left[0] -= done
        if left[0] <= 0:
            raise Stopped

    for steps in (1, 4, 2, 7):  # the checkpoint is written at the end of a training, if not before
        left[0] = steps
        with pytest.raises(Stopped):
            Learner(noisy, clean, TWO, 1, stop, file).learn(KINDS, strengths=False)
    counted = []
    again = Learner(noisy, clean, TWO, 1, counted.append, file).learn(KINDS, strengths=False)
    assert again.trained.weights.to_bytes() == whole.trained.weights.to_bytes()
    assert again.candidates == whole.candidates
    assert sum(counted) < 7 * PIXEL.total  # six in folds, and one of all
    with pytest.raises(InputError, match="of other settings or images"):
        Learner(noisy, ~clean, TWO, 1, None, file).learn(KINDS, strengths=False)
