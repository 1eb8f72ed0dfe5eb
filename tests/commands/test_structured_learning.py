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
from thesis_cli.structured.learning_data import read_table

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
    line = ("structured", "train", "t.csv", "--task", "ranking", "--labels", 2, "--features", "positions")
    result = cli(*line, "--regularisation", 0.01, "--out", "w.safetensors")
    assert result.status == 0, result.err
    assert "t.csv: 24 rows, 1 input, 2 labels" in result.out
    assert "permutations, 2, features positions" in result.out
    record = json.loads((tmp_path / "w.json").read_text())
    assert record["norm"] <= min(record["norm_bounds"])
    assert record["norm_bounds"][0] == pytest.approx(math.sqrt(math.log(2) / 0.01))
    assert (tmp_path / "w.csv").read_text().startswith("iteration,objective,excess\n0,0.693")
    assert not (tmp_path / "w.checkpoint").exists()
    again = tc.structured_train(ranks, task="ranking", labels=2, features="positions", regularisation=0.01)
    assert again.predictor.to_bytes() == (tmp_path / "w.safetensors").read_bytes()
    assert again.excess <= 1e-3
    assert again.chosen is None
    assert len(again.figure().axes) == 3

    result = cli("structured", "predict", "t.csv", "--weights", "w.safetensors", "--out", "p.csv", "--json")
    assert result.status == 0, result.err
    table, facts = pd.read_csv(tmp_path / "p.csv"), json.loads(result.out)
    assert list(table) == ["a", "b", "log_probability", "log_likelihood", "zero_one", "kendall_tau"]
    assert facts["losses"]["zero_one"] == (table.a != ranks.a).mean() == again.losses["zero_one"] < 0.4
    found = tc.structured_predict(ranks[["x"]], weights=again)
    assert found.losses == {}
    np.testing.assert_array_equal(found.table[["a", "b"]], table[["a", "b"]])
    theta = again.predictor.weights(read_table(ranks))
    gap = theta[:, 0] + theta[:, 3] - theta[:, 1] - theta[:, 2]  # of the order a, b over the order b, a
    np.testing.assert_allclose(found.table.log_probability, -np.log1p(np.exp(-np.abs(gap))), atol=1e-12)
    assert "0 rows" not in tc.structured_predict(ranks, weights=again, decision="marginal").summary()


def test_the_best_structures_of_each_row(ranks):
    trained = tc.structured_train(ranks, task="ranking", labels=2)
    one, both = (tc.structured_predict(ranks, weights=trained, best=best) for best in (1, 5))
    table = both.table
    assert table.row.tolist() == [row for row in range(1, 25) for _ in range(2)]
    assert table.place.tolist() == [1, 2] * 24
    np.testing.assert_allclose(np.exp(table.log_probability).groupby(table.row).sum(), 1)
    np.testing.assert_array_equal(table[table.place == 1][["a", "b"]], one.table[["a", "b"]])
    assert (table.groupby("row").zero_one.sum() == 1).all()
    assert both.losses == one.losses


@pytest.fixture
def curves():
    """120 rows of which trees, but no linear function, can tell the labels; inputs of all kinds."""
    rng = np.random.default_rng(1)
    x, colour = rng.uniform(-1, 1, 120), rng.choice(["red", "green", "blue"], 120)
    a, b = np.abs(x) > 0.5, colour != "red"
    table = pd.DataFrame({"x": x, "colour": colour, "a": a.astype(int), "b": b.astype(int)})
    table.loc[rng.random(120) < 0.05, "x"] = np.nan
    table.loc[rng.random(120) < 0.05, "colour"] = None
    return table


def test_trees_find_what_lines_do_not(tmp_path, curves):
    train, test = curves[:80], curves[80:]
    losses = {}
    for interactions in ("none", "trees"):
        trained = tc.structured_train(train, task="multilabel", labels=2, interactions=interactions)
        assert trained.regularisation in trained.chosen.tried["regularisation"] or trained.chosen.loss > 0
        losses[interactions] = tc.structured_predict(test, weights=trained).losses["hamming"][0]
    assert losses["trees"] < 0.15 < losses["none"]
    trained.save(tmp_path / "w.safetensors")
    again = tc.structured_predict(test, weights=tmp_path / "w.safetensors")
    assert again.losses["hamming"][0] == losses["trees"]
    assert "100, whose predictions are further inputs" in trained.summary()
    assert len(trained.figure().axes) == 3


