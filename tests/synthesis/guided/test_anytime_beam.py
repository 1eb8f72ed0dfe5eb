"""Complete anytime beam search, and the compiled search for last lines."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthesis.brute_force import fitting, shortest, tasks
from tests.synthesis.search.test_depth_first import UNIFORM, impossible
from tests.tiers import examples
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.guided import anytime_beam
from thesis_cli.synthesis.guided.anytime_beam import AnytimeBeam, Policy, PriorPolicy
from thesis_cli.synthesis.guided.tails import Tails, without_unused
from thesis_cli.synthesis.language.dsl import DEEPCODER, DEFAULT, LIST
from thesis_cli.synthesis.language.program import Program, parse, run
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.networks.next_line import PRUNING
from thesis_cli.synthesis.search.depth_first import Run
from thesis_cli.synthesis.search.execution import Moves, Pool, moves, start, step
from thesis_cli.synthesis.search.solver import Limits

SHARING = parse(
    "a <- [int]; b <- FILTER (%2==1) a; c <- SCANL1 (+) b; d <- ZIPWITH (*) c b; e <- ZIPWITH MIN d c; "
    "f <- REVERSE e; g <- ZIPWITH MAX f b"
)
"""Takes results more than once: as an expression it is too large for a join."""


class Knowing:
    """The policy that knows a program, and prefers its lines."""

    def __init__(self, program: Program) -> None:
        self._lines = {(line.operation, line.arguments[0], line.arguments[-1]) for line in program.lines}

    def scores(self, pool: Pool, moves: Moves) -> npt.NDArray[np.float32]:
        known = [not self._lines.isdisjoint([(f, x, y), (f, y, x)]) for f, x, y in moves.lines.tolist()]
        return np.where(known, -0.1, -9.0).astype(np.float32)


def sharing() -> Task:
    rng = np.random.default_rng(5)
    rows = [tuple(rng.integers(-5, 6, size).tolist()) for size in (7, 9, 8, 10, 6)]
    outputs = [run(SHARING, (row,)) for row in rows]
    return Task("sharing", tuple(Example((x,), y) for x, y in zip(rows, outputs, strict=True) if y is not None))


@settings(max_examples=examples(8))
@given(tasks(3), st.booleans(), st.sampled_from([1, 2, 64]))
def test_it_is_complete(task: Task, tails: bool, width: int) -> None:
    """Beams that grow from the narrowest one find a program if there is one."""
    with patch.object(anytime_beam, "WIDTH", width):
        found = AnytimeBeam(tails=tails).solve(task, UNIFORM, Limits(2))
    least = shortest(task, 2)
    assert (found.program is None, found.stopped) == (least is None, "")
    if found.program is None:
        assert found.exhausted == 2
    else:
        assert check(found.program, task)
        assert not found.proven or len(found.program) == least


@settings(max_examples=examples(6))
@given(tasks(2), st.integers(0, 10**6))
def test_tails_are_the_programs_that_take_a_line(task: Task, choice: int) -> None:
    pool = start([task], 2)
    found = moves(pool, pruning=PRUNING)
    pool = step(pool, found.lines, found.parents)
    pool = pool.take(pool.valid & ~pool.repeated)
    if not len(pool):
        return
    row = choice % len(pool)
    search = Run("any", task, Limits(2), DEFAULT)
    assert Tails(search, task, UNIFORM, Limits(2), DEFAULT).search(pool, row, 1e7) == ""
    beginning = pool.program(row).lines[0]
    ends = [program for program, _ in fitting(task, 2) if program.lines[0] == beginning]
    taking = [program for program in ends if len(task.inputs) not in program.unused]
    assert bool(search.programs) == bool(taking)


def test_a_policy_leads_it_to_programs_that_share_results() -> None:
    task, limits = sharing(), Limits(6)
    found = AnytimeBeam(Knowing(SHARING), tails=False).solve(task, UNIFORM, limits)
    assert found.program is not None
    assert check(found.program, task)
    assert found.nodes < 5000
    again = AnytimeBeam(Knowing(SHARING), tails=False).solve(task, UNIFORM, limits)
    assert (again.program, again.nodes) == (found.program, found.nodes)
    finished = AnytimeBeam(Knowing(SHARING)).solve(task, UNIFORM, limits)
    assert finished.program is not None
    assert check(finished.program, task)


def test_joins_take_the_results_of_lines_as_inputs() -> None:
    """The rest has two operations that no depth-first search gets time for."""
    task, pool = sharing(), start([sharing()], 6)
    for line in SHARING.lines[:3]:
        pool = step(pool, [(line.operation, line.arguments[0], line.arguments[-1])])
    search = Run("any", task, Limits(6), DEFAULT)
    with patch.object(Tails, "_examine", return_value=""):
        Tails(search, task, UNIFORM, Limits(6), DEFAULT).search(pool, 0, 6e8)
    assert search.programs
    assert check(search.programs[0], task)


def test_a_prior_is_a_policy() -> None:
    order = prior.load()
    policy = PriorPolicy(order)
    assert isinstance(policy, Policy)
    pool = start([impossible((LIST, LIST)), impossible((LIST,))], 3)
    found = moves(pool, pruning=PRUNING)
    shares = np.exp(policy.scores(pool, found).astype(float))
    assert np.allclose(np.bincount(found.parents, shares), 1)
    here = (found.parents == 0) & (found.lines[:, 0] == DEEPCODER.operations[-1].id)
    there = (found.parents == 0) & (found.lines[:, 0] == 0)
    ratio = order.of_operations[DEEPCODER.operations[-1].id] / order.of_operations[0]
    assert np.isclose(shares[here].sum() / shares[there].sum(), ratio)


def test_a_beam_that_has_no_memory_left_says_so() -> None:
    found = AnytimeBeam(tails=False).solve(impossible((LIST, LIST)), UNIFORM, Limits(6, memory=0.001))
    assert (found.program, found.stopped) == (None, "memory")


def test_lines_that_the_output_does_not_depend_on_are_dropped() -> None:
    long = parse("a <- [int]; b <- SORT a; c <- REVERSE a; d <- MAP (+1) c; e <- SORT b; f <- ZIPWITH (+) d d")
    assert without_unused(long).one_line == "a <- [int]; b <- REVERSE a; c <- MAP (+1) b; d <- ZIPWITH (+) c c"
