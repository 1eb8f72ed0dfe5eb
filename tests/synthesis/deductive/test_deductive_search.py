"""Deduction is sound, and the search by it finds what exhaustive search finds."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.synthesis.brute_force import fitting, shortest, tasks, tree
from tests.tiers import examples
from thesis_cli.studies.synthesis.thesis_programs import SHOWN, Shown
from thesis_cli.synthesis.deductive.deductive_search import Deductive
from thesis_cli.synthesis.deductive.goal_rules import Goal, GoalRules, ListSet
from thesis_cli.synthesis.deductive.number_sets import NumberSets
from thesis_cli.synthesis.language.dsl import (
    ATTRIBUTES,
    BY_NAME,
    DEEPCODER,
    DEFAULT,
    INT,
    LAMBDAS,
    LIST,
    MAPPING,
    PREDICATE,
    WIDEST,
    Operation,
    Semantics,
    Value,
)
from thesis_cli.synthesis.language.program import natural, parse, run
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.depth_first import Clock
from thesis_cli.synthesis.search.length_by_length import doubling_sets
from thesis_cli.synthesis.search.solver import Limits, Order

OTHERS = [DEFAULT, Semantics(division="floor"), Semantics(low=-40, high=63), Semantics(low=3, high=90)]

SHORT = [shown for shown in SHOWN if len(shown.program) <= 3]

LONGEST = 6


class Walk:
    """A random program, its run, and the way back from its output to its inputs."""

    def __init__(self, rng: Random, semantics: Semantics) -> None:
        self.rng, self.rules = rng, GoalRules(NumberSets(semantics), LONGEST)
        self.semantics = semantics

    def value(self, kind: object) -> Value:
        near = max(-6, self.semantics.low)
        low, high = (near, near + 12) if self.rng.random() < 0.7 else (self.semantics.low, self.semantics.high)
        numbers = tuple(self.rng.randint(low, high) for _ in range(self.rng.randint(0, LONGEST)))
        return numbers if kind is LIST else self.rng.randint(low, high)

    def __call__(self, operation: Operation, lines: int) -> tuple[Goal, Value] | None:
        """A goal that was made from the output down, `lines` operations deep, and the value that it
        must admit."""
        arguments, goals = [], []
        for kind in operation.inputs:
            arguments.append(self.value(kind))
        output = self.semantics.apply(operation, *arguments)
        if output is None:
            return None
        goal = self.goal(output, lines)
        if operation.inputs[0] is INT:
            arguments.reverse()
        known = arguments[0]
        assert not isinstance(known, int)
        goals = [self.rules.first(operation, goal)]
        if len(arguments) == 2:
            goals.append(self.rules.second(operation, goal, known))
        place = self.rng.randrange(len(goals))
        found = goals[place]
        assert found is not None, (operation.name, arguments, output, goal)
        assert self.rules.admits(found, arguments[place]), (operation.name, arguments, output, goal)
        return found, arguments[place]

    def goal(self, value: Value, lines: int) -> Goal:
        """A goal with a value in it: the value alone, or what operations on it tell of it; at times
        made wider."""
        goal = self.rules.exactly(value)
        assert goal is not None
        if lines:
            for _ in range(20):
                operation = self.rng.choice(
                    [o for o in DEEPCODER.operations if type(value) is not int or o.inputs[0] is INT]
                )
                deeper = self.below(operation, value, lines)
                if deeper is not None:
                    goal = deeper
                    break
        return self.widen(goal) if self.rng.random() < 0.3 else goal

    def below(self, operation: Operation, value: Value, lines: int) -> Goal | None:
        """Goals of a value that an operation takes, beside a random one."""
        arguments = [value if i == len(operation.inputs) - 1 else self.value(k) for i, k in enumerate(operation.inputs)]
        if isinstance(value, int):
            arguments = [value, self.value(LIST)]
        output = self.semantics.apply(operation, *arguments)
        if output is None:
            return None
        goal = self.goal(output, lines - 1)
        if isinstance(value, int):
            found = self.rules.second(operation, goal, arguments[1])  # type: ignore[arg-type]
        elif operation.inputs == (LIST, LIST):
            found = self.rules.second(operation, goal, arguments[0])  # type: ignore[arg-type]
        else:
            found = self.rules.first(operation, goal)
        assert found is not None, (operation.name, arguments, output, goal)
        assert self.rules.admits(found, value), (operation.name, arguments, output, goal, found)
        return found

    def widen(self, goal: Goal) -> Goal:
        """A goal with more in it."""
        more = self.rng.getrandbits(self.rules.all.bit_length())
        if isinstance(goal, int):
            return goal | more
        masks = [tuple(mask | more for mask in masks) for masks in (goal.front, goal.back, goal.parts)]
        front = masks[0][: self.rng.randint(0, len(masks[0]))]
        lengths = goal.lengths | self.rng.getrandbits(LONGEST + 1)
        return ListSet(lengths, goal.every | more, front, masks[1], masks[2], goal.ordered)


@pytest.mark.parametrize("semantics", OTHERS, ids=str)
@pytest.mark.parametrize("lines", [0, 1, 2])
def test_no_rule_refutes_the_truth(semantics: Semantics, lines: int) -> None:
    """Every operation, on goals that are exact, come from rules themselves, or are wider than
    either."""
    walk = Walk(Random(lines), semantics)
    for operation in DEEPCODER.operations:
        tried = sum(walk(operation, lines) is not None for _ in range(60))
        assert tried >= 5 or semantics.low > 0


def exactly(rules: GoalRules, value: Value) -> Goal:
    goal = rules.exactly(value)
    assert goal is not None
    return goal


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("MAP (*2)", (2, 3)),
        ("MAP (**2)", (4, 5)),
        ("MAP (/2)", (200,)),
        ("FILTER (>0)", (3, 0)),
        ("SORT", (1, 3, 2)),
        ("SCANL1 MIN", (3, 4)),
        ("SCANL1 MAX", (4, 3)),
        ("SCANL1 (*)", (2, 5)),
        ("COUNT (>0)", 6),
        ("COUNT (<0)", -1),
    ],
)
def test_an_output_that_no_argument_gives_is_refuted(name: str, output: Value) -> None:
    rules = GoalRules(NumberSets(DEFAULT), 5)
    assert rules.first(BY_NAME[name], exactly(rules, output)) is None


@pytest.mark.parametrize(
    ("name", "output", "within", "without"),
    [
        ("MAP (+1)", (1, 5, 3), [(0, 4, 2)], [(0, 4), (0, 4, 3)]),
        ("MAP (/2)", (0, 1), [(-1, 2), (1, 3)], [(2, 2), (0, 4)]),
        ("REVERSE", (1, 5, 3), [(3, 5, 1)], [(1, 5, 3)]),
        ("SCANL1 (+)", (1, 5, 3), [(1, 4, -2)], [(1, 5, 3)]),
        ("SCANL1 (-)", (1, 5, 3), [(1, -4, 2)], [(1, 4, -2)]),
        ("SCANL1 MAX", (1, 5, 5), [(1, 5, 3)], [(1, 5, 6), (1, 4, 5)]),
        ("TAKE", (2, 1), [(2, 1, 0), (2, 1)], [(2,), (1, 2, 1)]),
        ("DROP", (2, 1), [(0, 2, 1), (2, 1)], [(1,), (2, 1, 0)]),
        ("SORT", (1, 1, 2), [(1, 2, 1)], [(1, 2, 2), (1, 2)]),
        ("FILTER (>0)", (2, 1), [(2, 1), (0, 2, -3, 1)], [(1, 2), (2, 1, 4), (2,)]),
        ("ZIPWITH MIN", (2, 1), [(2, 1), (3, 3, 3)], [(1, 1), (2,)]),
        ("HEAD", 4, [(4, 1)], [(1, 4), ()]),
        ("LAST", 4, [(1, 4)], [(4, 1), ()]),
        ("ACCESS", 4, [(1, 4)], [(1,)]),
        ("MINIMUM", 4, [(5, 4)], [(5,), (4, 3)]),
        ("MAXIMUM", 4, [(3, 4)], [(3,), (4, 5)]),
        ("SUM", 4, [(3, 1)], [()]),
        ("COUNT (>0)", 2, [(3, 1)], [(3,), (3, 0)]),
        ("COUNT (>0)", 0, [(0,)], [(3,)]),
    ],
)
def test_an_output_restricts_the_list(name: str, output: Value, within: list[Value], without: list[Value]) -> None:
    rules = GoalRules(NumberSets(DEFAULT), 5)
    goal = rules.first(BY_NAME[name], exactly(rules, output))
    assert goal is not None
    assert [x for x in within if not rules.admits(goal, x)] == []
    assert [x for x in without if rules.admits(goal, x)] == []


@pytest.mark.parametrize(
    ("name", "output", "known", "within", "without"),
    [
        ("ZIPWITH (-)", (3, 4), (5, 9), [(2, 5), (2, 5, 1)], [(2,), (5, 2)]),
        ("ZIPWITH (+)", (3, 4), (5, 9, 1), [(-2, -5)], [(-2, -5, 0)]),
        ("ZIPWITH (*)", (6, 0), (-3, 0), [(-2, 7)], [(2, 7)]),
        ("ZIPWITH MAX", (6, 4), (6, 3), [(5, 4)], [(7, 4), (6, 3)]),
        ("TAKE", (3, 4), (3, 4, 5), [2, -1], [0, 1, 3, -2]),
        ("DROP", (3, 4), (3, 4), [0, -2, -9], [1, -1]),
        ("ACCESS", 5, (4, 5, 5), [1, 2], [0, -1, 3]),
    ],
)
def test_an_output_and_the_list_tell_of_the_rest(
    name: str, output: Value, known: tuple[int, ...], within: list[Value], without: list[Value]
) -> None:
    rules = GoalRules(NumberSets(DEFAULT), 5)
    goal = rules.second(BY_NAME[name], exactly(rules, output), known)
    assert goal is not None
    assert [x for x in within if not rules.admits(goal, x)] == []
    assert [x for x in without if rules.admits(goal, x)] == []


@settings(max_examples=examples(10))
@given(st.sampled_from(OTHERS[:3]).flatmap(lambda semantics: st.tuples(tasks(2, semantics), st.just(semantics))))
def test_finds_every_program_that_exhaustive_search_finds(case: tuple[Task, Semantics]) -> None:
    """Up to two lines, but for those that its documentation leaves out."""
    task, semantics = case
    found = Deductive().solve(task, Order.uniform(), Limits(max_length=2, count=10**6), semantics)
    assert all(check(program, task, semantics) for program in found.programs)
    assert found.exhausted == 2
    for length in (1, 2):
        trees = [tree(program) for program in found.programs if len(program) == length]
        assert len(set(trees)) == len(trees)
        assert set(trees) == all_trees(task, length, semantics)
    length = len(found.programs[0])
    assert length == shortest(task, 2, semantics)
    one = Deductive().solve(task, Order.uniform(), Limits(max_length=5), semantics)
    assert (one.programs, one.exhausted, one.proven) == (found.programs[:1], length - 1, True)


def all_trees(task: Task, length: int, semantics: Semantics = DEFAULT) -> set[object]:
    """Programs that fit, as `natural` writes them, without those that do not use a line, or repeat a
    variable's values before the last line."""
    inputs = len(task.inputs)
    return {
        tree(natural(program))
        for program, rows in fitting(task, length, semantics)
        if len({*rows[inputs:-1]} - {*rows[:inputs]}) == length - 1 and max(program.unused, default=0) < inputs
    }


