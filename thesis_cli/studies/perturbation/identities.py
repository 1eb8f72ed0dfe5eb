"""Statements on low-rank bounds, entropies, clamped variables and noise on subsets of variables,
measured on a model whose sum is enumerated (Thesis sections 2.3 and 2.4).

There are two facts that the thesis does not have.
U(alpha) never falls as alpha rises: the entropy functional of e^{-alpha U} is at most the sum of
those over the noise of one variable at a time (its tensorization), and given the rest U is a Gumbel
variable of that noise; this is the sign of the derivative. And with s = -alpha in (0, 1)

    exp(s U(alpha)) = sum_x exp(s phi(x)) P(x is the maximiser |
                                            gamma_i(x_i) = -ln G_i - c, G_i ~ Gamma(1 - s)),

so that U(alpha) can be measured down to alpha = -1, where it is ln Z, although e^{-alpha U} has no
variance there.

Every function yields rows of (quantity, alpha, size, value, standard error); bounds are given less
ln Z, in nats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.elimination.elimination import Elimination
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.perturbation.low_rank.low_rank import LowRankMaxima, Scale, low_rank_maxima
from thesis_cli.perturbation.low_rank.low_rank_bounds import power_bounds, second_moment, slope_at_zero
from thesis_cli.perturbation.low_rank.subsets import edges, with_subset_variables
from thesis_cli.perturbation.noise import gumbel

ALPHAS = np.array([-0.25, -0.2, -0.15, -0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2])
"""Alphas at which sample means of e^{-alpha U} give bounds."""
TILTED = np.array([-0.99, -0.95, -0.9, -0.8, -0.7, -0.6, -0.5, -0.45, -0.4, -0.3, -0.25])
"""Alphas at which tilted noise gives bounds."""
STEP = 0.01
"""Step of finite differences."""

Row = tuple[str, float, int, float, float]
"""Quantity, alpha, size, value, standard error."""


def mean(values: Floats) -> tuple[float, float]:
    """Mean of samples and its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(values.size)


def influence_of(values: Floats, alpha: float) -> Floats:
    """Influence of each sample, first axis, on the sample version of U(alpha).

    Its spread is the standard error.
    """
    if alpha == 0:
        return np.asarray(values - values.mean(axis=0))
    powers = np.exp(-alpha * (values - values.mean(axis=0)))
    return np.asarray((1 - powers / powers.mean(axis=0)) / alpha)


