r"""A private release, in two stages that share a record and nothing else.

`private_record` sees the table: it draws the noise, and what it returns is public. `synthetic` makes rows of that
record alone, so whatever it does is post-processing, may be done again with other settings, and costs no privacy.

Three methods embed the table: random features (Thesis Algorithm 3), the span of public points (Algorithm 2), and the
exponential mechanism over all small tables (section 4.3.4).
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal, Protocol

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.features import Features, draw_features
from thesis_cli.privacy.kernels import Codes, Rows
from thesis_cli.privacy.mechanism import Budget, Noise, OpenDPGaussian, OpenDPLaplace
from thesis_cli.privacy.points import Progress as Objective
from thesis_cli.privacy.points import synthesise
from thesis_cli.privacy.release_files import FORMAT, WEIGHT, Release
from thesis_cli.privacy.schema import Schema
from thesis_cli.privacy.subspace import Subspace, counted_blocks, reweighted, uniform

Method = Literal["features", "subspace", "exponential"]
NoiseName = Literal["gaussian", "laplace"]
Weights = Literal["uniform", "simplex", "l1", "raw"]
Spend = Callable[[Budget, float | None], None]
"""Called with the budget, and rho if the release has one, when the noise is about to be drawn."""

SIZES: dict[Method, int] = {"features": 1000, "subspace": 1000, "exponential": 3}
"""Random features, points drawn from the schema, or rows of a small table, where nothing else is asked for."""

NOISES: dict[NoiseName, Callable[[], Noise]] = {"gaussian": OpenDPGaussian, "laplace": OpenDPLaplace}


WEIGHTS: dict[Method, tuple[Weights, ...]] = {
    "features": ("uniform", "simplex"),
    "subspace": ("uniform", "simplex", "l1", "raw"),
    "exponential": ("uniform",),
}

BASES: dict[Method, str] = {
    "features": "random features",
    "subspace": "points drawn uniformly over the schema",
    "exponential": "all tables of so many rows",
}
PUBLIC = "rows of a public file, SHA-256 "


class Embedding(Protocol):
    """Takes a row to a vector, and a table to the mean of its rows' vectors; public."""

    @property
    def count(self) -> int:
        """Length of the vector."""

    def mean(self, blocks: Iterable[Rows], jobs: int = 1, progress: Tick | None = None) -> Floats:
        """Of a private table."""

    def l2_sensitivity(self, rows: int) -> float:
        """Of the mean, rounding included."""


@dataclass(frozen=True)
class ReleaseRequest:
    """What is asked of a release, all of it public and chosen without the table.

    Attributes
    ----------
    size : number J of random features, of public points if they are drawn from the schema, or of rows of a small
        table (exponential).
    public : public rows, whose span the subspace method takes instead.
    entropy : of the public random draws (features, points, starts). They are no part of the noise: the promise holds
        for any value, and the record tells it.
    """

    schema: Schema
    budget: Budget
    method: Method = "features"
    noise: NoiseName = "gaussian"
    size: int = SIZES["features"]
    public: Rows | None = None
    entropy: int = field(default_factory=lambda: secrets.randbits(128))


