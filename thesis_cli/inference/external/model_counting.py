"""Exact ln Z by weighted model counting: a formula for the model, and Ganak, which counts it.

Ganak (Sharma, Roy, Soos and Meel, GANAK: a scalable probabilistic exact model counter, IJCAI 2019)
searches over partial assignments, splits what is left into components and keeps their counts, which
it recognises by a hash of 64 bits: a wrong answer from a collision is possible, and improbable.
"""

from __future__ import annotations

import math
import time

import numpy as np

from thesis_cli.base.child import call
from thesis_cli.base.errors import UnsuitableModel, WorkFailed
from thesis_cli.base.memory import DEFAULT_MEMORY, bytes_text
from thesis_cli.base.modules import how_to_install, is_installed
from thesis_cli.inference.external.counting_process import Job, count
from thesis_cli.inference.external.weighted_cnf import WeightedFormula, weighted_formula
from thesis_cli.models.factor_graph import FactorGraph

OVERHEAD = 2**28
"""Bytes of address space that the process needs before it counts."""

REACH = 1000
"""Binary orders of magnitude on both sides of 1 in which an answer of the library is exact: near
the ends of a double's range, 2^-1074 and 2^1024, it loses digits or is 0 or infinite."""


class ModelCounter:
    """Model counting prepared for one model.

    Parameters
    ----------
    graph : the model.
    memory : bytes that the counting process may use.

    Attributes
    ----------
    clauses, literals : size of the formula: clauses, and literals in all clauses.
    promising : whether counting is worth a try where elimination is too slow: at most one weight
        for two clauses. Within 15 s on a busy machine, Ganak counted 15 of 22 such networks of
        `studies/models/families.py` (circuits, multipliers, ratio, pedigrees, satisfiability,
        planning), and 4 of 25 others (grids, diagnosis, regular graphs of general weights).

    Raises
    ------
    UnsuitableModel : the package of Ganak is missing.
    ModelTooLarge : the formula is too large.
    """

    def __init__(self, graph: FactorGraph, memory: int = DEFAULT_MEMORY) -> None:
        if not is_installed("pyganak"):
            raise UnsuitableModel("model counting needs the package pyganak", how_to_install("pyganak"))
        self._memory = memory
        self.formula = weighted_formula(graph)
        self._whole = all(np.isneginf(f.table[f.table != 0]).all() for f in graph.factors)
        self.clauses = self.formula.clauses
        self.literals = len(self.formula.literals) - self.clauses
        self.promising = 2 * len(self.formula.weighted) <= self.clauses

    def log_partition_function(self, time_limit: float | None = None) -> float:
        """Exact ln Z in nats; `-inf` if no configuration is possible.

        Parameters
        ----------
        time_limit : seconds that counting may take; no limit if None.

        Raises
        ------
        OutOfTime : it takes longer.
        WorkFailed : the library failed, or needs more memory.
        """
        deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        if self.formula.weighted.size:
            return self.formula.shift + self._log_weighted(deadline)
        found = self._run(deadline)
        return -math.inf if found is None else self.formula.shift + math.log(found)

    def count(self, time_limit: float | None = None) -> int | None:
        """Number of configurations if each has weight 0 or 1, otherwise None; as
        `log_partition_function`.
        """
        if not self._whole:
            return None
        return int(self._run(math.inf if time_limit is None else time.monotonic() + time_limit) or 0)

    def _log_weighted(self, deadline: float) -> float:
        """Logarithm of the weighted count.

        The library returns a double. A literal that is true brings the count into its range by a
        weight of 2^scale. The first scale is right if the count is at most `2 REACH` binary orders
        below its upper bound; otherwise others are tried.
        """
        highest, lowest = (bound / math.log(2) for bound in (self.formula.highest, self.formula.lowest))
        low, high = math.floor(lowest), math.ceil(highest) + 1
        scale = -high + REACH if high > REACH else 0
        step = 2 * REACH - 100
        while True:
            found = self._run(deadline, scale)
            if found is None:
                return -math.inf
            if 2.0**-REACH < found < math.inf:
                return math.log(found) - scale * math.log(2)
            if found == math.inf:
                low = REACH - scale
                step = 2 * REACH - 100
            else:
                high = -REACH - scale
            if high <= low:
                raise WorkFailed("the model counter's answer is out of its own bounds")
            target = max(high - step // 2, (low + high) // 2)
            step *= 2
            scale = -target

    def _run(self, deadline: float, scale: int = 0) -> int | float | None:
        left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
        job = _job(self.formula, scale)
        try:
            found: int | float | None = call(count, job, timeout=left, memory=self._memory + OVERHEAD)
        except MemoryError:
            raise self._out_of_memory() from None
        except RuntimeError as error:  # what the library makes of any exception of its own
            if isinstance(error, WorkFailed):
                raise
            if "bad_alloc" in str(error):
                raise self._out_of_memory() from None
            raise WorkFailed(f"the model counter failed: {' '.join(str(error).split())}") from None
        return found

    def _out_of_memory(self) -> WorkFailed:
        return WorkFailed(f"the model counter needs more than {bytes_text(self._memory)}; raise --memory")


def _job(formula: WeightedFormula, scale: int) -> Job:
    """The formula, with literals that are true and bring in a weight of 2^scale."""
    count = -(-abs(scale) // REACH)
    true = np.arange(formula.variables + 1, formula.variables + 1 + count, dtype=np.int32)
    literals = np.concatenate([formula.literals, np.stack([true, 0 * true], axis=1).reshape(-1)])
    shares = np.exp2(np.diff(np.linspace(0, scale, count + 1).round()))
    weights = np.concatenate([formula.weights, np.stack([shares, np.ones(count)], axis=1)])
    weighted = np.concatenate([formula.weighted, true])
    return Job(formula.variables + count, literals.tobytes(), weighted.tobytes(), weights.tobytes())
