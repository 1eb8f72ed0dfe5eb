"""Every bound on ln Z of a spin glass on a grid that the project has, with its time (Hazan et al. V).

Beside the bounds of the package there are three more. U(0) with some variables clamped takes the same
noise at all their joint states (Hazan et al. Corollary 3). Sum-product belief propagation begins at
chosen messages, to see how much its fixed point depends on them. Expanded models have few links, as a
grid of 1000 x 1000 nodes with four links each can have.

In the extended potential (Hazan et al. eq. 18) each copy of a variable is linked to all copies of
its neighbours. A graph with M copies of each variable in which a copy has as many links as its
variable is a cover of the model: each copy has one copy of each neighbour, by a permutation of the
copies for each edge. Here `links` permutations are averaged; as many as copies make eq. (18).
Corollary 4 says nothing of the others.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.graph_cut.graph_cut import BinaryModel, GraphCut, MinimumCut
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.message_passing.belief_propagation import (
    BetheResult,
    bethe_log_partition_function,
    messages_of,
    soft_binary,
    up_and_down,
)
from thesis_cli.inference.message_passing.message_arrays import UpdateSchedule
from thesis_cli.inference.message_passing.trw import trw_log_partition_function
from thesis_cli.inference.message_passing.trws import TRWS
from thesis_cli.inference.pairwise import pairwise
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.models.spin_glass import SpinGlass
from thesis_cli.perturbation.expanded.copies import variable_noise
from thesis_cli.perturbation.expanded.expanded import expanded_maximum
from thesis_cli.perturbation.low_rank.low_rank import LowRankMaxima, low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.perturbation.low_rank.max_marginals import max_marginal_bound
from thesis_cli.perturbation.low_rank.subsets import with_subset_variables
from thesis_cli.perturbation.noise import gumbel

PULL = 5.0
"""Nats by which the first messages favour a state."""


def bethe_from(graph: FactorGraph, states: Ints, *, damping: float = 0.3, max_sweeps: int = 3_000) -> BetheResult:
    """Bethe's ln Z at the fixed point that belief propagation reaches from messages which favour a
    configuration; otherwise as `bethe_log_partition_function`, in one attempt.

    Parameters
    ----------
    graph : a binary model of factors of one or two variables, without hard constraints.
    states : the configuration, shape (n,).
    """
    from thesis_cli.inference.message_passing import belief_kernels

    form = pairwise(graph)
    if not soft_binary(form):
        raise ValueError("the model must be binary, without hard constraints")
    layout = messages_of(form)
    messages = np.zeros(layout.starts[-1])
    messages[layout.starts[:-1] + states[layout.target]] = PULL
    schedule = UpdateSchedule(damping, 1e-9, max_sweeps)
    order = up_and_down(form.edges)
    rest = layout, form.unary, order, np.uint64(0), schedule, True, messages
    converged, sweeps = belief_kernels.propagate_binary(*rest)
    marginals: Floats = np.empty(form.unary.size)
    value = form.constant + belief_kernels.bethe(layout, form.unary, messages, marginals)
    return BetheResult(value, converged, sweeps, marginals)


def best_bethe(graph: FactorGraph, starts: Iterable[Ints], found: BetheResult) -> BetheResult:
    """The highest of Bethe's values at converged messages: `found`, or from one of some starts.

    Of an attractive model each is a lower bound on ln Z (Ruozzi 2012), so the highest is the best.
    """
    every = [found, *(bethe_from(graph, states) for states in starts)]
    return max(every, key=lambda result: (result.converged, result.value))


@dataclass(frozen=True)
class CoverMaximum:
    """The maximum of a cover, per copy.

    Attributes
    ----------
    value : maximum over the states of all copies, divided by the number of copies, nats.
    frequencies : shares of the copies of each variable in state 1, shape (n,).
    nodes, arcs : size of the cut that was solved.
    """

    value: float
    frequencies: Floats
    nodes: int
    arcs: int


def cover_maximum(graph: FactorGraph, copies: int, links: int, seed: np.random.SeedSequence | int) -> CoverMaximum:
    """Maximise a random cover exactly, by one minimum cut.

    The noise of the copies is that of `expanded_maximum` with this seed.

    Parameters
    ----------
    graph : an attractive binary pairwise model.
    copies : number M of copies of each variable.
    links : number of copies of each neighbour that a copy is linked to, 1 to M.
    seed : root of the random streams; links have one of their own.

    Raises
    ------
    InputError : the number of links is not from 1 to M.
    UnsuitableModel : graph cuts do not take the model.
    NoConfiguration : no configuration is possible.
    """
    if not 1 <= links <= copies:
        raise InputError(f"the number of links is {links}", f"it must be from 1 to the number of copies, {copies}")
    root = np.random.SeedSequence(seed) if isinstance(seed, int) else seed
    model, n = BinaryModel.of(graph), len(graph.cardinalities)
    rng = np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, n + 1)))
    unary = np.repeat(model.unary, copies, axis=0)
    for i, k in enumerate(graph.cardinalities):
        if k == 2:
            unary[i * copies : (i + 1) * copies] += variable_noise(root, i, copies, 2)
    edges = np.concatenate([_linked(edge, copies, links, rng) for edge in model.edges] or [np.empty((0, 2), np.int64)])
    tables = np.repeat(model.tables / links, copies * links, axis=0)
    cover = BinaryModel(unary, edges, tables, model.constant * copies)
    values, states = MinimumCut(cover).maximise(np.zeros((1, n * copies, 2)))
    if values[0] == -np.inf:
        raise NoConfiguration()
    return CoverMaximum(float(values[0]) / copies, states.reshape(n, copies).mean(axis=1), n * copies, len(edges))


def _linked(edge: Ints, copies: int, links: int, rng: np.random.Generator) -> Ints:
    """Pairs of copies of two variables, each copy in `links` of them, shape (copies * links, 2).

    Two random orders are put side by side, shifted by as many different steps.
    """
    first, second = rng.permutation(copies), rng.permutation(copies)
    steps = rng.permutation(copies)[:links]
    return np.stack(
        [
            np.repeat(edge[0] * copies + first, links),
            edge[1] * copies + second[(np.arange(copies)[:, None] + steps) % copies].reshape(-1),
        ],
        axis=1,
    )


BLOCK = 8
"""Joint states solved in one call."""


def shared_clamped_bound(solver: MapSolver, noise: Floats, variables: Sequence[int]) -> tuple[float, float]:
    """ln of the sum over joint states x_A of exp(mean of max {theta(x) + noise of the others}).

    With one noise for all joint states the error of the bound is about that of U(0). The
    logarithm is convex in the means, so that with a noise for each state (`clamped_maxima`) it would
    rise by half the variance of a mean, of several nats at 100 variables and 100 perturbations.

    Parameters
    ----------
    solver : an exact solver of a model without hard constraints.
    noise : shape (M, states), M of 2 or more, as for `MapSolver.maximise`.
    variables : those that are clamped, of two states or more.

    Returns
    -------
    bound, error : the bound in nats, and its standard error by the delta method.
    """
    graph, count = solver.graph, len(noise)
    offsets = np.concatenate([[0], np.cumsum(graph.cardinalities)])
    penalty = _penalty(solver, noise)
    free = noise.copy()
    for i in variables:
        free[:, offsets[i] : offsets[i + 1]] = -penalty
    joint = list(itertools.product(*(range(graph.cardinalities[i]) for i in variables)))
    maxima = []
    for start in range(0, len(joint), BLOCK):
        block = joint[start : start + BLOCK]
        tilted = np.repeat(free[None], len(block), axis=0)
        for held, states in zip(tilted, block, strict=True):
            held[:, [offsets[i] + k for i, k in zip(variables, states, strict=True)]] = 0.0
        maxima.append(solver.maximise(tilted.reshape(-1, offsets[-1]))[0].reshape(len(block), count))
    values = np.concatenate(maxima)
    means = values.mean(axis=1)
    bound = float(np.logaddexp.reduce(means))
    influence = np.exp(means - bound) @ values
    return bound, float(influence.std(ddof=1)) / math.sqrt(count)


def _penalty(solver: MapSolver, noise: Floats) -> float:
    """More than the difference between any two configurations, noise included."""
    spread = sum(float(np.ptp(factor.table)) for factor in solver.graph.factors)
    return 1 + spread + float(np.ptp(noise)) * len(solver.graph.cardinalities)


FEWER = 10
"""Perturbations that the source says suffice."""
ALPHAS = -0.05, -0.1, -0.2, -0.4
"""Exponents of Frechet tricks, towards -1/2, below which no average of samples has a finite variance."""
CLAMPED = 0, 1, 2, 4, 8
"""Numbers of clamped variables."""
BLOCKS = (1, 2), (2, 2), (1, 5)
"""Rows and columns of the blocks of sites that share their noise."""
T = TypeVar("T")


class Bound(NamedTuple):
    """A bound on ln Z, or an approximation.

    Attributes
    ----------
    value : nats.
    error : standard error in nats; 0 without noise.
    seconds : processor time, with the preparation of solvers.
    settled : whether iterations converged, or a solver found the maximum; True if there are none.
    """

    method: str
    value: float
    error: float
    seconds: float
    settled: bool = True


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """A result and its processor time in seconds."""
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def perturbation_bounds(
    graph: FactorGraph, grid: GridTransfer, attractive: bool, count: int, seed: np.random.SeedSequence
) -> Iterator[Bound]:
    """U(0) by eq. (35) and the bounds below ln Z, each from `count` exact maxima of a prepared grid.

    `graph cut` and `trw-s` are U(0) with the noise of `perturb-max` by the solvers that the source
    has, the latter in the place of MPLP; `trw-s` has `FEWER` maxima.
    """
    noise, other = seed.spawn(2)
    maxima, seconds = timed(lambda: low_rank_maxima(GridTransfer(graph), count, _copy(noise)))
    yield Bound("perturb-max", *_mean(maxima.values), seconds)
    yield Bound("perturb-max, 10", *_mean(maxima.values[:FEWER]), seconds * FEWER / count)
    if attractive:
        yield _solved("graph cut", lambda: GraphCut(graph), maxima, count, noise)
    yield _solved("trw-s", lambda: TRWS(graph), maxima, min(FEWER, count), noise)
    average, seconds = timed(lambda: low_rank_maxima(GridTransfer(graph), count, other, scale="average"))
    yield Bound("average-unary", *_mean(average.values), seconds)
    marginal, seconds = timed(lambda: max_marginal_bound(grid))
    yield Bound("max-marginals", marginal.value, 0.0, seconds)


def _solved(
    name: str, prepare: Callable[[], MapSolver], exact: LowRankMaxima, count: int, seed: np.random.SeedSequence
) -> Bound:
    found, seconds = timed(lambda: low_rank_maxima(prepare(), count, _copy(seed)))
    optimal = bool(np.allclose(found.values, exact.values[:count], rtol=1e-9))
    return Bound(name, *_mean(found.values), seconds, optimal)


def message_bounds(graph: FactorGraph, grid: GridTransfer, attractive: bool, seed: int) -> Iterator[Bound]:
    """TRW with uniform and with optimised edge weights; Bethe's approximation from small random
    messages and, of attractive models, the highest from three further starts."""
    for name, steps in (("trw, uniform", 0), ("trw, optimised", 30)):
        found, seconds = timed(partial(trw_log_partition_function, graph, weight_steps=steps))
        yield Bound(name, found.value, 0.0, seconds, found.converged)
    bethe, seconds = timed(lambda: bethe_log_partition_function(graph, seed=seed))
    yield Bound("bethe", bethe.value, 0.0, seconds, bethe.converged)
    if attractive:
        n = len(graph.cardinalities)
        best, further = timed(
            lambda: best_bethe(graph, [np.zeros(n, np.int64), np.ones(n, np.int64), _mode(grid)], bethe)
        )
        yield Bound("bethe, best start", best.value, 0.0, seconds + further, best.converged)


def _mode(grid: GridTransfer) -> Ints:
    return np.asarray(grid.maximise(np.zeros((1, sum(grid.graph.cardinalities))))[1][0])


def expanded_bounds(graph: FactorGraph, copies: int, seed: np.random.SeedSequence) -> Iterator[Bound]:
    """The lower bound of Corollary 4 with epsilon = 0, and the mean-field bound at its frequencies.

    The error of the first is a bound: the standard deviation of a maximum is at most that of a
    configuration's noise, pi sqrt(n / (6 M)) (Hazan et al. IV-B in the sharper form of
    docs/low-rank.md).
    """
    found, seconds = timed(partial(expanded_maximum, graph, copies, seed, cuts=0))
    error = math.pi * math.sqrt(found.variables / (6 * copies))
    yield Bound("expanded", found.value, error, seconds, found.exact)
    yield Bound("mean field", found.mean_field, 0.0, seconds, found.exact)


def cover_bound(graph: FactorGraph, copies: int, seed: np.random.SeedSequence) -> Bound:
    """The maximum of a random cover, whose copies have one link to each neighbour: no bound."""
    found, seconds = timed(partial(cover_maximum, graph, copies, 1, seed))
    return Bound("cover", found.value, math.pi * math.sqrt(len(graph.cardinalities) / (6 * copies)), seconds)


def better_bounds(
    glass: SpinGlass, grid: GridTransfer, count: int, more: int, seed: np.random.SeedSequence
) -> Iterator[Bound]:
    """Upper bounds below U(0): U(alpha) from `more` samples, U(0) with clamped variables and U(0)
    with noise on the joint states of blocks of sites, from `count` samples each.

    Clamped variables are the first of a random order, with the same noise for all numbers of them.
    """
    powers, clamped, order, blocks = seed.spawn(4)
    graph, n = grid.graph, glass.fields.size
    maxima, seconds = timed(lambda: low_rank_maxima(grid, more, powers))
    values, errors = power_bounds(maxima.values, maxima.terms, np.array([0.0, *ALPHAS]))
    for alpha, value, error in zip((0.0, *ALPHAS), values, errors, strict=True):
        yield Bound(f"alpha {alpha:g}", float(value), float(error), seconds)
    noise = gumbel(np.random.default_rng(clamped), count, 2 * n)
    chosen = np.random.default_rng(order).permutation(n).tolist()
    for size in (k for k in CLAMPED if k <= n):
        (bound, error), seconds = timed(partial(shared_clamped_bound, grid, noise, chosen[:size]))
        yield Bound(f"{size} clamped", bound, error, seconds)
    for shape, child in zip(BLOCKS, blocks.spawn(len(BLOCKS)), strict=True):
        maxima, seconds = timed(partial(_block_maxima, graph, glass, shape, count, child))
        yield Bound(f"blocks {shape[0]}x{shape[1]}", *_mean(maxima.values), seconds)


def _block_maxima(
    graph: FactorGraph, glass: SpinGlass, shape: tuple[int, int], count: int, seed: np.random.SeedSequence
) -> LowRankMaxima:
    rows, columns = glass.fields.shape
    larger, variables = with_subset_variables(graph, blocks_of(rows, columns, shape))
    return low_rank_maxima(Elimination(larger), count, seed, noisy=variables)


def blocks_of(rows: int, columns: int, shape: tuple[int, int]) -> list[list[int]]:
    """The variables of each block of a grid; blocks at the edges may be smaller."""
    (height, width), at = shape, np.arange(rows * columns).reshape(rows, columns)
    corners = [(i, j) for i in range(0, rows, height) for j in range(0, columns, width)]
    return [at[i : i + height, j : j + width].ravel().tolist() for i, j in corners]


def _mean(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(values.size)


def _copy(seed: np.random.SeedSequence) -> np.random.SeedSequence:
    """The same seed, from which nothing has been spawned."""
    return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
