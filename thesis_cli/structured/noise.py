"""Noise on the states of variables that determine a structure, and the MAP problems under it.

Where a feature stands for each state, noise is added to the weights, and the space's own algorithm
solves the problem. Elsewhere noise is added to the labels of a lattice (`lattice.py`). Fewer variables give a
tighter upper bound: by Jensen's inequality, noise of mean 0 on a variable that the others determine
only raises the mean of the maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.structured.lattice import Lattice
from thesis_cli.structured.orderings import added, orders
from thesis_cli.structured.pairs import as_matrices, inner_sums, pair_table, subset_sums
from thesis_cli.structured.partitions import block_lattice
from thesis_cli.structured.partitions import canonical as labelled
from thesis_cli.structured.permutations import PositionPermutations
from thesis_cli.structured.space import Maxima, Space

Shift = Callable[[Floats], tuple[Floats, Floats]]
"""Noise, shape (problems, entries), to what it adds to the weights, shape (problems, dimension), and
to all structures alike, shape (problems,).
"""


@dataclass(frozen=True)
class Noise:
    """Gumbel noise on variables of the structures of a space, for one weight vector.

    Attributes
    ----------
    name : name in options.
    variables : variables with noise, in words.
    terms : number n of noise terms at a structure, at most.
    entries : numbers of noise that a MAP problem takes.
    maximise : noise, shape (problems, entries), to the best structures under it.
    batch : problems to solve at once.
    """

    name: str
    variables: str
    terms: int
    entries: int
    maximise: Callable[[Floats], Maxima]
    batch: int = 128


# Noise that is added to weights


def _in_weights(space: Space, weights: Floats, shift: Shift) -> Callable[[Floats], Maxima]:
    def maximise(noise: Floats) -> Maxima:
        change, constant = shift(noise)
        found = space.maximise(weights + change)
        return Maxima(found.values + constant, found.structures, found.exact)

    return maximise


def _bits(space: Space, weights: Floats, name: str, variables: str, at: Ints) -> Noise:
    """Noise on features that are 0 or 1; the states of one are neighbours in a row of noise."""

    def shift(noise: Floats) -> tuple[Floats, Floats]:
        off, on = noise[:, ::2], noise[:, 1::2]
        change = np.zeros((len(noise), space.dimension))
        change[:, at] = on - off
        return change, off.sum(axis=1)

    return Noise(name, variables, len(at), 2 * len(at), _in_weights(space, weights, shift))


def each(name: str, variables: str, count: Callable[[Space], int], first: int = 0) -> Callable[[Space, Floats], Noise]:
    """Noise on each feature from the first one on."""
    return lambda space, weights: _bits(space, weights, name, variables, np.arange(first, count(space)))


def edge_bits(space: Space, weights: Floats) -> Noise:
    """Edges of the last vertex follow from the others: they close the path that those leave."""
    d = space.elements
    at = pair_table(d)[np.triu_indices(d - 1, 1)]
    return _bits(space, weights, "edges", "each edge but those of the last vertex", at)


def item_positions(space: Space, weights: Floats) -> Noise:
    """The position of the last item follows from the others."""
    d = space.elements

    def shift(noise: Floats) -> tuple[Floats, Floats]:
        change = np.zeros((len(noise), d * d))
        change[:, : d * (d - 1)] = noise
        return change, np.zeros(len(noise))

    maximise = _in_weights(space, weights, shift)
    return Noise("positions", _POSITIONS, d - 1, d * (d - 1), maximise)


_POSITIONS = "the position of each item but the last"


def ranks_positions(space: Space, weights: Floats) -> Noise:
    """A score per item, written as what each position of it adds."""
    d = space.elements
    places = space.features(np.stack([np.roll(np.arange(d), k) for k in range(d)]))
    table = np.empty((d, d))
    for k in range(d):
        table[np.arange(d), np.roll(np.arange(d), k)] = weights * places[k]
    return item_positions(PositionPermutations(d), table.ravel())


def order_positions(space: Space, weights: Floats) -> Noise:
    """Items are placed one after the other, so that a label of the lattice knows the position."""
    d, lattice = space.elements, orders(space.elements)
    before = np.triu(as_matrices(weights[np.newaxis], d)[0], 1)
    gains = np.stack([subset_sums(before[np.newaxis, :, item])[0] for item in range(d)], axis=1)
    places = np.minimum(np.bitwise_count(np.arange(2**d)), d - 1)

    def maximise(noise: Floats) -> Maxima:
        full = np.zeros((len(noise), d, d))
        full[:, : d - 1] = noise.reshape(len(noise), d - 1, d)
        labels = gains + full.transpose(0, 2, 1)[:, places]
        values, sets = lattice.best_paths(labels.reshape(len(noise), -1))
        return Maxima(values, np.argsort(added(sets), axis=1), exact=True)

    return Noise("positions", _POSITIONS, d - 1, d * (d - 1), maximise, _batch(lattice))


def blocks(space: Space, weights: Floats) -> Noise:
    """The least element of each element's block; that of element 0 is known."""
    d, lattice = space.elements, block_lattice(space.elements)
    pairs = inner_sums(as_matrices(weights[np.newaxis], d))[0]
    later, least = np.nonzero(np.tri(d, dtype=bool) & (np.arange(d) > 0)[:, np.newaxis])
    masks = np.arange(1, 2**d)
    lowest = np.concatenate([[0], np.log2(masks & -masks).astype(np.int64)])

    def maximise(noise: Floats) -> Maxima:
        full = np.zeros((len(noise), d, d))
        full[:, later, least] = noise
        labels = np.zeros((len(noise), 2**d))
        for element in range(d):  # the highest of its blocks
            rest = np.arange(1 << element)
            joins = np.where(rest > 0, lowest[rest], element)
            labels[:, (1 << element) + rest] = labels[:, rest] + full[:, element, joins]
        values, sets = lattice.best_paths(labels + pairs)
        covered = (sets[..., np.newaxis] >> np.arange(d)) & 1
        return Maxima(values, labelled(covered.argmax(axis=1)), exact=True)

    return Noise(
        "blocks", "the block of each element but the first", d - 1, len(later), maximise, batch=_batch(lattice)
    )


def _batch(lattice: Lattice) -> int:
    """Problems whose arrays take some tens of MiB."""
    return int(np.clip(2**21 // max(lattice.nodes, lattice.labels, lattice.largest), 1, 128))
