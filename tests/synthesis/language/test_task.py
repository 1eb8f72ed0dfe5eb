"""Tasks from JSON and JSON Lines, and everything that is none."""

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.synthesis.strategies import SIGNATURES, values
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, LIST, Semantics
from thesis_cli.synthesis.language.program import parse
from thesis_cli.synthesis.language.task import Example, Task, check, load_tasks, read_inputs, read_task, read_value

SORTED = [{"inputs": [[3, 1]], "output": [1, 3]}, {"inputs": [[]], "output": []}]
EXAMPLES = (Example(((3, 1),), (1, 3)), Example(((),), ()))


@pytest.fixture
def load(tmp_path):
    """Load a file of given text or bytes."""

    def load(content, **options):
        path = tmp_path / "task.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_tasks(path, **options)

    return load


@pytest.mark.parametrize(
    "content",
    [
        {"examples": SORTED},
        SORTED,
        [[[[3, 1]], [1, 3]], [[[]], []]],
        {"examples": [[[[3.0, 1]], [1, 3e0]], SORTED[1]], "about": {"other": "keys"}},
        {"name": "task", "examples": SORTED},
    ],
)
@pytest.mark.parametrize("indent", [None, 0, 2])
def test_one_task_in_all_its_forms(content, indent, load):
    (task,) = load(json.dumps(content, indent=indent))
    assert task == Task("task", EXAMPLES)
    assert (task.inputs, task.output) == ((LIST,), LIST)
    assert all(type(x) is int for example in task.examples for xs in (*example.inputs, example.output) for x in xs)


