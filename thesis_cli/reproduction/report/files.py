"""Table, record and figure of an experiment in a folder of results, as far as they can be used."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thesis_cli.reproduction.digests import was_changed


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


FIELDS: Mapping[str, Callable[[object], bool]] = {
    "title": _is_text,
    "source": _is_text,
    "caption": _is_text,
    "preset": _is_text,
    "when": _is_text,
    "python": _is_text,
    "settings": _is_mapping,
    "versions": _is_mapping,
    "machine": _is_mapping,
    "seed": _is_count,
    "tasks": _is_count,
    "task_seconds": _is_duration,
}
"""Fields of a record that are shown, and what they must be; a record may lack any."""


@dataclass(frozen=True)
class Files:
    """What a folder has of an experiment.

    Attributes
    ----------
    table : its CSV; None if it is missing.
    record : the values of its JSON file without those that are damaged; empty if it is missing.
    figure : its PNG; None if it is missing or damaged.
    faults : what is missing or does not fit, one line each.
    """

    table: Path | None
    record: Mapping[str, Any]
    figure: Path | None
    faults: tuple[str, ...]


def read_files(folder: Path, name: str) -> Files:
    """Find and check the files of an experiment."""
    table, path, figure = (folder / f"{name}.{kind}" for kind in ("csv", "json", "png"))
    if not (table.exists() or path.exists() or figure.exists()):
        return Files(None, {}, None, (f"{name} was not run: its table, record and figure are missing",))
    record, faults = _record(path)
    if not table.is_file():
        faults.append(f"{table.name} is missing")
    elif was_changed(table, record):
        faults.append(f"{table.name} is not the table that {path.name} describes: it was changed afterwards")
    if problem := _problem(figure):
        faults.append(f"{figure.name} is {problem}")
    return Files(table if table.is_file() else None, record, None if problem else figure, tuple(faults))


def _record(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, [f"{path.name} is missing"]
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return {}, [f"{path.name} is damaged"]
    bad = [name for name, suits in FIELDS.items() if name in found and not suits(found[name])]
    kept = {name: value for name, value in found.items() if name not in bad}
    return kept, [f"{path.name} is damaged: {', '.join(bad)}"] * bool(bad)


def _problem(figure: Path) -> str:
    """What is wrong with a picture; empty if nothing."""
    from PIL import Image

    if not figure.is_file():
        return "missing"
    try:
        with Image.open(figure, formats=["PNG"]) as picture:
            picture.verify()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return "damaged"
    return ""
