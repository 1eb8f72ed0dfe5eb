"""Compiled continuous targets: quantiles, log-ratios and bounds, as in `targets.py`."""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import helper, kernel
from thesis_cli.models.proposals import LANES, REGRESSION, TIE, UNIFORM, CompiledTarget

_LOG_LARGEST = 600.0  # logarithm of the largest product before its logarithm is taken

# Rational approximations of the normal quantile: algorithm AS 241 (Wichura, Applied Statistics
# 37, 1988).
_CENTRE = np.array(
    [
        [
            2509.0809287301226727,
            33430.575583588128105,
            67265.770927008700853,
            45921.953931549871457,
            13731.693765509461125,
            1971.5909503065514427,
            133.14166789178437745,
            3.387132872796366608,
        ],
        [
            5226.495278852854561,
            28729.085735721942674,
            39307.89580009271061,
            21213.794301586595867,
            5394.1960214247511077,
            687.1870074920579083,
            42.313330701600911252,
            1.0,
        ],
    ]
)
_TAIL = np.array(
    [
        [
            7.7454501427834140764e-4,
            0.0227238449892691845833,
            0.24178072517745061177,
            1.27045825245236838258,
            3.64784832476320460504,
            5.7694972214606914055,
            4.6303378461565452959,
            1.42343711074968357734,
        ],
        [
            1.05075007164441684324e-9,
            5.475938084995344946e-4,
            0.0151986665636164571966,
            0.14810397642748007459,
            0.68976733498510000455,
            1.6763848301838038494,
            2.05319162663775882187,
            1.0,
        ],
    ]
)
_FAR_TAIL = np.array(
    [
        [
            2.01033439929228813265e-7,
            2.71155556874348757815e-5,
            0.0012426609473880784386,
            0.026532189526576123093,
            0.29656057182850489123,
            1.7848265399172913358,
            5.4637849111641143699,
            6.6579046435011037772,
        ],
        [
            2.04426310338993978564e-15,
            1.4215117583164458887e-7,
            1.8463183175100546818e-5,
            7.868691311456132591e-4,
            0.0148753612908506148525,
            0.13692988092273580531,
            0.59983220655588793769,
            1.0,
        ],
    ]
)


@helper(cache=True)
def _rational(coefficients: Floats, x: float) -> float:
    above, below = 0.0, 0.0
    for i in range(8):
        above = above * x + coefficients[0, i]
        below = below * x + coefficients[1, i]
    return float(above / below)


@kernel()
def lower_quantile(p: float) -> float:
    """Quantile of the standard normal, 0 <= p <= 1/2."""
    if p >= 0.075:
        return float((p - 0.5) * _rational(_CENTRE, 0.180625 - (p - 0.5) * (p - 0.5)))
    r = math.sqrt(-np.log(p))
    return float(-_rational(_TAIL, r - 1.6) if r <= 5.0 else -_rational(_FAR_TAIL, r - 5.0))


@kernel()
def quantile(target: CompiledTarget, d: int, u: float, low: float, high: float) -> float:
    """Quantile u of coordinate d of the proposal within [low, high]; see `Proposal.quantile`."""
    if target.family == UNIFORM:
        return float(min(max(low + u * (high - low), low), high))
    location, scale = target.location[d], target.scale[d]
    a, b = (low - location) / (scale * math.sqrt(2.0)), (high - location) / (scale * math.sqrt(2.0))
    below = above = 1.0
    if a < 0.0:
        below = 0.5 * (math.erfc(-a) * (1.0 - u) + math.erfc(-b) * u)
    if b > 0.0:
        above = 0.5 * (math.erfc(a) * (1.0 - u) + math.erfc(b) * u)
    z = lower_quantile(below) if below < above else -lower_quantile(above)
    return float(min(max(location + scale * z, low), high))


@helper(cache=True)
def log_ratio(target: CompiledTarget, x: Floats) -> float:
    """Compute o(x) of a point, shape (dimensions,)."""
    if target.kind == REGRESSION:
        value = _regression(x, target.first, target.third, target.fourth)
    else:
        value = _mixture(x, x, target.first, target.second, target.third)
    return float(target.power * value + target.shift)


@kernel()
def bound(target: CompiledTarget, low: Floats, high: Floats) -> float:
    """Upper bound of o on the box between two points, shape (dimensions,)."""
    if target.kind == REGRESSION:
        value = _regression_bound(low, high, target.first, target.second, target.third, target.fourth)
    else:
        value = _mixture(low, high, target.first, target.second, target.third)
    return float(target.power * value + target.shift)


@kernel()
def log_ratios(target: CompiledTarget, points: Floats, values: Floats) -> None:
    """Compute o at points of shape (K, D) into `values`, shape (K,)."""
    for k in range(values.size):
        values[k] = log_ratio(target, points[k])


