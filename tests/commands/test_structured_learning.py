"""`thesis-cli structured train` and `thesis-cli structured predict`."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import thesis_cli as tc
from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.structured.checkpoint import Checkpoint

DATA = ROOT / "data" / "labels"


@pytest.fixture
def ranks():
    """24 rows with one input; the larger it is, the earlier b comes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=24)
    first = np.where(x + 0.3 * rng.normal(size=24) > 0, 2, 1)
    return pd.DataFrame({"x": x, "a": first, "b": 3 - first})


def test_from_a_table_to_predictions(cli, tmp_path, ranks):
    ranks.to_csv(tmp_path / "t.csv", index=False)
    line = ("structured", "train", "t.csv", "--task", "ranking", "--labels", 2, "--out", "w.safetensors")
    result = cli(*line)
    assert result.status == 0, result.err
    assert "t.csv: 24 rows, 1 input, 2 labels" in result.out
    assert "permutations, 2, features positions" in result.out
    record = json.loads((tmp_path / "w.json").read_text())
    assert record["norm"] <= min(record["norm_bounds"])
    assert record["norm_bounds"][0] == pytest.approx(math.sqrt(math.log(2) / 0.01))
    assert (tmp_path / "w.csv").read_text().startswith("iteration,objective,excess\n0,0.693")
    assert not (tmp_path / "w.checkpoint").exists()
    again = tc.structured_train(ranks, task="ranking", labels=2)
    assert again.predictor.to_bytes() == (tmp_path / "w.safetensors").read_bytes()
    assert again.excess <= 1e-9
    assert len(again.figure().axes) == 3

    result = cli("structured", "predict", "t.csv", "--weights", "w.safetensors", "--out", "p.csv", "--json")
    assert result.status == 0, result.err
    table, facts = pd.read_csv(tmp_path / "p.csv"), json.loads(result.out)
    assert list(table) == ["a", "b", "log_probability", "log_likelihood", "zero_one", "kendall_tau"]
    assert facts["losses"]["zero_one"] == (table.a != ranks.a).mean() == again.losses["zero_one"] < 0.4
    found = tc.structured_predict(ranks[["x"]], weights=again)
    assert found.losses == {}
    np.testing.assert_array_equal(found.table[["a", "b"]], table[["a", "b"]])
    theta = again.predictor.weights(ranks[["x"]].to_numpy())
    gap = theta[:, 0] + theta[:, 3] - theta[:, 1] - theta[:, 2]  # of the order a, b over the order b, a
    np.testing.assert_allclose(found.table.log_probability, -np.log1p(np.exp(-np.abs(gap))), atol=1e-12)
    assert "0 rows" not in tc.structured_predict(ranks, weights=again, decision="marginal").summary()


@pytest.mark.parametrize("sampler", ["draw", "meta"])
def test_sampled_gradients_come_near_exact_ones(ranks, sampler):
    more = {"task": "ranking", "labels": 2, "regularisation": 0.2}
    best = tc.structured_train(ranks, **more)
    found = tc.structured_train(ranks, **more, method="sampled", sampler=sampler, passes=15)
    assert 0 <= found.objective - best.objective <= min(found.excess, 0.02)
    proposals = list(found.table.proposals)
    assert (proposals[-1] > 15 * 24) if sampler == "meta" else proposals == [0] * 15
    assert "passes" not in found.summary()
    assert len(found.figure().axes) == 3


def test_a_hierarchy_takes_its_labels_from_the_tree(cli):
    line = ("structured", "train", DATA / "wine-tree-train.csv", "--task", "hierarchy")
    result = cli(*line, "--parents", DATA / "wine-tree.csv", "--regularisation", 1, "--out", "w.safetensors")
    assert result.status == 0, result.err
    assert "13 inputs, 5 labels" in result.out
    assert "subtrees, 10, features nodes" in result.out
    result = cli("structured", "predict", DATA / "wine-tree-test.csv", "--weights", "w.safetensors", "--json")
    losses = json.loads(result.out)["losses"]
    assert 0 <= losses["hamming"] <= losses["zero_one"] < 0.2
    assert losses["hierarchy"] <= 2 * losses["zero_one"]


