"""Searches of the same held-out tasks with the predictions of a network, and with the prior alone
(Thesis sections 5.5.1 and 5.5.2).

The searches are those of the source, depth-first search and Sort-and-add over all programs, and
those of today, which leave out most programs. The time of the former is told by the programs that
they examine, at the source's speed: it is the same on every machine.

They examine all programs of a length, so how many come before a program depends on types alone, and
`Programs` counts them. Only programs that may fit are run: a search that leaves out those that cannot,
and those for which an earlier or a shorter one fits (`depth_first.Pruning`), finds the same first program.
`DepthFirst(NONE)` and `SortAndAdd(NONE, again=True)` are the searches themselves, which examine some
5e7 programs a second; they give the same programs and numbers of programs, and stop at the same ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from thesis_cli.studies.synthesis import timing
from thesis_cli.studies.synthesis.incidence import incidence
from thesis_cli.studies.synthesis.predictions import guide_of, trainings
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, OPERATIONS, Semantics
from thesis_cli.synthesis.language.task import Example, Task, check
from thesis_cli.synthesis.search.depth_first import SLICE, Clock, Examination, Space, active_sets
from thesis_cli.synthesis.search.solver import Limits, Order, Solution, Solver
from thesis_cli.synthesis.training.corpora import held_out

if TYPE_CHECKING:
    import pandas as pd


STRIDE = 4 * SLICE
"""Lines tried before the search looks at its limit."""

Place = Sequence[int]
"""A line: place of its operation among those of the search, first and last argument."""


class Programs:
    """All programs of T lines over some operations, in depth-first order.

    A search tries lines one at a time, and counts all programs that a last line makes of a beginning at once.

    Parameters
    ----------
    task : gives the types of the inputs.
    operations : ids, in the order in which they are tried.
    length : T.
    """

    def __init__(self, task: Task, operations: Sequence[int], length: int) -> None:
        self._inputs = [kind is INT for kind in task.inputs]
        self._length = length
        self._operations = [OPERATIONS[id] for id in operations]
        self._gives = [o.output is INT for o in self._operations]
        self._known: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    def total(self) -> tuple[int, int]:
        """Numbers of programs and of lines tried."""
        return self._below(0, sum(self._inputs))

    def _choices(self, place: int, numbers: int, lists: int) -> int:
        """Number of lines with an operation."""
        kinds = self._operations[place].inputs
        return prod(numbers if kind is INT else lists for kind in kinds)

    def _below(self, depth: int, numbers: int) -> tuple[int, int]:
        """Numbers of programs and of lines that begin with `depth` given lines; `numbers` of the variables are
        numbers."""
        if depth == self._length:
            return 1, 0
        if (depth, numbers) not in self._known:
            programs = lines = 0
            lists = len(self._inputs) + depth - numbers
            for place, gives in enumerate(self._gives):
                count, (more, further) = self._choices(place, numbers, lists), self._below(depth + 1, numbers + gives)
                programs, lines = programs + count * more, lines + count * (1 + further)
            self._known[depth, numbers] = programs, lines
        return self._known[depth, numbers]

    def until(self, beginning: Sequence[Place]) -> tuple[int, int]:
        """Numbers of programs counted and of lines tried when the last line of a beginning is tried."""
        types = list(self._inputs)
        programs = lines = 0
        for depth, (place, x, y) in enumerate(beginning):
            numbers, lists = sum(types), len(types) - sum(types)
            before = [(each, self._choices(each, numbers, lists)) for each in range(place)]
            before.append((place, self._rank(place, types, x, y)))
            if depth == self._length - 1:
                programs += self._below(depth, numbers)[0]
                lines += sum(count for _, count in before)
            else:
                for each, count in before:
                    more, further = self._below(depth + 1, numbers + self._gives[each])
                    programs, lines = programs + count * more, lines + count * (1 + further)
            lines += 1
            types.append(self._gives[place])
        return programs, lines

    def _rank(self, place: int, types: Sequence[bool], x: int, y: int) -> int:
        """Number of lines with the operation that come before that with given arguments."""
        rank = 0
        for kind, variable in zip(self._operations[place].inputs, (x, y), strict=False):
            same = [v for v, number in enumerate(types) if number == (kind is INT)]
            rank = rank * len(same) + same.index(variable)
        return rank

    def after(self, lines: int) -> int:
        """Number of programs counted when so many lines are tried."""
        programs, numbers = 0, sum(self._inputs)
        for depth in range(self._length):
            if not lines:
                break
            if depth == self._length - 1:
                programs += self._below(depth, numbers)[0]
                break
            for place, gives in enumerate(self._gives):
                count = self._choices(place, numbers, len(self._inputs) + depth - numbers)
                more, further = self._below(depth + 1, numbers + gives)
                whole = min(count, lines // (1 + further))
                programs, lines = programs + whole * more, lines - whole * (1 + further)
                if whole < count:
                    break
            lines = max(lines - 1, 0)  # the line that comes next
            numbers += gives
        return programs

    def lines_until(self, most: int) -> int | None:
        """Lines tried when a search that looks at its limit after each `SLICE` of them has counted `most`
        programs; None if it ends before."""
        ends = self.total[1] // SLICE
        if self.after(ends * SLICE) < most:
            return None
        low, high = 0, ends
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.after(middle * SLICE) >= most else (middle, high)
        return high * SLICE


@dataclass(frozen=True)
class SourceSearch:
    """Depth-first search of the source, or its Sort and add.

    Parameters
    ----------
    name : `dfs`, or `sort-and-add`, whose set of operations grows.
    """

    name: str

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`; of the limits, those of length and of programs. `seconds` are those of counting."""
        clock, exhausted = Clock(), 0
        most = limits.nodes
        for length, space in self._parts(order, limits.max_length):
            if most is not None and clock.nodes >= most:
                return Solution((), self.name, clock.nodes, clock.seconds, exhausted, "nodes")
            every = Programs(task, space.operations, length)
            end = None if most is None else every.lines_until(most - clock.nodes)
            examination = Examination(task, semantics, length, space)
            going = True
            while going and (end is None or every.until(examination.beginning.tolist())[1] <= end):
                going = examination.advance(STRIDE)
            for program in examination.programs:
                lines = [(line.operation, line.arguments[0], line.arguments[-1]) for line in program.lines]
                programs, tried = every.until([(space.operations.index(id), x, y) for id, x, y in lines])
                if end is None or tried <= end:
                    assert check(program, task, semantics)
                    nodes, seconds = clock.nodes + programs, clock.seconds
                    return Solution((program,), self.name, nodes, seconds, exhausted, found_after=seconds)
            if end is not None:
                nodes = clock.nodes + every.after(end)
                return Solution((), self.name, nodes, clock.seconds, exhausted, "nodes")
            clock.nodes += every.total[0]
            exhausted = length if len(space.operations) == len(order.operations) else exhausted
        return Solution((), self.name, clock.nodes, clock.seconds, exhausted)

    def _parts(self, order: Order, longest: int) -> Iterator[tuple[int, Space]]:
        """Lengths, with the programs that may be the first one that fits: over a larger set, those with a new
        operation."""
        known: tuple[int, ...] = ()
        for now in active_sets(order) if self.name == "sort-and-add" else [order.operations]:
            space = Space(now, tuple(id not in known for id in now))
            yield from ((length, space) for length in range(1, longest + 1))
            known = now


