"""Programs that fit a task, collected by length, in classes of equal behaviour on inputs of the task's own kind.

Depth-first search examines every program of a length and leaves none out that differs off the
examples: a line may repeat the values of another one there. So up to the length that is complete, every behaviour
is seen. Programs of that length on, and behaviours that differ only on inputs rarer than the
probes, are not.

If the work does not suffice for all programs of a length, the network that looks at the examples decides
which ones come first; a prior or a guide of the user's overrules it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from thesis_cli.base.arrays import Floats, Ints, Words
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import DEFAULT, INT, OPERATIONS, WIDEST, Semantics, Value
from thesis_cli.synthesis.language.packing import Lanes, bounds_of, pack
from thesis_cli.synthesis.language.program import Line, Program, probes
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search.depth_first import ALL, Clock, Examination, Pruning, bands
from thesis_cli.synthesis.search.solver import Limits, Order, Solution

OWN, OTHERS = 96, 32
"""Inputs of the task's own kind, and others of its types (`program.probes`)."""

Inputs = tuple[Value, ...]


def inputs_for(task: Task, semantics: Semantics = DEFAULT) -> list[Inputs]:
    """`OWN` inputs like those of a task, then `OTHERS` of its types; the same in every run."""
    rng = np.random.default_rng(0)
    others = [row for row in probes(task.inputs) if all(map(semantics.holds, row))]
    return [*inputs_like(task, OWN, rng, semantics), *others[:OTHERS]]


def inputs_like(task: Task, count: int, rng: np.random.Generator, semantics: Semantics = DEFAULT) -> list[Inputs]:
    """Random inputs like those of a task.

    The numbers of a list lie between the least and the greatest one of this input in a random example,
    or up to twice as far from 0; a third of the lists take numbers of the examples alone. Lists are as
    long as those of the examples, give or take one number. What holds of all examples holds of the
    inputs: lists are as long as each other, or sorted; a number lies between 0 and the length of the
    first list.
    """
    return [_Kind(task, semantics).draw(rng) for _ in range(count)]


class _Kind:
    """Lengths, ranges and relations that the inputs of a task have in common."""

    def __init__(self, task: Task, semantics: Semantics) -> None:
        self._rows = [example.inputs for example in task.examples]
        self._columns = list(zip(*self._rows, strict=True))
        self._lists = [i for i, kind in enumerate(task.inputs) if kind is not INT]
        self._low, self._high = semantics.low, semantics.high
        lengths = [[_length(row[i]) for i in self._lists] for row in self._rows]
        flat = [n for row in lengths for n in row]
        fewest = min(flat, default=0)
        self._longest = min(max(flat, default=0) + 1, semantics.longest)
        self._shortest = max(fewest - 1, min(1, fewest))
        self._alike = len(self._lists) > 1 and len(flat) > 2 and all(len(set(row)) == 1 for row in lengths)
        self._sorted = [i for i in self._lists if _all_sorted(self._columns[i])]

    def draw(self, rng: np.random.Generator) -> Inputs:
        """One input of this kind."""
        row = self._rows[rng.integers(len(self._rows))]
        length = int(rng.integers(self._shortest, self._longest + 1))
        found: list[Value] = []
        for i, value in enumerate(row):
            if i not in self._lists:
                found.append(self._number(i, length, rng))
                continue
            n = length if self._alike or i == self._lists[0] else int(rng.integers(self._shortest, self._longest + 1))
            found.append(self._list(i, value, n, rng))
        return tuple(found)

    def _number(self, i: int, length: int, rng: np.random.Generator) -> int:
        seen = [number for row in self._rows if isinstance(number := row[i], int)]
        shortest = [_length(row[i]) for row in self._rows for i in self._lists[:1]]
        if shortest and all(0 <= x <= n for x, n in zip(seen, shortest, strict=True)):
            return int(rng.integers(0, length + 1))
        low, high = min(seen), max(seen)
        return int(rng.integers(max(low - (low < 0 or low > 1), self._low), min(high + 1, self._high) + 1))

    def _list(self, i: int, value: Value, n: int, rng: np.random.Generator) -> Value:
        every = [x for other in self._columns[i] for x in other]
        numbers = ([] if isinstance(value, int) else list(value)) or every or [0, 9]
        reach = 1 + int(rng.integers(3)) // 2
        low, high = max(reach * min(*numbers, 0), self._low), min(reach * max(numbers), self._high)
        if min(numbers) > 0:
            low = min(min(numbers), 1) if rng.random() < 0.5 else min(numbers)
        seen = bool(every) and rng.random() < 1 / 3
        drawn = rng.choice(every, n) if seen else rng.integers(low, max(high, low) + 1, n)
        return tuple(map(int, np.sort(drawn) if i in self._sorted else drawn))


