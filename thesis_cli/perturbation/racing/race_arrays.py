"""Arrays that races of states read and write; compiled kernels take them as one argument each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints


class Field(NamedTuple):
    """The states of a race and the bounds that decide between them.

    Attributes
    ----------
    rows : log-factors, shape (S, K).
    totals, prior : phi(x) = sum_s ln f_s(x), and ln f_0(x), which is known without cost and may be
        -inf; shape (K,).
    ends : factors seen at each look, increasing and below S, shape (L,).
    spread, reach : factors of the standard deviation and of the range in the bound at each look,
        shape (L,).
    widths : range of the log-factors of each state, shape (K,); that of a difference is at most the
        sum of two.
    """

    rows: npt.NDArray[Any]
    totals: Floats
    prior: Floats
    ends: Ints
    spread: Floats
    reach: Floats
    widths: Floats


class Outcome(NamedTuple):
    """The results of a group of G races: fields of `RacingMaxima`, each of shape (G,)."""

    values: Floats
    states: Ints
    evaluations: Ints
    looks: Ints
    losses: Floats
