"""What every solver finds and claims, on random tasks, against exhaustive search.

The long tier takes z3 to 3 lines.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.synthesis.strategies import SIGNATURES
from tests.tiers import examples, is_long
from thesis_cli.synthesis.auto import Auto, MeetInTheMiddle
from thesis_cli.synthesis.deductive.deductive_search import Deductive
from thesis_cli.synthesis.deductive.smt_search import Smt
from thesis_cli.synthesis.guided.anytime_beam import AnytimeBeam
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEEPCODER, LIST, WIDEST, Semantics, Type, Value
from thesis_cli.synthesis.language.program import Line, Program, run
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.bottom_up import BottomUp
from thesis_cli.synthesis.search.depth_first import NONE, Clock, DepthFirst, SortAndAdd
from thesis_cli.synthesis.search.solver import Limits, Order, Solution, Solver
from thesis_cli.synthesis.solvers import SOLVERS

COMPILED: list[Solver] = [
    DepthFirst(),
    SortAndAdd(),
    BottomUp(),
    BottomUp(prove=False),
    BottomUp(costs="prior"),
    Auto(),
    MeetInTheMiddle(),
    AnytimeBeam(),
    AnytimeBeam(tails=False),
]


@pytest.fixture(scope="module", autouse=True)
def _prepared() -> None:
    """What a solver loads looks at a clock, too, and not at the one of a test."""
    for entry in SOLVERS.values():
        entry.prepare()


def cases_of(number: int) -> settings:
    """So many, and more in the long tier; values from a seed cannot be made simpler."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples(number),
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=slow,
    )


@dataclass(frozen=True)
class Case:
    """A task, and how it is to be solved."""

    task: Task
    order: Order
    limits: Limits
    semantics: Semantics

    @cached_property
    def least(self) -> int | None:
        """Length of the shortest program that fits, up to the greatest length; None if there is
        none."""
        limits = Limits(self.limits.max_length)
        program = DepthFirst(NONE).solve(self.task, Order.uniform(), limits, self.semantics).program
        return None if program is None else len(program)

    def solve(self, solver: Solver) -> Solution:
        """Whatever a solver finds and claims is true."""
        found = solver.solve(self.task, self.order, self.limits, self.semantics)
        lengths = [len(program) for program in found.programs]
        assert all(check(program, self.task, self.semantics) for program in found.programs)
        assert len(set(found.programs)) == len(lengths) <= self.limits.count
        assert lengths == sorted(lengths)
        assert max(lengths, default=0) <= self.limits.max_length
        assert 0 <= found.exhausted <= self.limits.max_length
        if self.least is None or self.least > found.exhausted:
            assert all(length > found.exhausted for length in lengths)
        else:
            assert lengths[:1] == [self.least]
        assert not found.proven or lengths[0] == self.least
        return found

    def solve_wholly(self, solver: Solver) -> None:
        """A solver that nothing stops finds everything, and reports it."""
        found = self.solve(solver)
        assert found.stopped == ""
        assert (found.program is None) == (self.least is None)
        assert found.program is None or found.proven
        if found.program is None or (len(found.programs) < self.limits.count and not isinstance(solver, BottomUp)):
            assert found.exhausted == self.limits.max_length

    def solve_partly(self, solver: Solver, looks: int, interrupted: bool) -> None:
        """The time is up, or the user interrupts, when a solver has looked at the clock so many
        times."""
        assert self.least != 0  # sought before the clock is another
        numbers = count()

        def is_up(_: Clock) -> bool:
            up = next(numbers) >= looks
            if up and interrupted:
                raise KeyboardInterrupt
            return up

        with patch.object(Clock, "is_up", property(is_up)):
            found = self.solve(solver)
        cut = "interrupted" if interrupted else "timeout"
        assert found.stopped == (cut if next(numbers) > looks else "")


@st.composite
def semantics(draw: st.DrawFn, widest: int) -> Semantics:
    """Either division; the usual range, one that is `widest` to either side, or a narrow one."""
    low = draw(st.integers(-40, 5))
    bounds = draw(
        st.sampled_from([(-256, 255), (-widest, widest)]) | st.tuples(st.just(low), st.integers(low + 10, 60))
    )
    return Semantics(draw(st.sampled_from(["trunc", "floor"])), *bounds)


