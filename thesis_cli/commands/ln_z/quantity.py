"""The quantity that is estimated: ln Z, log10 Z, Z or f(Z), for estimates and for exact answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from thesis_cli.commands.core.fields import option

if TYPE_CHECKING:
    from thesis_cli.base.errors import WorkFailed
    from thesis_cli.perturbation.estimate import Estimate

QuantityName = Literal["lnZ", "log10Z", "Z", "f"]
"""What is estimated; f is the function f(Z) that a trick estimates without bias."""

LN10 = math.log(10)


def quantity_option(**about: Any) -> Any:
    """What to estimate; its type is `QuantityName`."""
    return option("lnZ", "Quantity to estimate; f is the trick's own f(Z), which it estimates without bias.", **about)


class ExactAnswer(NamedTuple):
    """An answer without samples.

    Attributes
    ----------
    log_z : ln Z.
    method : how it was found.
    error : absolute error of ln Z, where it is known to matter.
    kind : `exact`, or what else to call the value.
    """

    log_z: float
    method: str
    error: float = 0.0
    kind: str = "exact"

    def estimate(self, quantity: QuantityName) -> Estimate:
        """The answer in the form of an estimate; ln Z where the quantity is f."""
        from thesis_cli.perturbation.estimate import exact_estimate

        found = exact_estimate(self.log_z, "Z" if quantity == "Z" else "lnZ", self.method)
        error = self.error * (found.value if quantity == "Z" else 1.0)
        low, high = found.value - error, found.value + error
        return in_unit(replace(found, standard_error=error, low=low, high=high, kind=self.kind), quantity)


def unknown(error: WorkFailed, quantity: QuantityName) -> Estimate:
    """The row of an exact answer that could not be had, with the reason as its kind."""
    from thesis_cli.perturbation.estimate import Estimate

    nan, name = math.nan, {"Z": "Z", "log10Z": "log10 Z"}.get(quantity, "ln Z")
    return Estimate(nan, nan, nan, nan, name, f"not known ({error})", 1.0, 0, "quadrature", "Thesis section 2.2")


def in_unit(estimate: Estimate, quantity: QuantityName) -> Estimate:
    """An estimate of ln Z in the unit of the quantity; other estimates as they are."""
    if estimate.target != "ln Z":
        return estimate
    return {"log10Z": estimate.in_log10, "Z": estimate.of_z}.get(quantity, lambda: estimate)()


def log_z_of(estimate: Estimate) -> float:
    """ln Z of an estimate of ln Z, log10 Z or Z.

    Raises
    ------
    ValueError : the estimate is of another quantity.
    """
    if estimate.target == "ln Z":
        return estimate.value
    if estimate.target == "log10 Z":
        return estimate.value * LN10
    if estimate.target == "Z":
        return math.log(estimate.value) + estimate.exponent10 * LN10 if estimate.value > 0 else -math.inf
    raise ValueError(estimate.target)
