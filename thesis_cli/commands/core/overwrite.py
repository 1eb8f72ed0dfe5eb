"""The overwrite check: a command replaces only files that it wrote itself, with the same settings.

A table is known by the record beside it, a figure by a mark among its metadata. The record of a
private release is never replaced: its noisy vector and its budget would be lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from thesis_cli.base.errors import InputError
from thesis_cli.base.files import to_json
from thesis_cli.commands.core.fields import Request, settings_of

RELEASE = b'"format": "thesis-cli priva'
"""First keys, after a brace, of records of releases and measurements, and of privacy ledgers."""
PLACEHOLDER = "thesis-cli private release, not made yet"
"""Format of the file that holds the name of a record until the record takes its place."""
FOLDERS = {".corpus": "corpus.json"}
"""Suffixes of results that are folders, with the names of their records."""
NOT_SETTINGS = ("jobs", "out")
"""Fields that change no result."""


def record_of(path: Path) -> Path:
    """The record of a result: beside its file, or in its folder."""
    name = FOLDERS.get(path.suffix.lower())
    return path / name if name else path.with_suffix(".json")


def command_of(request: Request) -> str:
    """Name of the command that a request is for, as the shell has it."""
    from thesis_cli.commands.core.registry import entries

    module = type(request).__module__.rpartition(".")[2]
    return next((entry.shell for entry in entries().values() if entry.function == module), module)


def written_by(record: Path, request: Request) -> bool:
    """Whether a record is that of the same command with the same settings, whatever its file and
    its number of cores.
    """
    try:
        old = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
        return bool(old["command"] == command_of(request) and _relevant(old["asked"]) == _asked(request))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def mark(request: Request) -> str:
    """Origin of a figure, for its metadata: the command, and a digest of the settings."""
    digest = hashlib.sha256(json.dumps([_asked(request), str(getattr(request, "out", ""))]).encode()).hexdigest()
    return f"thesis-cli {command_of(request)} {digest[:16]}"


def check_overwritten(option: str, path: Path, overwrite: bool) -> None:
    """Refuse a file that exists, and that is not known to be the same command's.

    Raises
    ------
    InputError : the file may not be replaced without `overwrite`, or not at all.
    """
    if not path.is_file():  # what is none is refused for that
        return
    check_release(path)
    if not overwrite:
        problem = f"{option} {path} exists" if option else f"{path} exists"
        raise InputError(
            f"{problem}, and is not from this command with these settings", "give another name, or --overwrite"
        )


def check_release(path: Path) -> None:
    """Refuse to replace the record of a private release.

    Raises
    ------
    InputError : naming the file.
    """
    if holds_release(path):
        problem = "it is the record of a private release, whose budget is spent"
        raise InputError(problem, "give another name; no option replaces it", source=path)


def holds_release(path: Path) -> bool:
    """Whether a file is the record of a private release, of any version, damaged or not."""
    try:
        if not path.is_file():
            return False
        with open(path, "rb") as file:
            return RELEASE in file.read(200)
    except OSError:
        return False


def unfinished(path: Path) -> bool:
    """Whether a file is the placeholder of a release that is being made, or was killed."""
    try:
        return path.is_file() and PLACEHOLDER.encode() in path.read_bytes()[:200]
    except OSError:
        return False


def _asked(request: Request) -> Any:
    return _relevant(json.loads(to_json(settings_of(request))))


def _relevant(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in NOT_SETTINGS}
