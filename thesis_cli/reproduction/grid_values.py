"""The values of one option of a grid: a list, spaced numbers, or files that fit a pattern."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import nearest
from thesis_cli.reproduction.parameters import shown

MOST_VALUES = 10**6
"""Values of one option."""


def grid_values(given: Any, folder: Path) -> Sequence[Any]:
    """The values that a list, or a table with `files` or with `from`, `to` and `count`, stands for.

    Raises
    ------
    InputError : it is neither, or stands for none.
    """
    if isinstance(given, dict):
        kind = ("files",) if "files" in given else ("from", "to", "count", "log")
        check_keys(given, kind)
        return _files(given["files"], folder) if "files" in given else _spaced(**{"log": False, **given})
    if not isinstance(given, list):
        raise InputError(f"{shown(given)} is no list", "give a list of values; one value goes under [options]")
    if not given:
        raise InputError("an empty list", "give one value or more")
    return given


def check_keys(found: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a table with other keys.

    Raises
    ------
    InputError : naming the key, and the known one that is nearest.
    """
    for key in found:
        if key not in known:
            raise InputError(f"unknown key {key!r}", nearest(key, known))


def _files(pattern: Any, folder: Path) -> list[str]:
    """Files that fit a pattern, by name."""
    if not isinstance(pattern, str):
        raise InputError(f"files is {shown(pattern)}", 'it must be a pattern such as "models/*.uai"')
    found = sorted(name for name in glob.glob(pattern, root_dir=folder, recursive=True) if (folder / name).is_file())
    if not found:
        raise InputError(f"no file fits {pattern}", f"give a pattern of files in {folder}")
    return found


def _spaced(**given: Any) -> list[float] | list[int]:
    """Numbers from one to another, ends included, of at most 12 digits; whole if the ends are."""
    for key in ("from", "to", "count"):
        if key not in given:
            raise InputError(f"no {key}", "give from, to and count")
        number = given[key]
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= sys.float_info.max:
            raise InputError(f"{key} is {shown(number)}", "it must be a finite number")
    low, high, count, log = (given[key] for key in ("from", "to", "count", "log"))
    if not isinstance(count, int) or not 1 <= count <= MOST_VALUES:
        raise InputError(f"count is {count}", f"it must be a whole number from 1 to {MOST_VALUES:,}")
    if not isinstance(log, bool):
        raise InputError(f"log is {shown(log)}", "it must be true or false")
    if log and min(low, high) <= 0:
        raise InputError(f"log is true from {low} to {high}", "both ends must be above 0")
    first, last = Fraction(str(low)), Fraction(str(high))  # decimals as they are written
    shares = (Fraction(k, max(1, count - 1)) for k in range(count))
    spaced = (low ** float(1 - t) * high ** float(t) if log else float(first + t * (last - first)) for t in shares)
    numbers = [float(f"{x:.12g}") for x in spaced]
    whole = isinstance(low, int) and isinstance(high, int) and all(map(float.is_integer, numbers))
    return [int(x) for x in numbers] if whole else numbers