def private_record(
    blocks: Iterable[Rows],
    count: int,
    request: ReleaseRequest,
    spend: Spend,
    *,
    noise: Noise | None = None,
    choose: Callable[..., Any] | None = None,
    jobs: int = 1,
    progress: Tick | None = None,
) -> dict[str, Any]:
    """Embed the table, make the embedding private, and tell how.

    Parameters
    ----------
    blocks, count : the private table, and its number N of rows, which is public.
    spend : called after the table has been read and before noise is drawn; if it raises, nothing is released.
    noise, choose : what draws the noise, or chooses for the exponential mechanism; OpenDP by default.
    jobs : threads.
    progress : called with the number of rows just done.

    Returns
    -------
    record : of what JSON can hold; "vector" (or "rows") is the output of the mechanism, and the rest is public.

    Raises
    ------
    InputError : no rows, another number of rows than `count`, a budget or a size that does not fit.
    """
    if count < 1:
        raise InputError(f"a table of {count} rows", "one or more are wanted")
    counted, public = counted_blocks(blocks, count), _public(request, count)
    if request.method == "exponential":
        found = _exponential(counted, count, request, spend, choose, jobs, progress)
    else:
        embedding = _embedding(request)
        noise = noise or NOISES[request.noise]()
        sensitivity = embedding.l2_sensitivity(count)
        calibration = noise.calibrate(embedding.count, sensitivity, request.budget)
        mean = embedding.mean(counted, jobs, progress)
        spend(request.budget, calibration.rho)
        noised = noise.add(mean, sensitivity, request.budget)
        found = {"mechanism": noised.record(), "vector": noised.values.tolist()}
    return {**public, **found}


def synthetic(
    record: dict[str, Any],
    count: int = 1000,
    weights: Weights = "uniform",
    *,
    most: float = 1.0,
    public: Rows | None = None,
    time_limit: float | None = None,
    jobs: int = 1,
    progress: Objective | None = None,
) -> Release:
    """Rows of a record: post-processing, which sees no table.

    Parameters
    ----------
    count : number of rows; not of a subspace release with weights, which has one for each public point.
    weights : "uniform" for plain rows, "simplex" for a probability each, and of a subspace release "l1" with
        sum |w| <= `most` (Theorem 13) or "raw" as published, too.
    public : the public rows of a subspace release that was made with some.
    time_limit : seconds, after which the best rows so far are taken.
    progress : called with the squared distance to the private embedding.

    Raises
    ------
    InputError : weights that the method does not have; other public rows than the release was made with.
    """
    schema, method = Schema.parse(record["schema"]), record["method"]
    check_rows(schema, method, weights, most, time_limit)
    if method == "exponential":
        points = Rows(np.array(record["rows"]["reals"], np.float64), np.array(record["rows"]["codes"], np.int64))
        return Release(schema, points, uniform(points), record)
    vector, rng = np.array(record["vector"]), _generator(record, "rows")
    if method == "subspace":
        space = Subspace.of(schema.kernel(), _public_points(record, schema, public))
        constraint = "simplex" if weights == "uniform" else weights
        found = reweighted(space.kernel, space.points, space.basis, vector, constraint, most)
        if weights == "uniform":
            points = space.points[_systematic(found, count, rng)]
            return Release(schema, points, uniform(points), record)
        return Release(schema, space.points, found, record)
    made = synthesise(
        vector,
        release_features(record),
        np.tile([0.0, 1.0], (schema.reals, 1)),
        schema.cardinalities,
        count,
        rng,
        noise=record["mechanism"]["scale"] * (math.sqrt(2) if record["mechanism"]["norm"] == 1 else 1),
        time_limit=time_limit,
        uniform=weights == "uniform",
        jobs=jobs,
        progress=progress,
    )
    return Release(schema, made.rows, made.weights, {**record, "objective": made.objective})


def check_rows(
    schema: Schema, method: Method, weights: Weights, most: float = 1.0, time_limit: float | None = None
) -> None:
    """Refuse what `synthetic` would refuse (`InputError`), before a budget is spent."""
    if weights not in WEIGHTS[method]:
        known = " or ".join(WEIGHTS[method])
        raise InputError(f"{weights} weights of a release by {method}", f"{known} weights are to be had")
    if weights != "uniform" and WEIGHT in schema.names:
        raise InputError(f"weights beside a column {WEIGHT!r}", "plain rows, or a query that renames it, are wanted")
    if not 1 <= most < math.inf:
        raise InputError(f"a bound of {most:g} on the sum of absolute weights", "1 or above is wanted")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"a time limit of {time_limit:g} s", "more than 0 is wanted")