RATE = 3e6
"""Programs a second that the source's depth-first search examines (appendix D.4)."""

SOURCE = {"dfs, source": "dfs", "sort-and-add, source": "sort-and-add"}
"""The source's searches, and today's in their place."""

PRIOR, NETWORK = "prior", "network"
"""Guides: the global incidence in a training corpus, and the network that was trained on it; another
training of that network has its name in `predictions.trainings`."""

WEIGHTS = {"beam": "program"}
"""Searches with a network of their own, and its weights; others take `lines-T`."""

COLUMNS = ["search", "guide", "trained", "length", "task", "nodes", "seconds", "call", "answer", "stopped"]

FACTOR = 8
"""By which the limit of `until_share` grows."""


def solver(name: str) -> Solver:
    """A search by name: the source's, or today's."""
    return SourceSearch(SOURCE[name]) if name in SOURCE else timing.solver(name)


def tasks_of(length: int, first: int, last: int) -> list[Task]:
    """Held-out tasks of a length, from number `first` to `last`."""
    corpus = held_out(length)
    return [corpus.task(row) for row in range(first, min(last + 1, len(corpus)))]


def orders(guide: str, weights: str, trained: int, tasks: Sequence[Task]) -> tuple[list[Order], list[float]]:
    """The order of each task, and the processor seconds of making it, one task at a time.

    Parameters
    ----------
    guide : `PRIOR`, `NETWORK`, or another training.
    weights : name of the weights of `NETWORK`.
    trained : length T of the programs that the prior counts.
    """
    if guide == PRIOR:
        return [incidence(trained)] * len(tasks), [0.0] * len(tasks)
    network = guide_of(weights if guide == NETWORK else guide)
    network.orders(tasks[:1])  # everything is loaded
    found: list[Order | None] = []
    seconds: list[float] = []
    for task in tasks:
        began = time.process_time()
        found += network.orders([task])
        seconds.append(time.process_time() - began)
    return [order or incidence(trained) for order in found], seconds


