"""Search that meets in the middle: values forward from the inputs, goals backward from the output.

A bank (`bottom_up`) holds the values of all small expressions. Goals are lists from which
operations that can be inverted lead to the output. Where a goal is the result of ZIPWITH, a join
(`Join`, compiled in `join_kernels`) finds both its arguments in the bank at once, and a double join
those of two ZIPWITH, one inside the other. TAKE, DROP, HEAD and ACCESS of what a ZIPWITH gives are
joins, too: they only choose which part of the lists is compared.

Of other last lines that cannot be inverted (`Roots`, compiled in `roots_kernels`), such as SUM or
FILTER, many lists give the same. But each bounds the lengths and items of the list below it
(`backward`). If that list is ZIPWITH f a b, these bounds and a bound the items of b, by an interval
each. So, for each list a, all lists b are tested by columns, thousands at a time, and the few that
pass are evaluated.

The bank, both kinds of joins and depth-first search take turns (`Turns`), the cheapest one next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from itertools import count

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Ints
from thesis_cli.synthesis.join import roots_kernels as kernels
from thesis_cli.synthesis.join.backward import Chains, Path, RootChain, rows_of, unwound, wrap
from thesis_cli.synthesis.join.join_kernels import ALONE, FOUND, Part, Search, View, index, join, join_twice, pack_lists
from thesis_cli.synthesis.language.dsl import BY_NAME, DEFAULT, LIST, Semantics, Value
from thesis_cli.synthesis.language.packing import WIDTH, Lanes, bounds_of, pack
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search import bottom_up, depth_first
from thesis_cli.synthesis.search.bottom_up import CLOSE, Bank, Tree
from thesis_cli.synthesis.search.depth_first import Clock, Run, bands
from thesis_cli.synthesis.search.solver import Limits, Order, Stop


@dataclass(frozen=True)
class Root:
    """A comparison of lists, and how a tree of the lists becomes one of the output.

    Attributes
    ----------
    offsets, counts : first number that is compared, and how many, on each example.
    exact : whether the list ends with them.
    last : the last line: its operation, and its number's row if it takes one; empty if the list is
        the output.
    factor : factor on the cost of its joins, so that they come later.
    """

    offsets: tuple[int, ...]
    counts: tuple[int, ...]
    exact: bool
    last: tuple[int, ...] = ()
    factor: float = 1.0

    @property
    def places(self) -> list[tuple[int, int]]:
        """Place in the list and example of each number that is compared, K in all: the first ones
        of all examples, then the second ones, and so on."""
        return sorted((i, m) for m, count in enumerate(self.counts) for i in range(count))


@dataclass(frozen=True, eq=False)
class Goals:
    """Lists that lead to the output.

    Attributes
    ----------
    numbers : compared numbers of each goal, shape (G, K).
    paths : how each becomes the list of the root.
    size : operations of the paths, at least.
    single, double : whether they are sought by joins, and by double joins.
    """

    numbers: Lanes
    paths: tuple[Path, ...]
    size: int
    single: bool = True
    double: bool = True

    def __len__(self) -> int:
        return len(self.paths)


class Lists:
    """The lists of a bank up to a size, ready for joins.

    Attributes
    ----------
    view : compared numbers of each list, N lists.
    rows : their rows of the bank, shape (N,).
    """

    def __init__(self, root: Root, bank: Bank, size: int) -> None:
        columns = np.array([m * WIDTH + root.offsets[m] + i for i, m in root.places], dtype=np.int64)
        needs = np.add(root.offsets, root.counts)
        rng = np.random.default_rng(0)
        multipliers = rng.integers(2**64, size=len(columns), dtype=np.uint64) | np.uint64(1)
        sizes = bank.sizes
        used = int(np.searchsorted(sizes, size, side="right"))
        rows = np.empty(used, dtype=np.int64)
        packed = np.empty((used, len(columns)), dtype=np.int16)
        keys = np.empty((used, 2), dtype=np.uint64)
        seen = np.full(2 << used.bit_length(), -1, dtype=np.int32)
        part = Part(columns, needs.astype(np.int64), root.exact, multipliers)
        count = int(pack_lists(bank.rows.pool, bank.rows.kinds[:used], part, rows, packed, keys, seen))
        heads = 2 << max(count.bit_length(), 6)
        self.rows = rows[:count].copy()
        self.view = View(
            packed[:count].copy(),
            keys[:count, 0].copy(),
            keys[:count, 1].copy(),
            sizes[self.rows],
            np.empty(heads, dtype=np.int32),
            np.empty(count, dtype=np.int32),
            np.empty(heads // 4, dtype=np.uint64),
            multipliers,
        )
        index(self.view)

    def __len__(self) -> int:
        return len(self.rows)

    def of_size(self, size: int) -> slice:
        """The trees of one size."""
        first, last = np.searchsorted(self.view.sizes, [size, size + 1])
        return slice(int(first), int(last))


ZIPS = tuple(BY_NAME[f"ZIPWITH {name}"].id for name in ("(+)", "(-)", "(*)", "MIN", "MAX"))
"""ZIPWITH with the lambdas of `join_kernels`, in order."""

HEAD, TAKE, DROP, ACCESS, REVERSE = (BY_NAME[name].id for name in ("HEAD", "TAKE", "DROP", "ACCESS", "REVERSE"))

HITS = 2**10
"""Room for the hits of one call."""

DEPTH = 2
"""Inverted operations on one list between the output and a goal."""

BESIDE = 1
"""Size of the lists beside which an inverted ZIPWITH leaves a goal."""

SHARED = 3
"""By how many operations a tree may exceed the length of its program, which shares results."""

STEP, ROW, DOUBLE, CALL = 1e5, 15.0, 30.0, 1200.0
"""Nanoseconds for a step, for a row in a join, and in a double join for each row outside, and for
each inner join besides."""

SLICE = 1e7
"""Nanoseconds after which the clock is looked at again."""

FURTHER = 6.0
"""Factor of the cost of joins below DROP and ACCESS of the first number, of the second, and so on:
they come later."""

NUMBERS, TAKEN = 100, 10_000
"""Numbers of the bank that DROP and ACCESS take, and TAKE; the first ones."""


@dataclass(frozen=True, eq=False)
class _Step:
    """A join of lists of up to a size for some goals, or a double join with lists of another size
    outside."""

    root: Root
    goals: Goals
    size: int
    outside: int | None = None


class Join:
    """The joins on a bank, the cheapest first.

    Parameters
    ----------
    bank : bank with the lists to join.
    task, limits, semantics : arguments of the solver.
    """

    def __init__(self, bank: Bank, task: Task, limits: Limits, semantics: Semantics) -> None:
        self._bank, self._task, self._limits, self._semantics = bank, task, limits, semantics
        self._outputs: tuple[Value, ...] = tuple(example.output for example in task.examples)
        self._found = np.empty((HITS, FOUND), dtype=np.int64)
        self._goals: dict[Root, list[Goals]] = {}
        self._lists: dict[tuple[Root, int], Lists] = {}
        self._steps: list[tuple[float, int, _Step]] = []
        self._ties = count()

    @property
    def next(self) -> float:
        """Expected nanoseconds of the next step; infinite if there is none."""
        return self._steps[0][0] if self._steps else np.inf

    def advance(self, run: Run) -> Stop:
        """Do the next step, and report programs and nodes to a search."""
        step = heappop(self._steps)[2]
        lists = self._lists_of(step.root, step.size)
        goals, outside, last = step.goals, np.zeros((1, lists.view.packed.shape[1]), dtype=np.int16), len(step.goals)
        others, cost = [0], ROW
        if step.outside is not None:
            beside = self._lists_of(step.root, step.outside)
            part = beside.of_size(step.outside)
            outside, others = beside.view.packed[part], beside.rows[part].tolist()
            last, cost = last * len(others), DOUBLE
        slice_ = max(1, int(SLICE / (cost * len(lists) + CALL)))
        bounds = np.array([self._semantics.low, self._semantics.high, self._most(run, step)], dtype=np.int64)
        for first in range(0, last, slice_):
            state, outer = np.zeros(2, dtype=np.int64), np.zeros(4, dtype=np.int64)
            search = Search(goals.numbers, outside, bounds, self._found, state, outer)
            (join if step.outside is None else join_twice)(lists.view, search, first, min(first + slice_, last))
            run.clock.nodes += int(state[1])
            hits = self._found[: state[0]].tolist()
            self._bank.report(run, (tree for hit in hits for tree in self._trees(step, lists, others, hit)))
            if run.complete:
                return ""
            if run.clock.is_up:
                return run.clock.stop
        return ""

    def grow(self) -> None:
        """Plan the joins of the values that are new in the bank."""
        newest = self._bank.size
        rows = np.bincount(self._bank.sizes[1:], minlength=newest + 1)
        sizes = range(newest + 1)
        pairs = [(size, outside) for size in sizes for outside in sizes]
        for root in [*self._goals, *(root for root in self._roots() if root not in self._goals)]:
            known = self._goals.setdefault(root, [])
            for goals in known:
                self._plan(root, goals, [newest], [pair for pair in pairs if newest in pair], rows)
            new = [] if known else self._unwound(root)
            parent = (known or new)[0]
            for size in range(newest if known else 0, min(newest, BESIDE) + 1):
                new.append(self._beside(root, parent, size))
            for goals in new:
                self._plan(root, goals, list(sizes), pairs, rows)
            known += new

    def _plan(self, root: Root, goals: Goals, sizes: list[int], pairs: list[tuple[int, int]], rows: Ints) -> None:
        """Plan joins of lists of up to some sizes, and double joins beside lists of another size.

        `rows` are the numbers of values by size.
        """
        operations = goals.size + bool(root.last)
        most = self._limits.max_length + SHARED
        below = np.cumsum(rows) * root.factor
        for size in sizes if goals.single else []:
            if operations + size < most:
                self._push(below[size] * ROW * (2 + len(goals)), _Step(root, goals, size))
        for size, outside in pairs if goals.double else []:
            if operations + size + outside + 1 < most:
                inner = below[size] * DOUBLE + root.factor * CALL
                self._push(inner * rows[outside] * len(goals), _Step(root, goals, size, outside))

    def _push(self, cost: float, step: _Step) -> None:
        heappush(self._steps, (STEP + float(cost), next(self._ties), step))

    def _roots(self) -> Iterator[Root]:
        """Outputs that a join can give."""
        examples = len(self._outputs)
        if self._task.output is LIST:
            counts = tuple(len(output) for output in self._outputs)  # type: ignore[arg-type]
            last = DROP
            if any(counts):
                yield Root((0,) * examples, counts, True)
        else:
            counts, last = (1,) * examples, ACCESS
            yield Root((0,) * examples, counts, False, (HEAD,))
        longest = [max((len(x) for x in e.inputs if not isinstance(x, int)), default=1) for e in self._task.examples]
        rows, numbers = self._numbers(NUMBERS)
        useful = (numbers >= 0).all(axis=1) & numbers.any(axis=1) & (numbers + counts <= longest).all(axis=1)
        for place, row in enumerate(rows[useful].tolist() if any(counts) else [], 1):
            offsets = tuple(numbers[useful][place - 1].tolist())
            yield Root(offsets, counts, last == DROP, (last, row), FURTHER * place)

    def _numbers(self, count: int) -> tuple[Ints, Ints]:
        """Rows of the first numbers of the bank, and their values, shape (count, M)."""
        rows = np.flatnonzero(self._bank.rows.kinds[: self._bank.kept + 1])
        rows = rows[rows > 0][:count]
        return rows, self._bank.rows.pool[rows][:, : WIDTH * len(self._outputs) : WIDTH].astype(np.int64)

    def _unwound(self, root: Root) -> list[Goals]:
        """Goals of a root that inverted operations on one list make, by their number."""
        outputs = self._outputs
        if self._task.output is not LIST:
            outputs = tuple((output,) for output in outputs)  # type: ignore[misc]
        goals = []
        for size, found in enumerate(unwound(outputs, self._semantics, 0 if root.last else DEPTH)):
            numbers = [[goal.values[m][i] for i, m in root.places] for goal in found]  # type: ignore[index]
            array = np.array(numbers, dtype=np.int16).reshape(len(found), len(root.places))
            goals.append(Goals(array, tuple(goal.path for goal in found), size, double=size < DEPTH))
        return goals

    def _beside(self, root: Root, goals: Goals, size: int) -> Goals:
        """Goals that remain when an inverted ZIPWITH takes a list of a size."""
        lists = self._lists_of(root, size)
        part = lists.of_size(size)
        others, rows = lists.view.packed[part].astype(np.int64), lists.rows[part].tolist()
        low, high = self._semantics.low, self._semantics.high
        found: dict[bytes, tuple[npt.NDArray[np.int16], Path]] = {}
        plus, minus, times = ZIPS[:3]
        for numbers, path in zip(goals.numbers.astype(np.int64), goals.paths, strict=True):
            divides = (others != 0).all(1) & (numbers % np.where(others, others, 1) == 0).all(1)
            for id, second, left in (
                (plus, 0, numbers - others),
                (minus, 0, others - numbers),
                (minus, 1, numbers + others),
                (times, 0, np.where(divides[:, None], numbers // np.where(others, others, 1), high + 1)),
            ):
                for a in np.flatnonzero(((low <= left) & (left <= high)).all(1)):
                    kept = left[a].astype(np.int16)
                    found.setdefault(kept.tobytes(), (kept, (*path, (id, rows[a], second))))
        array = np.array([kept for kept, _ in found.values()], dtype=np.int16).reshape(len(found), len(root.places))
        paths = tuple(path for _, path in found.values())
        return Goals(array, paths, goals.size + size + 1, single=False)

    def _lists_of(self, root: Root, size: int) -> Lists:
        if (root, size) not in self._lists:
            self._lists[root, size] = Lists(root, self._bank, size)
        return self._lists[root, size]

    def _most(self, run: Run, step: _Step) -> int:
        """Operations that a pair may have."""
        most = run.longest + SHARED - step.goals.size - bool(step.root.last) - 1
        return most if step.outside is None else most - step.outside - 1

    def _trees(self, step: _Step, lists: Lists, others: list[int], hit: list[int]) -> Iterator[Tree]:
        """Trees of the output, from a hit."""
        outer, a, second, goal, inner, x, y = hit
        rows = [int(lists.rows[i]) for i in ([x] if inner == ALONE else [x, y])]
        tree: Tree = rows[0] if inner == ALONE else (ZIPS[inner], rows[0], rows[1])
        if outer != ALONE:
            rows.append(others[a])
            tree = (ZIPS[outer], tree, rows[-1]) if second else (ZIPS[outer], rows[-1], tree)
        root, path = step.root, step.goals.paths[goal]
        tree = wrap(tree, path)
        if root.last:
            yield (*root.last, tree)  # type: ignore[misc]
            return
        rows += [beside[1] for beside in path if len(beside) > 1]
        examples = len(root.counts)
        lengths = self._bank.rows.pool[rows, WIDTH * examples : (WIDTH + 1) * examples].min(axis=0)
        if (lengths == root.counts).all():
            yield tree
        elif (REVERSE,) not in path:
            takers, numbers = self._numbers(TAKEN)
            taken = np.where(numbers < 0, np.maximum(lengths + numbers, 0), np.minimum(lengths, numbers))
            for place in np.flatnonzero((taken == root.counts).all(axis=1))[:1]:
                yield (TAKE, int(takers[place]), tree)


ROOT_SHARED = 2
"""Operations that a tree may have beyond the greatest length, since a program computes equal parts
once."""

ROOT_HITS = 64
"""Hits of one call of the kernel."""

ROOT_SLICE = 10**7
"""Work after which the clock is looked at."""

ROOTS = 8.0, 240.0, 480.0
"""Roots of 1, 2 and 3 operations, about as many as there are; those of several operations are
tested less sharply, and count four times."""

PLANNED, QUERY, PAIR = 100_000.0, 600.0, 3.0
"""Nanoseconds for a root that is to be planned, for a list a with one root, and for a
list b with them."""


class Roots:
    """Pairs of lists of a bank that give the output below a last line that cannot be inverted.

    A step takes the roots of so many operations, and the pairs of lists of two sizes; the cheapest
    step goes first. When the bank has grown, only pairs with a new list are new steps.

    Parameters
    ----------
    bank : bank of the task.
    task, limits, semantics : arguments of a solver.
    """

    def __init__(self, bank: Bank, task: Task, limits: Limits, semantics: Semantics) -> None:
        self._bank, self._task, self._limits = bank, task, limits
        self._bounds = bounds_of(semantics)
        self._chains = Chains(bank, task, semantics)
        self._sides: dict[int, kernels.Side] = {}
        self._plans: dict[int, tuple[list[RootChain], kernels.RootPlan, Lanes]] = {}
        self._steps: list[tuple[float, int, int, int]] = []
        self._known = -1
        self._found = np.zeros((ROOT_HITS, 4), dtype=np.int64)

    @property
    def next(self) -> float:
        """Expected nanoseconds of the next step; infinite if there is none."""
        return self._steps[-1][0] if self._steps else np.inf

    def grow(self) -> None:
        """Plan the steps of all sizes that the bank has now."""
        size = self._bank.size
        counts = np.bincount(
            self._bank.sizes, weights=~self._bank.rows.kinds[: self._bank.kept + 1], minlength=size + 1
        )
        for c, roots in enumerate(ROOTS[: size + 1], 1):
            planned = 0.0 if c in self._plans else PLANNED * roots
            for j in range(size + 1):
                for i in range(j + 1):
                    if max(j, c - 1) > self._known and c + i + j < self._limits.max_length + ROOT_SHARED:
                        work = roots * float(counts[i]) * (QUERY + PAIR * float(counts[j]))
                        self._steps.append((STEP + planned + work, c, i, j))
        self._known = size
        self._steps.sort(reverse=True)

    def advance(self, run: Run) -> Stop:
        """Do the next step, and report programs and nodes to a search."""
        _, c, i, j = self._steps.pop()
        more = True
        state = np.zeros(8, dtype=np.int64)
        while more:
            more, trees = self._search(c, i, j, state)
            run.clock.nodes += int(state[7])
            self._bank.report(run, trees)
            if run.clock.is_up:
                return run.clock.stop
            more = more and not run.complete
        return ""

    def _search(self, c: int, i: int, j: int, state: Ints) -> tuple[bool, list[Tree]]:
        """Work for a while; returns whether more is to do, and trees of the output."""
        roots, plan, scratch = self._plan(c)
        sides = self._side(i), self._side(j)
        state[3], state[4], state[5], state[6], state[7] = 0, i == j, 0, ROOT_SLICE, 0
        more = kernels.search(self._bank.rows.pool, sides, plan, scratch, self._bounds, state, self._found)
        return more, [self._tree(roots, *hit) for hit in self._found[: state[3]].tolist()]

    def _tree(self, roots: Sequence[RootChain], root: int, f: int, a: int, b: int) -> Tree:
        return roots[root].above(
            (int(kernels.ZIPS[f]), b, a) if f == kernels.SUBTRACTED else (int(kernels.ZIPS[f]), a, b)
        )

    def _plan(self, c: int) -> tuple[list[RootChain], kernels.RootPlan, Lanes]:
        """Roots with so many operations."""
        if c not in self._plans:
            self._plans[c] = self._compile(self._chains.of(c))
        return self._plans[c]

    def _compile(self, roots: list[RootChain]) -> tuple[list[RootChain], kernels.RootPlan, Lanes]:
        """Roots, their tests in tables, and a pool with their targets and numbers."""
        goals = list(dict.fromkeys(root.goal for root in roots))
        rows = sorted({number for root in roots for _, number in root.steps if number >= 0})
        blank = [self._bank.rows.pool[:1]] * kernels.FREE
        scratch = np.concatenate([*blank, *(pack([goal.values], 1) for goal in goals), self._bank.rows.pool[rows]])
        places = {row: kernels.FREE + len(goals) + n for n, row in enumerate(rows)}
        tests: list[tuple[int, ...]] = []
        parts, chains = [], []
        for root in roots:
            parts.append([len(tests) + n for n in (0, root.lengths, root.items, len(root.tests))])
            tests += root.tests
            chain = [(o.id, places.get(number, -1)) for o, number in root.steps]
            chains.append(chain + [(-1, -1)] * (2 - len(chain)))
        targets = [kernels.FREE + goals.index(root.goal) for root in roots]
        shapes = ((tests, (-1, 6)), (parts, (-1, 4)), (chains, (-1, 2, 2)), (targets, (-1,)))
        return roots, kernels.RootPlan(*(np.array(x, dtype=np.int64).reshape(shape) for x, shape in shapes)), scratch

    def _side(self, size: int) -> kernels.Side:
        """Lists of a size that are long enough, by column."""
        if size not in self._sides:
            pool, rows = self._bank.rows.pool, rows_of(self._bank, size, False)
            chains = self._chains
            lengths = pool[rows][:, chains.columns[: len(chains.least)]]
            rows = rows[(lengths >= chains.least).all(1)]
            columns = np.empty((len(chains.columns), len(rows)), dtype=np.int16)
            kernels.gather(pool, rows, chains.columns, columns)
            self._sides[size] = kernels.Side(columns, rows)
        return self._sides[size]


LINE, KEPT, LAST = 15.0, 300.0, 60.0
"""Nanoseconds for a program of a depth-first search, for a tree that may enter the bank, and for
one that is only compared."""

PLAN = 1e6
"""Nanoseconds for a size of the bank besides: joins are planned."""


@cache
def prepare() -> None:
    """Compile all searches, or load them, before any clock runs."""
    depth_first.prepare()
    bottom_up.prepare()
    limits, order = Limits(2), Order.uniform()
    task = Task("any", (Example(((0, 1),), (0, 1)),))
    joins = Join(Bank(task, order, limits, DEFAULT), task, limits, DEFAULT)
    joins.grow()
    while joins.next < np.inf:
        joins.advance(Run("join", task, limits, DEFAULT))
    task = Task("any", (Example(((1, 2),), 5),))
    bank = Bank(task, order, limits, DEFAULT)
    bank.make(Clock())
    roots = Roots(bank, task, limits, DEFAULT)
    roots.grow()
    roots.advance(Run("join", task, limits, DEFAULT))


class Turns:
    """The searches, and what the next turn of each should cost.

    Attributes
    ----------
    full : "memory" if the bank has reached the limit.

    Parameters
    ----------
    run : search to which programs are reported.
    task, order, limits, semantics : arguments of a solver.
    close : excess of lines up to which a program is shortened, as in a `Bank`.
    """

    def __init__(
        self, run: Run, task: Task, order: Order, limits: Limits, semantics: Semantics, close: int = CLOSE
    ) -> None:
        self.full: Stop = ""
        self._run, self._order, self._limits = run, order, limits
        self._bank = Bank(task, order, limits, semantics)
        self._bank.close = close
        self._joins: tuple[Join | Roots, ...] = (
            Join(self._bank, task, limits, semantics),
            Roots(self._bank, task, limits, semantics),
        )
        self._lines, self._trees = _Effort(), _Effort()
        self._spent = [0.0, 0.0]

    @property
    def spent(self) -> float:
        """Expected nanoseconds of all turns so far."""
        return sum(self._spent)

    def take(self, prove: bool) -> str:
        """Take the next turn, of the side that will then have cost less: depth-first search, or the
        bank and its joins.

        Returns
        -------
        The search; empty if none is left.
        """
        run, growing = self._run, not self.full and self._bank.size < self._limits.max_length
        joins = min(self._joins, key=lambda joins: joins.next)
        tree = KEPT if self._bank.size + 1 < self._limits.max_length else LAST
        costs = {"dfs": LINE * self._lines.next if prove else np.inf}
        if not run.complete:
            costs |= {"bottom-up": PLAN + tree * self._trees.next if growing else np.inf, "join": joins.next}
        name = min(costs, key=lambda name: costs[name] + self._spent[name == "dfs"])
        if costs[name] == np.inf:
            return ""
        self._spent[name == "dfs"] += costs[name]
        before = run.nodes
        if name == "join":
            joins.advance(run)
            return name
        if name == "bottom-up":
            short = self._bank.grow(run)
            self.full = "memory" if short == "memory" else self.full
            self._trees.add(run.nodes - before)
            for joins in self._joins:
                joins.grow()
            return name
        length = run.exhausted + 1
        in_time = all(run.shortest == length or run.examine(length, space, 1) for space in bands(self._order, length))
        self._lines.add(run.nodes - before)
        if in_time and run.shortest > length:
            run.exhausted = length
        return name


class _Effort:
    """Nodes of the last two steps of a search, and the number expected for the next one."""

    def __init__(self) -> None:
        self._last, self._before = 0, 0

    def add(self, nodes: int) -> None:
        self._last, self._before = nodes, self._last

    @property
    def next(self) -> float:
        return self._last**2 / max(self._before, 1)
