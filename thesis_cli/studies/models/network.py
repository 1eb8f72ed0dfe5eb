"""A model with its evidence, and a Bayesian network that is drawn variable by variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.models.factor_graph import Factor, FactorGraph


@dataclass(frozen=True)
class Network:
    """A model and the states at which some of its variables are observed."""

    graph: FactorGraph
    evidence: Mapping[int, int] = field(default_factory=dict)

    def conditioned(self) -> FactorGraph:
        """The model given the evidence."""
        return self.graph.condition(self.evidence)


def log_table(entries: object) -> Floats:
    """Logarithms of non-negative numbers; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(entries, dtype=np.float64))


class BayesianNetwork:
    """A Bayesian network that grows in topological order, and one configuration drawn from it.

    Evidence taken from that configuration is possible, whatever zeros the tables have.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._cardinalities: list[int] = []
        self._factors: list[Factor] = []
        self._drawn: list[int] = []

    def add(self, parents: Sequence[int], conditional: object) -> int:
        """Add a variable and return its number.

        Parameters
        ----------
        conditional : P(variable | parents), shape (states, *states of the parents).
        """
        table = np.asarray(conditional, dtype=np.float64)
        number = len(self._cardinalities)
        self._cardinalities.append(table.shape[0])
        self._factors.append(Factor((number, *parents), log_table(table)))
        row = table.T[tuple(self._drawn[parent] for parent in reversed(parents))]
        self._drawn.append(int(self._rng.choice(row.size, p=row)))
        return number

    def network(self, observed: Iterable[int]) -> Network:
        """The network, with some variables observed at the states that were drawn."""
        return Network(FactorGraph(self._cardinalities, self._factors), {i: self._drawn[i] for i in observed})

    @property
    def size(self) -> int:
        """Number of variables so far."""
        return len(self._cardinalities)
