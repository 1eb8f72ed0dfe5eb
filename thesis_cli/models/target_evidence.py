"""ln Z of a continuous target with its error, and targets that their proposal cuts off.

A normal proposal ends `REACH` scales from its mean. It cuts off a target that has not vanished
there; such a target may have no finite integral.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, WorkFailed
from thesis_cli.models import quadrature
from thesis_cli.models.proposals import REACH, Normal
from thesis_cli.models.target_objects import UsersTarget
from thesis_cli.models.targets import Target

LOOSEST = 1e-3
"""Largest error of ln Z with which a value is returned."""

RIM = 0.05
"""A point is at an end of a normal proposal if it is so close, relative to the distance from the
mean to the end."""


def evidence(target: Target) -> quadrature.Integral:
    """Compute ln Z by quadrature, to the default tolerance or, if it is not met, to `LOOSEST`.

    In one dimension the error includes an estimate of the mass beyond the ends of a normal
    proposal, from the density at the ends. In more dimensions, boxes at the ends are so small a
    part of the proposal that quadrature does not converge if they matter.

    Raises
    ------
    WorkFailed : as for `integrate`, or the object of a user takes `MOST_EVALUATIONS` in one
        dimension.
    InputError : the target does not vanish where its proposal ends, or Z is 0.
    """
    proposal = target.proposal
    if proposal.low.size > 1:
        try:
            found = quadrature.integrate(target)
        except WorkFailed:
            found = quadrature.integrate(target, LOOSEST)
    else:
        with target.limited() if isinstance(target, UsersTarget) else nullcontext():
            found = quadrature.integrate(target, LOOSEST)
        if isinstance(proposal, Normal):
            ends = np.array([proposal.low, proposal.high])
            sides = quadrature.log_densities(target, ends) + math.log(proposal.high[0] - proposal.low[0])
            beyond = np.exp(np.minimum(sides - found.log_z, 0))
            if beyond.max() > LOOSEST:
                raise _cut_off(float(ends[beyond.argmax(), 0]))
            found = replace(found, error=found.error + float(beyond.sum()))
    return found


def check_samples(target: Target, points: Floats) -> None:
    """Refuse samples, shape (M, D), if one lies at an end of a normal proposal.

    Raises
    ------
    InputError : it does; the proposal cuts the target off.
    """
    if isinstance(target.proposal, Normal):
        away = np.abs(points - target.proposal.mean) / (REACH * target.proposal.scale)
        if away.max() > 1 - RIM:
            raise _cut_off(float(points[np.unravel_index(away.argmax(), away.shape)]))


def _cut_off(place: float) -> InputError:
    return InputError(
        f"the target is cut off: it has not vanished at {place:.6g}, {REACH:g} scales from the mean of its normal "
        f"proposal, which ends there",
        "give a target that vanishes, or a larger scale",
    )
