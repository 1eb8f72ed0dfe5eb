"""`thesis-cli synthesize`."""

import csv
import json
import math
import os

import numpy as np
import pytest

import thesis_cli as tc
from tests.conftest import ROOT
from thesis_cli.base.errors import InputError
from thesis_cli.commands.core.result import Result
from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.language.program import PROBES, parse
from thesis_cli.synthesis.language.task import Example, Task, check, load_tasks
from thesis_cli.synthesis.search.solver import Solution

TASKS = ROOT / "data" / "tasks"
SHORT = "paintings", "league", "exam", "trees", "mirror", "candy"


TIMES = dict.fromkeys(("found_after", "seconds"), "")

NESTED = []
NESTED.append(NESTED)


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
    assert row["solver"] in (("dfs", "bottom-up", "join") if solver == "auto" else (solver,))
    lines = result.out.splitlines()[1:6]
    assert [line[lines[0].index("a <-") :] for line in lines] == str(program).splitlines()
    assert "3 lines, proven shortest" in result.out or solver == "sort-and-add"


def test_smt(cli, tmp_path):
    found = json.loads(cli("synthesize", TASKS / "mirror.json", "--solver", "smt", "--json").out)
    assert found["found"][0]["length"] == 2
    assert found["found"][0]["solver"] == "smt"


def test_many_tasks_a_row_each(cli, tmp_path):
    lines = [line for line in (TASKS / "all.jsonl").read_text().splitlines() if json.loads(line)["name"] in SHORT]
    (tmp_path / "some.jsonl").write_text("\n".join(lines) + "\n")
    result = cli("synthesize", "some.jsonl", "--max-length", 3, "--jobs", 1, "--out", "s.csv", "--quiet")
    assert (result.status, result.err) == (0, "")
    found = rows(tmp_path / "s.csv")
    assert [row["task"] for row in found] == list(SHORT)
    assert {row["proven"] for row in found} == {"True"}


def few_lines(path, tasks=12):
    """A batch: tasks of one line, of two, of none."""
    inputs = [[3, -1, 2], [5, 0, -4, 1], [-2, 7]]
    outputs = [[sorted(xs) for xs in inputs], [[sum(xs)] for xs in inputs], [2 * max(xs) for xs in inputs]]
    outputs[1] = [sum(x > 0 for x in xs[1:]) + 200 for xs in inputs]
    lines = [json.dumps([[[x], y] for x, y in zip(inputs, outputs[i % 3], strict=True)]) for i in range(tasks)]
    path.write_text("\n".join(lines))


def test_many_tasks_are_summed_up_and_are_the_same_in_several_processes(cli, tmp_path):
    few_lines(tmp_path / "b.jsonl")
    options = "synthesize", "b.jsonl", "--max-length", 2, "--solver", "dfs"
    one, two = cli(*options, "--jobs", 1, "--out", "1.csv"), cli(*options, "--jobs", 2, "--out", "2.csv")
    assert one.status == two.status == 1
    found = rows(tmp_path / "1.csv")
    assert [row["task"] for row in found] == [f"b-{i + 1}" for i in range(12)]
    assert [row["length"] for row in found] == ["1", "", "2"] * 4
    assert [row | TIMES for row in rows(tmp_path / "2.csv")] == [row | TIMES for row in found]
    lines = one.out.splitlines()
    assert lines[:5] == [
        "tasks       12",
        "solved      8, of which 8 proven shortest",
        "lengths     4 of length 1, 4 of length 2",
        "not solved  4 searched to length 2",
        "solvers     dfs 12",
    ]
    assert [line.split()[0] for line in lines[5:]] == ["search", "per", "programs", "cost"]
    assert one.err == "wrote 1.csv\n"
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == [
        "1.csv",
        "1.json",
        "2.csv",
        "2.json",
        "b.jsonl",
    ]


