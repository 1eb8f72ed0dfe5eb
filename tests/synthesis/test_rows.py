"""Rows of the language: each has its rules, and the rules for a function of which nothing is known
are sound."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from thesis_cli.synthesis.deductive import goal_rules, smt_formulas
from thesis_cli.synthesis.deductive.deductive_search import Deductive
from thesis_cli.synthesis.deductive.smt_search import Smt
from thesis_cli.synthesis.language.dsl import BY_NAME, FUNCTIONS, Lambda, check_rules
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.solver import Limits, Order, Solver

INPUTS = (2, (3, 1, 2)), (1, (5, -4)), (3, (0, 7, -7, 2))


def task(function: str) -> Task:
    """What a function does to a list, or to a number and a list, then sorted if it gives a list."""
    operation = BY_NAME[function]
    values = [operation.trunc(*inputs[2 - len(operation.inputs) :]) for inputs in INPUTS]
    outputs = [value if isinstance(value, int) else tuple(sorted(value or ())) for value in values]
    rows = (inputs[2 - len(operation.inputs) :] for inputs in INPUTS)
    return Task(function, tuple(Example(row, output) for row, output in zip(rows, outputs, strict=True)))


@pytest.mark.parametrize("function", ["SUM", "TAKE", "MAXIMUM"])
@pytest.mark.parametrize(
    ("solver", "rules", "kind"),
    [(Deductive(), goal_rules.RULES, "goals"), (Smt(), smt_formulas.FORMULAS, "formula")],
    ids=["deductive", "smt"],
)
def test_a_solver_finds_a_function_of_which_it_knows_nothing(
    solver: Solver, rules: MutableMapping[str, Any], kind: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(solver, Smt):
        pytest.importorskip("z3")
    monkeypatch.setitem(rules, getattr(BY_NAME[function].function, kind), rules["unknown"])
    found = solver.solve(task(function), Order.uniform(), Limits(2))
    assert found.program is not None
    assert found.proven
    assert check(found.program, task(function))


def test_a_row_without_a_rule_and_a_rule_without_a_row_are_refused() -> None:
    check_rules("goals", ("sum", "sort", "unknown"), ("sort", "unknown", "sum"))
    with pytest.raises(AssertionError, match=r"goals: \['sum'\]"):
        check_rules("goals", ("sum", "sort"), ("sort",))
    with pytest.raises(AssertionError, match=r"goals: \['fold'\]"):
        check_rules("goals", ("sort",), ("sort", "fold"))


def test_rules_of_operations_have_the_rule_of_their_lambda() -> None:
    zipwith = BY_NAME["ZIPWITH (-)"]
    assert zipwith.rule(zipwith.function.kernel) == "zipwith minus"
    assert isinstance(zipwith.f, Lambda)
    assert all(function.kernel for function in FUNCTIONS)
