"""`thesis-cli train-denoiser` and `thesis-cli denoise`."""

import json

import numpy as np
import pytest

import thesis_cli as tc
from tests.learning.models import pairs
from thesis_cli.base.errors import InputError
from thesis_cli.learning.grid_model import GridWeights
from thesis_cli.learning.shared_model import SharedLayout, load_weights
from thesis_cli.learning.values import Values
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
        ("train-denoiser noisy clean --regularisation 0", "--regularisation"),
        ("train-denoiser noisy clean --patch 4", "--patch is 4; it must be odd"),
        ("train-denoiser noisy clean --weights pixel --patch 3", "--patch does not go with --weights pixel"),
        ("train-denoiser noisy clean --weights shared --bias", "--bias does not go with --weights shared"),
        ("train-denoiser noisy clean --hidden 2 --schedule halving", "--hidden does not go with --schedule halving"),
        ("train-denoiser noisy clean --levels 5", "--levels does not go with --values two; it is for grey"),
        ("train-denoiser noisy clean --values grey --threshold 1", "--threshold does not go with --values grey"),
        ("train-denoiser grey.npy one.npy --values grey", "the clean images have one value; give images of"),
        ("train-denoiser grey.npy grey.npy --values labels", "the clean images have 80 labels; give at most 64"),
        ("train-denoiser single.npy single.npy", "there is one pair of images, and none to hold out; give more"),
        ("denoise grey.npy --weights g.safetensors --threshold 1", "--threshold does not go with weights for grey"),
        ("denoise grey.npy --weights g.safetensors --model-out m.uai", "--model-out does not go with weights for grey"),
        ("denoise grey.npy --weights l.safetensors --solver grid", "--solver does not go with weights for labels"),
        ("denoise grey.npy --weights l.safetensors --decision marginal", "--decision does not go with weights for"),
        ("denoise grey.npy --weights l.safetensors", "no pixel has a label that the weights know"),
        ("denoise grey.npy --weights s.safetensors", "grey.npy: is grey"),
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
    np.save(tmp_path / "one.npy", np.ones((4, 5, 4)))
    np.save(tmp_path / "single.npy", clean[:1])
    for letter, values in (("s", Values()), ("g", Values("grey", (0, 1, 2))), ("l", Values("labels", (3, 4, 5)))):
        weights = SharedLayout(5, 4, 1).model(np.ones(4), {"values": values.write()})
        weights.save(tmp_path / f"{letter}.safetensors")
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


@pytest.mark.parametrize(("kind", "levels"), [("grey", (0, 90, 200)), ("labels", (3, 5, 8))])
def test_images_of_several_values(cli, tmp_path, kind, levels):
    """They end nearer to the clean ones, in files of the same type, at other sizes as well."""
    rng = np.random.default_rng(0)
    _, masks = pairs(8, 9, 7)
    clean = np.where(masks, levels[2], np.where(np.arange(7) > 3, levels[1], levels[0])).astype(np.uint8)
    if kind == "grey":
        noisy = np.clip(clean + rng.normal(0, 40, clean.shape), 0, 255).astype(np.uint8)
    else:
        noisy = np.where(rng.random(clean.shape) < 0.3, rng.choice(levels, clean.shape), clean).astype(np.uint8)
    for folder, images in (("noisy", noisy), ("clean", clean)):
        (tmp_path / folder).mkdir()
        for k, image in enumerate(images):
            write_image(tmp_path / folder / f"{k}.png", image)
    line = ("train-denoiser", "noisy", "clean", "--values", kind, "--weights", "shared", "--patch", 3)
    result = cli(*line, "--iterations", 60, "--regularisation", 1, "--out", "w.safetensors", "--quiet")
    assert result.status == 0, result.err
    record = json.loads((tmp_path / "w.json").read_text())
    assert record["training_error"] < 0.7 * record["noisy_error"]
    result = cli("denoise", "noisy", "--weights", "w.safetensors", "--clean", "clean", "--out", "out", "--json")
    assert result.status == 0, result.err
    found = read_images(tmp_path / "out", several=True).pixels
    assert found.dtype == np.uint8
    assert set(np.unique(found)) <= set(levels)
    wide = tc.denoise(np.tile(noisy, (1, 2, 2)), weights=tmp_path / "w.safetensors")
    assert wide.images.pixels.shape == (8, 18, 14)
    signed = tc.denoise(noisy.astype(int), weights=tmp_path / "w.safetensors").images.pixels
    assert signed.dtype == float
    assert np.array_equal(signed, found)


def test_a_choice_names_what_was_tried(folders):
    noisy, clean = folders
    found = tc.train_denoiser(noisy, clean, iterations=2)
    assert [one["weights"] for one in found.candidates].count("pixel") >= 1
    assert {one["patch"] for one in found.candidates if one["weights"] == "shared"} == {1, 3, 7}
    errors = [one["error"] for one in found.candidates]
    assert errors == sorted(errors)
    assert found.settings["regularisation"] == found.weights.about["settings"]["regularisation"]
    assert "held out" in dict(found.lines())
    alone = tc.train_denoiser(noisy[:1], clean[:1], iterations=2, weights="pixel", regularisation=0.5)
    assert (alone.candidates, alone.settings["regularisation"]) == ([], 0.5)