def test_the_summary_of_many_as_json(cli, tmp_path):
    few_lines(tmp_path / "b.jsonl")
    shown = json.loads(cli("synthesize", "b.jsonl", "--max-length", 2, "--jobs", 1, "--json").out)
    summary = shown["summary"]
    assert (summary["tasks"], summary["solved"], summary["proven"], summary["no_program"]) == (12, 8, 8, 4)
    assert summary["nodes"] == sum(row["nodes"] for row in shown["found"])
    assert summary["seconds"]["median"] <= summary["seconds"]["q90"] <= summary["seconds"]["longest"]
    assert len(shown["found"]) == 12


def test_a_few_tasks_are_listed_each(cli, tmp_path):
    few_lines(tmp_path / "b.jsonl", 3)
    text = cli("synthesize", "b.jsonl", "--max-length", 2, "--jobs", 1).out
    assert [block.splitlines()[0].split()[1] for block in text.split("\n\n")] == ["b-1:", "b-2:", "b-3:"]


def test_searches_that_time_cuts_are_counted_apart(cli, tmp_path, monkeypatch):
    few_lines(tmp_path / "b.jsonl")

    def solve(self, task, order, limits, semantics):
        programs = (parse("a <- [int]; b <- SORT a"),) if task.name == "b-1" else ()
        return Solution(programs, "dfs", 10**6, 2.0 if task.name < "b-2" else 4.0, 0, "" if programs else "timeout")

    monkeypatch.setattr("thesis_cli.synthesis.search.depth_first.DepthFirst.solve", solve)
    text = cli("synthesize", "b.jsonl", "--solver", "dfs", "--jobs", 1, "--timeout", 4).out
    assert "solved      1, of which 1 proven shortest\n" in text
    assert "not solved  0 searched to length 5, 11 stopped by timeout\n" in text
    assert "search      12,000,000 programs examined in 40 s\n" in text
    assert "per task    median 4 s, 90% 4 s, 99% 4 s, longest 4 s\n" in text
    assert rows(tmp_path / "results/runs/synthesize-b.csv")[1]["stopped"] == "timeout"


def test_further_programs_have_rows_of_their_own_shortest_first(cli, tmp_path):
    result = cli("synthesize", TASKS / "league.json", "--programs", 3, "--max-length", 4)
    found = rows(tmp_path / "results/runs/synthesize-league.csv")
    (task,) = load_tasks(TASKS / "league.json")
    programs = [parse(row["program"]) for row in found]
    assert all(check(program, task) for program in programs)
    assert [(row["rank"], row["length"], row["proven"]) for row in found] == [
        ("1", "3", "True"),
        ("2", "4", "False"),
        ("3", "4", "False"),
    ]
    assert {row["programs"] for row in found} == {"3"}
    assert [line[:7] for line in result.out.splitlines()].count("program") == 3
    further = sum(int(row["same"]) for row in found)
    assert further > 0
    line = f"3 programs, as many as requested, compared on {PROBES} random inputs; {further} further programs did the"
    assert line in result.out


def test_all_lists_the_shortest_that_differ_somewhere(cli, tmp_path):
    (tmp_path / "t.json").write_text("[[[[2, 5, 9]], 18], [[[1, 4]], 8]]")
    shown = cli("synthesize", "t.json", "--all", "--json")
    found = json.loads(shown.out)
    programs = [row["program"].removeprefix("a <- [int]; ") for row in found["found"]]
    assert {row["length"] for row in found["found"]} == {2}
    assert {"b <- LAST a; c <- LAST b", "b <- SUM a"}.isdisjoint(programs)
    doubled = [{"b <- MAP (*2) a; c <- LAST b"}, {"b <- MAP (*2) a; c <- MAXIMUM b"}]
    assert all(len(one & set(programs)) == 1 for one in doubled)
    assert found["programs"] == 10_000
    text = cli("synthesize", "t.json", "--all", "--no-out").out
    assert f"{len(programs)} programs, all of 2 lines, compared on" in text
    text = cli("synthesize", "t.json", "--all", "--programs", 2, "--no-out").out
    assert "2 programs, as many as requested" in text


