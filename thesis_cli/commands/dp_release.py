"""`thesis-cli dp-release`: release a synthetic table with differential privacy.

The noise is OpenDP's, from the randomness of the operating system: no field is a seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError
from thesis_cli.base.files import write_atomic
from thesis_cli.base.progress import Progress
from thesis_cli.commands.core.command import Command
from thesis_cli.commands.core.common import jobs_option
from thesis_cli.commands.core.fields import argument, check_methods, fields_of, given, heeding, option, settings_of
from thesis_cli.commands.core.overwrite import check_overwritten
from thesis_cli.commands.core.request import Request
from thesis_cli.commands.inputs.tables import TableSource, check_delimiter, delimiter_option, table_stem
from thesis_cli.commands.release.guards import check_apart, check_same, claimed
from thesis_cli.commands.release.result import ReleaseResult
from thesis_cli.commands.release.run import (
    check_weighted_rows,
    made_of,
    measured,
    plan_of,
    record_of,
    result_of,
    spending_of,
)

if TYPE_CHECKING:
    from thesis_cli.privacy.release.record import Method, Record
    from thesis_cli.privacy.tables.schema import Schema

    SchemaSource = str | Path | Schema
    """The path of a schema in TOML, or a schema."""
    RecordSource = str | Path | Record | ReleaseResult
    """The path of the record of a release, a record, or what `dp_release` returns."""
else:
    SchemaSource = RecordSource = str

NO_LEDGER = (
    "the lock of a ledger holds on one machine only; divide the budget before the sweep: its tasks spend at most the"
    " sum of their epsilons, and of their deltas"
)
AGAIN = frozenset(
    {"again", "rows", "weights", "weight_bound", "public", "delimiter", "time_limit", "jobs", "out", "overwrite"}
)
"""Fields that go with `again`."""
AUTO = ("copula", "features", "subspace", "marginals")
"""Methods that `auto` chooses from; the first that heeds all options is taken."""
TEMPLATE = frozenset({"init_schema", "table", "query", "delimiter", "overwrite"})
"""Fields that go with `init_schema`."""


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest(Request):
    """Release a synthetic table with differential privacy, through its noisy kernel mean embedding.

    The result is a table of rows, and a record with the noisy embedding and all that is public.
    Both may be given away.
    """

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
        methods=("copula", "features", "marginals", "subspace"),
    )
    accept_delta: bool = option(
        False,
        "Release with a delta of 1/N or more, which allows publishing a row as it is.",
        methods=("copula", "features", "marginals", "subspace"),
    )
    person: str | None = option(
        None,
        "Column that names each row's person; the promise is then a person's, and no output shows the column.",
        methods=("copula", "features", "subspace"),
    )
    most: int | None = option(
        None,
        "Largest number of rows of a person that count, for --person; others are left out at random.",
        least=1,
        methods=("copula", "features", "subspace"),
    )
    neighbours: Literal["replace", "add-remove"] = option(
        "replace",
        "Tables that the promise compares: one row or person is replaced, or is missing in one of them; add-remove"
        " keeps the number of rows secret.",
        methods=("copula", "features", "subspace"),
    )
    query: str | None = option(None, "SELECT that gives the table, if it is a database.")
    delimiter: str | None = delimiter_option()
    init_schema: Path | None = option(
        None,
        "File for a schema to fill in, made from names and types of the columns and never from values; nothing is"
        " released.",
        names="output",
        not_swept="a task writes its table and no other file",
    )
    method: Literal["auto", "copula", "features", "marginals", "subspace", "exponential"] = option(
        "auto",
        "Mechanism: kernels of columns and of pairs (copula), random features, noisy marginals, the span of points"
        " (subspace) or a small table (exponential); auto takes copula, or the first that the options go with.",
    )
    favour: Literal["balance", "marginals", "correlations", "rows"] = option(
        "balance", "What the rows keep best; it sets the shares of the budget.", methods=("copula",)
    )
    algorithm: Literal["mst", "aim"] = option(
        "mst",
        "Choice of the marginals: mst takes a tree of pairs at once, aim one pair after another, and is slower.",
        methods=("marginals",),
    )
    noise: Literal["gaussian", "laplace"] = option(
        "gaussian", "Noise; laplace promises delta 0 and is larger.", methods=("features", "subspace")
    )
    size: int | None = option(
        None,
        "Number of features, of points drawn from the schema (subspace), or of rows (exponential).",
        least=1,
        most=10**5,
        methods=("features", "subspace", "exponential"),
        default_text="1000; 3 for exponential",
    )
    public: TableSource | None = option(
        None,
        "Table of rows that are public already, with the same schema; their span replaces points from the schema.",
        metavar="FILE",
        names="file",
        objects=True,
        methods=("subspace",),
    )
    public_is_public: bool = option(
        False,
        "Confirm that all rows of --public are public, though the private table has more of them than chance makes"
        " likely.",
        methods=("subspace",),
    )
    rows: int | None = option(
        None,
        "Rows of the synthetic table.",
        least=1,
        most=10**6,
        methods=("copula", "features", "marginals", "subspace"),
        default_text="as many as the table has, at most 100,000; 1000 for features and subspace, and with --weights"
        " one for each point of a subspace",
    )
    weights: Literal["uniform", "simplex", "l1", "raw"] = option(
        "uniform",
        "Weights of the rows: uniform writes plain rows, simplex probabilities; l1 (see --weight-bound) and raw are for"
        " a subspace and may be negative.",
        methods=("features", "subspace"),
    )
    weight_bound: float = option(
        1.0, "Bound C on the sum of absolute weights (Theorem 13), for --weights l1.", least=1, methods=("subspace",)
    )
    unknown: Literal["error", "missing"] = option(
        "error", "Meaning of a value that cannot be read, in a column that may have missing ones."
    )
    ledger: Path | None = option(
        None,
        "File of what each table has spent; a release that would exceed the table's limit is refused.",
        names="output",
        not_swept=NO_LEDGER,
    )
    name: str | None = option(
        None, "Name of the table in the ledger.", default_text="that of its file, links resolved", not_swept=NO_LEDGER
    )
    limit: tuple[float, float] | None = option(
        None,
        "Epsilon and delta of all releases of the table together; the first release sets them.",
        metavar="EPSILON DELTA",
        least=0,
        not_swept=NO_LEDGER,
    )
    again: RecordSource | None = option(
        None,
        "Record of a release, to make rows from it again: this costs no privacy and needs no table.",
        metavar="FILE",
        names="file",
        objects=True,
    )
    time_limit: float | None = option(
        None, "Seconds for making the rows; the best rows so far are taken.", above=0, methods=("features",)
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
        "Check schema, all cells, files and budget, and show the noise and the errors to expect; nothing is spent and"
        " nothing is written.",
        recorded=False,
        not_swept="a task makes a table",
    )
    overwrite: bool = option(
        False,
        "Replace files that this command did not write with these settings; the record of a release never is.",
        recorded=False,
        not_swept="a task writes its table only",
    )

    def check(self) -> None:
        """Refuse fields that do not go with `init_schema` or `again`, and a release that lacks
        something.
        """
        for mode, fields in (("init_schema", TEMPLATE), ("again", AGAIN)):
            if getattr(self, mode) is not None:
                option_name = fields_of(type(self))[mode].shell_name
                for name in given(self):
                    if name not in fields:
                        other = fields_of(type(self))[name].shell_name
                        raise InputError(f"{other} does not go with {option_name}", "leave one of them out")
                break
        else:
            self._check_release()
        if self.weights != "l1" and self.weight_bound != 1:
            raise InputError(f"--weight-bound does not go with --weights {self.weights}", "it is for l1")
        if self.again is None and self.table is None:
            raise InputError("TABLE is missing", "give a private table")
        check_delimiter(self.delimiter, [self.table, self.public])

    def _check_release(self) -> None:
        for name in ("schema", "epsilon"):
            if getattr(self, name) is None:
                raise InputError(f"--{name} is missing", "a release needs it")
        if self.noise == "laplace" and self.delta:
            raise InputError("--delta does not go with --noise laplace", "Laplace noise promises delta 0")
        if self.person is not None and self.most is None:
            raise InputError(
                "--person is given without --most", "give the largest number of a person's rows that count"
            )
        if self.most is not None and self.person is None:
            raise InputError(
                "--most is given without --person", "name the column of persons; --weight-bound bounds weights"
            )
        if self.public is not None and self.size is not None:
            raise InputError("--size does not go with --public", "the public rows have a size already")
        if self.public_is_public and self.public is None:
            raise InputError("--public-is-public is given without --public", "leave it out")
        if self.ledger is None:
            for name in ("limit", "name"):
                if getattr(self, name) is not None:
                    raise InputError(f"--{name} is given without --ledger", "give the file of a ledger")
        self.chosen_method()

    def chosen_method(self) -> Method:
        """The method, or the first that heeds every option that was given."""
        if self.method != "auto":
            return self.method
        methods = heeding(self, AUTO)
        weighted = self.weights in ("l1", "raw")
        if weighted and "subspace" not in methods:
            raise InputError(f"--weights {self.weights} does not go with --time-limit", "it is for subspace")
        if not self.delta and len(methods) > 1:
            methods = [m for m in methods if m != "copula"]  # its noise needs a delta
        return "subspace" if weighted else cast("Method", methods[0])

    @property
    def stem(self) -> str:
        """Name of the table, as `table_stem` gives it."""
        return table_stem(self.table)


def run(request: ReleaseRequest, progress: Progress) -> ReleaseResult:
    """Release the table, make rows again from a record, or make a template of a schema."""
    if request.init_schema is not None:
        return _init_schema(request)
    if request.again is None:
        check_apart(request)
        plan = plan_of(request)
        spending = spending_of(request, plan)
        if request.dry_run:
            from thesis_cli.commands.release.preview import preview

            with spending.guarded():
                return preview(request, plan, spending)
        spending.check(plan.budget)
        with claimed(request.out, request.overwrite), spending.guarded():
            record = measured(request, plan, spending, progress)
            return result_of(request, record, spending.total, progress)
    record = record_of(request.again)
    check_methods(request, record.method)
    check_weighted_rows(request, record.method)
    if request.out is not None:
        check_same(request.out, replace(record, made=made_of(request)), request.overwrite)
    return result_of(request, record, None, progress)


def _init_schema(request: ReleaseRequest) -> ReleaseResult:
    from thesis_cli.privacy.tables.schema import template
    from thesis_cli.privacy.tables.table import open_table

    assert request.init_schema is not None
    assert request.table is not None
    check_overwritten("--init-schema", request.init_schema, request.overwrite)
    columns = open_table(request.table, request.query, delimiter=request.delimiter or "").columns
    text = template(columns)
    write_atomic({request.init_schema: text})
    stored = Columns({"column": list(columns), "storage": list(columns.values())})
    return ReleaseResult(columns=stored, request=request, settings=settings_of(request), template=text)


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
