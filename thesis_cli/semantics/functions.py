"""Deterministic functions f of the language (Scibior and Schoelkopf section 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.semantics import ranges
from thesis_cli.semantics.ranges import Ranging, Sloping


@dataclass(frozen=True)
class Preimage:
    """The argument of a function at which it has a value.

    Attributes
    ----------
    argument : the argument; infinite where the value is beyond what the function reaches.
    log_slope : logarithm of the absolute derivative of the argument by the value.
    direction : 1 where the function increases in the argument, -1 where it decreases.
    """

    argument: Floats
    log_slope: Floats | float = 0.0
    direction: Floats | float = 1.0


@dataclass(frozen=True)
class Function:
    """A function of numbers.

    Attributes
    ----------
    name : symbol of an operator, or name.
    least, most : number of arguments.
    apply : value from arrays that broadcast; NaN where there is none.
    ranging : range of the values from the ranges of the arguments.
    sloping : Lipschitz constant in each argument; inf where there is none.
    jumps : whether it is not continuous.
    inverse : called with the place of an argument, a value and the other arguments; None if the function is neither
        strictly monotone nor even in one of its arguments.
    """

    name: str
    least: int
    most: int
    apply: Callable[..., Floats]
    ranging: Ranging
    sloping: Sloping
    jumps: bool = False
    inverse: Callable[[int, Floats, Sequence[Floats]], Preimage] | None = None


MOST_ARGUMENTS = 16
"""Largest number of arguments of a function of any number of them."""


def _choose(condition: Floats, yes: Floats, no: Floats) -> Floats:
    return np.where(np.isnan(condition), math.nan, np.where(condition != 0, yes, no))


def _clamp(x: Floats, low: Floats, high: Floats) -> Floats:
    return np.where(low <= high, np.minimum(np.maximum(x, low), high), math.nan)


def _truth(operation: Callable[..., Floats]) -> Callable[..., Floats]:
    """A truth value as 1 or 0; NaN if an argument is."""

    def apply(*arguments: Floats) -> Floats:
        missing = reduce(np.logical_or, [np.isnan(a) for a in arguments])
        return np.where(missing, math.nan, operation(*arguments).astype(np.float64))

    return apply


def _fold(operation: Callable[[Floats, Floats], Floats]) -> Callable[..., Floats]:
    return lambda *arguments: reduce(operation, arguments)


def _power(x: Floats, y: Floats) -> Floats:
    return np.power(np.asarray(x, np.float64), y)


def _compared(relation: str, operation: Callable[..., Floats]) -> Function:
    ranging = ranges.comparison(relation)
    return Function(relation, 2, 2, _truth(operation), ranging, ranges.jumps(ranging), jumps=True)


def _logical(name: str, arity: int, operation: Callable[..., Floats]) -> Function:
    slopes = ranges.all_of(math.inf)
    return Function(name, arity, arity, _truth(operation), ranges.truth_range, slopes, jumps=True)


def _inverse_minus(at: int, value: Floats, others: Sequence[Floats]) -> Preimage:
    return Preimage(others[0] - value, direction=-1.0) if at else Preimage(value + others[0])


def _inverse_times(at: int, value: Floats, others: Sequence[Floats]) -> Preimage:
    return Preimage(value / others[0], -np.log(np.abs(others[0])), np.sign(others[0]))


def _inverse_over(at: int, value: Floats, others: Sequence[Floats]) -> Preimage:
    """The direction of a / x is that on either side of 0."""
    if at:
        return Preimage(others[0] / value, np.log(np.abs(others[0] / value**2)), -np.sign(others[0]))
    return Preimage(value * others[0], np.log(np.abs(others[0])), np.sign(others[0]))


def _inverse_exp(at: int, value: Floats, others: Sequence[Floats]) -> Preimage:
    logs = np.log(np.maximum(value, 0.0))
    return Preimage(logs, -logs)


def _inverse_abs(at: int, value: Floats, others: Sequence[Floats]) -> Preimage:
    """The argument of 0 or more."""
    return Preimage(np.where(value < 0, -math.inf, value))


def _inverse_power(at: int, value: Floats, others: Sequence[Floats]) -> Preimage:
    """The argument of 0 or more, or of any sign for an odd exponent above 0."""
    exponent = others[0]
    size = np.abs(value) ** (1 / exponent)
    log_slope = (1 / exponent - 1) * np.log(np.abs(value)) - np.log(exponent)
    odd = np.sign(value) * size if exponent % 2 == 1 else np.where(value < 0, -math.inf, size)
    return Preimage(odd, log_slope)


def _inverse_root(at: int, value: Floats, others: Sequence[Floats]) -> Preimage:
    return Preimage(np.where(value < 0, -math.inf, value * value), np.log(2 * np.maximum(value, 0.0)))


def _inverse_tanh(at: int, value: Floats, others: Sequence[Floats]) -> Preimage:
    inside = np.clip(value, -1.0, 1.0)
    return Preimage(np.arctanh(inside), -np.log1p(-(inside**2)))


_ROWS = (
    Function("+", 2, 2, np.add, ranges.corners(lambda a, b: a + b), ranges.each(1.0, 1.0),
             inverse=lambda at, value, others: Preimage(value - others[0])),
    Function("-", 2, 2, np.subtract, ranges.corners(lambda a, b: a - b), ranges.each(1.0, 1.0), inverse=_inverse_minus),
    Function("*", 2, 2, np.multiply, ranges.corners(ranges.times_of_floats), ranges.product_slopes,
             inverse=_inverse_times),
    Function("/", 2, 2, np.divide, ranges.quotient_range, ranges.quotient_slopes, inverse=_inverse_over),
    Function("**", 2, 2, _power, ranges.power_range, ranges.power_slopes, inverse=_inverse_power),
    Function("negative", 1, 1, np.negative, ranges.increasing(lambda a: -a), ranges.each(1.0),
             inverse=lambda at, value, others: Preimage(-value, direction=-1.0)),
    Function("abs", 1, 1, np.abs, ranges.absolute_range, ranges.each(1.0), inverse=_inverse_abs),
    Function("exp", 1, 1, np.exp, ranges.exponential_range, ranges.exponential_slopes, inverse=_inverse_exp),
    Function("log", 1, 1, np.log, ranges.logarithm_range, ranges.logarithm_slopes,
             inverse=lambda at, value, others: Preimage(np.exp(value), value)),
    Function("sqrt", 1, 1, np.sqrt, ranges.root_range, ranges.root_slopes, inverse=_inverse_root),
    Function("sin", 1, 1, np.sin, ranges.bounded(-1.0, 1.0), ranges.each(1.0)),
    Function("cos", 1, 1, np.cos, ranges.bounded(-1.0, 1.0), ranges.each(1.0)),
    Function("tanh", 1, 1, np.tanh, ranges.increasing(math.tanh), ranges.each(1.0), inverse=_inverse_tanh),
    Function("floor", 1, 1, np.floor, ranges.floor_range, ranges.jumps(ranges.floor_range), jumps=True),
    Function("min", 2, MOST_ARGUMENTS, _fold(np.minimum), ranges.extreme_range(min), ranges.all_of(1.0)),
    Function("max", 2, MOST_ARGUMENTS, _fold(np.maximum), ranges.extreme_range(max), ranges.all_of(1.0)),
    Function("clamp", 3, 3, _clamp, ranges.clamp_range, ranges.all_of(1.0)),
    Function("if", 3, 3, _choose, ranges.choice_range, ranges.choice_slopes),
    _compared("<", np.less),
    _compared("<=", np.less_equal),
    _compared(">", np.greater),
    _compared(">=", np.greater_equal),
    _compared("==", np.equal),
    _compared("!=", np.not_equal),
    _logical("and", 2, lambda a, b: (a != 0) & (b != 0)),
    _logical("or", 2, lambda a, b: (a != 0) | (b != 0)),
    _logical("not", 1, lambda a: a == 0),
)  # fmt: skip
FUNCTIONS = {row.name: row for row in _ROWS}
"""All functions by name."""

CALLED = sorted(name for name in FUNCTIONS if name.isalpha() and name not in ("and", "or", "not", "negative"))
"""Names of those that are written name(e1, ..., en)."""
