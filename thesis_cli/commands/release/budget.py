"""The budget that a release spends: the checks that stop a release before (files that would be lost,
public rows that are not public), when it is charged, and what is reported if the release then stops.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from thesis_cli.base.errors import InputError, WorkFailed, describe, without_secrets
from thesis_cli.base.files import check_writable, file_identity, is_url, locked
from thesis_cli.commands.core.fields import Request, given, option
from thesis_cli.commands.core.result import PLACEHOLDER, check_overwritten, holds_release, unfinished

if TYPE_CHECKING:
    from thesis_cli.privacy.accounting.identity import Content
    from thesis_cli.privacy.accounting.ledger import Total
    from thesis_cli.privacy.mechanisms.mechanism import Budget
    from thesis_cli.privacy.release.record import Record
    from thesis_cli.privacy.release.release import ExpectedStage, ReleasePlan
    from thesis_cli.privacy.tables.schema import Unknown
    from thesis_cli.privacy.tables.table_kinds import Table


logger = logging.getLogger("thesis_cli")
guarantees = logging.getLogger("thesis_cli.guarantee")
guarantees.setLevel(logging.WARNING)  # --quiet does not silence the worth of a guarantee

NO_LEDGER = (
    "the tasks of a sweep are many releases; divide the budget before the sweep: its tasks spend at most the sum of"
    " their epsilons, and of their deltas"
)


def ledger_option(product: str) -> Any:
    """The ledger of what tables have spent; its type is `str | None`."""
    words = (
        "File of what each table has spent, or postgresql://USER@HOST/DATABASE for several machines; a "
        f"{product} that would exceed the table's limit is refused."
    )
    return option(None, words, metavar="FILE", not_swept=NO_LEDGER)


def account_option() -> Any:
    """The name of a table in a ledger; its type is `str | None`."""
    words = "Name of the table in the ledger."
    return option(None, words, default_text="that of its file, links resolved", not_swept=NO_LEDGER)


def new_account_option() -> Any:
    """The confirmation that a table is new to a ledger; its type is `bool`."""
    words = "Confirm that the table is none of those in the ledger that its name or its rows resemble."
    return option(False, words, not_swept=NO_LEDGER)


def limit_option() -> Any:
    """The budget of all releases of a table; its type is `tuple[float, float] | None`."""
    words = "Epsilon and delta of all releases of the table together; the first release sets them."
    return option(None, words, metavar="EPSILON DELTA", least=0, not_swept=NO_LEDGER)


def check_ledger(request: Request) -> None:
    """Refuse options of a ledger without one (`InputError`)."""
    for name in ("limit", "name", "new_account"):
        if name in given(request) and "ledger" not in given(request):
            raise InputError(f"{request.shell_name(name)} is given without --ledger", "give the file of a ledger")


@dataclass
class Spending:
    """Budget that one release spends; it is charged just before the noise is drawn.

    Attributes
    ----------
    ledger : file or database of what each table has spent; None counts nothing.
    table : name of the table in the ledger.
    limit : budget of all releases of the table together, which its first release sets.
    note : words of the ledger about this release.
    file : identity of the table's file, if it has one.
    named : whether a person chose the name.
    product : thing that the noise is on, for messages.
    charged : budget of this release, once it is spent.
    total : budget that all releases of the table have spent, this one included; None without a ledger.
    charging : whether the ledger is asked to charge the budget, and has not answered yet.
    records : files that the records with the noisy embeddings go to: that of TABLE, then that of --households.
    unit : unit of privacy, for the ledger.
    new : whether a person says that the table is no other account's, though it is like one.
    """

    ledger: str | None
    table: str
    limit: Budget | None
    note: str
    file: str | None = None
    named: bool = True
    product: str = "noisy embedding"
    charged: Budget | None = None
    total: Total | None = None
    charging: bool = False
    records: tuple[Path, ...] = ()
    unit: str = "row, replace"
    new: bool = False
    _content: Callable[[bytes], Content] | None = None

    @classmethod
    def of(
        cls,
        ledger: str | None,
        table: object,
        name: str | None,
        limit: tuple[float, float] | None,
        note: str,
        new: bool = False,
    ) -> Spending:
        """Account that a command charges.

        Parameters
        ----------
        table : private table: a path, a URL, or an object of Python.
        name : name of the account; None takes that of the table's file, with links resolved.
        new : see the attribute.

        Raises
        ------
        InputError : a ledger is given, and the table has no name.
        """
        from thesis_cli.privacy.mechanisms.mechanism import Budget

        file = resolved_file(table)
        found = name or table_name(table)
        if ledger is not None and not found:
            raise InputError("--ledger does not go with a table that has no name", "give --name")
        identity = None if file is None else file_identity(file)
        return cls(ledger, found, limit and Budget(*limit), note, file=identity, named=name is not None, new=new)

    def identify(self, budget: Budget, *tables: tuple[Table, Sequence[str]]) -> None:
        """Read the content of the tables for the ledger, and refuse them if they are charged elsewhere.

        The error depends on private rows: it is for people who may see the table.

        Parameters
        ----------
        tables : each with the columns that the release reads, in that order; they may not change from now on.

        Raises
        ------
        InputError : as for `spend`.
        """
        if self.ledger is None:
            return
        from thesis_cli.privacy.accounting.identity import content_of, united

        for table, names in tables:
            table.watch(names)
        self._content = cache(lambda key: united([content_of(table.chunks(), key) for table, _ in tables]))
        self.check(budget)

    def check(self, budget: Budget) -> None:
        """Refuse a budget that the ledger would refuse, before the table is read; nothing is spent.

        A budget with a delta is taken for one of Gaussian noise. The spend itself checks the rho of
        the release.

        Raises
        ------
        InputError : as for `spend`.
        """
        if self.ledger is None:
            return
        from thesis_cli.privacy.accounting.ledger import Ledger
        from thesis_cli.privacy.mechanisms.mechanism import OpenDPGaussian

        about = OpenDPGaussian().calibrate(1, 1.0, budget).rho if budget.delta else None
        rho = about and about * (1 - 1e-6)  # of noise on another vector it is a little less or more
        Ledger(self.ledger, unit=self.unit, new=self.new).check(self.table, budget, rho=rho, **self._options)

    def spend(self, budget: Budget, rho: float | None) -> None:
        """Charge the budget; rho if the noise is rho-zCDP.

        Raises
        ------
        InputError : the limit of the table would be exceeded, or is missing.
        """
        if self.ledger is not None:
            from thesis_cli.privacy.accounting.ledger import Ledger

            ledger = Ledger(self.ledger, unit=self.unit, new=self.new)
            self.charging = True
            self.total = ledger.spend(self.table, budget, self.note, rho=rho, **self._options)
        self.charged = budget
        self.charging = False

    @property
    def _options(self) -> dict[str, Any]:
        return {"limit": self.limit, "file": self.file, "named": self.named, "content": self._content}

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Turn any error that stops the release into one line without values of the table; once the budget is
        spent, also report that, and how to go on.

        Raises
        ------
        WorkFailed : bad input, a failed write or a lack of memory, after the budget was spent; or an
            error that nobody foresaw, by its class and its place in the program.
        """
        try:
            yield
        except (InputError, WorkFailed, OSError, MemoryError) as error:
            if self.charged is None:
                raise _alone(error)  # noqa: B904  whatever else was raised may quote values
            raise WorkFailed(f"{describe(error)}; {self.consequence}") from None
        except KeyboardInterrupt as error:
            if self.charged is not None:
                logger.error("%s", self.consequence)
            elif self.charging:
                logger.error(
                    "the budget may count as spent: %s shows whether it does", without_secrets(self.ledger or "")
                )
            raise _alone(error)  # noqa: B904
        except Exception as error:  # noqa: BLE001  its text may quote values
            spent = f"; {self.consequence}" if self.charged else ""
            raise WorkFailed(f"{_place(error)}: {type(error).__name__}, an error of this program{spent}") from None

    @property
    def consequence(self) -> str:
        """Sentence that the budget counts as spent, and how rows can be made without spending again."""
        assert self.charged is not None
        spent = f"the budget ({self.charged.epsilon:.4g}, {self.charged.delta:.4g}) counts as spent"
        if not all(holds_release(file) and not unfinished(file) for file in self.records) or not self.records:
            return f"{spent}, and no file keeps the {self.product}, which is lost"
        files = zip(("--again", "--households"), self.records, strict=False)
        again = " ".join(["thesis-cli dp-release", *(f"{name} {shlex.quote(str(file))}" for name, file in files)])
        return f"{spent}; {self.records[0]} keeps the noisy embedding, and {again} makes its rows"


