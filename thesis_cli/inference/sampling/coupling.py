"""Exact samples of models too wide for elimination, by coupling from the past (Propp and Wilson 1996)."""

from __future__ import annotations

import itertools
import time

import numpy as np

from thesis_cli.base.arrays import Ints
from thesis_cli.base.errors import NoConfiguration, OutOfTime, UnsuitableModel
from thesis_cli.inference.enumeration import starts
from thesis_cli.inference.sampling.coupling_kernels import Coupled, Neighbours, Scratch, coupled_sweep
from thesis_cli.inference.sampling.gibbs import split, strides
from thesis_cli.models.factor_graph import FactorGraph

PLACES = 2**12
"""Most joint states of neighbours that are compared for a variable; with more, any of its states counts as possible."""
PILOTS = 3
"""Runs that tell how many sweeps chains take to meet."""
PILOT_SHARE, SAMPLE_SHARE = 0.2, 0.8
"""Share of the time after which chains that have not met are given up, and the share that samples are planned for."""
BLOCKS = 2.0
"""Blocks of sweeps that are planned for a sample; in more than half of them, chains meet."""


class CoupledChains:
    """Gibbs chains from all configurations that share their noise, so that they may meet.

    Of each variable the states are kept that some chain may be in (Huber 2004): more than there are, so that chains
    have met for certain where one is left.

    Raises
    ------
    UnsuitableModel : a factor of several variables forbids something.
    NoConfiguration : the unary factors forbid all states of a variable.
    """

    def __init__(self, graph: FactorGraph) -> None:
        unary, factors = split(graph)
        if any(np.isneginf(f.table).any() for f in factors):
            raise UnsuitableModel("coupling needs a model without zeros", "take --method ais")
        if any(np.isneginf(table).all() for table in unary):
            raise NoConfiguration()
        begins = starts([f.table.size for f in factors])
        uses: list[list[tuple[int, int, list[tuple[int, int]]]]] = [[] for _ in unary]
        for f, factor in enumerate(factors):
            steps = list(zip(factor.scope, strides(factor.table.shape), strict=True))
            for i, stride in steps:
                uses[i].append((int(begins[f]), stride, [pair for pair in steps if pair[0] != i]))
        every = [use for own in uses for use in own]
        others = [pair for _, _, pairs in every for pair in pairs]
        self._model = Neighbours(
            starts([table.size for table in unary]),
            np.concatenate([np.empty(0), *unary]),
            starts([len(own) for own in uses]),
            np.array([start for start, _, _ in every], np.int64),
            np.array([stride for _, stride, _ in every], np.int64),
            starts([len(pairs) for _, _, pairs in every]),
            np.array([i for i, _ in others], np.int64),
            np.array([step for _, step in others], np.int64),
            np.concatenate([np.empty(0), *(f.table.reshape(-1) for f in factors)]),
        )
        sizes = sum(float(np.abs(f.table).max()) for f in factors)
        self._slack = 2.0**-40 * (1 + sizes + float(np.abs(self._model.unary[self._model.unary > -np.inf]).max()))
        self._allowed = (self._model.unary > -np.inf).astype(np.int64)
        self._scratch = Scratch(
            np.empty(PLACES, np.int64),
            np.empty(max(map(len, uses), default=0), np.int64),
            np.empty(max(table.size for table in unary)),
        )
        self.restart()

    def restart(self) -> None:
        """Chains from all configurations."""
        self.possible = self._allowed.copy()
        self.counts = np.add.reduceat(self.possible, self._model.offsets[:-1])

    @property
    def met(self) -> bool:
        """Whether all chains are in one configuration."""
        return bool((self.counts == 1).all())

    def any_states(self) -> Ints:
        """A configuration that the unary factors allow, shape (n,)."""
        offsets = self._model.offsets
        return np.array([int(np.argmax(self._allowed[a:b])) for a, b in itertools.pairwise(offsets)])

    def sweep(self, states: Ints, rng: np.random.Generator) -> None:
        """Draw each variable anew, also in the chain that is in `states`, in place."""
        noise = rng.gumbel(size=self._allowed.size)
        coupled_sweep(self._model, noise, self._slack, Coupled(states, self.possible, self.counts), self._scratch)


def coupled_samples(
    graph: FactorGraph, most: int, rng: np.random.Generator, deadline: float, *, sweeps: int = 0
) -> Ints:
    """Independent configurations x ~ p, shape (count, n), as many up to `most` as seem to fit the time.

    A chain runs through blocks of sweeps. Before each block in which chains from everywhere meet, but the first such
    one, its state is an exact sample (Wilson 2000). How many are drawn is fixed beforehand, so that what takes long is
    not left out.

    Parameters
    ----------
    deadline : `time.monotonic()` at which to end.
    sweeps : Gibbs sweeps for each sample that also have to fit.

    Raises
    ------
    OutOfTime : the chains did not meet in time.
    UnsuitableModel, NoConfiguration : as for `CoupledChains`.
    """
    chains, lengths = CoupledChains(graph), []
    states = chains.any_states()
    chains.sweep(states, rng)  # may compile, which is not the pace of a sweep
    began = time.monotonic()
    for _ in range(PILOTS):
        chains.restart()
        lengths.append(0)
        while not chains.met:
            if time.monotonic() > began + PILOT_SHARE * (deadline - began):
                raise OutOfTime("chains from all configurations do not meet in time")
            chains.sweep(states, rng)
            lengths[-1] += 1
    now, block = time.monotonic(), max(lengths)
    each = (now - began) * (BLOCKS * block + sweeps) / max(1, sum(lengths))  # seconds
    count = most if most * each <= SAMPLE_SHARE * (deadline - now) else int(SAMPLE_SHARE * (deadline - now) / each)
    if count < 1:
        raise OutOfTime("the time is too short for one exact sample")
    found: list[Ints] = []
    met = False
    while len(found) < count:
        before, known = states.copy(), met
        chains.restart()
        for _ in range(block):
            if time.monotonic() > deadline:
                raise OutOfTime("chains from all configurations do not meet in time")
            chains.sweep(states, rng)
        if chains.met:
            met = True
            if known:
                found.append(before)
    return np.array(found)
