"""The tricks by their names: one row for each, with the range of its parameter. NumPy is imported only when a trick is
made, so that `--help` stays fast.

A new trick is a row here, made by a function of `tricks.py` that holds its mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from thesis_cli.perturbation.tricks.tricks import Trick


LEAST_ALPHA, MOST_ALPHA = 1e-6, 10.0
"""Range of |alpha|: below, rounding hides the trick; above, its variance is too large."""


PARETO_SCALE = 0.1
"""s of the Pareto trick over a number below Z; its variance is then within 1.3% of the best."""


TAIL_OPTIMUM = 1.5936242600400403
"""The t Z at which the asymptotic variance (e^{tZ} - 1) / t^2 of a tail trick is least."""


@dataclass(frozen=True)
class Parameter:
    """The parameter of a trick.

    Attributes
    ----------
    name : name of the option that sets it.
    default : its value where the option is left out; None if the trick then sets it from a scale.
    least, most : its range, both ends allowed.
    above : a lower end that is not allowed itself.
    """

    name: Literal["alpha", "threshold"]
    default: float | None = None
    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf

    def allows(self, value: float) -> bool:
        """Whether a value is in the range."""
        return self.least <= value <= self.most and value > self.above and math.isfinite(value)

    @property
    def range_text(self) -> str:
        """`from 1e-06 to 10`: what a value must be."""
        low = f"above {self.above:g}" if self.above > -math.inf else f"{self.least:g} or more"
        if self.most == math.inf:
            return low
        return f"{low} and at most {self.most:g}" if self.above > -math.inf else f"from {self.least:g} to {self.most:g}"


WEIBULL = Parameter("alpha", 0.5, least=LEAST_ALPHA, most=MOST_ALPHA)
FRECHET = Parameter("alpha", -0.2, above=-1, most=-LEAST_ALPHA)
TAIL = Parameter("threshold", above=0)


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
    # Tricks that need no scale, which entropies can use.
    UnscaledTrickName = Literal[tuple(name for name, row in TRICKS.items() if not row.scaled)]
    # A trick, or all of them on the same MAP values.
    TrickChoice = Literal[(*TRICKS, "all")]


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
