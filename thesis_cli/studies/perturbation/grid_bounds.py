"""Every bound on ln Z of a spin glass on a grid that the project has, with its time (Hazan et al. V)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.graph_cut.graph_cut import GraphCut
from thesis_cli.inference.grid.grid import GridTransfer
from thesis_cli.inference.message_passing.belief_propagation import bethe_log_partition_function
from thesis_cli.inference.message_passing.trw import trw_log_partition_function
from thesis_cli.inference.message_passing.trws import TRWS
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.factor_graph import FactorGraph
from thesis_cli.models.spin_glass import SpinGlass
from thesis_cli.perturbation.expanded.expanded import expanded_maximum
from thesis_cli.perturbation.low_rank.low_rank import LowRankMaxima, low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds
from thesis_cli.perturbation.low_rank.max_marginals import max_marginal_bound
from thesis_cli.perturbation.low_rank.subsets import with_subset_variables
from thesis_cli.perturbation.noise import gumbel
from thesis_cli.studies.perturbation.bethe_starts import best_bethe
from thesis_cli.studies.perturbation.covers import cover_maximum
from thesis_cli.studies.perturbation.shared_clamping import shared_clamped_bound

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
    method : its name.
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
    messages and, of attractive models, the highest from three further starts.
    """
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
