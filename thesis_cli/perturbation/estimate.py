"""An estimated number with its meaning, its form as text, and normal quantiles for its interval."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

from thesis_cli.base.errors import InputError


def normal_quantile(p: float) -> float:
    """The z with P(Z <= z) = p for a standard normal Z; -inf at 0 and inf at 1. It does without SciPy, whose
    import takes longer than many runs.

    Raises
    ------
    statistics.StatisticsError : p is below 0 or above 1.
    """
    from statistics import NormalDist

    if p in (0, 1):
        return math.inf if p else -math.inf
    return NormalDist().inv_cdf(p)


@dataclass(frozen=True)
class Estimate:
    """A number that an estimator returns, with its error and its meaning.

    Attributes
    ----------
    value, standard_error, low, high : the estimate, its standard error (inf if it has none) and its
        confidence interval, all in units of 10**exponent10.
    target : the estimated quantity: `ln Z`, `Z`, ...
    kind : `unbiased`, `consistent`, `exact`, ...
    confidence : probability that the interval covers the target.
    map_calls : number of MAP problems that were solved for it.
    method : name of the estimator.
    source : where the estimator is defined.
    exponent10 : 0, unless the number would leave the range of a double.
    """

    value: float
    standard_error: float
    low: float
    high: float
    target: str
    kind: str
    confidence: float
    map_calls: int
    method: str
    source: str
    exponent10: int = 0

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the confidence interval."""
        return self.low, self.high

    def row(self) -> dict[str, object]:
        """The fields in order, for a CSV file or a JSON object."""
        return asdict(self)

    def in_log10(self) -> Estimate:
        """This estimate of ln Z as one of log10 Z."""
        value, error, low, high = (x / math.log(10) for x in (self.value, self.standard_error, self.low, self.high))
        return replace(self, value=value, standard_error=error, low=low, high=high, target="log10 Z")

    def of_z(self) -> Estimate:
        """This estimate of ln Z as one of Z, with the standard error of the delta method."""
        value, error, low, high, exponent = from_logs(self.value, self.standard_error, self.low, self.high)
        return replace(self, value=value, standard_error=error, low=low, high=high, target="Z", exponent10=exponent)

    def text(self) -> str:
        """Value, standard error and interval as text, with the digits that the error allows."""
        if self.confidence == 1:  # not sampled
            return f"{self.value:.12g}" + (f"e{self.exponent10:+d}" if self.exponent10 else "")
        shift = _display_exponent(self.value)
        unit = 10.0**shift
        digits = decimals(self.standard_error / unit, self.value / unit)
        scale = f"e{self.exponent10 + shift:+d}" if self.exponent10 + shift else ""

        def show(x: float) -> str:
            return f"{x / unit:z.{digits}f}{scale}" if math.isfinite(x) else str(x)

        error = show(self.standard_error) if math.isfinite(self.standard_error) else "infinite"
        return (
            f"{show(self.value)}  standard error {error}  "
            f"{100 * self.confidence:.12g}% interval [{show(self.low)}, {show(self.high)}]"
        )


def check_confidence(confidence: float) -> None:
    """Raise `InputError` unless the confidence level is between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"the confidence is {confidence:g}", "it must be between 0 and 1")


def _display_exponent(value: float) -> int:
    """Power of ten to print separately; 0 for numbers of moderate size."""
    if not math.isfinite(value) or value == 0 or 1e-4 <= abs(value) < 1e7:
        return 0
    return math.floor(math.log10(abs(value)))


def decimals(error: float, value: float) -> int:
    """Number of decimals that shows two digits of the error, or four of the value without one; at
    most twelve digits of the value, since an error that is smaller is rounding.
    """
    if math.isfinite(error) and error > 0:
        most = 11 - math.floor(math.log10(max(abs(value), 1))) if math.isfinite(value) else 11
        return max(0, min(most, 1 - math.floor(math.log10(error))))
    if math.isfinite(value) and value != 0:
        return max(0, 3 - math.floor(math.log10(abs(value))))
    return 4


def from_logs(
    log_value: float, relative_error: float, log_low: float, log_high: float
) -> tuple[float, float, float, float, int]:
    """Value, standard error, interval and power of ten of a number given by its logarithm.

    The power is 0 unless one of the numbers would leave the range of a double.

    Parameters
    ----------
    log_value, log_low, log_high : ln of the number and of the ends of its interval.
    relative_error : standard error over the number.
    """
    finite = [x for x in (log_value, log_low, log_high) if math.isfinite(x)]
    exponent = 0
    if finite and max(map(abs, finite)) > 690:
        exponent = math.floor((log_value if math.isfinite(log_value) else finite[0]) / math.log(10))
    shift = exponent * math.log(10)
    value, low, high = (_exp(x - shift) for x in (log_value, log_low, log_high))
    return value, value * relative_error, low, high, exponent


def _exp(x: float) -> float:
    return math.exp(x) if x < 709 else math.inf


def fixed_estimate(value: float, kind: str, method: str, source: str, target: str = "ln Z") -> Estimate:
    """A value or a bound that was computed, not sampled, as an estimate without error.

    Parameters
    ----------
    value, target : number, and the quantity that it is about.
    kind : meaning of the number, as in `Estimate`.
    method, source : algorithm, and the place that defines it.
    """
    return Estimate(value, 0.0, value, value, target, kind, 1.0, 0, method, source)


def exact_estimate(log_z: float, target: str, method: str) -> Estimate:
    """The exact ln Z (or Z, for target `Z`) as an estimate without error."""
    if target == "Z":
        value, _, _, _, exponent = from_logs(log_z, 0.0, log_z, log_z)
    else:
        value, exponent = log_z, 0
    name = "Z" if target == "Z" else "ln Z"
    return Estimate(value, 0.0, value, value, name, "exact", 1.0, 0, method, "Thesis section 2.2", exponent)
