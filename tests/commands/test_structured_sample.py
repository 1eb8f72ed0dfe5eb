"""The command structured sample: what the draws follow, files, refusals."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import thesis_cli as tc
from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.structured.catalogue import space

TREE = str(MODELS / "taxonomy.toml")


@pytest.mark.parametrize(
    "options", [{"method": "draw"}, {"method": "meta"}, {"method": "truncated", "steps": 60}], ids=lambda o: o["method"]
)
def test_draws_follow_the_model(options):
    found = tc.structured_sample(TREE, count=2000, seed=1, **options)
    model = found.model
    rows = np.concatenate(list(model.space.blocks()))
    chances = np.exp(model.space.scores(rows, model.weights) - model.space.log_partition(model.weights[None])[0])
    counts = (found.structures[:, None] == rows).all(axis=2).sum(axis=0)
    assert counts.sum() == 2000
    chi_square = ((counts - 2000 * chances) ** 2 / (2000 * chances)).sum()
    assert chi_square < 29 + 5 * math.sqrt(2 * 29)
    assert found.table.columns.tolist() == list(model.names)
    if options["method"] == "meta":
        each = model.space.size() * np.exp(model.space.maximise(model.weights[None]).values[0]) * chances.min()
        each /= np.exp(model.space.scores(rows, model.weights).min())
        spread = math.sqrt(each * (each - 1) / 2000)
        assert found.uniform_structures / 2000 == pytest.approx(each, abs=5 * spread)
    if options["method"] == "truncated":
        assert found.uniform_structures == 60 * 2000
        assert 0 < found.distance < 0.1


def test_perturbed_maximisers():
    found = tc.structured_sample(TREE, count=50, method="perturb", noise="nodes", seed=1)
    assert "not the model's" in found.distribution
    assert found.distance is None
    cube = (space("hypercube", 2, "linear"), np.array([0.0, 5.0]))
    assert tc.structured_sample(cube, count=5, method="perturb").distribution == "exact, since bits are independent"


def test_files_and_summary(cli, tmp_path):
    told = cli("structured", "sample", MODELS / "ring.toml", "--count", 40, "--seed", 1, "--out", "r.csv")
    assert told.status == 0, told.err
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert lines[0] == ",".join(f"at_{k}" for k in range(7))
    assert len(lines) == 41
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["command"] == "structured sample"
    best = max(record["most_frequent"], key=record["most_frequent"].get)
    assert f"frequent  {best}  (" in told.out


REFUSED = [
    ({"method": "draw", "noise": "nodes"}, "--noise does not go with --method draw; it is for perturb"),
    ({"method": "truncated", "steps": 5, "distance": 0.1}, "leave one out"),
    ({"method": "meta", "most_steps": 3}, "coupling from the past"),
    ({"count": 0}, "--count is 0"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refusals(options, message):
    with pytest.raises(InputError) as caught:
        tc.structured_sample(TREE, seed=1, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize("method", ["draw", "meta", "truncated", "perturb"])
def test_more_draws_than_memory_holds_are_refused(method):
    large = (space("permutations", 20, "positions"), np.zeros(400))
    with pytest.raises(InputError, match=r"--count 10,000,000 structures .* more than 1 GiB; at most 6,710,886 fit"):
        tc.structured_sample(large, count=10**7, method=method)
