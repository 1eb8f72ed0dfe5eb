r"""The maximum of the expanded model, a lower bound on ln Z (Hazan et al. III-B, Corollary 4).

Each variable i has M copies with states x_{i,k} and noise of its own. The extended potential
(eq. 18) averages phi over all choices of one copy of each variable, and the noise of a variable is
the mean over its copies (eq. 19). All pairs of copies are linked, so both depend on the copies only
through the shares q_i(a) of the copies of i in state a:

    max over the copies = max_q { E_q[phi] + sum_i h_i(q_i) },

where E_q takes the variables as independent and h_i(q_i) is the largest mean noise of copies with
the shares q_i. h_i tends to the entropy H(q_i) as M grows, so the maximum tends to the best
mean-field bound, max_q E_q[phi] + H(q) <= ln Z; with M = 1 it is one perturb-max value. For any q,
`mean_field` = E_q[phi] + H(q) <= ln Z is certain.

Given the others, the best states of the copies of one variable are known: each takes the largest
of field plus noise. Coordinate ascent over the variables never lowers the value. What it finds are
states of the copies, so the value never exceeds the maximum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.enumeration import FlatTables, flat_tables, starts, users_of
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.perturbation.estimate import check_confidence
from thesis_cli.perturbation.expanded.blocks import ARCS, Blocks
from thesis_cli.perturbation.expanded.copies import coarser, copy_noise
from thesis_cli.perturbation.expanded.kernels import CopyNoise, Neighbours, ascend, mean_potential, noisy_rows
from thesis_cli.perturbation.expanded.pairs import Box, PairwiseCopies
from thesis_cli.perturbation.noise import gumbel

BINARY_COPY, COPY_STATE = 1e-7, 2e-7
"""Seconds for a copy of a variable with two states, and for each state of a copy with more."""

SWEEPS = 10_000
"""Most passes over the variables from one start."""

TRIES = 8
"""Perturbed MAP problems whose solutions are starts."""

COARSE, FINALISTS = 1000, 3
"""Copies from which ascents with variables of three states or more start with so many, and how many
of these go on with all copies."""

CUTS = 2
"""Minimum cuts, each with smaller blocks where the bound of the one before is attained: 0.1 to 0.4 s
each. Proofs for strong couplings take few; for others, some ten leave a nat or less."""

PROVEN = 1e-10
"""Share of the value within which an upper bound proves it."""


@dataclass(frozen=True)
class ExpandedMaximum:
    """The best states of the copies that were found.

    Attributes
    ----------
    value : extended potential plus noise of these states, nats.
    mean_field : E_q[phi] + H(q) at their frequencies q: at most ln Z, for certain.
    frequencies : shares of the copies in each state, one array for each variable.
    copies : number M of copies of each variable.
    exact : whether the value is proven to be the maximum over all states of the copies.
    upper : upper bound on that maximum; None if there is none.
    variables : number n of variables with noise, those with two states or more.
    """

    value: float
    mean_field: float
    frequencies: tuple[Floats, ...]
    copies: int
    exact: bool
    upper: float | None
    variables: int

    @property
    def certain_epsilon(self) -> float:
        """The discrepancy with which the statement of Corollary 4 holds for certain.

        value - epsilon n = `mean_field` <= ln Z; it is below 0 where the value itself is.
        """
        return (self.value - self.mean_field) / max(1, self.variables)


def expanded_maximum(
    graph: FactorGraph,
    copies: int,
    seed: np.random.SeedSequence | int,
    *,
    memory: int = DEFAULT_MEMORY,
    tries: int = TRIES,
    cuts: int = CUTS,
    progress: Tick | None = None,
) -> ExpandedMaximum:
    """Maximise the expanded model with M copies of each variable.

    Parameters
    ----------
    graph : the model, with factors of any size; variables with one state have no noise.
    copies : number M of copies of each variable.
    seed : root of the random streams.
    memory : bytes that the noise of the copies may take.
    tries : number of perturbed MAP problems whose solutions are further starts.
    cuts : most minimum cuts for starts and the upper bound, where the model is attractive.
    progress : called with the number of copies whose noise has been drawn.

    Raises
    ------
    InputError : there is no copy.
    ModelTooLarge : the copies take more memory.
    NoConfiguration : no configuration is possible.
    """
    root = np.random.SeedSequence(seed) if isinstance(seed, int) else seed
    noise = copy_noise(graph.cardinalities, copies, root, memory, progress)
    model = ExpandedModel(graph, noise)
    best, exact, upper = model.single(memory) if copies == 1 else model.maximise(tries, cuts, memory)
    if best.value == -math.inf:
        raise NoConfiguration()
    return ExpandedMaximum(
        best.value,
        best.potential + entropy(best.q),
        tuple(np.split(best.q, model.offsets[1:-1])),
        copies,
        exact,
        upper,
        variables=sum(k > 1 for k in graph.cardinalities),
    )


class Ascent(NamedTuple):
    """Frequencies at which no variable can improve alone, E_q[phi] there, and the value."""

    q: Floats
    potential: float
    value: float


class ExpandedModel:
    """A model with the noise of its copies.

    Attributes
    ----------
    offsets : the frequencies of variable i are q[offsets[i] : offsets[i + 1]].
    """

    def __init__(self, graph: FactorGraph, noise: CopyNoise) -> None:
        self.graph, self.noise = graph, noise
        self.offsets: Ints = starts(graph.cardinalities)

    @cached_property
    def arrays(self) -> tuple[FlatTables, Neighbours]:
        """The factors for the kernels."""
        tables = flat_tables(np.array(self.graph.cardinalities, np.int64), self.graph.factors)
        return tables, Neighbours(*users_of(tables), self.offsets)

    def maximise(self, tries: int, cuts: int, memory: int) -> tuple[Ascent, bool, float | None]:
        """The best states found, whether they are proven to be, and an upper bound."""
        pairs = PairwiseCopies.of(self.graph, self.noise)
        if pairs is None:
            return self._from_starts(tries, memory), False, None
        box = pairs.bracket()
        if box.single:
            best = self.ascend(self._shares(box.low))
            return best, True, best.value
        best, upper = self._cut(pairs, box, self._from_starts(tries, memory), cuts)
        if upper == math.inf:
            upper = pairs.upper(box)
        upper = max(upper, best.value)
        return best, upper <= best.value + PROVEN * max(1.0, abs(upper)), upper

    def _cut(self, pairs: PairwiseCopies, box: Box, best: Ascent, cuts: int) -> tuple[Ascent, float]:
        """The best of ascents from where bounds by minimum cuts are attained, and the last bound."""
        upper, counts = math.inf, np.round(best.q[self.offsets[1:] - 1] * self.noise.copies).astype(np.int64)
        blocks = Blocks.around(pairs, box, counts * pairs.free)
        for _ in range(cuts if blocks else 0):
            assert blocks
            bound = blocks.bound()
            upper = min(upper, bound.upper)
            best = max(best, self.ascend(self._shares((bound.chosen.low + bound.chosen.high) // 2)), key=_value)
            blocks = blocks.split(bound.chosen)
            if bound.chosen.single or upper <= best.value + PROVEN * max(1.0, abs(upper)) or blocks.links > ARCS:
                break
        return best, upper

    def single(self, memory: int) -> tuple[Ascent, bool, float | None]:
        """The maximum with one copy: that of a perturbed MAP problem."""
        sizes = self.graph.cardinalities
        rows = [noisy_rows(self.noise, i, k)[0] + self.noise.base[i] for i, k in enumerate(sizes)]
        solver = map_solver(self.graph, memory=memory)[0]
        values, states = solver.maximise(np.concatenate(rows)[None])
        best = Ascent(self._at(states[0]), float(self.graph.log_potential(states)[0]), float(values[0]))
        exact = solver.guarantee == "exact"
        return best, exact, best.value if exact else None

    def _from_starts(self, tries: int, memory: int) -> Ascent:
        """The best of several ascents. If each is dear, because all copies of variables with three
        states or more are seen at each step, only the best of those with few copies go on.
        """
        qs = list(self._starts(tries, memory))
        sizes = self.graph.cardinalities
        if max(sizes) > 2 and self.noise.copies > COARSE:
            few = ExpandedModel(self.graph, coarser(self.noise, sizes, COARSE))
            found = {round(one.value, 9): one.q for one in map(few.ascend, qs)}
            qs = [found[value] for value in sorted(found)[-FINALISTS:]]
        return max(map(self.ascend, qs), key=_value)

    def _starts(self, tries: int, memory: int) -> Iterator[Floats]:
        """Frequencies to start from: all copies in the first or in the last state, as many in each,
        and all in the most probable configuration, with and without noise.
        """
        sizes = np.array(self.graph.cardinalities)
        solver = map_solver(self.graph, memory=memory)[0]
        noise = gumbel(np.random.default_rng(0), 1 + tries, self.offsets[-1])
        noise[0] = 0.0
        _, states = solver.maximise(noise)
        yield np.repeat(1 / sizes, sizes)
        yield from map(self._at, (np.zeros_like(sizes), sizes - 1, *states))

    def _at(self, states: Ints) -> Floats:
        q = np.zeros(self.offsets[-1])
        q[self.offsets[:-1] + states] = 1.0
        return q

    def _shares(self, counts: Ints) -> Floats:
        """Frequencies at which so many copies of binary variables are in their last states."""
        q = np.zeros(self.offsets[-1])
        q[self.offsets[:-1]] = 1 - counts / self.noise.copies
        q[self.offsets[1:] - 1] += counts / self.noise.copies
        return q

    def ascend(self, start: Floats) -> Ascent:
        """Coordinate ascent over the states of the copies; the value is -inf from an impossible
        start that leads nowhere.
        """
        tables, near = self.arrays
        q, means = start.copy(), np.zeros(len(self.graph.cardinalities))
        ascend(tables, near, self.noise, q, means, SWEEPS)
        potential = float(mean_potential(tables, self.offsets, q))
        return Ascent(q, potential, potential + float(means.sum()))


def _value(found: Ascent) -> float:
    return found.value


def predicted_seconds(graph: FactorGraph, copies: int) -> float:
    """Seconds of `expanded_maximum` without its MAP problems, on one core of 2024."""
    return copies * sum(BINARY_COPY if k == 2 else COPY_STATE * k for k in graph.cardinalities if k > 1)


def entropy(q: Floats) -> float:
    """Sum of the entropies of all variables with frequencies q, shape (sum of cardinalities,), in nats."""
    held = q[q > 0]
    return float(-(held * np.log(held)).sum())


def log_corollary_epsilon(graph: FactorGraph, copies: int, confidence: float) -> float:
    """ln of the least epsilon that eq. (20) allows at a confidence level.

    It solves sum_i pi^2 prod_{j < i} |X_j| / (6 M epsilon^2) = 1 - confidence. The products run
    over all configurations of the variables before i, so epsilon is exponential in their number;
    variables with one state change nothing.
    """
    check_confidence(confidence)
    logs = np.log([k for k in graph.cardinalities if k > 1])
    if not logs.size:
        return -math.inf
    terms = np.logaddexp.reduce(np.concatenate([[0.0], np.cumsum(logs)[:-1]]))
    return float(math.log(math.pi**2 / (6 * copies)) + terms - math.log1p(-confidence)) / 2
