"""Beam search over whole programs, line by line (Thesis section 5.5.3 and appendix D.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.language.dsl import DEFAULT, OPERATIONS, Semantics
from thesis_cli.synthesis.language.task import Task
from thesis_cli.synthesis.search import depth_first, execution
from thesis_cli.synthesis.search.depth_first import Run
from thesis_cli.synthesis.search.execution import Moves, Pool, start, step
from thesis_cli.synthesis.search.solver import GIB, Limits, Order, Solution, Stop, TokenOrder, refutation

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Floats, Ints
    from thesis_cli.synthesis.networks.program_decoder import ProgramNetwork

States = npt.NDArray[np.float32]

PART = 2**10
"""Beginnings whose next lines are listed at a time; then the clock is looked at."""

LEAST = 1e-6
"""Weight of an operation whose probability is less: the beam reaches it last, but reaches it."""


class Scores(Protocol):
    """Probabilities of the next lines of programs."""

    @property
    def longest(self) -> int | None:
        """Lines of the longest programs that it knows; None for any."""

    def start(self, task: Task) -> States:
        """The state of the empty program, shape (1, K); raises InputError for a task that it cannot
        take."""

    def lines(self, states: States, pool: Pool, found: Moves, line: int) -> tuple[States, Floats]:
        """The next states of the programs of a pool, shape (W, K), and logarithms of the
        probabilities of their next lines `found`, shape (N,).

        Parameters
        ----------
        states : states of the programs, shape (W, K).
        line : number of the next line, from 0.
        """


@dataclass(frozen=True)
class OrderScores:
    """Scores from probabilities of attributes alone: an operation of the next line has a probability
    proportional to that of the order, and all its arguments are equally probable.

    It knows neither the examples nor the lines above, except by what is legal.
    """

    order: Order
    longest: None = None

    def start(self, task: Task) -> States:
        """No state."""
        return np.zeros((1, 0), dtype=np.float32)

    def lines(self, states: States, pool: Pool, found: Moves, line: int) -> tuple[States, Floats]:
        """See `Scores`."""
        weights = np.maximum(self.order.of_operations, LEAST)
        groups = found.parents * len(OPERATIONS) + found.lines[:, 0]  # moves of one operation stand together
        firsts = np.flatnonzero(np.diff(groups, prepend=-1))
        sizes = np.diff(firsts, append=len(groups))
        own = weights[found.lines[firsts, 0]]
        totals = np.bincount(found.parents[firsts], own, minlength=len(pool))
        return states, np.repeat(np.log(own / totals[found.parents[firsts]] / sizes), sizes)


@dataclass(frozen=True)
class NetworkScores:
    """Scores of a decoder: its softmax over the legal next lines."""

    network: ProgramNetwork

    @property
    def longest(self) -> int:
        """Lines of the longest program that the decoder writes."""
        return self.network.lines

    def start(self, task: Task) -> States:
        """The pooled encoding of the examples."""
        return self.network.start(task)

    def lines(self, states: States, pool: Pool, found: Moves, line: int) -> tuple[States, Floats]:
        """See `Scores`."""
        inputs = pool.tasks[0].inputs
        above = np.full(len(pool), len(self.network.of_token) - 1)
        if line:
            above = self.network.tokens(pool.lines[:, line - 1], inputs, line - 1)
        states, logits = self.network.step(states, above, pool.lines.shape[1] - line)
        own = logits[found.parents, self.network.tokens(found.lines, inputs, line)].astype(np.float64)
        firsts = np.flatnonzero(np.diff(found.parents, prepend=-1))
        sizes = np.diff(firsts, append=len(own))
        if len(own):
            own -= np.repeat(np.maximum.reduceat(own, firsts), sizes)
            own -= np.repeat(np.log(np.add.reduceat(np.exp(own), firsts)), sizes)
        return states, own


@dataclass(frozen=True)
class Beam:
    """Beam search for programs of each length in turn, with a beam that is doubled until the timeout
    (appendix D.2).

    A beam keeps the most probable beginnings of programs of length T: those whose lines so far have
    the largest product of probabilities. After the last line, all programs of the beam are run on
    the examples. The next lines are those that `moves` lists, so that all programs are well-typed;
    beginnings that have no value on the examples leave the beam.

    Probabilities come from the decoder of a `TokenOrder`, or from the operations of another order,
    such as the prior.

    Parameters
    ----------
    width : width of the first beam.

    Notes
    -----
    `nodes` counts programs that were run; a wider beam runs those of the narrower ones again. A
    beam from which nothing was cut holds all programs of its length, and `exhausted` says so.
    """

    width: int = 1
    name: str = "beam"

    def solve(self, task: Task, order: Order, limits: Limits, semantics: Semantics = DEFAULT) -> Solution:
        """See `solver.Solver`."""
        if found := refutation(self.name, task, limits, semantics):
            return found
        scores = _scores(order)  # reads weights, so it comes before the clock runs
        run = Run(self.name, task, limits, semantics)
        return _BeamSearch(task, limits, semantics, run, scores).doubling(self.width)


def _scores(order: Order) -> Scores:
    if not isinstance(order, TokenOrder):
        return OrderScores(order)
    from thesis_cli.synthesis.networks.program_decoder import network

    return NetworkScores(network(order.weights))


class _BeamSearch:
    """One task."""

    def __init__(self, task: Task, limits: Limits, semantics: Semantics, run: Run, scores: Scores) -> None:
        self._task, self._limits, self._semantics, self._run, self._scores = task, limits, semantics, run, scores
        self._longest = min(limits.max_length, scores.longest or limits.max_length)
        self._root = scores.start(task)
        self._reported: set[object] = set()

    def doubling(self, width: int) -> Solution:
        """Search with beams of `width`, twice that, and so on."""
        whole: set[int] = set()  # lengths of which no program was cut
        stopped: Stop = ""
        try:
            while not stopped and not self._run.complete:
                lengths = [length for length in range(1, self._last + 1) if length not in whole]
                if not lengths:
                    break
                if width > self._room(lengths[-1]):
                    stopped = "memory"
                for length in lengths:
                    cut = self._search(length, min(width, self._room(length)))
                    if cut is None:
                        stopped = self._run.clock.stop
                    elif not cut:
                        whole.add(length)
                    if cut is None or self._run.complete or length >= self._last:
                        break
                width *= 2
        except KeyboardInterrupt:
            stopped = "interrupted"
        exhausted = 0
        while exhausted + 1 in whole:
            exhausted += 1
        self._run.exhausted = exhausted
        return self._run.solution("" if self._run.complete and stopped != "interrupted" else stopped)

    @property
    def _last(self) -> int:
        """Length of the longest programs that are sought."""
        return min(self._longest, self._run.shortest) if self._limits.shortest else self._longest

    def _room(self, length: int) -> int:
        """The widest beam of a length that fits the memory."""
        pool = start([self._task], length, self._semantics)
        parts = pool.values, pool.types, pool.lines, self._root
        each = 3 * sum(part.nbytes for part in parts) + 64  # a beam, the next one, and what is chosen for it
        return max(1, int(self._limits.memory * GIB / each))

    def _search(self, length: int, width: int) -> bool | None:
        """Run the programs of one beam; returns whether any was cut, or None if the time is up."""
        pool, states = start([self._task], length, self._semantics), self._root
        total, cut = np.zeros(1), False
        for line in range(length):
            if not len(pool):  # no beginning of the beam has a next line
                break
            chosen = _Best(width)
            after = []
            for first in range(0, len(pool), PART):
                if self._run.clock.is_up:
                    return None
                part = pool.take(np.arange(first, min(first + PART, len(pool))))
                found = execution.moves(part)
                rows, scores = self._scores.lines(states[first : first + PART], part, found, line)
                after.append(rows)
                chosen.add(found.lines, found.parents + first, total[first : first + PART][found.parents] + scores)
            cut |= chosen.cut
            pool, total = step(pool, chosen.lines, chosen.parents), chosen.scores
            states = np.concatenate(after)[chosen.parents]
        self._run.clock.nodes += len(pool)
        fitting = [pool.program(row) for row in np.flatnonzero(pool.solved).tolist()]
        self._run.add([program for program in fitting if program not in self._reported])
        self._reported.update(fitting)
        return cut


class _Best:
    """The best next lines so far, best first, of equal ones the first; `cut` once some were left out."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.lines: Ints = np.empty((0, 3), dtype=np.int64)
        self.parents: Ints = np.empty(0, dtype=np.int64)
        self.scores: Floats = np.empty(0)
        self.cut = False

    def add(self, lines: Ints, parents: Ints, scores: Floats) -> None:
        """Look at more lines."""
        self.lines, self.parents = np.concatenate([self.lines, lines]), np.concatenate([self.parents, parents])
        self.scores = np.concatenate([self.scores, scores])
        chosen = best(self.scores, self._width)
        self.cut |= len(chosen) < len(self.scores)
        self.lines, self.parents, self.scores = self.lines[chosen], self.parents[chosen], self.scores[chosen]


def best(scores: Floats, count: int) -> Ints:
    """Places of the `count` largest scores, falling; of equal ones, the first."""
    places = np.arange(len(scores))
    if count < len(scores):
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
        places = np.sort(np.concatenate([above, equal[: count - len(above)]]))
    return np.asarray(places[np.argsort(-scores[places], kind="stable")])


@cache
def prepare() -> None:
    """Compile what a search calls, or load it."""
    for module in (depth_first, execution):
        module.prepare()
