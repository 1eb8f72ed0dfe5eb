"""Search that meets in the middle: values forward from the inputs, goals backward from the output.

A bank (`bottom_up`) holds the values of all small expressions. Goals are lists from which
operations that can be inverted lead to the output. Where a goal is the result of ZIPWITH, a join
(`join_kernels`) finds both its arguments in the bank at once, and a double join those of two
ZIPWITH, one inside the other. TAKE, DROP, HEAD and ACCESS of what a ZIPWITH gives are joins, too:
they only choose which part of the lists is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from itertools import count

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.join.inverses import Path, unwound, wrap
from thesis_cli.synthesis.join.join_kernels import ALONE, FOUND, Search, join, join_twice
from thesis_cli.synthesis.join.join_view_kernels import Part, View, index, pack
from thesis_cli.synthesis.language.dsl import BY_NAME, DEFAULT, LIST, Semantics, Value
from thesis_cli.synthesis.language.packing import WIDTH, Lanes
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.bottom_up import Bank, Tree
from thesis_cli.synthesis.search.depth_first import Run
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
        count = int(pack(bank.rows.pool, bank.rows.kinds[:used], part, rows, packed, keys, seen))
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

    def _plan(
        self, root: Root, goals: Goals, sizes: list[int], pairs: list[tuple[int, int]], rows: npt.NDArray[np.int64]
    ) -> None:
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

    def _numbers(self, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
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


@cache
def prepare() -> None:
    """Compile the joins, or load them, before any clock runs."""
    task = Task("any", (Example(((0, 1),), (0, 1)),))
    limits = Limits(2)
    run = Run("join", task, limits, DEFAULT)
    joins = Join(Bank(task, Order.uniform(), limits, DEFAULT), task, limits, DEFAULT)
    joins.grow()
    while joins.next < np.inf:
        joins.advance(run)
