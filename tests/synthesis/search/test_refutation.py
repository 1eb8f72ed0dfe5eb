"""What is refuted, against exhaustive search and plain operations."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthesis.brute_force import shortest
from tests.synthesis.strategies import SIGNATURES, values
from tests.tiers import examples
from thesis_cli.commands.synthesize import sentence
from thesis_cli.synthesis.auto import Auto
from thesis_cli.synthesis.deductive.deductive_search import Deductive
from thesis_cli.synthesis.language.dsl import DEEPCODER, DEFAULT, LIST, Semantics, Type, Value
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.bottom_up import BottomUp
from thesis_cli.synthesis.search.depth_first import NONE, RULES, DepthFirst, SortAndAdd, may_end
from thesis_cli.synthesis.search.solver import Limits, Order, Solver, refuted

LONGER = Task("longer", (Example(((1, 2), 5), (1,)), Example(((1, 2), 3), (1, 2, 3))))
SOLVERS: list[Solver] = [Auto(), DepthFirst(), SortAndAdd(), BottomUp(), Deductive()]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_every_solver_refutes_an_output_longer_than_its_inputs(solver: Solver) -> None:
    limits = Limits(8)
    found = solver.solve(LONGER, Order.uniform(), limits)
    assert (found.programs, found.nodes, found.exhausted, found.proven) == ((), 0, 8, False)
    assert "no program of any length" in sentence(found, limits)
    assert "example 2" in sentence(found, limits)


def test_search_without_pruning_does_not_refute() -> None:
    assert DepthFirst(NONE).solve(LONGER, Order.uniform(), Limits(1)).nodes > 0


@pytest.mark.parametrize(
    ("inputs", "output", "semantics"),
    [
        (((),), 1, DEFAULT),
        ((7, ()), 7, DEFAULT),
        (((3, 5),), 300, DEFAULT),
        (((3, 5),), (0, -3), Semantics(low=-2)),
        (((1,), (), 9), (0, 0), DEFAULT),
    ],
)
def test_refuted(inputs: tuple[Value, ...], output: Value, semantics: Semantics) -> None:
    task = Task("one", (Example(inputs, output),))
    assert refuted(task, semantics)
    assert shortest(task, 2, semantics) is None


@pytest.mark.parametrize(
    ("inputs", "output"), [(((),), 0), (((),), ()), (((1,), ()), (7,)), (((1, 2),), (1, 2)), ((5, (1,)), -3)]
)
def test_not_refuted(inputs: tuple[Value, ...], output: Value) -> None:
    assert refuted(Task("one", (Example(inputs, output),))) is None


@st.composite
def small(draw: st.DrawFn) -> Task:
    """Lists of at most 2 numbers; outputs of any kind."""
    types, kind = draw(st.sampled_from(SIGNATURES[:5])), draw(st.sampled_from(Type))
    rng = Random(draw(st.integers(0, 2**32)))

    def some(kind: Type) -> Value:
        numbers = tuple(rng.choice((0, 1, -1, 2, 300)) for _ in range(rng.randrange(4) if kind is LIST else 1))
        return numbers if kind is LIST else numbers[0]

    rows = [tuple(some(t) if t is not LIST else some(t)[:2] for t in types) for _ in range(rng.choice((1, 2)))]  # type: ignore[index]
    return Task("small", tuple(Example(row, some(kind)) for row in rows))


@settings(max_examples=examples(40))
@given(small())
def test_no_program_fits_what_is_refuted(task: Task) -> None:
    if refuted(task):
        assert shortest(task, 2) is None


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_an_operation_may_end_with_what_it_gives(name: str, data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from([o for o in DEEPCODER.operations if o.rule(o.function.kernel) == name]))
    taken = data.draw(st.tuples(*map(values, operation.inputs)))
    output = DEFAULT.apply(operation, *taken)
    if output is not None:
        assert may_end(operation, Task("one", (Example(taken, output),)))


def test_what_no_operation_of_a_kind_gives() -> None:
    def last(output: Value) -> set[str]:
        task = Task("one", (Example(((0,) * 3,), output),))
        ruled = [o for o in DEEPCODER.operations if o.rule(o.function.kernel) in RULES and o.output is task.output]
        return {o.name for o in ruled if may_end(o, task)}

    assert last((3, -2, 1)) == set()
    assert last((4, 1, 0)) == {"MAP (**2)", "SCANL1 MIN"}
    assert last((2, 2, 6)) == {"MAP (*2)", "FILTER (>0)", "FILTER (%2==0)", "SORT", "SCANL1 MAX", "SCANL1 (*)"}
    assert (len(last(3)), len(last(4)), len(last(-1))) == (4, 0, 0)
