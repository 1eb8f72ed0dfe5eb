"""Exact MAP, ln Z and marginals on grids: dynamic programming over a boundary that moves one site
at a time.

The boundary holds one site of each column. A step replaces a column's site by the one below it, so
that the table over the boundary's K^width states is updated in place. For the MAP the table before
each row is kept: given the states of the row below, those of a row maximise that table plus a sum
over its columns, which is solved column by column.
"""

from __future__ import annotations

import math

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import ModelTooLarge
from thesis_cli.base.memory import DEFAULT_MEMORY, Cost, bytes_text
from thesis_cli.inference.grid.layout import gains, layout, slots, tables
from thesis_cli.inference.grid.steps import BinarySteps, GeneralSteps, Steps
from thesis_cli.inference.grid.sums import GridSums
from thesis_cli.inference.pairwise import pairwise
from thesis_cli.inference.solver import Guarantee
from thesis_cli.models.factor_graph import FactorGraph

SIDE_BY_SIDE = 2**22
"""Bytes of tables up to which problems are solved side by side: those of caches."""
PAIR_ROOM = 40
"""Bytes for each entry of the tables of pairs while they are read."""
BATCH = 2**16
"""Numbers of noise in one call of a kernel, which stay in a cache."""


class GridTransfer:
    """A grid prepared for any number of sums and maximisations.

    Parameters
    ----------
    graph : factors over one variable, or over two that are neighbours on a grid. Its variables are
        numbered along the rows (or the columns), edges may be missing, and a chain is a grid; or
        they are numbered in any order, and no edge is missing.
    memory : bytes that the tables of one call may take.
    sums_only : refuse the grid only if ln Z does not fit, which takes one table instead of one a
        row.
    jobs : threads that share the table of a wide grid in sums; the results do not depend on it.

    Attributes
    ----------
    width : sites of the shorter side.
    summable : whether sums of weights outside the logarithm lose nothing; otherwise use
        elimination.
    cost : predicted, of ln Z.

    Raises
    ------
    UnsuitableModel : not a grid.
    ModelTooLarge : its shorter side is too wide for `memory`; the message gives the memory it
        needs.
    """

    name = "grid transfer"
    guarantee: Guarantee = "exact"

    def __init__(
        self, graph: FactorGraph, memory: int = DEFAULT_MEMORY, *, sums_only: bool = False, jobs: int = 1
    ) -> None:
        self.graph = graph
        form = pairwise(graph)
        self.width, self._variables = layout(form)
        self._count, self._memory = max(2, *form.cardinalities), memory
        rows = len(self._variables) // self.width
        read = PAIR_ROOM * len(self._variables) * self._count**2
        table = self._table = 8 * max(8, self._count**self.width)
        least = table * (1 if self._count == 2 else 2) if sums_only else table * (rows + 3)
        if least + read > memory:
            raise ModelTooLarge(
                f"grid transfer needs {bytes_text(least + read)} at width {self.width}",
                f"raise the memory from {bytes_text(memory)}, or use a method that approximates",
                memory=least + read,
                width=self.width,
            )
        self._alone = 32 * table * (rows + 3) > min(memory, 8 * SIDE_BY_SIDE)
        self._constant = form.constant
        self._slots = slots(form, self._variables, self._count)
        padded = np.append(form.unary, [0.0, -np.inf])
        self._unary = padded[self._slots]
        self._right, self._down = tables(form, self._variables, self.width, self._count)
        self._gains = gains(self._unary, self._right, self._down, self.width)
        steps = self._steps(jobs, form.soft)
        free = int((np.take([*form.cardinalities, 1], self._variables) == 1).sum())
        self._sums = GridSums(steps, self._slots, self.width, jobs, form.constant - free * math.log(self._count))
        self.summable = steps.summable
        self.cost = Cost(steps.seconds, steps.tables * table + read)

    def _steps(self, jobs: int, soft: bool) -> Steps:
        if self._gains:
            steps = BinarySteps(self._gains, self.width, jobs)
            if steps.summable:
                return steps
        return GeneralSteps(self._unary, self._right, self._down, self.width, soft=soft)

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """MAP under perturbed unary tables; see `MapSolver`."""
        size = 1 if self._alone and not self._gains else max(32, BATCH // noise.shape[1])
        solve = self._by_gains if self._gains else self._by_tables
        parts = [solve(noise[start : start + size]) for start in range(0, len(noise), size)]
        values, states = (np.concatenate(p) for p in zip(*parts, strict=True))
        return values + self._constant, self._by_variable(states)

    def _by_gains(self, noise: Floats) -> tuple[Floats, Ints]:
        from thesis_cli.inference.grid.kernels import WIDE, maximise_binary

        assert self._gains
        tables = WIDE * self._table * (len(self._slots) // self.width + 2)
        lanes = WIDE if tables <= min(self._memory, SIDE_BY_SIDE) else 1
        padded = np.zeros((-(-len(noise) // lanes) * lanes, noise.shape[1] + 2))
        padded[: len(noise), :-2] = noise
        low, high = (np.take(padded, self._slots[:, state], axis=1) for state in (0, 1))
        field = high - low + self._gains.gain
        values, states = np.empty(len(field)), np.empty(field.shape, np.int64)
        maximise_binary(field, self._gains.right, self._gains.down, self.width, lanes, values, states)
        return (values + low.sum(axis=1) + self._gains.base)[: len(noise)], states[: len(noise)]

    def _by_tables(self, noise: Floats) -> tuple[Floats, Ints]:
        from thesis_cli.inference.grid import general_kernels as kernels

        batch, lanes = len(noise), 1 if self._alone else kernels.LANES
        blocks = -(-batch // lanes)
        padded = np.zeros((blocks * lanes, noise.shape[1] + 2))
        padded[:batch, :-2] = noise
        rows = np.ascontiguousarray(padded.reshape(blocks, lanes, -1).swapaxes(1, 2))
        values = np.empty((blocks, lanes))
        states = np.empty((blocks, len(self._slots), lanes), np.int64)
        unary = np.take(rows, self._slots, axis=1) + self._unary[:, :, np.newaxis]
        kernels.maximise_general(unary, self._right, self._down, self.width, values, states)
        return values.reshape(-1)[:batch], states.swapaxes(1, 2).reshape(blocks * lanes, -1)[:batch]

    def log_partition_function(self) -> float:
        """Exact ln Z in nats, of a grid that is `summable`; `-inf` when no configuration is possible."""
        return self._sums.log_partition_function()

    def marginals(self) -> tuple[float, Floats]:
        """Exact ln Z and the marginals of a grid that is `summable`.

        Returns
        -------
        log_z : nats.
        marginals : p(x_i) of the states of variable 0, then those of variable 1, ..., shape (sum of
            cardinalities,).

        Raises
        ------
        ModelTooLarge : they need more than the memory, even if tables are computed twice.
        NoConfiguration : none is possible.
        """
        log_z, found = self._sums.marginals(self._memory)
        return log_z, found[: sum(self.graph.cardinalities)]

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Independent draws from the Gibbs distribution of a grid that is `summable`, shape
        (count, n).

        Raises
        ------
        ModelTooLarge, NoConfiguration : as for `marginals`.
        """
        return self._by_variable(self._sums.sample(count, rng, self._memory))

    def _by_variable(self, states: Ints) -> Ints:
        """States of the variables from those of the sites."""
        found = np.empty((len(states), len(self.graph.cardinalities)), np.int64)
        real = self._variables >= 0
        found[:, self._variables[real]] = states[:, real]
        return np.asarray(np.minimum(found, np.array(self.graph.cardinalities) - 1))

    def cost_of_marginals(self) -> Cost:
        """Predicted cost of `marginals`.

        Raises
        ------
        ModelTooLarge : as for `marginals`.
        """
        return self._sums.cost_of_marginals(self._memory)
