"""The two cooling schedules that Vembu et al. section 2.2 prints, which differ from each other."""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.structured.schedules import Schedule, check_steps


def printed_schedule(p: int, radius: float) -> Schedule:
    """The schedule as its formula is printed: l = p ceil(R |theta|), beta_j = j / q for j < l, beta_l = 1.

    It passes 1 before it ends unless R |theta| is an integer, and turns back in a last step of up to
    (p - 1) / q.

    Raises
    ------
    InputError, ModelTooLarge : as for `corrected_schedule`.
    """
    q = check_steps(p, radius)
    length = max(1, p * math.ceil(radius))
    return Schedule(np.append(np.arange(length) / (q or 1.0), 1.0), "as its formula is printed")


def listed_schedule(p: int, radius: float) -> Schedule:
    """The schedule as it is written out: 0, 1/q, 2/q, ..., p floor(R |theta|) / q, 1.

    Its last step is up to p / q, so that f_l may leave exp(+-1/p).

    Raises
    ------
    InputError, ModelTooLarge : as for `corrected_schedule`.
    """
    q = check_steps(p, radius)
    inner = np.arange(p * math.floor(radius) + 1) / (q or 1.0)
    return Schedule(np.append(inner[inner < 1.0], 1.0), "as it is written out")
