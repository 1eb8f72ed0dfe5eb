"""`thesis-cli synthesize`: the program that was meant, and questions about it."""

import io
import json
import sys
from contextlib import suppress

import pytest

import thesis_cli as tc
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.journal import Journal
from thesis_cli.synthesis.language.dsl import DEFAULT
from thesis_cli.synthesis.language.program import parse, run

MEANT = parse("k <- int; a <- [int]; b <- DROP k a; c <- ZIPWITH (-) b a; d <- MAXIMUM c")
"""The biggest rise within k days."""

PRICES = (1, [3, 8, 2, 4]), (2, [1, 2, 10, 4])
TASK = [[list(row), run(MEANT, (row[0], tuple(row[1])))] for row in PRICES]


def user(result):
    """The output that a user gives who means the program."""
    return run(MEANT, result.question())


def test_answers_settle_which_program_was_meant():
    found = tc.synthesize(TASK, max_length=3)
    first = found.solutions[0]
    assert first.meaning.behaviours > 0
    assert 0 < first.meaning.shares[0] < 0.99
    while found.question() is not None and len(found.answers) < 5:
        found = found.answer(user(found))
    assert found.solutions[0].meaning.shares[0] > max(first.meaning.shares[0], 0.9)
    assert all(run(found.solutions[0].program, e.inputs) == e.output for e in found.answers)
    assert len(found.tasks[0].examples) == 2 + len(found.answers)
    assert found.facts()["answers"][0]["output"] == found.answers[0].output


RAISED = parse("a <- [int]; b <- MAP (/4) a; c <- MAP (+1) b; d <- ZIPWITH MAX a c")
"""Changes 0 alone."""

POSITIVE = [[[list(row)], list(run(RAISED, (row,)))] for row in ((7, 2, 5, 9), (2, 7, 1), (6, 8, 5, 7, 4))]


def test_an_answer_that_was_the_only_one_is_tested_and_gives_way_to_a_longer_one():
    found = tc.synthesize(POSITIVE, max_length=3)
    first = found.solutions[0]
    assert (len(first.program), first.meaning.behaviours) == (1, 0)
    while found.question() is not None and len(found.answers) < 6:
        found = found.answer(list(run(RAISED, found.question())))
        assert len(found.solutions[0].program) == 3
        assert found.tasks[0].confirmed == len(found.answers) - 1
    assert found.question() is None
    assert found.solutions[0].meaning.shares[0] > 0.99


def test_an_output_that_no_behaviour_gives_leads_to_others_or_to_none():
    found = tc.synthesize([[[[3, 1, 2]], 3], [[[5, 9]], 9]], max_length=2)
    before = found.solutions[0].program
    other = found.answer(-200)
    assert other.status == 1
    assert "no program of at most 2 lines" in other.summary()
    assert found.solutions[0].program is before
    with pytest.raises(InputError, match="nothing is asked"):
        other.answer(3)


def test_examples_that_cannot_hold_together_are_named():
    task = [[[[3, 1, 2]], [1, 2, 3]], [[[2, 1, 3]], [3, 1, 2]], [[[2, 1]], [1, 2]]]
    text = tc.synthesize(task, max_length=1).summary()
    assert "examples 1 and 2 cannot both hold: `a <- [int]; b <- REVERSE a` fits without 1" in text


@pytest.mark.parametrize(("low", "high"), [(200, 255), (7, 7), (-9, -2)])
def test_questions_keep_to_the_range(low, high):
    """No probe of other kinds is within the first and the last range."""
    task = [[[low, [high, low]], [low, high]], [[high, [high, low, low]], [low, low, high]]]
    found = tc.synthesize(task, range=(low, high), max_length=2)
    assert all(0 < share <= 1 for share in found.solutions[0].meaning.shares)
    for number, numbers in found.solutions[0].meaning.settles:
        assert low <= min(number, *numbers) <= max(number, *numbers) <= high


def test_an_answer_of_another_type_is_refused():
    found = tc.synthesize(TASK, max_length=3)
    for output, says in (([1], r"of type \[int\]"), ("[1", "it must be a number or a list"), (300, "out of range")):
        with pytest.raises(InputError, match=says):
            found.answer(output)
    several = tc.synthesize([{"examples": TASK}, {"examples": TASK}], max_length=3, jobs=1)
    with pytest.raises(InputError, match="questions are for one task"):
        several.question()


def test_a_terminal_is_asked(cli, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    (tmp_path / "t.json").write_text(json.dumps(TASK))
    plain = cli("synthesize", "t.json", "--max-length", 3, "--ask")
    assert "settles it" in plain.out
    assert "the output is" not in plain.err
    question = tc.synthesize(TASK, max_length=3).question()
    right = json.dumps(run(MEANT, question))
    monkeypatch.setattr(sys, "stdin", Terminal(f"[7]\n{right}\n\n"))
    asked = cli("synthesize", "t.json", "--max-length", 3, "--ask", "--json")
    assert asked.status == 0
    assert asked.err.count("the output is") >= 2
    assert "the output is of type [int]; it must be int" in asked.err
    found = json.loads(asked.out)
    assert found["answers"] == [{"inputs": [question[0], list(question[1])], "output": json.loads(right)}]
    assert found["found"][0]["share"] == found["meant"][0]["behaviours"][0]["share"]
    assert [path.name for path in (tmp_path / "results/runs").glob("*.csv")] == ["synthesize-t.csv"]
    assert cli("synthesize", "t.json", "--ask", "--shortest").status == 2


def test_shortest_is_the_rule_without_probabilities(cli, tmp_path):
    (tmp_path / "t.json").write_text("[[[[1, 5], [2, 3]], [1, 5]], [[[4, 6], [9, 8]], [4, 6]]]")
    one = json.loads(cli("synthesize", "t.json", "--shortest", "--max-length", 2, "--json", "--no-out").out)
    assert (one["found"][0]["share"], one.get("meant")) == (None, None)
    assert one["found"][0]["proven"]
    dfs = json.loads(cli("synthesize", "t.json", "--solver", "dfs", "--max-length", 2, "--json", "--no-out").out)
    assert dfs["found"][0]["program"] == one["found"][0]["program"]
    two = json.loads(cli("synthesize", "t.json", "--max-length", 2, "--json", "--no-out").out)
    assert two["found"][0]["program"] != one["found"][0]["program"]
    assert not two["found"][0]["proven"] or two["found"][0]["length"] == one["found"][0]["length"]


def test_a_journal_keeps_meanings_and_doubts(tmp_path):
    wrong = [[[[3, 1]], [1, 3]], [[[5, 4]], [4, 5]], [[[2, 0]], [2, 1]], [[[8, 1]], [1, 8]]]
    found = tc.synthesize([{"examples": TASK}, {"examples": wrong}], max_length=3, jobs=1)
    orders = [prior.load()] * 2
    with suppress(KeyboardInterrupt), Journal(tmp_path / "t.csv", found.tasks, orders, {}, DEFAULT) as journal:
        for place, solution in enumerate(found.solutions):
            journal.add(place, solution)
        raise KeyboardInterrupt
    with Journal(tmp_path / "t.csv", found.tasks, orders, {}, DEFAULT) as journal:
        assert [journal.kept[place] for place in (0, 1)] == list(found.solutions)
    assert [doubt.example for doubt in found.solutions[1].doubts] == [2]
