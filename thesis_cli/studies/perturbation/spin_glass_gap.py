"""The gap U(0) - ln Z of spin glasses of any size, and how it grows with their number of variables.

The gap is the logarithm of the expected number of attempts of Hazan et al. Algorithm 1 (Theorem 3).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thesis_cli.base.arrays import Floats
from thesis_cli.inference.grid.strips import GridStrips
from thesis_cli.models.spin_glass import Kind, SpinGlass, random_spin_glass
from thesis_cli.studies.perturbation.spin_glass_strips import LogZ, PerturbedGlass, Strips, energy

if TYPE_CHECKING:
    import pandas as pd

EXACT = 20
"""Rows up to which ln Z is exact."""
WIDTH = 14
"""Rows of the strips that bound ln Z of larger models."""
CHECKED = 4
"""Perturbations whose maxima are certified where the others are searched for."""


class Gap(NamedTuple):
    """A model's bound U(0) and ln Z.

    Attributes
    ----------
    n : number of variables.
    upper, upper_error : U(0) from perturbed maxima, in nats, and its standard error.
    missed : mean shortfall of the search for maxima below certified ones, by which `upper` has
        been raised by; 0 if all are exact.
    uncertified : how far the certified ones may still be below the maxima on average.
    log_z : lower bound, estimate and upper bound of ln Z.
    """

    n: int
    upper: float
    upper_error: float
    missed: float
    uncertified: float
    log_z: LogZ


def gap(kind: Kind, coupling: float, size: int, samples: int, seed: np.random.SeedSequence) -> tuple[SpinGlass, Gap]:
    """Draw a model of size x size variables with strong fields, f = 1, and find its gap."""
    tables, noise = (np.random.default_rng(child) for child in seed.spawn(2))
    glass = random_spin_glass(size, size, coupling, 1.0, kind, tables)
    model = PerturbedGlass(glass, kind)
    if size <= EXACT:
        log_z = Strips(glass, size).log_partition_function()
    else:
        best = model.spins(glass.fields[np.newaxis])[0]
        log_z = Strips(glass, WIDTH).log_partition_function(0.9 * best)
    effective = np.arctanh(np.clip(log_z.means, -1 + 1e-12, 1 - 1e-12))
    values, controls, missed, uncertified = [], [], np.zeros(CHECKED), 0.0
    for drawn in model.draw(samples, noise):
        fields = glass.fields + drawn.half
        values.append(energy(glass, fields, drawn.spins) + drawn.mean)
        alone = np.abs(effective + drawn.half) - np.logaddexp(effective, -effective)
        controls.append(alone.sum(axis=(1, 2)) + drawn.mean)
        if not model.exact and len(values) == 1:
            half = drawn.half[:CHECKED].reshape(CHECKED, -1)
            found, _, bounds = GridStrips(glass.graph()).solve(np.stack([-half, half], axis=2).reshape(CHECKED, -1))
            missed = found - (values[0] - drawn.mean)[:CHECKED]
            uncertified = float((bounds - found).mean())
    upper, error = controlled_mean(np.concatenate(values), np.concatenate(controls))
    error = math.hypot(error, float(missed.std(ddof=1)) / math.sqrt(CHECKED))
    return glass, Gap(size * size, upper + float(missed.mean()), error, float(missed.mean()), uncertified, log_z)


def controlled_mean(values: Floats, controls: Floats) -> tuple[float, float]:
    """Mean of values with a control of mean 0, and its standard error.

    The coefficient of the control for one half of the values is estimated on the other half, so
    that the mean is unbiased.
    """
    halves = np.array_split(np.arange(values.size), 2)
    adjusted = np.empty(values.size)
    for own, other in (halves, halves[::-1]):
        spread = controls[other] - controls[other].mean()
        square = float(spread @ spread)
        slope = float(spread @ values[other]) / square if square > 0 else 0.0
        adjusted[own] = values[own] - slope * controls[own]
    return float(adjusted.mean()), float(adjusted.std(ddof=1)) / math.sqrt(values.size)


def by_size(rows: pd.DataFrame, values: pd.Series[Any]) -> pd.DataFrame:
    """Means of some values of models by the side of their grids.

    Parameters
    ----------
    rows : table with a column `size`.
    values : one for each row; NaN is left out.

    Returns
    -------
    The `mean`, its standard `error` (NaN for one model), the `count` of models, and the number `n` of
    variables, for each size.
    """
    found = values.groupby(rows["size"]).agg(["mean", "std", "count"])
    found = found[found["count"] > 0]
    found["error"] = found.pop("std") / found["count"] ** 0.5
    return found.assign(n=found.index.to_numpy(float) ** 2)


def power_law(sizes: ArrayLike, values: ArrayLike, errors: ArrayLike) -> tuple[float, float]:
    """Exponent b of values = a sizes^b by weighted least squares of logarithms, and its error.

    Parameters
    ----------
    sizes, values, errors : positive, shape (K,), K >= 2; errors are standard errors. If the law
        misses the values by more than these, the error grows in proportion.
    """
    x, y = np.log(np.asarray(sizes)), np.log(np.asarray(values))
    design = np.stack([np.ones(x.size), x], axis=1)
    coefficients, covariance = _least_squares(design, y, np.asarray(errors) / np.exp(y))
    return float(coefficients[1]), math.sqrt(covariance[1, 1])


def bulk(sides: ArrayLike, values: ArrayLike, errors: ArrayLike) -> tuple[float, float]:
    """Limit g of values = g + h / sides as sides grow, and its error.

    A quantity per site of a square grid whose correlations are short has this form, since the share
    of sites at the border is in proportion to 1 / side.
    """
    x = 1 / np.asarray(sides, dtype=float)
    design = np.stack([np.ones(x.size), x], axis=1)
    coefficients, covariance = _least_squares(design, np.asarray(values), np.asarray(errors))
    return float(coefficients[0]), math.sqrt(covariance[0, 0])


def misfit(shape: ArrayLike, values: ArrayLike) -> float:
    """Root mean square of 1 - a shape / values for the a that makes it least: the share of the
    values that this law misses."""
    ratios = np.asarray(shape) / np.asarray(values)
    scale = float(ratios.sum() / (ratios @ ratios))
    return float(np.sqrt(((1 - scale * ratios) ** 2).mean()))


def _least_squares(design: Floats, values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Coefficients, and their covariance."""
    weighted = design / errors[:, np.newaxis]
    covariance = np.linalg.inv(weighted.T @ weighted)
    coefficients = covariance @ (weighted.T @ (values / errors))
    left = values.size - design.shape[1]
    square = float((((values - design @ coefficients) / errors) ** 2).sum())
    return coefficients, covariance * max(1.0, square / left if left else 1.0)
