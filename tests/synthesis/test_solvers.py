"""The registry of solvers."""

from typing import get_args

import pytest

from thesis_cli.synthesis.dsl import INT, LIST
from thesis_cli.synthesis.solver import Limits, Order
from thesis_cli.synthesis.solvers import COMPILED, SOLVERS, SolverName, label, solver
from thesis_cli.synthesis.task import Example, Task, check

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
