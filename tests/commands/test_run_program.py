"""`thesis-cli run-program`."""

import json

import numpy as np
import pytest

import thesis_cli as tc
from thesis_cli.base.errors import InputError
from thesis_cli.commands.core.fields import fields_of
from thesis_cli.synthesis.language.dsl import LONGEST
from thesis_cli.synthesis.language.packing import WIDTH
from thesis_cli.synthesis.language.program import parse

SORT = "a <- [int]; b <- SORT a"


def test_a_program_is_run(cli):
    result = cli("run-program", "a <- [int]; b <- FILTER (<0) a; c <- SORT b", "[[3, -1, 2, -5]]")
    assert (result.status, result.out.splitlines()[0]) == (0, "value  [-5, -1]")
    for program, inputs in ("HEAD a", "[[]]"), ("MAP (**2) a", "[[100]]"):
        assert json.loads(cli("run-program", f"a <- [int]; b <- {program}", inputs, "--json").out)["value"] is None


def test_a_program_of_python_is_run():
    assert tc.run_program(SORT, ([3, 1, 2],)).value == (1, 2, 3)
    assert tc.run_program(parse(SORT), [np.array([3, 1, 2])]).value == (1, 2, 3)
    assert tc.run_program("k <- int; b <- [int]; c <- TAKE k b", [1, (5, 6)]).value == (5,)
    assert tc.run_program("a <- [int]; b <- MAP (/2) a", [[-3]], division="floor").value == (-2,)


def test_lists_are_as_long_as_lanes_allow():
    from thesis_cli.commands.run_program import RunProgramRequest

    assert fields_of(RunProgramRequest)["max_list"].about.most == LONGEST == WIDTH - 1
    assert len(tc.run_program(SORT, [[1] * 31], max_list=31).value) == 31
    with pytest.raises(InputError, match="--max-list"):
        tc.run_program(SORT, [[1] * 21])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([SORT, "[[1"], "[[1"),
        (["a <- [int]; b <- SORT z", "[[1]]"], "z"),
        (["a <- [int]; b <- FOLD a", "[[1]]"], "FOLD"),
        (["a <- [int]; b <- MAP (*7) a", "[[1]]"], "(*7)"),
        ([SORT, "[[1], [2]]"], "the program takes ([int])"),
        ([SORT, "[1, [2]]"], "the program takes ([int])"),
        ([SORT, '[["x"]]'], "INPUTS, input 1, number 1 is 'x'"),
        ([SORT, "[[1]]", "--range", "5", "1"], "--range is 5 1"),
    ],
)
def test_bad_input_is_one_line(cli, arguments, message):
    result = cli("run-program", *arguments)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1