Raised = TypeVar("Raised", bound=BaseException)


def _alone(error: Raised) -> Raised:
    """An error without those that led to it: what a library raises may quote values."""
    error.__cause__ = error.__context__ = None
    return error


def _place(error: BaseException) -> str:
    """File and line of this program that an error comes from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "thesis_cli" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"


def resolved_file(table: object) -> Path | None:
    """File of a table, with all links resolved: of a path, or of the URL of a SQLite database; None
    for other tables.
    """
    if not isinstance(table, str | Path) or str(table) == "-":
        return None
    found = re.match(r"sqlite(?:\+\w+)?:///([^?]*)", str(table))
    if not found and re.match(r"\w+(\+\w+)?://|(sqlite|postgres\w*)(\+\w+)?:", str(table)):
        return None
    path = Path(found[1] if found else str(table))
    return path.resolve() if path.name else None


def table_name(table: object) -> str:
    """Name of a table in a ledger by default: that of its file without folder and suffixes, links
    resolved, or that of its database; empty if it has none.
    """
    file = resolved_file(table)
    if file is None:
        if not isinstance(table, str | Path) or str(table) == "-":
            return ""
        return Path(without_secrets(str(table)).partition("?")[0]).stem
    name = Path(file.stem).stem if file.suffix.lower() in (".gz", ".bz2", ".xz", ".zst") else file.stem
    return name.strip()


MOST_NOISE = 1e50
"""Squares of more overflow when rows are made."""

SECRET = 1000
"""Rows of a table whose number of rows is secret, to compare delta with before anything is spent."""


def check_apart(files: Iterable[str], ledger: str | None, out: Path | None) -> None:
    """Refuse to write the result or the ledger over a file that is read, or one over the other.

    Parameters
    ----------
    files : files that the command reads.

    Raises
    ------
    InputError : naming the option and the file.
    """
    record = out and out.with_suffix(".json")
    taken = {resolved_file(text): "a file that is read" for text in files}
    local = None if ledger is None or is_url(ledger) else Path(ledger)
    for name, path in {"--ledger": local, "--out": out, "the record": record}.items():
        if path is None:
            continue
        if path.resolve() in taken:
            raise InputError(f"{name} {path} is {taken[path.resolve()]} as well", "give files of different names")
        taken[path.resolve()] = f"the file of {name}"


def check_unpaid(out: Path, overwrite: bool = False) -> None:
    """Refuse to overwrite a release, whose budget would have been spent for nothing, or another
    file.
    """
    record = out.with_suffix(".json")
    check_writable("--out", out, ".csv")
    if holds_release(record) and not unfinished(record):
        if not holds_vector(record):
            problem = f"{record} is the record of a measurement, or a ledger, and its budget was spent"
            raise InputError(problem, "give another --out")
        if not out.exists():
            again = f"thesis-cli dp-release --again {record}"
            raise InputError(f"{record} is a release without rows", f"{again} makes them")
        remedy = f"give another --out; thesis-cli dp-release --again {record} makes other rows and spends nothing"
        raise InputError(f"{record} is the record of a release, and its budget was spent", remedy)
    check_overwritten("--out", out, overwrite)
    if not unfinished(record):
        check_overwritten("", record, overwrite)


def holds_vector(record: Path) -> bool:
    """Whether a record is that of a release, from which rows can be made again."""
    with open(record, "rb") as file:
        return b'"format": "thesis-cli private release' in file.read(200)


@contextmanager
def claimed(out: Path | None, overwrite: bool = False) -> Iterator[None]:
    """Hold the names of a release's files while the body makes it; of several processes that try,
    one does.

    A lock holds the names, and a placeholder takes that of the record, so that nobody else makes a
    file of that name. If the body fails before the record is written, the placeholder goes. A
    killed process leaves it behind without the lock: the next one takes it over, with a warning.

    Raises
    ------
    InputError : another process holds the names, or the files exist.
    """
    if out is None:
        yield
        return
    record = out.with_suffix(".json")
    check_unpaid(out, overwrite)
    made = [folder for folder in record.absolute().parents if not folder.exists()]
    with _removed(made), locked(record, "wait until that release has ended, or give another --out", private=True):
        check_unpaid(out, overwrite)  # another may just have ended
        if unfinished(record):
            guarantees.warning(
                "%s: a release was killed before this file was complete, maybe after it had spent", record
            )
        elif not record.exists():
            _reserve(record)
        try:
            yield
        finally:
            if unfinished(record):
                record.unlink(missing_ok=True)


@contextmanager
def _removed(folders: list[Path]) -> Iterator[None]:
    """Remove folders afterwards that are still empty, innermost first."""
    try:
        yield
    finally:
        with suppress(OSError):
            for folder in folders:
                folder.rmdir()


def check_same(out: Path, record: Record, overwrite: bool) -> None:
    """Refuse to overwrite the record of another release, rows that are not from `record` with the
    same settings, and other files.

    Parameters
    ----------
    record : with the settings of its rows (`made`).
    """
    file = out.with_suffix(".json")
    check_writable("--out", out, ".csv")
    other = written_record(file)
    if other is None:
        check_overwritten("", file, overwrite)
    elif replace(other, objective=None, made=None) != replace(record, objective=None, made=None):
        raise InputError(f"{file} is the record of another release", "give another --out")
    if other is None or other.made != record.made:
        check_overwritten("--out", out, overwrite)


def written_record(file: Path) -> Record | None:
    """The record that a file holds; None if it holds something else.

    Raises
    ------
    InputError : the file is a damaged or unfinished record.
    """
    from thesis_cli.privacy.release.files import read_record

    return read_record(file) if holds_release(file) else None


def check_public(public: object, source: object, plan: ReleasePlan, table: Table, unknown: Unknown, sure: bool) -> None:
    """Refuse public rows that are rows of the private table.

    A table that is equal row by row is always refused; one that shares more rows than chance makes
    likely, unless a person is `sure` that it is public. The error depends on private rows: it is for
    people who may see the table.

    Parameters
    ----------
    public, source : the public and the private table, as given.
    """
    if plan.public is None or public is None:
        return
    same = resolved_file(public)
    if public is source or (same is not None and same == resolved_file(source)):
        raise InputError("--public is the private table itself", "public rows are published as they are")
    from thesis_cli.privacy.tables.overlap import fingerprints, overlap
    from thesis_cli.privacy.tables.table import encoded_rows

    found = overlap(fingerprints([plan.public]), fingerprints(encoded_rows(table, plan.schema, unknown=unknown)))
    if found.identical:
        raise InputError("--public has the very rows of the private table", "public rows are published as they are")
    if not found.likely and not sure:
        shared = f"{found.shared:,} of the {found.public:,} rows of --public are rows of the private table"
        remedy = "public rows are published as they are; --confirm-public confirms that all of them are public"
        raise InputError(f"{shared}, more than chance makes likely", remedy)


def check_delta(delta: float, count: int | None, accepted: bool) -> None:
    """Refuse a delta of 1/N or more, unless it is accepted.

    Parameters
    ----------
    count : number N of rows; None if it is secret, which takes the delta for that of `SECRET` rows.
    """
    if accepted or delta * (count or SECRET) < 1:
        return
    table = f"N = {count:,}" if count else f"a table of {SECRET:,} rows, as the number of rows is secret"
    raise InputError(
        f"--delta {delta:g} is 1/N or more, for {table}: such a guarantee allows publishing a row as it is",
        "give a smaller one; --accept-delta releases all the same",
    )


def warn_of_delta(record: Record) -> None:
    """Compare delta with a secret number of rows, as far as it is published with noise."""
    if record.counted and record.promise.delta * record.counted.rows >= 1:
        estimate = f"N, of which the estimate is {record.counted.rows:,.0f}"
        guarantees.warning(
            "delta %g is 1/N or more, for %s: a smaller one guarantees more", record.promise.delta, estimate
        )


def warn_of_noise(plan: ReleasePlan, count: int) -> None:
    """Report noise-dominated vectors, before anything is spent.

    Raises
    ------
    InputError : the noise is so large that no rows could be made.
    """
    from thesis_cli.privacy.release.release import expected_stages

    stages = expected_stages(plan, count)
    for stage in stages:
        if not stage.noise < MOST_NOISE:
            problem = f"the noise would have norm {stage.noise:.3g}, for a signal of norm {stage.bound:.3g}"
            raise InputError(problem, "give a larger --epsilon")
    for text in noise_dominated(plan, stages):
        guarantees.warning("%s", text)


def noise_dominated(plan: ReleasePlan, stages: Iterable[ExpectedStage]) -> list[str]:
    """Warnings of vectors whose noise is as large as the signal."""
    found = []
    less = "a larger --epsilon or a smaller --size has" if plan.row.size else "a larger --epsilon has"
    for stage in stages:
        if stage.noise_dominated:
            of = f" of {stage.name}" if plan.row.stages else ""
            noise = f"the noise{of} has norm {stage.noise:.3g}"
            signal = f"dominates the signal, whose norm is at most {stage.bound:.3g}"
            found.append(f"{noise} and {signal}: rows will show little of the table; {less} less noise")
    return found


def _reserve(record: Path) -> None:
    """Write the placeholder, if nobody has a file of that name."""
    try:
        with open(record, "x", encoding="utf-8") as file:
            file.write(json.dumps({"format": PLACEHOLDER, "process": os.getpid()}) + "\n")
    except FileExistsError:
        raise InputError("it exists", "give another --out", source=record) from None
