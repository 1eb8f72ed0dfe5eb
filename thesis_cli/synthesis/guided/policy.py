"""Policies: what tells a search that builds programs line by line which line to add next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.language.dsl import OPERATIONS
from thesis_cli.synthesis.search.solver import Order

if TYPE_CHECKING:
    from thesis_cli.synthesis.search.execution import Pool
    from thesis_cli.synthesis.search.moves import Moves

LEAST = 1e-6
"""Probability that an operation has at least."""


@runtime_checkable
class Policy(Protocol):
    """A source of probabilities of next lines."""

    @property
    def identity(self) -> str:
        """Name and version, or a digest: policies of one identity give the same scores."""

    def scores(self, pool: Pool, moves: Moves) -> npt.NDArray[np.float32]:
        """Logarithms of the probabilities of the next lines of partial programs, shape (N,);
        deterministic.

        Parameters
        ----------
        pool : the programs.
        moves : next lines of them, as `moves(pool, pruning=next_line.PRUNING)` lists them.
        """


@dataclass(frozen=True)
class PriorPolicy:
    """The policy that sees no values: an operation by its probability, then any of its moves.

    Attributes
    ----------
    order : probabilities of functions and lambdas.
    """

    order: Order

    @property
    def identity(self) -> str:
        """`prior` and a digest of the order."""
        from thesis_cli.synthesis.guided.guide import digest

        return f"prior {digest(self.order)}"

    def scores(self, pool: Pool, moves: Moves) -> npt.NDArray[np.float32]:
        """See `Policy`."""
        weights = np.maximum(self.order.of_operations, LEAST)
        places = moves.parents * len(OPERATIONS) + moves.lines[:, 0]
        alike = np.bincount(places, minlength=len(pool) * len(OPERATIONS)).reshape(len(pool), len(OPERATIONS))
        totals = (weights * (alike > 0)).sum(axis=1)
        found = np.log(weights[moves.lines[:, 0]] / totals[moves.parents] / alike.reshape(-1)[places])
        return np.asarray(found, dtype=np.float32)
