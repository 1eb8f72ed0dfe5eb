"""Images to learn denoising from: their size, what varies, and that a seed gives the same ones."""

import numpy as np
import pytest
from scipy.ndimage import label

from thesis_cli.models.images import read_images
from thesis_cli.studies.learning import silhouettes
from thesis_cli.studies.learning.silhouettes import COUNT, FLIPS, HEIGHT, WIDTH, digits


def drawn(seed=0, count=20, **options):
    return silhouettes.silhouettes(count, np.random.default_rng(seed), **options)


def test_a_man_is_one_piece_that_fits_the_image():
    found = drawn(count=50)
    assert found.shape == (50, HEIGHT, WIDTH)
    for image in found:
        assert label(image)[1] == 1
        assert 0.12 < image.mean() < 0.35
        assert not image[0].any()
        assert not image[-1].any()
        assert np.ptp(np.flatnonzero(image.any(axis=1))) > 0.75 * HEIGHT


def test_a_seed_gives_the_same_men_and_no_variation_the_same_man():
    np.testing.assert_array_equal(drawn(3), drawn(3))
    assert (drawn(3) != drawn(4)).any()
    assert len(np.unique(drawn().reshape(20, -1), axis=0)) == 20
    assert len(np.unique(drawn(variation=0.0).reshape(20, -1), axis=0)) == 1


def test_a_small_man_is_the_large_one_seen_from_afar():
    large, small = drawn(), drawn(height=20, width=14)
    shares = large.reshape(20, 20, 5, 14, 5).mean(axis=(2, 4))
    assert (small == (shares > 0.5)).mean() > 0.95


def test_digits_are_distinct_and_binary():
    found = digits(100, np.random.default_rng(0))
    assert found.shape == (100, 8, 8)
    assert found.dtype == bool
    assert len(np.unique(found.reshape(100, -1), axis=0)) > 95
    assert 0.2 < found.mean() < 0.6


def test_the_command_writes_images_that_are_read_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["silhouettes", str(tmp_path)])
    assert silhouettes.main() == 0
    assert "10 images of 70 x 100 pixels" in capsys.readouterr().out
    found = {kind: read_images(tmp_path / kind) for kind in ("train/clean", "train/noisy", "test/clean", "test/noisy")}
    for part in ("train", "test"):
        clean, noisy = found[f"{part}/clean"], found[f"{part}/noisy"]
        assert clean.names == noisy.names == [f"man-{k}" for k in range(COUNT)]
        flipped = (clean.pixels != noisy.pixels).mean()
        assert flipped == pytest.approx(FLIPS, abs=5 * np.sqrt(FLIPS * (1 - FLIPS) / clean.pixels.size))
    np.testing.assert_array_equal(
        np.concatenate([found["train/clean"].pixels, found["test/clean"].pixels]), drawn(silhouettes.SEED)
    )
    monkeypatch.setattr("sys.argv", ["silhouettes"])
    assert silhouettes.main() == 2
