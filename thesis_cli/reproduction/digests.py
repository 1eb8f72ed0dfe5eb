"""Digests of tables in the records beside them, which tell whether a table was changed by hand."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from thesis_cli.base.files import to_json, write_atomic
from thesis_cli.reproduction.registry import find_checkout

DIGEST = "sha256"
"""Field of a record that says which table it describes."""

BEFORE = "when"
"""Field of a record that the digest stands before."""


def digest(table: bytes) -> str:
    """SHA-256 of a table, in hexadecimal digits."""
    return hashlib.sha256(table).hexdigest()


def was_changed(table: Path, record: Mapping[str, Any]) -> bool:
    """Whether a table is not the one that its record describes; a record without a digest tells nothing."""
    return DIGEST in record and record[DIGEST] != digest(table.read_bytes())


def with_digest(record: Mapping[str, Any], table: bytes) -> dict[str, Any]:
    """A record with the digest of its table, in the place where new records have it."""
    fields = {name: value for name, value in record.items() if name != DIGEST}
    place = list(fields).index(BEFORE) if BEFORE in fields else len(fields)
    items = list(fields.items())
    return dict([*items[:place], (DIGEST, digest(table)), *items[place:]])


def complete(folder: Path) -> dict[str, str]:
    """Add the digest to the records of a folder that have none.

    A table must be as git has it, and not committed after its record, so that nothing changed by
    hand gets a digest.

    Returns
    -------
    done : by the name of each record without a digest: empty, or why it has got none.
    """
    done: dict[str, str] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        table = path.with_suffix(".csv")
        if not isinstance(record, dict) or DIGEST in record or not table.is_file():
            continue
        done[path.name] = _doubt(table, path)
        if not done[path.name]:
            write_atomic({path: to_json(with_digest(record, table.read_bytes()))})
    return done


def _doubt(table: Path, record: Path) -> str:
    """Why a table may not be the one that its record describes, by git alone."""
    changed = _git(table.parent, "status", "--porcelain", "--", table.name, record.name)
    last = {path: _git(table.parent, "log", "-1", "--format=%H", "--", path.name) for path in (table, record)}
    if changed or not all(last.values()):
        return "it is not as git has it"
    later = subprocess.run(["git", "merge-base", "--is-ancestor", last[table], last[record]], cwd=table.parent)
    return "" if later.returncode == 0 else "the table was committed after the record"


def _git(folder: Path, *arguments: str) -> str:
    """What git prints; nothing where it fails, as in a repository without commits."""
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Complete the committed records."""
    import typer

    for name, doubt in complete(find_checkout().results("paper")).items():
        typer.echo(f"{name}  {doubt or 'done'}")


if __name__ == "__main__":
    main()