def plan(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tasks of an experiment.

    Parameters
    ----------
    settings : `trained` and `length`, as `run` takes them, and `searches`: name, guide, number of
        held-out tasks, how many of them an experiment's task has, and the limits of each. With
        `trainings` the other trainings of the network guide the source's searches as well.
    """
    both = {name: settings[name] for name in ("trained", "length")}
    others = trainings(f"lines-{settings['trained']}")[1:] if settings.get("trainings") else []
    names = ("search", "guide", "first", "last", "nodes", "timeout")
    return [
        {**both, **dict(zip(names, (search, guide, first, min(first + batch, count) - 1, nodes, timeout), strict=True))}
        for search, network, count, batch, nodes, timeout in settings["searches"]
        for guide in [network, *(others if network == NETWORK and search in SOURCE else [])]
        for first in range(0, count, batch)
    ]


def run(
    seed: Any,
    trained: int,
    length: int,
    search: str,
    guide: str,
    first: int,
    last: int,
    **limits: Any,
) -> pd.DataFrame:
    """A row for each of some held-out tasks.

    Parameters
    ----------
    trained : length T of the programs of the training corpus.
    length : T of the tasks, and of the longest programs that are searched.
    search : name of the search, as `solver` takes it.
    guide : as `orders` takes it.
    first, last : numbers of the tasks.
    limits : `nodes` and `timeout`, as for `limits_of`.

    Returns
    -------
    Columns `COLUMNS`. `seconds` are processor seconds of the search, of the source's searches those of
    counting; `call` are those of making the order before it. `answer` is the length of the program
    found, missing without one.
    """
    import pandas as pd

    tasks = tasks_of(length, first, last)
    given, calls = orders(guide, WEIGHTS.get(search, f"lines-{trained}"), trained, tasks)
    by = solver(search)
    by.solve(Task("any", (Example(((0,),), 0),)), Order.uniform(), Limits(1))  # everything is loaded
    chosen = limits_of(search, length, **limits)
    rows = []
    for place, (task, order, call) in enumerate(zip(tasks, given, calls, strict=True), first):
        began = time.process_time()
        found = timing.solution_of(by, task, order, chosen)
        seconds = time.process_time() - began
        answer = len(found.program) if found.program else None
        what = (search, guide, trained, length, place, found.nodes)
        rows.append((*what, rounded(seconds), rounded(call), answer, found.stopped))
    return pd.DataFrame(rows, columns=COLUMNS).astype({"answer": "Int64"})


def limits_of(search: str, length: int, nodes: int | None, timeout: float | None) -> Limits:
    """Limits of a search: a number of programs, or what `timing.within` makes of seconds."""
    return Limits(length, nodes=nodes) if nodes is not None else timing.within(search, length, timeout)


def until_share(
    search: str, given: Sequence[Order], tasks: Sequence[Task], length: int, share: float, nodes: int
) -> list[Solution]:
    """Search all tasks with a growing limit, until a share of them is solved.

    Parameters
    ----------
    search : name of a depth-first search, as `solver` takes it.
    given : the order of each task.
    length : T of the longest programs.
    nodes : the last limit of the programs of a task.

    Returns
    -------
    The solution of each task under the last limit that was tried. Those that are not solved cost
    more than the share needs, unless that is not solved at all.
    """
    limit, by = min(nodes, 2**16), solver(search)
    found: dict[int, Solution] = {}
    while True:
        for place in range(len(tasks)):
            if place not in found or not found[place].program:  # a larger limit changes no other
                found[place] = timing.solution_of(by, tasks[place], given[place], Limits(length, nodes=limit))
        if sum(bool(solution.program) for solution in found.values()) >= share * len(tasks) or limit >= nodes:
            return [found[place] for place in range(len(tasks))]
        limit = min(nodes, FACTOR * limit)


def rounded(seconds: float) -> float:
    """Seconds to three digits."""
    return float(f"{seconds:.3g}")
