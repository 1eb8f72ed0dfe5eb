"""Operations that can be inverted: from the output back to lists that lead to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from thesis_cli.synthesis.language.dsl import OPERATIONS, Operation, Semantics, Value
from thesis_cli.synthesis.search.bottom_up import Tree

Numbers = tuple[int, ...]


def _unscan(undo: Callable[[int, int], int]) -> Callable[[Operation, Numbers], Numbers]:
    """Each number from the one of the result before it and the one at its place."""
    return lambda operation, ys: ys[:1] + tuple(map(undo, ys, ys[1:]))


def _shift(operation: Operation, ys: Numbers) -> Numbers:
    assert operation.f is not None
    return tuple(y - operation.f.by for y in ys)


def _scale(operation: Operation, ys: Numbers) -> Numbers:
    assert operation.f is not None
    return tuple(y // operation.f.by for y in ys)


INVERSES: dict[str, Callable[[Operation, Numbers], Numbers]] = {
    "map shift": _shift,
    "map scale": _scale,
    "map negate": lambda operation, ys: tuple(-y for y in ys),
    "reverse": lambda operation, ys: ys[::-1],
    "scanl1 plus": _unscan(lambda before, y: y - before),
    "scanl1 minus": _unscan(lambda before, y: before - y),
}
"""By the rule of the kernel: the only list that can have a result; it need not have it."""

assert {o.rule(o.function.kernel) for o in OPERATIONS} >= set(INVERSES)


def invert(operation: Operation, results: tuple[Value, ...], semantics: Semantics) -> tuple[Value, ...] | None:
    """The lists to which an operation gives some lists, one for each example.

    Returns
    -------
    The lists, in range; None if there are none, or if the operation can give a list to several.
    """
    inverse = INVERSES.get(operation.rule(operation.function.kernel))
    if inverse is None:
        return None
    found = []
    for result in results:
        assert not isinstance(result, int)
        value = inverse(operation, result)
        if not semantics.holds(value) or semantics.apply(operation, value) != result:
            return None
        found.append(value)
    return tuple(found)


Path = tuple[tuple[int, ...], ...]
"""Steps from the list of a root to a goal: an operation, or ZIPWITH, the row of the bank that it
takes and whether that is its second argument."""


@dataclass(frozen=True)
class Goal:
    """Condition on a list, on each example, under which the steps of a path give the output."""

    values: tuple[Value, ...]
    path: Path = ()


def wrap(tree: Tree, path: Path) -> Tree:
    """The tree of the root, from one of the goal."""
    for id, *other in reversed(path):
        if other:
            row, second = other
            tree = (id, tree, row) if second else (id, row, tree)
        else:
            tree = (id, tree)
    return tree


@lru_cache(16)
def unwound(outputs: tuple[Value, ...], semantics: Semantics, depth: int) -> tuple[tuple[Goal, ...], ...]:
    """The outputs, which are lists, and what inverted operations make of them.

    Returns
    -------
    Goals by the number of operations, from 0 to `depth`; a goal has the fewest. Searches for several
    parts of one task ask for the same ones.
    """
    found = [[Goal(outputs)]]
    known = {outputs}
    for _ in range(depth):
        longer = []
        for goal in found[-1]:
            for operation in semantics.language.operations:
                values = invert(operation, goal.values, semantics)
                if values is not None and values not in known:
                    known.add(values)
                    longer.append(Goal(values, (*goal.path, (operation.id,))))
        found.append(longer)
    return tuple(map(tuple, found))
