"""Weights of a grid model: scores, graphs, files."""

import numpy as np
import pytest

from tests.learning.models import all_images, pairs, scores
from thesis_cli.base.errors import InputError, UnsuitableModel
from thesis_cli.learning.decoding import Decoder, foreground_shares, map_images, marginal_images
from thesis_cli.learning.grid_model import GridWeights, WeightLayout, signs
from thesis_cli.learning.shared_model import load_weights


def random_weights(height=3, width=4, seed=0, low=0.0):
    rng = np.random.default_rng(seed)
    shape = (height, width)
    right, down = rng.uniform(low, 1, (height, width - 1)), rng.uniform(low, 1, (height - 1, width))
    return GridWeights(rng.normal(0, 1, shape), right, down, rng.normal(0, 1, shape), {"seed": seed})


def test_scores_features_and_graph_agree():
    weights, (noisy, _) = random_weights(), pairs(1, 3, 4)
    images = all_images(3, 4)
    expected = scores(weights, signs(noisy[0]), images)
    graph = weights.graph(noisy[0])
    assert graph.log_potential((images.reshape(-1, 12) > 0).astype(int)) == pytest.approx(expected)
    layout = WeightLayout(3, 4, bias=True)
    vector = layout.gradient(weights.field, weights.bias, weights.right, weights.down)
    features = [layout.features(signs(noisy), image[None]) for image in images[:50]]
    assert np.array(features) @ vector == pytest.approx(expected[:50])
    again = layout.model(vector)
    assert all(np.array_equal(getattr(again, n), getattr(weights, n)) for n in ("field", "bias", "right", "down"))


@pytest.mark.parametrize(("low", "name"), [(0.0, "graph cut"), (-1.0, "grid transfer")])
def test_the_best_image_under_noise_is_that_of_enumeration(low, name):
    weights, (noisy, _) = random_weights(low=low), pairs(4, 3, 4)
    rng = np.random.default_rng(1)
    noise, images = rng.gumbel(size=(4, 3, 4, 2)), all_images(3, 4)
    decoder = Decoder(weights)
    assert (decoder.name, decoder.guarantee) == (name, "exact")
    values, found = decoder.maximise(weights.own(noisy), noise)
    for k in range(4):
        added = np.where(images > 0, noise[k, ..., 1], noise[k, ..., 0]).sum(axis=(1, 2))
        total = scores(weights, signs(noisy[k]), images) + added
        assert values[k] == pytest.approx(total.max())
        assert np.array_equal(found[k], images[total.argmax()])


def test_wide_images_with_any_couplings_have_certified_maxima():
    weights = random_weights(14, 13, low=-0.5)
    rng = np.random.default_rng(0)
    own = rng.normal(0, 1, (2, 14, 13))
    decoder = Decoder(weights)
    values, found = decoder.maximise(own)
    assert (decoder.name, decoder.guarantee) == ("grid strips", "exact")
    assert values == pytest.approx(Decoder(weights, "grid").maximise(own)[0])
    assert values == pytest.approx((own * found).sum(axis=(1, 2)) + weights.pairs(found))


def test_couplings_below_0_are_refused_by_name():
    with pytest.raises(UnsuitableModel, match=r"a coupling is -0\.\d+, and graph cuts take none below 0"):
        Decoder(random_weights(low=-1.0), "graph-cut")


def test_marginal_images_are_those_of_most_perturbed_maximisers():
    weights, (noisy, _) = random_weights(), pairs(2, 3, 4)
    shares = foreground_shares(weights, noisy, 64, 5)
    one = foreground_shares(weights, noisy[1:], 64, 5)
    assert ((shares >= 0) & (shares <= 1) & (shares * 64 == np.round(shares * 64))).all()
    assert not np.array_equal(shares[1], one[0])  # each image has noise of its own
    found = marginal_images(weights, noisy, 64, 5)
    assert np.array_equal(found, np.where(shares == 0.5, noisy, shares > 0.5))
    strong = GridWeights(np.full((3, 4), 50.0), weights.right, weights.down)
    assert np.array_equal(map_images(strong, noisy), noisy)
    assert np.array_equal(marginal_images(strong, noisy, 3, 0), noisy)


def test_a_file_keeps_the_weights(tmp_path):
    weights, path = random_weights(), tmp_path / "w.safetensors"
    weights.save(path)
    found = load_weights(path)
    assert all(np.array_equal(getattr(found, n), getattr(weights, n)) for n in ("field", "bias", "right", "down"))
    assert found.about == {"seed": 0}
    assert found.to_bytes() == path.read_bytes()


def test_bad_weights_are_refused(tmp_path):
    with pytest.raises(InputError, match="right has shape"):
        GridWeights(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((1, 2)))
    with pytest.raises(InputError, match="NaN"):
        GridWeights(np.full((1, 1), np.nan), np.zeros((1, 0)), np.zeros((0, 1)))
    path = tmp_path / "w.safetensors"
    for data, problem in [(b"", "no weights"), (b"\x08" + 7 * b"\0" + b"{}      ", "no weights")]:
        path.write_bytes(data)
        with pytest.raises(InputError, match=problem):
            load_weights(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_weights(tmp_path / "none.safetensors")
    with pytest.raises(InputError, match="the images are 2 x 5 and the weights 3 x 4"):
        map_images(random_weights(), np.zeros((1, 2, 5), bool))
