"""Programs that do the same are listed once, and no others are left out."""

from __future__ import annotations

from random import Random

import pytest

from tests.synthesis.brute_force import fitting
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.auto import Auto
from thesis_cli.synthesis.deductive.deductive_search import Deductive
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, LIST, OPERATIONS, Type, Value
from thesis_cli.synthesis.language.program import PROBES, Kept, Program, naturalness, parse, probes, run
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.bottom_up import BottomUp
from thesis_cli.synthesis.search.depth_first import DepthFirst
from thesis_cli.synthesis.search.solver import Limits, Order
from thesis_cli.synthesis.solvers import COMPILED, SOLVERS

UNIFORM = Order.uniform()
POSITIVE = Task("sum", (Example(((3, 1, 2),), 6), Example(((4, 9),), 13)))
ROTATED = Task("two", (Example((1, (5, 2, 7)), (5,)), Example((2, (3, 8, 1, 4)), (3, 8)), Example((0, (6,)), ())))


def text(program: Program) -> str:
    return program.one_line.split("; ", len(program.inputs))[-1]


def kept(*lines: str, inputs: str = "a <- [int]") -> Kept:
    found = Kept(parse(f"{inputs}; {lines[0]}").inputs, DEFAULT, distinct=True)
    for line in lines:
        found.add(parse(f"{inputs}; {line}"))
    return found


def on_other_inputs(program: Program) -> list[Value | None]:
    """Outputs on random inputs of the test's own, of integers without bounds."""
    rng = Random(5)
    found: list[Value | None] = []
    for _ in range(200):
        length = rng.randrange(9)
        values: list[Value | None] = []
        for kind in program.inputs:
            numbers = tuple(rng.randint(-20, 20) for _ in range(rng.choice([length, rng.randrange(9)])))
            values.append(numbers if kind is LIST else rng.randint(-3, 9))
        for line in program.lines:
            arguments = [values[i] for i in line.arguments]
            values.append(None if None in arguments else OPERATIONS[line.operation].trunc(*arguments))
        found.append(None if None in values else values[-1])
    return found


@pytest.mark.parametrize("inputs", [(LIST,), (INT, LIST), (LIST, LIST, INT)])
def test_probes_differ_and_have_the_types(inputs: tuple[Type, ...]) -> None:
    found = probes(inputs)
    assert len(found) == PROBES
    assert len(set(found)) > 0.9 * PROBES
    assert {tuple(INT if isinstance(value, int) else LIST for value in row) for row in found} == {inputs}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("b <- SORT a", "b <- SORT a; c <- ZIPWITH MIN b b"),
        ("b <- MAP (*2) a", "b <- ZIPWITH (+) a a"),
        ("b <- SORT a", "b <- REVERSE a; c <- SORT b"),
        ("b <- SUM a", "b <- MAP (*4) a; c <- MAP (/4) b; d <- SUM c"),  # only the range would tell
        ("b <- MAP (*4) a", "b <- MAP (*2) a; c <- MAP (*2) b"),
    ],
)
def test_the_best_of_two_that_do_the_same_is_kept(one: str, other: str) -> None:
    for found in (kept(one, other), kept(other, one)):
        assert (list(map(text, found.programs)), found.same) == ([one], [1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("b <- SUM a", "b <- FILTER (>0) a; c <- SUM b"),
        ("b <- SUM a", "b <- SCANL1 (+) a; c <- LAST b"),  # NULL of an empty list
        ("b <- MAP (/2) a", "b <- MAP (/3) a"),
        ("b <- SCANL1 MIN a", "b <- SORT a"),
    ],
)
def test_programs_that_differ_somewhere_are_both_kept(one: str, other: str) -> None:
    assert len(kept(one, other).programs) == 2


def test_products_that_grow_without_end_are_given_up() -> None:
    lines = ["b <- SCANL1 (*) a", *(f"{y} <- SCANL1 (*) {x}" for x, y in zip("bcdefghi", "cdefghij", strict=True))]
    found = kept("; ".join(lines), "; ".join(lines[:-1]), "b <- SCANL1 (*) a")
    assert len(found.programs) >= 2


