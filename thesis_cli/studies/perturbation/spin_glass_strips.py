"""Bounds on ln Z of spin glasses too wide for grid transfer, and a quick search for maxima.

Grid transfer solves a strip of rows exactly. A cut into strips misses the couplings between them; there are
as many cuts, each at other rows, as a strip has rows.

* Upper bound on ln Z: phi is the mean over the cuts of models without the missing couplings, whose
  other couplings along columns are larger in proportion. ln Z is convex in phi, so it is at most the
  mean over the cuts (Wainwright, Jaakkola and Willsky 2005, with strips in the place of trees).
* Lower bound on ln Z: any product q of distributions of strips has E_q[phi] + H(q) <= ln Z. Here
  each is a Gibbs distribution under the mean fields of its neighbours.
* Maxima: the best states of a strip given the rest, for one strip after another; strips overlap and
  lie along rows and along columns. `inference.grid_strips` certifies maxima in 10 to 100 times the
  time.

Maximisers of spin glasses of any size under Gumbel noise on the states of each spin.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise as neighbours
from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.memory import DEFAULT_MEMORY
from thesis_cli.inference.graph_cut.graph_cut import GraphCut
from thesis_cli.inference.grid.layout import Gains
from thesis_cli.inference.grid.steps import BinarySteps
from thesis_cli.inference.grid.sums import GridSums
from thesis_cli.models.spin_glass import Kind, SpinGlass
from thesis_cli.perturbation.noise import gumbel

SWEEPS = 100
"""Most sweeps over all strips."""
NEGLIGIBLE = 1e-5
"""Nats a site that a sweep must add to the lower bound on ln Z for another one to follow."""
SIDE_BY_SIDE = 2**22
"""Bytes of tables up to which problems are solved side by side."""


class LogZ(NamedTuple):
    """Bounds on ln Z by strips, and an estimate.

    Attributes
    ----------
    lower, estimate, upper : bounds and estimate in nats; all are equal if one strip has all rows.
    means : means of the spins under the distribution of the lower bound, shape (rows, columns).
    """

    lower: float
    estimate: float
    upper: float
    means: Floats


class _Strip:
    """Rows `first` to `last` (exclusive) of a spin glass, with given fields.

    A site is a column of the strip's sites from the top, then the next column.

    Parameters
    ----------
    scale : factor of the couplings along columns.
    """

    def __init__(self, glass: SpinGlass, first: int, last: int, scale: float = 1.0) -> None:
        self.rows, self.width = slice(first, last), last - first
        self.columns = glass.fields.shape[1]
        along, across = np.zeros((2, self.width, self.columns))
        along[1:] = scale * glass.down[first : last - 1]
        across[:, 1:] = glass.right[first:last]
        loss = along + across
        loss[:-1] += along[1:]
        loss[:, :-1] += across[:, 1:]
        self._loss = 2 * loss.T.ravel()
        self._along, self._across = 4 * along.T.ravel(), 4 * across.T.ravel()
        self._base = float(along.sum() + across.sum())

    def sums(self, fields: Floats) -> GridSums:
        """Sums under the fields of its own rows, shape (width, columns)."""
        own = fields.T.ravel()
        steps = BinarySteps(
            Gains(self._base - float(own.sum()), 2 * own - self._loss, self._along, self._across), self.width, 1
        )
        return GridSums(steps, np.arange(2 * own.size).reshape(-1, 2), self.width, 1, 0.0)

    def log_z(self, fields: Floats) -> float:
        return self.sums(fields).log_partition_function()

    def magnetised(self, fields: Floats) -> tuple[float, Floats]:
        """ln Z, and the means of its spins."""
        log_z, marginals = self.sums(fields).marginals(DEFAULT_MEMORY)
        return log_z, (2 * marginals[1::2] - 1).reshape(self.columns, self.width).T

    def maximise(self, fields: Floats) -> tuple[Floats, Floats]:
        """Maxima, shape (batch,), and spins, shape (batch, width, columns), under batches of fields."""
        from thesis_cli.inference.grid.kernels import WIDE, maximise_binary

        batch = len(fields)
        own = fields.swapaxes(1, 2).reshape(batch, -1)
        tables = WIDE * 8 * 2**self.width * (self.columns + 2)
        lanes = WIDE if batch >= WIDE and tables <= SIDE_BY_SIDE else 1
        field = np.zeros((-(-batch // lanes) * lanes, own.shape[1]))
        field[:batch] = 2 * own - self._loss
        values, states = np.empty(len(field)), np.empty(field.shape, np.int64)
        maximise_binary(field, self._along, self._across, self.width, lanes, values, states)
        spins = (2.0 * states[:batch] - 1).reshape(batch, self.columns, self.width).swapaxes(1, 2)
        return np.asarray(values[:batch] + self._base - own.sum(axis=1)), np.asarray(spins, np.float64)


class Strips:
    """A spin glass in strips.

    Parameters
    ----------
    glass : the model, with at least two rows.
    width : rows of a strip, 2 or more.
    """

    def __init__(self, glass: SpinGlass, width: int) -> None:
        self._glass, self._rows = glass, len(glass.fields)
        self._width = min(width, self._rows)

    @cached_property
    def _cuts(self) -> list[list[_Strip]]:
        """The strips of each cut; of the last one all but the lowest have `width` rows."""
        w, rows = self._width, self._rows
        if w == rows:
            return [[_Strip(self._glass, 0, rows)]]
        return [
            [_Strip(self._glass, a, b, w / (w - 1)) for a, b in neighbours(ends)]
            for ends in ([0, *range(first, rows, w), rows] for first in range(1, w + 1))
        ]

    def log_partition_function(self, start: Floats | None = None) -> LogZ:
        """Bounds on ln Z, and an estimate.

        ln Z is the sum over rows of what ln Z of this row and those below exceeds that of those
        below. The estimate takes `width` rows for all those below, under the mean field of the
        next.

        Parameters
        ----------
        start : means of spins from which mean field starts, shape (rows, columns); by default those
            without couplings.
        """
        glass, w, rows = self._glass, self._width, self._rows
        if w == rows:
            log_z, means = self._cuts[0][0].magnetised(glass.fields)
            return LogZ(log_z, log_z, log_z, means)
        upper = sum(s.log_z(glass.fields[s.rows]) for cut in self._cuts for s in cut) / len(self._cuts)
        lower, means = self._mean_field(np.tanh(glass.fields) if start is None else start)
        estimate = _Strip(glass, rows - w, rows).log_z(glass.fields[rows - w :])
        for first in range(rows - w):
            fields = glass.fields[first : first + w].copy()
            fields[-1] += glass.down[first + w - 1] * means[first + w]
            estimate += _Strip(glass, first, first + w).log_z(fields)
            estimate -= _Strip(glass, first + 1, first + w).log_z(fields[1:])
        return LogZ(lower, min(max(estimate, lower), upper), upper, means)

    def _mean_field(self, start: Floats) -> tuple[float, Floats]:
        """The lower bound on ln Z, and the means of spins under its distribution."""
        glass, w, rows = self._glass, self._width, self._rows
        edges = list(range(w, rows, w))
        cut = [_Strip(glass, a, b) for a, b in neighbours([0, *edges, rows])]
        means, bound = start.copy(), -np.inf
        for _ in range(SWEEPS):
            total = 0.0
            for strip in cut:
                shift = _from_neighbours(glass, means, strip.rows)
                log_z, means[strip.rows] = strip.magnetised(glass.fields[strip.rows] + shift)
                total += log_z - float((shift * means[strip.rows]).sum())
            total += sum(float((glass.down[e - 1] * means[e - 1] * means[e]).sum()) for e in edges)
            if total <= bound + NEGLIGIBLE * means.size:
                return max(total, bound), means
            bound = total
        return bound, means

    def search(self, fields: Floats) -> tuple[Floats, Floats]:
        """High values of phi under other fields, and their spins; maxima if one strip has all rows.

        Returns
        -------
        values : phi of the spins, shape (batch,).
        spins : shape (batch, rows, columns).
        """
        if self._width == self._rows:
            return self._cuts[0][0].maximise(fields)
        across = SpinGlass(self._glass.fields.T, self._glass.down.T, self._glass.right.T)
        spins, best = np.zeros_like(fields), np.full(len(fields), -np.inf)
        active = np.arange(len(fields))
        for _ in range(SWEEPS):
            _improve(self._glass, self._width, fields[active], own := spins[active])
            turned = own.swapaxes(1, 2).copy()
            _improve(across, self._width, fields[active].swapaxes(1, 2), turned)
            spins[active] = turned.swapaxes(1, 2)
            found = energy(self._glass, fields[active], spins[active])
            better = found > best[active] + 1e-9
            best[active] = found
            active = active[better]
            if not active.size:
                break
        return best, spins


def energy(glass: SpinGlass, fields: Floats, spins: Floats) -> Floats:
    """phi of some spins under other fields, both of shape (batch, rows, columns)."""
    right = glass.right * spins[:, :, 1:] * spins[:, :, :-1]
    down = glass.down * spins[:, 1:] * spins[:, :-1]
    return np.asarray(sum(x.sum(axis=(1, 2)) for x in (fields * spins, right, down)))


def _from_neighbours(glass: SpinGlass, spins: Floats, rows: slice) -> Floats:
    """The field on some rows from those around them; `spins` has shape (..., rows, columns)."""
    shift = np.zeros_like(spins[..., rows, :])
    if rows.start:
        shift[..., 0, :] += glass.down[rows.start - 1] * spins[..., rows.start - 1, :]
    if rows.stop < spins.shape[-2]:
        shift[..., -1, :] += glass.down[rows.stop - 1] * spins[..., rows.stop, :]
    return shift


def _improve(glass: SpinGlass, width: int, fields: Floats, spins: Floats) -> None:
    """One sweep over strips of `width` rows that overlap by half, in place; spins of 0 are unset."""
    rows = fields.shape[1]
    firsts: Ints = np.arange(0, max(1, rows - width // 2), max(1, width // 2))
    for first in firsts.tolist():
        strip = _Strip(glass, first, min(first + width, rows))
        own = fields[:, strip.rows] + _from_neighbours(glass, spins, strip.rows)
        spins[:, strip.rows] = strip.maximise(own)[1]


SEARCHED, ALL_AT_ONCE = 10, 11
"""Rows of the strips that search for maxima, and rows up to which one strip has them all."""
ENTRIES = 2**21
"""Most noise entries drawn together."""


class Perturbed(NamedTuple):
    """Some perturbations, and the maximiser under each.

    Attributes
    ----------
    half : half of what the noise on spin +1 exceeds that on spin -1, shape (count, rows, columns):
        the noise at a spin x is its mean plus x times this.
    mean : sum over the sites of the mean of both, shape (count,).
    spins : the maximisers, shape (count, rows, columns).
    """

    half: Floats
    mean: Floats
    spins: Floats

    @property
    def at_max(self) -> Floats:
        """Noise at the maximisers, sum_i gamma_i(x_i*), shape (count,)."""
        return np.asarray(self.mean + (self.half * self.spins).sum(axis=(1, 2)))


class PerturbedGlass:
    """A spin glass prepared for perturbations.

    Attractive ones are maximised by graph cuts, others by grid transfer if they are narrow, and by
    `Strips.search` if not.

    Attributes
    ----------
    exact : whether the maximisers are certain; if not, they are the best found.
    """

    def __init__(self, glass: SpinGlass, kind: Kind) -> None:
        rows = len(glass.fields)
        self._glass = glass
        self._cut = GraphCut(glass.graph()) if kind == "attractive" and rows > ALL_AT_ONCE else None
        self._strips = Strips(glass, rows if rows <= ALL_AT_ONCE else SEARCHED)
        self.exact = self._cut is not None or rows <= ALL_AT_ONCE

    def spins(self, fields: Floats) -> Floats:
        """Maximisers under other fields, both of shape (batch, rows, columns)."""
        if self._cut is None:
            return self._strips.search(fields)[1]
        shift = (fields - self._glass.fields).reshape(len(fields), -1)
        states = self._cut.maximise(np.stack([-shift, shift], axis=2).reshape(len(fields), -1))[1]
        return np.asarray((2.0 * states - 1).reshape(fields.shape), np.float64)

    def draw(self, samples: int, rng: np.random.Generator) -> Iterator[Perturbed]:
        """Independent perturbations in blocks, `samples` in all."""
        shape = self._glass.fields.shape
        entries = 2 * self._glass.fields.size
        for start in range(0, samples, rows := max(1, ENTRIES // entries)):
            noise = gumbel(rng, min(rows, samples - start), entries).reshape(-1, *shape, 2)
            half, mean = (noise[..., 1] - noise[..., 0]) / 2, noise.sum(axis=(1, 2, 3)) / 2
            yield Perturbed(half, mean, self.spins(self._glass.fields + half))
