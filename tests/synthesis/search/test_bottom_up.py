"""Bottom-up enumeration against depth-first search and plain enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthesis.search.test_depth_first import ORDERS, UNIFORM, impossible, tasks
from tests.tiers import examples
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import ATTRIBUTES, DEEPCODER, DEFAULT, INT, LIST, Value, type_of
from thesis_cli.synthesis.language.packing import WIDTH, pack
from thesis_cli.synthesis.language.program import Program, parse
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search import bottom_up
from thesis_cli.synthesis.search.bottom_up import HIGHEST, SIZES, Bank, BottomUp, levels_of
from thesis_cli.synthesis.search.depth_first import NONE, Clock, DepthFirst, Run
from thesis_cli.synthesis.search.solver import MOST_MEMORY, Limits, Order

Column = tuple[Value, ...]


def operations_of(program: Program) -> int:
    """Operations of a program as a tree, where a result that is taken twice is made twice."""
    sizes = [0] * len(program.inputs)
    for line in program.lines:
        sizes.append(1 + sum(sizes[i] for i in line.arguments))
    return sizes[-1]


def grown(task: Task, last: int, costs: Sequence[int] = SIZES) -> list[dict[Column, None]]:
    """Values over all examples by level, each at its lowest, in plain Python."""
    levels = [dict.fromkeys(zip(*(example.inputs for example in task.examples), strict=True))]
    known = set(levels[0])
    for number in range(1, last + 1):
        level: dict[Column, None] = {}
        for operation in DEEPCODER.operations:
            for parts in product(range(number), repeat=len(operation.inputs)):
                if sum(parts) != number - costs[operation.id]:
                    continue
                for columns in product(*(levels[part] for part in parts)):
                    if tuple(type_of(column[0]) for column in columns) != operation.inputs:
                        continue
                    made = [DEFAULT.apply(operation, *values) for values in zip(*columns, strict=True)]
                    value = tuple(v for v in made if v is not None)
                    if len(value) == len(made) and value not in known:
                        known.add(value)
                        level[value] = None
        levels.append(level)
    return levels


MIXED = tuple(2 + id % 3 for id in range(len(DEEPCODER.operations)))


@pytest.mark.parametrize(("first_rows", "costs", "last"), [(8, SIZES, 2), (2**12, SIZES, 2), (8, MIXED, 5)])
def test_the_bank_holds_each_value_once_at_its_lowest_level(
    first_rows: int, costs: Sequence[int], last: int, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(bottom_up, "FIRST", first_rows)
    task = Task("bank", tuple(Example((n, xs), (7, -77)) for n, xs in [(1, (3, 1, -2)), (2, (0, 5)), (1, (4, 4, 9))]))
    bank = Bank(task, UNIFORM, Limits(3), DEFAULT, costs)
    for _ in range(last):
        assert bank.make(Clock()) == ""
    starts, pool, kinds = bank._starts, bank._pool, bank._kinds
    used = (WIDTH + 1) * len(task.examples)
    for size, level in enumerate(grown(task, last, costs)):
        rows = slice(starts[size], starts[size + 1])
        made = {(bool(kind), row[:used].tobytes()) for kind, row in zip(kinds[rows], pool[rows], strict=True)}
        assert len(made) == starts[size + 1] - starts[size]
        assert made == {(type_of(value[0]) is INT, pack([value], 1)[0, :used].tobytes()) for value in level}


def test_costs_follow_probabilities() -> None:
    order = Order(tuple(0.0 if name == "SUM" else 0.9 if name == "SORT" else 0.1 for name in ATTRIBUTES))
    costs = {operation.name: cost for operation, cost in zip(DEEPCODER.operations, levels_of(order, 0.5), strict=True)}
    assert (costs["SORT"], costs["MAP (+1)"], costs["SUM"]) == (1, 5, HIGHEST)  # ln 10 = 4.6 / 2
    assert levels_of(UNIFORM) == SIZES[: len(DEEPCODER.operations)]
    with pytest.raises(InputError, match="above 0"):
        levels_of(UNIFORM, 0)


@settings(max_examples=examples(20))
@given(
    tasks(longest=3),
    st.lists(st.integers(1, 3), min_size=len(DEEPCODER.operations), max_size=len(DEEPCODER.operations)),
)
def test_levels_of_cost_prove_no_more_than_they_cover(task: Task, costs: list[int]) -> None:
    """A program that is cheap enough is found, or another one; none is shorter than claimed."""
    limits = Limits(2)
    run, bank = Run("bank", task, limits, DEFAULT), Bank(task, UNIFORM, limits, DEFAULT, costs)
    exact = DepthFirst(NONE).solve(task, UNIFORM, limits).program
    while bank.size < bank.last and not run.complete:
        bank.grow(run)
        assert exact is None or len(exact) > run.exhausted or run.complete
    assert all(check(program, task) and len(program) <= 2 for program in run.programs)
    with patch.object(bottom_up, "levels_of", lambda order: costs):
        found = BottomUp(costs="prior").solve(task, UNIFORM, limits)
    assert (found.program is None) == (exact is None)
    assert found.program is None or (found.proven and len(found.program) == len(exact or ()))


def test_a_cheap_program_that_is_too_long_proves_nothing() -> None:
    """The only list that gives 4 is cheapest as 1 + 1 + 1 + 1, in too many lines."""
    costs = [1 if operation.name == "MAP (+1)" else 4 for operation in DEEPCODER.operations]
    task, limits = Task("four", (Example(((1,),), 4),)), Limits(3)
    run, bank = Run("bank", task, limits, DEFAULT), Bank(task, UNIFORM, limits, DEFAULT, costs)
    covered = []
    while bank.size < bank.last:
        assert bank.grow(run) == ""
        covered.append(bank.covered)
    assert covered == [*[0] * 3, *[1] * 8, 2]  # up to 4, or 4 + 2 x 4
    assert (run.programs, run.exhausted) == ([], 1)
    assert np.diff(bank._starts[:10]).tolist() == [len(level) for level in grown(task, 8, costs)]
    with patch.object(bottom_up, "levels_of", lambda order: costs):
        found = BottomUp(costs="prior").solve(task, UNIFORM, limits)
    assert found.proven
    assert found.program is not None
    assert len(found.program) == 2


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
    from thesis_cli.synthesis.language.program import run

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


def test_a_bank_takes_what_the_system_gives() -> None:
    bank = Bank(shared(), UNIFORM, Limits(2, memory=MOST_MEMORY), DEFAULT)  # beyond any address space
    while len(bank._pool) <= bottom_up.SECOND:
        assert bank.enlarge()
    assert bank.make(Clock()) == ""


def test_the_clock_is_read_between_few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The more examples, the fewer; arguments of wrong types count too."""
    task, seen = shared(), [0]
    bank = Bank(task, UNIFORM, Limits(2), DEFAULT)

    def is_up(clock: Clock) -> bool:
        seen.append(clock.nodes)
        return False

    monkeypatch.setattr(bottom_up, "SLICE", 40)
    monkeypatch.setattr(Clock, "is_up", property(is_up))
    clock = Clock()
    assert (bank.make(clock), bank.make(clock)) == ("", "")
    assert 0 < np.diff(seen).max() <= 40 // len(task.examples)
    assert np.diff(seen).min() == 0


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


def test_of_programs_of_one_length_the_first_tree_is_reported() -> None:
    """Hashes of programs differ from process to process, and may not decide."""
    task = Task("any", (Example(((1,),), (1,)),))
    limits = Limits(2)
    trees = [(o.id, 1) for o in DEEPCODER.operations if o.inputs == (LIST,) and DEFAULT.apply(o, (1,)) == (1,)]
    assert len(trees) > 6
    for first in trees:
        run = Run("any", task, limits, DEFAULT)
        Bank(task, UNIFORM, limits, DEFAULT).report(run, [first, *trees])
        assert [line.operation for line in run.programs[0].lines] == [first[0]]
