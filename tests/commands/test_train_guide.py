"""`thesis-cli train-guide`."""

import json
import sys

import pytest

import thesis_cli as tc
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.networks import weights


def test_without_pytorch_one_line_says_what_to_install(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    result = cli("train-guide", "--length", 1, "--no-out")
    assert result.status == 2
    assert (
        result.err
        == "error: torch is not installed; run pip install torch, or make install EXTRAS=dev,nn in a checkout\n"
    )


@pytest.fixture
def corpus(cli):
    """A corpus so small that examples are held back, not programs."""
    arguments = ("--length", 1, "--count", 20, "--examples", 10, "--seed", 1, "--out", "small.corpus", "--quiet")
    assert cli("make-corpus", *arguments).status == 0
    return "small.corpus"


@pytest.mark.torch
def test_weights_card_curve_and_figure(cli, tmp_path, corpus):
    arguments = ("--corpus", corpus, "--programs-seen", 1024, "--embedding", 2, "--out", "g.safetensors")
    result = cli("train-guide", *arguments, "--figure", "g.png", "--quiet")
    assert result.status == 0
    assert "by types" in result.out
    found, card = weights.load(tmp_path / "g.safetensors"), weights.card(tmp_path / "g.safetensors")
    assert card["sha256"] == found.digest
    assert found.sizes["embedding"] == 2
    assert card["training"]["programs_seen"] == 1024
    assert card["validation"]["programs"] == card["training"]["programs"] == 20
    assert set(card["baselines"]) == {"prior", "by_types"}
    assert (tmp_path / "g.csv").read_text().startswith("programs,seconds,rate,training,validation\n")
    assert (tmp_path / "g.png").exists()
    assert not (tmp_path / "g.checkpoint").exists()
    assert cli("train-guide", *arguments, "--quiet").status == 0  # the same command may replace its files
    assert weights.load(tmp_path / "g.safetensors").digest == found.digest
    refused = cli("train-guide", *arguments, "--seed", 1)
    assert refused.status == 2
    assert "--overwrite" in refused.err


@pytest.mark.torch
def test_bad_input_is_one_line(cli, tmp_path, corpus):
    arguments = ("train-guide", "--corpus", corpus, "--programs-seen", 256, "--embedding", 2, "--out", "g.safetensors")
    (tmp_path / "g.checkpoint").write_bytes(b"PK\x03\x04 and then nothing")
    (tmp_path / "other.corpus").mkdir()
    (tmp_path / "other.corpus" / "corpus.json").write_text(json.dumps({"format": "another"}))
    for given, message in [
        (arguments, "not a whole checkpoint"),
        (("train-guide", "--corpus", "other.corpus"), "other.corpus"),
        (("train-guide", "--corpus", "other.corpus", "--length", 2), "--length does not go with --corpus"),
        (("train-guide", "--model", "next-line", "--embedding", 3), "--embedding does not go with --model next-line"),
    ]:
        result = cli(*given)
        assert result.status == 2
        assert result.err.count("\n") == 1
        assert message in result.err
    assert cli(*arguments, "--overwrite", "--quiet").status == 0


@pytest.mark.torch
def test_a_corpus_of_another_range_makes_a_network_for_that_range():
    made = tc.make_corpus(length=1, count=20, seed=1, range=(-9, 20), examples=10).corpus
    found = tc.train_guide(corpus=made, programs_seen=256, embedding=2)
    assert found.arrays["embedding"].shape == (31, 2)
    assert found.config["semantics"]["low"] == -9
    with pytest.raises(InputError, match="5 examples"):
        tc.train_guide(corpus=tc.make_corpus(length=1, count=20, seed=1).corpus)
