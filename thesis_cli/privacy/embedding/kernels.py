"""Compiled sums of kernels and of random features over rows, exact in whole numbers.

Each kernel value, cosine or sine is rounded to a multiple of 2^-50, and the multiples are added as
integers. The sum is therefore the same in any order, and one row changes it by exactly that row's
values, which sums of floating-point numbers do not guarantee. Loops have no branches and no calls,
so that the compiler vectorises them, over tiles of points (or frequencies) of constant size; no
operation is contracted or reordered.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import njit
from numba.extending import intrinsic

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.compiled import kernel

TILE = 128
"""Points per tile: with their exponents they take a few KiB."""

SHIFT = 6.0
"""Adding it to a value in [-1, 1] leaves round(value / UNIT) in the bits of the sum, on top of
those of 6 itself.
"""

SHIFT_BITS = int(np.float64(SHIFT).view(np.int64))

ROUND = 1.5 * 2.0**52
"""Adding it to a number below 2^51 leaves the nearest whole number in the lowest bits of the
sum.
"""

LEAST = -708.0
"""Least exponent: below it e^x is under the normal range, and 0 in units of `UNIT`."""

PER_LN2, LN2_HIGH, LN2_LOW = 1 / math.log(2), 0.693147180369123816490, 1.90821492927058770002e-10
PER_QUARTER, QUARTER_HIGH, QUARTER_LOW = 2 / math.pi, 1.57079632673412561417, 6.07710050650619224932e-11
"""ln 2 and pi / 2, each in two parts; products of the first, of 33 bits, with whole numbers below
2^20 are exact.
"""

EXP = tuple(1 / math.factorial(k) for k in range(14))
SINE = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(9))
COSINE = tuple((-1) ** k / math.factorial(2 * k) for k in range(9))
"""Taylor coefficients for |x| <= (ln 2) / 2 and |x| <= pi / 4; the remainder is below 2e-17."""

_u: Any = numba.uint64


def _bits_of(context: Any, x: Any) -> Any:
    """Bits of a float64 as an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(numba.int64))

    return numba.int64(numba.float64), generate


def _of_bits(context: Any, x: Any) -> Any:
    """Float64 with the bits of an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(numba.float64))

    return numba.float64(numba.int64), generate


_bits: Any = intrinsic(_bits_of)
_float: Any = intrinsic(_of_bits)


@njit(inline="always")
def _exp(x: float) -> float:
    """e^x for x <= 0, to 2 units in the last place; for any x, NaN too, it is between e^LEAST and
    1.
    """
    y = x if x > LEAST else LEAST
    shifted = y * PER_LN2 + ROUND
    k = shifted - ROUND
    r = (y - k * LN2_HIGH) - k * LN2_LOW
    p = EXP[13] * r + EXP[12]
    p = p * r + EXP[11]
    p = p * r + EXP[10]
    p = p * r + EXP[9]
    p = p * r + EXP[8]
    p = p * r + EXP[7]
    p = p * r + EXP[6]
    p = p * r + EXP[5]
    p = p * r + EXP[4]
    p = p * r + EXP[3]
    p = p * r + EXP[2]
    p = p * r + 1.0
    p = p * r + 1.0
    return _float(_bits(p) + (_bits(shifted) << 52))  # type: ignore[no-any-return]


@kernel()
def add_kernels(
    points: Floats, levels: Ints, gamma: Floats, log_rho: Floats, reals: Floats, codes: Ints, total: Ints
) -> None:
    """Add k(x_n, z_m) over rows n to the total of each point m.

    Parameters
    ----------
    points, levels : reals and codes of the points, shapes (tiles, D, TILE) and (tiles, C, TILE).
    gamma, log_rho : parameters of the kernel, shapes (D,) and (C,).
    reals, codes : at most `BLOCK_ROWS` rows, shapes (n, D) and (n, C).
    total : sums in units of `UNIT`, shape (tiles, TILE); updated.
    """
    exponents = np.empty(TILE)
    for tile in range(points.shape[0]):
        sums = total[tile]
        for n in range(reals.shape[0]):
            for m in range(_u(TILE)):
                exponents[m] = 0.0
            for d in range(points.shape[1]):
                x, g, z = reals[n, d], gamma[d], points[tile, d]
                for m in range(_u(TILE)):
                    exponents[m] -= g * ((z[m] - x) * (z[m] - x))
            for c in range(levels.shape[1]):
                code, penalty, level = codes[n, c], log_rho[c], levels[tile, c]
                for m in range(_u(TILE)):
                    exponents[m] += 0.0 if level[m] == code else penalty
            for m in range(_u(TILE)):
                sums[m] += _bits(_exp(exponents[m]) + SHIFT) - SHIFT_BITS


@njit(inline="always")
def cosine_sine(angle: float) -> tuple[float, float]:
    """Cosine and sine, to 4 units in the last place for |angle| < 1e6; cos^2 + sin^2 = 1 as
    accurately for any angle.

    A caller with `fastmath` must not use it: the compiler would cancel ROUND.
    """
    shifted = angle * PER_QUARTER + ROUND
    k = shifted - ROUND
    r = (angle - k * QUARTER_HIGH) - k * QUARTER_LOW
    r = r if abs(r) < 0.8 else 0.0
    y = r * r
    u = SINE[8] * y + SINE[7]
    u = u * y + SINE[6]
    u = u * y + SINE[5]
    u = u * y + SINE[4]
    u = u * y + SINE[3]
    u = u * y + SINE[2]
    u = u * y + SINE[1]
    u = (u * y) * r + r
    v = COSINE[8] * y + COSINE[7]
    v = v * y + COSINE[6]
    v = v * y + COSINE[5]
    v = v * y + COSINE[4]
    v = v * y + COSINE[3]
    v = v * y + COSINE[2]
    v = v * y + COSINE[1]
    v = v * y + 1.0
    quarter = _bits(shifted)
    odd = (quarter & 1) != 0
    cosine, sine = (u, v) if odd else (v, u)
    cosine = -cosine if ((quarter + 1) & 2) != 0 else cosine
    sine = -sine if (quarter & 2) != 0 else sine
    return cosine, sine


@kernel()
def add_features(frequencies: Floats, phases: Floats, reals: Floats, levels: Ints, total: Ints) -> None:
    """Add the cosines and sines of the rows' angles to the totals of each frequency.

    Parameters
    ----------
    frequencies, phases : shapes (tiles, D, TILE) and (tiles, sum of cardinalities, TILE).
    reals, levels : at most `BLOCK_ROWS` rows, shapes (n, D) and (n, C); levels are numbered across all
        categories.
    total : sums of cosines and of sines in units of `UNIT`, shape (tiles, 2, TILE); updated.
    """
    angles = np.empty(TILE)
    for tile in range(frequencies.shape[0]):
        cosines, sines = total[tile, 0], total[tile, 1]
        for n in range(reals.shape[0]):
            for j in range(_u(TILE)):
                angles[j] = 0.0
            for d in range(frequencies.shape[1]):
                x, frequency = reals[n, d], frequencies[tile, d]
                for j in range(_u(TILE)):
                    angles[j] += frequency[j] * x
            for c in range(levels.shape[1]):
                phase = phases[tile, levels[n, c]]
                for j in range(_u(TILE)):
                    angles[j] += phase[j]
            for j in range(_u(TILE)):
                cosine, sine = cosine_sine(angles[j])
                cosines[j] += _bits(cosine + SHIFT) - SHIFT_BITS
                sines[j] += _bits(sine + SHIFT) - SHIFT_BITS