@pytest.mark.parametrize("method", ["exact", "sampled"])
def test_a_training_goes_on_from_its_checkpoint(tmp_path, ranks, monkeypatch, method):
    monkeypatch.setattr("thesis_cli.structured.checkpoint.EVERY", 0.0)
    monkeypatch.setattr(Checkpoint.__init__, "__defaults__", (0.0,))
    out = tmp_path / "w.safetensors"
    more = {"task": "ranking", "labels": 2, "method": method}
    whole = tc.structured_train(ranks, **more)
    kept = Checkpoint.keep

    def dies(self, **arrays):
        kept(self, **arrays)
        dies.calls += 1
        if dies.calls == 3:
            raise KeyboardInterrupt

    dies.calls = 0
    monkeypatch.setattr(Checkpoint, "keep", dies)
    with pytest.raises(KeyboardInterrupt):
        tc.structured_train(ranks, **more, out=out)
    assert (tmp_path / "w.checkpoint").exists()
    monkeypatch.setattr(Checkpoint, "keep", kept)
    with pytest.raises(InputError, match="of other settings or data"):
        tc.structured_train(ranks, **more, regularisation=5, out=out)
    again = tc.structured_train(ranks, **more, out=out)
    assert again.objective == pytest.approx(whole.objective, abs=1e-8)
    assert again.columns.count < whole.columns.count
    assert not (tmp_path / "w.checkpoint").exists()
    if method == "sampled":
        assert again.predictor.to_bytes() == whole.predictor.to_bytes()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train t.csv", "--task is missing; give multilabel, ranking or hierarchy"),
        ("train t.csv --task ranking", "--task ranking needs --labels"),
        ("train t.csv --task hierarchy", "--task hierarchy needs --parents"),
        ("train t.csv --task hierarchy --parents cycle.csv", "cycle.csv: node 'a' is on or below a cycle"),
        ("train t.csv --task hierarchy --parents other.csv", "t.csv: there is no column 'r'"),
        ("train t.csv --task hierarchy --parents other.csv --labels 2", "--labels does not go with --task hierarchy"),
        ("train t.csv --task ranking --labels 2 --parents other.csv", "--parents does not go with --task ranking"),
        ("train t.csv --task ranking --labels 3", "t.csv: it has 3 columns, of which 3 are to be labels"),
        ("train t.csv --task multilabel --labels 2", "t.csv:2: the labels 1, 2 are not all 0 or 1"),
        ("train bad.csv --task ranking --labels 2", "bad.csv:2: the labels 1, 1 are no permutation"),
        ("train nan.csv --task ranking --labels 2", "nan.csv:2: 'x' is 'nan'; it must be a number, at most 1e"),
        ("train t.csv --task ranking --labels 2 --features nodes", "features nodes do not go with the task ranking"),
        ("train t.csv --task ranking --labels 2 --passes 3", "--passes does not go with --method exact"),
        ("train t.csv --task ranking --labels 2 --regularisation 0", "--regularisation"),
        ("train wide.csv --task multilabel --labels 21 --features pairs", "21; give --method sampled --sampler meta"),
        ("predict t.csv", "--weights is missing"),
        ("predict t.csv --weights t.csv", "t.csv: it holds no structured predictor"),
        ("predict other.csv --weights w.safetensors", "other.csv:2"),
    ],
)
def test_bad_input_is_one_line(cli, tmp_path, line, message):
    (tmp_path / "t.csv").write_text("x,a,b\n0,1,2\n1,2,1\n")
    (tmp_path / "bad.csv").write_text("x,a,b\n0,1,1\n")
    (tmp_path / "nan.csv").write_text("x,a,b\nnan,1,2\n")
    (tmp_path / "cycle.csv").write_text("node,parent\na,b\nb,a\n")
    (tmp_path / "other.csv").write_text("node,parent\nr,\na,r\n")
    names = [f"v{k}" for k in range(22)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join("1" * 22) + "\n")
    if "w.safetensors" in line:
        tc.structured_train(tmp_path / "t.csv", task="ranking", labels=2, out=tmp_path / "w.safetensors")
    result = cli("structured", *line.split())
    assert result.status == 2
    assert message in result.err
    assert len(result.err.strip().splitlines()) == 1
