import csv
import json
import shlex

import pytest

from tests.conftest import ROOT
from thesis_cli.cli import synthesize
from thesis_cli.synthesis.program import parse
from thesis_cli.synthesis.task import check, load_tasks

TASKS = ROOT / "data" / "tasks"
SHORT = "paintings", "league", "exam", "trees", "mirror", "candy"


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("solver", ["auto", "dfs", "sort-and-add", "bottom-up", "deductive"])
def test_the_shortest_program_is_printed_and_kept(cli, tmp_path, solver):
    result = cli("synthesize", TASKS / "league.json", "--solver", solver, "--max-length", 3)
    assert result.status == 0
    (row,) = rows(tmp_path / "results/runs/synthesize-league.csv")
    (task,) = load_tasks(TASKS / "league.json")
    program = parse(row["program"])
    assert check(program, task)
    assert (len(program), row["length"], row["programs"]) == (3, "3", "1")
    assert row["solver"] == ("dfs" if solver == "auto" else solver)
    assert [line[9:] for line in result.out.splitlines()[1:6]] == str(program).splitlines()
    assert "3 lines, proven shortest" in result.out or solver == "sort-and-add"


def test_smt(cli, tmp_path):
    found = json.loads(cli("synthesize", TASKS / "mirror.json", "--solver", "smt", "--json").out)
    assert found["found"][0]["length"] == 2
    assert "SMT (z3)" in found["found"][0]["solver"]


def test_many_tasks_a_row_each(cli, tmp_path):
    lines = [line for line in (TASKS / "all.jsonl").read_text().splitlines() if json.loads(line)["name"] in SHORT]
    (tmp_path / "some.jsonl").write_text("\n".join(lines) + "\n")
    result = cli("synthesize", "some.jsonl", "--max-length", 3, "--out", "s.csv", "--quiet")
    assert (result.status, result.err) == (0, "")
    found = rows(tmp_path / "s.csv")
    assert [row["task"] for row in found] == list(SHORT)
    assert {row["proven"] for row in found} == {"True"}


def test_further_programs_are_listed_shortest_first(cli, tmp_path):
    result = cli("synthesize", TASKS / "mirror.json", "--all", 3, "--max-length", 3, "--json")
    assert json.loads(result.out)["found"][0]["programs"] == 3
    text = cli("synthesize", TASKS / "mirror.json", "--all", 3, "--max-length", 3).out
    assert text.count("program") >= 3


def test_no_program_is_an_answer(cli, tmp_path):
    (tmp_path / "t.json").write_text('[{"inputs": [[1, 2]], "output": 200}, {"inputs": [[3]], "output": -7}]')
    result = cli("synthesize", "t.json", "--max-length", 2)
    assert result.status == 1
    assert "no program of at most 2 lines was found; all of at most 2 lines are exhausted" in result.out
    assert rows(tmp_path / "results/runs/synthesize-t.csv")[0]["program"] == ""


def test_division_and_range_change_what_fits(cli, tmp_path):
    (tmp_path / "t.json").write_text('[{"inputs": [[-3, 5]], "output": [-2, 2]}]')
    options = "synthesize", "t.json", "--max-length", 1, "--json"
    assert json.loads(cli(*options).out)["found"][0]["length"] is None
    assert json.loads(cli(*options, "--division", "floor").out)["found"][0]["program"].endswith("MAP (/2) a")
    (tmp_path / "u.json").write_text('[{"inputs": [[300]], "output": 300}]')
    assert "300" in cli("synthesize", "u.json").err
    assert cli("synthesize", "u.json", "--range", -1000, 1000).status == 0


def test_a_program_is_run(cli):
    result = cli("synthesize", "--run", "a <- [int]; b <- FILTER (<0) a; c <- SORT b", "[[3, -1, 2, -5]]")
    assert (result.status, result.out) == (0, "[-5, -1]\n")
    assert cli("synthesize", "--run", "a <- [int]; b <- HEAD a", "[[]]").out == "null\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "TASKS is missing"),
        (["nowhere.json"], "nowhere.json: it cannot be read"),
        (["empty.json"], "empty.json: it is empty"),
        (["--run", "a <- [int]; b <- SORT a", "[[1"], "are no JSON"),
        (["--run", "a <- [int]; b <- SORT z", "[[1]]"], "z"),
        (["--run", "a <- [int]; b <- SORT a", "[[1]]", "empty.json"], "--run with TASKS"),
        (["empty.json", "--timeout", "0"], "the timeout is 0"),
        (["empty.json", "--range", "5", "1"], "range"),
    ],
)
def test_bad_input_is_one_line(cli, tmp_path, arguments, message):
    (tmp_path / "empty.json").write_text("")
    result = cli("synthesize", *arguments)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("line", [x.strip() for x in synthesize.EXAMPLES.splitlines() if " thesis-cli " in x])
def test_the_examples_of_the_help_run_as_they_stand(cli, tmp_path, line):
    (tmp_path / "data").symlink_to(ROOT / "data")
    assert cli(*shlex.split(line)[1:]).status in ((0, 1) if "--timeout" in line else (0,))
