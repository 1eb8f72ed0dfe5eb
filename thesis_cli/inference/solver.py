"""The interface of MAP solvers: built from a model once, a solver maximises many perturbed copies of it."""

from __future__ import annotations

from typing import Literal, Protocol

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.models.factor_graph import FactorGraph

Guarantee = Literal["exact", "approximate"]


class MapSolver(Protocol):
    """A MAP solver prepared for one model.

    Attributes
    ----------
    name : name of the algorithm, for summaries.
    guarantee : `exact`, or `approximate`: the values are then those of the configurations found,
        never above the maximum.
    graph : the model.
    """

    @property
    def name(self) -> str: ...

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def graph(self) -> FactorGraph: ...

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """MAP under perturbed unary tables.

        Parameters
        ----------
        noise : finite, added to the unary log-potentials, shape (batch, sum of cardinalities): the
            states of variable 0, then those of variable 1, ...

        Returns
        -------
        values : phi(x) + sum_i noise_i(x_i) of each maximiser, shape (batch,); `-inf` if no
            configuration is possible (or, from an approximate solver, found).
        states : the maximisers, shape (batch, n).
        """
        ...


class TemperedSolver:
    """MAP of alpha phi + noise, as alpha times the MAP of phi + noise / alpha (Thesis eqs. 3.7,
    3.8).

    Parameters
    ----------
    solver : solver of phi, prepared once for every alpha.
    alpha : inverse temperature, above 0 and finite. At 0 phi drops out but for its support: solve
        `graph.tempered(0)` instead.

    Attributes
    ----------
    graph : alpha phi.
    name, guarantee : those of the solver.

    Raises
    ------
    InputError : alpha out of range.
    """

    def __init__(self, solver: MapSolver, alpha: float) -> None:
        self.graph: FactorGraph = solver.graph.tempered(alpha)
        if alpha == 0:
            raise InputError("alpha is 0", "build a solver of the model tempered to 0")
        self._solver, self._alpha = solver, alpha

    @property
    def name(self) -> str:
        return self._solver.name

    @property
    def guarantee(self) -> Guarantee:
        return self._solver.guarantee

    def maximise(self, noise: Floats) -> tuple[Floats, Ints]:
        """MAP under perturbed unary tables, see `MapSolver.maximise`."""
        values, states = self._solver.maximise(noise / self._alpha)
        return self._alpha * values, states
