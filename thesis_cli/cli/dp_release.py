"""`thesis-cli dp-release`: a synthetic table with differential privacy.

No option seeds the noise: it is OpenDP's, from the operating system.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from thesis_cli.base.errors import InputError, WorkFailed, describe
from thesis_cli.base.files import check_writable, write_atomic
from thesis_cli.cli import options, output

if TYPE_CHECKING:
    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.ledger import Total
    from thesis_cli.privacy.mechanism import Budget
    from thesis_cli.privacy.release import ReleaseRequest, Weights
    from thesis_cli.privacy.release_files import Release
    from thesis_cli.privacy.release_record import Record
    from thesis_cli.privacy.schema import Schema

EXAMPLES = """\b
Examples, in a checkout:
  thesis-cli dp-release data/tables/people.csv --init-schema schema.toml
  thesis-cli dp-release data/tables/people.csv --schema data/tables/people.toml --epsilon 1 --delta 1e-6 --out r.csv
  thesis-cli dp-release --again r.json --rows 500 --weighted --out weighted.csv
"""

logger = logging.getLogger("thesis_cli")

ROWS = 1000
BAR = "rows: step {n}, {elapsed}{postfix}"


def dp_release(
    table: Annotated[
        str | None, typer.Argument(help="Private table: a CSV or Parquet file, or the URL of a database.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Public description of the columns, in TOML.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Of the privacy budget of this release.")] = None,
    delta: Annotated[float, typer.Option(help="Of the budget; Gaussian noise wants one well below 1/N.")] = 0.0,
    query: Annotated[str | None, typer.Option(help="The SELECT that gives the table, of a database.")] = None,
    init_schema: Annotated[
        Path | None,
        typer.Option(help="Write a schema to fill in, from names and types of columns, never values; that is all."),
    ] = None,
    method: Annotated[
        Literal["features", "subspace", "exponential"] | None,
        typer.Option(help="How the table is embedded.", show_default="features; subspace with --public"),
    ] = None,
    noise: Annotated[
        Literal["gaussian", "laplace"], typer.Option(help="What is added; laplace needs no delta, and is larger.")
    ] = "gaussian",
    size: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**5,
            help="Features, points drawn from the schema (subspace), or rows (exponential).",
            show_default="1000; exponential 3",
        ),
    ] = None,
    public: Annotated[
        str | None, typer.Option(help="Rows that are public already: a table of the same schema (subspace).")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**6,
            help="Rows of the synthetic table.",
            show_default="1000; subspace with --weighted: one for each point",
        ),
    ] = None,
    weighted: Annotated[bool, typer.Option("--weighted", help="Write a weight for each row, too.")] = False,
    weights: Annotated[
        Literal["simplex", "l1", "raw"],
        typer.Option(help="Of --weighted: probabilities; of a subspace also |w| summing to --most, or unconstrained."),
    ] = "simplex",
    most: Annotated[float, typer.Option(help="C of Theorem 13, for --weights l1.")] = 1.0,
    unknown: Annotated[
        Literal["error", "missing"],
        typer.Option(help="What a value that cannot be read becomes, in a column that may have missing ones."),
    ] = "error",
    ledger: Annotated[
        Path | None, typer.Option(help="File of what each table has spent; refuses to overspend.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The table's name in the ledger.", show_default="that of its file")
    ] = None,
    limit: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Epsilon and delta of all releases of the table; wanted with its first.", metavar="E D"),
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option("--again", help="Make rows of a release anew, from its record alone: costs no privacy."),
    ] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for the rows; the best so far are taken.")] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the columns of the release: .png, beside it a .pdf.")
    ] = None,
    jobs: options.Jobs = None,
    out: options.Out = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Release a synthetic table with differential privacy, through its noisy kernel mean embedding."""
    options.set_messages(quiet, verbose)
    if init_schema is not None:
        _init_schema(_given(table, "TABLE"), query, init_schema, quiet)
        return
    if not weighted and (weights != "simplex" or most != 1):
        raise InputError("--weights or --most without --weighted", "the weights of plain rows are equal")
    kind: Weights = weights if weighted else "uniform"
    cores = options.jobs_or_all(jobs)
    if figure:
        check_writable("--figure", figure, ".png")
    total = None
    if again is None:
        source = _given(table, "TABLE")
        stem = Path(source.partition("?")[0]).stem
        out = _unpaid(output.out_file(out, "dp-release", source.partition("?")[0], schema, public, ledger))
        if ledger is None and (limit or name):
            raise InputError("--limit or --name without --ledger", "the file of a ledger is wanted")

        from thesis_cli.privacy.mechanism import Budget
        from thesis_cli.privacy.release import check_rows
        from thesis_cli.privacy.schema import Schema

        budget = Budget(_given(epsilon, "--epsilon"), delta)
        described = Schema.load(_given(schema, "--schema"))
        asked = _request(described, budget, method, noise, size, public)
        check_rows(described, asked.method, kind, most, time_limit)
        _check_count(asked.method, kind, rows)
        account = _Account(ledger, name or stem, limit and Budget(*limit), f"{asked.method}, {out.name}")
        record = _measured(source, query, asked, unknown, account, out, cores, quiet)
        total = account.total
    else:
        if table or epsilon is not None or ledger:
            raise InputError("--again with a table, a budget or a ledger", "it reads the record of a release alone")

        from thesis_cli.privacy.release_files import read_record

        record, out = read_record(again), out or again.with_suffix(".csv")
        _check_count(record.method, kind, rows)
        check_writable("--out", out, ".csv")
    from thesis_cli.privacy.release_files import rows_text

    try:
        release = _rows(record, rows or ROWS, kind, most, public, time_limit, cores, quiet)
        write_atomic({out: rows_text(release, weighted=weighted), _record_of(out): release.record.to_json()})
    except KeyboardInterrupt:
        if again is None:
            command = f"thesis-cli dp-release --again {_record_of(out)}"
            typer.echo(f"the budget is spent, and the noisy embedding kept: {command} makes its rows", err=True)
        raise
    if figure:
        from thesis_cli.base.figures import save
        from thesis_cli.cli.release_figure import columns_figure

        save(lambda: columns_figure(release), figure.with_suffix(""))
    _report(release, total, out, figure, as_json)


