"""Which conditions are solved for a draw."""

from __future__ import annotations

import pytest

from thesis_cli.semantics.conditions import Solver, distinct, fewer_names
from thesis_cli.semantics.parser import parse
from thesis_cli.semantics.syntax import Let


def solved(text):
    """Relations and draws that conditions are solved for, and numbers of events and of observations left."""
    root = distinct(parse(text), {}, [0])
    solver = Solver.of(root)
    assert isinstance(root, Let)
    found = solver.conditions[id(root)]
    pairs = [(each.relation, str(draw.place)) for draw in found.draws for each in solver.solved[id(draw)]]
    return pairs, len(found.events), len(found.observed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("let x = normal(0, 1) given x == 0.5 in x", ([("==", "1:9")], 0, 0)),
        ("let x = normal(0, 1) given normal(x, 1) == 2 in x", ([("==", "1:28")], 0, 0)),
        ("let x = normal(0, 1) given 2 == exp(x) / 3 in x", ([("==", "1:9")], 0, 0)),
        ("let x = normal(0, 1) given x > 3 in x", ([(">", "1:9")], 0, 0)),
        ("let x = normal(0, 1) given 3 > x and x > 1 in x", ([("<", "1:9"), (">", "1:9")], 0, 0)),
        ("let x = normal(0, 1) given not (x < 1 or x > 2) in x", ([(">=", "1:9"), ("<=", "1:9")], 0, 0)),
        ("let x = normal(0, 1), y = x + 1 given y == 2 in y", ([("==", "1:9")], 0, 0)),
        (
            "let x = normal(0, 1), y = normal(x, 1) given x + y == 2 in y",
            ([("==", "1:27")], 0, 0),
        ),  # x is not free of y
        ("let x = normal(0, 1) given x * x == 2 in x", ([("==", "1:9")], 0, 0)),
        ("let x = normal(0, 1) given x * x > 2 in x", ([], 1, 0)),
        ("let x = normal(0, 1) given x ** 3 > 2 in x", ([(">", "1:9")], 0, 0)),
        ("let x = normal(0, 1) given 2 ** x == 2 in x", ([], 0, 1)),
        ("let x = normal(0, 1) given sin(x) == 0.5 in x", ([], 0, 1)),
        ("let k = bernoulli(0.5) given abs(k) == 1 in k", ([], 1, 0)),
        (
            "let x = if(bernoulli(0.5), normal(0, 1), laplace(0, 1)) given x == 1 in x",
            ([("==", "1:28"), ("==", "1:42")], 0, 0),
        ),
        ("let x = if(bernoulli(0.5), normal(0, 1), 2) given x == 1 in x", ([], 0, 1)),  # a branch is no draw
        ("let x = normal(0, 1), y = if(x > 0, x, normal(x, 1)) given y == 1 in x", ([], 0, 1)),  # x is not free
        ("let x = normal(0, 1) given abs(x) > 3 in x", ([], 1, 0)),
        ("let x = normal(0, 1) given x == 1, x == 2 in x", ([("==", "1:9")], 0, 1)),
        ("let x = normal(0, 1), y = normal(0, 1) given x + y == 2, x - y == 0 in x", ([("==", "1:9")], 0, 1)),
        ("let k = bernoulli(0.5) given k == 1 in k", ([("==", "1:9")], 0, 0)),
        ("let k = bernoulli(0.5) given k > 0 in k", ([], 1, 0)),
        ("let k = bernoulli(0.5), x = normal(0, 1) given k * x == 1 in x", ([], 0, 1)),  # 0 has a probability
        ("let x = normal(0, 1) given floor(x) == 1 in x", ([], 1, 0)),
        ("let x = normal(0, 1), y = normal(0, 1) given x > y in x", ([(">", "1:9")], 0, 0)),
        ("let x = normal(0, 1) given 1 / x > 2 in x", ([], 1, 0)),
        ("let x = normal(0, 1) given 1 / x == 2 in x", ([("==", "1:9")], 0, 0)),
    ],
)
def test_solved_conditions(text, expected):
    assert solved(text) == expected


def test_names_that_are_used_once_go():
    """But not those of a conditioned `let`, nor what it uses."""
    text = "let x = normal(0, 1), y = x, unused = 2 in y + (let x = y, z = 1 given x > 0 in x) + (let w = 3 in w)"
    found = fewer_names(distinct(parse(text), {}, [0]))
    assert isinstance(found, Let)
    assert [name for name, _ in found.bindings] == ["y#2"]
    assert found.free == frozenset()
    assert isinstance(found.body.arguments[0].arguments[1], Let)
    assert found.body.arguments[1].value == 3


def test_signs():
    root = parse("let a = gamma(2, 1), b = normal(0, 1) in a / (a + exp(b)) - beta(1, 2)")
    solver = Solver.of(root)
    assert isinstance(root, Let)
    quotient = root.body.arguments[0]
    parts = (*quotient.arguments, root.body, parse("-gamma(1, 1)"), parse("3 * (4 - 5)"))
    assert [solver.sign(part) for part in parts] == [1, 1, 0, -1, -1]


@pytest.mark.parametrize(
    ("text", "nonzero"),
    [
        ("let x = normal(0, 1) in x", True),
        ("let x = normal(0, 1) in x - x", False),
        ("let x = normal(0, 1) in x + normal(0, 1)", True),
        ("let x = gamma(1, 1) * bernoulli(0.5) in x", False),
        ("2 * gamma(1, 1) / normal(0, 1)", True),
        ("max(normal(0, 1), 0)", False),
        ("exp(bernoulli(0.5))", True),
        ("bernoulli(0.5) + 1 - 1", False),
        ("1 + 1", False),
    ],
)
def test_what_is_surely_not_0(text, nonzero):
    root = parse(text)
    assert Solver.of(root).is_nonzero(root) is nonzero
