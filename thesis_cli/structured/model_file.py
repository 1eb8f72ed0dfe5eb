"""A space with one weight vector, and the TOML file that holds it."""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError, counted, nearest
from thesis_cli.models.target_objects import LARGEST
from thesis_cli.models.tokens import decode, is_number, read_whole, unreadable
from thesis_cli.structured import catalogue
from thesis_cli.structured.catalogue import kind_of
from thesis_cli.structured.space import Space

MAX_BYTES = 2**26
"""Size of the largest file that is read."""

KEYS = ("space", "features", "elements", "names", "parents", "weights")


@dataclass(frozen=True)
class StructuredModel:
    """The distribution exp(<phi(y), w>) / Z over the structures of a space.

    Attributes
    ----------
    space : the space.
    weights : w, finite, shape (dimension,).
    names : names of the elements; empty if they have none.
    """

    space: Space
    weights: Floats
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.space.checked(np.asarray(self.weights)[np.newaxis])
        with np.errstate(over="ignore"):
            total = float(np.abs(self.weights).sum())
        if total >= LARGEST:
            problem = f"the weights sum to {total:.3g} in absolute value"
            raise InputError(problem, f"it must be less than {LARGEST:g}, where adding 1 still counts")
        if self.names and len(set(self.names)) != self.space.elements:
            problem = f"names has {counted(len(set(self.names)), 'name')}"
            raise InputError(problem, f"the {self.space.elements} {_word(self.space)} must have one each")

    def describe(self) -> str:
        """`permutations of 6 items, 15 features (orders), 720 structures`."""
        space, size = self.space, self.space.size()
        shown = f"{size:,}" if size < 10**15 else f"1e{len(str(size)) - 1}" if size < 10**4000 else "very many"
        elements = f"{space.elements:,} {_word(space)}"
        features = f"{counted(space.dimension, 'feature')} ({kind_of(space)})"
        return f"{space.name} of {elements}, {features}, {shown} structure{'s' * (size != 1)}"

    def columns(self) -> list[str]:
        """Names for the columns of a table of structures."""
        if self.space.in_order:
            return [f"at_{place}" for place in range(self.space.width)]
        return list(self.names) or [f"{self.space.word}_{k}" for k in range(self.space.width)]

    def text(self, structure: Ints) -> str:
        """A structure in words, such as `{a, c}` or `b > a > c`, of the elements' names."""
        return self.space.text(structure, self.names or tuple(str(k) for k in range(self.space.elements)))


def load(path: str | Path) -> StructuredModel:
    """Read a model from a TOML file.

    Its keys are `space`, `weights` (numbers, or the name of a CSV file beside it) and, as the space
    needs them, `elements`, `features`, `names` and `parents`. Raises InputError naming the file,
    the key or the row, and what would be right; ModelTooLarge if there are more than 2^22 features.
    """
    try:
        data = read_whole(path, MAX_BYTES, "put the weights into a CSV file")
        return parse(data.decode("utf-8-sig"), Path(path).absolute().parent)
    except UnicodeDecodeError:
        raise InputError("not text", "give a TOML file in UTF-8", source=path) from None
    except OSError as error:
        raise unreadable(error, str(path), "give a TOML file") from error
    except InputError as error:
        raise error.at(path) from error


def parse(text: str, folder: Path) -> StructuredModel:
    """A model from the text of a TOML file. Raises InputError or ModelTooLarge as for `load`.

    Parameters
    ----------
    folder : folder of a CSV file of weights.
    """
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        message, _, place = str(error).partition(" (at line ")
        line = re.match(r"\d+", place)
        problem = f"not TOML: {message}" + (f" in line {line[0]}" if line else "")
        raise InputError(problem, "give a file with the keys space and weights") from None
    for key in content:
        if key not in KEYS:
            raise InputError(f"unknown key {key[:60]!r}", nearest(key, KEYS))
    for key in ("space", "weights"):
        if key not in content:
            raise InputError(f"{key} is missing", f"give {key} = ...")
    names = _names(content.get("names", []))
    parents = _parents(content.get("parents"))
    space = catalogue.space(
        _text("space", content["space"]),
        _elements(content.get("elements"), names, parents),
        _text("features", content["features"]) if "features" in content else None,
        parents,
    )
    given = content["weights"]
    if isinstance(given, str):
        rows = _read_rows(folder / given, given)
        try:
            return StructuredModel(space, weights_of(rows, space), names)
        except InputError as error:
            raise error.at(given) from None
    return StructuredModel(space, weights_of(_rows(given), space), names)


