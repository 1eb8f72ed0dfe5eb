"""Files that `dp-release` may write: no release is overwritten, since its budget was spent for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import check_writable

if TYPE_CHECKING:
    from thesis_cli.privacy.release_record import Record


def check_unpaid(out: Path) -> None:
    """Refuse to overwrite a release: its budget would have been spent for nothing."""
    record = out.with_suffix(".json")
    check_writable("--out", out, ".csv")
    if record.exists() and not out.exists():
        raise InputError(f"{record} is a release without rows", f"thesis-cli dp-release --again {record} makes them")
    for path in (out, record):
        if path.exists():
            raise InputError(f"{path} exists, and its budget was spent", "give another --out, or remove it")


def check_same(file: Path, record: Record) -> None:
    """Refuse to overwrite the record of another release."""
    from thesis_cli.privacy.release_files import read_record

    if file.exists() and replace(read_record(file), objective=None) != replace(record, objective=None):
        raise InputError(f"{file} is the record of another release", "give another --out")
