"""Outputs that no program gives, however long it is, and outputs that no last line gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isqrt
from time import perf_counter

from thesis_cli.synthesis.language.dsl import (
    DEFAULT,
    LONGEST,
    OPERATIONS,
    Lambda,
    Operation,
    Semantics,
    Value,
    check_rules,
)
from thesis_cli.synthesis.language.task import Example, Task
from thesis_cli.synthesis.search.solver import Limits, Solution


def refuted(task: Task, semantics: Semantics = DEFAULT) -> str | None:
    """Why no program of any length fits a task; None if that is not known.

    If no operation lengthens a list, every list is at most as long as the longest input. Of empty
    lists alone, HEAD, LAST, MINIMUM, MAXIMUM and ACCESS give NULL, and SUM and COUNT give 0.
    """
    for number, example in enumerate(task.examples, 1):
        output, longest = example.output, _longest(example)
        if not semantics.holds(output):
            return f"the output of example {number} is out of range"
        if semantics.language.lengthens:
            continue
        if not isinstance(output, int) and len(output) > longest:
            return f"the output of example {number} has {len(output)} numbers, its longest input {longest}"
        if isinstance(output, int) and output != 0 and longest == 0:
            return f"the output of example {number} is {output}, and its lists are empty"
    return None


def refutation(solver: str, task: Task, limits: Limits, semantics: Semantics) -> Solution | None:
    """The answer of a solver to a task that no program fits; None if that is not known."""
    began = perf_counter()
    reason = refuted(task, semantics)
    if reason is None:
        return None
    return Solution((), solver, 0, perf_counter() - began, limits.max_length, refuted=reason)


def may_end(operation: Operation, task: Task, lengthen: bool = False) -> bool:
    """Whether an operation may give the outputs of a task, on whatever values.

    The operation and the outputs are of one type. `lengthen` says that lists may be longer than all
    inputs.
    """
    rule = RULES.get(operation.rule(operation.function.kernel))
    if rule is None:
        return True
    examples = ((_numbers(e.output), LONGEST if lengthen else _longest(e)) for e in task.examples)
    return all(rule(operation.f, numbers, longest) for numbers, longest in examples)


def _longest(example: Example) -> int:
    """Length of the longest list among the inputs."""
    return max((len(value) for value in example.inputs if not isinstance(value, int)), default=0)


def _numbers(value: Value) -> Sequence[int]:
    return (value,) if isinstance(value, int) else value


# Rules: lambda, numbers of an output, length of the longest list -> whether an operation may give
# it.

Rule = Callable[[Lambda | None, Sequence[int], int], bool]


def _multiples(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return f is not None and all(z % f.by == 0 for z in zs)


def _squares(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return all(z >= 0 and isqrt(z) ** 2 == z for z in zs)


def _kept(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return f is not None and all(map(f.apply, zs))


def _rising(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return all(x <= y for x, y in pairwise(zs))


def _falling(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return all(x >= y for x, y in pairwise(zs))


def _products(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return all(y % x == 0 if x else y == 0 for x, y in pairwise(zs))


def _few(f: Lambda | None, zs: Sequence[int], longest: int) -> bool:
    return 0 <= zs[0] <= longest


RULES: dict[str, Rule] = {
    "map scale": _multiples,
    "map square": _squares,
    "filter": _kept,
    "count": _few,
    "sort": _rising,
    "scanl1 max": _rising,
    "scanl1 min": _falling,
    "scanl1 times": _products,
}
"""Rules by the names of kernels; an operation without one may give everything."""
_kernels = {operation.rule(operation.function.kernel) for operation in OPERATIONS}
check_rules("last lines", _kernels & RULES.keys(), RULES)