def test_bad_tasks_are_skipped_and_named(cli, tmp_path):
    good = "[[[[3, 1, 2]], [1, 2, 3]]]"
    (tmp_path / "b.jsonl").write_text(f"nonsense\n{good}\n[[[[1]], 300]]\n{good}\n")
    refused = cli("synthesize", "b.jsonl", "--jobs", 1)
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    result = cli("synthesize", "b.jsonl", "--skip-bad", "--jobs", 1)
    assert result.status == 1
    assert "b-1 is skipped: b.jsonl:1: not JSON" in result.err
    assert "b-3 is skipped: b.jsonl:3: example 1, output is out of range" in result.err
    assert [block.splitlines()[0].split()[1] for block in result.out.split("\n\n")] == ["b-1", "b-2:", "b-3", "b-4:"]
    found = rows(tmp_path / "results/runs/synthesize-b.csv")
    assert [(row["task"], row["length"], row["nodes"]) for row in found] == [
        ("b-1", "", ""),
        ("b-2", "1", found[1]["nodes"]),
        ("b-3", "", ""),
        ("b-4", "1", found[1]["nodes"]),
    ]
    assert found[2]["answer"].startswith("skipped: b.jsonl:3: example 1")
    (tmp_path / "b.jsonl").write_text("nonsense\n" * 11 + f"{good}\n" * 2)
    result = cli("synthesize", "b.jsonl", "--skip-bad", "--jobs", 1, "--no-out")
    assert "skipped     11 bad tasks" in result.out
    assert "1 other" in result.err.splitlines()[-1]
    (tmp_path / "b.jsonl").write_text("nonsense\n[1, 2]\n")
    assert cli("synthesize", "b.jsonl", "--skip-bad").status == 2


@pytest.mark.parametrize("numbers", [[300], [10**5000], NESTED])
def test_a_bad_task_of_python_is_skipped(numbers):
    good, bad = {"examples": [[[[3, 1]], [1, 3]]]}, {"name": "far", "examples": [[[numbers], 1]]}
    found = tc.synthesize([bad, good], skip_bad=True, jobs=1)
    assert (found.status, [task.name for task in found.tasks]) == (1, ["task-2"])
    assert found.bad[0].reason.source == "task-1"
    assert found.table["rank"].isna().tolist() == [True, False]


def test_longer_lists_are_taken_on_demand(cli, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps([[[[*range(31)]], 31], [[[5]], 1]]))
    assert "--max-list allows up to 31" in cli("synthesize", "t.json").err
    for solver in ("auto", "deductive"):
        result = cli("synthesize", "t.json", "--max-list", 31, "--max-length", 2, "--json", "--solver", solver)
        assert json.loads(result.out)["found"][0]["length"] is not None
    assert cli("synthesize", "t.json", "--max-list", 32).status == 2


def test_what_no_length_can_do_is_an_answer(cli, tmp_path, monkeypatch):
    few_lines(tmp_path / "b.jsonl")

    def solve(self, task, order, limits, semantics):
        return Solution((), "dfs", 0, 0.0, limits.max_length, refuted="the output is too long")

    monkeypatch.setattr("thesis_cli.synthesis.search.depth_first.DepthFirst.solve", solve)
    text = cli("synthesize", "b.jsonl", "--solver", "dfs", "--jobs", 1).out
    assert "not solved  0 searched to length 5, 12 of no length\n" in text
    answers = {row["answer"] for row in rows(tmp_path / "results/runs/synthesize-b.csv")}
    assert answers == {"no program of any length: the output is too long"}


def test_the_seconds_to_the_program_and_to_the_proof_are_told_apart(cli, tmp_path, monkeypatch):
    few_lines(tmp_path / "b.jsonl")
    sort = parse("a <- [int]; b <- SORT a")

    def solve(self, task, order, limits, semantics):
        return Solution((sort,), "join", 7, 3.0, 0, found_after=0.25)

    monkeypatch.setattr("thesis_cli.synthesis.search.depth_first.DepthFirst.solve", solve)
    text = cli("synthesize", "b.jsonl", "--solver", "dfs", "--jobs", 1).out
    assert "programs    found after a median of 0.25 s, proven after a median of 3 s\n" in text
    assert {row["found_after"] for row in rows(tmp_path / "results/runs/synthesize-b.csv")} == {"0.25"}
    (tmp_path / "t.json").write_text("[[[[1]], [1]]]")
    text = cli("synthesize", "t.json", "--solver", "dfs").out
    assert "search   join, found after 0.25 s; 7 programs examined in 3 s\n" in text


