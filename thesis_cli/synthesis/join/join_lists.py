"""The lists of a bank, as joins compare them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thesis_cli.synthesis.join.inverses import Path
from thesis_cli.synthesis.join.join_view_kernels import Part, View, index, pack
from thesis_cli.synthesis.language.lanes import WIDTH, Lanes
from thesis_cli.synthesis.search.bottom_up import Bank


@dataclass(frozen=True)
class Root:
    """What is compared, and how a tree of the lists becomes one of the output.

    Attributes
    ----------
    offsets, counts : first number that is compared, and how many, on each example.
    exact : whether the list ends with them.
    last : the last line: its operation, and its number's row if it takes one; empty if the list is
        the output.
    factor : by which its joins count as dearer than they are, so that they come later.
    """

    offsets: tuple[int, ...]
    counts: tuple[int, ...]
    exact: bool
    last: tuple[int, ...] = ()
    factor: float = 1.0

    @property
    def places(self) -> list[tuple[int, int]]:
        """Place in the list and example of each number that is compared, K in all: the first ones
        of all examples, then the second ones, and so on."""
        return sorted((i, m) for m, count in enumerate(self.counts) for i in range(count))


@dataclass(frozen=True, eq=False)
class Goals:
    """Lists that lead to the output.

    Attributes
    ----------
    numbers : what is compared of each, shape (G, K).
    paths : how each becomes the list of the root.
    size : operations of the paths, at least.
    single, double : whether they are sought by joins, and by double joins.
    """

    numbers: Lanes
    paths: tuple[Path, ...]
    size: int
    single: bool = True
    double: bool = True

    def __len__(self) -> int:
        return len(self.paths)


class Lists:
    """The lists of a bank up to a size, ready for joins.

    Attributes
    ----------
    view : what is compared of each, N lists.
    rows : their rows of the bank, shape (N,).
    """

    def __init__(self, root: Root, bank: Bank, size: int) -> None:
        columns = np.array([m * WIDTH + root.offsets[m] + i for i, m in root.places], dtype=np.int64)
        needs = np.add(root.offsets, root.counts)
        rng = np.random.default_rng(0)
        multipliers = rng.integers(2**64, size=len(columns), dtype=np.uint64) | np.uint64(1)
        sizes = bank.sizes
        used = int(np.searchsorted(sizes, size, side="right"))
        rows = np.empty(used, dtype=np.int64)
        packed = np.empty((used, len(columns)), dtype=np.int16)
        keys = np.empty((used, 2), dtype=np.uint64)
        seen = np.full(2 << used.bit_length(), -1, dtype=np.int32)
        part = Part(columns, needs.astype(np.int64), root.exact, multipliers)
        count = int(pack(bank.rows.pool, bank.rows.kinds[:used], part, rows, packed, keys, seen))
        heads = 2 << max(count.bit_length(), 6)
        self.rows = rows[:count].copy()
        self.view = View(
            packed[:count].copy(),
            keys[:count, 0].copy(),
            keys[:count, 1].copy(),
            sizes[self.rows],
            np.empty(heads, dtype=np.int32),
            np.empty(count, dtype=np.int32),
            np.empty(heads // 4, dtype=np.uint64),
            multipliers,
        )
        index(self.view)

    def __len__(self) -> int:
        return len(self.rows)

    def of_size(self, size: int) -> slice:
        """Those of one size."""
        first, last = np.searchsorted(self.view.sizes, [size, size + 1])
        return slice(int(first), int(last))
