"""Digital nets: points that fill the unit cube evenly (Sobol 1967), with random scrambling.

Coordinates come one after another, as an evaluation asks for them. Any 2^m points of a coordinate have one in each of
2^m equal parts of (0, 1), and pairs of coordinates are nearly as even. A random linear map of the digits and a random
shift (Matousek 1998) make each point uniform on the cube, so that a mean over a net is unbiased. For smooth
functions its error is of order 1 / n^1.5, for functions of bounded variation nearly 1 / n.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from thesis_cli.base.arrays import Floats, Words

DIGITS = 52
"""Binary digits of a coordinate."""
MOST_POINTS = 2**24
"""Largest number of points of a net."""

# A primitive polynomial over the field of two elements, and the first direction numbers: the k-th is odd and below 2^k.
# They were chosen so that pairs of coordinates are even.
_RECURRENCES: tuple[tuple[int, tuple[int, ...]], ...] = (
    (3, (1,)), (7, (1, 3)), (11, (1, 1, 5)), (13, (1, 3, 1)), (19, (1, 3, 5, 7)), (25, (1, 1, 3, 13)),
    (37, (1, 3, 3, 15, 7)), (41, (1, 3, 5, 1, 17)), (47, (1, 3, 3, 11, 21)), (55, (1, 1, 3, 7, 15)),
    (59, (1, 3, 5, 1, 13)), (61, (1, 1, 7, 1, 29)), (67, (1, 1, 7, 15, 25, 59)), (91, (1, 1, 3, 11, 3, 41)),
    (97, (1, 1, 3, 5, 31, 45)), (103, (1, 1, 3, 13, 5, 3)), (109, (1, 3, 7, 1, 13, 45)), (115, (1, 3, 1, 3, 11, 49)),
    (131, (1, 3, 1, 15, 11, 57, 117)), (137, (1, 3, 7, 15, 25, 1, 123)), (143, (1, 3, 3, 9, 19, 49, 11)),
    (145, (1, 1, 7, 9, 1, 21, 55)), (157, (1, 3, 1, 1, 29, 43, 109)), (167, (1, 3, 5, 7, 29, 3, 73)),
    (171, (1, 3, 5, 5, 1, 11, 119)), (185, (1, 1, 1, 1, 15, 55, 47)), (191, (1, 1, 3, 5, 15, 47, 87)),
    (193, (1, 1, 1, 9, 7, 43, 103)), (203, (1, 1, 7, 15, 7, 27, 25)), (211, (1, 3, 7, 9, 13, 57, 119)),
    (213, (1, 3, 3, 11, 19, 55, 29)),
)  # fmt: skip


@cache
def _directions(dimension: int) -> tuple[int, ...]:
    """Direction numbers of a coordinate, each with its first digit at the highest of `DIGITS` bits."""
    count = MOST_POINTS.bit_length()
    if dimension == 0:
        return tuple(1 << (DIGITS - 1 - k) for k in range(count))
    polynomial, first = _RECURRENCES[dimension - 1]
    degree, numbers = len(first), list(first)
    for k in range(degree, count):
        number = numbers[k - degree] ^ (numbers[k - degree] << degree)
        for i in range(1, degree):
            if polynomial >> (degree - i) & 1:
                number ^= numbers[k - i] << i
        numbers.append(number)
    return tuple(number << (DIGITS - 1 - k) for k, number in enumerate(numbers))


class Net:
    """A scrambled net of some points.

    Parameters
    ----------
    count : number of points, up to `MOST_POINTS`; powers of 2 are filled most evenly.
    rng : generator that scrambles.
    """

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self.count, self.dimension = count, 0
        self.rng = rng

    def column(self) -> Floats:
        """The next coordinate of all points, shape (count,), each uniform on (0, 1)."""
        self.dimension += 1
        if self.dimension > 1 + len(_RECURRENCES):  # evenly spread by itself, in random order
            return np.asarray((self.rng.permutation(self.count) + self.rng.random(self.count)) / self.count)
        found = np.empty(self.count, np.uint64)
        found[0] = self.rng.integers(1 << DIGITS, dtype=np.uint64)
        bits = (self.count - 1).bit_length()
        for k, number in enumerate(self._scrambled(_directions(self.dimension - 1)[:bits])):
            start = 1 << k
            found[start : 2 * start] = found[: min(start, self.count - start)] ^ number
        return np.asarray((found + 0.5) * 2.0**-DIGITS)

    def _scrambled(self, numbers: tuple[int, ...]) -> Words:
        """Numbers under a random linear map that keeps each first digit: digit k changes only later ones."""
        places = np.arange(DIGITS, dtype=np.uint64)
        later = self.rng.integers(1 << DIGITS, size=DIGITS, dtype=np.uint64)
        images = (later & ((np.uint64(1) << places) - np.uint64(1))) | (np.uint64(1) << places)
        digits = np.array(numbers, np.uint64)[:, np.newaxis] >> places & np.uint64(1)
        return np.asarray(np.bitwise_xor.reduce(digits * images, axis=1))
