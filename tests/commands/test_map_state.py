import csv
import json
import os
import re

import numpy as np
import pytest

import thesis_cli
from tests.conftest import MODELS
from thesis_cli.base.errors import InputError
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.external import cost_function_search
from thesis_cli.models import uai
from thesis_cli.models.factor_graph import Factor, FactorGraph, LogPotentials
from thesis_cli.models.spin_glass import random_spin_glass
from thesis_cli.studies.models.examples import ASIA, ising, random_3_sat

NETWORK = MODELS / "asia.uai"


def test_summary_file_and_record(cli, tmp_path):
    result = cli("map", NETWORK, "--evidence", MODELS / "asia-xray.evid")
    assert result.status == 0
    assert "states   1 1 0 0 0 0 0 0" in result.out
    out = tmp_path / "results/runs/map-asia.csv"
    with open(out) as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == list("11000000")
    record = json.loads(out.with_suffix(".json").read_text())
    assert (record["method"], record["guarantee"]) == ("elimination", "exact")
    yes = {name for name, row in zip(ASIA, rows, strict=True) if row["state"] == "0"}
    p = 0.99 * 0.99 * 0.5 * 0.1 * 0.6 * 0.98 * 0.9
    assert yes == {"smoke", "lung", "bronc", "either", "xray", "dysp"}
    assert record["value"] == pytest.approx(np.log(p))


def test_names_of_variables_and_states(cli, tmp_path):
    found = thesis_cli.map_state(MODELS / "asia.bif", evidence=["xray=yes"], uai=tmp_path / "asia.MPE")
    assert list(found.table.columns) == ["variable", "name", "state", "label"]
    labels = ["no", "no", *["yes"] * 6]
    assert found.facts()["assignment"] == dict(zip(ASIA, labels, strict=True))
    assert "asia=no tub=no smoke=yes" in found.summary()
    assert (tmp_path / "asia.MPE").read_text() == "MPE\n8 1 1 0 0 0 0 0 0\n"
    result = cli("map", MODELS / "asia.bif", "--evidence", "xray=yes", "--uai", "shell.MPE", "--no-out")
    assert "xray=yes" in result.out
    assert "wrote shell.MPE" in result.err
    assert (tmp_path / "shell.MPE").read_text() == (tmp_path / "asia.MPE").read_text()


@pytest.mark.parametrize(
    ("source", "options", "fragment"),
    [
        (NETWORK, {"probabilities": True}, "--probabilities is for vectors"),
        (LogPotentials(np.zeros(2)), {"probabilities": True}, "--probabilities is for vectors"),
        (FactorGraph([2], []), {"format": "uai"}, "<FactorGraph>: --format uai does not go with an object"),
        (np.zeros(2), {"evidence": ["0=1"]}, "<ndarray>: a vector has no variables"),
    ],
)
def test_options_that_do_not_go_with_a_source_are_refused(source, options, fragment):
    with pytest.raises(InputError, match=fragment):
        thesis_cli.map_state(source, **options)


def test_a_vector_is_one_variable():
    found = thesis_cli.map_state([0.0, 2.0, 1.0])
    assert found.table.to_dict("list") == {"variable": [0], "state": [1]}


def test_the_best_configurations_in_order(cli, tmp_path):
    result = cli("map", MODELS / "asia.bif", "--evidence", "xray=yes", "--best", 3, "--uai", "best.MPE")
    assert "rank 3   -4.30900132839  bronc=no\n" in result.out
    with open(tmp_path / "results/runs/map-asia.csv") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["rank", "value", "variable", "name", "state", "label"]
    third = {row["name"]: row["label"] for row in rows if row["rank"] == "3"}
    assert third == dict(zip(ASIA, ["no", "no", "yes", "yes", "no", "yes", "yes", "yes"], strict=True))
    assert (tmp_path / "best.MPE").read_text() == "MPE\n8 1 1 0 0 0 0 0 0\n"
    named = json.loads(cli("map", MODELS / "asia.bif", "--best", 2, "--json").out)
    assert [own["assignment"]["smoke"] for own in named["ranking"]] == [
        ("yes", "no")[own["states"][2]] for own in named["ranking"]
    ]
    record = json.loads(cli("map", NETWORK, "--best", 3, "--json").out)
    assert len({tuple(found["states"]) for found in record["ranking"]}) == 3


