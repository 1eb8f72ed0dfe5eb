"""Names of the MAP solvers; imports nothing, for the command line's sake."""

from typing import Literal

SolverName = Literal["auto", "grid", "graph-cut", "elimination", "trw-s", "max-product", "qpbo"]
