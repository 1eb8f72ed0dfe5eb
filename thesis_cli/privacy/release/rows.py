r"""Rows from the record of a release, and the public random draws that the record stands for.

This is post-processing: it sees no private table, may be repeated with other settings, and costs no
privacy.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.copula import copula
from thesis_cli.privacy.embedding.features import Features, draw_features
from thesis_cli.privacy.embedding.points import Effort, ObjectiveTick, synthesise
from thesis_cli.privacy.kernels import Codes, Rows
from thesis_cli.privacy.release import marginals
from thesis_cli.privacy.release.files import WEIGHT, Release
from thesis_cli.privacy.release.record import Method, Record, Staged
from thesis_cli.privacy.release.subspace import Subspace, reweighted, uniform_weights
from thesis_cli.privacy.release.unit_stages import COUNT_SHARE
from thesis_cli.privacy.tables.constraints import drawn, obey
from thesis_cli.privacy.tables.schema import Schema

Weights = Literal["uniform", "simplex", "l1", "raw"]

WEIGHTS: dict[Method, tuple[Weights, ...]] = {
    "copula": ("uniform",),
    "features": ("uniform", "simplex"),
    "marginals": ("uniform",),
    "subspace": ("uniform", "simplex", "l1", "raw"),
    "exponential": ("uniform",),
}

PUBLIC = "rows of a public file, SHA-256 "
ROWS, LARGEST = 1000, 100_000
"""Default number of rows of methods that fit each row, and largest default of the others."""


def default_rows(record: Record) -> int:
    """Number of rows that `synthetic` makes by default: about those of the table, if rows are
    cheap.
    """
    return min(round(record.count.rows), LARGEST) if record.method in ("copula", "marginals") else ROWS


def synthetic(
    record: Record,
    count: int | None = None,
    weights: Weights = "uniform",
    *,
    most: float = 1.0,
    public: Rows | None = None,
    time_limit: float | None = None,
    jobs: int = 1,
    progress: ObjectiveTick | None = None,
) -> Release:
    """Make rows from a record. This is post-processing, without the table.

    Parameters
    ----------
    count : number of rows; `default_rows` by default. A subspace release with weights ignores it:
        it has one row for each public point.
    weights : "uniform" for plain rows, "simplex" for probabilities; for a subspace release also
        "l1" with sum |w| <= `most` (Theorem 13), or "raw" as published.
    public : public rows of a subspace release that was made with some.
    time_limit : seconds, after which the best rows so far are taken.
    progress : called with the squared distance to the private embedding.

    Raises
    ------
    InputError : weights that the method does not have; other public rows than the release was made
        with.
    """
    check_rows(record.schema, record.method, weights, most, time_limit)
    count = default_rows(record) if count is None else count
    made = _made(record, count, weights, most, public, Effort(time_limit, jobs, progress))
    return replace(made, points=obey(made.schema, made.points))


def _made(record: Record, count: int, weights: Weights, most: float, public: Rows | None, effort: Effort) -> Release:
    """Rows that may break the rules of the schema."""
    schema = record.schema
    if record.rows is not None:
        points = record.rows.rows()
        return Release(schema, points, uniform_weights(points), record)
    rng = generator(record.entropy, "rows")
    if record.stages is not None or record.marginals is not None:
        points = _copula_rows(record, count, rng, effort.jobs) if record.stages else _marginal_rows(record, count, rng)
        return Release(schema, points, uniform_weights(points), record)
    values, noise = record.noisy_vector
    vector = np.array(values)
    if record.method == "subspace":
        space = Subspace.of(schema.kernel(), _public_points(record, public))
        if len(vector) != space.count:
            raise InputError(f"vector has {len(vector):,} numbers", f"it must have {space.count:,} of them")
        constraint = "simplex" if weights == "uniform" else weights
        found = reweighted(space.kernel, space.points, space.basis, vector, constraint, most)
        if weights == "uniform":
            points = space.points[_systematic(found, count, rng)]
            return Release(schema, points, uniform_weights(points), record)
        return Release(schema, space.points, found, record)
    made = synthesise(
        vector,
        release_features(record),
        np.tile([0.0, 1.0], (schema.reals, 1)),
        count,
        rng,
        noise=noise.deviation,
        uniform=weights == "uniform",
        effort=effort,
    )
    return Release(schema, made.rows, made.weights, replace(record, objective=made.objective))


def check_rows(
    schema: Schema, method: Method, weights: Weights, most: float = 1.0, time_limit: float | None = None
) -> None:
    """Refuse what `synthetic` would refuse (`InputError`), before a budget is spent."""
    if weights not in WEIGHTS[method]:
        known = " or ".join(WEIGHTS[method])
        raise InputError(f"a release by {method} has no {weights} weights", f"they must be {known}")
    if weights != "uniform" and WEIGHT in schema.names:
        raise InputError(f"the schema has a column {WEIGHT!r}", "release rows without weights, or rename it")
    if not 1 <= most < math.inf:
        raise InputError(f"the bound on the sum of absolute weights is {most:g}", "it must be at least 1")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit is {time_limit:g} s", "it must be above 0")
    if schema.rules and weights in ("l1", "raw"):
        raise InputError(f"rows with {weights} weights obey no rules", "give other --weights, or leave the rules out")
    if schema.rules:
        drawn(schema)


def copula_plan(record: Record) -> copula.Plan:
    """Public settings of a release by copula."""
    assert isinstance(record.mechanism, Staged)
    rho = record.mechanism.total * (1 if record.counted is None else 1 - COUNT_SHARE)
    return copula.Plan(record.schema, record.count.effective, rho, record.favour or "balance")


def _copula_rows(record: Record, count: int, rng: np.random.Generator, jobs: int) -> Rows:
    assert record.stages is not None
    return copula_plan(record).fit([np.array(stage.vector) for stage in record.stages], count, rng, jobs)


def _marginal_rows(record: Record, count: int, rng: np.random.Generator) -> Rows:
    assert record.marginals is not None
    schema = record.schema
    assert record.promise.rows is not None
    model = marginals.network(marginals.sizes_of(schema), record.marginals, record.promise.rows)
    return marginals.placed_rows(schema, marginals.draw(model, count, rng), rng)


def release_features(record: Record) -> Features:
    """Random features of a release by features, drawn from its public entropy."""
    return drawn_features(record.schema, record.size, record.entropy)


def drawn_features(schema: Schema, size: int, entropy: int) -> Features:
    """Random features of the schema's kernel, from public entropy."""
    return draw_features(schema.kernel(), schema.cardinalities, size, generator(entropy, "features"))


def _public_points(record: Record, public: Rows | None) -> Rows:
    if not record.basis.startswith(PUBLIC):
        return uniform_rows(record.schema, record.size, record.entropy)
    if public is None:
        raise InputError("the release is in the span of public rows", "--public must name their file")
    if record.basis != PUBLIC + digest(public):
        raise InputError("these are not the public rows of the release", "--public must name their file")
    return public


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


def _systematic(weights: Floats, count: int, rng: np.random.Generator) -> Codes:
    """Indices, `count` of them; each occurs as often as its share of `count`, up to rounding."""
    ends = np.cumsum(weights) / weights.sum()
    return np.minimum(np.searchsorted(ends, (np.arange(count) + rng.random()) / count), len(weights) - 1)
