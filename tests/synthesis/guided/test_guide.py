"""Guides: an order a task, which the search, its journal and the ranking of programs follow."""

from __future__ import annotations

import math

import pytest

import thesis_cli as tc
from thesis_cli.base.errors import InputError
from thesis_cli.synthesis.language.dsl import ATTRIBUTES
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.prior import Fixed, orders_of
from thesis_cli.synthesis.search.solver import Order, Solution

ROWS = ((3, 2, -1), (5, 1, 0, -4), (7, -2))


def preferring(*names: str) -> Order:
    return Order(tuple(0.75 if name in names else 0.25 for name in ATTRIBUTES))


class ByName:
    """A guide that knows the tasks by their names."""

    identity = "by name"

    def __init__(self, **known: Order | None) -> None:
        self.known, self.asked = known, 0

    def orders(self, tasks: list[Task]) -> list[Order | None]:
        self.asked += 1
        return [self.known[task.name] for task in tasks]


def turned(name: str) -> Task:
    """Descending lists, which two programs of one line turn into ascending ones."""
    return Task(name, tuple(Example((xs,), xs[::-1]) for xs in ROWS))


TASKS = [turned("one"), turned("two")]
GUIDE = {"one": preferring("SORT"), "two": preferring("REVERSE")}


def test_each_task_is_searched_in_its_own_order_and_ranked_by_its_own_prior() -> None:
    guide = ByName(**GUIDE)
    found = tc.synthesize(TASKS, guide=guide, solver="dfs", programs=2, max_length=1, jobs=1)
    assert guide.asked == 1
    rows = {(row["task"], row["program"]): row for row in found.columns.records()}
    programs = "a <- [int]; b <- SORT a", "a <- [int]; b <- REVERSE a"
    assert [rows["one", program]["rank"] for program in programs] == [1, 2]
    assert [rows["two", program]["rank"] for program in programs] == [2, 1]
    high, low = math.log(0.75), math.log(0.25)
    priors = [rows[name, program]["log_prior"] for name in ("one", "two") for program in programs]
    assert priors == pytest.approx([high, low, low, high], abs=1e-6)
    assert found.settings["guide"] == "by name"


def test_a_guide_of_one_order_is_that_prior() -> None:
    order = preferring("REVERSE")
    by_guide, by_prior = (
        tc.synthesize(TASKS, **given, solver="dfs", max_length=1, jobs=1)
        for given in ({"guide": Fixed(order)}, {"prior": order})
    )
    kept = "task", "program", "log_prior"
    one, two = ([[row[key] for key in kept] for row in found.columns.records()] for found in (by_guide, by_prior))
    assert one == two
    assert by_guide.settings["guide"] == by_prior.settings["prior"] == Fixed(order).identity


def test_the_prior_orders_what_the_guide_leaves_to_it() -> None:
    guide = ByName(**{**GUIDE, "two": None})
    call = {"solver": "dfs", "programs": 2, "max_length": 1, "jobs": 1}
    found = tc.synthesize(TASKS, guide=guide, prior=preferring("REVERSE"), **call)
    assert [row["program"] for row in found.columns.records() if row["rank"] == 1] == [
        "a <- [int]; b <- SORT a",
        "a <- [int]; b <- REVERSE a",
    ]
    assert found.guidance["by_prior"] == 1
    assert "by name" in found.summary()
    assert "1 task to --prior" in found.summary()
    assert found.to_dict()["guidance"]["identity"] == "by name"


def test_a_batch_that_goes_on_solves_again_what_now_has_another_order(monkeypatch, tmp_path) -> None:
    solved = []

    def solve(self, task, order, limits, semantics):
        solved.append(task.name)
        if len(solved) == 3:
            raise KeyboardInterrupt
        return Solution((), "dfs", 1, 0.0, 1)

    monkeypatch.setattr("thesis_cli.synthesis.search.depth_first.DepthFirst.solve", solve)
    tasks = [*TASKS, turned("three")]
    guide = ByName(**GUIDE, three=Order.uniform())
    call = {"guide": guide, "solver": "dfs", "jobs": 1, "out": tmp_path / "t.csv"}
    with pytest.raises(KeyboardInterrupt):
        tc.synthesize(tasks, **call)
    guide.known["two"] = preferring("SORT")
    tc.synthesize(tasks, **call)
    assert solved == ["one", "two", "three", "two", "three"]


@pytest.mark.parametrize("given", [[], [Order.uniform()] * 2, [(0.5,) * 34], [None]])
def test_a_guide_must_give_an_order_a_task(given: list[Order]) -> None:
    guide = ByName()
    guide.orders = lambda tasks: given  # type: ignore[method-assign]
    with pytest.raises(InputError, match=r"by name gives .* for 1 tasks; it must give one Order"):
        orders_of(guide, TASKS[:1])


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"prior": 5}, r"--prior is an object of type int"),
        ({"prior": ByName()}, r"--prior is an object of type ByName; give it as guide"),
        ({"guide": 5}, r"--guide is an object of type int"),
    ],
)
def test_what_is_no_prior_or_guide_is_refused(given: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        tc.synthesize(TASKS, **given)


def test_guides_of_other_orders_have_other_identities() -> None:
    one, two = Order.uniform(), preferring("SORT")
    assert Fixed(one).identity != Fixed(two).identity