def test_rankings_known_in_part(ranks):
    table = pd.DataFrame({"x": ranks.x, "p": np.where(ranks.a < ranks.b, "a > b", "b > a, b > c")})
    found = tc.structured_train(table, task="ranking", preferences="p")
    assert found.predictor.task.labels == ("a", "b", "c")
    assert found.observations == len(ranks) + (ranks.a > ranks.b).sum()
    predicted = tc.structured_predict(table, weights=found)
    assert predicted.losses["zero_one"][0] < 0.3
    assert list(predicted.table)[:3] == ["a", "b", "c"]
    tied = tc.structured_train(ranks.assign(c=2.0), task="ranking", labels=3, features="orders", regularisation=0.1)
    assert "objective" in tied.summary()
    assert math.isnan(tied.excess)
    only = tc.structured_train(ranks[["a", "b"]], task="ranking", labels=2, features="mallows", regularisation=1e-6)
    share = (ranks.a < ranks.b).mean()
    both = tc.structured_predict(ranks[["a", "b"]], weights=only, best=2).table
    np.testing.assert_allclose(
        np.exp(both.log_probability[:2]), [max(share, 1 - share), min(share, 1 - share)], atol=1e-3
    )


@pytest.mark.parametrize("sampler", ["draw", "meta"])
def test_sampled_gradients_come_near_exact_ones(ranks, sampler):
    more = {"task": "ranking", "labels": 2, "regularisation": 0.2, "features": "positions"}
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
    more = {"task": "ranking", "labels": 2, "method": method, "features": "positions"}
    whole = tc.structured_train(ranks, **more)
    kept = Checkpoint.keep

    def dies(self, **arrays):
        kept(self, **arrays)
        dies.calls += 1
        if dies.calls == 2:
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
    assert again.objective == pytest.approx(whole.objective, abs=1e-4)
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
        ("train t.csv --task ranking --labels 4", "t.csv: it has 3 columns, of which 4 are to be labels"),
        ("train t.csv --task multilabel --labels 3", "t.csv: it has no inputs"),
        ("train t.csv --task ranking --labels 2 --preferences x", "--labels does not go with --preferences"),
        ("train t.csv --task multilabel --labels 2 --unranked last", "--unranked does not go with --task multilabel"),
        ("train t.csv --task ranking --labels 2 --categories y", "t.csv: the category 'y' is no input"),
        ("train t.csv --task ranking --labels 2 --out t.safetensors", "t.safetensors would overwrite the input"),
        ("train t.csv --task ranking --labels 2 --regularisation best", "it must be auto, or a number above 0"),
        ("train t.csv --task ranking --preferences x", "'x' has no preferences"),
        ("train ties.csv --task ranking --labels 2", "ties.csv: no row says that an item comes before another"),
        ("train t.csv --task multilabel --labels 2", "t.csv:2: the labels 1, 2 are not all 0 or 1"),
        ("train bad.csv --task ranking --labels 2", "bad.csv:2: the labels 1, 0 are no ranks"),
        ("train inf.csv --task ranking --labels 2", "inf.csv:2: 'x' is 'inf'; it must be a number, at most 1e"),
        ("train t.csv --task ranking --labels 2 --features nodes", "features nodes do not go with the task ranking"),
        ("train t.csv --task ranking --labels 2 --passes 3", "--passes does not go with --method exact"),
        ("train t.csv --task ranking --labels 2 --regularisation 0", "--regularisation"),
        ("train wide.csv --task multilabel --labels 21 --features pairs", "21; give --method sampled --sampler meta"),
        ("predict t.csv", "--weights is missing"),
        ("predict t.csv --weights t.csv", "t.csv: it holds no structured predictor"),
        ("predict other.csv --weights w.safetensors", "other.csv: there is no column 'x'"),
        ("predict t.csv --weights w.safetensors --best 2 --decision marginal", "--best does not go with"),
    ],
)
def test_bad_input_is_one_line(cli, tmp_path, line, message):
    (tmp_path / "t.csv").write_text("x,a,b\n0,1,2\n1,2,1\n")
    (tmp_path / "bad.csv").write_text("x,a,b\n0,1,0\n")
    (tmp_path / "ties.csv").write_text("x,a,b\n0,1,1\n")
    (tmp_path / "inf.csv").write_text("x,a,b\ninf,1,2\n")
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