@pytest.mark.parametrize(
    ("listing", "rows"),
    [
        ("a <- [int]; b <- SORT a; c <- REVERSE b; d <- ZIPWITH (-) c b", [(2, -1, 5, 3), (1, 4, 3, -2, 2)]),
        pytest.param(
            "a <- [int]; b <- MAP (+1) a; c <- LAST b; d <- TAKE c b",
            [(5, 1, 0, 7, 1), (1, 4, 3, 0, 0, 2)],
            marks=pytest.mark.long,
        ),
    ],
)
def test_lines_that_share_a_variable_are_not_lost(listing: str, rows: list[tuple[int, ...]]) -> None:
    """Written as trees these have four operations; as programs three lines."""
    program = parse(listing)
    task = Task("shared", tuple(Example((row,), run(program, (row,)) or 0) for row in rows))
    found = Deductive().solve(task, Order.uniform(), Limits(max_length=3, count=1000))
    assert {len(p) for p in found.programs} == {3}
    assert tree(program) in {tree(p) for p in found.programs}
    assert {tree(p) for p in found.programs} == all_trees(task, 3)


@pytest.mark.parametrize("shown", SHORT, ids=lambda shown: shown.name)
def test_solves_the_short_tasks_of_appendix_d(shown: Shown) -> None:
    task = shown.task()
    found = Deductive().solve(task, Order.uniform(), Limits(max_length=3))
    assert found.proven
    assert check(found.program, task)
    assert len(found.program) == len(shown.program)