def test_fewer_configurations_than_asked_for(cli):
    result = cli("map", MODELS / "sat-16-60.uai", "--best", 100)
    assert "ranks    11 of 100: no other configuration is possible" in result.out
    assert cli("map", MODELS / "asia.uai", "--best", 2, "--solver", "qpbo").err == (
        f"error: {MODELS / 'asia.uai'}: --best needs an exact solver, not qpbo; leave --solver out\n"
    )


def test_a_large_grid(cli, tmp_path):
    (tmp_path / "m.uai").write_text(uai.write(ising(10, 10, 0.3, np.random.default_rng(2))))
    found = json.loads(cli("map", "m.uai", "--json").out)
    graph = uai.parse((tmp_path / "m.uai").read_text())
    states = np.array([found["states"]])
    assert graph.log_potential(states)[0] == pytest.approx(found["value"])
    for i in range(100):  # no single flip is better
        flipped = states.copy()
        flipped[0, i] = 1 - flipped[0, i]
        assert graph.log_potential(flipped)[0] <= found["value"]
    assert "... (100 in all)" in cli("map", "m.uai").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.uai"], "error: nowhere.uai: cannot be read"),
        ([NETWORK, "--out", "x.txt"], "error: --out x.txt"),
        ([NETWORK, "--memory", "0"], "error: --memory is 0"),
        ([NETWORK, "--solver", "grid", "--max-configurations", "9"], "error: --max-configurations does not go with"),
        ([NETWORK, "--solver", "trw-s", "--time-limit", "9"], "error: --time-limit does not go with"),
        ([NETWORK, "--uai", NETWORK], f"error: --uai {NETWORK} would overwrite"),
        ([NETWORK, "--uai", "."], "error: --uai . is a folder"),
        ([NETWORK, "--evidence", "8=0"], f"error: {NETWORK}: evidence 8=0"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(cli, tmp_path, arguments, message):
    result = cli("map", *arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(message)
    assert result.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_too_wide_a_model_says_its_width(cli, tmp_path):
    (tmp_path / "m.uai").write_text(uai.write(ising(40, 40, 1.0, np.random.default_rng(0))))
    result = cli("map", "m.uai", "--solver", "elimination")
    assert result.status == 2
    assert re.search(r"m.uai: elimination needs .* at width \d\d", result.err)


def test_a_solver_that_fails_is_no_fault_of_the_input(cli):
    result = cli("map", MODELS / "sat-16-60.uai", "--solver", "max-product")
    assert (result.status, result.out) == (1, "")
    assert result.err == "error: the solver found no possible configuration\n"


def test_one_variable_of_many_states_is_no_grid(cli, tmp_path):
    """Whose tables of pairs would not fit."""
    (tmp_path / "m.uai").write_text("MARKOV 1 10001 1 1 0 10001" + " 1" * 10000 + " 2")
    result = cli("map", "m.uai", "-v", "--json")
    assert json.loads(result.out)["method"] == "elimination"
    assert (
        "not grid: grid transfer needs 3.73 GiB at width 1"
        in map_solver(uai.parse(tmp_path.joinpath("m.uai").read_text()))[1]
    )
    assert json.loads(result.out)["states"] == [10000]


def test_verbose_says_what_was_passed_over(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(cost_function_search, "is_installed", lambda name: False)
    glass = random_spin_glass(30, 30, 2.0, 0.1, "mixed", np.random.default_rng(0)).graph()
    chord = Factor((0, 100), [[0.5, 0.0], [0.0, 0.0]])
    (tmp_path / "m.uai").write_text(uai.write(FactorGraph(glass.cardinalities, [*glass.factors, chord])))
    result = cli("map", "m.uai", "--memory", 0.001, "--time-limit", 0.5, "--verbose")
    assert "below the largest)" in result.out
    assert ", at most" in result.out
    for part in ("not grid: ", "not elimination: ", "not toulbar2: toulbar2 needs the package pytoulbar2"):
        assert part in result.err


def test_hard_constraints_that_trw_s_does_not_meet_go_to_the_complete_search(cli):
    pytest.importorskip("pytoulbar2")
    graph = random_3_sat(60, 240, np.random.default_rng(1))
    found = thesis_cli.map_state(graph, memory=0.001).found
    assert (found.method, found.guarantee, found.value) == ("toulbar2", "exact", 0)
    assert graph.log_potential(found.states[None])[0] == 0


def test_without_the_complete_search_an_error_says_what_to_install(cli, tmp_path, monkeypatch):
    (tmp_path / "m.uai").write_text(uai.write(random_3_sat(60, 240, np.random.default_rng(1))))
    monkeypatch.setattr(cost_function_search, "is_installed", lambda name: False)
    result = cli("map", "m.uai", "--memory", 0.001)
    assert (result.status, result.out) == (1, "")
    assert result.err == (
        "error: the solver found no possible configuration; a complete search may: run pip install pytoulbar2\n"
    )


def test_no_configuration_in_time_is_one_line(cli, tmp_path):
    pytest.importorskip("pytoulbar2")
    graph = random_3_sat(400, 1680, np.random.default_rng(1))
    (tmp_path / "m.uai").write_text(uai.write(graph))
    result = cli("map", "m.uai", "--time-limit", 0.2)
    assert (result.status, result.out) == (1, "")
    assert result.err == "error: no possible configuration was found in time; raise --time-limit\n"


def test_marginal_map_by_names_and_by_a_query_file(cli, tmp_path):
    found = thesis_cli.map_state(MODELS / "asia.bif", evidence=["xray=yes"], over=["lung,bronc"])
    assert found.facts()["assignment"] == {"lung": "no", "bronc": "no"}
    assert list(found.table["name"]) == ["lung", "bronc"]
    assert "max sum  -3.46039632774  (elimination, exact)\nstates   lung=no bronc=no" in found.summary()
    query, evidence = MODELS / "asia.uai.query", MODELS / "asia-xray.evid"
    result = cli("map", NETWORK, "--evidence", evidence, "--query", query, "--uai", "asia.MMAP", "--no-out")
    assert "states   3=1 4=1\n" in result.out
    assert (tmp_path / "asia.MMAP").read_text() == "MMAP\n2 3 1 4 1\n"
    record = json.loads(cli("map", NETWORK, "--evidence", evidence, "--over", 4, "--over", 3, "--json").out)
    assert (record["variables"], record["states"], record["guarantee"]) == ([4, 3], [1, 1], "exact")
    assert (
        thesis_cli.map_state(NETWORK, over=[3, 4]).found.value == thesis_cli.map_state(NETWORK, query=query).found.value
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--over", ""], "no variables to maximise over are given; estimate-z sums over all variables"),
        (["--over", "8"], "there is no variable '8'"),
        (["--over", "6", "--evidence", "6=0"], "variable 6 is observed"),
        (["--over", "1,2,1"], "variable 1 is named twice"),
        (["--over", "0,1,2,3,4,5,6,7"], "the query names all variables"),
        (["--query", "empty"], "no variables to maximise over are given"),
        (["--query", "twice"], "twice:1: variable 3 is named twice"),
        (["--query", "beyond"], "beyond:1: a query variable"),
        (["--query", "huge"], "huge:1: "),
        (["--query", "more"], "more:1: "),
        (["--query", "nowhere"], "nowhere: cannot be read"),
        (["--over", "1", "--query", "twice"], "--over does not go with --query"),
        (["--over", "1", "--best", "2"], "--best does not go with --over"),
        (["--query", "empty", "--solver", "grid"], "--solver does not go with --query"),
    ],
)
def test_bad_queries_are_one_line(cli, tmp_path, options, message):
    files = {"empty": "0", "twice": "2 3 3", "beyond": "1 8", "huge": "9" * 5000 + " 1", "more": "1 2 3"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    result = cli("map", NETWORK, *options)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err


def test_an_empty_query_is_not_all_variables():
    for empty in ([], (), [[]], np.zeros(0, np.int64)):
        with pytest.raises(InputError, match="no variables to maximise over are given"):
            thesis_cli.map_state(NETWORK, over=empty)


def test_a_vector_has_no_query(cli):
    assert "a vector has no variables to maximise over" in cli("map", MODELS / "zipf-1000.csv", "--over", 0).err
