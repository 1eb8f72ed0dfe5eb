"""Each operation as a formula, and what z3 finds with them, against the plain interpreter and
exhaustive search."""

from __future__ import annotations

import sys
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthesis.brute_force import fitting, shortest, tasks, tree
from tests.tiers import examples, is_long
from thesis_cli.base.errors import InputError
from thesis_cli.studies.synthesis.thesis_programs import SHOWN
from thesis_cli.synthesis.deductive import smt_search as smt
from thesis_cli.synthesis.deductive.smt_formulas import Application, Encoding, network
from thesis_cli.synthesis.deductive.smt_search import Smt
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEEPCODER, DEFAULT, INT, LIST, Operation, Semantics, Value
from thesis_cli.synthesis.language.program import natural
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.depth_first import Clock
from thesis_cli.synthesis.search.solver import Limits, Order

z3 = pytest.importorskip("z3")

OTHERS = [DEFAULT, Semantics(division="floor"), Semantics(low=-40, high=63), Semantics(low=3, high=90)]

LONGEST = 5


def value(rng: Random, kind: object, semantics: Semantics) -> Value:
    near = max(-6, semantics.low)
    low, high = (near, near + 12) if rng.random() < 0.7 else (semantics.low, semantics.high)
    numbers = tuple(rng.randint(low, high) for _ in range(rng.randint(0, LONGEST)))
    return numbers if kind is LIST else rng.randint(low, high)


@pytest.mark.parametrize("operation", DEEPCODER.operations, ids=lambda operation: operation.name)
def test_formulas_say_what_the_interpreter_does(operation: Operation) -> None:
    """With each operation one of the other semantics in turn; the long tier takes all of them."""
    for k, semantics in enumerate(OTHERS):
        if k == 0 or is_long() or k == 1 + operation.id % (len(OTHERS) - 1):
            formulas_are_right(operation, semantics)


def formulas_are_right(operation: Operation, semantics: Semantics) -> None:
    rng = Random(operation.id)
    for _ in range(24 if is_long() else 8 if INT in operation.inputs else 4):
        hold(operation, [value(rng, kind, semantics) for kind in operation.inputs], semantics)