def test_a_good_order_saves_work() -> None:
    shown = next(shown for shown in SHOWN if shown.name == "candy")
    used = shown.program.attributes
    order = Order(tuple(0.9 if a in used else 0.1 for a in range(len(ATTRIBUTES))))
    plain, guided = (Deductive().solve(shown.task(), o, Limits(max_length=3)) for o in (Order.uniform(), order))
    assert guided.program is not None
    assert len(guided.program) == len(shown.program)
    assert guided.nodes < plain.nodes


def test_doubling_sets_grow_to_all_by_probability() -> None:
    order = Order(tuple(i / 100 for i in range(len(ATTRIBUTES))))
    sets = list(doubling_sets(order))
    assert sets[-1][0] == order.operations
    assert all(order.operations[: len(active)] == active for active, _ in sets)
    assert sorted(id for _, fresh in sets for id in fresh) == list(range(len(DEEPCODER.operations)))


@pytest.mark.parametrize("output", [(1, 2, 3, 4), (1000,), (7, 7, 7)], ids=["too long", "out of range", "no program"])
def test_no_program_is_an_answer(output: Value) -> None:
    task = Task("none", (Example(((3, 1, 2),), output), Example(((2, 2, 1),), output)))
    found = Deductive().solve(task, Order.uniform(), Limits(max_length=2))
    assert (found.programs, found.exhausted, found.stopped, found.proven) == ((), 2, "", False)


