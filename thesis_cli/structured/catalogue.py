"""The spaces by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError, ModelTooLarge
from thesis_cli.structured.cycles import CycleSets, HamiltonianCycles
from thesis_cli.structured.hypercube import Hypercube, PairHypercube
from thesis_cli.structured.noise import (
    Noise,
    blocks,
    each,
    edge_bits,
    item_positions,
    order_positions,
    ranks_positions,
)
from thesis_cli.structured.partitions import LARGEST_PARTITION, Partitions
from thesis_cli.structured.permutations import (
    LARGEST_ORDER,
    OrderPermutations,
    PositionPermutations,
    RankPermutations,
)
from thesis_cli.structured.rankings import Mallows, PlackettLuce
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
    noises : noise on variables of its structures, by the variables; the first one gave the tightest
        upper bounds in experiments, and at least one takes a space of any size. None where log-potentials
        are not linear.
    least : fewest elements.
    """

    make: Callable[[int], Space] | None
    dimension: Callable[[int], int]
    noises: Mapping[str, NoiseEntry]
    least: int = 1


class NoiseEntry(NamedTuple):
    """Noise that a space can have, for a weight vector, up to some number of elements."""

    make: Callable[[Space, Floats], Noise]
    most: int = MOST_ELEMENTS


def _pairs(elements: int) -> int:
    return elements * (elements - 1) // 2


BITS = {"bits": NoiseEntry(each("bits", "each label", lambda space: space.elements))}
NODES = {"nodes": NoiseEntry(each("nodes", "each node but the root", lambda space: space.elements, 1))}
ORDERS = {
    "positions": NoiseEntry(order_positions, LARGEST_ORDER),
    "orders": NoiseEntry(each("orders", "the order of each pair of items", lambda space: space.dimension)),
}
PAIRS = {
    "blocks": NoiseEntry(blocks, LARGEST_PARTITION),
    "pairs": NoiseEntry(each("pairs", "each pair of elements", lambda space: space.dimension)),
}
EDGES = {"edges": NoiseEntry(edge_bits)}

ENTRIES: dict[str, dict[str, SpaceEntry]] = {
    "hypercube": {
        "linear": SpaceEntry(Hypercube, lambda d: d, BITS),
        "pairs": SpaceEntry(PairHypercube, lambda d: d + _pairs(d), BITS),
    },
    "permutations": {
        "positions": SpaceEntry(PositionPermutations, lambda d: d * d, {"positions": NoiseEntry(item_positions)}),
        "ranks": SpaceEntry(RankPermutations, lambda d: d, {"positions": NoiseEntry(ranks_positions)}),
        "orders": SpaceEntry(OrderPermutations, _pairs, ORDERS),
        "plackett-luce": SpaceEntry(PlackettLuce, lambda d: d, {}),
        "mallows": SpaceEntry(Mallows, lambda d: d + 1, {}),
    },
    "cycles": {"edges": SpaceEntry(HamiltonianCycles, _pairs, EDGES, least=3)},
    "cycle-sets": {"edges": SpaceEntry(CycleSets, _pairs, EDGES, least=3)},
    "subtrees": {"nodes": SpaceEntry(None, lambda d: d, NODES)},
    "partitions": {"pairs": SpaceEntry(Partitions, _pairs, PAIRS)},
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


def noise_names(space: Space) -> list[str]:
    """The variables that can have noise; the first gave the tightest upper bounds in experiments."""
    return [name for name, entry in _noises(space).items() if space.elements <= entry.most]


def noise_on(space: Space, weights: Floats, name: str | None = None) -> Noise:
    """Noise on the variables of a space. Raises InputError if the space has no such variables, or
    too many.

    Parameters
    ----------
    space : the space.
    weights : one weight vector, shape (dimension,).
    name : one of `noise_names(space)`; the first of them by default.
    """
    known = noise_names(space)
    name = name or known[0]
    if name not in known:
        problem = f"{space.name} of {space.elements} elements has no noise on {name!r}"
        raise InputError(problem, f"must be one of: {', '.join(known)}")
    return _noises(space)[name].make(space, weights)


def kind_of(space: Space) -> str:
    """Name of the features of a space in the catalogue."""
    kinds = ENTRIES[space.name]
    return next(kind for kind, entry in kinds.items() if entry.make in (None, type(space)))


def _noises(space: Space) -> Mapping[str, NoiseEntry]:
    return ENTRIES[space.name][kind_of(space)].noises


def _entries(name: str) -> dict[str, SpaceEntry]:
    if name not in ENTRIES:
        raise InputError(f"no space is called {name!r}", f"must be one of: {', '.join(ENTRIES)}")
    return ENTRIES[name]
