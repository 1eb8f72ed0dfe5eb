"""What `renyi` found, and how it is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thesis_cli.entropy.estimators import ControlVariate
    from thesis_cli.perturbation.estimate import Estimate


@dataclass(frozen=True)
class Found:
    """One number: the order it is of, the estimate, and the control variate that it used."""

    alpha: float | None
    estimate: Estimate
    control: ControlVariate | None = None

    def row(self) -> dict[str, object]:
        """For a CSV file or a JSON object."""
        coefficient, saved = (self.control.coefficient, self.control.saved) if self.control else (None, None)
        alpha = "inf" if self.alpha == math.inf else self.alpha  # JSON has no infinity
        row = {"alpha": alpha, **self.estimate.row()}
        return {**row, "control_coefficient": coefficient, "control_saved": saved}

    def described(self) -> str:
        """Method and kind, and what the control variate saved."""
        saved = f", saving {max(0.0, 100 * self.control.saved):.0f}% of the variance" if self.control else ""
        return f"{self.estimate.method}{saved}, {self.estimate.kind}"


@dataclass(frozen=True)
class Result:
    """What was asked for, and the curves of a profile."""

    found: Sequence[Found]
    curve: Sequence[Found] = ()
    exact_curve: Sequence[Found] = ()
