"""Predictions of shipped networks, by the names that results keep."""

import numpy as np
import pytest

from tests.conftest import ROOT
from thesis_cli.studies.synthesis import predictions
from thesis_cli.studies.synthesis.predictions import embedding, guide_of, over_trainings, predicted, trainings, version
from thesis_cli.synthesis.language.task import load_tasks
from thesis_cli.synthesis.networks.weights import load
from thesis_cli.synthesis.training.corpora import held_out


def test_a_network_is_named_with_its_weights_and_predicts():
    name, digest = version("lines-3").split()
    assert name == "lines-3"
    assert load("lines-3").digest.startswith(digest)
    found = predicted(version("lines-3"), load_tasks("data/tasks/all.jsonl"))
    assert found.shape == (10, 34)
    assert ((found > 0) & (found < 1)).all()


def test_each_integer_has_its_row_of_the_embedding():
    integers, points = embedding(version("embedding-2"))
    rows = load("embedding-2").arrays["embedding"]
    assert (integers[0], integers[-1], points.shape) == (-256, 255, (512, 2))
    assert np.array_equal(points[integers == 3][0], rows[3 + 256 + 1])


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """An archive whose other training of lines-3 has the shipped weights."""
    for name in ("lines-3", "embedding-2"):
        shipped = ROOT / "thesis_cli/synthesis/weights" / f"{name}.safetensors"
        (tmp_path / f"{name}-seed-1.safetensors").write_bytes(shipped.read_bytes())
    archive = tmp_path / "predictions.npz"
    archive.write_bytes(predictions.pack(tmp_path))
    monkeypatch.setattr(predictions, "ARCHIVE", archive)
    for cached in (predictions._names, predictions._kept):
        cached.cache_clear()
    yield
    for cached in (predictions._names, predictions._kept):
        cached.cache_clear()


def test_kept_predictions_are_those_of_the_network(packed):
    shipped, other = trainings("lines-3")
    assert other == shipped.replace("lines-3", "lines-3-seed-1")
    corpus = held_out(3, 20)
    tasks = [corpus.task(row) for row in range(20)]
    logits = [np.log(p) - np.log1p(-p) for p in (predicted(shipped, tasks), predicted(other, tasks))]
    assert np.allclose(*logits, rtol=2**-11, atol=1e-6)  # 16 bits have 11 of them for the digits
    orders = [list(order.probabilities) for order in guide_of(other).orders(tasks)]
    assert orders == predicted(other, tasks).tolist()


def test_kept_points_are_those_of_the_embedding(packed):
    (integers, points), (same, kept) = (embedding(training) for training in trainings("embedding-2"))
    assert np.array_equal(integers, same)
    assert np.allclose(points, kept, rtol=2**-11)


@pytest.mark.parametrize("name", ["embedding-2", *(f"lines-{length}" for length in (1, 2, 3, 4))])
def test_the_committed_archive_has_other_trainings(name):
    assert len(trainings(name)) == 5


def test_the_spread_over_trainings_counts_beside_the_choice_of_tasks():
    assert over_trainings([None]) is None
    assert over_trainings([(1.0, 0.3), None]) == (1.0, 0.3)
    value, error = over_trainings([(1.0, 0.3), (2.0, 0.5)])
    assert (value, error) == (1.5, pytest.approx((0.4**2 + 0.5 / 2) ** 0.5))
    _, error, of_source = over_trainings([(1.0, 0.3, 0.1), (2.0, 0.5, 0.3)])
    assert error == pytest.approx((0.4**2 + 0.5 * 1.5) ** 0.5)
    assert of_source == pytest.approx((0.2**2 + 0.5) ** 0.5)