PRIOR = {"TAKE": 0.5, "REVERSE": 0.2, "FILTER": 0.25, "(>0)": 0.5, "SORT": 0.0}


def write_prior(path, heading="attribute,probability\n", rest=0.125, end=""):
    path.write_text(heading + "".join(f"{name}, {PRIOR.get(name, rest)}\n" for name in ATTRIBUTES) + end)


def test_programs_of_a_length_are_ranked_by_prior(cli, tmp_path):
    write_prior(tmp_path / "p.csv")
    (tmp_path / "t.json").write_text("[[[1, [4]], [4]]]")
    uniform, own = ("uniform", {}), ("p.csv", PRIOR)
    for prior, chosen in uniform, own:
        cli("synthesize", "t.json", "--programs", 60, "--max-length", 1, "--prior", prior, "--out", f"{prior}.o.csv")
        found = rows(tmp_path / f"{prior}.o.csv")
        assert len(found) > 5
        expected = []
        for row in found:
            uses = [ATTRIBUTES[a] for a in parse(row["program"]).attributes]
            product = math.prod(chosen.get(name, 0.125 if chosen else 0.5) for name in uses)
            expected.append(math.log(product) if product else -math.inf)
        assert [float(row["log_prior"]) for row in found] == pytest.approx(expected, abs=1e-6)
        assert expected == sorted(expected, reverse=True)
    assert found[0]["program"].endswith("TAKE a b")
    assert found[-1]["program"].endswith("SORT b")
    write_prior(tmp_path / "q.csv", heading="")
    assert cli("synthesize", "t.json", "--prior", "q.csv", "--json").status == 0


def test_another_prior_is_another_batch(cli, tmp_path, monkeypatch):
    few_lines(tmp_path / "b.jsonl", 2)
    write_prior(tmp_path / "p.csv")
    options = "synthesize", "b.jsonl", "--prior", "p.csv", "--jobs", 1, "--max-length", 1
    with monkeypatch.context() as disk:
        disk.setattr(Result, "save", lambda *_: os.open(tmp_path / "nowhere" / "x", 0))
        assert "2 of 2 tasks are kept; run the same command again" in cli(*options).err
        assert "2 of 2 tasks are kept from before" in cli(*options, "--jobs", 2).err
    write_prior(tmp_path / "p.csv", rest=0.25)
    assert "all tasks are solved again" in cli(*options).err


def test_a_bank_that_is_full_is_reported(cli, tmp_path):
    command = "synthesize", TASKS / "heaps.json", "--solver", "bottom-up", "--memory", 0.002
    shown = "4 lines, proven shortest; --memory 0.002 GiB was reached, and depth-first search took over"
    assert f"answer   {shown}\n" in cli(*command).out
    (row,) = rows(tmp_path / "results/runs/synthesize-heaps.csv")
    assert (row["answer"], row["stopped"], row["exhausted"]) == (shown, "memory", "3")


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
    assert "300; it must be a whole number from -256 to 255 (--range" in cli("synthesize", "u.json").err
    assert cli("synthesize", "u.json", "--range", -1000, 1000).status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "TASKS"),
        (["nowhere.json"], "nowhere.json: it cannot be read"),
        (["empty.json"], "empty.json: it is empty"),
        (["empty.json", "--timeout", "0"], "--timeout is 0"),
        (["empty.json", "--timeout", "nan"], "--timeout is nan"),
        (["empty.json", "--range", "5", "1"], "--range is 5 1"),
        (["empty.json", "--memory", "nan"], "--memory"),
        (["empty.json", "--memory", "inf"], "--memory is inf"),
        (["empty.json", "--max-length", "0"], "--max-length"),
        (["empty.json", "--programs", "0"], "--programs"),
        (["empty.json", "--all", "--solver", "smt"], "--all does not go with --solver smt"),
        (["empty.json", "--jobs", "0"], "--jobs"),
        (["lines.jsonl"], "lines.jsonl:2: example 1 has no list"),
        (["empty.json", "--prior", "nowhere.csv"], "--prior nowhere.csv cannot be read (No such file"),
        (["empty.json", "--prior", "empty.json"], "empty.json: no probability of HEAD, LAST"),
        (["empty.json", "--prior", "binary.csv"], "binary.csv: it is not CSV"),
        (["empty.json", "--prior", "twice.csv"], "twice.csv:36: 'SORT,0.1' is not"),
        (["empty.json", "--prior", "two.csv"], "two.csv:2: 'SORT,2' is not"),
        (["empty.json", "--prior", "nan.csv"], "nan.csv:1: 'SORT,nan' is not"),
        (["empty.json", "--prior", "unknown.csv"], "unknown.csv:1: 'FOLD,0.1' is not"),
        (["empty.json", "--prior", "unknown.csv", "--out", "unknown.csv"], "would overwrite the input"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_compiled(cli, tmp_path, monkeypatch, arguments, message):
    monkeypatch.setattr("thesis_cli.commands.synthesize.solver", lambda name: pytest.fail("it compiles"))
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "lines.jsonl").write_text("[[[[1]], 1]]\n[[[1], 1]]\n")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe")
    (tmp_path / "two.csv").write_text("\nSORT,2\n")
    (tmp_path / "nan.csv").write_text("SORT,nan\n")
    (tmp_path / "unknown.csv").write_text("FOLD,0.1\n")
    write_prior(tmp_path / "twice.csv", end="SORT,0.1\n")
    result = cli("synthesize", *arguments)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1


