r"""Errors of perturb-and-MAP estimates of Renyi entropies, and of their baselines, over repetitions.

Each estimator is repeated K times with M perturbations, and so are the baselines that get M exact
samples of p. With V = var ln p and M perturbations with shared noise, the estimates of H_1 (limits
at alpha = 1) and their variances are

    Gumbel        mean of gamma(x*_m)                            (pi^2/6 + V) / M      (Theorem 9)
    Exponential   psi(M) - ln S - sum_m D_m phi(x*_m)            trigamma(M) + 2 V / (M + 1)
    hybrid        psi(M) - ln S - mean of phi(x*_m)              trigamma(M) + V / M

where T_m = exp(-c - max {phi + gamma_m}), S = sum T_m and D_m = T_m / S. For the second, -ln sum
T_m(alpha) has the derivative sum_m D_m phi(x*_m) at alpha = 1. The x*_m are independent of the T_m.
S ~ Gamma(M) / Z is independent of the D_m, which are uniform on the simplex, so that E sum D_m^2 =
2 / (M + 1). Hence the Exponential trick loses if V > pi^2/6 - 1. The hybrid uses the Gumbel trick
for ln Z_alpha - ln Z and the Exponential trick for ln Z.

On graphs there are low-rank bounds beside the exact entropies and message passing (Thesis eqs.
3.15, 3.16 and 3.27).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, logsumexp

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.entropy.approximate import approximate_entropies
from thesis_cli.entropy.estimators import LEAST_SETS, SEPARATE, EntropyMaxima, Noise, entropy_maxima
from thesis_cli.entropy.exact import exact_entropies
from thesis_cli.entropy.low_rank import TemperedSolvers, low_rank_bounds, shannon_sandwich
from thesis_cli.inference.choose import map_solver
from thesis_cli.inference.sampling.draws import exact_samples
from thesis_cli.inference.solver import MapSolver
from thesis_cli.models.factor_graph import FactorGraph, LogPotentials

SMALL = 20_000
"""Largest number of configurations for which repeated stratified designs are cheap."""

STRATIFIED_SAMPLES = 100, 1000
"""Perturbations M in a stratified design."""

Row = tuple[int, float, float, float, str, int, int, float, float, float, float]
"""Instance, V, alpha, exact entropy, estimator, M, K, bias, its standard error, RMSE, its standard
error."""

Estimates = dict[str, Floats]
"""K estimates by the name of the estimator, each of shape (K,), nats."""


class Sizes(NamedTuple):
    """Numbers of perturbations and repetitions.

    Attributes
    ----------
    samples : each M.
    repetitions : largest K.
    perturbations : perturbations in all, so that K is at most `perturbations` // M.
    stratified : K of stratified designs; 0 for none.
    """

    samples: Sequence[int]
    repetitions: int
    perturbations: int
    stratified: int


def full_rank_rows(phi: Floats, orders: Floats, sizes: Sizes, seeds: Sequence[np.random.SeedSequence]) -> Iterator[Row]:
    """Bias and RMSE of every estimator at each order and M.

    Parameters
    ----------
    phi : log-potentials of all configurations, shape (N,).
    orders : orders alpha, 0, 1 and inf among them or not, shape (A,).
    seeds : seeds of the perturbations with shared and with independent noise, of the exact samples,
        and of the stratified designs.
    """
    shared, apart, draws, strata = seeds
    vector = LogPotentials(phi)
    exact = exact_entropies(vector, orders)
    p = np.exp(phi - exact.log_z)
    surprise = exact.log_z - phi[p > 0]
    variance = float(p[p > 0] @ (surprise - exact.entropies[orders == 1]) ** 2)
    together = entropy_maxima(vector, orders, sizes.perturbations, shared)
    alone = entropy_maxima(vector, orders, sizes.perturbations, apart, SEPARATE)
    states = exact_samples(vector, sizes.perturbations, np.random.default_rng(draws))[0].ravel()
    for m in sizes.samples:
        k = min(sizes.repetitions, sizes.perturbations // m)
        sampled = SampleEstimates(states[: k * m].reshape(k, m), phi - exact.log_z)
        for alpha, entropy in zip(orders.tolist(), exact.entropies.tolist(), strict=True):
            found = {**estimates(together, alone, alpha, (k, m), exact.log_z), **sampled.at(alpha)}
            for name, values in found.items():
                yield 0, variance, alpha, entropy, name, m, k, *_errors(values - entropy)
    if phi.size <= SMALL and sizes.stratified:
        for m, child in zip(STRATIFIED_SAMPLES, strata.spawn(len(STRATIFIED_SAMPLES)), strict=True):
            designs = stratified_estimates(vector, orders, m, child.spawn(sizes.stratified))
            for alpha, entropy, values in zip(orders.tolist(), exact.entropies.tolist(), designs.T, strict=True):
                row = 0, variance, alpha, entropy, "Gumbel, stratified", m, sizes.stratified
                yield *row, *_errors(values - entropy)


def _errors(errors: Floats) -> tuple[float, float, float, float]:
    """Bias and RMSE, each with its standard error; inf and NaN if some estimate is infinite."""
    if not np.isfinite(errors).all():
        return math.inf, math.nan, math.inf, math.nan
    root, squares = math.sqrt(errors.size), errors**2
    rmse = math.sqrt(squares.mean())
    spread = squares.std(ddof=1) / root / (2 * rmse) if rmse else 0.0
    return float(errors.mean()), float(errors.std(ddof=1) / root), rmse, float(spread)


def _gumbel(values: Floats) -> Floats:
    """Estimates of ln Z by the Gumbel trick from maxima of phi + gamma, shape (K, M)."""
    return np.asarray(values.mean(axis=1))


def _exponential(values: Floats) -> Floats:
    """Estimates of ln Z by the Exponential trick, without its bias, from maxima of shape (K, M)."""
    return np.asarray(digamma(values.shape[1]) - logsumexp(-np.euler_gamma - values, axis=1))


def _controlled(top: Floats, bottom: Floats, log_z: float) -> Floats:
    """ln Z_alpha with the estimate of ln Z as control variate, shape (K,).

    Each half of the perturbations takes its coefficient from the other half.
    """
    tops, bottoms = (v.reshape(len(v), -1, 2).transpose(2, 0, 1) for v in (top, bottom))
    means = bottoms.mean(axis=2)
    centred = bottoms - means[..., np.newaxis]
    best = (tops * centred).sum(axis=2) / (centred**2).sum(axis=2)
    return np.asarray((tops.mean(axis=2) - best[::-1] * (means - log_z)).mean(axis=0))


def estimates(
    together: EntropyMaxima, alone: EntropyMaxima, alpha: float, shape: tuple[int, int], log_z: float
) -> Estimates:
    """K estimates of H_alpha from M perturbations each: those of `renyi_entropy`, vectorised.

    They differ at alpha = 1 only: there `renyi_entropy` with the Exponential trick is the hybrid,
    and `Exponential, shared` is the limit of its neighbours.

    Parameters
    ----------
    together, alone : perturbed maxima with shared noise (Thesis eq. 3.12) and with independent
        noise (eq. 3.14).
    shape : K and M; the first K M perturbations are used.
    log_z : exact ln Z, for the estimators that know it.
    """
    k, m = shape

    def first(values: Floats) -> Floats:
        return values[: k * m].reshape(k, m)

    bottom, potential = first(together.at_one), first(together.potential)
    gumbel, exponential = _gumbel(bottom), _exponential(bottom)
    if alpha == 1:
        clocks = np.exp(-bottom - logsumexp(-bottom, axis=1, keepdims=True))
        mean = potential.mean(axis=1)
        return {
            "Gumbel, shared": gumbel - mean,
            "Exponential, shared": exponential - (clocks * potential).sum(axis=1),
            "hybrid": exponential - mean,
            "Gumbel, control variate": log_z - mean,
        }
    if alpha == math.inf:
        return {"Gumbel, shared": gumbel - together.highest, "Exponential, shared": exponential - together.highest}

    def entropy(log_z_alpha: Floats, log_z: Floats | float) -> Floats:
        return (log_z_alpha - alpha * log_z) / (1 - alpha)

    top, top_alone, bottom_alone = first(together.column(alpha)), first(alone.column(alpha)), first(alone.at_one)
    bias = math.log(m) - digamma(m)
    shared, known = entropy(_exponential(top), exponential), entropy(_exponential(top), log_z)
    controlled = {"Gumbel, control variate": entropy(_controlled(top, bottom, log_z), log_z)} if m >= LEAST_SETS else {}
    return {
        **controlled,
        "Gumbel, shared": entropy(_gumbel(top), gumbel),
        "Gumbel, independent": entropy(_gumbel(top_alone), _gumbel(bottom_alone)),
        "Exponential, shared": shared,
        "Exponential, shared, biased": shared + bias,
        "Exponential, independent, biased": entropy(_exponential(top_alone), _exponential(bottom_alone)) + bias,
        "hybrid": (_gumbel(top) - gumbel) / (1 - alpha) + exponential,
        "Gumbel, ln Z known": entropy(_gumbel(top), log_z),
        "Exponential, ln Z known": known,
        "Exponential, ln Z known, biased": known + bias / (1 - alpha),
    }


def stratified_estimates(
    vector: LogPotentials, orders: Floats, m: int, seeds: Sequence[np.random.SeedSequence]
) -> Floats:
    """Gumbel estimates with shared noise from stratified designs of M perturbations, shape (K, A).

    Parameters
    ----------
    orders : orders alpha, shape (A,).
    """
    found = np.empty((len(seeds), orders.size))
    for row, seed in zip(found, seeds, strict=True):
        maxima = entropy_maxima(vector, orders, m, seed, Noise(design="stratified"))
        log_z = maxima.at_one.mean()
        inner = np.isin(orders, maxima.orders) & (orders != 1)
        a = orders[inner]
        row[inner] = (maxima.values[:, maxima.orders != 1].mean(axis=0) - a * log_z) / (1 - a)
        row[orders == 1] = log_z - maxima.potential.mean()
        row[np.isinf(orders)] = log_z - maxima.highest
    return found


class SampleEstimates:
    """Estimates from K sets of M exact samples: by their frequencies, or, with ln Z known, by p.

    Parameters
    ----------
    states : index of the configuration of each sample, shape (K, M).
    log_p : ln p of all configurations, shape (N,).
    """

    def __init__(self, states: Ints, log_p: Floats) -> None:
        self._k, self._m = states.shape
        self._log_p: Floats = log_p[states]
        ordered = np.sort(states, axis=1)
        new = np.ones(states.shape, bool)
        new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        starts = np.flatnonzero(new)
        self._counts, self._set = np.diff(starts, append=states.size), starts // self._m

    def _sum(self, weights: Floats) -> Floats:
        """Sum over the configurations seen in each set, shape (K,)."""
        return np.asarray(np.bincount(self._set, weights, self._k), float)

    def at(self, alpha: float) -> Estimates:
        """Estimates of H_alpha.

        `plug-in` uses frequencies, `Miller-Madow` corrects its bias at alpha = 1, `moments` uses p
        at the samples, and `pairs`, at alpha = 2, the share of pairs of samples that are equal.
        """
        m, shares = self._m, self._counts / self._m
        if alpha == 1:
            plugin = self._sum(-shares * np.log(shares))
            seen = np.bincount(self._set, minlength=self._k)
            return {
                "plug-in": plugin,
                "Miller-Madow": plugin + (seen - 1) / (2 * m),
                "moments": -self._log_p.mean(axis=1),
            }
        if alpha == math.inf:
            most = np.maximum.reduceat(shares, np.searchsorted(self._set, np.arange(self._k)))
            return {"plug-in": -np.log(most), "moments": -self._log_p.max(axis=1)}
        moments = (logsumexp((alpha - 1) * self._log_p, axis=1) - math.log(m)) / (1 - alpha)
        found = {"plug-in": np.log(self._sum(shares**alpha)) / (1 - alpha), "moments": moments}
        if alpha == 2:
            with np.errstate(divide="ignore"):
                found["pairs"] = -np.log(self._sum(self._counts * (self._counts - 1) / (m * (m - 1))))
        return found


BOUNDED = [0, 0.2, 0.5, 2, 5, math.inf]
"""Orders of the bounds (eq. 3.15); order 1 has the Shannon sandwich (eq. 3.16)."""

APPROXIMATED = [0.5, 1, 2, math.inf]
"""Orders of the approximations by message passing (eq. 3.27)."""


def low_rank_rows(
    graph: FactorGraph, samples: int, noise: np.random.SeedSequence, halves: np.random.SeedSequence, instance: int
) -> Iterator[Row]:
    """Bounds on the entropies of a model, less the exact entropies, with ln Z known and unknown.

    Parameters
    ----------
    graph : a model small enough for exact entropies.
    samples : MAP problems for each bound.
    noise, halves : seeds of the bounds and of the Shannon sandwich.
    instance : number of the model among those of its family.
    """
    exact, solvers = exact_entropies(graph, [*BOUNDED, 1]), TemperedSolvers(_solver, graph)
    entropy = dict(zip(exact.orders.tolist(), exact.entropies.tolist(), strict=True))

    def row(alpha: float, name: str, count: int, value: float, error: float) -> Row:
        numbers = value - entropy[alpha], error, math.nan, math.nan
        return instance, math.nan, alpha, entropy[alpha], name, count, 1, *numbers

    for name, log_z in (("known", exact.log_z), ("unknown", None)):
        bounds = low_rank_bounds(solvers, BOUNDED, samples, _same(noise), log_z=log_z)
        bounds.append(shannon_sandwich(solvers, samples, _same(halves), log_z=log_z))
        for b in bounds:
            for end, e in (("lower", b.lower), ("upper", b.upper)):
                yield row(b.order, f"{end}, ln Z {name}", samples, e.value, e.standard_error)
    bethe = approximate_entropies(graph, APPROXIMATED, "bethe")
    for found in (bethe, approximate_entropies(graph, APPROXIMATED, "trw")):
        for alpha, e in zip(APPROXIMATED, found, strict=True):
            yield row(alpha, e.method + e.kind.removeprefix("approximation"), 0, e.value, 0.0)


def _solver(graph: FactorGraph) -> MapSolver:
    return map_solver(graph, exact=True)[0]


def _same(seed: np.random.SeedSequence) -> np.random.SeedSequence:
    """A copy of a seed whose children are those that the seed itself would have."""
    return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
