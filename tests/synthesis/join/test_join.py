"""Joins of the lists of a bank, against all pairs and triples by the plain interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from random import Random
from unittest.mock import patch

import numpy as np
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from tests.synthesis.join.test_roots import Values, apply, value_of, values_of
from tests.synthesis.test_fuzz import cases_of, random_value
from thesis_cli.synthesis.join import join as joins
from thesis_cli.synthesis.join.join import ZIPS, Join, Lists, Root
from thesis_cli.synthesis.join.join_kernels import (
    ALONE,
    FOUND,
    LEAST,
    MINUS,
    MOST,
    PLUS,
    TIMES,
    Search,
    join,
    join_twice,
)
from thesis_cli.synthesis.language.dsl import BY_NAME, INT, LIST, OPERATIONS, WIDEST, Semantics, Type, Value
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.bottom_up import Bank, Tree
from thesis_cli.synthesis.search.depth_first import Clock, Run
from thesis_cli.synthesis.search.solver import Limits, Order

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Drawn:
    """A bank, and a list that some of its lists make, or a part of it."""

    rng: Random
    bank: Bank
    meaning: Semantics
    inputs: list[tuple[Value, ...]]

    @cached_property
    def rows(self) -> list[Values]:
        return values_of(self.bank, len(self.inputs))

    @cached_property
    def lists(self) -> list[int]:
        return [row for row in range(1, len(self.rows)) if not self.bank.rows.kinds[row]]

    def lambda_(self, f: int, *arguments: Values) -> Values | None:
        return apply(OPERATIONS[ZIPS[f]], self.meaning, *arguments)

    def root_of(self, value: Values | None, from_: int) -> Root | None:
        """A root that compares a part of a value, if it has that part."""
        if value is None:
            return None
        counts = tuple(max(len(x) - from_, 0) for x in value)  # type: ignore[arg-type]
        exact = self.rng.random() < 0.7
        if not exact:
            counts = tuple(min(n, self.rng.choice([1, 1, 2])) for n in counts)
        if not any(counts) or any(len(x) < from_ for x in value):  # type: ignore[arg-type]
            return None
        return Root((from_,) * len(value), counts, exact)


def part_of(root: Root, value: Values) -> Numbers:
    """What is compared of a list."""
    return tuple(value[m][i + root.offsets[m]] for i, m in root.places)  # type: ignore[index]


def ends_of(root: Root, value: Values) -> tuple[bool, ...]:
    """On which examples a list ends with what is compared; the first 64 count."""
    needs = map(sum, zip(root.offsets, root.counts, strict=True))
    found = tuple(not root.exact or len(x) == n for x, n in zip(value, needs, strict=True))  # type: ignore[arg-type]
    return found[:64]


def reaches(root: Root, value: Values) -> bool:
    needs = map(sum, zip(root.offsets, root.counts, strict=True))
    return all(len(x) >= n for x, n in zip(value, needs, strict=True))  # type: ignore[arg-type]


def gives(root: Root, value: Values | None, goal: Numbers) -> bool:
    """Whether a list is exactly what is sought."""
    if value is None or not reaches(root, value) or part_of(root, value) != goal:
        return False
    return all(ends_of(root, value)) if len(value) <= 64 or not root.exact else _ends(root, value)


def _ends(root: Root, value: Values) -> bool:
    return all(len(x) == i + n for x, i, n in zip(value, root.offsets, root.counts, strict=True))  # type: ignore[arg-type]


def matters(root: Root, f: int, value: Values, goal: Numbers) -> object:
    """What counts of an argument of a lambda that gives the goal: arguments of which all this is
    equal are as good."""
    numbers = part_of(root, value)
    if f == TIMES:
        numbers = tuple(x if z else int(x == 0) for x, z in zip(numbers, goal, strict=True))
    elif f not in (ALONE, PLUS, MINUS):
        numbers = tuple(int(x == z) for x, z in zip(numbers, goal, strict=True))
    return numbers, ends_of(root, value)


def pair_of(f: int, a: object, b: object) -> object:
    return f, (a, b) if f == MINUS else frozenset((a, b))


@st.composite
def drawn(draw: st.DrawFn, many: bool = False) -> Drawn:
    rng = Random(draw(st.integers(0, 2**32)))
    low = rng.choice([-256, -256, -60, -9])
    meaning = Semantics(low=low, high=-low - 1)
    kinds = (LIST, LIST, INT)[: rng.choice([2, 3])]
    zeros = rng.choice([0, 0, 0.4])

    def value(kind: Type) -> Value:
        x: Value = random_value(rng, kind, meaning)
        return x if isinstance(x, int) else tuple(0 if rng.random() < zeros else y for y in x)

    examples = 70 if many else rng.choice([1, 1, 2, 2, 4])
    rows = [tuple(value(kind) for kind in kinds) for _ in range(examples)]
    task = Task("drawn", tuple(Example(row, (999,)) for row in rows))
    bank = Bank(task, Order.uniform(), Limits(9), meaning)
    bank.make(Clock())
    return Drawn(rng, bank, meaning, rows)


def search_for(
    case: Drawn, root: Root, goal: Numbers, outside: list[Values], most: int
) -> tuple[Lists, list[list[int]]]:
    """Hits of a join, or of a double join if there are lists outside."""
    lists = Lists(root, case.bank, 1)
    found, state = np.zeros((10**5, FOUND), dtype=np.int64), np.zeros(2, dtype=np.int64)
    goals = np.array([[-999] * len(goal), goal], dtype=np.int16)  # the first one is not looked for
    beside = np.array([part_of(root, x) for x in outside] or [(0,) * len(goal)], dtype=np.int16)
    bounds = np.array([case.meaning.low, case.meaning.high, most], dtype=np.int64)
    search = Search(goals, beside, bounds, found, state, np.zeros(4, dtype=np.int64))
    (join_twice if outside else join)(lists.view, search, len(beside), 2 * len(beside))
    hits = found[: state[0]].tolist()
    assert len(hits) < len(found)
    assert all(hit[3] == 1 for hit in hits)
    return lists, hits


def sought(case: Drawn) -> tuple[Root, Numbers]:
    """What a lambda gives of two lists of the bank; of some banks, such as one of empty lists, nothing."""
    for _ in range(1000):
        f, (a, b) = case.rng.randrange(5), case.rng.choices(case.lists, k=2)
        value = case.lambda_(f, case.rows[a], case.rows[b])
        root = case.root_of(value, case.rng.choice([0, 0, 1]))
        if root and value:
            return root, part_of(root, value)
    reject()


def pairs_of(case: Drawn, rows: list[int]) -> Iterator[tuple[int, int, int]]:
    for f, a, b in product(range(5), rows, rows):
        if f == MINUS or a <= b:
            yield f, a, b


def check_pairs(case: Drawn) -> None:
    root, goal = sought(case)
    most = case.rng.choice([0, 1, 2])
    lists, hits = search_for(case, root, goal, [], most)
    values, sizes = case.rows, case.bank.sizes
    found = set()
    for outer, _, _, _, f, i, j in hits:
        a, b = (values[lists.rows[x]] for x in (i, j))
        x, y = part_of(root, a), part_of(root, b)
        assert outer == ALONE
        if f == ALONE:
            assert (i, x) == (j, goal)
            assert sizes[lists.rows[i]] <= most + 1
        else:
            assert case.lambda_(f, (x,), (y,)) == (goal,)
            assert sizes[lists.rows[i]] + sizes[lists.rows[j]] <= most
        found.add(pair_of(f, matters(root, f, a, goal), matters(root, f, b, goal)))
    reaching = [row for row in case.lists if reaches(root, values[row])]
    for row in reaching:
        if gives(root, values[row], goal) and sizes[row] <= most + 1:
            same = matters(root, ALONE, values[row], goal)
            assert pair_of(ALONE, same, same) in found
    for f, a, b in pairs_of(case, reaching):
        if sizes[a] + sizes[b] <= most and gives(root, case.lambda_(f, values[a], values[b]), goal):
            assert pair_of(f, *(matters(root, f, values[x], goal) for x in (a, b))) in found


@cases_of(40)
@given(drawn())
def test_a_join_finds_all_pairs(case: Drawn) -> None:
    check_pairs(case)


@cases_of(3)
@given(drawn(many=True))
def test_a_join_finds_all_pairs_on_many_examples(case: Drawn) -> None:
    check_pairs(case)


OUTER = [(PLUS, 0), (MINUS, 0), (MINUS, 1), (TIMES, 0), (LEAST, 0), (MOST, 0)]
"""Lambdas of an outer ZIPWITH, and whether the row outside comes second."""


def outer_of(case: Drawn, f: int, second: int, x: Values, z: Values | None) -> Values | None:
    return z and (case.lambda_(f, z, x) if second else case.lambda_(f, x, z))


def known(f: int, x: Numbers, goal: Numbers) -> int:
    """At how many places the row outside and the goal determine the inner list."""
    tests = {TIMES: lambda x, z: x != 0, LEAST: lambda x, z: x > z, MOST: lambda x, z: x < z}
    return sum(map(tests.get(f, lambda x, z: True), x, goal))


@cases_of(10)
@given(drawn())
def test_a_double_join_finds_all_triples(case: Drawn) -> None:
    values, sizes = case.rows, case.bank.sizes
    value, root = None, None
    for _ in range(1000):
        inner, outer = case.rng.choice([PLUS, MINUS, *range(5)]), case.rng.choice([*OUTER, *OUTER[3:]])
        rows = case.rng.choices(case.lists, k=3)
        value = outer_of(case, *outer, values[rows[2]], case.lambda_(inner, *(values[row] for row in rows[:2])))
        if (root := case.root_of(value, 0)) is not None:
            break
    assume(root is not None)  # of some lists nothing comes within the range
    assert value is not None
    assert root is not None
    goal = part_of(root, value)
    reaching = [row for row in case.lists if reaches(root, values[row])]
    outside = [values[row] for row in {rows[2], *case.rng.sample(reaching, min(3, len(reaching)))}]
    most = case.rng.choice([1, 2])
    lists, hits = search_for(case, root, goal, outside, most)
    found = set()
    for f, x, second, _, g, i, j in hits:
        a, b = (values[lists.rows[row]] for row in (i, j))
        z = case.lambda_(g, (part_of(root, a),), (part_of(root, b),))
        assert z is not None
        assert outer_of(case, f, second, (part_of(root, outside[x]),), z) == (goal,)
        assert sizes[lists.rows[i]] + sizes[lists.rows[j]] <= most
        found.add((x, f, second, pair_of(g, *(matters(root, g, y, z[0]) for y in (a, b)))))  # type: ignore[arg-type]
    some = sorted({*rows[:2], *case.rng.sample(reaching, min(9, len(reaching)))})
    for (x, beside), (f, second), (g, a, b) in product(enumerate(outside), OUTER, pairs_of(case, some)):
        z = case.lambda_(g, values[a], values[b])
        if sizes[a] + sizes[b] > most or not gives(root, outer_of(case, f, second, beside, z), goal):
            continue
        assert z is not None
        left = known(f, part_of(root, beside), goal)
        if left == len(goal) or (g in (PLUS, MINUS) and left and 2 * left >= len(goal)):
            z_part = part_of(root, z)
            assert (x, f, second, pair_of(g, *(matters(root, g, values[y], z_part) for y in (a, b)))) in found


@cases_of(20)
@given(drawn(), st.booleans())
def test_of_lists_that_compare_and_end_alike_the_first_is_kept(case: Drawn, exact: bool) -> None:
    root, _ = sought(case)
    root = replace(root, exact=exact)
    firsts: dict[object, int] = {}
    for row in case.lists:
        if reaches(root, case.rows[row]):
            firsts.setdefault(matters(root, ALONE, case.rows[row], ()), row)
    lists = Lists(root, case.bank, 1)
    assert lists.rows.tolist() == list(firsts.values())
    assert [tuple(row) for row in lists.view.packed.tolist()] == [part_of(root, case.rows[row]) for row in lists.rows]
    assert (lists.view.sizes == case.bank.sizes[lists.rows]).all()
    for size in (0, 1):
        assert lists.rows[lists.of_size(size)].tolist() == [x for x in lists.rows if case.bank.sizes[x] == size]
    fewer = Lists(root, case.bank, 0)
    assert fewer.rows.tolist() == [row for row in lists.rows if case.bank.sizes[row] == 0]


HEAD, ACCESS, DROP, TAKE = (BY_NAME[name].id for name in ("HEAD", "ACCESS", "DROP", "TAKE"))
ON_LISTS = [BY_NAME[name].id for name in ("MAP (+1)", "MAP (*2)", "REVERSE", "SCANL1 (+)")]


def tree_of(case: Drawn, top: str) -> Tree:
    """A tree that joins find, under one of their roots."""
    rng = case.rng
    a, b, x = rng.choices(case.lists, k=3)
    tree: Tree = (rng.choice(ZIPS), a, b)
    if top == "path":
        for id in rng.choices(ON_LISTS, k=rng.choice([1, 2])):
            tree = (id, tree)
    if top == "beside":
        id = rng.choice(ZIPS[:2])
        tree = rng.choice([(id, tree, x), (id, x, tree)])
        return tree if rng.random() < 0.5 else (rng.choice(ON_LISTS), tree)
    if top == "HEAD":
        return HEAD, tree
    numbers = [row for row in range(1, len(case.rows)) if case.bank.rows.kinds[row]]
    return (BY_NAME[top].id, rng.choice(numbers), tree) if top in ("ACCESS", "DROP", "TAKE") else tree


def trees_of(case: Drawn, task: Task) -> list[Tree]:
    """All trees of the joins on a bank."""
    found: dict[Tree, None] = {}
    limits = Limits(6, count=10**4)
    bank = Bank(task, Order.uniform(), limits, case.meaning)
    run = Run("join", task, limits, case.meaning)
    with (
        patch.object(joins, "HITS", 10**4),
        patch.object(joins, "NUMBERS", 10),
        patch.object(Bank, "report", lambda _, run, trees: found.update(dict.fromkeys(trees))),
    ):
        search = Join(bank, task, limits, case.meaning)
        for _ in range(2):
            search.grow()
            while search.next < np.inf:
                search.advance(run)
            bank.size or bank.make(Clock())
    assert run.nodes > 0
    return list(found)


def shape(case: Drawn, output: Values, root: Root, f: int, rows: tuple[int, ...]) -> object:
    """What counts of a pair."""
    goal = tuple(y if isinstance(y, int) else y[i] for i, m in root.places for y in output[m : m + 1])
    return pair_of(f, *(matters(root, f, case.rows[row], goal) for row in rows))


def check_roots(case: Drawn, task: Task, trees: list[Tree]) -> None:
    """No pair of some lists is missed that gives the output, or of which a last line gives it."""
    output: Values = tuple(example.output for example in task.examples)
    counts = tuple(1 if isinstance(y, int) else len(y) for y in output)
    whole = Root((0,) * len(output), counts, task.output is LIST)
    numbers = [row for row in range(1, len(case.rows)) if case.bank.rows.kinds[row]][:10]
    longest = [max(len(x) for x in row if not isinstance(x, int)) for row in case.inputs]
    places: dict[tuple[int, ...], Root] = {(): whole, (HEAD,): whole}
    for row in numbers:
        first: tuple[int, ...] = case.rows[row]  # type: ignore[assignment]
        if min(first) >= 0:
            places[TAKE, row] = whole
            if any(first) and all(i + n <= most for i, n, most in zip(first, counts, longest, strict=True)):
                places[ACCESS, row] = Root(first, counts, False)
                places[DROP, row] = Root(first, counts, True)

    def seen(last: tuple[int, ...], f: int, rows: tuple[int, ...]) -> object:
        if last[:1] == (TAKE,):  # the search takes the first number that fits, perhaps one that is negative somewhere
            return TAKE, shape(case, output, whole, f, rows)
        return last, shape(case, output, places[last], f, rows)

    found = set()
    for tree in trees:
        if isinstance(tree, int):
            continue
        last, pair = ((), tree) if tree[0] in ZIPS else (tree[:-1], tree[-1])
        known = last in places or last[:1] == (TAKE,)
        if known and isinstance(pair, tuple) and pair[0] in ZIPS and all(isinstance(x, int) for x in pair):
            found.add(seen(last, ZIPS.index(pair[0]), pair[1:]))  # type: ignore[arg-type]
    some = sorted(case.rng.sample(case.lists, min(15, len(case.lists))))
    for f, a, b in pairs_of(case, some):
        direct = case.lambda_(f, case.rows[a], case.rows[b])
        if direct is None:
            continue
        for ends, root in places.items():
            if TAKE in ends[:1] and direct == output:
                continue
            taken = (case.rows[x] for x in ends[1:])
            value = apply(OPERATIONS[ends[0]], case.meaning, *taken, direct) if ends else direct
            assert value != output or not reaches(root, direct) or seen(ends, f, (a, b)) in found


def distinct(output: Values) -> int:
    """Different numbers of an output."""
    return len({x for y in output for x in (y if isinstance(y, tuple) else [y])})


@cases_of(4)
@given(drawn(), st.sampled_from(["HEAD", "ACCESS", "DROP", "TAKE", "path", "beside", "none"]))
def test_the_trees_of_joins_give_the_output(case: Drawn, top: str) -> None:
    least = 1 if top in ("HEAD", "ACCESS") else 2  # more fits 0 alone than can be tried
    outputs = (value_of(tree_of(case, top), case.rows, case.meaning) for _ in range(1000))
    output = next((each for each in outputs if each is not None and distinct(each) >= least), None)
    assume(output is not None)  # of equal numbers none may come
    assert output is not None
    examples = zip(case.inputs, output, strict=True)
    task = Task("drawn", tuple(Example(row, value) for row, value in examples))
    trees = trees_of(case, task)
    for tree in case.rng.sample(trees, min(300, len(trees))):  # what is not compared may be out of range, or too much
        value = value_of(tree, case.rows, Semantics(low=-WIDEST, high=WIDEST))
        for x, y in zip(value or (), output, strict=value is not None):
            assert x == y if isinstance(y, int) else x[: len(y)] == y  # type: ignore[index]
    check_roots(case, task, trees)
    if top in ("path", "beside", "none"):
        assert any(value_of(tree, case.rows, case.meaning) == output for tree in trees)