def weights_of(rows: Sequence[Sequence[float]], space: Space) -> Floats:
    """The weight vector that rows of numbers stand for, shape (dimension,).

    A list of as many numbers as there are features, in one row or one column, is the vector. A
    square table with a row for each element is, for `positions`, the weights of item by position;
    for features of pairs it must be symmetric, and its diagonal holds the weights of single labels
    of a hypercube and is 0 elsewhere. Raises InputError if the numbers have another form, or are
    not finite.
    """
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        at = next(k for k, row in enumerate(rows) if len(row) != len(rows[0]))
        raise InputError(f"row {at + 1} of the weights has {counted(len(rows[at]), 'number')}, row 1 {len(rows[0])}")
    table = np.array(rows, dtype=np.float64).reshape(len(rows), widths.pop() if widths else 0)
    if not np.isfinite(table).all():
        row, column = (int(k) for k in np.argwhere(~np.isfinite(table))[0])
        place = f"weight {row + column + 1}" if 1 in table.shape else f"weight in row {row + 1}, column {column + 1}"
        raise InputError(f"{place} is {table[row, column]:g}", "it must be finite")
    d, square = space.elements, _square(space)
    if table.size == space.dimension and (1 in table.shape or table.size == 0):
        return table.ravel()
    if not square or table.shape != (d, d):
        form = f"or a table of {d} x {d}" if square else f"for the features {kind_of(space)}"
        shape = counted(table.size, "number") if 1 in table.shape else f"{table.shape[0]} x {table.shape[1]} numbers"
        raise InputError(f"the weights are {shape}", f"give {counted(space.dimension, 'number')} {form}")
    return table.ravel() if kind_of(space) == "positions" else _of_pairs(table, space.diagonal)


def _square(space: Space) -> bool:
    """Whether a square table stands for weights of the features."""
    return kind_of(space) in ("positions", "edges", "pairs")


def _of_pairs(table: Floats, diagonal: bool) -> Floats:
    """Weights of pairs, after those on the diagonal if these are weights."""
    wrong = np.argwhere(table != table.T)
    if wrong.size:
        row, column = (int(k) for k in wrong[0])
        problem = f"weights {table[row, column]:g} in row {row + 1}, column {column + 1} and {table[column, row]:g}"
        raise InputError(f"{problem} across the diagonal differ", "a table of pairs is symmetric")
    if not diagonal and table.diagonal().any():
        at = int(np.flatnonzero(table.diagonal())[0])
        raise InputError(f"the weight in row {at + 1}, column {at + 1} is {table[at, at]:g}", "the diagonal must be 0")
    pairs = table[np.triu_indices(len(table), 1)]
    return np.concatenate([table.diagonal(), pairs]) if diagonal else pairs


def _read_rows(path: Path, name: str) -> list[list[float]]:
    """Rows of numbers of a CSV file; a first line without numbers is a heading."""
    try:
        text = decode(read_whole(path, MAX_BYTES, "give fewer weights"), name)
        rows = [row for row in csv.reader(text.splitlines()) if row]
    except OSError as error:
        raise unreadable(error, name, "weights must be numbers, or the name of a CSV file beside the model") from error
    except csv.Error as error:
        raise InputError(f"no CSV file: {error}", source=name) from None
    if rows and not any(is_number(word.strip()) for word in rows[0]):
        rows = rows[1:]
    for k, row in enumerate(rows):
        for word in row:
            if not is_number(word.strip()):
                raise InputError(f"row {k + 1} has {word[:40]!r}", "every entry must be a number", source=name)
    return [[float(word) for word in row] for row in rows]


def _rows(given: Any) -> list[list[float]]:
    """Rows of numbers of a list of numbers, or of lists of numbers."""
    if not isinstance(given, list):
        raise InputError(f"weights is {_shown(given)}", "it must be a list of numbers, or the name of a CSV file")
    rows = given if given and all(isinstance(row, list) for row in given) else [given]
    return [[_number("weights", number) for number in row] for row in rows]


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{key} holds {_shown(value)}", "every entry must be a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _elements(given: Any, names: Sequence[str], parents: Sequence[int] | None) -> int:
    counts = {"names": len(names)} if names else {}
    counts |= {"parents": len(parents)} if parents is not None else {}
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, int):
            raise InputError(f"elements is {_shown(given)}", "it must be a whole number")
        counts["elements"] = given
    if not counts:
        raise InputError("elements is missing", "give elements = a whole number")
    (first, count), *others = counts.items()
    for key, other in others:
        if other != count:
            raise InputError(f"{first} has {count} and {key} {other}", "each element must have one entry")
    return count


def _names(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(name, str) and name for name in given):
        raise InputError(f"names is {_shown(given)}", "it must be a list of texts")
    for k, name in enumerate(given):
        if name in given[:k]:
            raise InputError(f"names has {name[:40]!r} twice", "each element must have a name of its own")
    return tuple(given)


def _parents(given: Any) -> list[int] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(p, int) and not isinstance(p, bool) for p in given):
        raise InputError(f"parents is {_shown(given)}", "it must be a list of node numbers, -1 for the root")
    if any(abs(p) >= 2**31 for p in given):
        raise InputError("parents has a number beyond 2^31", "parents are node numbers")
    return given


def _text(key: str, given: Any) -> str:
    if not isinstance(given, str):
        raise InputError(f"{key} is {_shown(given)}", "it must be text")
    return given


def _word(space: Space) -> str:
    return space.word if space.elements == 1 else {"vertex": "vertices"}.get(space.word, f"{space.word}s")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
