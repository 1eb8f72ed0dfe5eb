"""Compiled sets of keys: tables of words with open addressing, 0 where there is no entry.

An entry is a key, whose 4 lowest bits hold the number of lines of a program instead.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from thesis_cli.base.arrays import Bools, Ints, Words
from thesis_cli.base.compiled import helper, kernel

LENGTH = np.uint64(15)
"""Bits of an entry that hold the number of lines."""


@helper(cache=True)
def place_of(table, key):
    """Place in the table where a key stands, or belongs."""
    mask = table.size - 1
    place = np.int64(key >> np.uint64(5)) & mask
    while table[place] and (table[place] ^ key) > LENGTH:
        place = (place + 1) & mask
    return place


@helper(cache=True)
def enter(table, key, length):
    """Enter a key with the length of the program; returns whether it is new."""
    place = place_of(table, key)
    if table[place]:
        return False
    table[place] = key & ~LENGTH | np.uint64(length)
    return True


@helper(cache=True)
def shorten(table, key, length):
    """Note that a program of so many lines has a key, which is in the table."""
    place = place_of(table, key)
    if np.int64(table[place] & LENGTH) > length:
        table[place] = key & ~LENGTH | np.uint64(length)


@kernel()
def enter_keys(table: Words, keys: Words, length: int, new: Bools) -> int:
    """Enter keys as those of programs of so many lines, into a table that has room; the number of
    new ones.

    `new`, shape (P,), is written: whether a key is neither in the table nor above it.
    """
    entries = 0
    for i in range(keys.size):
        new[i] = enter(table, keys[i], length)
        entries += new[i]
    return entries


@kernel()
def lengths_of(table: Words, keys: Words, lengths: Ints) -> None:
    """Write the lines that the table has for each key."""
    for i in range(keys.size):
        lengths[i] = table[place_of(table, keys[i])] & LENGTH


@kernel()
def rehash(old: Words, table: Words) -> None:
    """Enter all keys of a table into an empty larger one."""
    for key in old:
        if key:
            table[place_of(table, key)] = key