def test_a_task_a_line(load):
    lines = [json.dumps({"name": "one", "examples": SORTED}), "", json.dumps(SORTED), "[[[2, [1]], 7]]\r\n \n"]
    found = load("\ufeff" + "\n".join(lines))
    assert [task.name for task in found] == ["one", "task-3", "task-4"]
    assert found[1].examples == EXAMPLES
    assert found[2].inputs == (INT, LIST)
    assert found[2].output is INT


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(SORTED).encode())))
    assert load_tasks("-") == [Task("task", EXAMPLES)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[")))
    with pytest.raises(InputError, match=r"^standard input:1: not JSON"):
        load_tasks("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match=r"^standard input: it is closed"):
        load_tasks("-")


def one(inputs, output=1):
    return json.dumps([{"inputs": inputs, "output": output}])


RANGE = "it must be a whole number from -256 to 255"
BAD = [
    ("", ": it is empty"),
    (" \n\n", ": it is empty"),
    (b"\xff\xfe", ": it is not UTF-8"),
    ("{\n  'examples'", ":2: not JSON: Expecting property name enclosed in double quotes (column 3)"),
    ("[[[[1]], 1]\n\n", ":1: not JSON: Expecting ',' delimiter"),
    ("[" * 10**5, ": it is nested too deeply"),
    ("[" * 10**5 + "\n]", ": it is nested too deeply"),
    ("9" * 10**4, ": it has a number of too many digits"),
    ("3", ": no examples: 3"),
    ("null", ": no examples: null"),
    ('"text"', ": no examples: 'text'"),
    ("{}", ": the task has no 'examples'"),
    ("[]", ": the task has no examples"),
    ('{"examples": []}', ": the task has no examples"),
    ('{"examples": {}}', ": no examples: {}"),
    ('{"name": 3, "examples": []}', ": the task's name is 3"),
    ('{"name": "a\\nb", "examples": []}', ": the task's name is 'a\\nb'"),
    ('{"name": "\\ud800", "examples": []}', ": the task's name is '\\ud800'"),
    ('{"name": " ", "examples": []}', ": the task's name is ' '"),
    ("[3]", ": example 1 is 3; "),
    ("[[1, 2, 3]]", ": example 1 is [1, 2, 3]; "),
    ('[{"input": [[1]], "output": 1}]', ": example 1 has no 'inputs'; "),
    ('[{"inputs": [[1]]}]', ": example 1 has no 'output'; "),
    (one(3), ": example 1: the inputs are 3; it must be a list of 1 to 3"),
    (one([]), ": example 1 has 0 inputs;"),
    (one([[1], 2, 3, 4]), ": example 1 has 4 inputs;"),
    (one([1, 2, 3]), ": example 1 has no list among its inputs"),
    (one([1, "x"]), f": example 1, input 2 is 'x'; {RANGE}"),
    (one([[1, "2"]]), f": example 1, input 1, number 2 is '2'; {RANGE}"),
    (one([[1, [2]]]), f": example 1, input 1, number 2 is [2]; {RANGE}"),
    (one([[1, True]]), f": example 1, input 1, number 2 is true; {RANGE}"),
    (one([[1]], None), f": example 1, output is null; {RANGE}"),
    (one([[1]], False), f": example 1, output is false; {RANGE}"),
    (one([[1]], 0.5), f": example 1, output is 0.5; {RANGE}"),
    (one([[1]], float("nan")), f": example 1, output is nan; {RANGE}"),
    (one([[1]], float("inf")), f": example 1, output is inf; {RANGE}"),
    (one([[1]], {}), f": example 1, output is {{}}; {RANGE}"),
    ("[[[[1]], 1e400]]", f": example 1, output is inf; {RANGE}"),
    (one([[1]], 1e300), ": example 1, output is out of range: 1000000000000000"),
    (one([[1]], 10**4000), ": example 1, output is out of range: 1000000000000000"),
    (one([[1]], 256), f": example 1, output is out of range: 256; {RANGE}"),
    (one([[1, -257]]), f": example 1, input 1, number 2 is out of range: -257; {RANGE}"),
    (one([[1] * 21]), ": example 1, input 1 is a list of 21 numbers; it may have at most 20"),
    (one([[1]], [1] * 21), ": example 1, output is a list of 21 numbers"),
    (one([[1]], "x" * 10**6), ": example 1, output is 'xxxx"),
    ("[[[[1]], " + "[" * 400 + "]" * 400 + "]]", ": example 1, output, number 1 is [[[["),
    ("[[[[1]], 1], [[1, [1]], 1]]", ": example 2 is (int, [int]) -> int; it must be ([int]) -> int"),
    ("[[[[1]], 1], [[[1]], [1]]]", ": example 2 is ([int]) -> [int]; it must be ([int]) -> int"),
    (
        "[[[[1]], 1], [[[2]], 1], [[[1]], 2]]",
        ": examples 1 and 3 give different outputs for the same inputs",
    ),
    ("[[[[1]], 1]]\n[[[[1]], 1]\n", ":2: not JSON: Expecting ',' delimiter"),
    ("[[[[1]], 1]]\n\n[[[[1]], true]]\n", ":3: example 1, output is true"),
    ("[[[[1]], 1]]\n" + "[" * 10**5, ":2: it is nested too deeply"),
]


@pytest.mark.parametrize(("content", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_tasks_are_refused_in_one_line(content, message, load, tmp_path):
    with pytest.raises(InputError) as caught:
        load(content)
    found = str(caught.value)
    assert found.startswith(f"{tmp_path / 'task.json'}{message}")
    assert found.isprintable()
    assert len(found) < 400


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match=r"no\.json: it cannot be read \(No such file or directory\)"):
        load_tasks(tmp_path / "no.json")
    with pytest.raises(InputError, match="it cannot be read"):
        load_tasks(tmp_path)


def test_files_that_are_too_large(load, monkeypatch):
    text = json.dumps(SORTED)
    monkeypatch.setattr("thesis_cli.synthesis.language.task.MAX_BYTES", len(text))
    assert load(text)
    with pytest.raises(InputError, match="larger than"):
        load(text + " ")


def test_the_range_and_the_longest_list_are_those_of_the_semantics(load):
    text = one([[300] * 21], -300)
    with pytest.raises(InputError):
        load(text)
    assert load(text, semantics=Semantics(low=-300, high=300, longest=21))[0].output is INT
    with pytest.raises(InputError, match="a whole number from -299 to 300"):
        load(text, semantics=Semantics(low=-299, high=300, longest=21))
    assert read_inputs([1, [2]], "x", Semantics(low=1, high=2)) == (1, (2,))
    assert read_value(255, "x") == 255


def test_repeated_examples_do_no_harm():
    assert len(read_task([*SORTED, SORTED[0]], "x").examples) == 3


tasks = st.sampled_from(SIGNATURES).flatmap(
    lambda inputs: st.sampled_from((INT, LIST)).flatmap(
        lambda output: st.lists(
            st.builds(Example, st.tuples(*map(values, inputs)), values(output)),
            min_size=1,
            max_size=5,
            unique_by=lambda example: example.inputs,
        )
    )
)


@given(tasks)
def test_what_is_written_is_read(examples):
    task = Task("näme", tuple(examples))
    assert read_task(json.loads(task.to_json()), "other") == task
    assert "\n" not in task.to_json()


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["inputs", "output", "name"]), inner),
)


@given(json_values | st.lists(st.tuples(json_values, json_values).map(list)))
def test_any_json_is_a_task_or_refused(content):
    try:
        message, inputs = "", read_task(content, "x", DEFAULT).inputs
    except InputError as error:
        message, inputs = str(error), (LIST,)
    assert message.isprintable()
    assert LIST in inputs


def test_a_program_fits_all_examples_or_does_not():
    task = Task("x", EXAMPLES)
    assert check(parse("a <- [int]; b <- SORT a"), task)
    assert check(parse("a <- [int]; b <- REVERSE a"), task)
    assert not check(parse("a <- [int]; b <- REVERSE a"), Task("x", (*EXAMPLES, Example(((1, 2),), (1, 2)))))
    assert not check(parse("a <- [int]; b <- SUM a"), task)
    assert not check(parse("a <- [int]; k <- int; b <- SORT a"), task)
    halves = Task("x", (Example(((-1,),), (-1,)),))
    assert not check(parse("a <- [int]; b <- MAP (/2) a"), halves)
    assert check(parse("a <- [int]; b <- MAP (/2) a"), halves, Semantics("floor"))


def test_a_name_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"inputs": [[1, 2]], "inputs": [[1, 3]], "output": 3}]')
    with pytest.raises(InputError, match="'inputs' occurs twice"):
        load_tasks(path)
