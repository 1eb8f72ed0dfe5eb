"""Weighted rows for statistics, and their transformation by functions (Thesis section 4.3.3)."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.release.record import Release
from thesis_cli.privacy.tables.column import Value
from thesis_cli.privacy.tables.expressions import Formula, read_columns
from thesis_cli.privacy.tables.schema import Schema

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class WeightedSample:
    """Rows and weights that queries are evaluated on.

    Attributes
    ----------
    schema : schema of the released columns.
    columns : released and defined columns, by name.
    weights : weights of any sign, shape (rows,).
    """

    schema: Schema
    columns: dict[str, Value] = field(repr=False)
    weights: Floats = field(repr=False)

    @classmethod
    def of_release(cls, release: Release) -> WeightedSample:
        """Rows of a release with their weights."""
        return cls(release.schema, read_columns(release.schema.columns, release.columns), release.weights)

    @classmethod
    def of_rows(cls, schema: Schema, rows: Rows) -> WeightedSample:
        """Rows of equal weight, as the schema decodes them: clamped to its bounds."""
        return cls(schema, read_columns(schema.columns, schema.decode(rows)), np.full(len(rows), 1 / len(rows)))

    def define(self, text: str) -> WeightedSample:
        """Sample with one more column, from `name = expression`.

        Raises
        ------
        InputError : the text does not have this form, the column exists, or `Formula` refuses the
            expression.
        """
        parts = re.fullmatch(r"\s*(?:`([^`]+)`|(\w+))\s*=(?!=)(.*)", text, re.DOTALL)
        name = parts and (parts[1] or parts[2])
        if not parts or not name:
            raise InputError(f"{text!r} is not a definition", "write it as in 'hourly = wage / 40'")
        if name in self.columns:
            raise InputError(f"there is a column {name!r} already", "choose another name", source=text)
        return replace(self, columns={**self.columns, name: self.value(Formula(parts[3]))})

    def value(self, formula: Formula, node: ast.expr | None = None) -> Value:
        """Value of an expression in each row, shape (rows,)."""
        found = formula.value(self.columns, node)
        return replace(found, data=np.broadcast_to(found.data, self.weights.shape))

    def number(self, formula: Formula, node: ast.expr | None = None) -> Floats:
        """Number in each row, as in `Formula.number`, shape (rows,)."""
        return np.broadcast_to(formula.number(self.columns, node), self.weights.shape)

    def truth(self, formula: Formula, node: ast.expr | None = None) -> Floats:
        """Truth in each row, as in `Formula.truth`, shape (rows,)."""
        return np.broadcast_to(formula.truth(self.columns, node), self.weights.shape)

    def is_distribution(self) -> bool:
        """Whether the weights are 0 or more and sum to 1."""
        return bool((self.weights >= 0).all()) and abs(float(self.weights.sum()) - 1) < 1e-9

    def share(self, used: Mask) -> float:
        """Share of all absolute weight that some rows have."""
        size = np.abs(self.weights)
        return float(size[used].sum() / size.sum()) if size.sum() > 0 else 0.0

    def means(self, used: Mask) -> Floats | None:
        """Weights of an expectation over some rows, with 0 for the others; None if they sum to 0 or
        less.

        The weights of all rows are used as they are (Thesis eq. 4.5), even if their sum is not 1,
        because an expectation is linear in the embedding. Those of some rows are divided by their
        sum, the estimate of the rows' probability.
        """
        weights = np.where(used, self.weights, 0.0)
        total = weights.sum()
        if not used.any() or (total <= 0 and not used.all()):
            return None
        return weights if used.all() else weights / total

    def distribution(self, used: Mask) -> Floats | None:
        """Weights of some rows as a distribution: negative ones become 0, the sum 1; None if no
        weight is left.
        """
        weights = np.where(used, np.maximum(self.weights, 0), 0.0)
        total = weights.sum()
        return weights / total if total > 0 else None
