"""Programs that fit, in classes of equal behaviour."""

from itertools import product

import numpy as np

from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import DEEPCODER, DEFAULT, OPERATIONS, Semantics
from thesis_cli.synthesis.language.program import Line, Program, parse, run
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.meant.classes import Runner, collect, inputs_for, inputs_like, lines_of
from thesis_cli.synthesis.search.solver import Limits

TASK = Task("t", (Example(((2, 5),), 5),))


def all_programs(inputs, length):
    """Every well-typed program of a length."""
    programs = [()]
    for _ in range(length):
        longer = []
        for lines in programs:
            kinds = [*inputs, *(OPERATIONS[line.operation].output for line in lines)]
            for operation in DEEPCODER.operations:
                places = [[v for v, kind in enumerate(kinds) if kind is taken] for taken in operation.inputs]
                longer += [(*lines, Line(operation.id, arguments)) for arguments in product(*places)]
        programs = longer
    return [Program(inputs, lines) for lines in programs]


def test_every_behaviour_of_a_length_is_collected():
    found = collect(TASK, prior.load(), Limits(2), DEFAULT)
    assert found.complete == 2
    programs = [program for length in (1, 2) for program in all_programs(TASK.inputs, length)]
    fitting = [program for program in programs if max(program.unused, default=0) == 0 and check(program, TASK)]
    wide = Semantics(low=-(2**15 - 2), high=2**15 - 2)
    behaviours = {tuple(run(program, inputs, wide) for inputs in found.inputs) for program in fitting}
    collected = [behaviour.program(TASK) for behaviour in found.behaviours.values()]
    assert {tuple(run(program, inputs, wide) for inputs in found.inputs) for program in collected} == behaviours
    assert len(collected) == len(behaviours) > 3


def test_outputs_of_compiled_programs_are_those_of_the_plain_interpreter():
    task = Task("t", (Example((2, (3, -1, 40)), (3, -1)), Example((0, (1,)), ())))
    inputs = inputs_for(task)
    texts = ["c <- TAKE a b", "c <- DROP a b", "c <- MAP (**2) b", "c <- SCANL1 (*) b"]
    for wide, semantics in ((False, DEFAULT), (True, Semantics(low=-(2**15 - 2), high=2**15 - 2))):
        runner = Runner(inputs, DEFAULT, wide)
        programs = [parse(f"a <- int; b <- [int]; {text}") for text in texts]
        codes = runner.codes(np.stack([lines_of(program) for program in programs]))
        outputs = [run(program, row, semantics) for program in programs for row in inputs]
        seen = {}
        for code, output in zip(codes.ravel().tolist(), outputs, strict=True):
            assert (code == 0) == (output is None)
            assert seen.setdefault(code, output) == output
        assert len(seen) == len(set(outputs))


def test_work_ends_a_collection_at_the_same_program(monkeypatch):
    monkeypatch.setattr("thesis_cli.synthesis.meant.classes.WORK", 3000)
    one, two = (collect(TASK, prior.load(), Limits(4), DEFAULT) for _ in range(2))
    assert one.complete < 3
    assert list(one.behaviours) == list(two.behaviours)


def test_inputs_are_of_the_kind_of_the_task():
    rows = (((1, 4, 7), (2, 2, 9)), ((3, 5), (0, 1)), ((2, 6, 6, 8), (1, 1, 4, 5)))
    task = Task("t", tuple(Example(row, 0) for row in rows))
    found = inputs_like(task, 50, np.random.default_rng(1))
    assert all(len(a) == len(b) and a == tuple(sorted(a)) and min(a + b, default=0) >= 0 for a, b in found)
    assert {len(a) for a, _ in found} == {1, 2, 3, 4, 5}
    assert len(set(found)) > 40
    assert inputs_for(task) == inputs_for(task)
    mixed = Task("t", (Example((5, (1, -200)), 0), Example((-9, (250,)), 0)))
    assert all(DEFAULT.holds(value) for row in inputs_for(mixed) for value in row)