@pytest.mark.parametrize("total", [512, 1024, 2048, 4096])
def test_no_sum_wraps_around(total: int) -> None:
    numbers = (*[255] * (total // 255), total % 255)
    hold(next(o for o in DEEPCODER.operations if o.name == "SUM"), [numbers], DEFAULT)


def hold(operation: Operation, arguments: list[Value], semantics: Semantics) -> None:
    """On known arguments the formula has one solution, the result; none where there is no
    result."""
    expected = semantics.apply(operation, *arguments)
    encoding = Encoding(z3, semantics, max([LONGEST, *(len(x) for x in arguments if not isinstance(x, int))]), "e")
    symbols = [encoding.constant(x) for x in arguments]
    number = symbols[0].number if operation.inputs[0] is INT else encoding.bits(0)
    first, second = (symbols[-1], symbols[-1]) if operation.inputs[0] is INT else (symbols[0], symbols[-1])
    result, rules = encoding.fresh("r")
    solver = z3.SolverFor("QF_FD")
    line = Application(encoding, result, number, first, second, {operation.id: z3.BoolVal(True)})
    solver.add(*rules, *line.rules(operation.id))
    case = (operation.name, arguments, expected)
    assert (solver.check() == z3.sat) == (expected is not None), case
    if expected is not None:
        solver.add(z3.Not(encoding.equals(result, expected)))
        assert solver.check() == z3.unsat, case


@pytest.mark.parametrize("size", range(1, 10))
def test_the_network_sorts_every_row_of_bits(size: int) -> None:
    """Which is enough for all rows: the 0-1 principle."""
    for bits in range(1 << size):
        row = [bits >> i & 1 for i in range(size)]
        for i, j in network(size):
            row[i], row[j] = min(row[i], row[j]), max(row[i], row[j])
        assert row == sorted(row)


@settings(max_examples=examples(3))
@given(st.sampled_from(OTHERS[:3]).flatmap(lambda semantics: st.tuples(tasks(2, semantics), st.just(semantics))))
def test_the_shortest_length_is_that_of_exhaustive_search(case: tuple[Task, Semantics]) -> None:
    task, semantics = case
    found = Smt().solve(task, Order.uniform(), Limits(max_length=2), semantics)
    assert found.program is not None
    assert check(found.program, task, semantics)
    assert len(found.program) == found.exhausted + 1 == shortest(task, 2, semantics)


@pytest.mark.parametrize("name", ["exam", "mirror"])
def test_finds_every_program_that_exhaustive_search_finds(name: str) -> None:
    """But for those with a line that nothing uses, in one order of lines."""
    task = next(shown for shown in SHOWN if shown.name == name).task()
    task = Task(name, task.examples[-1:])
    found = Smt().solve(task, Order.uniform(), Limits(max_length=2, count=10**6))
    assert (found.exhausted, found.stopped) == (2, "")
    inputs = len(task.inputs)
    every = [tree(natural(p)) for t in (1, 2) for p, _ in fitting(task, t) if max(p.unused, default=0) < inputs]
    trees = [tree(program) for program in found.programs]
    assert len(set(trees)) == len(trees)
    assert set(trees) == set(every)
    assert all(check(program, task) for program in found.programs)


@pytest.mark.parametrize("name", ["paintings", "exam", "mirror"])
def test_solves_short_tasks_of_appendix_d(name: str) -> None:
    shown = next(shown for shown in SHOWN if shown.name == name)
    task = shown.task()
    order = Order(tuple(0.9 if a in shown.program.attributes else 0.1 for a in range(len(ATTRIBUTES))))
    found = Smt().solve(task, order, Limits(max_length=3))
    assert found.program is not None
    assert check(found.program, task)
    assert found.proven
    assert len(found.program) == len(shown.program)


@pytest.mark.parametrize("output", [(1, 2, 3, 4), (1000,), (7, 7, 7)], ids=["too long", "out of range", "no program"])
def test_no_program_is_an_answer(output: Value) -> None:
    task = Task("none", (Example(((3, 1, 2),), output), Example(((),), ())))
    found = Smt().solve(task, Order.uniform(), Limits(max_length=1))
    assert (found.programs, found.exhausted, found.stopped) == ((), 1, "")


def test_a_timeout_keeps_what_was_proven() -> None:
    task = next(shown for shown in SHOWN if shown.name == "sticks").task()
    found = Smt().solve(task, Order.uniform(), Limits(timeout=0.5))
    assert (found.programs, found.stopped) == ((), "timeout")
    assert found.exhausted < 3


def test_no_sketch_is_made_once_there_are_enough_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    build = smt._Sketch.__init__
    monkeypatch.setattr(smt._Sketch, "__init__", lambda self, *given: (made.append(given), build(self, *given))[1])
    task = Task("sort", (Example(((2, 1, 4),), (1, 2, 4)),))
    order = Order(tuple(0.9 if name == "SORT" else 0.1 for name in ATTRIBUTES))
    found = Smt().solve(task, order, Limits())
    assert (len(found.programs), found.exhausted, found.proven, len(made)) == (1, 0, True, 1)


def test_operations_of_which_none_gives_the_output_hold_no_program() -> None:
    """As those that are tried first may be."""
    task = Task("sum", (Example(((2, 1, 4),), 7),))
    order = Order(tuple(0.9 if name in ("TAKE", "DROP", "REVERSE", "SORT") else 0.1 for name in ATTRIBUTES))
    found = Smt().solve(task, order, Limits(1))
    assert (str(found.program), found.proven) == ("a <- [int]\nb <- SUM a", True)


@pytest.mark.parametrize(
    ("reason", "stopped"),
    [("timeout", "timeout"), ("max. memory exceeded", "memory"), ("interrupted from keyboard", "interrupted")],
)
@pytest.mark.parametrize("raised", [True, False])
def test_why_z3_gives_up_is_reported(reason: str, stopped: str, raised: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: object) -> object:
        if raised:
            raise z3.Z3Exception(reason)
        return z3.unknown

    monkeypatch.setattr(z3.Solver, "check", check)
    monkeypatch.setattr(z3.Solver, "reason_unknown", lambda _: reason)
    found = Smt().solve(Task("sort", (Example(((2, 1),), (1, 2)),)), Order.uniform(), Limits())
    assert (found.programs, found.exhausted, found.stopped) == ((), 0, stopped)


def test_the_clock_is_looked_at_for_every_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formulas of one take a tenth of a second."""
    done: list[str] = []
    rules = Application.rules
    monkeypatch.setattr(Application, "rules", lambda self, o: (done.append("rules"), rules(self, o))[1])
    monkeypatch.setattr(Clock, "is_up", property(lambda _: done.append("look") or False))
    Smt().solve(Task("none", (Example(((2, 1),), (7,)),)), Order.uniform(), Limits(2))
    assert done.count("rules") > 100
    assert all(pair != ("rules", "rules") for pair in pairwise(done))


def test_too_little_memory_is_reported() -> None:
    task = next(shown for shown in SHOWN if shown.name == "league").task()
    found = Smt().solve(task, Order.uniform(), Limits(memory=1e-6))
    assert (found.programs, found.stopped) == ((), "memory")


def test_without_z3_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    task = Task("sort", (Example(((2, 1),), (1, 2)),))
    with pytest.raises(InputError, match="z3 is not installed; run pip install z3-solver"):
        Smt().solve(task, Order.uniform(), Limits())