@st.composite
def cases(draw: st.DrawFn, length: int = 3, widest: int = 100, degenerate: bool = False) -> Case:
    """Tasks of a program of up to `length` lines, of a longer one, or with outputs at random; if
    `degenerate`, most of their examples have empty lists, one number, equal ones, extremes, or 20.

    The values are evenly random: tasks of those that hypothesis prefers, such as 0, mostly take one
    line.
    """
    meaning = draw(semantics(widest))
    limits = Limits(length, count=draw(st.sampled_from([1, 2, 7])))
    rng = Random(repr((draw(st.integers(0, 2**32)), meaning, limits)))
    program = random_program(rng, rng.choice(SIGNATURES), rng.choice([1, 2, *[length] * 4, length + 1, length + 2]))
    value = degenerate_value if degenerate else random_value
    rows = [tuple(value(rng, kind, meaning) for kind in program.inputs) for _ in range(20)]
    if degenerate:
        rows = [row if rng.random() < 0.7 else emptied(row) for row in rows]
        rows[rng.randrange(2)] = rows[2]
    outputs = [run(program, row, meaning) for row in rows]
    if len(set(outputs)) == 1 or rng.random() < 0.1:
        outputs = [random_value(rng, program.output, meaning) for _ in rows]
    examples = [Example(row, output) for row, output in zip(rows, outputs, strict=True) if output is not None]
    task = Task("drawn", tuple(examples[: rng.choice([1, 3, 4, 5])]))
    ranks = rng.sample(range(len(ATTRIBUTES)), len(ATTRIBUTES))
    return Case(task, Order(tuple(rank / 100 for rank in ranks)), limits, meaning)


def random_program(rng: Random, inputs: tuple[Type, ...], length: int) -> Program:
    """Every line of it counts."""
    while True:
        types, lines = list(inputs), []
        for _ in range(length):
            operation = rng.choice([o for o in DEEPCODER.operations if set(o.inputs) <= set(types)])
            places = [[i for i, t in enumerate(types) if t is kind] for kind in operation.inputs]
            lines.append(Line(operation.id, tuple(rng.choice(choice[-3:]) for choice in places)))
            types.append(operation.output)
        program = Program(inputs, tuple(lines))
        if max(program.unused, default=0) < len(inputs):
            return program


def random_value(rng: Random, kind: Type, meaning: Semantics) -> Value:
    """Of few numbers, most of them small, so that programs get on with them."""
    low, high = meaning.low, meaning.high
    small = (min(max(rng.randint(-8, 9), low), high) for _ in range(rng.randint(0, 8) if kind is LIST else 1))
    numbers = tuple(x if rng.random() < 0.97 else rng.randint(low, high) for x in small)
    return numbers if kind is LIST else numbers[0]


def degenerate_value(rng: Random, kind: Type, meaning: Semantics) -> Value:
    """Equal numbers, extremes, or a random value; of 20, one or no number."""
    usual = random_value(rng, kind, meaning)
    one = rng.choice([0, 1, -1, meaning.low, meaning.high])
    if isinstance(usual, int):
        return rng.choice([usual, min(max(one, meaning.low), meaning.high)])
    size = rng.choice([0, 1, 1, 2, 20])
    ends = tuple(rng.choice([meaning.low, meaning.high]) for _ in range(size))
    return rng.choice([usual, usual[:1], (one,) * size, ends])


def emptied(row: tuple[Value, ...]) -> tuple[Value, ...]:
    """The row with every list empty."""
    return tuple(value if isinstance(value, int) else () for value in row)


@cases_of(25)
@given(cases(widest=WIDEST, degenerate=True), st.randoms(use_true_random=False))
def test_neither_degenerate_examples_nor_their_order_matter(case: Case, random: Random) -> None:
    shuffled = random.sample(case.task.examples, len(case.task.examples))
    turned = replace(case, task=replace(case.task, examples=tuple(shuffled)))
    for solver in (DepthFirst(), BottomUp(), Auto()):
        case.solve_wholly(solver)
        turned.solve_wholly(solver)
    for each in (case, turned):
        one = replace(each, limits=Limits(case.limits.max_length))
        assert one.solve(MeetInTheMiddle()).stopped == ""
        assert (one.solve(SortAndAdd()).program is None) == (case.least is None)


