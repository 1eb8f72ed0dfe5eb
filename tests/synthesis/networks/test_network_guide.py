"""Networks as guides: what they predict, what they leave to the prior, and which ones there are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import thesis_cli as tc
from tests.synthesis.networks.random_weights import random_weights
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import DEFAULT
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.networks import network_guide as module
from thesis_cli.synthesis.networks.feed_forward import encode
from thesis_cli.synthesis.networks.network_guide import NetworkGuide, network_guide
from thesis_cli.synthesis.networks.weights import config_of, load, save
from thesis_cli.synthesis.prior import Guide

GOOD = Task("good", (Example(((3, 1, 2),), (1, 2, 3)), Example(((5, -4),), (-4, 5))))
OTHER = Task("other", (Example((2, (3, 1)), 9),))
BEYOND = [
    Task("out of range", (Example(((256,),), 1),)),
    Task("too long", (Example(((1,) * 21,), 1),)),
    Task("too many", (Example(((1,), (1,), 1, 2), 1),)),
]

ULPS = 64 * float(np.finfo(np.float32).eps)
"""Sums of a few dozen terms in another order."""


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return random_weights(tmp_path / "small.safetensors")


def test_probabilities_are_those_of_the_logits_and_nan_for_tasks_beyond_the_network(weights: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "TASKS", 2)
    guide = network_guide(weights)
    assert isinstance(guide, Guide)
    found = guide.probabilities([GOOD, BEYOND[0], BEYOND[1], BEYOND[2], OTHER])
    assert np.isnan(found[:, 0]).tolist() == [False, True, True, True, False]
    logits = guide.network.logits(encode([GOOD, OTHER]))
    assert found[[0, 4]] == pytest.approx(1 / (1 + np.exp(-logits.astype(float))), rel=ULPS)
    orders = guide.orders([GOOD, *BEYOND, OTHER])
    assert [order is None for order in orders] == [False, True, True, True, False]
    assert guide.probabilities([]).shape == (0, 34)
    assert guide.refusal(GOOD) is None
    assert "-256 to 255" in str(guide.refusal(BEYOND[0]))


def test_a_batch_does_not_change_the_prediction_of_a_task(weights: Path) -> None:
    guide = network_guide(weights)
    assert guide.probabilities([OTHER, GOOD, OTHER])[1] == pytest.approx(guide.probabilities([GOOD])[0], rel=ULPS)


def test_the_identity_names_the_weights_and_changes_with_them(weights: Path, tmp_path: Path) -> None:
    other = random_weights(tmp_path / "other" / "small.safetensors", seed=1)
    one, two = (network_guide(path).identity for path in (weights, other))
    assert one.startswith("network small ")
    assert one != two


def test_networks_that_predict_no_attributes_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "a.safetensors", {}, "next-line", config_of(DEFAULT), {})
    with pytest.raises(InputError, match=r"a\.safetensors: its network is of the kind 'next-line'"):
        NetworkGuide.of(load(tmp_path / "a.safetensors"))


def test_guided_and_unguided_search_list_the_same_programs(weights: Path) -> None:
    call = {"all": True, "max_length": 2, "jobs": 1, "prior": "uniform"}
    task = Task("pairs", tuple(Example((xs,), xs[-1]) for xs in ((1, 2, 3), (-4, 4), (0, 7))))
    found = [tc.synthesize([task], guide=guide, **call) for guide in ("none", weights)]
    plain, guided = ({program.one_line for program in result.solutions[0].programs} for result in found)
    assert plain == guided
    assert len(plain) > 1
    priors = [[row["log_prior"] for row in result.columns.records()] for result in found]
    assert priors[0] != priors[1]


def test_the_guide_is_named_by_the_answer_the_record_and_the_journal(cli, weights: Path, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(task.to_json() for task in (GOOD, GOOD)))
    result = cli("synthesize", "t.jsonl", "--max-length", 1, "--guide", weights, "--jobs", 1, "--out", "t.csv")
    assert result.status == 0
    assert "network small " in result.out
    record = (tmp_path / "t.json").read_text()
    assert f'"identity": "{network_guide(weights).identity}"' in record
    assert '"by_prior": 0' in record
    result = cli("synthesize", "t.jsonl", "--guide", "no-such-weights")
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert "--guide no-such-weights: there are no weights" in result.err