@kernel()
def split_dimension(target: CompiledTarget, low: Floats, high: Floats, halvings: Ints) -> int:
    """Compute `targets.split_dimension`."""
    if low.size == 1:
        return 0
    best, at = np.inf, -1
    flat_low, flat_high = np.empty(low.size), np.empty(low.size)
    for d in range(low.size):
        flat_low[d], flat_high[d] = low[d], high[d]
    for rank in range(low.size):
        d = _ranked(halvings, rank)
        level = 0.0
        for half in range(2):
            flat_low[d] = flat_high[d] = quantile(target, d, 0.25 + 0.5 * half, low[d], high[d])
            level += 0.5 * bound(target, flat_low, flat_high)
        flat_low[d], flat_high[d] = low[d], high[d]
        if at < 0 or level < best - TIE * (1.0 + abs(best)):
            best, at = level, d
    return at


@helper()
def _ranked(numbers: Ints, rank: int) -> int:
    """Place of the number that comes at a rank; equal ones come in order."""
    place = 0
    for i in range(numbers.size):
        before = 0
        for j in range(numbers.size):
            before += numbers[j] < numbers[i] or (numbers[j] == numbers[i] and j < i)
        if before == rank:
            place = i
    return place


@helper(cache=True)
def _log_product(factors: Floats) -> float:
    total = 0.0
    for k in range(factors.size):
        total += np.log(factors[k])
    return total


@helper()
def _factors_before_log(w: Floats, most: Floats) -> int:
    """Number of factors 1 + r^2 whose product is finite if |r| <= most[D] + sum_d |w_d| most[d]."""
    reach = most[w.size]
    for d in range(w.size):
        reach += abs(w[d]) * most[d]
    return max(1, int(_LOG_LARGEST / max(np.log1p(reach * reach), 1e-6)))


@helper(cache=True)
def _regression(w: Floats, x: Floats, y: Floats, most: Floats) -> float:
    """Compute -sum_i ln(1 + (y_i - x_i w)^2); x has shape (D, n)."""
    block = _factors_before_log(w, most)
    product, r = np.ones(LANES), np.empty(LANES)
    total, taken = 0.0, 0
    for start in range(0, y.size, LANES):
        if taken == block:
            total += _log_product(product)
            product[:] = 1.0
            taken = 0
        ys = y[start : start + LANES]
        for k in range(LANES):
            r[k] = ys[k]
        for d in range(w.size):
            xs = x[d, start : start + LANES]
            for k in range(LANES):
                r[k] -= xs[k] * w[d]
        for k in range(LANES):
            product[k] *= 1.0 + r[k] * r[k]
        taken += 1
    return float(-(total + _log_product(product)))


@helper(cache=True)
def _regression_bound(low: Floats, high: Floats, x: Floats, gram: Floats, y: Floats, most: Floats) -> float:
    """The lower of two bounds: by intervals of residuals, and to second order about the centre."""
    dimension = low.size
    centre, half = np.empty(dimension), np.empty(dimension)
    for d in range(dimension):
        centre[d], half[d] = 0.5 * (low[d] + high[d]), 0.5 * (high[d] - low[d])
    block = _factors_before_log(centre, most)
    near_product, product = np.ones(LANES), np.ones(LANES)
    r, reach, slope = np.empty(LANES), np.empty(LANES), np.zeros((dimension, LANES))
    nearest, middle, taken = 0.0, 0.0, 0
    for start in range(0, y.size, LANES):
        if taken == block:
            nearest -= _log_product(near_product)
            middle -= _log_product(product)
            near_product[:] = 1.0
            product[:] = 1.0
            taken = 0
        ys = y[start : start + LANES]
        for k in range(LANES):
            r[k] = ys[k]
            reach[k] = 0.0
        for d in range(dimension):
            xs = x[d, start : start + LANES]
            for k in range(LANES):
                r[k] -= xs[k] * centre[d]
                reach[k] += abs(xs[k]) * half[d]
        for k in range(LANES):
            near = max(abs(r[k]) - reach[k], 0.0)
            near_product[k] *= 1.0 + near * near
            product[k] *= 1.0 + r[k] * r[k]
            r[k] /= 1.0 + r[k] * r[k]
        for d in range(dimension):
            xs = x[d, start : start + LANES]
            for k in range(LANES):
                slope[d, k] += xs[k] * r[k]
        taken += 1
    nearest -= _log_product(near_product)
    curved = middle - _log_product(product)
    for d in range(dimension):
        total = 0.0
        for k in range(LANES):
            total += slope[d, k]
        curved += 2.0 * abs(total) * half[d]
        for e in range(dimension):
            curved += gram[d, e] * half[d] * half[e] / 8.0
    return float(min(nearest, curved))


@helper(cache=True)
def _mixture(low: Floats, high: Floats, narrowness: Floats, top: Floats, height: Floats) -> float:
    """Compute ln sum_k exp(height_k - sum_d narrowness_kd (x_d - top_kd)^2).

    Each component is taken at its maximum in the box.
    """
    levels = np.empty(height.size)
    for k in range(height.size):
        levels[k] = height[k]
        for d in range(low.size):
            away = min(max(top[k, d], low[d]), high[d]) - top[k, d]
            levels[k] -= narrowness[k, d] * away * away
    most = levels[0]
    for k in range(levels.size):
        most = max(most, levels[k])
    if most == -np.inf:
        return float(most)
    total = 0.0
    for k in range(levels.size):
        total += np.exp(levels[k] - most)
    return float(most + np.log(total))
