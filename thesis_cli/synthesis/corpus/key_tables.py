"""Sets of 64-bit keys of programs, which grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from thesis_cli.base.arrays import Bools, Ints, Words


class KeyTable:
    """Keys, each with the number of lines of the first program that had it.

    Attributes
    ----------
    words : the table, as `key_table_kernels` describes it.
    entries : in use.
    """

    def __init__(self) -> None:
        self.words: Words = np.zeros(2**10, dtype=np.uint64)
        self.entries = 0

    def make_room(self, keys: int) -> None:
        """Grow until so many more keys fit; at most half of it is then in use."""
        from thesis_cli.synthesis.corpus.key_table_kernels import rehash

        size = len(self.words)
        while size < 2 * (self.entries + keys + 2):
            size *= 2
        if size > len(self.words):
            self.words, old = np.zeros(size, dtype=np.uint64), self.words
            rehash(old, self.words)

    def enter(self, keys: Words, length: int) -> Bools:
        """Enter keys, shape (P, .), of programs of so many lines; whether each is new."""
        from thesis_cli.synthesis.corpus.key_table_kernels import enter_keys

        self.make_room(keys.size)
        new = np.zeros(keys.size, dtype=np.bool_)
        self.entries += enter_keys(self.words, np.ascontiguousarray(keys).ravel(), length, new)
        return new.reshape(keys.shape)

    def lengths(self, keys: Words) -> Ints:
        """Number of lines that each key, shape (P, .), was entered with; 0 if it was not."""
        from thesis_cli.synthesis.corpus.key_table_kernels import lengths_of

        lengths = np.zeros(keys.size, dtype=np.int64)
        lengths_of(self.words, np.ascontiguousarray(keys).ravel(), lengths)
        return lengths.reshape(keys.shape)

    def copy(self) -> KeyTable:
        """An independent copy."""
        other = KeyTable()
        other.words, other.entries = self.words.copy(), self.entries
        return other