def curve_rows(upper: LowRankMaxima, lower: LowRankMaxima, phi: Floats) -> Iterator[Row]:
    """U(alpha) and L(alpha), and their steps from one alpha to the next (Thesis eqs. 2.8, 2.14).

    Only alphas at which a sample mean of e^{-alpha U} is reliable are used.

    Parameters
    ----------
    phi : log-potentials of all configurations, shape (N,).
    """
    log_z, n, m = logsumexp(phi), upper.terms, upper.map_calls
    alphas = ALPHAS[[second_moment(a, n) < m / 1000 for a in ALPHAS]]
    for name, values, divisor in (("U", upper.values, 1), ("L", n * lower.values, n)):
        bounds, errors = power_bounds(values, n, alphas)
        influences = np.stack([influence_of(values, a) for a in alphas])
        steps = np.diff(influences, axis=0).std(axis=1) / math.sqrt(m)
        for a, b, e in zip(alphas, bounds, errors, strict=True):
            yield name, a, n, b / divisor - log_z, e / divisor
        for a, step, e in zip(alphas[1:], np.diff(bounds), steps, strict=True):
            yield f"{name} step", a, n, step / divisor, e / divisor
        near, _ = power_bounds(values, n, np.array([-1e-6, 1e-6]))
        yield f"{name} limit at 0", 0, n, np.abs(near - values.mean()).max() / divisor, 0
    one, other = n * lower.values[: m // 2], n * lower.values[m // 2 :]
    bounds, errors = power_bounds(one, 0, alphas[alphas < 0])
    least, error = mean(other)
    for a, b, e in zip(alphas, bounds, errors, strict=False):
        yield "Proposition 15", a, n, (b - least) / n, math.hypot(e, error) / n
    yield "L limit at -1", -1, n, logsumexp(n * phi) / n - log_z, 0
    held = [np.moveaxis(phi.reshape(upper.graph.cardinalities), i, 0) for i in range(n)]
    marginals = np.mean([logsumexp(table.reshape(len(table), -1).max(axis=1)) for table in held])
    yield "max-marginals", math.nan, n, marginals - log_z, 0


def tilted_rows(
    solver: MapSolver, states: Ints, phi: Floats, count: int, seed: np.random.SeedSequence
) -> Iterator[Row]:
    """U(alpha) for alpha < 0 by the identity at the top of this file, as a share of hits.

    Parameters
    ----------
    states, phi : all configurations, shape (N, n), and their log-potentials, shape (N,).
    count : number of MAP problems at each alpha.
    """
    graph, log_z, n = solver.graph, logsumexp(phi), states.shape[1]
    offsets = np.cumsum([0, *graph.cardinalities[:-1]])
    found = {}
    for alpha, child in zip(TILTED, seed.spawn(TILTED.size), strict=True):
        rng = np.random.default_rng(child)
        log_sum = logsumexp(-alpha * phi)
        hits, block = 0, 20_000
        for start in range(0, count, block):
            size = min(block, count - start)
            x = states[rng.choice(phi.size, size, p=np.exp(-alpha * phi - log_sum))]
            noise = gumbel(rng, size, sum(graph.cardinalities))
            clocks = np.maximum(rng.standard_gamma(1 + alpha, x.shape), np.finfo(float).tiny)
            np.put_along_axis(noise, offsets + x, -np.log(clocks) - np.euler_gamma, axis=1)
            hits += int((solver.maximise(noise)[1] == x).all(axis=1).sum())
        bound = (log_sum + math.log(hits / count)) / -alpha
        found[alpha] = bound, math.sqrt(1 / hits - 1 / count) / -alpha
        yield "U tilted", alpha, n, bound - log_z, found[alpha][1]
    # ln of E[X^2] / E[X]^2 for X = e^{0.45 U}, in units of that of independent variables
    difference = 0.9 * (found[-0.9][0] - found[-0.45][0])
    yield "second moment", -0.45, n, difference, 0.9 * math.hypot(found[-0.9][1], found[-0.45][1])


def variance_rows(upper: LowRankMaxima) -> Iterator[Row]:
    """var(U), the slope of U(alpha) at 0 (Proposition 4), and the tail of U.

    The slope is a finite difference in one half of the samples less the derivative from the other
    half. The tail slope is -d ln P(U > u) / du between the highest 1% and 0.01%; e^{-alpha U} has a
    tail of that index divided by -alpha.
    """
    n, values, half = upper.terms, upper.values, upper.map_calls // 2
    slope, error = slope_at_zero(upper)
    unit = n * math.pi**2 / 6
    yield "variance", math.nan, n, 1 - 2 * slope / unit, 2 * error / unit
    square, fourth = (((values[:half] - values[:half].mean()) ** k).mean() for k in (2, 4))
    bounds, _ = power_bounds(values[half:], n, np.array([-STEP, STEP]))
    influence = (influence_of(values[half:], STEP) - influence_of(values[half:], -STEP)) / (2 * STEP)
    difference = (bounds[1] - bounds[0]) / (2 * STEP) - (unit - square) / 2
    yield "slope", 0, n, difference, math.hypot(mean(influence)[1], math.sqrt((fourth - square**2) / half) / 2)
    tail = np.sort(values)[-values.size // 100 :]
    far = max(5, values.size // 10_000)
    slope = math.log(tail.size / far) / (tail[-far] - tail[0])
    yield "tail slope", math.nan, n, slope, math.sqrt(1 / far - 1 / tail.size) / (tail[-far] - tail[0])


def noise_rows(maxima: LowRankMaxima) -> Iterator[Row]:
    """Variance of the noise at the maximiser, in units of 4 a^2 = 4 n."""
    unit = 4 * maxima.terms
    value, error = mean((maxima.noise_at_max - maxima.noise_at_max.mean()) ** 2 / unit)
    yield "variance of the noise", math.nan, maxima.terms, value, error


def _plugin(maxima: LowRankMaxima, phi: Floats, part: slice) -> tuple[float, float, Floats, Floats]:
    """Distribution q of some maximisers: its entropy and its divergence from p; -ln q and phi of
    each.

    The entropy is corrected for bias as by Miller and Madow.
    """
    at = np.ravel_multi_index(tuple(maxima.states[part].T.astype(np.int64)), maxima.graph.cardinalities)
    counts = np.bincount(at, minlength=phi.size)
    surprise = -np.log(counts[at] / at.size)
    entropy = float(surprise.mean()) + ((counts > 0).sum() - 1) / (2 * at.size)
    return entropy, logsumexp(phi) - phi[at].mean() - entropy, surprise, phi[at]


def entropy_rows(upper: LowRankMaxima, lower: LowRankMaxima, phi: Floats) -> Iterator[Row]:
    """Entropies of the maximisers and their bounds (Thesis section 2.4).

    The two sides of Propositions 6 and 7 come from two halves of the samples.

    Parameters
    ----------
    phi : log-potentials of all configurations, shape (N,).
    """
    n, half = upper.terms, upper.map_calls // 2
    log_z, first, second = logsumexp(phi), slice(half), slice(half, None)
    p = np.exp(phi - log_z)
    exact = -float(p[p > 0] @ np.log(p[p > 0]))
    yield "H(p)", 0, n, exact, 0
    for maxima, star, bound_name, sign in ((upper, "x*", "B", 1), (lower, "x**", "A", -1)):
        noise = maxima.noise_at_max / (1 if maxima is upper else n)
        entropy, divergence, surprise, _ = _plugin(maxima, phi, slice(None))
        yield f"H({star})", 0, n, entropy, mean(surprise)[1]
        yield f"KL({star})", 0, n, divergence, 0
        yield bound_name, 0, n, *mean(noise)
        yield f"{bound_name} less H({star})", 0, n, sign * (noise.mean() - entropy), mean(noise - surprise)[1]
        _, divergence, surprise, energy = _plugin(maxima, phi, first)
        left = maxima.values[first].mean() - log_z + divergence
        left_error = mean(maxima.values[first] - energy - surprise)[1]
        if maxima is lower:
            yield "Proposition 7", 0, n, -left, left_error
            continue
        entropy, _, surprise, _ = _plugin(maxima, phi, second)
        error = math.hypot(left_error, mean(noise[second] - surprise)[1])
        yield "Proposition 6", 0, n, left - (noise[second].mean() - entropy), error
        average = math.hypot(left_error, mean(noise[second] / n - surprise)[1])
        yield "Proposition 6 as printed", 0, n, left - (noise[second].mean() / n - entropy), average
        yield "B less H(p)", 0, n, noise.mean() - exact, mean(noise)[1]
        yield "B of independence", 0, n, np.log(upper.graph.cardinalities).sum() - noise.mean(), mean(noise)[1]


def derivative_rows(
    graph: FactorGraph, upper: LowRankMaxima, count: int, seed: np.random.SeedSequence
) -> Iterator[Row]:
    """Proposition 17 along the last state of the first variable.

    A central difference of the bound at alpha = 0, less the share of maximisers with that state.
    """
    n = upper.terms
    last = graph.cardinalities[0] - 1
    push = np.where(np.arange(last + 1) == last, STEP, 0.0)
    sides = [FactorGraph(graph.cardinalities, [*graph.factors, Factor((0,), sign * push)]) for sign in (-1, 0, 1)]
    scales: tuple[tuple[str, Scale], ...] = (("U", "sum"), ("L", "average"))
    for name, scale in scales:
        low, middle, high = (
            low_rank_maxima(
                map_solver(side, exact=True)[0],
                count,
                np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key),  # the same noise on all three
                scale=scale,
            )
            for side in sides
        )
        share = middle.states[:, 0] == last
        yield f"{name} derivative", 0, n, *mean((high.values - low.values) / (2 * STEP) - share)


CLAMPED = np.array([-0.2, 0, 0.5])
"""Alphas of the clamped bounds."""
SUBSET = np.array([-0.2, 0, 1])
"""Alphas of the bounds with noise on a subset."""


class _Clamped(NamedTuple):
    """Bounds with the variables of a prefix held.

    Attributes
    ----------
    bounds : bound at each prefix, shape (P,).
    influences : influence of each sample on each bound, shape (count, P).
    total : ln of the sum of exp(bounds).
    influence : influence of each sample on `total`, shape (count,).
    """

    bounds: Floats
    influences: Floats
    total: float
    influence: Floats


def clamping_rows(graph: FactorGraph, phi: Floats, count: int, rng: np.random.Generator) -> Iterator[Row]:
    """Bounds with the first j variables held, j = 0 .. n, and Lemma 1 at every prefix.

    All bounds use the same noise. "lemma" is the gap between the two sides of the lemma that is
    lowest in its standard errors, among all prefixes of one length.

    Parameters
    ----------
    phi : log-potentials of all configurations, shape (N,).
    """
    log_z, n = logsumexp(phi), len(graph.cardinalities)
    partial = [phi[np.newaxis]]
    for k in reversed(graph.cardinalities):
        values = partial[-1].reshape(partial[-1].shape[0], -1, k)
        partial.append((values + gumbel(rng, count, k)[:, np.newaxis]).max(axis=2))
    partial.reverse()
    for alpha in CLAMPED:
        inner: _Clamped | None = None
        for held in range(n, -1, -1):
            possible = partial[held][0] > -np.inf
            bounds, influences = np.full(possible.size, -np.inf), np.zeros(partial[held].shape)
            values = partial[held][:, possible]
            bounds[possible] = power_bounds(values.T, n - held, np.array([alpha]))[0][:, 0]
            influences[:, possible] = influence_of(values, alpha)
            total = float(logsumexp(bounds))
            influence = influences @ np.exp(bounds - total)
            if inner is None:
                yield "clamped", alpha, n, total - log_z, 0
            else:
                yield "clamped", alpha, held, total - log_z, mean(influence)[1]
                yield "clamping step", alpha, held + 1, total - inner.total, mean(influence - inner.influence)[1]
                split = inner.bounds.reshape(possible.size, -1)[possible]
                sums = logsumexp(split, axis=1)
                weights = np.exp(split - sums[:, np.newaxis])
                sides = inner.influences.reshape(-1, possible.size, split.shape[1])[:, possible] * weights
                gaps = bounds[possible] - sums
                errors = (influences[:, possible] - sides.sum(axis=2)).std(axis=0) / math.sqrt(count)
                worst = (gaps / errors).argmin()
                yield "lemma", alpha, held, gaps[worst], errors[worst]
            inner = _Clamped(bounds, influences, total, influence)


def subset_rows(graph: FactorGraph, phi: Floats, count: int, seed: np.random.SeedSequence) -> Iterator[Row]:
    """Proposition 5 with noise on the joint states of the first k variables.

    The rows "subset, closed form" are the bound less its closed form, ln sum_{x_S} max exp(phi).
    """
    log_z, n = logsumexp(phi), len(graph.cardinalities)
    for k, child in zip(range(1, min(n, 5) + 1), seed.spawn(5), strict=False):
        larger, noisy = with_subset_variables(graph, [range(k)])
        maxima = low_rank_maxima(Elimination(larger), count, child, noisy=noisy)
        joint = phi.reshape(math.prod(graph.cardinalities[:k]), -1).max(axis=1)
        for alpha, bound, error in zip(SUBSET, *power_bounds(maxima.values, 1, SUBSET), strict=True):
            yield "subset", alpha, k, bound - log_z, error
            yield "subset, closed form", alpha, k, bound - logsumexp(joint), error


def pair_rows(
    graph: FactorGraph, upper: LowRankMaxima, phi: Floats, count: int, seed: np.random.SeedSequence
) -> Iterator[Row]:
    """U(0) with noise on the joint states of each edge, if there are edges (Hazan et al. Corollary 5)."""
    larger, noisy = with_subset_variables(graph, edges(graph))
    if len(noisy) == upper.terms:
        return
    value, error = mean(low_rank_maxima(Elimination(larger), count, seed, noisy=noisy).values)
    yield "pairs", 0, len(noisy), value - logsumexp(phi), error
    unary, unary_error = mean(upper.values)
    yield "pairs less unary", 0, len(noisy), value - unary, math.hypot(error, unary_error)
