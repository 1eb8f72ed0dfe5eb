"""The interface of MAP solvers: built from a model once, a solver maximises many perturbed copies
of it.
"""

from __future__ import annotations

from typing import Literal, Protocol

from thesis_cli.base.arrays import Floats, Ints
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
