"""Perturbed maxima of `order` phi, for many orders under the same noise, of a model that can be
enumerated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.parallel import Threads
from thesis_cli.base.progress import Tick
from thesis_cli.entropy.exact import AS_INFINITE
from thesis_cli.entropy.names import Design
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.models.factor_graph import Model
from thesis_cli.perturbation.noise import groups

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
