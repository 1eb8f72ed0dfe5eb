"""`thesis-cli train-denoiser` and `thesis-cli denoise`."""

import json

import numpy as np
import pytest

import thesis_cli as tc
from tests.learning.models import pairs
from thesis_cli.base.errors import InputError
from thesis_cli.learning.grid_model import GridWeights
from thesis_cli.learning.shared_model import load_weights
from thesis_cli.models.images import encoded, read_images


def write_image(path, pixels):
    path.write_bytes(encoded(pixels, path))


@pytest.fixture
def folders(tmp_path):
    """Pairs of images in the folders noisy and clean, 5 x 4 pixels."""
    noisy, clean = pairs(4, 5, 4)
    for kind, images in (("noisy", noisy), ("clean", clean)):
        for k, image in enumerate(images):
            (tmp_path / kind).mkdir(exist_ok=True)
            write_image(tmp_path / kind / f"b{k}.png", image)
    return noisy, clean


def test_from_pairs_to_denoised_images_and_a_model(cli, tmp_path, folders):
    noisy, clean = folders
    training = ("train-denoiser", "noisy", "clean", "--iterations", 4, "--seed", 2, "--out", "w.safetensors")
    result = cli(*training, "--quiet")
    assert result.status == 0, result.err
    assert "noisy: 4 pairs of 5 x 4 pixels" in result.out
    weights, record = load_weights(tmp_path / "w.safetensors"), json.loads((tmp_path / "w.json").read_text())
    assert weights.about["settings"]["iterations"] == 4
    assert (record["images"], record["noisy_error"]) == (4, pytest.approx((noisy != clean).mean()))
    assert (tmp_path / "w.csv").read_text().startswith("iteration,map_calls,seconds,objective,step\n")
    assert not (tmp_path / "w.checkpoint").exists()
    again = tc.train_denoiser(noisy, clean, iterations=4, seed=2)
    assert again.weights.to_bytes() == weights.to_bytes()
    assert len(again.figure().axes) == (5 if again.settings["weights"] == "pixel" else 3)

    line = ("denoise", "noisy", "--weights", "w.safetensors", "--clean", "clean", "--out", "out")
    line = (*line, "--model-out", "m.uai", "--image", "b2", "--json")
    result = cli(*line)
    assert result.status == 0, result.err
    images, found = read_images(tmp_path / "out"), tc.denoise(noisy, weights=again, clean=clean)
    assert images.names == ["b0", "b1", "b2", "b3"]
    assert np.array_equal(images.pixels, found.images.pixels)
    assert json.loads(result.out)["error"] == found.facts()["error"] == pytest.approx((images.pixels != clean).mean())
    assert found.facts()["error"] == again.error
    assert len(found.figure().axes) == 12
    best = tc.map_state(tmp_path / "m.uai")
    assert np.array_equal(best.found.states.reshape(5, 4) == 1, images.pixels[2])
    assert cli(*line).status == 0  # the same command may replace its files
    refused = cli(*line, "--decision", "marginal")
    assert refused.status == 2
    assert "--overwrite" in refused.err


def test_stacks_belong_together_by_place(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    noisy, clean = folders
    np.save("noisy.npy", noisy), np.save("other.npy", 7 * clean + 1)
    by_place = tc.train_denoiser("noisy.npy", "other.npy", iterations=2)
    assert by_place.weights.to_bytes() == tc.train_denoiser(noisy, clean, iterations=2).weights.to_bytes()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train-denoiser noisy none", "none"),
        ("train-denoiser noisy few", "there are 4 noisy images and 3 clean ones; none is named b3; give a clean image"),
        ("train-denoiser noisy renamed", "no clean image is named b3; give clean images the names of the noisy ones"),
        ("train-denoiser noisy wide.npy", "the noisy images are 5 x 4 and the clean ones 5 x 13"),
        ("train-denoiser grey.npy clean", "grey.npy: is grey"),
        ("train-denoiser nan.npy clean", "nan.npy: has values that are no finite numbers"),
        ("train-denoiser large.npy large.npy --method crf", "up to 12 pixels wide, and these are 13 x 13"),
        ("train-denoiser noisy clean --method crf --perturbations 9", "--perturbations does not go with --method crf"),
        ("train-denoiser noisy clean --schedule decaying --rate 1", "--rate does not go with --schedule decaying"),
        ("train-denoiser noisy clean --rate 1e200 --method structured-svm", "give a smaller --rate"),
        ("train-denoiser noisy clean --out bad.safetensors", "bad.checkpoint: it is not a whole checkpoint"),
        ("denoise noisy", "--weights is missing"),
        ("denoise noisy --weights grey.npy", "grey.npy: it holds no weights of a grid model"),
        ("denoise wide.npy --weights w.safetensors", "the images are 5 x 13 and the weights 5 x 4"),
        ("denoise noisy --weights w.safetensors --solver graph-cut", "a coupling is -1, and graph cuts take none"),
        ("denoise noisy --weights w.safetensors --out noisy", "--out noisy holds the input"),
        ("denoise noisy --weights w.safetensors --samples 5", "--samples goes with --decision marginal"),
        ("denoise noisy --weights w.safetensors --image b1", "--image is given without --model-out"),
        ("denoise noisy --weights w.safetensors --model-out m.uai --image b9", "no image is named b9; the first is b0"),
        ("denoise noisy --weights w.safetensors --model-out m.txt", "does not end in .uai"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_written(cli, tmp_path, folders, line, message):
    noisy, clean = folders
    for folder, names in (("few", "b0 b1 b2"), ("renamed", "b0 b1 b2 b4")):
        (tmp_path / folder).mkdir()
        for name, image in zip(names.split(), clean, strict=False):
            write_image(tmp_path / folder / f"{name}.png", image)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "wide.npy", rng.random((4, 5, 13)) < 0.5)
    np.save(tmp_path / "large.npy", rng.random((2, 13, 13)) < 0.5)
    np.save(tmp_path / "grey.npy", rng.random((4, 5, 4)))
    np.save(tmp_path / "nan.npy", np.where(noisy, np.nan, 1.0))
    (tmp_path / "bad.checkpoint").write_bytes(b"PK\x03\x04 and then nothing")
    GridWeights(np.ones((5, 4)), -np.ones((5, 3)), np.ones((4, 4))).save(tmp_path / "w.safetensors")
    before = sorted(tmp_path.rglob("*"))
    result = cli(*line.split(), "--quiet")
    assert result.status in (1, 2)
    assert result.out == ""
    assert result.err.count("\n") == 1, result.err
    assert message in result.err
    assert sorted(tmp_path.rglob("*")) == before


def test_arrays_of_more_than_two_values_are_refused(folders):
    noisy, clean = folders
    grey = noisy + np.arange(4)
    with pytest.raises(InputError, match="more than two values"):
        tc.train_denoiser(grey, clean)
    assert tc.denoise(grey, weights=GridWeights(np.ones((5, 4)), np.zeros((5, 3)), np.zeros((4, 4))), threshold=1.5)
    with pytest.raises(InputError, match="of type list"):
        tc.denoise(noisy, weights=[1.0])
