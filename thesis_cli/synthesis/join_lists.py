"""The lists of a bank, as joins compare them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thesis_cli.synthesis.bottom_up import Bank
from thesis_cli.synthesis.inverses import Goal
from thesis_cli.synthesis.join_kernels import Part, View, index, pack
from thesis_cli.synthesis.lanes import WIDTH


@dataclass(frozen=True)
class Root:
    """What is compared, and how a tree of the lists becomes one of the output.

    Attributes
    ----------
    offsets, counts : first number that is compared, and how many, on each example.
    exact : whether the list ends with them.
    goals : lists of these numbers.
    last : the last line: its operation, and its number's row if it takes one; empty if the list is
        the output.
    """

    offsets: tuple[int, ...]
    counts: tuple[int, ...]
    exact: bool
    goals: tuple[Goal, ...]
    last: tuple[int, ...] = ()


class Lists:
    """The lists of a bank as a root compares them, ready for joins."""

    def __init__(self, root: Root, bank: Bank) -> None:
        self.root = root
        examples = len(root.counts)
        places = [(i, m) for m in range(examples) for i in range(root.counts[m])]
        columns = np.array([m * WIDTH + root.offsets[m] + i for i, m in sorted(places)], dtype=np.int64)
        needs = np.add(root.offsets, root.counts)
        rng = np.random.default_rng(0)
        multipliers = rng.integers(2**64, size=len(columns) + examples, dtype=np.uint64) | np.uint64(1)
        used = bank.kept + 1
        rows = np.empty(used, dtype=np.int64)
        packed = np.empty((used, len(columns)), dtype=np.int16)
        hashes = np.empty(used, dtype=np.uint64)
        seen = np.full(2 << used.bit_length(), -1, dtype=np.int32)
        part = Part(columns, needs.astype(np.int64), root.exact, multipliers)
        size = pack(bank.rows.pool, bank.rows.kinds[:used], part, rows, packed, hashes, seen)
        places_ = 2 << max(int(size).bit_length(), 6)
        self.rows = rows[:size]
        self.view = View(
            packed[:size],
            hashes[:size],
            bank.sizes[self.rows],
            np.empty(places_, dtype=np.int32),
            np.empty(size, dtype=np.int32),
            np.empty(places_ // 4, dtype=np.uint64),
            multipliers,
        )
        index(self.view)
        sought = [[goal.values[m][i] for i, m in sorted(places)] for goal in root.goals]  # type: ignore[index]
        self.goals = np.array(sought, dtype=np.int16).reshape(len(root.goals), len(columns))