def _length(value: Value) -> int:
    return 0 if isinstance(value, int) else len(value)


def _all_sorted(values: Sequence[Value]) -> bool:
    """Whether all lists of an input are sorted, and there is enough to tell."""
    lists = [value for value in values if not isinstance(value, int)]
    return sum(max(len(xs) - 1, 0) for xs in lists) > 5 and all(x <= y for xs in lists for x, y in pairwise(xs))


EVERY_BEHAVIOUR = ALL & ~Pruning.REPEATED
"""Programs that the collection leaves out: those that do what another one of at most their length
does, on all inputs."""

BLOCK = 2**12
"""Programs that are compared at a time."""

COMPARED = 500
"""Programs examined that take as long as one that fits takes to be compared."""

_SINGLE = np.array([len(o.inputs) == 1 for o in OPERATIONS])


@dataclass(eq=False)
class Behaviour:
    """Programs that fit and do the same on all probes.

    Attributes
    ----------
    lines : operation and arguments of each line of the best program: one of the fewest lines, then
        the most natural, then the most probable one by the order; shape (T, 3).
    rank : what the best one is least in.
    count : number of its programs of that length.
    codes : hashes of its outputs on all probes, 0 where there is none, shape (P,).
    """

    lines: Ints
    rank: tuple[float, ...]
    count: int
    codes: Words

    def program(self, task: Task) -> Program:
        """The best program."""
        return program_of(task, self.lines)


def program_of(task: Task, lines: Ints) -> Program:
    """The program of operations and arguments, shape (T, 3)."""
    made = [Line(int(id), (int(x), int(y))[: len(OPERATIONS[id].inputs)]) for id, x, y in lines]
    return Program(task.inputs, tuple(made))


def lines_of(program: Program) -> Ints:
    """Operation and arguments of each line, the argument twice if there is one, shape (T, 3)."""
    return np.array([(line.operation, line.arguments[0], line.arguments[-1]) for line in program.lines])


class Runner:
    """Outputs of programs on given inputs.

    Parameters
    ----------
    inputs : P inputs.
    semantics : range of numbers, and rounding; by default, numbers may have up to 16 bits.
    """

    def __init__(self, inputs: Sequence[Inputs], semantics: Semantics, wide: bool = True) -> None:
        self._columns, self._count = list(zip(*inputs, strict=True)), len(inputs)
        self._pools: dict[int, Lanes] = {}
        bounds = bounds_of(semantics)
        self._bounds = bounds._replace(low=np.int16(-WIDEST), high=np.int16(WIDEST)) if wide else bounds

    def codes(self, programs: Ints) -> Words:
        """Hash of each output, 0 where there is none, shape (N, P), of programs of shape (N, T, 3)."""
        from thesis_cli.synthesis.meant.outputs_kernels import outputs

        inputs, length = len(self._columns), programs.shape[1]
        if length not in self._pools:
            self._pools[length] = pack(self._columns, inputs + length)
        pool = self._pools[length]
        found = np.zeros((len(programs), self._count), dtype=np.uint64)
        outputs(np.ascontiguousarray(programs), inputs, pool, pool.view(np.uint64), self._bounds, found)
        return found


@dataclass
class Collection:
    """The behaviours of the programs that fit a task.

    Attributes
    ----------
    task : the task.
    inputs : the probes.
    behaviours : by their digest.
    complete : every program of at most this length was examined.
    nodes : programs examined.
    seconds : time that it took.
    """

    task: Task
    inputs: list[Inputs]
    behaviours: dict[int, Behaviour] = field(default_factory=dict)
    complete: int = 0
    nodes: int = 0
    seconds: float = 0.0


