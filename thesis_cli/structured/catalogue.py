"""The spaces by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured.cycles import CycleSets, HamiltonianCycles
from thesis_cli.structured.hypercube import Hypercube, PairHypercube
from thesis_cli.structured.partitions import Partitions
from thesis_cli.structured.permutations import OrderPermutations, PositionPermutations, RankPermutations
from thesis_cli.structured.space import Space
from thesis_cli.structured.subtrees import Subtrees

MOST_FEATURES = 2**22
"""Largest dimension of a space."""

MOST_ELEMENTS = 100_000
"""Most elements: counts of structures are exact integers, whose digits grow with the elements."""


class SpaceEntry(NamedTuple):
    """A space with one kind of features.

    Attributes
    ----------
    make : the space of so many elements; None for subtrees, which need parents.
    dimension : number of its features, known before anything is allocated.
    least : fewest elements.
    """

    make: Callable[[int], Space] | None
    dimension: Callable[[int], int]
    least: int = 1


def _pairs(elements: int) -> int:
    return elements * (elements - 1) // 2


ENTRIES: dict[str, dict[str, SpaceEntry]] = {
    "hypercube": {
        "linear": SpaceEntry(Hypercube, lambda d: d),
        "pairs": SpaceEntry(PairHypercube, lambda d: d + _pairs(d)),
    },
    "permutations": {
        "positions": SpaceEntry(PositionPermutations, lambda d: d * d),
        "ranks": SpaceEntry(RankPermutations, lambda d: d),
        "orders": SpaceEntry(OrderPermutations, _pairs),
    },
    "cycles": {"edges": SpaceEntry(HamiltonianCycles, _pairs, least=3)},
    "cycle-sets": {"edges": SpaceEntry(CycleSets, _pairs, least=3)},
    "subtrees": {"nodes": SpaceEntry(None, lambda d: d)},
    "partitions": {"pairs": SpaceEntry(Partitions, _pairs)},
}
"""Spaces by name and features; the features named first are the default."""


def names() -> list[str]:
    """Names of all spaces."""
    return list(ENTRIES)


def feature_names(name: str) -> list[str]:
    """Kinds of features of a space, the default first."""
    return list(_entries(name))


def space(name: str, elements: int, features: str | None = None, parents: Sequence[int] | None = None) -> Space:
    """The space of a name. Raises InputError if a name is unknown, there are too few elements or no
    whole number of them, or the parents make no tree; ModelTooLarge if there are more than 100,000
    elements or 2^22 features.

    Parameters
    ----------
    name : one of `names()`.
    elements : number of labels, items, vertices or nodes.
    features : one of `feature_names(name)`; the first of them by default.
    parents : parent of each node of the tree, -1 for node 0, its root; for subtrees alone.
    """
    kinds = _entries(name)
    features = features or next(iter(kinds))
    if features not in kinds:
        raise InputError(f"{name} has no features {features!r}", f"must be one of: {', '.join(kinds)}")
    entry = kinds[features]
    if not isinstance(elements, int):
        raise InputError(f"{name} of {elements!r} elements", "must be a whole number")
    if elements < entry.least:
        raise InputError(f"{name} of {elements} elements", f"must have at least {entry.least}")
    if elements > MOST_ELEMENTS:
        raise ModelTooLarge(f"{name} of {elements:,} elements", f"at most {MOST_ELEMENTS:,}")
    if entry.dimension(elements) > MOST_FEATURES:
        raise ModelTooLarge(
            f"{name} of {elements:,} elements has {entry.dimension(elements):,} features", f"at most {MOST_FEATURES:,}"
        )
    if entry.make is None:
        if parents is None:
            raise InputError(f"{name} needs the parents of the nodes", "give one for each node, -1 for node 0")
        if len(parents) != elements:
            raise InputError(f"{elements} nodes have {len(parents)} parents", "must be equally many")
        return Subtrees(parents)
    if parents is not None:
        raise InputError(f"{name} has no parents", "leave them out")
    return entry.make(elements)


def _entries(name: str) -> dict[str, SpaceEntry]:
    if name not in ENTRIES:
        raise InputError(f"no space is called {name!r}", f"must be one of: {', '.join(ENTRIES)}")
    return ENTRIES[name]
