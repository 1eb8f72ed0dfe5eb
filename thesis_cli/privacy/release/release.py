r"""A private release, in two steps that share only a record.

`private_record` reads the table and draws the noise; the record that it returns is public.
`synthetic` makes rows from that record alone. `METHODS` are the methods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.base.progress import Tick
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.release.implementation import PrivateRows, RowSettings, implementation_of
from thesis_cli.privacy.release.methods import METHODS, listed, methods_where
from thesis_cli.privacy.release.plan import ReleasePlan, Spend, Weights, check_rows, generator
from thesis_cli.privacy.release.record import KernelRecord, PrivacyGuarantee, Record, Release
from thesis_cli.privacy.tables.repair import obey

if TYPE_CHECKING:
    from thesis_cli.privacy.embedding.points import ObjectiveTick

ROWS, LARGEST = 1000, 100_000
"""Default number of rows of methods that fit each row, and largest default of the others."""


def private_record(
    blocks: Iterable[Rows],
    count: int | None,
    plan: ReleasePlan,
    spend: Spend,
    *,
    noise: object = None,
    choose: object = None,
    jobs: int = 1,
    progress: Tick | None = None,
) -> Record:
    """Embed the table and make the embedding private.

    Parameters
    ----------
    blocks, count : private table, and its number N of rows if the unit makes it public. Of a table
        with several rows of a person, the rows that count (`persons.bounded_rows`). A release by
        copula reads a large table once a stage (`stages.Passes`).
    spend : called after the table has been read and before noise is drawn; if it raises, nothing is
        released.
    noise, choose : source of the noise (a `StageNoise` for copula), or of the exponential
        mechanism's choice or the noisy marginals; OpenDP by default.
    jobs : threads.
    progress : called with the number of rows just done.

    Returns
    -------
    record : public; only its output, that of the mechanism, depends on the table.

    Raises
    ------
    InputError : no rows, another number of rows than `count`, or a budget or a size that does not
        fit.
    """
    if plan.unit.secret != (count is None):
        raise ValueError("the number of rows must be None if the unit keeps it secret, and only then")
    if count is not None and count < 1:
        raise InputError(f"the table has {count} rows", "it must have at least one")
    if count is None and not plan.row.secret_rows:
        problem = f"a release by {plan.method} has a public number of rows, each of another person"
        raise InputError(problem, f"release by {listed(methods_where(lambda row: row.secret_rows), ' or ')}")
    method, kernel = implementation_of(plan.method), plan.schema.kernel()
    released = method.release(plan, PrivateRows(blocks, count, spend, noise, choose, jobs, progress))
    return Record(
        promise=_guarantee(plan, count),
        method=plan.method,
        size=released.size,
        basis=plan.basis,
        entropy=plan.entropy,
        kernel=KernelRecord(tuple(kernel.gamma.tolist()), tuple(kernel.rho.tolist())),
        schema_text=plan.schema.to_toml(),
        public=(
            "the schema: columns, types, bounds, levels, kernel" + ", rules" * bool(plan.schema.rules),
            f"the neighbours: {plan.neighbours}" if count is None else "the number of rows of the table",
            "the budget, the method and its size, the entropy of public random draws, public rows if there are any",
        ),
        versions={**_versions(), **method.versions()},
        mechanism=released.mechanism,
        counted=released.counted,
        output=released.output,
    )


@cache
def _versions() -> dict[str, str]:
    """Versions of this program and of the libraries of every method."""
    return {name: version(name) for name in ("thesis-cli", "opendp", "numpy")}


def _guarantee(plan: ReleasePlan, count: int | None) -> PrivacyGuarantee:
    neighbours = plan.neighbours
    if plan.public is not None:
        neighbours += "; public rows are published as they are, without a promise"
    return PrivacyGuarantee(plan.budget.epsilon, plan.row.delta(plan.noise, plan.budget.delta), neighbours, count)


def default_rows(method: str, count: float) -> int:
    """Number of rows that `synthetic` makes by default: about those of the table, N = `count`, if rows are
    cheap.
    """
    return ROWS if METHODS[method].fits_rows else min(round(count), LARGEST)


def synthetic(
    record: Record,
    count: int | None = None,
    weights: Weights = "uniform",
    *,
    weight_bound: float = 1.0,
    public: Rows | None = None,
    time_limit: float | None = None,
    jobs: int = 1,
    progress: ObjectiveTick | None = None,
) -> Release:
    """Make rows from a record. This is post-processing, without the table: it may be repeated with
    other settings, and costs no privacy.

    Parameters
    ----------
    count : number of rows; `default_rows` by default. A subspace release with weights ignores it:
        it has one row for each public point.
    weights : "uniform" for plain rows, "simplex" for probabilities; for a subspace release also
        "l1" with sum |w| <= `weight_bound` (Theorem 13), or "raw" as published.
    public : public rows of a subspace release that was made with some.
    time_limit : seconds, after which the best rows so far are taken.
    progress : called with the squared distance to the private embedding.

    Raises
    ------
    InputError : weights that the method does not have; other public rows than the release was made
        with.
    """
    check_rows(record.schema, record.method, weights, weight_bound, time_limit)
    count = default_rows(record.method, record.count.rows) if count is None else count
    settings = RowSettings(count, weights, weight_bound, public, time_limit, jobs, progress)
    made = implementation_of(record.method).rows(record, settings, generator(record.entropy, "rows"))
    return replace(made, points=obey(made.schema, made.points))
