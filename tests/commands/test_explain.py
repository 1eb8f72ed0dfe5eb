"""`thesis-cli explain`."""

import csv
import json

import pytest

import thesis_cli as tc
from tests.conftest import ROOT
from tests.synthesis.networks.random_weights import random_weights
from thesis_cli.base.errors import InputError
from thesis_cli.commands.figures.attributes import SHOWN
from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.language.task import load_tasks
from thesis_cli.synthesis.prior import Fixed
from thesis_cli.synthesis.search.solver import Order

TASKS = ROOT / "data" / "tasks"
SORTED = {"program": "a <- [int]; b <- SORT a", "examples": [[[[3, 1]], [1, 3]]]}


@pytest.fixture
def weights(tmp_path):
    return random_weights(tmp_path / "w.safetensors")


def test_the_attributes_of_a_task_are_listed_from_the_most_probable(cli, weights, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(SORTED))
    result = cli("explain", "t.json", "--guide", weights)
    assert result.status == 0
    with open(tmp_path / "results/runs/explain-t.csv") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["task", "rank", "attribute", "kind", "probability", "used"]
    assert [int(row["rank"]) for row in found] == list(range(1, 35))
    assert sorted(row["attribute"] for row in found) == sorted(ATTRIBUTES)
    probabilities = [float(row["probability"]) for row in found]
    assert probabilities == sorted(probabilities, reverse=True)
    assert [row["attribute"] for row in found if row["used"] == "True"] == ["SORT"]
    assert {row["kind"] for row in found if row["attribute"] in ("SORT", "MIN")} == {"function", "lambda"}
    shown = result.out.splitlines()
    assert [line.split()[0] for line in shown[2:36]] == [row["attribute"] for row in found]
    assert [line.split()[0] for line in shown if line.endswith("in the program")] == ["SORT"]


def test_a_figure_has_a_bar_for_each_attribute_of_a_task_or_a_row_for_each_task(weights):
    one, two = (tc.explain(tasks, guide=weights) for tasks in (SORTED, [SORTED] * 2))
    bars = one.figure().axes[0].patches
    assert [bar.get_height() for bar in bars] == [one.probabilities[0][ATTRIBUTES.index(name)] for name in SHOWN]
    assert len({bar.get_facecolor() for bar in bars}) == 2
    axes = two.figure().axes[0]
    assert axes.images[0].get_array().shape == (2, 34)
    assert [tuple(line.get_xdata()) for line in axes.lines] == [(SHOWN.index("SORT"),)] * 2


def test_several_tasks_have_a_line_each_and_many_are_averaged(cli, weights):
    shown = cli("explain", TASKS / "all.jsonl", "--guide", weights).out.splitlines()
    assert [line.split()[0] for line in shown[:10]] == [task.name for task in load_tasks(TASKS / "all.jsonl")]
    found = tc.explain([SORTED] * 11, guide=weights)
    assert "means" in found.summary()
    assert len(found.columns["task"]) == 11 * 34


def test_any_guide_can_be_explained():
    found = tc.explain(SORTED, guide=Fixed(Order.uniform()))
    assert set(found.columns["probability"]) == {0.5}
    assert found.to_dict()["guidance"]["identity"].startswith("fixed ")
    assert sorted(SHOWN) == sorted(ATTRIBUTES)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"examples": [[[[300]], 1]]}, "the value (300,); it may have up to 20 numbers from -256 to 255"),
        ({**SORTED, "program": "a <- FOLD"}, "FOLD"),
        ({"examples": []}, "no examples"),
    ],
)
def test_bad_input_is_one_line(cli, weights, tmp_path, task, message):
    (tmp_path / "t.json").write_text(json.dumps(task))
    result = cli("explain", "t.json", "--guide", weights)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err


def test_what_is_no_guide_is_refused():
    for guide in 5, "none", "t.json":
        with pytest.raises(InputError, match="--guide"):
            tc.explain(SORTED, guide=guide)
