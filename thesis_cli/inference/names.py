"""Names of the MAP solvers, and of choices of Frank-Wolfe; imports no solver, so that `--help` stays fast."""

from typing import Literal

SolverName = Literal[
    "auto", "grid", "graph-cut", "elimination", "contraction", "grid-strips", "toulbar2", "trw-s", "max-product", "qpbo"
]

EntropyName = Literal["trw", "bethe"]
StepName = Literal["corrective", "pairwise", "plain"]
