"""Complete anytime beam search over programs that are built line by line (CAB, Zhang 1998).

A policy scores the next lines of partial programs, by the values that they have. A beam keeps the
best partial programs of each length. When it is done, it starts anew with twice the width, until a
program is found or nothing was left out. Compiled searches add the last lines (`tails`), more of
them to partial programs that the policy ranks higher.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import log
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Bools, Ints, Words
from thesis_cli.synthesis.guided import tails
from thesis_cli.synthesis.guided.beam_search import best
from thesis_cli.synthesis.guided.tails import Tails
from thesis_cli.synthesis.language.dsl import DEFAULT, Semantics
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.networks import next_line
from thesis_cli.synthesis.networks.next_line import PRUNING, NextLine
from thesis_cli.synthesis.search import execution
from thesis_cli.synthesis.search.depth_first import Run
from thesis_cli.synthesis.search.solver import GIB, Limits, LineOrder, Order, Solution, Stop, refutation

if TYPE_CHECKING:
    from thesis_cli.synthesis.search.execution import Moves, Pool

WIDTH = 8
"""Partial programs of each length in the first beam."""

BRANCHING = 4
"""Next lines that are run for each partial program that a beam has room for: some give no new
value."""

TAIL = 1e5
"""Nanoseconds to search for the last lines of the last partial program of a beam."""

AGAIN = 4
"""Factor by which the time for a partial program grows before it is searched again."""

SCORE = 1e5
"""Nanoseconds to score the next lines of a partial program and to run them."""

MOST_PROGRAMS = 10
"""Programs that are reported of one step."""


@cache
def prepare() -> None:
    """Compile the search, or load it, before any clock runs."""
    execution.prepare()
    tails.prepare()


@dataclass(frozen=True)
class AnytimeBeam:
    """Complete anytime beam search, until a program is found, which need not be the shortest.

    Parameters
    ----------
    policy : scores next lines; that of the order of the search if it is left out.
    tails : whether compiled searches add the last lines.
    """

    policy: Policy | None = None
    tails: bool = True
    name: str = "guided"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        if found := refutation(self.name, task, limits, semantics):
            return found
        prepare()
        run = Run(self.name, task, limits, semantics)
        beam = WideningBeam(run, self.policy or policy_of(order), task, order, limits, semantics, self.tails)
        short: Stop = ""
        try:
            while not (short or run.complete or beam.complete):
                short = beam.widen()
        except KeyboardInterrupt:
            short = "interrupted"
        return run.solution(short)


def policy_of(order: Order) -> Policy:
    """The network that an order names, or else the order itself. Raises InputError as
    `weights.load` does."""
    return network(order.weights) if isinstance(order, LineOrder) else PriorPolicy(order)


@cache
def network(weights: str = "next-line") -> NextLine:
    """The network of some weights, ready to be asked."""
    next_line.prepare()
    return NextLine.load(weights)


class WideningBeam:
    """Beams, each twice as wide as the one before.

    Parameters
    ----------
    run : search to which programs are reported.
    policy : scores next lines.
    task, order, limits, semantics : arguments of a solver.
    tails : whether compiled searches add the last lines.

    Attributes
    ----------
    complete : whether the last beam has left nothing out.
    """

    def __init__(
        self,
        run: Run,
        policy: Policy,
        task: Task,
        order: Order,
        limits: Limits,
        semantics: Semantics,
        tails: bool = True,
    ) -> None:
        self.complete = False
        self._run, self._policy, self._limits = run, policy, limits
        self._start = execution.start([task], limits.max_length, semantics)
        self._tails = Tails(run, task, order, limits, semantics) if tails else None
        self._searched: dict[int, float] = {}
        self._inputs, self._width = len(task.inputs), WIDTH
        row = self._start.values.shape[2]
        self._multipliers = np.random.default_rng(0).integers(2**64, size=row // 4, dtype=np.uint64) | np.uint64(1)
        self._most = max(WIDTH, int(limits.memory * GIB / (4 * BRANCHING * self._start.values.nbytes)))

    @property
    def next(self) -> float:
        """Expected nanoseconds of the next beam."""
        return self._limits.max_length * self._width * (SCORE + TAIL * log(self._width))

    def widen(self) -> Stop:
        """Search with the next beam."""
        if self._width > self._most:
            return "memory"
        whole, layer = True, _Layer.of(self._start)
        for length in range(1, self._limits.max_length + 1):
            if length > self._run.longest or not len(layer.pool):
                break
            listed, scores = self._next_lines(layer)
            if short := self._finish(layer, _totals(listed, scores)):
                return short
            if self._run.complete:
                break
            layer, left_out = self._extend(layer, listed, scores)
            whole = whole and not left_out
            if whole:
                self._run.exhausted = max(self._run.exhausted, length)
            if self._run.clock.is_up:
                return self._run.clock.stop
        self.complete = whole
        self._width *= 2
        return ""

    def _finish(self, layer: _Layer, totals: npt.NDArray[np.float64]) -> Stop:
        """Search for the last lines of partial programs, which rank by their totals; a rank twice as
        low has half the time."""
        for rank, row in enumerate(best(totals, len(totals)).tolist() if self._tails else [], 1):
            key, budget = int(layer.keys[row]), TAIL * self._width / rank
            if totals[row] == -np.inf or budget < AGAIN * self._searched.get(key, 0.0):
                continue
            self._searched[key] = budget
            assert self._tails
            short = self._tails.search(layer.pool, row, budget)
            if short or self._run.complete:
                return short
            if self._run.clock.is_up:
                return self._run.clock.stop
        return ""

    def _next_lines(self, layer: _Layer) -> tuple[Moves, npt.NDArray[np.float64]]:
        """The next lines of partial programs, and their scores."""
        listed = execution.moves(layer.pool, pruning=PRUNING)
        return listed, layer.scores[listed.parents] + self._policy.scores(layer.pool, listed)

    def _extend(self, layer: _Layer, listed: Moves, scores: npt.NDArray[np.float64]) -> tuple[_Layer, bool]:
        """The next beam, and whether it leaves anything out."""
        chosen = best(scores, BRANCHING * self._width)
        parents, lines = listed.parents[chosen], listed.lines[chosen]
        pool = execution.step(layer.pool, lines, parents)
        self._run.clock.nodes += len(pool)
        solved = np.flatnonzero(pool.solved)[:MOST_PROGRAMS].tolist()
        self._run.add([tails.without_unused(pool.program(row)) for row in solved])
        longer = layer.longer(pool, lines, parents, scores[chosen], self._multipliers, self._inputs)
        kept = best(longer.scores, self._width)
        return longer.take(kept), len(chosen) < len(scores) or len(kept) < len(longer.scores)


@dataclass(frozen=True, eq=False)
class _Layer:
    """Partial programs of one length, the best first.

    Attributes
    ----------
    pool : the programs.
    scores : logarithms of their probabilities, shape (B,).
    hashes : hashes of the values of all variables, shape (B, V).
    used : whether a line takes a variable, shape (B, V).
    keys : programs with equal keys have the same values, and the same of them are used, shape (B,).
    """

    pool: Pool
    scores: npt.NDArray[np.float64]
    hashes: Words
    used: Bools
    keys: Words

    @classmethod
    def of(cls, pool: Pool) -> _Layer:
        """A pool of programs without lines."""
        shape = pool.types.shape
        used = np.zeros(shape, dtype=np.bool_)
        return cls(pool, np.zeros(len(pool)), np.zeros(shape, np.uint64), used, np.zeros(len(pool), np.uint64))

    def take(self, rows: Ints | Bools) -> _Layer:
        """Some of the programs."""
        return _Layer(self.pool.take(rows), self.scores[rows], self.hashes[rows], self.used[rows], self.keys[rows])

    def longer(
        self,
        pool: Pool,
        lines: Ints,
        parents: Ints,
        scores: npt.NDArray[np.float64],
        multipliers: Words,
        inputs: int,
    ) -> _Layer:
        """Programs that are one line longer, without those that have no value or repeat one; of
        those with equal keys the most probable, with the probability of all."""
        new = np.flatnonzero(pool.valid & ~pool.repeated)
        pool, lines, parents, scores = pool.take(new), lines[new], parents[new], scores[new]
        rows, last = np.arange(len(pool)), pool.sizes - 1
        words = np.ascontiguousarray(pool.values[rows, last]).view(np.uint64)
        hashes, used = self.hashes[parents], self.used[parents]
        hashes[rows, last] = _mixed(words + pool.types[rows, last, None].astype(np.uint64)) @ multipliers
        used[rows, lines[:, 1]] = used[rows, lines[:, 2]] = True
        marked = _mixed(hashes + used.astype(np.uint64)) * multipliers[0]
        marked[:, :inputs] = 0
        keys = _mixed(marked).sum(axis=1, dtype=np.uint64)
        order = np.lexsort((rows, -scores, keys))
        firsts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
        merged = np.logaddexp.reduceat(scores[order], firsts) if len(firsts) else scores
        found = _Layer(pool, scores, hashes, used, keys).take(order[firsts])
        return _Layer(found.pool, merged, found.hashes, found.used, found.keys)


def _mixed(words: Words) -> Words:
    """High bits into low ones, so that products depend on all of them."""
    return np.asarray(words ^ (words >> np.uint64(29)))


def _totals(listed: Moves, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Logarithms of the probabilities of partial programs, as a policy sees them that reads their
    values: those of their next lines together. Without a next line, there is none."""
    found = np.full(listed.programs, -np.inf)
    firsts = np.flatnonzero(np.diff(listed.parents, prepend=-1))
    if len(firsts):
        found[listed.parents[firsts]] = np.logaddexp.reduceat(scores, firsts)
    return found


