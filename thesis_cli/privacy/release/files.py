"""Reading of a release: rows in a CSV file, and beside it their record in JSON, which is read with
suspicion: keys, numbers, and the shapes that follow from the schema and the settings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.release.methods import METHODS
from thesis_cli.privacy.release.record import (
    FORMAT,
    WEIGHT,
    Record,
    Release,
    content_digest,
    keys_of,
    read,
    read_fields,
    written,
)
from thesis_cli.privacy.release.release import Implementation, check_size, implementation_of
from thesis_cli.privacy.tables.schema import Schema, Values
from thesis_cli.privacy.tables.table import encoded_rows, open_table

NOT_A_RECORD = "it is not the record of a release", "it must be a file that dp-release wrote"
CHANGED = "its content is not that of its sha256", "take the file as dp-release wrote it"

POSITIVE = frozenset(
    {
        *("candidates", "contributions", "deviation", "domain", "effective", "epsilon", "most", "norm", "points"),
        *("rho", "rows", "scale", "sensitivity", "share", "size", "total"),
    }
)
"""Numbers that are above 0, but for the deviation of noise on a number that has none."""
UNSIGNED = frozenset({"delta", "granularity"})

LARGEST = 1e50
"""Squares of more overflow."""


def record_path(path: str | Path) -> Path:
    """Path of the record that belongs to a CSV file."""
    return Path(path).with_suffix(".json")


def read_record(path: str | Path) -> Record:
    """Read the record of a release, given its path or that of the CSV file.

    Raises
    ------
    InputError : there is no such file, or it is no record.
    """
    found = record_path(path)
    try:
        text = found.read_text(encoding="utf-8")
    except OSError as error:
        problem = f"the record of the release cannot be read ({error.strerror})"
        raise InputError(problem, "dp-release writes it beside the CSV file", source=found) from None
    except UnicodeDecodeError:
        raise InputError(*NOT_A_RECORD, source=found) from None
    return parse_record(text, found)


def parse_record(text: str, source: str | Path = "the record") -> Record:
    """Read the text of a record's file.

    Parameters
    ----------
    source : file that errors name.

    Raises
    ------
    InputError : the text is no record, or was changed; names the key that is wrong, unknown or
        missing. Records of earlier versions of this program have no digest.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(*NOT_A_RECORD, source=source) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(*NOT_A_RECORD, source=source)
    digest = content.pop("sha256", None)
    if digest not in (None, content_digest(content)):
        raise InputError(*CHANGED, source=source)
    try:
        return _checked({key: value for key, value in content.items() if key != "format"})
    except InputError as error:
        raise InputError(error.problem, error.remedy, source=source) from None


def _checked(content: dict[str, Any]) -> Record:
    """A record whose method, mechanism and output belong together."""
    if "method" not in content:
        raise InputError("method is missing", "a release has it")
    name = read(Literal[tuple(METHODS)], content["method"], "method")
    method = implementation_of(name)
    _check_parts(content, name, method)
    record: Record = read_fields(Record, content, types={"mechanism": method.proof, "output": method.output})
    _check(record)
    method.check(record)
    return record


def _check_parts(content: dict[str, Any], name: str, method: Implementation) -> None:
    """Refuse the mechanism or the output of another method, and a release without an output."""
    held = next(key for key in reversed(keys_of(method.output)))
    own, found = set(keys_of(method.proof)), content.get("mechanism")
    others = [other for other in METHODS if other != name and _strange(content, own, method)]
    for other in map(implementation_of, others):
        if isinstance(found, dict) and len(set(found) ^ set(keys_of(other.proof))) < len(set(found) ^ own):
            raise InputError(f"mechanism does not belong to method {name!r}", "both must be of one release")
        for key in set(keys_of(other.output)) - set(keys_of(method.output)):
            if key in content:
                raise InputError(f"a release by {name} has {held} and no {key}", "both must be of one release")
    if held not in content:
        raise InputError(f"a release by {name} has {held}", "both must be of one release")


def _strange(content: dict[str, Any], own: set[str], method: Implementation) -> bool:
    """Whether a record has keys that those of its method do not have."""
    found = content.get("mechanism")
    known = {*keys_of(Record), *keys_of(method.output)}
    return not set(content) <= known or (isinstance(found, dict) and set(found) != own)


def _check(record: Record) -> None:
    """Refuse a record whose numbers cannot be, or whose parts contradict each other."""
    try:
        schema = record.schema
    except InputError as error:
        raise InputError(f"schema: {error.problem}", error.remedy) from None
    if (record.promise.rows is None) == (record.counted is None):
        raise InputError("the number of rows is both public and noisy, or neither", "promise.rows or counted has it")
    for key, value in _numbers_of(written(record)):
        _check_number(key, value)
    check_size("kernel.gamma", len(record.kernel.gamma), schema.reals)
    check_size("kernel.rho", len(record.kernel.rho), len(schema.cardinalities))


def _numbers_of(value: Any, key: str = "") -> Iterator[tuple[str, float]]:
    """All numbers of a record by key; those of a list have the key of the list."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _numbers_of(part, f"{key}.{name}" if key else name)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _numbers_of(part, f"{key}[]")
    elif isinstance(value, int | float) and not key.startswith(("entropy", "versions")):
        yield key, value


def _check_number(key: str, value: float) -> None:
    name = key.rpartition(".")[2]
    if abs(value) > LARGEST:
        raise InputError(f"{key} is {value:g}", f"it must be at most {LARGEST:g}")
    if name in POSITIVE and not value > 0 and key != "counted.deviation":
        raise InputError(f"{key} is {value:g}", "it must be above 0")
    if (name in UNSIGNED or key.startswith("kernel.")) and value < 0:
        raise InputError(f"{key} is {value:g}", "it must be at least 0")
    if name == "delta" and value >= 1:
        raise InputError(f"{key} is {value:g}", "it must be below 1")


def read_release(path: str | Path) -> Release:
    """Read a release, given the path of its CSV file or of its record; without a column of weights,
    they are equal.

    Raises
    ------
    InputError : one of the two files is missing, or is not what dp-release writes.
    """
    record = read_record(path)
    schema = record.schema
    table = open_table(str(Path(path).with_suffix(".csv")), names=schema.names_read, delimiter=",")
    points = Rows.concatenate(list(encoded_rows(table, schema)) or [_no_rows(schema)])
    if not len(points):
        raise InputError("the release has no rows", "it must have at least one", source=table.source)
    if WEIGHT in table.columns and WEIGHT not in schema.names:
        weights = np.concatenate([_numbers(part[WEIGHT], table.source) for part in table.chunks(names=[WEIGHT])])
    else:
        weights = np.full(len(points), 1 / len(points))
    return Release(schema, points, weights, record)


def _no_rows(schema: Schema) -> Rows:
    return Rows(np.zeros((0, schema.reals)), np.zeros((0, len(schema.cardinalities)), np.int64))


def _numbers(texts: Values, source: str) -> Floats:
    try:
        found = texts.astype(np.float64)
    except ValueError:
        found = np.array([math.nan])
    if not np.isfinite(found).all():
        raise InputError(f"a {WEIGHT} is not a number", "the file must be one that dp-release wrote", source=source)
    return np.asarray(found)
