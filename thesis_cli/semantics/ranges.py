"""Intervals that hold all values of an expression, and what a change of an argument does to it.

A function whose arguments change by d_k in W1 (Wasserstein distance of order 1) changes by at most
sum_k L_k d_k, where L_k is its Lipschitz constant in argument k over the ranges of the arguments.
Arguments are independent, so a product needs first moments only: W1(XY, X'Y') <= E|X'| W1(Y, Y') +
E|Y| W1(X, X').
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from thesis_cli.base.arrays import Floats

Interval = tuple[float, float]
"""Least and largest value; infinite where there is none."""

REALS: Interval = (-math.inf, math.inf)


@dataclass(frozen=True)
class Operand:
    """Known facts about the exact distribution of an argument.

    Attributes
    ----------
    range : interval that holds all its values.
    moment : bound on its mean absolute value E|X|, for each environment or for all; inf if there is none.
    """

    range: Interval
    moment: float | Floats = math.inf

    @property
    def largest(self) -> float:
        """Largest absolute value."""
        return max(abs(self.range[0]), abs(self.range[1]))

    @property
    def mean_size(self) -> float | Floats:
        """The better of the two bounds on E|X|."""
        return (
            np.minimum(self.moment, self.largest)
            if isinstance(self.moment, np.ndarray)
            else min(self.moment, self.largest)
        )


Slopes = Sequence[float | Floats]
"""Lipschitz constants, one for each argument; inf where there is none."""

Ranging = Callable[[Sequence[Operand]], Interval]
Sloping = Callable[[Sequence[Operand]], Slopes]


def times(a: float | Floats, b: float | Floats) -> float | Floats:
    """The product, where 0 times infinity is 0."""
    if isinstance(a, float | int) and isinstance(b, float | int):
        return 0.0 if a == 0 or b == 0 else a * b
    with np.errstate(invalid="ignore"):
        return np.where((np.asarray(a) == 0) | (np.asarray(b) == 0), 0.0, np.multiply(a, b))


def hull(values: Sequence[float]) -> Interval:
    """The least interval that holds some values; the whole line if one is undefined."""
    return REALS if any(math.isnan(value) for value in values) else (min(values), max(values))


def corners(function: Callable[[float, float], float]) -> Ranging:
    """Range of a function of two arguments that has its extremes at the corners of their ranges."""

    def ranging(operands: Sequence[Operand]) -> Interval:
        a, b = operands
        return hull([function(x, y) for x, y in product(a.range, b.range)])

    return ranging


def increasing(function: Callable[[float], float]) -> Ranging:
    """Range of an increasing function of one argument."""
    return lambda operands: hull([function(end) for end in operands[0].range])


def each(*constants: float) -> Sloping:
    """Constants that no range changes."""
    return lambda operands: constants


def all_of(constant: float) -> Sloping:
    """One constant for every argument."""
    return lambda operands: [constant] * len(operands)


def quotient_range(operands: Sequence[Operand]) -> Interval:
    """Range of x / y; the whole line if y may be 0."""
    low, high = operands[1].range
    if low <= 0 <= high:
        return REALS
    inverse = Operand(hull([1 / low, 1 / high]))
    return corners(times_of_floats)((operands[0], inverse))


def quotient_slopes(operands: Sequence[Operand]) -> Slopes:
    """1 / min|y| and E|x| / min y^2; none if y may be 0."""
    low, high = operands[1].range
    if low <= 0 <= high:
        return math.inf, math.inf
    least = min(abs(low), abs(high))
    inverse = 1 / least
    return inverse, times(operands[0].mean_size, inverse * inverse)


def product_slopes(operands: Sequence[Operand]) -> Slopes:
    """E|y| and E|x|."""
    return operands[1].mean_size, operands[0].mean_size


def times_of_floats(a: float, b: float) -> float:
    """The product of two numbers, where 0 times infinity is 0."""
    return 0.0 if a == 0 or b == 0 else a * b


def safely(function: Callable[..., float], *arguments: float) -> float:
    """A value; inf where it overflows, NaN where there is none."""
    try:
        found = function(*arguments)
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError):
        return math.nan
    return math.nan if isinstance(found, complex) else found


def exponential_range(operands: Sequence[Operand]) -> Interval:
    """Range of exp(x)."""
    low, high = operands[0].range
    return safely(math.exp, low), safely(math.exp, high)


def exponential_slopes(operands: Sequence[Operand]) -> Slopes:
    """exp of the largest x."""
    return (safely(math.exp, operands[0].range[1]),)


def logarithm_range(operands: Sequence[Operand]) -> Interval:
    """Range of ln x for x > 0."""
    low, high = (-math.inf if end <= 0 else math.log(end) for end in operands[0].range)
    return low, high


def logarithm_slopes(operands: Sequence[Operand]) -> Slopes:
    """1 / min x; none if x may be 0."""
    low = operands[0].range[0]
    return (1 / low if low > 0 else math.inf,)


def root_range(operands: Sequence[Operand]) -> Interval:
    """Range of the square root."""
    low, high = (math.sqrt(max(end, 0.0)) for end in operands[0].range)
    return low, high


def root_slopes(operands: Sequence[Operand]) -> Slopes:
    """1 / (2 sqrt(min x)); none if x may be 0."""
    low = operands[0].range[0]
    return (0.5 / math.sqrt(low) if low > 0 else math.inf,)


def absolute_range(operands: Sequence[Operand]) -> Interval:
    """Range of |x|."""
    low, high = operands[0].range
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), operands[0].largest


def power_range(operands: Sequence[Operand]) -> Interval:
    """Range of x ** y for a constant y; the whole line for any other."""
    (low, high), (exponent, other) = operands[0].range, operands[1].range
    if exponent != other:
        return REALS
    if not exponent.is_integer():
        low, high = max(low, 0.0), max(high, 0.0)
    ends = [safely(math.pow, low, exponent), safely(math.pow, high, exponent)]
    if low < 0 < high or (low * high == 0 and exponent < 0):
        return hull([*ends, 0.0]) if exponent >= 0 else REALS
    return hull(ends)


def power_slopes(operands: Sequence[Operand]) -> Slopes:
    """|y| max |x|^(y - 1) for a constant y, over the range of x; none in y."""
    (low, high), (exponent, other) = operands[0].range, operands[1].range
    if exponent != other:
        return math.inf, math.inf
    if exponent in (0.0, 1.0):
        return exponent, math.inf
    if not exponent.is_integer():
        low = max(low, 0.0)
    if exponent < 1 and low <= 0 <= high:
        return math.inf, math.inf
    sizes = [times_of_floats(abs(exponent), safely(math.pow, abs(end), exponent - 1)) for end in (low, high)]
    return max(sizes), math.inf


def extreme_range(fold: Callable[[Sequence[float]], float]) -> Ranging:
    """Range of the least or of the largest argument."""

    def ranging(operands: Sequence[Operand]) -> Interval:
        return fold([o.range[0] for o in operands]), fold([o.range[1] for o in operands])

    return ranging


def clamp_range(operands: Sequence[Operand]) -> Interval:
    """Range of clamp(x, low, high), which increases in all arguments."""
    (a, b), (c, d), (e, f) = (o.range for o in operands)
    return min(max(a, c), e), min(max(b, d), f)


def choice_range(operands: Sequence[Operand]) -> Interval:
    """Range of if(c, a, b)."""
    a, b = operands[1].range, operands[2].range
    return min(a[0], b[0]), max(a[1], b[1])


def choice_slopes(operands: Sequence[Operand]) -> Slopes:
    """1 in both branches; none in the condition unless it is always true or always false."""
    low, high = operands[0].range
    return (0.0 if low == high else math.inf), 1.0, 1.0


def comparison(relation: str) -> Ranging:
    """Range of a comparison: constant where the ranges of its sides decide it."""

    def ranging(operands: Sequence[Operand]) -> Interval:
        (a, b), (c, d) = operands[0].range, operands[1].range
        never = {"<": a >= d, "<=": a > d, ">": b <= c, ">=": b < c, "==": b < c or d < a, "!=": a == b == c == d}
        always = {"<": b < c, "<=": b <= c, ">": a > d, ">=": a >= d, "==": a == b == c == d, "!=": b < c or d < a}
        return (1.0, 1.0) if always[relation] else (0.0, 0.0) if never[relation] else (0.0, 1.0)

    return ranging


def jumps(ranging: Ranging) -> Sloping:
    """No constant for a function that jumps, unless its range is one value."""

    def sloping(operands: Sequence[Operand]) -> Slopes:
        low, high = ranging(operands)
        return [0.0 if low == high else math.inf] * len(operands)

    return sloping


def truth_range(operands: Sequence[Operand]) -> Interval:
    """Range of a truth value."""
    return 0.0, 1.0


def floor_range(operands: Sequence[Operand]) -> Interval:
    """Range of floor(x)."""
    low, high = (end if math.isinf(end) else float(math.floor(end)) for end in operands[0].range)
    return low, high


def bounded(low: float, high: float) -> Ranging:
    """A range that the arguments do not change."""
    return lambda operands: (low, high)
