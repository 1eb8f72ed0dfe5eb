"""Perturbed maxima of alpha phi, for many alphas under the same noise, of a model that can be enumerated."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, NoConfiguration
from thesis_cli.base.progress import Tick
from thesis_cli.entropy.exact import LIMIT
from thesis_cli.entropy.names import Design
from thesis_cli.inference.enumeration import MAX_CONFIGURATIONS, Enumeration
from thesis_cli.models.factor_graph import Model
from thesis_cli.perturbation.full_rank import GROUPS

BLOCK = 2**20
"""Configurations that are sorted at a time: 8 MiB of potentials."""

MOST_VALUES = 2**28
"""Limit on perturbations times alphas: 2 GiB of maxima."""

MOST_POTENTIAL = 1e100
"""Limit on |phi|, so that squares of alpha phi do not overflow."""

_SMALLER = f"at most {MOST_POTENTIAL:g} in size, or -inf, is wanted"
_BELOW_ONE = 1 - 2.0**-53


@dataclass(frozen=True)
class EntropyMaxima:
    """What solving MAP at every alpha gave. The estimators ask no more of a model, discrete or continuous.

    Attributes
    ----------
    alphas : finite, 0 or above, shape (A,).
    values : max_x {alpha phi(x) + gamma(x)}, gamma ~ Gumbel(-c) independent, shape (M, A); each is distributed as
        Gumbel(ln Z_alpha - c) (Thesis eq. 3.7).
    at_one : max_x {phi(x) + gamma'(x)}, shape (M,).
    potential : phi of the configuration that attains `at_one`, an exact sample of p, shape (M,).
    highest : max_x phi(x), without noise.
    share_above : gamma'(x) is gamma(x) where phi(x) >= this, and independent elsewhere (eq. 3.13).
    replicates : number of the set that each perturbation belongs to, ascending, shape (M,). Sets are independent;
        within a set of a stratified design the perturbations are not.
    """

    alphas: Floats
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

    def column(self, alpha: float) -> Floats:
        """The values at one of the alphas, shape (M,).

        Raises
        ------
        InputError : it is none of them.
        """
        at = np.flatnonzero(self.alphas == alpha)
        if not at.size:
            raise InputError(f"no maxima at alpha = {alpha:g}", f"one of {', '.join(f'{a:g}' for a in self.alphas)}")
        return np.asarray(self.values[:, at[0]])


def entropy_maxima(
    model: Model,
    alphas: Floats,
    count: int,
    seed: np.random.SeedSequence,
    *,
    share_above: float = -math.inf,
    design: Design = "independent",
    jobs: int = 1,
    max_configurations: int = MAX_CONFIGURATIONS,
    progress: Tick | None = None,
) -> EntropyMaxima:
    """Solve MAP under `count` draws of noise, at every alpha under the same draws, in one sweep.

    Each block of configurations is sorted, after which a perturbation takes ln B steps in it (`staircase_kernels`).
    The result depends on `seed`, `count`, `share_above` and `design` alone.

    Parameters
    ----------
    model : anything that can be enumerated.
    alphas : 0 or above, shape (A,); those from `LIMIT` on, which need no noise, are left out.
    count : number M of perturbations.
    seed : root of the random streams.
    share_above : configurations with a smaller potential get noise of their own for the maximum at alpha = 1, by
        which ln Z is estimated. The default shares all noise, `inf` none.
    design : `stratified` makes sets of about sqrt(M) perturbations, in each of which the clock of a block's top
        configuration, and the earliest clock below it, form a Latin hypercube.
    jobs : threads.
    max_configurations : refuse a larger model.
    progress : called with the number of configurations just done.

    Raises
    ------
    ModelTooLarge : |X| exceeds the limit.
    NoConfiguration : no configuration is possible.
    InputError : no perturbations, more than memory holds, an alpha that is negative or NaN, or a potential beyond
        `MOST_POTENTIAL`.
    """
    if count < 1:
        raise InputError(f"{count} perturbations", "at least one is wanted")
    check_orders(alphas)
    finite = np.unique(alphas[alphas < LIMIT])
    if count * (finite.size + 4) > MOST_VALUES:
        raise InputError(f"{count:,} perturbations at {finite.size} alphas", f"at most {MOST_VALUES:,} maxima")
    enumeration = Enumeration(model, max_configurations)
    values = np.full((count, finite.size), -np.inf)
    at_one, potential, highest = np.full(count, -np.inf), np.full(count, -np.inf), -np.inf
    slices = [slice(part[0], part[-1] + 1) for part in np.array_split(np.arange(count), min(GROUPS, count))]
    design_seed, *children = seed.spawn(1 + len(slices))
    streams = [np.random.default_rng(child) for child in children]
    strata = _Strata(count, design, np.random.default_rng(design_seed))
    with ThreadPoolExecutor(jobs) as pool:

        def race(levels: Floats, columns: Floats, top: Floats, where: Floats) -> None:
            from thesis_cli.entropy import staircase_kernels

            first = strata.draw()

            def climb(rows: slice, stream: np.random.Generator) -> None:
                staircase_kernels.climb(
                    stream, levels, first[rows], finite[: columns.shape[1]], columns[rows], top[rows], where[rows]
                )

            list(pool.map(climb, slices, streams) if jobs > 1 else map(climb, slices, streams))

        for block in enumeration.blocks(BLOCK):
            levels = np.sort(block[block > -np.inf])[::-1].copy()
            if levels.size and max(levels[0], -levels[-1]) > MOST_POTENTIAL:
                raise InputError(f"a log-potential is {levels[np.abs(levels).argmax()]:g}", _SMALLER)
            shared = levels.size - int(np.searchsorted(levels[::-1], share_above))
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
    return EntropyMaxima(finite, values - c, at_one - c, potential, highest, share_above, strata.labels)


def check_orders(alphas: Floats) -> None:
    """Refuse what is no order of a Renyi entropy (`InputError`)."""
    for alpha in alphas[~(alphas >= 0)]:
        raise InputError(f"alpha is {alpha:g}", "the order of a Renyi entropy is 0 or above, or inf")


class _Strata:
    """The uniforms that begin each perturbation of a block."""

    def __init__(self, count: int, design: Design, rng: np.random.Generator) -> None:
        sets = count if design == "independent" else max(1, round(math.sqrt(count)))
        self._sizes = [part.size for part in np.array_split(np.arange(count), sets)]
        self._rng = rng
        self.labels = np.repeat(np.arange(sets), self._sizes)

    def draw(self) -> Floats:
        """Two uniforms a perturbation, shape (M, 2): a Latin hypercube in each set, plain where a set is one."""
        within = self._rng.random((self.labels.size, 2))
        if self.labels[-1] == self.labels.size - 1:
            return within
        strata = [self._rng.permuted(np.tile(np.arange(s), (2, 1)), axis=1).T for s in self._sizes]
        width = np.repeat(self._sizes, self._sizes)[:, np.newaxis]
        return np.asarray(np.minimum((np.concatenate(strata) + within) / width, _BELOW_ONE))
