"""The tricks by their names: one row for each, which imports NumPy only when the trick is made.

A new trick is a row here, made by a function of `tricks.py` that holds its mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from thesis_cli.perturbation.tricks.parameters import FRECHET, PARETO_SCALE, TAIL, TAIL_OPTIMUM, WEIBULL, Parameter

if TYPE_CHECKING:
    from thesis_cli.perturbation.tricks.tricks import Trick


class Scales(Protocol):
    """Numbers of the size of Z, independent of the MAP values that a trick averages."""

    def log_scale(self) -> float:
        """ln of a number of the size of Z or less; cheap where something bounds Z below."""
        ...

    def log_z(self) -> float:
        """An estimate of ln Z."""
        ...


@dataclass(frozen=True)
class TrickRow:
    """A trick before it is made.

    Attributes
    ----------
    make : makes it from the value of its parameter, if it has one, and from scales, if it needs
        any.
    parameter : what the user may set; None if there is nothing.
    scaled : whether it needs `Scales` unless its parameter is given.
    """

    make: Callable[[float | None, Scales | None], Trick]
    parameter: Parameter | None = None
    scaled: bool = False


def _gumbel(value: float | None, scales: Scales | None) -> Trick:
    from thesis_cli.perturbation.tricks.tricks import gumbel

    return gumbel()


def _power(value: float | None, scales: Scales | None) -> Trick:
    from thesis_cli.perturbation.tricks.tricks import power

    return power(1.0 if value is None else value)


def _pareto(value: float | None, scales: Scales | None) -> Trick:
    from thesis_cli.perturbation.tricks.tricks import pareto

    assert scales is not None
    return pareto(scales.log_scale() + math.log(PARETO_SCALE))


def _tail(value: float | None, scales: Scales | None) -> Trick:
    from thesis_cli.perturbation.tricks.tricks import tail

    if value is not None:
        return tail(math.log(value))
    assert scales is not None
    return tail(math.log(TAIL_OPTIMUM) - scales.log_z())


TRICKS = {
    "gumbel": TrickRow(_gumbel),
    "exponential": TrickRow(_power),
    "weibull": TrickRow(_power, WEIBULL),
    "frechet": TrickRow(_power, FRECHET),
    "pareto": TrickRow(_pareto, scaled=True),
    "tail": TrickRow(_tail, TAIL, scaled=True),
}

if TYPE_CHECKING:
    TrickName = str
    UnscaledTrickName = str
    TrickChoice = str
else:
    TrickName = Literal[tuple(TRICKS)]
    UnscaledTrickName = Literal[tuple(name for name, row in TRICKS.items() if not row.scaled)]
    """Tricks that need no scale, which entropies can use."""
    TrickChoice = Literal[(*TRICKS, "all")]
    """A trick, or all of them on the same MAP values."""


def tricks_with(parameter: str) -> dict[str, Parameter]:
    """The tricks that have a parameter of this name, each with its own."""
    return {name: row.parameter for name, row in TRICKS.items() if row.parameter and row.parameter.name == parameter}


def make_trick(name: TrickName, value: float | None = None, scales: Scales | None = None) -> Trick:
    """The trick of that name.

    Parameters
    ----------
    value : of its parameter; the default if None.
    scales : for a scaled trick.
    """
    row = TRICKS[name]
    if value is None and row.parameter is not None:
        value = row.parameter.default
    return row.make(value, scales)