@pytest.mark.parametrize("task", [POSITIVE, ROTATED], ids=lambda task: task.name)
def test_every_behaviour_that_fits_is_listed_once(task: Task) -> None:
    every = [p for t in (1, 2) for p, _ in fitting(task, t) if not set(p.unused) - set(range(len(p.inputs)))]
    behaviours = {tuple(on_other_inputs(program)) for program in every}
    found = DepthFirst().solve(task, UNIFORM, Limits(2, count=10**4, distinct=True))
    assert all(check(program, task) for program in found.programs)
    listed = [tuple(on_other_inputs(program)) for program in found.programs]
    assert len(listed) == len(set(listed)) > 3
    assert set(listed) == behaviours
    assert 0 < sum(found.same) <= len(every) - len(listed)
    assert found.exhausted == 2


def test_what_agrees_on_the_examples_alone_is_listed() -> None:
    found = Auto().solve(POSITIVE, UNIFORM, Limits(2, count=100, distinct=True))
    assert {"b <- SUM a", "b <- FILTER (>0) a; c <- SUM b"} <= set(map(text, found.programs))


def test_the_shortest_alone_are_listed_and_all_of_them() -> None:
    task = Task("twice", (Example(((2, 5, 9),), 18), Example(((1, 4),), 8)))
    assert not list(fitting(task, 1))
    behaviours = {tuple(on_other_inputs(program)) for program, _ in fitting(task, 2) if not program.unused}
    found = Auto().solve(task, UNIFORM, Limits(4, count=10**4, distinct=True, shortest=True))
    assert (found.exhausted, len(found.programs)) == (2, len(behaviours))
    assert {tuple(on_other_inputs(program)) for program in found.programs} == behaviours
    assert len(behaviours) > 1


def test_a_count_ends_the_search_at_so_many_behaviours() -> None:
    found = DepthFirst().solve(POSITIVE, UNIFORM, Limits(3, count=3, distinct=True))
    assert len(found.programs) == len(found.same) == 3
    assert len({tuple(on_other_inputs(program)) for program in found.programs}) == 3


def test_searches_in_plain_python_list_a_behaviour_once() -> None:
    found = Deductive().solve(POSITIVE, UNIFORM, Limits(2, count=4, distinct=True))
    assert len({tuple(on_other_inputs(program)) for program in found.programs}) == len(found.programs) == 4


@pytest.mark.parametrize("name", [*COMPILED, "deductive"])
def test_every_search_keeps_to_the_shortest_length(name: str) -> None:
    found = SOLVERS[name].make().solve(POSITIVE, UNIFORM, Limits(3, count=100, distinct=True, shortest=True))
    assert [text(program) for program in found.programs] == ["b <- SUM a"]


def test_natural_programs_come_first() -> None:
    lines = "b <- ZIPWITH (+) a a", "b <- SORT a; c <- SUM b", "b <- MAP (*2) a"
    programs = [parse(f"a <- [int]; {line}") for line in lines]
    assert sorted(programs, key=naturalness) == [programs[2], programs[0], programs[1]]


@pytest.mark.parametrize(
    ("line", "better"),
    [
        ("b <- ZIPWITH (+) a a", "b <- MAP (*2) a"),
        ("b <- SORT a; c <- ZIPWITH (*) b b", "b <- SORT a; c <- MAP (**2) b"),
        ("b <- SORT a; c <- ZIPWITH (+) a b", "b <- SORT a; c <- ZIPWITH (+) a b"),
        ("b <- SCANL1 (+) a; c <- ZIPWITH (-) b b", "b <- SCANL1 (+) a; c <- ZIPWITH (-) b b"),
    ],
)
def test_one_argument_comes_before_the_same_one_twice(line: str, better: str) -> None:
    found = Kept((LIST,), DEFAULT, distinct=False)
    before, after = (parse(f"a <- [int]; {text}") for text in (line, better))
    for program in (before, after, before):
        found.add(program)
    assert found.programs == [after]
    for numbers in ((3, -2, 9), (120, 1), (-128,), (-129,), (16, -16), ()):
        assert run(before, (numbers,)) == run(after, (numbers,))


def test_every_answer_is_natural() -> None:
    task = Task("double", (Example(((3, 1, -2),), (6, 2, -4)), Example(((7,),), (14,))))
    for solver in (Auto(), DepthFirst(), BottomUp(), Deductive()):
        assert text(solver.solve(task, prior.load(), Limits(1)).programs[0]) == "b <- MAP (*2) a"