def _given(value: Any, option: str) -> Any:
    if value is None:
        raise InputError(f"{option} is missing", "see thesis-cli dp-release --help")
    return value


def _check_count(method: str, weights: str, rows: int | None) -> None:
    if rows is not None and (method == "exponential" or (method == "subspace" and weights != "uniform")):
        raise InputError(f"--rows of a release by {method}", "it has the rows it has; --size is their number")


def _record_of(out: Path) -> Path:
    return out.with_suffix(".json")


def _unpaid(out: Path) -> Path:
    """Refuse to overwrite a release: its budget would have been spent for nothing."""
    record = _record_of(out)
    if record.exists() and not out.exists():
        raise InputError(f"{record} is a release without rows", f"thesis-cli dp-release --again {record} makes them")
    for path in (out, record):
        if path.exists():
            raise InputError(f"{path} exists, and its budget was spent", "another --out is wanted, or remove it")
    return out


def _init_schema(source: str, query: str | None, path: Path, quiet: bool) -> None:
    from thesis_cli.privacy.schema import template
    from thesis_cli.privacy.table import open_table

    if path.exists():
        raise InputError(f"--init-schema {path} exists", "another name is wanted, or remove it")
    write_atomic({path: template(open_table(source, query).columns)})
    if not quiet:
        typer.echo(f"{path}: made from the names and types of the columns alone; complete what is marked TODO")


def _request(
    schema: Schema,
    budget: Budget,
    method: Literal["features", "subspace", "exponential"] | None,
    noise: Literal["gaussian", "laplace"],
    size: int | None,
    public: str | None,
) -> ReleaseRequest:
    from thesis_cli.privacy import release

    if public and method not in (None, "subspace"):
        raise InputError(f"--public with --method {method}", "public rows are for a subspace")
    if public and size is not None:
        raise InputError("--public and --size", "the public rows are as many as they are")
    method = method or ("subspace" if public else "features")
    size = size or release.SIZES[method]
    return release.ReleaseRequest(schema, budget, method, noise, size, _public_rows(schema, public))


def _public_rows(schema: Schema, public: str | None) -> Rows | None:
    from thesis_cli.privacy.kernels import Rows
    from thesis_cli.privacy.table import open_table, rows

    if public is None:
        return None
    found = list(rows(open_table(public), schema))
    if not found:
        raise InputError("it has no rows", "one or more are wanted", source=public)
    return Rows.concatenate(found)