class Collector:
    """Collects programs of one task.

    Parameters
    ----------
    task, order, semantics : arguments of a solver.
    """

    def __init__(self, task: Task, order: Order, semantics: Semantics) -> None:
        self.found = Collection(task, inputs_for(task, semantics))
        self._order, self._semantics = order, semantics
        self._runner = Runner(self.found.inputs, semantics)
        logs = np.log(np.maximum(order.of_operations, 1e-4))
        self._costs: Floats = -logs

    def by_length(self, clock: Clock, most: int, beyond: int, work: int) -> None:
        """Collect all programs length by length, up to `beyond` lines more than the first that fits, as
        long as the work lasts.

        Parameters
        ----------
        clock : stops the collection when a limit of time is reached.
        most : lines of the longest program.
        work : programs to examine; one that fits counts as `COMPARED` besides.
        """
        found, left = self.found, work
        for length in range(1, most + 1):
            if found.behaviours and length > min(len(b.lines) for b in found.behaviours.values()) + beyond:
                return
            for space in bands(self._order, length):
                examination = Examination(found.task, self._semantics, length, space, BLOCK, EVERY_BEHAVIOUR)
                before, going = found.nodes, True
                full = False
                while going or full:
                    going = examination.advance()
                    full = examination.full
                    rows = examination.take_rows()
                    left += found.nodes - before - examination.nodes - COMPARED * len(rows)
                    found.nodes = before + examination.nodes
                    self.add(rows)
                    if left <= 0 or clock.is_up:
                        return
            found.complete = length

    def add(self, rows: Ints) -> None:
        """Add programs that fit, all of one length, shape (N, T, 3)."""
        if not len(rows):
            return
        codes = self._runner.codes(rows)
        digests = (codes * _MULTIPLIERS[: codes.shape[1]]).sum(axis=1, dtype=np.uint64)
        length = rows.shape[1]
        twice = ((rows[:, :, 1] == rows[:, :, 2]) & ~_SINGLE[rows[:, :, 0]]).sum(axis=1)
        taken = length + (~_SINGLE[rows[:, :, 0]]).sum(axis=1)
        cost = self._costs[rows[:, :, 0]].sum(axis=1)
        ranked = np.lexsort((cost, taken, twice))
        _, firsts, counts = np.unique(digests[ranked], return_index=True, return_counts=True)
        for place, count in zip(ranked[firsts].tolist(), counts.tolist(), strict=True):
            rank = (length, int(twice[place]), int(taken[place]), float(cost[place]))
            key = int(digests[place])
            old = self.found.behaviours.get(key)
            if old is None or rank < old.rank:
                same = old.count if old and old.rank[0] == length else 0
                self.found.behaviours[key] = Behaviour(rows[place].copy(), rank, count + same, codes[place].copy())
            elif old.rank[0] == length:
                old.count += count


_MULTIPLIERS = np.random.default_rng(0).integers(2**64, size=2**8, dtype=np.uint64) | np.uint64(1)


WORK = 3 * 10**7
"""Programs that are examined, some 0.4 s."""

NETWORK = "lines-4"
"""Weights of the network that orders the programs."""

BEYOND = 1
"""Lines that programs may have more than the shortest one."""


def collect(
    task: Task,
    order: Order,
    limits: Limits,
    semantics: Semantics,
    known: Solution | None = None,
    led: bool = True,
) -> Collection:
    """The behaviours of the programs that fit a task; an example that is given again says nothing more.

    Parameters
    ----------
    task, order, limits, semantics : arguments of a solver; the time is what `known` has left of it.
    known : what a search found; its programs are collected, too.
    led : whether the network takes the place of the default order.
    """
    task = replace(task, examples=tuple(dict.fromkeys(task.examples)))
    spent = known.seconds if known else 0.0
    left = None if limits.timeout is None else max(limits.timeout - spent, 1e-9)
    clock = Clock(replace(limits, timeout=left, nodes=None))
    collector = Collector(task, _led(task, order) if led else order, semantics)
    collector.by_length(clock, limits.max_length, BEYOND, WORK)
    for program in known.programs if known else ():
        collector.add(lines_of(program)[None])
    collector.found.seconds = clock.seconds
    return collector.found


def _led(task: Task, order: Order) -> Order:
    """The order of the network, instead of the default one."""
    from thesis_cli.synthesis.networks.network_guide import network_guide

    return (network_guide(NETWORK).orders([task])[0] or order) if order == prior.load() else order