def test_tasks_of_python_are_those_of_a_file(tmp_path):
    path = TASKS / "mirror.json"
    (task,) = load_tasks(path)
    examples = [(example.inputs, np.array(example.output)) for example in task.examples]
    content = json.loads(path.read_text())
    expected = tc.synthesize(path).table.drop(columns=[*TIMES])
    for source in task, [task], content, [content]:
        assert tc.synthesize(source).table.drop(columns=[*TIMES]).equals(expected)
    found = tc.synthesize(examples, out=tmp_path / "t.csv")
    assert found.solutions[0].program == tc.synthesize(path).solutions[0].program
    assert found.status == 0
    assert "proven shortest" in str(found)
    assert len(rows(tmp_path / "t.csv")) == 1
    assert tc.synthesize([task, {"examples": examples}], max_length=2, jobs=1).table["task"].tolist() == [
        "mirror",
        "task-2",
    ]


def test_a_prior_of_python(tmp_path):
    prior = {name: PRIOR.get(name, 0.125) for name in ATTRIBUTES}
    write_prior(tmp_path / "p.csv")
    task = [(([1, [4]]), [4])]
    kept = ["program", "log_prior"]
    one, two = (tc.synthesize(task, programs=9, max_length=1, prior=p) for p in (prior, str(tmp_path / "p.csv")))
    assert one.table[kept].equals(two.table[kept])
    with pytest.raises(InputError, match="FOLD"):
        tc.synthesize(task, prior={**prior, "FOLD": 0.5})


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], "no examples"),
        ([(([1], [2]), 3.5)], "3.5"),
        ([Task("far", (Example(((999,),), 0),))], "far: example 1"),
        (7, "7"),
        ([([[10**5000]], 1)], "example 1, input 1, number 1 is out of range: a number of too many digits"),
        ([([NESTED], 1)], "nested too deeply"),
    ],
)
def test_what_is_no_task_of_python_is_refused(tasks, message):
    with pytest.raises(InputError, match=message):
        tc.synthesize(tasks)


@pytest.mark.parametrize(
    ("solver", "prior", "guide"),
    [
        ("sort-and-add", "corpus", "network lines-4"),
        ("sort-and-add", "uniform", "none"),
        ("beam", "corpus", "network program"),
        ("dfs", "corpus", "none"),
        ("guided", "uniform", "network next-line"),
    ],
)
def test_the_default_guide_is_the_solvers_unless_a_prior_is_given(solver, prior, guide):
    found = tc.synthesize("data/tasks/mirror.json", solver=solver, prior=prior, max_length=2, jobs=1)
    assert found.settings["guide"].startswith(guide)
    assert found.status == 0
