"""Operations that are inverted, against all short lists of few numbers."""

from __future__ import annotations

from functools import cache
from itertools import product
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.synthesis.join.test_roots import value_of
from tests.synthesis.test_fuzz import cases_of
from thesis_cli.synthesis.join.backward import Goal, invert, unwound, wrap
from thesis_cli.synthesis.language.dsl import BY_NAME, Operation, Semantics, Value

NARROW = Semantics(low=-4, high=5)
SHIFTS = ["MAP (+1)", "MAP (-1)", "MAP (*2)", "MAP (*3)", "MAP (*4)", "MAP (*(-1))"]
INVERTIBLE = [BY_NAME[name] for name in (*SHIFTS, "REVERSE", "SCANL1 (+)", "SCANL1 (-)")]


@cache
def sources(operation: Operation) -> dict[Value, Value]:
    """The list of up to 3 numbers that has each result."""
    lists = [x for n in range(4) for x in product(range(NARROW.low, NARROW.high + 1), repeat=n)]
    results = [NARROW.apply(operation, x) for x in lists]
    found: dict[Value, Value] = {y: x for x, y in zip(lists, results, strict=True) if y is not None}
    assert len(found) == len(results) - results.count(None)  # no two lists have one result
    return found


@cases_of(60)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_goals_are_all_lists_that_lead_to_the_output(seed: int, count: int) -> None:
    rng = Random(seed)
    pick = rng.choice(INVERTIBLE)
    outputs = tuple(rng.choice(list(sources(pick))) for _ in range(count))
    found = unwound(outputs, NARROW, 2)
    goals = [goal for same in found for goal in same]
    assert found[0] == (Goal(outputs),)
    assert len({goal.values for goal in goals}) == len(goals)
    for depth, same in enumerate(found):
        known = {goal.values for few in found[: depth + 2] for goal in few}
        for goal in same:
            assert len(goal.path) == depth
            assert depth == 0 or value_of(wrap(0, goal.path), [goal.values], NARROW) == outputs
            for operation in INVERTIBLE:
                made = [sources(operation).get(y) for y in goal.values]
                values = None if None in made else tuple(made)
                assert invert(operation, goal.values, NARROW) == values
                assert depth == 2 or values is None or values in known
    assert all(invert(operation, outputs, NARROW) is None for operation in (BY_NAME["SORT"], BY_NAME["MAP (/2)"]))


def test_a_path_takes_rows_of_the_bank_on_either_side() -> None:
    minus, reverse = BY_NAME["ZIPWITH (-)"].id, BY_NAME["REVERSE"].id
    assert wrap(7, ((reverse,), (minus, 3, 0))) == (reverse, (minus, 3, 7))
    assert wrap(7, ((minus, 3, 1), (reverse,))) == (minus, (reverse, 7), 3)