def release_features(record: dict[str, Any]) -> Features:
    """The random features of a release that was made with some; they are drawn from its public entropy."""
    schema = Schema.parse(record["schema"])
    return draw_features(schema.kernel(), schema.cardinalities, record["size"], _generator(record, "features"))


def _embedding(request: ReleaseRequest) -> Embedding:
    kernel, cardinalities = request.schema.kernel(), request.schema.cardinalities
    if request.method == "features":
        return draw_features(kernel, cardinalities, request.size, _generator(vars(request), "features"))
    public = request.public
    return Subspace.of(
        kernel, _uniform_rows(request.schema, request.size, request.entropy) if public is None else public
    )


def _exponential(
    blocks: Iterable[Rows],
    count: int,
    request: ReleaseRequest,
    spend: Spend,
    choose: Callable[..., Any] | None,
    jobs: int,
    progress: Tick | None,
) -> dict[str, Any]:
    from thesis_cli.privacy import exponential, mechanism

    domain = exponential.enumerate_domain(request.schema)

    def chosen(*arguments: Any) -> Any:
        spend(Budget(request.budget.epsilon), None)
        return (choose or mechanism.choose)(*arguments)

    rows, found = exponential.small_database(
        request.schema.kernel(), domain, blocks, count, request.size, request.budget.epsilon, choose=chosen
    )
    return {"mechanism": found, "rows": {"reals": rows.reals.tolist(), "codes": rows.codes.tolist()}}


def _public(request: ReleaseRequest, count: int) -> dict[str, Any]:
    """All of the record that is known before the table is read, but for its number of rows."""
    kernel, budget = request.schema.kernel(), request.budget
    size, basis = request.size, BASES[request.method]
    if request.public is not None:
        size, basis = len(request.public), f"{PUBLIC}{_digest(request.public)}"
    return {
        "format": FORMAT,
        "promise": {
            "epsilon": budget.epsilon,
            "delta": 0.0 if request.method == "exponential" or request.noise == "laplace" else budget.delta,
            "neighbours": "tables of the same number of rows that differ in one row",
            "rows": count,
        },
        "method": request.method,
        "size": size,
        "basis": basis,
        "entropy": request.entropy,
        "kernel": {"gamma": kernel.gamma.tolist(), "rho": kernel.rho.tolist()},
        "schema": request.schema.to_toml(),
        "public": [
            "the schema: columns, types, bounds, levels, kernel",
            "the number of rows of the table",
            "the budget, the method and its size, the entropy of public random draws, public rows if there are any",
        ],
        "versions": {name: version(name) for name in ("thesis-cli", "opendp", "numpy")},
    }


def _public_points(record: dict[str, Any], schema: Schema, public: Rows | None) -> Rows:
    if not record["basis"].startswith(PUBLIC):
        return _uniform_rows(schema, record["size"], record["entropy"])
    if public is None:
        raise InputError("the release is in the span of public rows", "the same --public file is wanted")
    if record["basis"] != PUBLIC + _digest(public):
        raise InputError("these are not the public rows of the release", "the same --public file is wanted")
    return public


def _uniform_rows(schema: Schema, count: int, entropy: int) -> Rows:
    """Draws from the schema's box: a public distribution."""
    rng = _generator({"entropy": entropy}, "points")
    codes = rng.integers(0, schema.cardinalities, (count, len(schema.cardinalities)))
    return Rows(rng.random((count, schema.reals)), codes)


def _digest(rows: Rows) -> str:
    return hashlib.sha256(rows.reals.tobytes() + rows.codes.tobytes()).hexdigest()


def _generator(record: dict[str, Any], use: str) -> np.random.Generator:
    return np.random.default_rng([record["entropy"], *use.encode()])


def _systematic(weights: Floats, count: int, rng: np.random.Generator) -> Codes:
    """Indices, `count` of them, each as often as near to its share as whole numbers allow."""
    ends = np.cumsum(weights) / weights.sum()
    return np.minimum(np.searchsorted(ends, (np.arange(count) + rng.random()) / count), len(weights) - 1)
