"""MAP of wide binary grids with a certificate: strips of rows that agree on the rows they share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thesis_cli.base.arrays import Bools, Floats, Ints
from thesis_cli.base.errors import ModelTooLarge, UnsuitableModel
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.inference.grid.layout import layout
from thesis_cli.inference.message_passing.belief_propagation import over_rows, soft_binary
from thesis_cli.inference.message_passing.message_arrays import Climb
from thesis_cli.inference.message_passing.spins import forests_of, spins_of
from thesis_cli.inference.pairwise import pairwise
from thesis_cli.inference.solver import Guarantee, MapSolver
from thesis_cli.models.factor_graph import FactorGraph

WIDTHS = 10, 12, 14
"""Rows of a strip in one cut after another."""
ROUNDS = 20
"""Rounds of search before the first cut."""
PATIENCE, PROGRESS = 10, 0.15
"""A bound stalls if it falls in so many iterations by at most this share of what it is above the value."""
LENGTH, FAILURES, SHORTER = 1.5, 3, 0.7
"""First steps as a multiple of Polyak's, consecutive steps that do not lower the bound, and by how
much the next are shorter then."""
SECONDS_AN_ENTRY = 2e-10
"""Time of an iteration for each site and each state of a strip's boundary, as measured."""


class _StripCut(NamedTuple):
    """A grid in strips of `width` rows, of which neighbours share a row; a site is a column of a
    strip's sites from the top, then the next column.

    Attributes
    ----------
    along : couplings to the site above, shape (strips, columns, width).
    across : couplings to the site on the left; those of a shared row are half in each strip, shape
        (strips, columns, width).
    sites : site of the grid of each site of a strip, the number of sites where there is none, shape
        (strips, columns, width).
    share : share of its site's field, shape (strips, columns, width).
    """

    along: Floats
    across: Floats
    sites: Ints
    share: Floats

    @classmethod
    def of(cls, right: Floats, down: Floats, width: int) -> _StripCut:
        """The cut of a grid into as few strips of at most `width` rows as there can be.

        Parameters
        ----------
        right, down : couplings of each site with its left and with its upper neighbour, shape
            (rows, columns).
        """
        rows, columns = right.shape
        count = max(1, -(-(rows - 1) // (width - 1)))
        width = max(2, -(-(rows - 1) // count) + 1)
        row = (width - 1) * np.arange(count)[:, None, None] + np.arange(width)
        sites = np.where(row < rows, row * columns + np.arange(columns)[:, None], right.size)
        share = np.ones(sites.shape)
        share[1:, :, 0] = share[:-1, :, -1] = 0.5
        along, across = (np.append(part, 0.0)[sites] for part in (down, right))
        along[:, :, 0] = 0.0
        return cls(along, across * share, sites, share)

    def maximise(self, fields: Floats, across: Floats) -> tuple[float, Floats]:
        """Sum of the maxima of the strips, and their spins, shape (strips, columns, width)."""
        from thesis_cli.inference.grid.kernels import maximise_binary

        loss = self.along + across
        loss[:, :, :-1] += self.along[:, :, 1:]
        loss[:, :-1] += across[:, 1:]
        count, width = len(fields), fields.shape[2]
        gains = (2 * (fields - loss)).reshape(count, 1, -1)
        right, down = (4 * self.along).reshape(count, -1), (4 * across).reshape(count, -1)
        values, states = np.empty((count, 1)), np.empty(gains.shape, np.int64)
        for k in range(count):
            maximise_binary(gains[k], right[k], down[k], width, 1, values[k], states[k])
        base = self.along.sum() + across.sum() - fields.sum()
        return float(values.sum() + base), np.asarray((2.0 * states - 1).reshape(fields.shape))


class GridStrips:
    """Dual decomposition of a binary grid into strips of rows (Komodakis, Paragios and Tziritas
    2011).

    Neighbouring strips share a row, with half of its fields and couplings each. Grid transfer
    maximises each strip exactly; the sum of the maxima is an upper bound. Multipliers of the spins
    of shared rows, and of the products of neighbours within them, are moved by subgradients (the
    step is that of Polyak) so that the strips agree and the bound falls. Whatever the strips say
    goes into the search of TRW-S, part by part. Where the bound meets the best value, that is the
    maximum.

    Parameters
    ----------
    graph : a grid as for `GridTransfer`, of variables with at most two states, of which no
        configuration is forbidden.
    memory : bytes that the tables of one strip may take.
    widths : rows of a strip, those of a first cut and those of the cuts that follow if its bound
        stalls.
    tolerance : a row is certified if bound - value <= tolerance max(1, |bound|).
    max_iterations : largest number of iterations for each row and width of strips, 1 or more.
    rest : solves the rows that are not certified.
    jobs : threads that share the rows of a batch; the results do not depend on it.

    Attributes
    ----------
    certified : whether each row of the last call is certified, shape (batch,).
    iterations : number of iterations of each row of the last call, shape (batch,).

    Raises
    ------
    UnsuitableModel : another model.
    ModelTooLarge : the tables of a strip do not fit into `memory`.
    """

    name = "grid strips"

    def __init__(
        self,
        graph: FactorGraph,
        memory: int = DEFAULT_MEMORY,
        *,
        widths: tuple[int, ...] = WIDTHS,
        tolerance: float = 1e-9,
        max_iterations: int = 200,
        rest: MapSolver | None = None,
        jobs: int = 1,
    ) -> None:
        self.graph = graph
        form = pairwise(graph)
        if not soft_binary(form):
            raise UnsuitableModel("a variable has three states, or a configuration is forbidden", "TRW-S takes more")
        columns, variables = layout(form)
        self._widths = [w for w in widths if 8 * 2**w * (columns + 3) <= memory]
        if not self._widths:
            raise ModelTooLarge(
                f"a strip of the grid needs {bytes_text(8 * 2 ** widths[0] * (columns + 3))}",
                f"raise the memory from {bytes_text(memory)}, or use TRW-S",
            )
        self._unary = form.unary
        self._spins, self._fields = spins_of(form)
        self._forests = forests_of(self._spins)
        n, real = len(form.cardinalities), variables >= 0
        site = np.empty(n, np.int64)
        site[variables[real]] = np.flatnonzero(real)
        self._sites = site[self._spins.variables]
        ends = np.sort(self._sites[np.stack([self._spins.earlier, self._spins.later])], axis=0)
        beside = (ends[1] - ends[0] == 1) & (columns > 1)
        grid = np.zeros((2, len(variables)))
        grid[np.where(beside, 0, 1), ends[1]] = self._spins.couplings
        self._right, self._down = grid.reshape(2, -1, columns)
        self._tolerance, self._max_iterations, self._jobs = float(tolerance), max_iterations, jobs
        self._seconds, self._rest = np.inf, rest
        self._failed = False
        self.certified: Bools = np.empty(0, np.bool_)
        self.iterations: Ints = np.empty(0, np.int64)

    @property
    def guarantee(self) -> Guarantee:
        """`exact` as long as every row has been certified or gone to an exact solver."""
        return "approximate" if self._failed else "exact"

    def limit(self, seconds: float) -> None:
        """Start no iteration of a row after those that are predicted to take so long."""
        self._seconds = seconds

    def solve(self, noise: Floats) -> tuple[Floats, Ints, Floats]:
        """See `TRWS.solve`."""
        batch = len(noise)
        states = np.empty((batch, len(self.graph.cardinalities)), np.int64)
        values, bounds, iterations = np.empty(batch), np.empty(batch), np.empty(batch, np.int64)

        def work(rows: slice) -> None:
            unary = self._unary + noise[rows]
            h, constants = self._fields.of(unary)
            placed = np.empty(h.shape, np.int64)
            for k, row in enumerate(range(rows.start, rows.stop)):
                spins, bound, iterations[row] = self._row(h[k])
                placed[k] = spins > 0
                bounds[row] = bound + constants[k]
            states[rows, self._spins.variables] = placed
            values[rows] = self._fields.values(self._spins, unary, placed)

        over_rows(work, batch, self._jobs)
        self.certified = values >= bounds - self._tolerance * np.maximum(1, np.abs(bounds))
        self.iterations = iterations
        return values, states, bounds

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """See `MapSolver.maximise`."""
        values, states, _ = self.solve(noise)
        open_rows = np.flatnonzero(~self.certified)
        if open_rows.size and self._rest is not None:
            values[open_rows], states[open_rows] = self._rest.maximise(noise[open_rows])
        if open_rows.size:
            self._failed |= self._rest is None or self._rest.guarantee != "exact"
        return values, states

    def _row(self, h: Floats) -> tuple[Floats, float, int]:
        """Spins by place, the bound without the constant, and the number of iterations."""
        from thesis_cli.inference.message_passing.spin_kernels import SPREAD, absorb, search

        model, f = (self._spins, self._forests, h), np.zeros((6, h.size))
        climb = Climb(f[0], f[1], f[2], f[3], f[4], f[5], np.empty(h.size, np.int64))
        absorb(*model, np.where(h > 0, 1.0, -1.0), True, climb)
        search(*model, ROUNDS, SPREAD, np.uint64(0), climb)
        bound, total, left = np.inf, 0, self._seconds
        grid = np.zeros(self._right.size + 1)
        for width in self._widths:
            grid[self._sites] = h
            strips, earlier = _Strips(_StripCut.of(self._right, self._down, width), grid), np.inf
            for iteration in range(1, self._max_iterations + 1):
                if total and left < strips.seconds:
                    return climb.best, bound, total
                total, left = total + 1, left - strips.seconds
                bound = min(bound, strips.maximise(grid))
                value = absorb(*model, grid[self._sites], False, climb)
                if bound - value <= self._tolerance * max(1.0, abs(bound)):
                    return climb.best, bound, total
                if iteration % PATIENCE == 0:
                    if earlier - strips.lowest <= PROGRESS * (strips.lowest - value):
                        break
                    earlier = strips.lowest
                if not strips.step(value):
                    break
        return climb.best, bound, total


class _Strips:
    """The multipliers of a cut, on their way to the lowest bound; `seconds` is predicted, of an iteration."""

    def __init__(self, cut: _StripCut, grid: Floats) -> None:
        self._cut = cut
        self._fields, self._across = grid[cut.sites] * cut.share, cut.across.copy()
        self._length, self._failures, self._bound = LENGTH, 0, np.inf
        self._spins = np.empty(cut.sites.shape)
        self.lowest = np.inf
        self.seconds = SECONDS_AN_ENTRY * cut.sites.size * 2.0 ** cut.sites.shape[2]

    def maximise(self, grid: Floats) -> float:
        """The bound; `grid` gets the spins of the strips, of a shared row those of either."""
        self._bound, self._spins = self._cut.maximise(self._fields, self._across)
        self._failures = 0 if self._bound < self.lowest else self._failures + 1
        self.lowest = min(self.lowest, self._bound)
        grid[self._cut.sites] = self._spins
        return self._bound

    def step(self, value: float) -> bool:
        """Move the multipliers by Polyak's step towards a bound of `value`, or a multiple of it;
        False if the strips agree."""
        if self._failures >= FAILURES:
            self._length, self._failures = SHORTER * self._length, 0
        upper, lower = self._spins[:-1, :, -1], self._spins[1:, :, 0]
        single = upper - lower
        pair = upper[:, 1:] * upper[:, :-1] - lower[:, 1:] * lower[:, :-1]
        norm = float((single**2).sum() + (pair**2).sum())
        if norm == 0.0:
            return False
        step = self._length * (self._bound - value) / norm
        self._fields[:-1, :, -1] -= step * single
        self._fields[1:, :, 0] += step * single
        self._across[:-1, 1:, -1] -= step * pair
        self._across[1:, 1:, 0] += step * pair
        return True