@pytest.mark.parametrize("semantics", [*OTHERS, Semantics(low=-WIDEST, high=WIDEST)], ids=str)
def test_sets_of_numbers_are_those_of_the_lambdas(semantics: Semantics) -> None:
    """Each by trying all numbers; those of one argument that is left may be wider than necessary,
    never narrower."""
    sets, rng = NumberSets(semantics), Random(1)
    numbers = range(semantics.low, semantics.high + 1)
    some = rng.sample(numbers, min(40, len(numbers)))
    goals = [
        {rng.choice(numbers)},
        {rng.choice(numbers), some[0]},
        {x for x in numbers if x > -9 and rng.random() < 0.5},
    ]
    for goal in goals:
        mask = sum(1 << (x - semantics.low) for x in goal)
        for f in LAMBDAS[: DEEPCODER.lambdas]:
            apply = f.floor if f.floor and semantics.division == "floor" else f.apply
            if f.type == MAPPING:
                found = sets.preimage(f, mask)
                assert [sets.holds(found, x) for x in some] == [apply(x) in goal for x in some]
            elif f.type == PREDICATE:
                assert [sets.holds(sets.passing(f), x) for x in some] == [apply(x) for x in some]
            else:
                for a in some[:8]:
                    found = sets.right(f, a, mask)
                    within = [b for b in some if apply(a, b) in goal]
                    assert [b for b in some if sets.holds(found, b)] == within
                    assert all(sets.holds(sets.beside(f, mask), b) for b in within)
                    assert not within or sets.holds(sets.left(f, mask), a)


def test_the_clock_is_looked_at_for_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[None] = []
    monkeypatch.setattr(Clock, "is_up", property(lambda _: looks.append(None)))
    task = Task("none", (Example(((3, 1, 2),), (7, 7, 7)),))
    assert Deductive().solve(task, Order.uniform(), Limits(max_length=2)).nodes == len(looks) > 500


@pytest.mark.parametrize("semantics", OTHERS, ids=str)
def test_operations_commute_that_say_so(semantics: Semantics) -> None:
    rng = Random(2)
    for operation in (o for o in DEEPCODER.operations if o.inputs == (LIST, LIST)):
        rows = [tuple(tuple(rng.randint(3, 9) for _ in range(4)) for _ in range(2)) for _ in range(20)]
        same = [semantics.apply(operation, x, y) == semantics.apply(operation, y, x) for x, y in rows]
        assert operation.commutes == all(same)
    assert [o.name for o in DEEPCODER.operations if o.commutes] == [
        f"ZIPWITH {f}" for f in ("(+)", "(*)", "MIN", "MAX")
    ]


def test_a_timeout_and_an_interrupt_keep_what_was_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    task = next(shown for shown in SHOWN if shown.name == "sticks").task()
    found = Deductive().solve(task, Order.uniform(), Limits(timeout=0.3))
    assert (found.programs, found.stopped) == ((), "timeout")
    assert found.exhausted < 5

    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(GoalRules, "first", interrupt)
    found = Deductive().solve(task, Order.uniform(), Limits())
    assert (found.programs, found.stopped, found.exhausted) == ((), "interrupted", 1)