class _Account:
    """What is charged when noise is about to be drawn: a ledger, or nothing but this process's memory."""

    def __init__(self, ledger: Path | None, name: str, limit: Budget | None, note: str) -> None:
        self._ledger, self._name, self._limit, self._note = ledger, name, limit, note
        self.charged: Budget | None = None
        self.total: Total | None = None

    def spend(self, budget: Budget, rho: float | None) -> None:
        if self._ledger is not None:
            from thesis_cli.privacy.ledger import Ledger

            ledger = Ledger(self._ledger)
            self.total = ledger.spend(self._name, budget, self._note, rho=rho, limit=self._limit)
        self.charged = budget

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Whatever stops the release once it has spent says that it has."""
        try:
            yield
        except (InputError, WorkFailed, OSError, MemoryError, KeyboardInterrupt) as error:
            if self.charged is None:
                raise
            spent = f"the budget {_pair(vars(self.charged))} counts as spent"
            if isinstance(error, KeyboardInterrupt):
                typer.echo(spent, err=True)
                raise
            raise WorkFailed(f"{describe(error)}; {spent}") from error


def _measured(
    source: str,
    query: str | None,
    asked: ReleaseRequest,
    unknown: Literal["error", "missing"],
    account: _Account,
    out: Path,
    jobs: int,
    quiet: bool,
) -> Record:
    """The record of a release, which is on the disk, too."""
    from thesis_cli.privacy.release import private_record
    from thesis_cli.privacy.table import open_table, rows

    table = open_table(source, query)
    count = table.count()
    if not count:
        raise InputError("the table has no rows", "one or more are wanted", source=table.source)
    if asked.budget.delta * count >= 1:
        logger.warning("delta %g is 1/N or more: it would allow to publish a row as it is", asked.budget.delta)
    with options.progress(count, "rows", quiet) as tick, account.guarded():
        blocks = rows(table, asked.schema, unknown=unknown)
        record = private_record(blocks, count, asked, account.spend, jobs=jobs, progress=tick)
        write_atomic({_record_of(out): record.to_json()})
    return record


def _rows(
    record: Record,
    count: int,
    weights: Weights,
    most: float,
    public: str | None,
    time_limit: float | None,
    jobs: int,
    quiet: bool,
) -> Release:
    from tqdm import tqdm

    from thesis_cli.privacy.release import synthetic

    points = _public_rows(record.schema, public)
    with tqdm(desc="rows", disable=True if quiet else None, file=sys.stderr, leave=False, bar_format=BAR) as bar:

        def show(objective: float) -> None:
            bar.set_postfix_str(f"squared distance to what is released {objective:.4g}", refresh=False)
            bar.update()

        return synthetic(
            record, count, weights, most=most, public=points, time_limit=time_limit, jobs=jobs, progress=show
        )


def _report(release: Release, total: Total | None, out: Path, figure: Path | None, as_json: bool) -> None:
    record = release.record
    promise = record.promise
    if as_json:
        spent = total and vars(total)
        output.print_json(
            {
                "rows": len(release.points),
                "promise": asdict(promise),
                "mechanism": asdict(record.mechanism),
                "spent": spent,
                "out": str(out),
            }
        )
        return
    lines = [
        ("promise", f"{_pair(vars(promise))}-differential privacy of each of the {promise.rows:,} rows"),
        ("method", f"{record.method}: {record.basis}, {record.size}"),
        ("mechanism", record.mechanism.mechanism),
    ]
    if record.vector is not None:
        size, scale, sensitivity = len(record.vector), record.mechanism.scale, record.mechanism.sensitivity
        noise = f"scale {scale:.4g} on each of {size} coordinates; sensitivity {sensitivity:.4g}"
        lines.append(("noise", noise))
    if total is not None:
        lines.append(("spent", f"{_pair(vars(total))} by all releases of the table so far, {total.rule} composition"))
    lines += [("release", f"{out}, {len(release.points):,} rows"), ("record", str(_record_of(out)))]
    if figure:
        lines.append(("figure", str(figure)))
    output.print_table(lines)


def _pair(budget: Mapping[str, Any]) -> str:
    return f"({budget['epsilon']:.4g}, {budget['delta']:.4g})"
