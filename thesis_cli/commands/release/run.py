"""The work of `dp-release`: what a release does, the record that it makes, and the rows of a
record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import COUNTED, Progress
from thesis_cli.commands.core.fields import settings_of
from thesis_cli.commands.inputs.tables import read_rows
from thesis_cli.commands.release.budget import Spending
from thesis_cli.commands.release.guards import check_delta, check_public, warn_of_delta, warn_of_noise
from thesis_cli.commands.release.result import ReleaseResult, release_files

if TYPE_CHECKING:
    from thesis_cli.commands.dp_release import RecordSource, ReleaseRequest
    from thesis_cli.privacy.accounting.ledger import Total
    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.release.record import Made, Record
    from thesis_cli.privacy.release.release import ReleaseRequest as Plan
    from thesis_cli.privacy.tables.table_base import Table


def plan_of(request: ReleaseRequest) -> Plan:
    """What the release does, all of it public; refuses before anything is spent."""
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.mechanisms.units import Unit
    from thesis_cli.privacy.release import release
    from thesis_cli.privacy.tables.schema import Schema

    assert request.schema is not None
    assert request.epsilon is not None
    budget = Budget(request.epsilon, request.delta)
    schema = request.schema if isinstance(request.schema, Schema) else Schema.load(request.schema)
    method = request.chosen_method()
    release.check_rows(schema, method, request.weights, request.weight_bound, request.time_limit)
    check_weighted_rows(request, method)
    size = request.size or release.SIZES.get(method, 1)
    public = None if request.public is None else read_rows(request.public, schema, delimiter=request.delimiter)
    unit = Unit(request.neighbours, request.most)
    return release.ReleaseRequest(
        schema, budget, method, request.noise, size, public, unit, favour=request.favour, algorithm=request.algorithm
    )


def spending_of(request: ReleaseRequest, plan: Plan) -> Spending:
    """Account that the release is charged to."""
    note = plan.method if request.out is None else f"{plan.method}, {request.out.name}"
    found = Spending.of(request.ledger, request.table, request.name, request.limit, note)
    found.record = None if request.out is None else request.out.with_suffix(".json")
    found.unit = plan.unit.name(request.person)
    return found


def check_weighted_rows(request: ReleaseRequest, method: str) -> None:
    """Refuse a number of rows where each point of a subspace is one."""
    if request.rows is not None and method == "subspace" and request.weights != "uniform":
        raise InputError("--rows does not go with weights in a subspace", "each of its points is a row")


def record_of(source: RecordSource) -> Record:
    """The record that a source stands for.

    Raises
    ------
    InputError : the file cannot be read, or the source is no record.
    """
    from thesis_cli.privacy.release.files import read_record
    from thesis_cli.privacy.release.record import Record

    if isinstance(source, str | Path):
        return read_record(source)
    record = getattr(source, "record", source)
    if not isinstance(record, Record):
        raise InputError(f"--again is <{type(source).__name__}>", "it must be the record of a release")
    return record


def made_of(request: ReleaseRequest) -> Made:
    """How the request asks for rows."""
    from thesis_cli.privacy.release.record import Made

    return Made(request.rows, request.weights, request.weight_bound, request.time_limit)


def measured(request: ReleaseRequest, plan: Plan, spending: Spending, progress: Progress) -> Record:
    """The record of a new release; if a file is named, it is written before this returns."""
    from thesis_cli.privacy.release.release import private_record
    from thesis_cli.privacy.tables.table import open_table

    assert request.table is not None
    table = open_table(request.table, request.query, names=plan.schema.names_read, delimiter=request.delimiter or "")
    blocks, count = private_rows(request, plan, table)
    if not (count or plan.unit.secret):
        raise InputError("the table has no rows", "give a table of one row or more", source=table.source)
    check_delta(plan.budget.delta, None if plan.unit.secret else count, request.accept_delta)
    check_public(request, plan, table)

    def spend(budget: Budget, rho: float | None) -> None:
        if not plan.unit.secret:
            warn_of_noise(plan, count)
        spending.spend(budget, rho)

    with progress(count * plan.passes, "rows") as tick:
        jobs, public = jobs_or_all(request.jobs), None if plan.unit.secret else count
        record = private_record(blocks, public, plan, spend, jobs=jobs, progress=tick)
    if spending.record is not None:
        write_atomic({spending.record: record.to_json()})
    if not request.accept_delta:
        warn_of_delta(record)
    return record


def private_rows(request: ReleaseRequest, plan: Plan, table: Table) -> tuple[Iterable[Rows], int]:
    """The rows that count, and their number, which only people who may see the table may know."""
    from thesis_cli.privacy.release.staged import Rereadable
    from thesis_cli.privacy.tables.persons import bounded_rows, person_rows, public_key
    from thesis_cli.privacy.tables.table import encoded_rows

    if request.person is None:
        return Rereadable(lambda: encoded_rows(table, plan.schema, unknown=request.unknown)), table.count()
    assert request.most is not None
    parts = person_rows(table, plan.schema, request.person, unknown=request.unknown)
    rows = list(bounded_rows(parts, request.most, public_key(plan.entropy)))
    return rows, sum(map(len, rows))


def result_of(request: ReleaseRequest, record: Record, total: Total | None, progress: Progress) -> ReleaseResult:
    """Rows of a record: post-processing, which sees no private table."""
    from thesis_cli.privacy.release.files import rows_columns
    from thesis_cli.privacy.release.release import synthetic

    public = None if request.public is None else read_rows(request.public, record.schema, delimiter=request.delimiter)
    with progress(COUNTED, "steps") as tick:
        release = synthetic(
            record,
            request.rows,
            request.weights,
            most=request.weight_bound,
            public=public,
            time_limit=request.time_limit,
            jobs=jobs_or_all(request.jobs),
            progress=lambda objective: tick(1),
        )
    release = replace(release, record=replace(release.record, made=made_of(request)))
    if request.out is not None:
        write_atomic(release_files(release, request.out, request.weights != "uniform"))
    return ReleaseResult(
        columns=rows_columns(release, weighted=request.weights != "uniform"),
        request=request,
        settings=settings_of(request, method=record.method, size=record.size),
        release=release,
        total=total,
        out=request.out,
    )
