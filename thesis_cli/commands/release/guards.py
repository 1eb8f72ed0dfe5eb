"""Checks that stop a release before it spends: files that would be lost, and public rows that are not
public; and reports of noise before it is drawn.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable, is_url
from thesis_cli.base.locks import locked
from thesis_cli.commands.core.result import PLACEHOLDER, check_overwritten, holds_release, unfinished
from thesis_cli.commands.release.budget import resolved_file

if TYPE_CHECKING:
    from thesis_cli.privacy.release.implementation import ExpectedStage
    from thesis_cli.privacy.release.plan import ReleasePlan
    from thesis_cli.privacy.release.record import Record
    from thesis_cli.privacy.tables.schema import Unknown
    from thesis_cli.privacy.tables.table_base import Table

logger = logging.getLogger("thesis_cli.guarantee")
logger.setLevel(logging.WARNING)  # --quiet does not silence the worth of a guarantee


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
    for option, path in {"--ledger": local, "--out": out, "the record": record}.items():
        if path is None:
            continue
        if path.resolve() in taken:
            raise InputError(f"{option} {path} is {taken[path.resolve()]} as well", "give files of different names")
        taken[path.resolve()] = f"the file of {option}"


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
            logger.warning("%s: a release was killed before this file was complete, maybe after it had spent", record)
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
        logger.warning("delta %g is 1/N or more, for %s: a smaller one guarantees more", record.promise.delta, estimate)


def warn_of_noise(plan: ReleasePlan, count: int) -> None:
    """Report noise-dominated vectors, before anything is spent.

    Raises
    ------
    InputError : the noise is so large that no rows could be made.
    """
    from thesis_cli.privacy.release.expected import expected_stages

    stages = expected_stages(plan, count)
    for stage in stages:
        if not stage.noise < MOST_NOISE:
            problem = f"the noise would have norm {stage.noise:.3g}, for a signal of norm {stage.bound:.3g}"
            raise InputError(problem, "give a larger --epsilon")
    for text in noise_dominated(plan, stages):
        logger.warning("%s", text)


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
