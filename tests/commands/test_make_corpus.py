"""`thesis-cli make-corpus`."""

import json
import os
import shlex
from itertools import islice

import numpy as np
import pytest

import thesis_cli as tc
from thesis_cli.synthesis.corpus import corpus_maker
from thesis_cli.synthesis.corpus.corpus_file import load_corpus
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, INT, LIST
from thesis_cli.synthesis.language.task import load_tasks


def test_a_corpus_and_its_card(cli, tmp_path):
    result = cli("make-corpus", "--length", 2, "--count", 200, "--test", 20, "--seed", 1)
    assert result.status == 0
    assert "200 to train on, 20 to test on" in result.out
    assert "seed 1" in result.out
    made = load_corpus(tmp_path / "results/runs/make-corpus.corpus")
    assert (len(made), int(made.test.sum())) == (220, 20)
    card = json.loads((tmp_path / "results/runs/make-corpus.corpus/corpus.json").read_text())
    assert card["settings"]["seed"] == 1
    assert sum(card["lengths"][0]["train"].values()) == 200
    assert sum(card["by_inputs"].values()) == card["programs"] == 220
    assert card["lengths"][0]["looked_at"] > card["lengths"][0]["distinct"] > 220
    attributes = {**card["shares"]["function"], **card["shares"]["lambda"]}
    assert np.allclose([attributes[name] for name in ATTRIBUTES], made.attributes.mean(axis=0), atol=1e-4)
    assert "weighted_shares" not in card
    assert (made.weights == 1).all()
    assert "versions" in card


def test_every_length_as_json(cli, tmp_path):
    arguments = ("--length", 2, "--all-lengths", "--count", 100, "--test", 10, "--seed", 1, "--json", "--quiet")
    result = cli("make-corpus", *arguments)
    assert result.err == ""
    found = json.loads(result.out)
    assert [part["length"] for part in found["lengths"]] == [1, 2]
    assert sum(found["lengths"][0]["train"].values()) < 100
    assert found["out"] == "results/runs/make-corpus.corpus"


def test_same_seed_same_bytes_whatever_the_jobs(cli, tmp_path):
    def run(seed, jobs):
        arguments = ("--length", 3, "--count", 20, "--seed", seed, "--jobs", jobs)
        assert cli("make-corpus", *arguments, "--out", f"{seed}-{jobs}.corpus").status == 0
        card = json.loads((tmp_path / f"{seed}-{jobs}.corpus/corpus.json").read_text())
        return [shard["sha256"] for shard in card["shards"]]

    first = run(1, 1)
    assert first == run(1, 2)
    assert first != run(2, 1)


def test_options_reach_the_corpus(cli, tmp_path):
    chosen = ("--inputs", "[int],int", "--inputs", "[int]", "--range", -9, 20, "--division", "floor", "--examples", 2)
    assert cli("make-corpus", "--length", 3, "--count", 40, *chosen, "--out", "c.corpus").status == 0
    made = load_corpus(tmp_path / "c.corpus")
    assert {program.inputs for program in made.programs()} == {(INT, LIST), (LIST,)}
    assert (made.semantics.division, made.semantics.low, made.semantics.high) == ("floor", -9, 20)
    assert made.numbers.shape == (40, 2, 4, 20)


def test_a_balanced_corpus(cli, tmp_path):
    limits = ("--distinct-outputs", 3, "--max-empty", 0, "--inputs", "[int]")
    result = cli("make-corpus", "--length", 3, "--count", 300, "--balance", "length,output-type", *limits, "--seed", 1)
    assert result.status == 0
    assert "uniform programs; brackets hold" in result.out
    made = load_corpus(tmp_path / "results/runs/make-corpus.corpus")
    assert set(made.lengths.tolist()) == {1, 2, 3}
    outputs = [[example.output for example in made.task(row).examples] for row in range(len(made))]
    assert all(len(set(row)) >= 3 and () not in row for row in outputs)
    card = json.loads((tmp_path / "results/runs/make-corpus.corpus/corpus.json").read_text())
    assert card["settings"]["balance"] == ["output-type", "length"]
    assert card["shares"]["length"]["3 lines"] < card["weighted_shares"]["length"]["3 lines"]
    assert card["shares"]["output"]["int"] > 1.5 * card["weighted_shares"]["output"]["int"]
    assert card["shares"]["examples"]["empty output"] == 0
    assert card["effective_size"] < len(made)


def test_a_corpus_for_testing_alone(cli, tmp_path):
    assert cli("make-corpus", "--length", 2, "--count", 0, "--test", 9, "--seed", 1, "--out", "c.corpus").status == 0
    assert load_corpus(tmp_path / "c.corpus").test.all()


