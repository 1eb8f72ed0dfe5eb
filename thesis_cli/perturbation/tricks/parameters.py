"""Parameters of the tricks and their ranges; imports no NumPy, so that `--help` stays fast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

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
