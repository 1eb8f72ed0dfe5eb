"""`thesis-cli dp-release`: release a synthetic table with differential privacy.

The noise is OpenDP's, from the randomness of the operating system: no field is a seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import Content, write_atomic
from thesis_cli.base.parallel import jobs_or_all
from thesis_cli.base.progress import COUNTED, Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import jobs_option
from thesis_cli.commands.core.fields import (
    Request,
    argument,
    check_methods,
    fields_of,
    files_named,
    given,
    heeding,
    option,
    settings_of,
)
from thesis_cli.commands.core.result import check_overwritten
from thesis_cli.commands.inputs.tables import TableSource, check_delimiter, delimiter_option, read_rows, table_stem
from thesis_cli.commands.release.budget import (
    Spending,
    account_option,
    check_apart,
    check_delta,
    check_ledger,
    check_public,
    check_same,
    check_unpaid,
    claimed,
    ledger_option,
    limit_option,
    new_account_option,
    warn_of_delta,
    warn_of_noise,
)
from thesis_cli.commands.release.result import (
    Part,
    ReleaseResult,
    files_of,
    preview,
    release_files,
    to_fill_in,
    with_rules,
)
from thesis_cli.privacy.release.methods import (
    AUTO,
    METHODS,
    MethodChoice,
    heeding_methods,
    listed,
    methods_where,
    sizes_text,
)

if TYPE_CHECKING:
    from thesis_cli.privacy.accounting.ledger import Total
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.release.record import Made, Record, Release
    from thesis_cli.privacy.release.release import ReleasePlan
    from thesis_cli.privacy.tables.linked import Link
    from thesis_cli.privacy.tables.schema import Schema
    from thesis_cli.privacy.tables.table_kinds import Table

    SchemaSource = str | Path | Schema
    """The path of a schema in TOML, or a schema."""
    RecordSource = str | Path | Record | ReleaseResult
    """The path of the record of a release, a record, or what `dp_release` returns."""
else:
    SchemaSource = RecordSource = str

AGAIN = frozenset(
    {
        *("again", "households", "rows", "weights", "weight_bound", "public", "delimiter", "time_limit", "jobs"),
        *("out", "overwrite"),
    }
)
"""Fields that go with `again`."""
SIZED = listed([f"of {row.sizes}" for row in METHODS.values() if row.sizes], ", or ")
"""Things that `size` counts."""
FITTED = listed(methods_where(lambda row: row.fits_rows and "rows" in row.options), " and ")
"""Methods that make few rows by default."""
TEMPLATE = frozenset({"init_schema", "table", "query", "delimiter", "schema", "public", "overwrite"})
"""Fields that go with `init_schema`."""


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest(Request):
    """Release a synthetic table with differential privacy, through its noisy kernel mean embedding.

    The result is a table of rows, and a record with the noisy embedding and all that is public.
    Both may be given away.
    """

    usual = (
        "init_schema",
        "schema",
        "epsilon",
        "delta",
        "person",
        "contribution_bound",
        "method",
        "rows",
        "query",
        "ledger",
        "dry_run",
        "out",
    )

    table: TableSource | None = argument(
        "Private table: a CSV or Parquet file, - or the URL of a database.", None, names="file", objects=True
    )
    schema: SchemaSource | None = option(
        None, "Public description of the columns, in TOML.", metavar="FILE", names="file", objects=True
    )
    epsilon: float | None = option(None, "Privacy budget epsilon that this release spends.", above=0)
    delta: float = option(
        0.0,
        "Privacy budget delta; Gaussian noise needs one, well below 1/N.",
        least=0,
        below=1,
        methods=heeding_methods("delta"),
    )
    accept_delta: bool = option(
        False,
        "Release with a delta of 1/N or more, which allows publishing a row as it is.",
        methods=heeding_methods("accept_delta"),
    )
    person: str | None = option(
        None,
        "Column that says whose row it is; the guarantee then protects all rows of a person. No output shows the "
        "column.",
        methods=heeding_methods("person"),
    )
    contribution_bound: int | None = option(
        None,
        "Largest number of rows of a person that count, for --person; others are left out at random.",
        least=1,
        alias="most",
        methods=heeding_methods("contribution_bound"),
    )
    neighbours: Literal["replace", "add-remove"] = option(
        "replace",
        "Tables that the guarantee compares: with one row or person replaced, or with one more or fewer (add-remove), "
        "which keeps the number of rows secret.",
        methods=heeding_methods("neighbours"),
    )
    households: TableSource | RecordSource | None = option(
        None,
        "Second private table, with one row for each value of the column --person, such as the households of persons;"
        " both are released. With --again, its record.",
        metavar="FILE",
        names="file",
        objects=True,
        methods=heeding_methods("households"),
        not_swept="a task writes its table and no other file",
    )
    household_schema: SchemaSource | None = option(
        None,
        "Public description of the columns of --households, in TOML.",
        metavar="FILE",
        names="file",
        objects=True,
        methods=heeding_methods("household_schema"),
    )
    query: str | None = option(None, "SELECT that gives the table, if it is a database.")
    delimiter: str | None = delimiter_option()
    init_schema: Path | None = option(
        None,
        "File for a schema to fill in, made from names and types of the columns and never from values; nothing is"
        " released. With --schema and --public instead of TABLE, that schema with rules that all public rows obey.",
        names="output",
        not_swept="a task writes its table and no other file",
    )
    method: MethodChoice = option(
        "auto",
        f"Mechanism, by what it measures: {listed([row.help for row in METHODS.values()], ' or ')}; auto takes "
        f"{AUTO[0]}, or the first that fits the options.",
    )
    favour: Literal["relations", "balance", "marginals", "correlations", "rows"] = option(
        "relations", "What the rows keep best; the budget is divided accordingly.", methods=heeding_methods("favour")
    )
    algorithm: Literal["mst", "aim"] = option(
        "mst",
        "Choice of the marginals: mst takes a tree of pairs at once, aim one pair after another, and is slower.",
        methods=heeding_methods("algorithm"),
    )
    noise: Literal["gaussian", "laplace"] = option(
        "gaussian", "Noise; laplace guarantees delta 0 and is larger.", methods=heeding_methods("noise")
    )
    size: int | None = option(
        None,
        f"Number {SIZED}.",
        least=1,
        most=10**5,
        methods=heeding_methods("size"),
        default_text=sizes_text(),
    )
    public: TableSource | None = option(
        None,
        "Table of rows that are public already, with the same schema, which span the subspace instead of points from "
        "the schema.",
        metavar="FILE",
        names="file",
        objects=True,
        methods=heeding_methods("public"),
    )
    confirm_public: bool = option(
        False,
        "Confirm that all rows of --public are public, although more of them are in the private table than chance "
        "explains.",
        methods=heeding_methods("confirm_public"),
        alias="public_is_public",
    )
    rows: int | None = option(
        None,
        "Rows of the synthetic table.",
        least=1,
        most=10**6,
        methods=heeding_methods("rows"),
        default_text=f"as many as the table has, at most 100,000; 1000 for {FITTED}, and with --weights one for each"
        " point of a subspace; with --households, rows of that table",
    )
    weights: Literal["uniform", "simplex", "l1", "raw"] = option(
        "uniform",
        "Weights of the rows: uniform writes plain rows, simplex probabilities; l1 (see --weight-bound) and raw are for"
        " a subspace and may be negative.",
        methods=heeding_methods("weights"),
    )
    weight_bound: float = option(
        1.0,
        "Bound C on the sum of absolute weights (Theorem 13), for --weights l1.",
        least=1,
        methods=heeding_methods("weight_bound"),
    )
    unknown: Literal["error", "missing"] = option(
        "error",
        "What an unreadable value counts as: an error, or a missing value if its column may have those.",
    )
    ledger: str | None = ledger_option("release")
    name: str | None = account_option()
    new_account: bool = new_account_option()
    limit: tuple[float, float] | None = limit_option()
    again: RecordSource | None = option(
        None,
        "Record of a release, to make rows from it again: this costs no privacy and needs no table.",
        metavar="FILE",
        names="file",
        objects=True,
    )
    time_limit: float | None = option(
        None,
        "Seconds that making the rows may take; the best rows by then are written.",
        above=0,
        methods=heeding_methods("time_limit"),
    )
    jobs: int | None = jobs_option()
    out: Path | None = option(
        None,
        "File for the rows, .csv; the record goes beside it, .json, as soon as the budget is spent.",
        names="output",
        default_text="results/runs/dp-release-TABLE.csv; Python writes no file",
        not_swept="out at the top of the file is for all tasks",
    )
    dry_run: bool = option(
        False,
        "Check schema, all cells, files and budget, and show the noise, errors, seconds and memory to expect; nothing"
        " is spent and nothing is written.",
        recorded=False,
        not_swept="a task makes a table",
    )
    overwrite: bool = option(
        False,
        "Replace files that this command did not write with these settings; never the record of a release.",
        recorded=False,
        not_swept="a task writes its table only",
    )

    def check(self) -> None:
        """Refuse fields that do not go with `init_schema` or `again`, and a release that lacks
        something.
        """
        for mode, fields in (("init_schema", TEMPLATE), ("again", AGAIN)):
            if getattr(self, mode) is not None:
                self.refuse([name for name in given(self) if name not in fields], self.shell_name(mode))
                break
        else:
            self._check_release()
        if self.weights != "l1" and self.weight_bound != 1:
            raise InputError(f"--weight-bound does not go with --weights {self.weights}", "it is for l1")
        suggests = self.init_schema is not None and (self.schema is not None or self.public is not None)
        if suggests and (self.table is not None or self.schema is None or self.public is None):
            remedy = "give --schema and --public, without TABLE, for rules that public rows suggest"
            raise InputError("--init-schema is given with one of them, or with TABLE", remedy)
        if self.again is None and self.table is None and not suggests:
            raise InputError("TABLE is missing", "give a private table")
        check_delimiter(self.delimiter, self.table, self.public, self.households)

    def _check_release(self) -> None:
        for name in ("schema", "epsilon"):
            if getattr(self, name) is None:
                raise InputError(f"--{name} is missing", "a release needs it")
        if self.noise == "laplace" and self.delta:
            raise InputError("--delta does not go with --noise laplace", "Laplace noise guarantees delta 0")
        if self.person is not None and self.contribution_bound is None:
            remedy = "give the largest number of a person's rows that count"
            raise InputError("--person is given without --contribution-bound", remedy)
        if self.contribution_bound is not None and self.person is None:
            remedy = "name the column of persons; --weight-bound bounds weights"
            raise InputError("--contribution-bound is given without --person", remedy)
        for one, other in (("households", "household_schema"), ("household_schema", "households")):
            if getattr(self, one) is not None and getattr(self, other) is None:
                problem = f"{self.shell_name(one)} is given without {self.shell_name(other)}"
                raise InputError(problem, "a table needs its schema")
        if self.households is not None and self.person is None:
            remedy = "name the column of both tables that links them"
            raise InputError("--households is given without --person", remedy)
        if self.public is not None and self.size is not None:
            raise InputError("--size does not go with --public", "the public rows have a size already")
        if self.confirm_public and self.public is None:
            raise InputError("--confirm-public is given without --public", "leave it out")
        check_ledger(self)
        self.chosen_method()

    def chosen_method(self) -> str:
        """The method, or the first that heeds every option that was given, has the weights and can spend
        the budget.
        """
        if self.method != "auto":
            return self.method
        heed = heeding(self, AUTO)
        methods = [name for name in heed if self.weights in METHODS[name].weights]
        if not methods:
            known = methods_where(lambda row: self.weights in row.weights)
            others = (fields_of(type(self))[name] for name in given(self))
            other = next(field for field in others if field.about.methods and not set(known) & set(field.about.methods))
            problem = f"--weights {self.weights} does not go with {other.shell_name}"
            raise InputError(problem, f"it is for {', '.join(known)}")
        pure = [name for name in methods if METHODS[name].noises != ("gaussian",)]
        return (methods if self.delta or not pure else pure)[0]

    @property
    def stem(self) -> str:
        """Name of the table, as `table_stem` gives it."""
        return table_stem(self.table)


def run(request: ReleaseRequest, progress: Progress) -> ReleaseResult:
    """Release the table, make rows again from a record, or make a template of a schema."""
    began = time.process_time()
    if request.init_schema is not None:
        return _template(request, request.init_schema)
    if request.again is None:
        for file in files_of(request.out, linked=request.households is not None) or (None,):
            check_apart(files_named(request), request.ledger, file)
        plan = _plan_of(request)
        link = _link_of(request, plan)
        spending = _spending_of(request, plan)
        if request.dry_run:
            with spending.guarded():
                return _preview(request, plan, link, spending, began)
        spending.check(plan.budget)
        with ExitStack() as stack:
            for file in files_of(request.out, linked=link is not None):
                stack.enter_context(claimed(file, request.overwrite))
            stack.enter_context(spending.guarded())
            records = _measured(request, plan, link, spending, progress)
            return _result_of(request, records, spending.total, progress)
    records = [_record_of(request.again)]
    check_methods(request, records[0].method)
    _check_weighted_rows(request, records[0].method)
    if request.households is not None:
        records.append(_record_of(request.households))
    elif records[0].link is not None:
        raise InputError("--again is the record of one of two linked tables", "give the other one by --households")
    for file, record in zip(files_of(request.out, linked=len(records) > 1), records, strict=False):
        check_same(file, replace(record, made=_made_of(request)), request.overwrite)
    return _result_of(request, records, None, progress)


def _template(request: ReleaseRequest, file: Path) -> ReleaseResult:
    """Write a schema to fill in, or one with rules that public rows suggest."""
    check_overwritten("--init-schema", file, request.overwrite)
    if request.schema is None:
        assert request.table is not None
        text, columns = to_fill_in(request.table, request.query, request.delimiter)
    else:
        assert request.public is not None
        text, columns = with_rules(_schema_of(request.schema), request.public, request.delimiter)
    write_atomic({file: text})
    return ReleaseResult(columns=columns, request=request, settings=settings_of(request), template=text)


def _plan_of(request: ReleaseRequest) -> ReleasePlan:
    """The plan of a release, all of it public; refuses before anything is spent."""
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.mechanisms.stages import Unit
    from thesis_cli.privacy.release.release import ReleasePlan, check_rows

    assert request.epsilon is not None
    budget = Budget(request.epsilon, request.delta)
    schema = _schema_of(request.schema)
    method = request.chosen_method()
    check_rows(schema, method, request.weights, request.weight_bound, request.time_limit)
    _check_weighted_rows(request, method)
    return ReleasePlan(
        schema,
        budget,
        method,
        request.noise,
        size=request.size or METHODS[method].size or 1,
        public=None if request.public is None else read_rows(request.public, schema, delimiter=request.delimiter),
        unit=Unit(request.neighbours, request.contribution_bound),
        favour=request.favour,
        algorithm=request.algorithm,
    )


def _link_of(request: ReleaseRequest, plan: ReleasePlan) -> Link | None:
    """The link of the table to that of the households, if there is one; refuses as `_plan_of`."""
    if request.households is None:
        return None
    from thesis_cli.privacy.release.linked import linked_plans
    from thesis_cli.privacy.release.release import check_rows
    from thesis_cli.privacy.tables.linked import Link

    assert request.person is not None
    assert request.contribution_bound is not None
    found = Link(request.person, request.contribution_bound, plan.schema, _schema_of(request.household_schema))
    for part in linked_plans(plan, found):
        check_rows(part.schema, part.method, request.weights)
    return found


def _schema_of(source: SchemaSource | None) -> Schema:
    from thesis_cli.privacy.tables.schema import Schema

    assert source is not None
    return source if isinstance(source, Schema) else Schema.load(source)


def _check_weighted_rows(request: ReleaseRequest, method: str) -> None:
    """Refuse a number of rows where each point of a subspace is one."""
    if request.rows is not None and METHODS[method].points_are_rows and request.weights != "uniform":
        raise InputError("--rows does not go with weights in a subspace", "each of its points is a row")


def _spending_of(request: ReleaseRequest, plan: ReleasePlan) -> Spending:
    """Account that the release is charged to."""
    note = plan.method if request.out is None else f"{plan.method}, {request.out.name}"
    found = Spending.of(request.ledger, request.table, request.name, request.limit, note, request.new_account)
    found.records = tuple(
        file.with_suffix(".json") for file in files_of(request.out, linked=request.households is not None)
    )
    found.unit = plan.unit.name(request.person)
    return found


def _record_of(source: RecordSource | TableSource) -> Record:
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


def _made_of(request: ReleaseRequest) -> Made:
    """Settings of the rows."""
    from thesis_cli.privacy.release.record import Made

    return Made(request.rows, request.weights, request.weight_bound, request.time_limit)


def _opened(request: ReleaseRequest, plan: ReleasePlan, link: Link | None) -> list[Table]:
    """The private table, and that of the households if there is one."""
    from thesis_cli.privacy.tables.table import open_table

    assert request.table is not None
    delimiter = request.delimiter or ""
    found = [open_table(request.table, request.query, names=plan.schema.names_read, delimiter=delimiter)]
    if link is not None:
        source = cast("TableSource", request.households)
        found.append(open_table(source, names=link.households.names_read, delimiter=delimiter))
    return found


def _columns_read(
    request: ReleaseRequest, plan: ReleasePlan, link: Link | None, tables: list[Table]
) -> list[tuple[Table, tuple[str, ...]]]:
    """Tables, each with the columns that the release reads."""
    from thesis_cli.privacy.tables.table import columns_read

    schemas = [plan.schema, *([] if link is None else [link.households])]
    return [(table, columns_read(schema, request.person)) for table, schema in zip(tables, schemas, strict=True)]


def _measured(
    request: ReleaseRequest, plan: ReleasePlan, link: Link | None, spending: Spending, progress: Progress
) -> list[Record]:
    """The record of a new release, and that of the households if there are some; if a file is named, they
    are written before this returns.
    """
    tables = _opened(request, plan, link)
    spending.identify(plan.budget, *_columns_read(request, plan, link, tables))
    if link is None:
        records = [_measured_table(request, plan, tables[0], spending, progress)]
    else:
        records = _measured_pair(request, plan, link, tables, spending, progress)
    write_atomic({file: record.to_json() for file, record in zip(spending.records, records, strict=False)})
    if not request.accept_delta:
        warn_of_delta(records[-1])
    return records


def _measured_pair(
    request: ReleaseRequest,
    plan: ReleasePlan,
    link: Link,
    tables: list[Table],
    spending: Spending,
    progress: Progress,
) -> list[Record]:
    """Records of the persons and of the households."""
    from thesis_cli.privacy.release.linked import linked_records

    rows = link.rows(tables, plan.entropy, request.unknown)
    check_delta(plan.budget.delta, None, request.accept_delta)
    with progress(COUNTED, "rows") as tick:
        jobs = jobs_or_all(request.jobs)
        return list(linked_records(plan, link, rows, spending.spend, jobs=jobs, progress=tick))[::-1]


def _measured_table(
    request: ReleaseRequest, plan: ReleasePlan, table: Table, spending: Spending, progress: Progress
) -> Record:
    """The record of a single table."""
    from thesis_cli.privacy.release.release import implementation_of, private_record
    from thesis_cli.privacy.tables.table import rows_that_count

    blocks, count = rows_that_count(
        table, plan.schema, request.person, request.contribution_bound, plan.entropy, request.unknown
    )
    if not (count or plan.unit.secret):
        raise InputError("the table has no rows", "give a table of one row or more", source=table.source)
    check_delta(plan.budget.delta, None if plan.unit.secret else count, request.accept_delta)
    check_public(request.public, request.table, plan, table, request.unknown, request.confirm_public)

    def spend(budget: Budget, rho: float | None) -> None:
        if not plan.unit.secret:
            warn_of_noise(plan, count)
        spending.spend(budget, rho)

    with progress(count * implementation_of(plan.method).passes(plan), "rows") as tick:
        jobs, public = jobs_or_all(request.jobs), None if plan.unit.secret else count
        return private_record(blocks, public, plan, spend, jobs=jobs, progress=tick)


def _result_of(
    request: ReleaseRequest, records: list[Record], total: Total | None, progress: Progress
) -> ReleaseResult:
    """Rows of records: post-processing, which sees no private table."""
    from thesis_cli.privacy.release.linked import linked_releases
    from thesis_cli.privacy.release.record import rows_columns

    if len(records) == 1:
        releases = [_synthetic(request, records[0], progress)]
    else:
        releases = list(linked_releases(records[1], records[0], request.rows, jobs_or_all(request.jobs)))[::-1]
    releases = [replace(one, record=replace(one.record, made=_made_of(request))) for one in releases]
    weighted, outs = request.weights != "uniform", files_of(request.out, linked=len(records) > 1)
    files: dict[Path, Content] = {}
    for release, out in zip(releases, outs, strict=False):  # there are no files without --out
        files |= release_files(release, out, weighted)
    write_atomic(files)
    results = [
        ReleaseResult(
            columns=rows_columns(release, weighted=weighted),
            request=request,
            settings=settings_of(request, method=release.record.method, size=release.record.size),
            release=release,
            total=total,
            out=out,
        )
        for release, out in zip_longest(releases, outs)
    ]
    return replace(results[0], households=results[1]) if len(results) > 1 else results[0]


def _synthetic(request: ReleaseRequest, record: Record, progress: Progress) -> Release:
    """Rows of the record of a single table."""
    from thesis_cli.privacy.release.release import synthetic

    public = None if request.public is None else read_rows(request.public, record.schema, delimiter=request.delimiter)
    with progress(COUNTED, "steps") as tick:
        return synthetic(
            record,
            request.rows,
            request.weights,
            weight_bound=request.weight_bound,
            public=public,
            time_limit=request.time_limit,
            jobs=jobs_or_all(request.jobs),
            progress=lambda objective: tick(1),
        )


def _preview(
    request: ReleaseRequest, plan: ReleasePlan, link: Link | None, spending: Spending, began: float
) -> ReleaseResult:
    """Checks and expected errors of a release that is not made."""
    from thesis_cli.privacy.release.linked import linked_plans
    from thesis_cli.privacy.tables.table import rows_that_count

    tables = _opened(request, plan, link)
    table, parts = tables[0], [Part(plan, tables[0], plan.schema, request.rows)]
    if link is not None:
        households, persons = linked_plans(plan, link)
        parts = [Part(persons, table, link.persons, None), Part(households, tables[1], link.households, request.rows)]

    def count() -> list[int]:
        if link is not None:
            return [len(rows) for rows in link.rows(tables, plan.entropy, request.unknown)][::-1]
        bound = request.contribution_bound
        return [rows_that_count(table, plan.schema, request.person, bound, plan.entropy, request.unknown)[1]]

    def checks(count: int, readable: bool) -> Iterator[Callable[[], None]]:
        public, source = request.public, request.table
        if readable:
            yield lambda: check_public(public, source, plan, table, request.unknown, request.confirm_public)
        if count:
            yield lambda: check_delta(plan.budget.delta, count, request.accept_delta)
        for out in files_of(request.out, linked=link is not None):
            yield partial(check_unpaid, out, request.overwrite)
        yield lambda: spending.identify(plan.budget, *_columns_read(request, plan, link, tables))

    found, cells = preview(parts, plan.budget, count, checks, spending, request.unknown, began)
    settings = settings_of(request, method=plan.method)
    return ReleaseResult(columns=cells, request=request, settings=settings, preview=found)


def _default_out(request: ReleaseRequest) -> Path | None:
    """The file that the shell writes if none is named: of a record its own, otherwise one under
    results/runs.
    """
    if request.init_schema is not None:
        return None
    if request.again is not None:
        return Path(str(request.again)).with_suffix(".csv")
    return Path("results/runs") / f"dp-release-{request.stem or 'stdin'}.csv"


COMMAND = Command(
    ReleaseRequest,
    run,
    examples=(
        "dp-release data/tables/people.csv --init-schema schema.toml",
        "dp-release data/tables/people.csv --schema data/tables/people.toml --epsilon 1 --delta 1e-6 --out r.csv",
        "dp-release --again data/releases/people-features.json --weights simplex --time-limit 1 --out weighted.csv",
    ),
    saves=False,
    default_out=_default_out,
)