LEAST = 1e-6
"""Probability that an operation has at least."""


@runtime_checkable
class Policy(Protocol):
    """A source of probabilities of next lines."""

    def scores(self, pool: Pool, moves: Moves) -> npt.NDArray[np.float32]:
        """Logarithms of the probabilities of the next lines of partial programs, shape (N,);
        deterministic.

        Parameters
        ----------
        pool : the programs.
        moves : next lines of them, as `moves(pool, pruning=next_line.PRUNING)` lists them.
        """


@dataclass(frozen=True)
class PriorPolicy:
    """The policy that sees no values: an operation by its probability, then any of its moves.

    Attributes
    ----------
    order : probabilities of functions and lambdas.
    """

    order: Order

    def scores(self, pool: Pool, moves: Moves) -> npt.NDArray[np.float32]:
        """See `Policy`."""
        weights = np.maximum(self.order.of_operations, LEAST)
        places = moves.parents * len(weights) + moves.lines[:, 0]
        alike = np.bincount(places, minlength=len(pool) * len(weights)).reshape(len(pool), len(weights))
        totals = (weights * (alike > 0)).sum(axis=1)
        found = np.log(weights[moves.lines[:, 0]] / totals[moves.parents] / alike.reshape(-1)[places])
        return np.asarray(found, dtype=np.float32)