def test_apart_from_another(cli, tmp_path):
    small = ("make-corpus", "--length", 1, "--inputs", "[int]", "--seed", 1)
    assert cli(*small, "--count", 20, "--out", "a.corpus").status == 0
    assert "requested; there are 11 that" in cli(*small, "--count", 20, "--apart-from", "a.corpus").err
    assert cli(*small, "--count", 11, "--apart-from", "a.corpus", "--out", "b.corpus").status == 0
    first, second = (set(load_corpus(tmp_path / name).programs()) for name in ("a.corpus", "b.corpus"))
    assert not first & second


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--length 1 --count 1000", "1,000 distinct programs of length 1 are requested; there are 39 that"),
        ("--length 11", "--length is 11"),
        ("--count 5", "--length is missing"),
        ("--length 2 --count 0", "--count and --test are both 0"),
        ("--length 2 --inputs int", "--inputs is int"),
        ("--length 2 --out x.csv", ".corpus"),
        ("--length 2 --apart-from none.corpus", "none.corpus: it cannot be read"),
        ("--length 2 --apart-from x.corpus --out x.corpus", "would overwrite the input"),
        ("--length 2 --range 5 1", "--range is 5 1"),
        (
            "--length 2 --balance function,size",
            "--balance has 'size'; it must be some of output-type, function, length",
        ),
        ("--length 2 --distinct-outputs 6", "--distinct-outputs is 6; it must be at most the number of --examples, 5"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    result = cli("make-corpus", *shlex.split(arguments))
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_an_interrupted_corpus_goes_on_with_the_same_seed(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("thesis_cli.synthesis.corpus.corpus_maker.PART", 30)
    arguments = ("make-corpus", "--length", 4, "--inputs", "[int]", "--count", 80, "--out", "c.corpus")
    parts = corpus_maker.parts

    def interrupted_after(count):
        def few(*arguments):
            yield from islice(parts(*arguments), count)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("thesis_cli.synthesis.corpus.corpus_maker.parts", few)
            result = cli(*arguments)
        assert (result.status, result.err.splitlines()[-1]) == (130, "error: interrupted")

    interrupted_after(0)
    assert os.listdir(tmp_path) == []
    interrupted_after(1)
    interrupted_after(1)
    result = cli(*arguments, "--tasks")
    assert "60 programs are there from before" in result.err
    card = json.loads((tmp_path / "c.corpus/corpus.json").read_text())
    seed = card["settings"]["seed"]
    assert f"seed {seed}" in result.out
    whole = tc.make_corpus(length=4, inputs="[int]", count=80, seed=seed)
    assert load_corpus(tmp_path / "c.corpus").labelled() == whole.corpus.labelled()
    assert card["lengths"][0]["looked_at"] == whole.facts()["lengths"][0]["looked_at"]
    whole.save(tmp_path / "saved.corpus")
    saved = json.loads((tmp_path / "saved.corpus/corpus.json").read_text())
    assert [shard["sha256"] for shard in saved["shards"]] == [shard["sha256"] for shard in card["shards"]]


def test_tasks_for_synthesize(cli, tmp_path):
    arguments = ("make-corpus", "--length", 1, "--count", 5, "--seed", 1, "--out", "c.corpus")
    assert cli(*arguments, "--no-out").status == 2
    assert not cli(*arguments).err.count("there from before")
    before = (tmp_path / "c.corpus/corpus.json").read_bytes()
    assert "5 programs are there from before" in cli(*arguments, "--tasks").err
    assert (tmp_path / "c.corpus/corpus.json").read_bytes() == before
    assert len(load_tasks(tmp_path / "c.corpus/tasks.jsonl")) == 5
    assert "5 programs are there" not in cli(*arguments[:-4], "--seed", 2, "--out", "c.corpus").err
    assert "c.corpus/corpus.json exists" in cli(*arguments[:-4], "--seed", 2, "--out", "c.corpus").err
    assert cli(*arguments[:-4], "--seed", 2, "--out", "c.corpus", "--overwrite").status == 0
    assert not (tmp_path / "c.corpus/tasks.jsonl").exists()


def test_a_corpus_of_python(tmp_path):
    made = tc.make_corpus(length=2, count=30, test=3, seed=1)
    assert made.table[["train", "test"]].sum().tolist() == [30, 3]
    assert set(made.table["length"]) == {2}
    made.save(tmp_path / "c.corpus")
    assert load_corpus(tmp_path / "c.corpus").programs() == made.corpus.programs()
    other = tc.make_corpus(length=2, count=30, seed=2, apart_from=made.corpus)
    assert not set(other.corpus.programs()) & set(made.corpus.programs())
