"""Cost of an exact sample of a continuous target by A* sampling and by rejection."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.models.proposals import Proposal
from thesis_cli.models.targets import Target, log_ratios
from thesis_cli.perturbation.a_star.a_star import a_star
from thesis_cli.studies.perturbation.rejection import rejection

STREAMS = 32
"""Independent random streams whose spread gives standard errors."""

Sampler = Literal["a-star", "os-star", "rejection"]


class Capped:
    """A target whose bound is one constant, the maximum of o, as plain rejection needs it.

    Parameters
    ----------
    target : the target.
    points : points that cover its support densely, shape (K, D).

    Attributes
    ----------
    most : the constant.
    """

    def __init__(self, target: Target, points: Floats) -> None:
        self._target = target
        self.most = float(log_ratios(target, points).max()) + 1e-9

    @property
    def proposal(self) -> Proposal:
        return self._target.proposal

    def log_ratio(self, x: Floats) -> float:
        return self._target.log_ratio(x)

    def bound(self, low: Floats, high: Floats) -> float:
        return self.most


class Costs(NamedTuple):
    """Evaluations for each sample, shape (STREAMS, count).

    Attributes
    ----------
    evaluations : evaluations of o.
    bounds : evaluations of bounds on boxes.
    """

    evaluations: Ints
    bounds: Ints


def costs(target: Target, sampler: Sampler, count: int, seed: np.random.SeedSequence) -> Costs:
    """Evaluations for each of `count` samples in each random stream.

    Parameters
    ----------
    target : the target; for `rejection`, a `Capped` one.
    sampler : `a-star`; `os-star`, adaptive rejection; or `rejection` with a constant bound.
    """
    if sampler == "a-star":
        found = [a_star(target, count * STREAMS, seed)]
    else:
        found = [rejection(target, count, s, adaptive=sampler == "os-star") for s in seed.spawn(STREAMS)]
    evaluations, bounds = (np.concatenate([getattr(f, name) for f in found]) for name in ("evaluations", "bounds"))
    return Costs(evaluations.reshape(STREAMS, count), bounds.reshape(STREAMS, count))


def by_doubling(table: Ints) -> tuple[Ints, Floats, Floats]:
    """Mean cost of the samples 1, 2 to 3, 4 to 7, ... of a stream.

    Parameters
    ----------
    table : cost of each sample, shape (STREAMS, count); count is 2^k - 1.

    Returns
    -------
    First sample of each range, mean cost and standard error, each of shape (k,).
    """
    starts = 2 ** np.arange(int(math.log2(table.shape[1])) + 1) - 1
    means = np.stack([table[:, a:b].mean(axis=1) for a, b in zip(starts, 2 * starts + 1, strict=True)], axis=1)
    error = means.std(axis=0, ddof=1) / math.sqrt(STREAMS)
    return starts + 1, means.mean(axis=0), error
