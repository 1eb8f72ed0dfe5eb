"""Depth-first search and Sort-and-add against plain enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthesis.strategies import SIGNATURES, inputs_of, programs
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.studies.synthesis.thesis_programs import SHOWN, Shown
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, BY_NAME, DEFAULT, INT, LIST, OPERATIONS, Semantics, Type
from thesis_cli.synthesis.language.program import Line, Program, natural, parse, run, search_space
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.depth_first import (
    ALL,
    EVERY,
    NONE,
    SLICE,
    DepthFirst,
    Examination,
    Pruning,
    SortAndAdd,
    active_sets,
)
from thesis_cli.synthesis.search.solver import Limits, Order, Solution

UNIFORM = Order.uniform()

ORDERS = st.permutations(range(len(ATTRIBUTES))).map(lambda ranks: Order(tuple(rank / 100 for rank in ranks)))


@st.composite
def tasks(draw: st.DrawFn, longest: int = 3) -> Task:
    """1 to 4 examples of a random program, on inputs where it has outputs."""
    program = draw(programs(longest))
    drawn = draw(st.lists(inputs_of(program), min_size=1, max_size=8, unique=True))
    found = [Example(values, output) for values in drawn if (output := run(program, values)) is not None]
    if not found:
        return Task("sorted", (Example(((2, 1),), (1, 2)),))
    return Task("drawn", tuple(found[:4]))


def impossible(inputs: tuple[Type, ...]) -> Task:
    """A task that no short program fits."""
    values = tuple(3 if kind is INT else (5, 1, 4) for kind in inputs)
    return Task("impossible", (Example(values, (7, -77, 177)),))


def enumerated(inputs: tuple[Type, ...], length: int, order: Order) -> Iterator[Program]:
    """All well-typed programs of a length, depth first."""

    def extend(types: tuple[Type, ...], lines: tuple[Line, ...]) -> Iterator[Program]:
        if len(lines) == length:
            yield Program(inputs, lines)
            return
        for id in order.operations:
            operation = OPERATIONS[id]
            for arguments in product(range(len(types)), repeat=len(operation.inputs)):
                if tuple(types[i] for i in arguments) == operation.inputs:
                    yield from extend((*types, operation.output), (*lines, Line(id, arguments)))

    return extend(inputs, ())


def found(solution: Solution) -> tuple[object, ...]:
    return solution.programs, solution.nodes, solution.exhausted, solution.stopped


def test_an_order_counts_the_less_probable_part() -> None:
    probabilities = dict.fromkeys(ATTRIBUTES, 0.1)
    probabilities |= {"MAP": 0.9, "(*2)": 0.4, "SORT": 0.5, "ZIPWITH": 0.3, "(+)": 0.8}
    order = Order(tuple(probabilities.values()))
    first = ["SORT", "MAP (*2)", "ZIPWITH (+)", "HEAD", "LAST"]
    assert [OPERATIONS[id].name for id in order.operations[:5]] == first
    assert sorted(order.operations) == list(range(38))
    assert UNIFORM.operations == tuple(range(38))


@pytest.mark.parametrize("probabilities", [(0.5,) * 33, (0.5,) * 33 + (1.5,), (0.5,) * 33 + (float("nan"),)])
def test_bad_probabilities_are_refused(probabilities: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="probabilit"):
        Order(probabilities)


@pytest.mark.parametrize("name", ["max_length", "timeout", "memory", "count"])
def test_limits_that_leave_nothing_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="is 0"):
        Limits(**{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("inputs", SIGNATURES, ids=str)
def test_without_pruning_every_program_is_examined_once(inputs: tuple[Type, ...]) -> None:
    length = 3 if inputs == (LIST,) else 2
    expected = sum(search_space(inputs, t) for t in range(1, length + 1))
    for solver in (DepthFirst(NONE), SortAndAdd(NONE)):
        solution = solver.solve(impossible(inputs), UNIFORM, Limits(length))
        assert found(solution) == ((), expected, length, "")
    assert inputs != (LIST,) or expected == 285_687


@settings(max_examples=examples(5))
@given(tasks(longest=2), ORDERS)
def test_all_programs_are_found_in_order(task: Task, order: Order) -> None:
    every = (p for t in (1, 2) for p in enumerated(task.inputs, t, order))
    fitting = list(dict.fromkeys(natural(p) for p in every if check(p, task)))
    every_one = Limits(2, count=len(fitting) + 1)
    solution = DepthFirst(NONE).solve(task, order, every_one)
    assert list(solution.programs) == fitting
    assert list(DepthFirst(NONE).solve(task, order, Limits(2, count=2)).programs) == fitting[:2]
    ever = SortAndAdd(NONE).solve(task, order, every_one)
    assert sorted(ever.programs, key=str) == sorted(fitting, key=str)


@settings(max_examples=examples(20))
@given(tasks(), ORDERS)
def test_pruning_keeps_the_first_program(task: Task, order: Order) -> None:
    limits = Limits(3)
    plain = DepthFirst(NONE).solve(task, order, limits)
    for pruning in (ALL, *Pruning):
        pruned = DepthFirst(pruning).solve(task, order, limits)
        assert pruned.program == plain.program
        assert pruned.exhausted == plain.exhausted
        assert pruned.proven == plain.proven
        assert pruned.nodes <= plain.nodes


@pytest.mark.parametrize(
    "lines",
    [
        "c <- ZIPWITH (-) b a",
        "c <- ZIPWITH (-) a b; d <- COUNT (>0) c",
        "c <- SORT a; d <- REVERSE b; e <- ZIPWITH (*) c d",
        "c <- MAP (*3) b; d <- SCANL1 (+) a; e <- ZIPWITH (-) c d",
    ],
)
def test_pruning_keeps_the_first_program_of_two_lists(lines: str) -> None:
    program = parse(f"a <- [int]; b <- [int]; {lines}")
    inputs = [((4, 1, 3), (2, 5, -6, 2)), ((-1, 7), (3, 0, 9)), ((6, -2, 8, 1), (1, 4, -3))]
    outputs = [run(program, values) for values in inputs]
    task = Task("two", tuple(Example(i, o) for i, o in zip(inputs, outputs, strict=True) if o is not None))
    order = Order(tuple(1 - place / 40 for place in range(len(ATTRIBUTES))))
    found, plain = (DepthFirst(pruning).solve(task, order, Limits(3)) for pruning in (ALL, NONE))
    assert found.program == plain.program is not None
    assert len(plain.programs[0]) == len(program)


def test_a_list_shorter_than_the_output_may_become_a_number() -> None:
    program = parse("a <- [int]; b <- FILTER (>0) a; c <- SUM b; d <- TAKE c a")
    inputs = [(3, -5, -1, -7, -2), (-4, 2, -9), (-1, -2, 1, 1, -3, -9), (-5, 1, -3, 2, -8)]
    outputs = [run(program, (numbers,)) for numbers in inputs]
    task = Task("short", tuple(Example((i,), o) for i, o in zip(inputs, outputs, strict=True) if o is not None))
    found, plain = (DepthFirst(pruning).solve(task, UNIFORM, Limits(3)).program for pruning in (ALL, NONE))
    assert found == plain == program


@pytest.mark.parametrize("pruning", Pruning, ids=lambda pruning: pruning.name)
def test_every_pruning_prunes(pruning: Pruning) -> None:
    task = impossible((INT, LIST, LIST))
    pruned = DepthFirst(pruning).solve(task, UNIFORM, Limits(2))
    assert pruned.nodes < DepthFirst(NONE).solve(task, UNIFORM, Limits(2)).nodes
    rest = DepthFirst(ALL & ~pruning).solve(task, UNIFORM, Limits(3))
    assert DepthFirst(ALL).solve(task, UNIFORM, Limits(3)).nodes < rest.nodes


@settings(max_examples=examples(20))
@given(tasks(), st.sampled_from([ALL, NONE]), st.booleans())
def test_slices_and_lazy_last_lines_change_nothing(task: Task, pruning: Pruning, lazily: bool) -> None:
    def examined(lazily: bool, budget: int) -> tuple[list[Program], int]:
        it = Examination(task, DEFAULT, 2, EVERY, 3, pruning, lazily)
        while it.advance(budget):
            pass
        return it.programs, it.nodes

    assert examined(lazily, 7) == examined(True, 10**6)


@pytest.mark.parametrize("shown", [s for s in SHOWN if s.name != "sticks"], ids=lambda shown: shown.name)
def test_the_programs_of_the_thesis_are_found(shown: Shown) -> None:
    task = shown.task()
    solution = DepthFirst().solve(task, UNIFORM, Limits(4))
    assert solution.program is not None
    assert solution.proven
    assert check(solution.program, task)
    assert len(solution.program) <= len(shown.program)


def test_an_output_that_is_an_input_takes_a_program() -> None:
    task = Task("same", (Example(((3, 1, 2),), (3, 1, 2)), Example(((0, 9, -4, 9),), (0, 9, -4, 9))))
    solution = DepthFirst().solve(task, UNIFORM, Limits(3))
    assert solution.program == parse("a <- [int]; b <- ZIPWITH MIN a a")


def test_division_and_range_are_heeded() -> None:
    task = Task("half", (Example(((-3, 5),), (-2, 2)),))
    floor = DepthFirst().solve(task, UNIFORM, Limits(1), Semantics("floor"))
    assert floor.program == parse("a <- [int]; b <- MAP (/2) a")
    assert DepthFirst().solve(task, UNIFORM, Limits(1)).program is None
    double = Task("double", (Example(((3, 5),), (6, 10)),))
    assert DepthFirst().solve(double, UNIFORM, Limits(1), Semantics(high=10)).program is not None
    assert DepthFirst().solve(double, UNIFORM, Limits(1), Semantics(high=9)).program is None


def test_active_sets_grow_by_attributes() -> None:
    probabilities = dict.fromkeys(ATTRIBUTES, 0.0)
    probabilities |= {"(+)": 0.9, "(>0)": 0.8, "ZIPWITH": 0.7, "SORT": 0.6, "SCANL1": 0.5}
    sets = active_sets(Order(tuple(probabilities.values())))
    names = [[OPERATIONS[id].name for id in chosen] for chosen in sets[:3]]
    assert names == [["ZIPWITH (+)"], ["ZIPWITH (+)", "SORT"], ["ZIPWITH (+)", "SORT", "SCANL1 (+)"]]
    assert all(set(a) < set(b) for a, b in pairwise(sets))
    assert sorted(sets[-1]) == list(range(38))


def test_sort_and_add_finds_over_the_smallest_set() -> None:
    probabilities = dict.fromkeys(ATTRIBUTES, 0.0) | {"MAP": 0.9, "(+1)": 0.8, "(-1)": 0.7}
    order = Order(tuple(probabilities.values()))
    task = Task("three", (Example(((1, 2),), (4, 5)), Example(((0,),), (3,))))
    solution = SortAndAdd().solve(task, order, Limits(4))
    assert solution.program == parse("a <- [int]; b <- MAP (+1) a; c <- MAP (+1) b; d <- MAP (+1) c")
    assert (solution.exhausted, solution.proven, solution.nodes) == (0, False, 3)
    one = Task("one", (Example(((1, 2),), (2, 3)),))
    assert SortAndAdd().solve(one, order, Limits(4)).proven
    fail = SortAndAdd().solve(impossible((LIST,)), order, Limits(2))
    assert (fail.program, fail.exhausted, fail.stopped) == (None, 2, "")


def test_sort_and_add_may_start_anew_with_each_set() -> None:
    task = impossible((LIST, LIST))
    once, again = (SortAndAdd(NONE, again=anew).solve(task, UNIFORM, Limits(2)) for anew in (False, True))
    assert once.nodes == search_space((LIST, LIST), 1) + search_space((LIST, LIST), 2)
    assert again.nodes > 2 * once.nodes
    assert again.exhausted == once.exhausted == 2


@pytest.mark.parametrize("kind", [DepthFirst, SortAndAdd])
def test_a_search_stops_after_some_programs(kind: type[DepthFirst | SortAndAdd]) -> None:
    """It goes on to the end of a slice, and finds what a longer search finds within as many."""
    task = impossible((LIST, LIST))
    few = kind(NONE).solve(task, UNIFORM, Limits(3, nodes=100_000))
    assert (few.program, few.stopped) == (None, "nodes")
    assert 100_000 <= few.nodes <= 100_000 + 2 * SLICE
    enough = kind(NONE).solve(task, UNIFORM, Limits(2, nodes=10**7))
    assert (enough.stopped, enough.exhausted) == ("", 2)


@pytest.mark.parametrize("solver", [DepthFirst(), SortAndAdd()], ids=lambda solver: solver.name)
def test_a_timeout_and_an_interrupt_say_so(solver: DepthFirst | SortAndAdd, monkeypatch: pytest.MonkeyPatch) -> None:
    task = impossible((LIST, LIST))
    solution = solver.solve(task, UNIFORM, Limits(8, timeout=1e-9, count=3))
    assert solution.stopped == "timeout"
    assert solution.exhausted < 8
    plain, calls = Examination.advance, iter(range(10))

    def interrupted(self: Examination, budget: int = 1000) -> bool:
        if next(calls) == 4:
            raise KeyboardInterrupt
        return plain(self, 1000)

    monkeypatch.setattr(Examination, "advance", interrupted)
    solution = solver.solve(task, UNIFORM, Limits(8))
    assert solution.stopped == "interrupted"
    assert solution.nodes <= 4000


@pytest.mark.parametrize("solver", [DepthFirst(), SortAndAdd()], ids=lambda solver: solver.name)
def test_a_list_that_does_not_fit_into_lanes_is_refused(solver: DepthFirst | SortAndAdd) -> None:
    wide = Task("long", (Example((tuple(range(32)),), 0),))
    with pytest.raises(InputError, match="list of 32 numbers"):
        solver.solve(wide, UNIFORM, Limits(1), Semantics(longest=40))


def test_lists_may_fill_all_lanes_but_one() -> None:
    numbers = tuple(range(31))
    task = Task("long", (Example((numbers,), numbers[::-1]),))
    solution = DepthFirst().solve(task, UNIFORM, Limits(1), Semantics(longest=31))
    assert solution.program == Program((LIST,), (Line(BY_NAME["REVERSE"].id, (0,)),))


def test_enumeration_is_complete() -> None:
    assert len(list(islice(enumerated((INT, LIST), 2, UNIFORM), 10**5))) == search_space((INT, LIST), 2)
