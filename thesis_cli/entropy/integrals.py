"""The logarithm of an expectation, ln E_p[f] with f >= 0, by perturb-and-MAP (Thesis eq. 3.25) and
exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import logsumexp, stdtrit

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.base.progress import Tick
from thesis_cli.base.rounding import difference, mean_of, sample_deviation
from thesis_cli.inference.enumeration import BLOCK, MAX_CONFIGURATIONS, Enumeration
from thesis_cli.inference.exact import exact_log_partition_function
from thesis_cli.models.factor_graph import FactorGraph, Model
from thesis_cli.perturbation.estimate import Estimate, check_confidence
from thesis_cli.perturbation.tricks.full_rank import Race, run_races

SOURCE = "Thesis eq. 3.25"
TARGET = "ln E[f]"

LEAST_CONTROLLED = 16
"""Least number of samples with which a control variate is used. A slope fitted to h samples
increases the variance by a share of about 1 / (h - 3), so with fewer samples the plain difference
is usually better."""


@dataclass(frozen=True)
class PairedMaxima:
    """Maxima of two MAP problems under each draw of full-rank noise.

    Attributes
    ----------
    weighted : max_x {phi(x) + ln f(x) + gamma(x)}, gamma ~ Gumbel(-c) independent, shape (M,); its
        mean is ln sum_x e^phi(x) f(x). All are -inf if that sum is 0.
    plain : max_x {phi(x) + gamma(x)} with the same gamma, shape (M,); its mean is ln Z.
    """

    weighted: Floats
    plain: Floats


def paired_maxima(
    model: Model,
    integrand: Model,
    count: int,
    seed: np.random.SeedSequence,
    *,
    jobs: int = 1,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Tick | None = None,
) -> PairedMaxima:
    """Solve MAP with and without ln f, under the same noise, for each of `count` perturbations, in
    one sweep.

    A configuration costs one exponential draw for each perturbation, as in `perturbed_maxima`; for
    the same seed, `plain` equals its values to the last bit. The result depends only on `seed` and
    `count`.

    Parameters
    ----------
    model : phi.
    integrand : ln f of the same configurations in the same sequence; it may be a vector if the
        model is a graph.
    count : number M of perturbations.
    seed : root of the random streams.
    jobs : threads.
    max_configurations : largest number of configurations to enumerate.
    progress : called with the number of clocks just run, |X| M in all.

    Raises
    ------
    ModelTooLarge : |X| exceeds the limit.
    NoConfiguration : no configuration of the model is possible.
    InputError : the integrand has another size or other variables, or a NaN or +inf; or `count` is
        below 1.
    """
    if count < 1:
        raise InputError(f"the number of perturbations is {count}", "it must be 1 or more")
    best = np.full((2, count), -np.inf)

    def races() -> Iterator[tuple[int, Race]]:
        for block in _paired_blocks(model, integrand, max_configurations):
            tops = block.max(axis=1)
            if tops[0] == -np.inf:
                continue
            tops = np.where(tops == -np.inf, 0.0, tops)
            with np.errstate(over="ignore"):
                waits = np.exp(tops[:, np.newaxis] - block)
            yield block.shape[1], partial(_race, waits, tops, best)

    run_races(races(), count, seed, jobs, progress)
    if best[0].max() == -np.inf:
        raise NoConfiguration()
    return PairedMaxima(best[1] - np.euler_gamma, best[0] - np.euler_gamma)


def _race(waits: Floats, tops: Floats, best: Floats, stream: np.random.Generator, part: slice) -> None:
    from thesis_cli.entropy import pair_kernels

    pair_kernels.race_pairs(stream, waits, tops, best[:, part])


def _paired_blocks(model: Model, integrand: Model, max_configurations: int) -> Iterator[Floats]:
    """phi and phi + ln f of the configurations, in consecutive blocks of shape (2, B)."""
    configurations = Enumeration(model, max_configurations)
    weights = Enumeration(integrand, max_configurations)
    if weights.size != configurations.size:
        raise InputError(
            f"the integrand has {weights.size:,} configurations",
            f"it must have {configurations.size:,}, as the model has",
        )
    if isinstance(model, FactorGraph) and isinstance(integrand, FactorGraph):
        model.times(integrand)  # raises if the variables differ
    for phi, log_f in zip(configurations.blocks(BLOCK), _naming(weights.blocks(BLOCK)), strict=True):
        with np.errstate(over="ignore"):  # the sum of two potentials near the lowest number is -inf
            block = np.stack([phi, phi + log_f])
        yield block


def _naming(blocks: Iterator[Floats]) -> Iterator[Floats]:
    try:
        yield from blocks
    except InputError as error:
        raise error.at("the integrand") from error


def log_expectation(pair: PairedMaxima, *, log_z: float | None = None, confidence: float = 0.95) -> Estimate:
    """Unbiased estimate of ln E_p[f] = ln sum_x e^phi(x) f(x) - ln Z for an unnormalised p (Thesis
    eq. 3.25).

    If ln Z is not known, it is the mean of `weighted - plain`. Both increase with the same noise,
    so by Harris's inequality (as in Proposition 8) they are positively correlated, and a difference
    has a variance below 2 pi^2 / 6. If ln Z is known, `plain - ln Z`, whose mean is 0, is a control
    variate with a coefficient b: the estimate is the mean of `weighted - ln Z - b (plain - ln Z)`.
    Each half of the samples uses the regression slope of the other half as b, which is independent
    of it, so the mean stays unbiased. Raises InputError if the confidence level is out of range, or
    ln Z is not finite.

    Parameters
    ----------
    pair : maxima of M perturbations.
    log_z : exact ln Z in nats, if it is known. It is used from M = 16 on; below, b = 1.
    confidence : confidence level of the Student interval.

    Returns
    -------
    Estimate : in nats, with the standard error of the sample: inf if M = 1, and 0 if all
        differences are equal, as for a constant f, or for an f that differs from 1 only on
        configurations too rare to have won any maximum. Exactly -inf if f is 0 on every possible
        configuration.
    """
    check_confidence(confidence)
    if log_z is not None and not math.isfinite(log_z):
        raise InputError(f"ln Z is {log_z:g}", "it must be finite")
    if pair.weighted.max() == -np.inf:
        return Estimate(-math.inf, 0.0, -math.inf, -math.inf, TARGET, "exact", 1.0, 0, "support", SOURCE)
    terms, m = difference(pair.weighted, pair.plain), pair.plain.size
    method = "gumbel"
    if log_z is not None and m >= LEAST_CONTROLLED:
        terms += (1 - _other_slopes(pair)) * (pair.plain - log_z)
        method += ", control variate"
    value = mean_of(terms)
    error = float(sample_deviation(terms)) / math.sqrt(m) if m > 1 else math.inf
    half = float(stdtrit(max(1, m - 1), (1 + confidence) / 2)) * error
    return Estimate(value, error, value - half, value + half, TARGET, "unbiased", confidence, 2 * m, method, SOURCE)


def _other_slopes(pair: PairedMaxima) -> Floats:
    """For each sample, the least-squares slope of `weighted` on `plain` in the other half of the
    samples, shape (M,)."""
    m = pair.plain.size
    slopes = np.empty(m)
    halves = slice(m // 2), slice(m // 2, m)
    for half, other in (halves, halves[::-1]):
        plain = pair.plain[other] - pair.plain[other].mean()
        weighted = pair.weighted[other] - pair.weighted[other].mean()
        slopes[half] = (plain @ weighted) / (plain @ plain)
    return slopes


def exact_log_expectation(
    model: Model,
    integrand: Model,
    *,
    memory: int = DEFAULT_MEMORY,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Tick | None = None,
) -> tuple[float, str]:
    """Exact ln E_p[f] in nats, and the method.

    For two factor graphs it is the difference of two partition functions from
    `exact_log_partition_function`; a vector takes one sweep over both. Raises ModelTooLarge,
    NoConfiguration, InputError as `paired_maxima`; two graphs are too large if no algorithm can
    solve them.

    Parameters
    ----------
    model, integrand : arguments of `paired_maxima`.
    memory, max_configurations, progress : arguments of `exact_log_partition_function`.

    Returns
    -------
    ln E_p[f], which is -inf if f is 0 on every possible configuration, and the name of the method.
    """
    if isinstance(model, FactorGraph) and isinstance(integrand, FactorGraph):
        solved = [
            exact_log_partition_function(graph, memory=memory, max_configurations=max_configurations, progress=progress)
            for graph in (model.times(integrand), model)
        ]
        (weighted, _), (plain, _) = solved
        method = " and ".join(dict.fromkeys(name for _, name in solved))
    else:
        weighted = plain = -math.inf
        for block in _paired_blocks(model, integrand, max_configurations):
            plain, weighted = np.logaddexp([plain, weighted], logsumexp(block, axis=1)).tolist()
            if progress:
                progress(block.shape[1])
        method = "enumeration"
    if plain == -math.inf:
        raise NoConfiguration()
    return difference(weighted, plain), method
