"""What counts a formula by Ganak; `model_counting.py` calls it in a process of its own.

It imports little, so that the process starts in hundredths of a second.
"""

from __future__ import annotations

import array
import sys
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Job:
    """A formula to count.

    Attributes
    ----------
    variables : number of variables, numbered from 1.
    clauses : 32-bit integers: the literals of one clause after another, each clause ended by 0.
    weighted : 32-bit integers: the variables that have weights; the others have weight 1.
    weights : doubles: the weights of each such variable and of its negation.
    satisfiable : whether to return 1 if the formula can be satisfied and 0 if not.
    """

    variables: int
    clauses: bytes
    weighted: bytes
    weights: bytes
    satisfiable: bool = False


def count(job: Job) -> int | float:
    """The number of satisfying assignments, or their total weight if any variable has weights."""
    pyganak = import_module("pyganak")
    sys.set_int_max_str_digits(0)  # the library makes its integers from decimal text
    counter = pyganak.WeightedCounter() if job.weighted else pyganak.Counter()
    counter.new_vars(job.variables)
    clauses = array.array("i", job.clauses)
    start = 0
    while start < len(clauses):
        end = clauses.index(0, start)
        counter.add_clause(clauses[start:end])
        start = end + 1
    values = array.array("d", job.weights)
    for k, variable in enumerate(array.array("i", job.weighted)):
        counter.set_lit_weight(variable, values[2 * k])
        counter.set_lit_weight(-variable, values[2 * k + 1])
    if job.satisfiable:
        counter.set_sampling_set([])
    found: int | float = counter.count()
    return found
