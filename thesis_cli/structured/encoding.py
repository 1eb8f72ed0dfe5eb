"""Inputs as numbers: standardised, categories as indicators, missing values marked, trees' predictions beside them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.errors import InputError
from thesis_cli.structured.forest import Forest, grown

MOST_LEVELS = 1000
"""Most categories of an input."""


@dataclass(frozen=True)
class Input:
    """An input, and the columns of numbers that stand for it.

    A number is a column, a category an indicator for each level. If values were missing in training, another
    column marks them. Where a value is missing or has a level that training did not have, the others are 0,
    which is their mean after standardisation.

    Attributes
    ----------
    name : name of its column.
    levels : its categories; None if it is a number.
    marked : whether a column marks missing values.
    """

    name: str
    levels: tuple[str, ...] | None = None
    marked: bool = False

    @classmethod
    def of(cls, name: str, cells: npt.NDArray[Any], categorical: bool) -> Input:
        """An input from the values of its column. Raises InputError for too many categories."""
        if not categorical and cells.dtype != object:
            return cls(name, None, bool(np.isnan(cells).any()))
        texts = _texts(cells)
        levels = sorted(set(texts) - {""})
        if len(levels) > MOST_LEVELS:
            raise InputError(
                f"{name!r} has {len(levels):,} categories", f"at most {MOST_LEVELS:,}; leave names of rows out"
            )
        return cls(name, tuple(levels), "" in texts)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of numbers."""
        own = [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels]
        return own + [f"{self.name} missing"] * self.marked

    def encoded(self, cells: npt.NDArray[Any]) -> Floats:
        """The columns of numbers, nan where a value is missing or unknown, shape (n, columns). Raises
        InputError for text where training had numbers."""
        if self.levels is None:
            if cells.dtype == object and (cells != "").any():
                text = next(cell for cell in cells if cell)
                raise InputError(f"{self.name!r} is {text[:40]!r}", "it was a number in training")
            values = np.full((len(cells), 1), np.nan) if cells.dtype == object else cells[:, None]
        else:
            texts = np.array(_texts(cells))
            values = np.stack([texts == level for level in self.levels], axis=1).astype(float)
            values[values.sum(axis=1) == 0] = np.nan
        if not self.marked:
            return values
        missing = np.isnan(cells) if cells.dtype != object else cells == ""
        return np.column_stack([values, missing.astype(float)])


def _texts(cells: npt.NDArray[Any]) -> list[str]:
    """Values of a column as text, empty where they are missing."""
    if cells.dtype == object:
        return [str(cell) for cell in cells]
    return ["" if cell != cell else f"{cell:g}" for cell in cells.tolist()]


@dataclass(frozen=True, eq=False)
class Encoding:
    """How inputs become the numbers z of which weights are linear functions.

    Attributes
    ----------
    inputs : the inputs.
    shift, scale : what is taken off each column of numbers, and what the rest is divided by; those of the
        trees' predictions come last.
    forest : trees on the other columns; None if there are none.
    """

    inputs: tuple[Input, ...]
    shift: Floats
    scale: Floats
    forest: Forest | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the numbers of z but for the last, which is 1."""
        outputs = 0 if self.forest is None else self.forest.values.shape[1]
        return [name for one in self.inputs for name in one.columns] + [f"trees {k + 1}" for k in range(outputs)]

    def __call__(self, cells: Sequence[npt.NDArray[Any]], count: int) -> Floats:
        """z for rows of inputs, shape (n, columns + 1). Raises InputError as for `Input.encoded`.

        Parameters
        ----------
        cells : a column for each input.
        count : n.
        """
        parts = [one.encoded(column) for one, column in zip(self.inputs, cells, strict=True)]
        values = np.column_stack([np.empty((count, 0)), *parts])
        own = values.shape[1]
        values = np.nan_to_num((values - self.shift[:own]) / self.scale[:own])
        trees = [] if self.forest is None else [(self.forest.predict(values) - self.shift[own:]) / self.scale[own:]]
        return np.column_stack([values, *trees, np.ones(count)])


def learnt_encoding(
    table: Mapping[str, npt.NDArray[Any]], count: int, categories: Collection[str], standardise: bool
) -> tuple[Encoding, Floats]:
    """The encoding of the inputs of a training, and z.

    Parameters
    ----------
    table : columns of the inputs by name.
    count : number of rows.
    categories : names of inputs whose numbers stand for categories.
    standardise : take each column of numbers less its mean, over its standard deviation.
    """
    inputs = tuple(Input.of(name, cells, name in categories) for name, cells in table.items())
    parts = [one.encoded(cells) for one, cells in zip(inputs, table.values(), strict=True)]
    values = np.column_stack([np.empty((count, 0)), *parts])
    shift, scale = standardisation(values) if standardise else (0 * values[0], 0 * values[0] + 1)
    encoding = Encoding(inputs, shift, scale)
    return encoding, encoding(list(table.values()), count)


def with_trees(encoding: Encoding, inputs: Floats, targets: Floats, rows: Ints) -> tuple[Encoding, Floats]:
    """An encoding with trees that predict some targets, and z with what those trees predict for each row
    that have not seen it.

    Parameters
    ----------
    inputs : z without trees, shape (m, columns + 1).
    targets : shape (k, outputs).
    rows : the row of `inputs` of each target, shape (k,); of other rows z is without meaning.
    """
    forest, unseen = grown(inputs[rows, :-1], targets, np.random.default_rng(0))
    shift, scale = standardisation(unseen)
    trees = np.zeros((len(inputs), targets.shape[1]))
    trees[rows] = (unseen - shift) / scale
    found = Encoding(encoding.inputs, np.append(encoding.shift, shift), np.append(encoding.scale, scale), forest)
    return found, np.column_stack([inputs[:, :-1], trees, np.ones(len(inputs))])


def design(values: Floats, shift: Floats, scale: Floats) -> Floats:
    """Standardised inputs and a column of ones, shape (n, p) -> (n, p + 1)."""
    return np.column_stack([(values - shift) / scale, np.ones(len(values))])


def standardisation(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column without what is missing; 1 for a constant column."""
    known = ~np.isnan(values)
    counts, filled = np.maximum(known.sum(axis=0), 1), np.where(known, values, 0.0)
    mean = filled.sum(axis=0) / counts
    spread = np.sqrt((np.where(known, values - mean, 0.0) ** 2).sum(axis=0) / counts)
    spread[spread <= 1e-12 * np.abs(filled).max(axis=0, initial=0.0)] = 1.0
    return mean, spread
