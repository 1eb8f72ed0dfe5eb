r"""Renyi entropies from perturbed maxima (Thesis sections 3.2.2, 3.3, 3.4).

`entropy_maxima` enumerates `order` phi under the same noise for many orders, and `renyi_entropy`
turns these maxima into entropies.

H_a = (ln Z_a - a ln Z) / (1 - a) at order a, with Z_a = sum_x e^{a phi(x)} (eq. 3.10). A trick
(Thesis Table 2.1) estimates ln Z_a from the maxima of a phi + gamma, and ln Z from those of phi +
gamma. The Gumbel trick is unbiased. So is the Exponential trick once its bias ln M - digamma(M) is
subtracted, and it has the least variance of all unbiased estimators. Then H_a is unbiased too,
whether or not the two maxima share noise (eq. 3.12).

At orders 0, 1 and inf the estimators are limits. At 0, ln Z drops out. At inf, all noise except
that in ln Z drops out. At 1, (max{a phi + gamma} - a max{phi + gamma}) / (1 - a) tends to gamma(x*)
= max{phi + gamma} - phi(x*), the noise at the maximum (Proposition 9; Maji et al. 2014). One
estimator is not a limit: at order 1 the Exponential trick would weight phi(x*) by the clocks, which
doubles its variance, so the plain mean of phi(x*) is used instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.base.rounding import difference, mean_of
from thesis_cli.entropy.exact import AS_INFINITE
from thesis_cli.entropy.names import Design
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.models.factor_graph import Model
from thesis_cli.perturbation.estimate import Estimate, check_confidence
from thesis_cli.perturbation.tricks.full_rank import groups
from thesis_cli.perturbation.tricks.trick_rows import TRICKS
from thesis_cli.perturbation.tricks.tricks import Trick, gumbel

BLOCK = 2**20
"""Configurations that are sorted at a time: 8 MiB of potentials."""

MOST_VALUES = 2**28
"""Largest product of perturbations and orders: 2 GiB of maxima."""

MOST_POTENTIAL = 1e100
"""Largest |phi|: squares of its products with an order do not overflow."""

_SMALLER = f"it must be at most {MOST_POTENTIAL:g} in size, or -inf"
_BELOW_ONE = 1 - 2.0**-53


class Noise(NamedTuple):
    """Perturbations that are drawn.

    Attributes
    ----------
    share_above : configurations with a smaller potential get noise of their own for the maximum at
        order 1, which estimates ln Z. -inf shares all noise, inf none (Thesis eq. 3.13).
    design : `independent` perturbations, or `stratified`: sets of about sqrt(M), in each of which
        the clock of a block's top configuration and the earliest clock below it form a Latin
        hypercube.
    """

    share_above: float = -math.inf
    design: Design = "independent"


SHARED, SEPARATE = Noise(), Noise(share_above=math.inf)
"""All noise is shared between ln Z at an order and ln Z, or none."""


@dataclass(frozen=True)
class EntropyMaxima:
    """Maxima of MAP problems at every order: all that the estimators need of a model, discrete or
    continuous.

    Attributes
    ----------
    orders : finite, 0 or more, shape (A,).
    values : max_x {a phi(x) + gamma(x)} at each order a, gamma ~ Gumbel(-c) independent, shape (M,
        A); each is distributed as Gumbel(ln Z_a - c) (Thesis eq. 3.7).
    at_one : max_x {phi(x) + gamma'(x)}, shape (M,).
    potential : phi of the configuration that attains `at_one`, an exact sample of p, shape (M,).
    highest : max_x phi(x), without noise.
    share_above : gamma'(x) is gamma(x) where phi(x) >= this, and independent elsewhere (eq. 3.13).
    replicates : index of the set of each perturbation, ascending, shape (M,). Sets are independent;
        perturbations in the same set of a stratified design are not.
    """

    orders: Floats
    values: Floats
    at_one: Floats
    potential: Floats
    highest: float
    share_above: float
    replicates: npt.NDArray[np.int64]

    @property
    def samples(self) -> int:
        """Number M of perturbations."""
        return int(self.at_one.size)

    @property
    def sets(self) -> int:
        """Number of sets of perturbations."""
        return int(self.replicates[-1]) + 1

    @property
    def independent(self) -> bool:
        """Whether the perturbations are independent of each other."""
        return self.sets == self.samples

    def column(self, order: float) -> Floats:
        """The values at one of the orders, shape (M,). Raises InputError if the order is not among
        `orders`."""
        at = np.flatnonzero(self.orders == order)
        if not at.size:
            raise InputError(f"no maxima at order {order:g}", f"it must be {', '.join(f'{a:g}' for a in self.orders)}")
        return np.asarray(self.values[:, at[0]])


def entropy_maxima(
    model: Model,
    orders: Floats,
    count: int,
    seed: np.random.SeedSequence,
    noise: Noise = SHARED,
    *,
    jobs: int = 1,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Tick | None = None,
) -> EntropyMaxima:
    """Solve MAP under `count` draws of noise, at every order under the same draws, in one sweep.

    Each block of B configurations is sorted; a perturbation then takes ln B steps in it
    (`staircase_kernels`). The result depends only on `seed`, `count` and `noise`.

    Parameters
    ----------
    model : anything that can be enumerated.
    orders : 0 or more, shape (A,); those from `AS_INFINITE` on need no noise and are left out.
    count : number M of perturbations.
    seed : root of the random streams.
    noise : which noise is shared, and how perturbations are spread.
    jobs : threads.
    max_configurations : largest number of configurations to enumerate.
    progress : called with the number of configurations just enumerated.

    Raises
    ------
    ModelTooLarge : |X| exceeds the limit.
    NoConfiguration : no configuration is possible.
    InputError : `count` is below 1 or needs too much memory, an order is negative or NaN, or a
        potential is larger than `MOST_POTENTIAL`.
    """
    if count < 1:
        raise InputError(f"the number of perturbations is {count}", "it must be 1 or more")
    check_orders(orders)
    finite = np.unique(orders[orders < AS_INFINITE])
    if count * (finite.size + 4) > MOST_VALUES:
        raise too_many(count, finite.size)
    enumeration = Enumeration(model, max_configurations)
    values = np.full((count, finite.size), -np.inf)
    at_one, potential, highest = np.full(count, -np.inf), np.full(count, -np.inf), -np.inf
    slices = groups(count)
    design_seed, *children = seed.spawn(1 + len(slices))
    streams = [np.random.default_rng(child) for child in children]
    strata = _Strata(count, noise.design, np.random.default_rng(design_seed))
    with Threads(jobs) as threads:

        def race(levels: Floats, columns: Floats, top: Floats, where: Floats) -> None:
            from thesis_cli.entropy import staircase_kernels

            first = strata.draw()

            def climb(rows: slice, stream: np.random.Generator) -> None:
                staircase_kernels.climb(
                    stream, levels, first[rows], finite[: columns.shape[1]], columns[rows], top[rows], where[rows]
                )

            for _ in threads.map(climb, slices, streams):
                pass

        for block in enumeration.blocks(BLOCK):
            levels = np.sort(block[block > -np.inf])[::-1].copy()
            if levels.size and max(levels[0], -levels[-1]) > MOST_POTENTIAL:
                raise InputError(f"a log-potential is {levels[np.abs(levels).argmax()]:g}", _SMALLER)
            shared = levels.size - int(np.searchsorted(levels[::-1], noise.share_above))
            if shared:
                race(levels[:shared], values, at_one, potential)
            if shared < levels.size:
                race(levels[shared:], values, np.full(count, -np.inf), np.empty(count))
                race(levels[shared:], np.empty((count, 0)), at_one, potential)
            highest = max(highest, float(levels[0]) if levels.size else -np.inf)
            if progress:
                progress(block.size)
    if highest == -np.inf:
        raise NoConfiguration()
    c = np.euler_gamma
    return EntropyMaxima(finite, values - c, at_one - c, potential, highest, noise.share_above, strata.labels)


def check_orders(orders: Floats) -> None:
    """Raise `InputError` for a negative or NaN order of some orders, shape (orders,)."""
    for order in orders[~(orders >= 0)]:
        raise InputError(f"the order is {order:g}", "it must be 0 or more, or inf")


def too_many(count: int, orders: int) -> InputError:
    """The error for more maxima than memory holds."""
    return InputError(f"{count:,} perturbations at {orders} orders", f"the product must be below {MOST_VALUES:,}")


class _Strata:
    """Uniforms that start each perturbation of a block."""

    def __init__(self, count: int, design: Design, rng: np.random.Generator) -> None:
        sets = count if design == "independent" else max(1, round(math.sqrt(count)))
        each, more = divmod(count, sets)
        self._sizes = [each + 1] * more + [each] * (sets - more)
        self._rng = rng
        self.labels = np.repeat(np.arange(sets), self._sizes)

    def draw(self) -> Floats:
        """Two uniforms for each perturbation, shape (M, 2), which form a Latin hypercube in each
        set."""
        within = self._rng.random((self.labels.size, 2))
        if self.labels[-1] == self.labels.size - 1:
            return within
        strata = [self._rng.permuted(np.tile(np.arange(s), (2, 1)), axis=1).T for s in self._sizes]
        width = np.repeat(self._sizes, self._sizes)[:, np.newaxis]
        return np.asarray(np.minimum((np.concatenate(strata) + within) / width, _BELOW_ONE))


LEAST_SETS = 32
"""Least number of sets of perturbations with which a control variate is used: with fewer, its
estimated coefficient is too uncertain to help."""


@dataclass(frozen=True)
class ControlVariate:
    """The effect of a control variate: b (estimate of ln Z - ln Z) is subtracted from an estimate
    of ln Z at an order.

    Attributes
    ----------
    coefficient : b, the mean of two coefficients. Each is estimated on one half of the
        perturbations and applied to the other, which keeps the estimate unbiased.
    saved : share of the variance that the control variate removes, estimated on the same
        perturbations.
    """

    coefficient: float
    saved: float


@dataclass(frozen=True)
class _Log:
    """An estimate whose variance is that of the mean of `influence`: one number for each
    perturbation, or a single 0."""

    value: float
    influence: Floats

    def minus(self, other: _Log, factor: float = 1.0) -> _Log:
        return _Log(difference(self.value, factor * other.value), self.influence - factor * other.influence)

    def times(self, factor: float) -> _Log:
        return _Log(factor * self.value, factor * self.influence)


def renyi_entropy(
    maxima: EntropyMaxima,
    order: float,
    *,
    log_z: float | None = None,
    trick: Trick | None = None,
    debias: bool = True,
    control: bool = True,
    confidence: float = 0.95,
) -> tuple[Estimate, ControlVariate | None]:
    """The Renyi entropy of p = e^phi / Z at an order, in nats. Raises InputError if `maxima` lacks
    the order, the trick does not apply, or the confidence level is out of range.

    Parameters
    ----------
    maxima : perturbed maxima of phi.
    order : 0 to inf; unless 1 or inf, one of `maxima.orders`.
    log_z : ln Z, if it is known: the normalised case (eq. 3.8). Otherwise the trick estimates it
        too (eq. 3.12).
    trick : trick that averages the maxima; by default Gumbel. Pareto and tail tricks, which need a
        scale, are refused.
    debias : whether to subtract the known bias of the Exponential trick.
    control : whether to use the estimate of a known ln Z as a control variate with the best
        coefficient. Eq. 3.8 has coefficient 0, eq. 3.12 the order itself (Proposition 19). At order
        1 eq. 3.8 has no limit, and the control variate is always used.
    confidence : confidence level of the Student interval, which treats sets of perturbations as
        independent.

    Returns
    -------
    estimate : the entropy, with the standard error of the sample to first order; inf with one set
        of perturbations.
    variate : the effect of the control variate, or None if none was used.
    """
    check_orders(np.array([order]))
    check_confidence(confidence)
    at_one_known = order == 1 and log_z is not None  # then there is nothing for a trick to average
    rule = _Rule(gumbel() if trick is None or at_one_known else trick, maxima, debias)
    known = None if log_z is None else _Log(log_z, np.zeros(1))
    variate = None
    if order >= AS_INFINITE:
        found = (known or rule(maxima.at_one)).minus(_Log(maxima.highest, np.zeros(1)))
    elif order == 1:
        found = (known or rule(maxima.at_one)).minus(_mean(maxima.potential))
        if known:
            variate = ControlVariate(1.0, _saved(found, _mean(maxima.at_one - maxima.potential), maxima))
    elif known and control and maxima.sets >= LEAST_SETS:
        top, variate = _controlled(maxima, order, known.value, rule)
        found = top.minus(known, order).times(1 / (1 - order))
    else:
        found = rule(maxima.column(order)).minus(known or rule(maxima.at_one), order).times(1 / (1 - order))
    exact = order >= AS_INFINITE and known is not None
    error = 0.0 if exact else rule.error(found.influence)
    half = float(stdtrit(max(1, maxima.sets - 1), (1 + confidence) / 2)) * error
    estimate = Estimate(
        found.value,
        error,
        found.value - half,
        found.value + half,
        f"H_{order:.12g}",
        "exact" if exact else rule.kind,
        confidence,
        _calls(maxima, order, variate is not None or (log_z is None and order != 0)),
        _method(rule.trick, variate is not None, exact, at_one_known),
        _source(maxima, order, log_z),
    )
    return estimate, variate


class _Rule:
    """An estimator of ln Z from maxima, by a trick."""

    def __init__(self, trick: Trick, maxima: EntropyMaxima, debias: bool) -> None:
        if TRICKS[trick.name].scaled:
            raise InputError(f"the {trick.name} trick needs a scale", "use gumbel, exponential, weibull or frechet")
        if not (trick.linear or maxima.independent):
            raise InputError(f"a stratified design does not go with the {trick.label} trick", "use the gumbel trick")
        self.trick, self._maxima = trick, maxima
        self._debias = debias
        self.kind = trick.bias_to_remove(maxima.samples, debias)[1]

    def __call__(self, values: Floats) -> _Log:
        """The estimate from maxima, shape (M,)."""
        log_t = -np.euler_gamma - values
        trick = self.trick
        each, average = trick.average(log_t[:, np.newaxis]), trick.average(log_t)
        log_z = float(trick.log_z(average)) - trick.bias_to_remove(values.size, self._debias)[0]
        if trick.log_transform is None:
            return _Log(log_z, each - average)
        slope = float(trick.log_z(1.0) - trick.log_z(0.0))
        with np.errstate(over="ignore"):
            return _Log(log_z, slope * np.expm1(each - average))

    def error(self, influence: Floats) -> float:
        """Standard error of the mean of influences."""
        if self._maxima.sets < 2 or not math.isfinite(float(self.trick.relative_variance(0.0))):
            return math.inf
        return math.sqrt(_variance_of_mean(influence, self._maxima))


def _mean(values: Floats) -> _Log:
    mean = mean_of(values)
    return _Log(mean, values - mean)


def _variance_of_mean(influence: Floats, maxima: EntropyMaxima) -> float:
    """sum n_s m_s^2 / ((S - 1) M), from the means m_s of the S independent sets with n_s
    perturbations each."""
    sizes = np.bincount(maxima.replicates)
    means = np.bincount(maxima.replicates, weights=influence) / sizes
    return float((sizes * means**2).sum() / max(1, maxima.sets - 1) / maxima.samples)


def _controlled(maxima: EntropyMaxima, order: float, log_z: float, rule: _Rule) -> tuple[_Log, ControlVariate]:
    """ln Z at an order, estimated on two halves, each with the coefficient that is best on the
    other."""
    halves = [maxima.replicates % 2 == k for k in (0, 1)]
    tops, bottoms = ([rule(values[half]) for half in halves] for values in (maxima.column(order), maxima.at_one))
    sets = [maxima.replicates[half] // 2 for half in halves]
    best = [_coefficient(t.influence, b.influence, s) for t, b, s in zip(tops, bottoms, sets, strict=True)][::-1]
    value, influence, plain = 0.0, np.empty(maxima.samples), np.empty(maxima.samples)
    for half, top, bottom, b in zip(halves, tops, bottoms, best, strict=True):
        corrected = top.minus(bottom, b)
        value += (corrected.value + b * log_z) * float(half.mean())
        influence[half], plain[half] = corrected.influence, top.influence
    found = _Log(value, influence)
    return found, ControlVariate(sum(best) / 2, _saved(found, _Log(value, plain), maxima))


def _coefficient(top: Floats, bottom: Floats, sets: npt.NDArray[np.int64]) -> float:
    """Slope of the regression of the sums over sets."""
    t, b = (np.bincount(sets, weights=x) for x in (top, bottom))
    square = float(b @ b)
    return float(t @ b) / square if square else 0.0


def _saved(after: _Log, before: _Log, maxima: EntropyMaxima) -> float:
    variance = _variance_of_mean(before.influence, maxima)
    return 1 - _variance_of_mean(after.influence, maxima) / variance if variance else 0.0


def _method(trick: Trick, controlled: bool, exact: bool, at_one_known: bool) -> str:
    if exact:
        return "maximum"
    return "mean of -ln p(x*)" if at_one_known else trick.label + ", control variate" * controlled


def _calls(maxima: EntropyMaxima, order: float, needs_one: bool) -> int:
    """Number of perturbed MAP problems that an estimate uses: those at its order and those at 1."""
    at_order = order != 1 and order < AS_INFINITE
    return maxima.samples * (at_order + (order == 1 or needs_one))


def _source(maxima: EntropyMaxima, order: float, log_z: float | None) -> str:
    if order >= AS_INFINITE:
        return "Thesis eq. 3.4"
    if order == 1:
        return "Thesis eq. 3.17"
    return "Thesis eq. 3.8" if log_z is not None else f"Thesis eq. 3.1{'2' if maxima.share_above == -math.inf else '3'}"
