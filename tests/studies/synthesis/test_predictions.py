"""Predictions of shipped networks, by the names that results keep."""

import numpy as np

from thesis_cli.studies.synthesis.predictions import embedding, predicted, version
from thesis_cli.synthesis.language.task import load_tasks
from thesis_cli.synthesis.networks.weights import load


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
