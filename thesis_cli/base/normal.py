"""Quantiles of the normal distribution, as `scipy.special.ndtri` computes them.

SciPy takes a quarter of a second of processor time to import; most runs need one quantile of it.
"""

from __future__ import annotations

import math
from typing import TypeAlias

Coefficients: TypeAlias = tuple[float, ...]

_CENTRE = math.exp(-2)
_ROOT = 2.50662827463100050242  # sqrt(2 pi)

# Of the Cephes library, as in SciPy: numerators and denominators, highest power first.
_P0: Coefficients = (-59.9633501014107895267, 98.0010754185999661536, -56.6762857469070293439, 13.9312609387279679503)
_P0 += (-1.23916583867381258016,)
_Q0: Coefficients = (
    1.0,
    1.95448858338141759834,
    4.67627912898881538453,
    86.3602421390890590575,
    -225.462687854119370527,
)
_Q0 += (200.260212380060660359, -82.0372256168333339912, 15.9056225126211695515, -1.18331621121330003142)
_P1: Coefficients = (4.05544892305962419923, 31.5251094599893866154, 57.1628192246421288162, 44.0805073893200834700)
_P1 += (14.6849561928858024014, 2.18663306850790267539, -0.140256079171354495875, -0.0350424626827848203418)
_P1 += (-0.000857456785154685413611,)
_Q1: Coefficients = (
    1.0,
    15.7799883256466749731,
    45.3907635128879210584,
    41.3172038254672030440,
    15.0425385692907503408,
)
_Q1 += (2.50464946208309415979, -0.142182922854787788574, -0.0380806407691578277194, -0.000933259480895457427372)
_P2: Coefficients = (3.23774891776946035970, 6.91522889068984211695, 3.93881025292474443415, 1.33303460815807542389)
_P2 += (0.201485389549179081538, 0.0123716634817820021358, 0.000301581553508235416007)
_P2 += (2.65806974686737550832e-6, 6.23974539184983293730e-9)
_Q2: Coefficients = (
    1.0,
    6.02427039364742014255,
    3.67983563856160859403,
    1.37702099489081330271,
    0.216236993594496635890,
)
_Q2 += (0.0134204006088543189037, 0.000328014464682127739104, 2.89247864745380683936e-6)
_Q2 += (6.79019408009981274425e-9,)


def normal_quantile(p: float) -> float:
    """The z with P(Z <= z) = p for a standard normal Z; -inf at 0 and inf at 1."""
    if not 0 < p < 1:
        return -math.inf if p == 0 else math.inf if p == 1 else math.nan
    upper = p > 1 - _CENTRE
    tail = 1 - p if upper else p
    if tail > _CENTRE:
        y = tail - 0.5
        square = y * y
        return (y + y * (square * _polynomial(square, _P0) / _polynomial(square, _Q0))) * _ROOT
    x = math.sqrt(-2 * math.log(tail))
    inverse = 1 / x
    numerator, denominator = (_P1, _Q1) if x < 8 else (_P2, _Q2)
    z = x - math.log(x) / x - inverse * _polynomial(inverse, numerator) / _polynomial(inverse, denominator)
    return z if upper else -z


def _polynomial(x: float, coefficients: Coefficients) -> float:
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value
