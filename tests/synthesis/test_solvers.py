"""The registry of solvers."""

import itertools
from typing import get_args

import pytest

from thesis_cli.synthesis.language.dsl import INT, LIST
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.depth_first import Clock
from thesis_cli.synthesis.search.solver import Limits, LineOrder, Order
from thesis_cli.synthesis.solvers import COMPILED, SOLVERS, SolverName, label, solver

LAST_OF_THREE = Task("last", (Example(((4, 7, 2),), 2), Example(((1, 9),), 9)))


@pytest.mark.parametrize("name", SOLVERS)
def test_every_registered_solver_solves_a_task(name):
    assert (LAST_OF_THREE.inputs, LAST_OF_THREE.output) == ((LIST,), INT)
    found = solver(name)
    assert found.name == name
    solution = found.solve(LAST_OF_THREE, Order.uniform(), Limits(1))
    assert check(solution.program, LAST_OF_THREE)


def test_names_of_the_option_are_those_of_the_registry():
    assert get_args(SolverName) == tuple(SOLVERS)
    assert set(COMPILED) == set(SOLVERS) - {"deductive", "smt"}
    assert label("auto") == "auto"
    assert label("smt").startswith("SMT")


@pytest.mark.parametrize("name", [*COMPILED, "deductive"])
def test_a_solution_has_the_seconds_of_its_first_program(name):
    found = solver(name).solve(LAST_OF_THREE, Order.uniform(), Limits(2, count=2))
    assert 0 <= found.found_after <= found.seconds
    none = solver(name).solve(Task("none", (Example(((1,),), 250),)), Order.uniform(), Limits(1))
    assert none.found_after is None


HARD = Task("hard", (Example(((3, 1, 2), (5, 4)), (77, -3, 11)), Example(((8, 6), (7,)), (0, 91))))


@pytest.mark.parametrize("name", [*COMPILED, "deductive"])
def test_a_limit_of_nodes_stops_in_the_same_place_whatever_the_time(name, monkeypatch):
    """Time passes at another pace the second time."""
    order = LineOrder.uniform() if name == "guided" else Order.uniform()
    most = 20_000 if name in ("beam", "deductive") else 300_000
    whole = solver(name).solve(HARD, order, Limits(5, nodes=most))
    assert whole.stopped == "nodes"
    assert most <= whole.nodes < 3 * most
    monkeypatch.setattr(Clock, "seconds", property(lambda self: next(PACE)))
    again = solver(name).solve(HARD, order, Limits(5, nodes=most))
    assert (again.nodes, again.stopped, again.exhausted) == (whole.nodes, "nodes", whole.exhausted)
    assert solver(name).solve(HARD, order, Limits(5, nodes=most // 2)).nodes < whole.nodes


PACE = itertools.count(0, 1000)
