"""A model at another temperature, solved by the MAP solver of the model itself."""

from __future__ import annotations

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.inference.solver import Guarantee, MapSolver
from thesis_cli.models.factor_graph import FactorGraph


class Tempered:
    """MAP of alpha phi + noise, as alpha times the MAP of phi + noise / alpha (Thesis eqs. 3.7,
    3.8).

    Parameters
    ----------
    solver : of phi, prepared once for every alpha.
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
