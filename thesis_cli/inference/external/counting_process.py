"""Count the models of a formula by Ganak; `model_counting.py` calls it in a process of its own.

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
    """

    variables: int
    clauses: bytes
    weighted: bytes
    weights: bytes


def count(job: Job) -> int | float | None:
    """The number of satisfying assignments, or their total weight if any variable has weights; None
    if there are none.

    Satisfiability comes first, as a count projected on no variable: counting takes minutes to see
    that 4 pigeons do not fit into 3 holes.
    """
    pyganak = import_module("pyganak")
    clauses = _split(array.array("i", job.clauses))
    found = pyganak.Counter()
    found.new_vars(job.variables)
    found.add_clauses(clauses)
    found.set_sampling_set([])
    if not found.count():
        return None
    counter = pyganak.WeightedCounter() if job.weighted else pyganak.Counter()
    counter.new_vars(job.variables)
    counter.add_clauses(clauses)
    values = array.array("d", job.weights)
    for k, variable in enumerate(array.array("i", job.weighted)):
        counter.set_lit_weight(variable, values[2 * k])
        counter.set_lit_weight(-variable, values[2 * k + 1])
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # the library makes its integers from decimal text
    try:
        total: int | float = counter.count()
    finally:
        sys.set_int_max_str_digits(digits)
    return total


def _split(clauses: array.array[int]) -> list[array.array[int]]:
    parts, start = [], 0
    while start < len(clauses):
        end = clauses.index(0, start)
        parts.append(clauses[start:end])
        start = end + 1
    return parts
