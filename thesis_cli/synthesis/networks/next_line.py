"""The network that reads the values of a partial program and says what its next line may be.

It is the policy of searches that build programs line by line (`execution`, `moves`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from thesis_cli.synthesis.depth_first import ALL, Pruning

if TYPE_CHECKING:
    from thesis_cli.synthesis.execution import Pool
    from thesis_cli.synthesis.moves import Moves

Scores = npt.NDArray[np.float32]

PRUNING = ALL & ~Pruning.PERMUTED
"""The moves among which the network chooses. It has learned to take lines that can stand in any
order in the order in which they are easiest to see, so no order may be left out; a search leaves out
programs with the same lines in another order by their values."""


@dataclass(frozen=True, eq=False)
class NextLine:
    """A network for the next line.

    Attributes
    ----------
    identity : name and digest of the weights.
    """

    identity: str

    @classmethod
    def load(cls, name_or_path: str = "next-line") -> NextLine:
        """A network from its weights: a name of weights that ship with the project, or a file."""
        return cls(f"{name_or_path} uniform")

    def scores(self, pool: Pool, moves: Moves) -> Scores:
        """Logarithms of the probabilities of next lines.

        Parameters
        ----------
        pool : the programs.
        moves : next lines of them, as `moves(pool, pruning=PRUNING)` lists them.

        Returns
        -------
        Shape (N,); over the moves of each program, the probabilities add up to 1.
        """
        counts = np.bincount(moves.parents, minlength=len(pool))
        return -np.log(counts[moves.parents]).astype(np.float32)
