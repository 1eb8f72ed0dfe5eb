"""The public description of a private table: columns, bounds, levels, kernel; rows encoded by it and decoded.

A schema is public input: whoever writes it takes bounds and levels from what is known without the table (a code
book, a law, common sense). Nothing here looks at values to choose a bound, a level, a bandwidth or a default.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING as REQUIRED
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import nearest
from thesis_cli.privacy.columns import (
    KINDS,
    Boolean,
    Category,
    Column,
    Integer,
    Real,
    Values,
    check_kernel,
    first_double,
    wrong,
)
from thesis_cli.privacy.kernels import Kernel, Rows

__all__ = ["Boolean", "Category", "Column", "Integer", "Real", "Schema", "Unknown", "Values", "template"]

Unknown = Literal["error", "missing"]

EXPONENT = 4.0  # mean of -ln k over two independent uniform rows, where the schema does not set the kernel


@dataclass(frozen=True)
class Schema:
    """The public columns of a private table, and the kernel on its rows.

    Attributes
    ----------
    columns : at least one, no two of one name. Other columns of the table are left out of the release.
    gamma, rho : of the kernel, for columns that set none of their own.

    Raises
    ------
    InputError : no columns, two of one name, a gamma or rho out of range.
    """

    columns: tuple[Column, ...]
    gamma: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            raise InputError("the schema has no columns", "a table [columns.NAME] for each column is wanted")
        twice = first_double(self.names)
        if twice is not None:
            raise wrong(twice, "it stands there twice", "every column once is wanted")
        check_kernel("the kernel", self.gamma, self.rho)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def reals(self) -> int:
        """Number D of real coordinates of an encoded row."""
        return sum(column.on_line for column in self.columns)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Numbers of levels of the C codes of an encoded row."""
        return tuple(column.cardinality for column in self.columns if column.cardinality)

    def kernel(self) -> Kernel:
        """The kernel on encoded rows.

        Where the schema sets none, gamma = 6 s / T and rho = exp(-s / (T (1 - 1/L))), with s = 4, T = D + C
        coordinates in all, and L levels. Two independent uniform numbers are 1/6 apart in squared mean and two
        uniform levels differ with probability 1 - 1/L, so each coordinate adds s / T to the mean of -ln k of two
        unrelated rows, and k of such rows is about exp(-4) whatever the number of columns: neither near 1, where
        all rows look alike, nor near 0, where no row speaks for another. It depends on the schema alone.
        """
        share = EXPONENT / (self.reals + len(self.cardinalities))
        gamma = 6 * share if self.gamma is None else self.gamma
        return Kernel(
            np.array([gamma if c.gamma is None else c.gamma for c in self.columns if c.on_line], dtype=np.float64),
            np.array([self._rho(c, share) for c in self.columns if c.cardinality], dtype=np.float64),
        )

    def _rho(self, column: Column, share: float) -> float:
        if column.rho is not None:
            return column.rho
        return math.exp(-share / (1 - 1 / column.cardinality)) if self.rho is None else self.rho

    def encode(self, columns: Mapping[str, Values], first_row: int = 1, unknown: Unknown = "error") -> Rows:
        """Rows of a part of the table.

        Parameters
        ----------
        columns : an array of N values by name, of numbers, texts, booleans or objects; others are ignored. None,
            NaN and, unless they are levels, `columns.MISSING_TEXTS` are missing values.
        first_row : number of the first of these rows in the table, for messages.
        unknown : what becomes of a value that is no level, or of the wrong type: an error, or (`missing`, in
            columns that may have missing values) a missing value. The error depends on private values. It is for
            the terminal of who may see the table, names the place and not the value, and must end the release.

        Raises
        ------
        InputError : a column is lacking, or one has an unknown, wrong or (unless it may be) missing value.
        """
        self.check_names(columns)
        lengths = {len(columns[name]) for name in self.names}
        if len(lengths) > 1:
            raise InputError("the columns differ in length", "columns of one table are wanted")
        (count,) = lengths
        reals = np.empty((count, self.reals))
        codes = np.empty((count, len(self.cardinalities)), np.int64)
        d = c = 0
        for column in self.columns:
            found = column.read(np.asarray(columns[column.name]))
            if unknown == "missing" and column.missing:
                found[found < 0] = np.nan
            gaps = np.isnan(found)
            _check_readable(column, found, gaps, first_row)
            if column.on_line:
                reals[:, d] = np.where(gaps, 0.5, found)
                d += 1
                found = np.zeros(count)
            if column.cardinality:
                codes[:, c] = np.where(gaps, column.cardinality - 1, found)
                c += 1
        return Rows(reals, codes)

    def decode(self, rows: Rows) -> dict[str, Values]:
        """The columns that rows stand for, an array of N values by name.

        float64, int64, str or bool by the kind of the column; where it may have missing values they are NaN
        among float64, and None in an array of objects otherwise. Coordinates beyond [0, 1] are clamped.
        """
        columns: dict[str, Values] = {}
        d = c = 0
        for column in self.columns:
            gaps = np.zeros(len(rows), bool)
            found = np.zeros(len(rows))
            if column.cardinality:
                found = rows.codes[:, c].astype(np.float64)
                gaps = found == column.cardinality - 1 if column.missing else gaps
                c += 1
            if column.on_line:
                found = np.clip(rows.reals[:, d], 0, 1)
                d += 1
            values = column.write(np.where(gaps, 0, found))
            if column.missing:
                values = values.astype(np.float64 if column.kind == "real" else object)
                values[gaps] = np.nan if column.kind == "real" else None
            columns[column.name] = values
        return columns

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse a table that lacks a column (`InputError`)."""
        names = tuple(names)
        for name in self.names:
            if name not in names:
                raise InputError(f"the table has no column {name!r}", nearest(name, names, "its columns are"))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a TOML file (`parse`); complaints name it."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise InputError(f"it cannot be read ({error.strerror})", "a schema file is wanted", source=path) from None
        except UnicodeDecodeError:
            raise InputError("it is not UTF-8", "a schema in TOML is wanted", source=path) from None
        try:
            return cls.parse(text)
        except InputError as error:
            raise InputError(error.problem, error.remedy, source=path, line=error.line) from None

    @classmethod
    def parse(cls, text: str) -> Schema:
        """A schema from TOML.

        A table `[columns.NAME]` for each column has `type` (`real`, `integer`, `category`, `boolean`) and, by
        name, the attributes of `Real`, `Integer`, `Category` or `Boolean`; a table `[kernel]` may have `gamma`
        and `rho`.

        Raises
        ------
        InputError : no TOML, an unknown key, or an attribute that is lacking or out of range; names the column.
        """
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _not_toml(str(error)) from None
        _check_keys("", content, ("columns", "kernel"))
        tables = [_table(f"[{key}]", content.get(key, {})) for key in ("columns", "kernel")]
        _check_keys("[kernel]: ", tables[1], ("gamma", "rho"))
        return cls(tuple(_column(name, entry) for name, entry in tables[0].items()), **tables[1])

    def to_toml(self) -> str:
        """The schema as `parse` reads it."""
        kernel = [f"{key} = {value!r}" for key in ("gamma", "rho") if (value := getattr(self, key)) is not None]
        blocks = [["[kernel]", *kernel]] if kernel else []
        for column in self.columns:
            values = [(f.name, getattr(column, f.name), f.default) for f in fields(column) if f.name != "name"]
            keys = [f"{key} = {_toml(value)}" for key, value, default in values if value != default]
            blocks.append([f"[columns.{_key(column.name)}]", f'type = "{column.kind}"', *keys])
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def template(columns: Mapping[str, str]) -> str:
    """A schema to fill in, from names of columns and types of storage alone, never from values.

    Bounds, levels, and types that the storage leaves open (any but `real`, `integer` and `boolean`) are comments to
    complete; until they are, `Schema.parse` says what the first such column lacks.

    Parameters
    ----------
    columns : type of storage by name of column, as `Table.columns` has them.
    """
    blocks = [
        "# Everything in this file is public: take bounds and levels from what is known without the table.\n"
        "# Complete what is marked TODO. Remove a column's block to leave the column out of the release.\n"
        "# Values beyond the bounds are clamped. missing = true allows missing values in a column.\n"
    ]
    bounds = "# TODO low = \n# TODO high = \n"
    open_type = (
        '# TODO type = "category"  # or "real", "integer", "boolean"\n'
        '# TODO levels = ["...", "..."]  # of a category; ordered = true where neighbours are alike\n'
        "# TODO low = , high =  # of a real or an integer, on lines of their own\n"
    )
    for name, storage in columns.items():
        head = f'type = "{storage}"\n' if storage in ("real", "integer", "boolean") else open_type
        rest = bounds if storage in ("real", "integer") else ""
        blocks.append(f"[columns.{_key(name)}]\n{head}{rest}# missing = true\n")
    return "\n".join(blocks)


def _check_readable(column: Column, found: Floats, gaps: npt.NDArray[np.bool_], first_row: int) -> None:
    """Names the first place of a value that cannot be, and not the value: it is private."""
    refused = (found < 0) | (gaps & (not column.missing))
    if refused.any():
        at = int(refused.argmax())
        if gaps[at]:
            raise wrong(column.name, f"row {first_row + at} has no value", "one is wanted, or missing = true")
        raise wrong(column.name, f"row {first_row + at} cannot be read", f"{column.wanted} is wanted")


def _not_toml(message: str) -> InputError:
    place = re.search(r" \(at line (\d+), column \d+\)$", message)
    line = int(place[1]) if place else None
    double = re.search(r"Cannot (?:declare|overwrite|redefine).*?'columns', (['\"])(.*?)\1", message)
    if double:
        return InputError(f"column {double[2]!r} stands there twice", "once is wanted", source="schema", line=line)
    return InputError(f"no TOML: {message.partition(' (at')[0]}", source="schema", line=line)


def _table(where: str, found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InputError(f"{where} is no table", "a table of keys is wanted")
    return found


def _check_keys(where: str, found: Iterable[str], known: tuple[str, ...]) -> None:
    for key in found:
        if key not in known:
            raise InputError(f"{where}unknown key {key!r}", nearest(key, known, "the keys are"))


def _column(name: str, found: object) -> Column:
    entry = dict(_table(f"column {name!r}", found))
    if "type" not in entry:
        raise wrong(name, "it has no type", f"one of {', '.join(KINDS)} is wanted")
    kind = entry.pop("type")
    if not isinstance(kind, str) or kind not in KINDS:
        raise wrong(name, f"unknown type {kind!r}", nearest(str(kind), KINDS, "the types are"))
    keys = {f.name: f.default for f in fields(KINDS[kind]) if f.name != "name"}
    _check_keys(f"column {name!r}: ", entry, ("type", *keys))
    for key, default in keys.items():
        if default is REQUIRED and key not in entry:
            raise wrong(name, f"it has no {key}", f"a public one is wanted: {key} = ...")
    if isinstance(entry.get("levels"), list):
        entry["levels"] = tuple(str(x) if type(x) is int else x for x in entry["levels"])
    return KINDS[kind](name, **entry)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
