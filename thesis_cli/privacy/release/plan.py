"""The plan of a release: all that is chosen before the table is read, and the public random draws that
it stands for.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.privacy.copula.copula import Favour
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Budget, NoiseName
from thesis_cli.privacy.mechanisms.stages import ROWS, Unit
from thesis_cli.privacy.release.methods import METHODS, DPMethod
from thesis_cli.privacy.tables.repair import drawn
from thesis_cli.privacy.tables.schema import Schema

Algorithm = Literal["mst", "aim"]
"""Choice of the marginals that a release by marginals measures."""
Weights = Literal["uniform", "simplex", "l1", "raw"]
Spend = Callable[[Budget, float | None], None]
"""Called with the budget, and rho if the release has one, just before the noise is drawn."""

WEIGHT = "weight"
"""Name of the column of weights, if the CSV file has one."""
PUBLIC = "rows of a public file, SHA-256 "


@dataclass(frozen=True)
class ReleasePlan:
    """Settings of a release; all of them are public and chosen without the table.

    Attributes
    ----------
    method : name of a row of `METHODS`.
    size : number J of random features, of public points if they are drawn from the schema, or of
        rows of a small table (exponential).
    public : public rows whose span the subspace method takes, instead of points drawn from the
        schema.
    unit : difference between neighbouring tables.
    entropy : seed of the public random draws (features, points, starts). They are not part of the
        noise: the privacy guarantee holds for any value, and the record contains it.
    favour : statistics that the rows should keep best (copula).
    algorithm : choice of the marginals (marginals).
    known : distributions of the last columns, if these are public, as in `CopulaStages` (copula).
    pair : neighbouring pairs of linked tables, in words; empty for a single table.
    """

    schema: Schema
    budget: Budget
    method: str = "features"
    noise: NoiseName = "gaussian"
    size: int = METHODS["features"].size
    public: Rows | None = None
    unit: Unit = ROWS
    entropy: int = field(default_factory=lambda: secrets.randbits(128))
    favour: Favour = "relations"
    algorithm: Algorithm = "mst"
    known: tuple[tuple[float, ...], ...] = ()
    pair: str = ""

    @property
    def neighbours(self) -> str:
        """Pairs of tables that are neighbours, in words."""
        return self.pair or self.unit.text

    @property
    def row(self) -> DPMethod:
        """Row of the method."""
        return METHODS[self.method]

    @property
    def basis(self) -> str:
        """The map from a table to the vector or choice, in words."""
        return self.row.basis if self.public is None else f"{PUBLIC}{digest(self.public)}"


def check_rows(
    schema: Schema, method: str, weights: Weights, weight_bound: float = 1.0, time_limit: float | None = None
) -> None:
    """Refuse what `synthetic` would refuse (`InputError`), before a budget is spent; parameters as there."""
    if weights not in METHODS[method].weights:
        known = " or ".join(METHODS[method].weights)
        raise InputError(f"a release by {method} has no {weights} weights", f"they must be {known}")
    if weights != "uniform" and WEIGHT in schema.names:
        raise InputError(f"the schema has a column {WEIGHT!r}", "release rows without weights, or rename it")
    if not 1 <= weight_bound < math.inf:
        raise InputError(f"the bound on the sum of absolute weights is {weight_bound:g}", "it must be at least 1")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit is {time_limit:g} s", "it must be above 0")
    if schema.rules and weights in ("l1", "raw"):
        raise InputError(f"rows with {weights} weights obey no rules", "give other --weights, or leave the rules out")
    if schema.rules:
        drawn(schema)


def uniform_rows(schema: Schema, count: int, entropy: int) -> Rows:
    """Public points, drawn uniformly from the schema's box."""
    rng = generator(entropy, "points")
    codes = rng.integers(0, schema.cardinalities, (count, len(schema.cardinalities)))
    return Rows(rng.random((count, schema.reals)), codes)


def digest(rows: Rows) -> str:
    """SHA-256 of encoded rows."""
    return hashlib.sha256(rows.reals.tobytes() + rows.codes.tobytes()).hexdigest()


def generator(entropy: int, use: str) -> np.random.Generator:
    """Source of public random draws, for one use."""
    return np.random.default_rng([entropy, *use.encode()])
