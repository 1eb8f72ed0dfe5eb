"""Binary models on a grid: random spin glasses, and the published ones of Figure 2.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import Factor, FactorGraph
from thesis_cli.models.glibc import RAND_MAX, GlibcRand

Kind = Literal["attractive", "mixed"]

_SPIN = np.array([-1.0, 1.0])

_MOST = 1e30
"""Largest field or coupling; single precision still holds it."""

_EULER = 0.5772156649
"""Euler's constant, with the digits of the published code."""


@dataclass(frozen=True, eq=False)
class SpinGlass:
    """An Ising model on a grid (Thesis section 2.5.3).

    phi(x) = sum_i theta_i x_i + sum_ij theta_ij x_i x_j over neighbours ij, with x in {-1, +1}.

    Attributes
    ----------
    fields : theta_i in nats, shape (rows, columns).
    right : couplings to the neighbour on the right, shape (rows, columns - 1).
    down : couplings to the neighbour below, shape (rows - 1, columns).

    Raises
    ------
    InputError : the shapes do not fit a grid, or a number is NaN or infinite.
    """

    fields: Floats
    right: Floats
    down: Floats

    def __post_init__(self) -> None:
        if self.fields.ndim != 2 or not self.fields.size:
            raise InputError(
                f"the fields have shape {self.fields.shape}", "give rows and columns, at least one of each"
            )
        rows, columns = self.fields.shape
        for name, values, shape in (
            ("fields", self.fields, (rows, columns)),
            ("right", self.right, (rows, columns - 1)),
            ("down", self.down, (rows - 1, columns)),
        ):
            if values.shape != shape:
                raise InputError(f"{name} has shape {values.shape}", f"the fields make it {shape}")
            if not np.isfinite(values).all():
                raise InputError(f"{name} has a NaN or an infinity", "all numbers must be finite")

    def graph(self) -> FactorGraph:
        """The model as a factor graph over variables in row-major order.

        State 0 stands for -1, state 1 for +1. The factors are the field of each variable, the
        coupling of each edge to the right, and the coupling of each edge down, all in row-major
        order.
        """
        at = np.arange(self.fields.size).reshape(self.fields.shape)
        first = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()]).tolist()
        second = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()]).tolist()
        couplings = np.concatenate([self.right.ravel(), self.down.ravel()])
        unary = self.fields.reshape(-1, 1) * _SPIN
        tables = couplings[:, None, None] * np.outer(_SPIN, _SPIN)
        factors = [Factor((i,), table) for i, table in enumerate(unary)]
        factors += [Factor((i, j), table) for i, j, table in zip(first, second, tables, strict=True)]
        return FactorGraph([2] * at.size, factors)


def random_spin_glass(
    rows: int, columns: int, coupling: float, field: float, kind: Kind, rng: np.random.Generator
) -> SpinGlass:
    """Draw a model of the family of Figure 2.4.

    Parameters
    ----------
    rows, columns : size of the grid, at least 1.
    coupling : strength C in nats; theta_ij ~ U[0, C] if `attractive`, U[-C, C] if `mixed`.
    field : strength f in nats; theta_i ~ U[-f, f].
    rng : source of randomness; the fields are drawn first, then `right`, then `down`, each in
        row-major order.

    Raises
    ------
    InputError : the grid is empty, a strength is NaN, infinite or negative, or there is no such
        kind.
    """
    _check(rows, columns, kind, coupling=coupling, field=field)
    lowest = -1.0 if kind == "mixed" else 0.0
    fields = field * rng.uniform(-1, 1, (rows, columns))
    right = coupling * rng.uniform(lowest, 1, (rows, columns - 1))
    down = coupling * rng.uniform(lowest, 1, (rows - 1, columns))
    return SpinGlass(fields, right, down)


def published_spin_glass(coupling: str | float, kind: Kind, rows: int = 10, columns: int = 10) -> SpinGlass:
    """The model of Figure 2.4 with a given coupling, bit for bit as its author drew it.

    theta_i ~ U[-1, 1]; theta_ij ~ U[0, C] if `attractive`, U[-C, C] if `mixed`, from the C
    library's generator with seed 0. Each site in row-major order draws its field, its coupling to
    the site above and its coupling to the site on the left. C is in single precision, everything
    else in double.

    Parameters
    ----------
    coupling : strength C in nats. Six digits of a multiple of 1/3, such as "0.333333" or 1.66667 in
        the names of the published files, stand for that multiple.

    Raises
    ------
    InputError : as for `random_spin_glass`, or the coupling is no number.
    """
    return _published(coupling, kind, rows, columns)[0]


def published_noise(
    coupling: str | float, kind: Kind, count: int, skip: int = 0, rows: int = 10, columns: int = 10
) -> Floats:
    """The perturbations with which the author of Figure 2.4 maximised `published_spin_glass`.

    They continue the random numbers that drew the model: gamma = -ln(-ln u) - c with u = rand() /
    RAND_MAX. If u is 0 or 1, and gamma infinite, u moves inward by half a step; the first 100,000
    samples of the published models have no such u.

    Parameters
    ----------
    count : number of samples.
    skip : number of samples to discard first.

    Returns
    -------
    Noise in the layout of `MapSolver.maximise`, shape (count, 2 rows columns).
    """
    for name, number in (("count", count), ("skip", skip)):
        if number < 0:
            raise InputError(f"{name} is {number}", "it must be 0 or above")
    stream = _published(coupling, kind, rows, columns)[1]
    size = 2 * rows * columns
    stream.skip(skip * size)
    noise = stream.draw(count * size).astype(np.float64)
    np.clip(noise, 0.5, RAND_MAX - 0.5, out=noise)
    noise /= RAND_MAX
    for _ in range(2):
        np.log(noise, out=noise)
        np.negative(noise, out=noise)
    noise -= _EULER
    return noise.reshape(count, size)


def _published(coupling: str | float, kind: Kind, rows: int, columns: int) -> tuple[SpinGlass, GlibcRand]:
    """The model, and the generator after its last number."""
    try:
        named = float(coupling)
    except ValueError:
        raise InputError(f"the coupling is {str(coupling)[:40]!r}", "it must be a number") from None
    _check(rows, columns, kind, coupling=named)
    third = round(3 * named) / 3
    strength = float(np.float32(third if f"{third:.6g}" == f"{named:.6g}" else named))
    stream = GlibcRand(0)
    lowest = -strength if kind == "mixed" else 0.0

    def uniform(low: float, high: float) -> float:
        """Draw from U[low, high] rounded as in the author's code; low = high draws nothing."""
        return low if low == high else low + int(stream.draw(1)[0]) / (RAND_MAX / (high - low))

    fields, right, down = np.empty((rows, columns)), np.empty((rows, columns - 1)), np.empty((rows - 1, columns))
    for i in range(rows):
        for j in range(columns):
            fields[i, j] = uniform(-1, 1)
            if i:
                down[i - 1, j] = uniform(lowest, strength)
            if j:
                right[i, j - 1] = uniform(lowest, strength)
    return SpinGlass(fields, right, down), stream


def _check(rows: int, columns: int, kind: str, **strengths: float) -> None:
    if rows < 1 or columns < 1:
        raise InputError(f"the grid is {rows} x {columns}", "it must have at least one row and one column")
    if kind not in get_args(Kind):
        raise InputError(f"the kind is {kind!r}", f"it must be {' or '.join(get_args(Kind))}")
    for name, value in strengths.items():
        if not 0 <= value <= _MOST:
            raise InputError(f"the {name} is {value}", f"it must be from 0 to {_MOST:g}")
