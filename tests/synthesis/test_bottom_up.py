"""Bottom-up enumeration against depth-first search and plain enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthesis.test_depth_first import ORDERS, UNIFORM, impossible, tasks
from tests.tiers import examples
from thesis_cli.synthesis import bottom_up
from thesis_cli.synthesis.bottom_up import Bank, BottomUp
from thesis_cli.synthesis.depth_first import Clock, DepthFirst, pack
from thesis_cli.synthesis.dsl import DEFAULT, INT, LIST, OPERATIONS, Value, type_of
from thesis_cli.synthesis.program import Program, parse
from thesis_cli.synthesis.solver import Limits, Order
from thesis_cli.synthesis.task import Example, Task, check

Column = tuple[Value, ...]


def operations_of(program: Program) -> int:
    """Operations of a program as a tree, where a result that is taken twice is made twice."""
    sizes = [0] * len(program.inputs)
    for line in program.lines:
        sizes.append(1 + sum(sizes[i] for i in line.arguments))
    return sizes[-1]


def grown(task: Task, largest: int) -> list[dict[Column, None]]:
    """Values over all examples by size, each at its smallest, in plain Python."""
    levels = [dict.fromkeys(zip(*(example.inputs for example in task.examples), strict=True))]
    known = set(levels[0])
    for size in range(1, largest + 1):
        level: dict[Column, None] = {}
        for operation in OPERATIONS:
            for sizes in product(range(size), repeat=len(operation.inputs)):
                if sum(sizes) != size - 1:
                    continue
                for columns in product(*(levels[s] for s in sizes)):
                    if tuple(type_of(column[0]) for column in columns) != operation.inputs:
                        continue
                    made = [DEFAULT.apply(operation, *values) for values in zip(*columns, strict=True)]
                    value = tuple(v for v in made if v is not None)
                    if len(value) == len(made) and value not in known:
                        known.add(value)
                        level[value] = None
        levels.append(level)
    return levels


@pytest.mark.parametrize("first_rows", [8, 2**12])
def test_the_bank_holds_each_value_once_at_its_least_size(first_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from thesis_cli.synthesis.lanes import WIDTH

    monkeypatch.setattr(bottom_up, "FIRST", first_rows)
    task = Task("bank", tuple(Example((n, xs), (7, -77)) for n, xs in [(1, (3, 1, -2)), (2, (0, 5)), (1, (4, 4, 9))]))
    bank = Bank(task, UNIFORM, Limits(3), DEFAULT)
    for _ in range(2):
        assert bank.make(Clock(None)) == ""
    starts, pool, kinds = bank._starts, bank._pool, bank._kinds
    used = (WIDTH + 1) * len(task.examples)
    for size, level in enumerate(grown(task, 2)):
        rows = slice(starts[size], starts[size + 1])
        made = {(bool(kind), row[:used].tobytes()) for kind, row in zip(kinds[rows], pool[rows], strict=True)}
        assert len(made) == starts[size + 1] - starts[size]
        assert made == {(type_of(value[0]) is INT, pack([value], 1)[0, :used].tobytes()) for value in level}


@settings(max_examples=examples(20))
@given(tasks(), ORDERS)
def test_what_it_finds_is_shortest(task: Task, order: Order) -> None:
    limits = Limits(3)
    exact, found = DepthFirst().solve(task, order, limits), BottomUp().solve(task, order, limits)
    assert (found.program is None) == (exact.program is None)
    assert found.stopped == ""
    if exact.program and found.program:
        assert found.proven
        assert check(found.program, task)
        assert len(found.program) == len(exact.program)
    else:
        assert found.exhausted == 3


@settings(max_examples=examples(15))
@given(tasks(longest=2))
def test_without_proof_it_has_the_fewest_operations(task: Task) -> None:
    found = BottomUp(prove=False).solve(task, UNIFORM, Limits(3))
    output = tuple(example.output for example in task.examples)
    inputs = set(zip(*(example.inputs for example in task.examples), strict=True))
    if found.program:
        size = operations_of(found.program)
        assert size == 1 or output in inputs or output not in {v for level in grown(task, 1) for v in level}
        assert size <= 2 or output in inputs or output not in {v for level in grown(task, 2) for v in level}
    elif output not in inputs:
        assert output not in {v for level in grown(task, 2) for v in level}


SHARED = parse(
    "a <- [int]; b <- SCANL1 (+) a; c <- SORT b; d <- ZIPWITH (-) b c; e <- ZIPWITH (*) d c"
)  # 4 lines, 7 operations


def shared() -> Task:
    from thesis_cli.synthesis.program import run

    inputs = [((4, -3, 7, -9, 2),), ((1, -5, 2, 6, -8, 3),), ((-2, 9, -4, -1),), ((6, -7, 5, -2, 4, -9, 1),)]
    outputs = [run(SHARED, values) for values in inputs]
    return Task("shared", tuple(Example(i, o) for i, o in zip(inputs, outputs, strict=True) if o is not None))


def test_a_program_that_shares_results_is_left_to_depth_first_search() -> None:
    task = shared()
    assert len(task.examples) >= 3
    assert BottomUp(prove=False).solve(task, UNIFORM, Limits(4)).program is None
    found = BottomUp().solve(task, UNIFORM, Limits(4))
    assert found.program is not None
    assert (len(found.program), found.proven) == (4, True)
    assert operations_of(found.program) > 4


def test_a_list_of_one_number_is_not_that_number() -> None:
    task = Task("one", (Example(((5,),), 5), Example(((3,),), 3)))
    assert BottomUp().solve(task, UNIFORM, Limits(2)).program == parse("a <- [int]; b <- HEAD a")
    task = Task("some", (Example(((2,), (7, 8, 9)), (7, 8)), Example(((1,), (4, 5)), (4,))))
    assert BottomUp(prove=False).solve(task, UNIFORM, Limits(2)).program is not None
    task = Task("list", (Example((5, (5, 1)), (5,)), Example((2, (2, 0)), (2,))))
    found = BottomUp().solve(task, UNIFORM, Limits(3)).program
    assert found is not None
    assert found.output is LIST


@settings(max_examples=examples(10))
@given(tasks(), st.integers(2, 20))
def test_several_programs_all_fit_and_differ(task: Task, count: int) -> None:
    found = BottomUp().solve(task, UNIFORM, Limits(2, count=count))
    assert len(found.programs) <= count
    assert len(set(found.programs)) == len(found.programs)
    assert [len(p) for p in found.programs] == sorted(len(p) for p in found.programs)
    assert all(check(p, task) for p in found.programs)


def test_a_full_bank_hands_over_to_depth_first_search() -> None:
    task = shared()
    solution = BottomUp().solve(task, UNIFORM, Limits(4, memory=1e-6))
    assert solution.stopped == "memory"
    assert solution.program is not None
    assert solution.proven
    alone = BottomUp(prove=False).solve(task, UNIFORM, Limits(4, memory=1e-6))
    assert (alone.program, alone.stopped) == (None, "memory")


def test_a_bank_keeps_within_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bottom_up, "FIRST", 16)
    bank = Bank(shared(), UNIFORM, Limits(5, memory=0.001), DEFAULT)
    while bank.enlarge():
        pass
    kept = (bank._pool, bank._origins, bank._kinds, bank._hashes, bank._table)
    total = sum(array.nbytes for array in kept)
    assert 0.3 * 0.001 * 2**30 < total <= 0.001 * 2**30
    assert np.count_nonzero(bank._table >= 0) == 1


def test_a_timeout_and_an_interrupt_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    task = impossible((LIST, LIST))
    solution = BottomUp().solve(task, UNIFORM, Limits(5, timeout=0.05))
    assert (solution.program, solution.stopped) == (None, "timeout")
    assert solution.nodes > 0

    def interrupted(self: Bank, clock: Clock) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bank, "make", interrupted)
    assert BottomUp().solve(task, UNIFORM, Limits(5)).stopped == "interrupted"


def test_growth_in_slices_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    task = shared()
    whole = BottomUp(prove=False).solve(task, UNIFORM, Limits(3, count=5))
    monkeypatch.setattr(bottom_up, "SLICE", 11)
    parts = BottomUp(prove=False).solve(task, UNIFORM, Limits(3, count=5))
    assert (parts.programs, parts.nodes, parts.exhausted) == (whole.programs, whole.nodes, whole.exhausted)
