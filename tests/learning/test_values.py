"""Grey images and labels as binary images."""

import dataclasses
import itertools

import numpy as np
import pytest

from thesis_cli.base.errors import InputError, UnsuitableModel
from thesis_cli.learning.decoding import denoised
from thesis_cli.learning.shared_model import SharedLayout
from thesis_cli.learning.values import Values

GREY = Values("grey", (0.0, 1.0, 3.0))
LABELS = Values("labels", (2.0, 5.0, 9.0))


def shared(field, couplings):
    return SharedLayout(2, 3, 1).model(np.array([field, 0.0, *couplings]))


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_together_give_the_best_grey_image(seed):
    """That of least squared distance, in units of half the range, plus total variation."""
    rng, field, (right, down) = np.random.default_rng(seed), 1.3, (0.5, 0.3)
    noisy, levels = rng.uniform(-1, 4, (1, 2, 3)), np.array(GREY.values)
    found = denoised(shared(field, (right, down)), GREY, noisy)[0]

    def energy(image):  # sum over thresholds of the scores of the binary images, from the definition
        total = 0.0
        for threshold in (0.5, 2.0):
            y = np.where(image > threshold, 1.0, -1.0)
            total += (field * (noisy[0] - threshold) / 1.5 * y).sum()
            total += right * (y[:, 1:] * y[:, :-1]).sum() + down * (y[1:] * y[:-1]).sum()
        return total

    best = max(energy(np.reshape(image, (2, 3))) for image in itertools.product(levels, repeat=6))
    assert energy(found) == pytest.approx(best)
    assert set(found.ravel()) <= set(levels)


@pytest.mark.parametrize("seed", range(5))
def test_labels_reach_a_score_near_the_best(seed):
    rng, field, (right, down) = np.random.default_rng(seed), 0.8, (0.4, 0.2)
    noisy = rng.choice(LABELS.values, (1, 2, 3))
    found = denoised(shared(field, (right, down)), LABELS, noisy)[0]

    def cost(image):  # wrong labels cost twice the field, unequal neighbours twice their coupling
        unequal = right * (image[:, 1:] != image[:, :-1]).sum() + down * (image[1:] != image[:-1]).sum()
        return 2 * field * (image != noisy[0]).sum() + 2 * unequal

    least = min(cost(np.reshape(image, (2, 3))) for image in itertools.product(LABELS.values, repeat=6))
    assert least <= cost(found) + 1e-9 <= 2 * least + 2e-9


def test_binary_images_make_the_image_again():
    clean = np.random.default_rng(0).choice(GREY.values, (4, 2, 3))
    assert np.array_equal(GREY.images(GREY.binary(clean).astype(float)), clean)
    assert GREY.signals(clean).shape == GREY.binary(clean).shape == (8, 2, 3)
    assert np.array_equal(GREY.signals(clean) > 0, GREY.binary(clean))
    clean = np.random.default_rng(0).choice(LABELS.values, (4, 2, 3))
    assert np.array_equal(LABELS.signals(clean) > 0, LABELS.binary(clean))
    assert (LABELS.binary(clean).reshape(4, 3, 2, 3).sum(axis=1) == 1).all()


def test_values_are_those_of_clean_images():
    clean = np.arange(12).reshape(1, 3, 4)
    assert Values.of("grey", clean, 12).values == tuple(range(12))
    assert Values.of("grey", clean, 3).values == (0.0, 5.5, 11.0)
    assert Values.of("labels", clean % 3).values == (0.0, 1.0, 2.0)
    assert Values.of("two", clean) == Values()
    with pytest.raises(InputError, match="have one value"):
        Values.of("grey", np.ones((1, 2, 2)))
    with pytest.raises(InputError, match="have 70 labels; give at most 64, or grey"):
        Values.of("labels", np.arange(70).reshape(1, 7, 10))
    assert Values.read({"values": GREY.write()}) == GREY
    assert Values.read({}) == Values()
    for kind, values in (("grey", [1, 1]), ("two", [1, 2]), ("labels", [3]), ("x", [1, 2]), ("grey", ["a", 2])):
        with pytest.raises(InputError, match="damaged"):
            Values.read({"values": {"kind": kind, "values": values}})


def test_errors_are_root_mean_squares_or_shares():
    clean = np.zeros((1, 2, 2))
    found = np.array([[[0.0, 0.0], [0.0, 2.0]]])
    assert GREY.errors(found, clean) == pytest.approx([1.0])
    assert LABELS.errors(found, clean) == pytest.approx([0.25])


def test_labels_take_no_marginals_and_no_negative_couplings():
    noisy = np.full((1, 2, 3), 2.0)
    with pytest.raises(InputError, match="of two values and grey ones alone"):
        denoised(shared(1.0, (0.1, 0.1)), LABELS, noisy, "marginal")
    with pytest.raises(InputError, match="no pixel has a label"):
        denoised(shared(1.0, (0.1, 0.1)), LABELS, noisy + 1)
    with pytest.raises(UnsuitableModel, match="labels take none"):
        denoised(dataclasses.replace(shared(1.0, (0.1, 0.1)), couplings=np.array([-1.0, 0.0])), LABELS, noisy)


def test_means_under_noise_are_between_levels():
    noisy = np.random.default_rng(0).uniform(0, 3, (2, 2, 3))
    found = denoised(shared(1.0, (0.1, 0.1)), GREY, noisy, "marginal", 50, 1)
    assert ((found >= 0) & (found <= 3)).all()
    assert not set(found.ravel()) <= set(GREY.values)


def test_a_pixel_above_a_threshold_and_not_above_a_lower_one_has_a_level():
    assert GREY.images(np.array([[[0.0, 1.0]], [[1.0, 1.0]]])).tolist() == [[[1.0, 3.0]]]


@pytest.mark.parametrize(
    ("values", "noisy", "words"),
    [
        (GREY, [[0.2, 2.9]], ""),
        (GREY, [[1.0, 1.3]], ""),
        (GREY, [[-20.0, 25.0]], ""),
        (GREY, [[1.0, 1.1]], "values from 1 to 1.1 may be in other units than the weights' levels from 0 to 3"),
        (GREY, [[0.0, 255.0]], "values from 0 to 255"),
        (GREY, [[7.0, 9.0]], "values from 7 to 9"),
        (LABELS, [[2.0, 9.0]], ""),
        (LABELS, [[2.0, 3.0]], "0.5 of the pixels have labels that the weights do not know, such as 3"),
        (Values(), [[True, True]], ""),
    ],
)
def test_images_of_other_units_or_labels_raise_doubts(values, noisy, words):
    found = values.doubt(np.array([noisy]))
    assert found.startswith(words)
    assert bool(found) == bool(words)
