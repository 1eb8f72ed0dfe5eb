"""The network with a recurrent encoder: PyTorch and NumPy agree, and padding does not matter."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from tests.synthesis.networks.test_feed_forward import TASKS, ULPS  # noqa: E402
from thesis_cli.base.errors import InputError  # noqa: E402
from thesis_cli.synthesis.language.dsl import Semantics  # noqa: E402
from thesis_cli.synthesis.networks.feed_forward import encode  # noqa: E402
from thesis_cli.synthesis.networks.gru import Recurrent, lengths_of  # noqa: E402
from thesis_cli.synthesis.networks.weights import config_of, load, save  # noqa: E402
from thesis_cli.synthesis.training import feed_forward as gru  # noqa: E402
from thesis_cli.synthesis.training.corpora import TrainingData, held_out  # noqa: E402
from thesis_cli.synthesis.training.feed_forward import tensors  # noqa: E402
from thesis_cli.synthesis.training.trainer import TrainingPlan, train  # noqa: E402


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small network after some steps, as float16 has it, and its file."""
    corpus = held_out(2, 60)
    rows = np.arange(60)
    data = TrainingData(corpus, rows, rows[:20])
    learner = gru.GruLearner(data, 0, embedding=3, units=7)
    course = train(learner, data, TrainingPlan(32 * 20, batch=32, evaluations=2, rate=2e-2, half=False))
    path = tmp_path_factory.mktemp("gru") / "small.safetensors"
    config = config_of(corpus.semantics, **learner.sizes)
    save(path, learner.arrays(), learner.kind, config, {})
    with torch.no_grad():
        for value in learner.module.parameters():
            value.copy_(value.half())
    return learner, Recurrent.of(load(path)), course


def test_it_learns(trained):
    learner, _, course = trained
    assert course.curve[-1]["training"] < 0.9 * learner.module.attributes.bias.numel() * np.log(2)
    assert course.curve[-1]["validation"] < course.curve[0]["validation"]


def test_logits_are_those_of_torch(trained, monkeypatch):
    learner, network, _ = trained
    monkeypatch.setattr("thesis_cli.synthesis.networks.gru.ROWS", 4)
    encoded = encode(TASKS)
    with torch.no_grad():
        expected = learner.module(*tensors(encoded)).numpy()
    assert np.ptp(expected, axis=0).max() > 0.1
    np.testing.assert_allclose(network.logits(encoded), expected, rtol=1e-5, atol=1e-5)


def test_neither_padding_nor_other_tasks_change_a_prediction(trained):
    _, network, _ = trained
    expected = network.logits(encode(TASKS))
    noise = encode(TASKS, examples=9)
    noise.numbers[~noise.present] = 77
    alone = np.concatenate([network.logits(encode([task])) for task in TASKS])
    for found in (network.logits(noise), alone):
        np.testing.assert_allclose(found, expected, rtol=ULPS, atol=10 * ULPS)


def test_the_longest_value_is_read_to_its_end():
    numbers = encode(TASKS).numbers.reshape(-1, 4, 20)
    lengths = [max(1, *(np.count_nonzero(value) for value in example)) for example in numbers]
    assert lengths_of(numbers).tolist() == gru.lengths_of(torch.from_numpy(numbers)).tolist() == lengths


def test_examples_of_another_range_or_length_are_refused(trained):
    for semantics in Semantics(high=300), Semantics(longest=25):
        with pytest.raises(InputError, match="the network takes 513 numbers in lists of 20"):
            trained[1].logits(encode(TASKS, semantics))
