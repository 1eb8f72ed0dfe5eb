"""Programs that fit a task, collected by length, in classes of equal behaviour.

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

import numpy as np

from thesis_cli.base.arrays import Floats, Ints, Words
from thesis_cli.synthesis import prior
from thesis_cli.synthesis.language.dsl import OPERATIONS, WIDEST, Semantics
from thesis_cli.synthesis.language.packing import Lanes, pack
from thesis_cli.synthesis.language.program import Line, Program
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.meant.inputs import Inputs, inputs_for
from thesis_cli.synthesis.search.depth_first import Clock, Examination
from thesis_cli.synthesis.search.solver import Limits, Order, Solution
from thesis_cli.synthesis.search.spaces import ALL, Pruning, bands

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
        from thesis_cli.synthesis.language.operation_kernels import bounds_of

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