@cases_of(3)
@given(cases(2, degenerate=True), st.randoms(use_true_random=False))
def test_slow_solvers_heed_degenerate_examples_in_any_order(case: Case, random: Random) -> None:
    shuffled = random.sample(case.task.examples, len(case.task.examples))
    turned = replace(case, task=replace(case.task, examples=tuple(shuffled)))
    slow: list[Solver] = [Deductive()]
    if importlib.util.find_spec("z3"):
        slow.append(Smt())
    for solver in slow:
        case.solve_wholly(solver)
        turned.solve_wholly(solver)


@cases_of(25)
@given(cases(widest=WIDEST))
def test_compiled_search_finds_a_shortest_program(case: Case) -> None:
    case.solve_wholly(DepthFirst())
    case.solve_wholly(BottomUp())
    case.solve_wholly(Auto())


@cases_of(20)
@given(cases(widest=WIDEST))
def test_compiled_search_that_need_not_be_shortest_claims_no_more(case: Case) -> None:
    found = case.solve(SortAndAdd())
    assert (found.program is None, found.stopped) == (case.least is None, "")
    grown = case.solve(BottomUp(prove=False))
    assert grown.stopped == ""
    if case.limits.count == 1:  # for more, every join is taken, which is slow
        joined = case.solve(MeetInTheMiddle())
        assert joined.stopped == ""
        assert grown.program is None or joined.program is not None


@cases_of(60)
@given(cases(2))
def test_deduction_finds_a_shortest_program_of_two_lines(case: Case) -> None:
    case.solve_wholly(Deductive())


@cases_of(3)
@given(cases())
def test_deduction_finds_a_shortest_program(case: Case) -> None:
    case.solve_wholly(Deductive())


@cases_of(2)
@given(cases(3 if is_long() else 2))
def test_z3_finds_a_shortest_program(case: Case) -> None:
    pytest.importorskip("z3")
    case.solve_wholly(Smt())


@cases_of(25)
@given(cases(widest=WIDEST), st.integers(0, 12), st.booleans(), st.sampled_from(COMPILED))
def test_compiled_search_that_is_stopped_claims_no_more(
    case: Case, looks: int, interrupted: bool, solver: Solver
) -> None:
    case.solve_partly(solver, looks, interrupted)


@cases_of(20)
@given(cases(), st.integers(0, 3000), st.booleans())
def test_deduction_that_is_stopped_claims_no_more(case: Case, looks: int, interrupted: bool) -> None:
    case.solve_partly(Deductive(), looks, interrupted)


@cases_of(4)
@given(cases(2), st.integers(0, 400), st.booleans())
def test_z3_that_is_stopped_claims_no_more(case: Case, looks: int, interrupted: bool) -> None:
    pytest.importorskip("z3")
    case.solve_partly(Smt(), looks, interrupted)


@cases_of(2)
@given(cases(), st.floats(0.01, 0.3))
def test_what_is_claimed_when_the_time_is_up_is_true(case: Case, timeout: float) -> None:
    """By a real clock, which z3 has too."""
    pytest.importorskip("z3")
    case = replace(case, limits=replace(case.limits, timeout=timeout))
    for solver in (*COMPILED, Deductive(), Smt()):
        assert case.solve(solver).stopped in ("", "timeout")


@cases_of(20)
@given(cases(widest=WIDEST), st.floats(1e-6, 1e-3))
def test_what_is_claimed_when_memory_is_full_is_true(case: Case, memory: float) -> None:
    case = replace(case, limits=replace(case.limits, memory=memory))
    proving: list[Solver] = [BottomUp(), Auto()]
    joining = [MeetInTheMiddle()] if case.limits.count == 1 else []
    for solver in (*proving, BottomUp(prove=False), *joining):
        found = case.solve(solver)
        assert found.stopped in ("", "memory")
        assert solver not in proving or (found.program is None) == (case.least is None)
