"""Public part of a release: its rows, a CSV file on disk, and their record in JSON, which has the privacy
guarantee, the origin, and the output of the mechanism.

`Record.to_json` writes the whole of it, and `files.parse_record` reads it. A record that comes from
a file is checked field by field, and an error names the file and the key. `written` and `read` turn
any of its dataclasses into JSON and back.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import UnionType
from typing import Any, ClassVar, Literal, Protocol, Union, get_args, get_origin, get_type_hints

import numpy as np

from thesis_cli.base.arrays import Floats, Ints
from thesis_cli.base.columns import Columns
from thesis_cli.base.errors import InputError, nearest
from thesis_cli.privacy.kernels import RowKernel, Rows
from thesis_cli.privacy.mechanisms.stages import Counted
from thesis_cli.privacy.tables.schema import Schema, Values

WEIGHT = "weight"
"""Name of the column of weights, if the CSV file has one."""
INLINE = "inline"
"""Mark of a field whose own fields are keys of the file."""


def written(value: object) -> Any:
    """A value as JSON holds it.

    Fields of a dataclass that has SPARSE = True are left out while they are None. The fields of one that
    is INLINE stand in its place.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found: dict[str, Any] = {}
        for f in dataclasses.fields(value):
            content = getattr(value, f.name)
            if f.metadata.get(INLINE):
                found |= written(content)
            elif not (content is None and _sparse(type(value))):
                found[f.metadata.get("key", f.name)] = written(content)
        return found
    if isinstance(value, tuple):
        return [written(x) for x in value]
    return dict(value) if isinstance(value, Mapping) else value


def read(kind: Any, value: object, key: str) -> Any:
    """A value of some type out of JSON.

    Raises
    ------
    InputError : it has another type; names its key.
    """
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        return _read_optional(get_args(kind), value, key)
    if dataclasses.is_dataclass(kind):
        return read_fields(kind, value, key)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise _wrong(key, value, nearest(str(value), get_args(kind)))
        return value
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise _wrong(key, value, "it must be a list")
        return tuple(read(get_args(kind)[0], x, f"{key}[{i}]") for i, x in enumerate(value))
    if get_origin(kind) is Mapping:
        if not isinstance(value, dict):
            raise _wrong(key, value, "it must be an object")
        return {name: read(str, x, f"{key}.{name}") for name, x in value.items()}
    return _read_scalar(kind, value, key)


def _read_optional(kinds: tuple[Any, ...], value: object, key: str) -> Any:
    return None if value is None else read(next(kind for kind in kinds if kind is not type(None)), value, key)


def read_fields(kind: Any, value: object, key: str = "", types: Mapping[str, Any] | None = None) -> Any:
    """A dataclass out of JSON.

    Parameters
    ----------
    types : types of fields whose declared type is general.

    Raises
    ------
    InputError : as for `read`.
    """
    if not isinstance(value, dict):
        raise _wrong(key, value, "it must be an object")
    hints, found = get_type_hints(kind) | dict(types or {}), {}
    fields = {f.name: f for f in dataclasses.fields(kind)}
    inline = {name: keys_of(hints[name]) for name, f in fields.items() if f.metadata.get(INLINE)}
    keys = {f.metadata.get("key", name): f for name, f in fields.items() if name not in inline}
    known = [*keys, *(name for names in inline.values() for name in names)]
    within = f"{key}." if key else ""
    for name in value:
        if name not in known:
            raise InputError(f"{within}{name} is an unknown key", nearest(name, known))
    for name, f in keys.items():
        if name in value:
            found[f.name] = read(hints[f.name], value[name], within + name)
        elif f.default is dataclasses.MISSING or not _sparse(kind):
            raise InputError(f"{within}{name} is missing", "a release has it")
    for name, own in inline.items():
        found[name] = read(hints[name], {part: value[part] for part in own if part in value}, key)
    return kind(**found)


def keys_of(kind: Any) -> list[str]:
    """Keys that a dataclass has in JSON."""
    return [f.metadata.get("key", f.name) for f in dataclasses.fields(kind)]


def _read_scalar(kind: Any, value: object, key: str) -> Any:
    if kind is str:
        fits, what = isinstance(value, str), "a text"
    elif kind is int:
        fits, what = isinstance(value, int) and not isinstance(value, bool) and value >= 0, "a whole number from 0"
    else:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        fits, what = number and math.isfinite(value), "a number"  # type: ignore[arg-type]
    if not fits:
        raise _wrong(key, value, f"it must be {what}")
    return value


def _wrong(key: str, value: object, remedy: str) -> InputError:
    return InputError(f"{key} is {json.dumps(value, ensure_ascii=False)[:60]}", remedy)


def _sparse(kind: Any) -> bool:
    return getattr(kind, "SPARSE", False)


FORMAT = "thesis-cli private release 1"


@dataclass(frozen=True)
class PrivacyGuarantee:
    """Differential privacy that the release guarantees.

    Attributes
    ----------
    epsilon, delta : budget that the release spends.
    neighbours : pairs of tables that the guarantee is about, in words.
    rows : number N of private rows; None if it is secret, and `Record.counted` estimates it.
    """

    epsilon: float
    delta: float
    neighbours: str
    rows: int | None


@dataclass(frozen=True)
class KernelRecord:
    """Parameters of the kernel, as in `RowKernel`."""

    gamma: tuple[float, ...]
    rho: tuple[float, ...]


@dataclass(frozen=True)
class Made:
    """Settings by which the rows beside a record were made from it.

    Attributes
    ----------
    rows, weights, weight_bound, time_limit : as `synthetic` takes them.
    """

    rows: int | None
    weights: str
    weight_bound: float = field(metadata={"key": "most"})
    time_limit: float | None


class Proof(Protocol):
    """Account of a mechanism: its source of randomness, with the scales and the privacy that follow."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Everything that a release makes public, in the order of the file.

    Attributes
    ----------
    promise : differential privacy of the release.
    method, size, basis : how the table was embedded; `size` counts random features, public points
        or rows.
    entropy : seed of the public random draws, which are not part of the noise.
    kernel : kernel on encoded rows.
    schema_text : the schema in TOML; `schema` is the parsed one. Its key in the file is `schema`.
    public : facts that were public before the release, in words.
    versions : versions of this program and of its libraries.
    mechanism : noise on the vector or vectors, or the choice of a small table; its type is that of
        the method's implementation.
    counted : noisy number of private rows, if it is secret; the noise of `mechanism` is then that
        of quotients by it.
    link : column of the rows that links them to those of another record, if there is one (`linked`).
    output : output of the mechanism, of the type of the method's implementation; its fields are keys
        of the file.
    objective : squared distance of the synthetic rows to the noisy vector, where rows were fitted.
    made : settings of the rows beside the record, if there are any.
    """

    SPARSE: ClassVar[bool] = True

    promise: PrivacyGuarantee
    method: str
    size: int
    basis: str
    entropy: int
    kernel: KernelRecord
    schema_text: str = field(metadata={"key": "schema"})
    public: tuple[str, ...]
    versions: Mapping[str, str]
    mechanism: Proof
    counted: Counted | None = None
    link: str | None = None
    output: object = field(metadata={INLINE: True})
    objective: float | None = None
    made: Made | None = None

    @cached_property
    def schema(self) -> Schema:
        """Columns of the release."""
        return Schema.parse(self.schema_text)

    @property
    def count(self) -> Counted:
        """Number of private rows; without noise if it is public."""
        if self.counted is not None:
            return self.counted
        assert self.promise.rows is not None
        return Counted(self.promise.rows, 0.0, 1, self.promise.rows)

    def to_json(self) -> str:
        """Text of the record's file, whose key `sha256` is the digest of all others."""
        content = {"format": FORMAT, **written(self)}
        return json.dumps({**content, "sha256": content_digest(content)}, indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Release:
    """Released rows, their weights and their record; all of it is public.

    Attributes
    ----------
    schema : columns of the rows.
    points : encoded rows, M of them.
    weights : weights of the rows, shape (M,); of any sign for a release in the span of points
        (Algorithm 2).
    record : privacy guarantee and origin of the rows.
    keys : numbers in the column `record.link` of each row, if it has one.
    """

    schema: Schema
    points: Rows
    weights: Floats
    record: Record
    keys: Ints | None = None

    @property
    def kernel(self) -> RowKernel:
        """RowKernel on the encoded rows."""
        return self.schema.kernel()

    @property
    def columns(self) -> dict[str, Values]:
        """Decoded rows: an array of M values by name of column."""
        return self.schema.decode(self.points)


def rows_columns(release: Release, *, weighted: bool) -> Columns:
    """The rows, with reals rounded as in the file, their keys, if they have some, and a column `weight` if
    `weighted`.
    """
    decoded = release.columns
    columns = dict(decoded) if release.keys is None else {str(release.record.link): release.keys, **decoded}
    for column in release.schema.encoded:
        columns[column.name] = column.rounded(decoded[column.name])
    return Columns({**columns, WEIGHT: release.weights} if weighted else columns)


def rows_text(release: Release, *, weighted: bool) -> str:
    """Rows as CSV text, with a column `weight` if `weighted`."""
    return rows_columns(release, weighted=weighted).csv()


def uniform_weights(points: Rows) -> Floats:
    """Weights 1/M of the baseline (Thesis section 4.4), shape (M,); they depend on the points alone."""
    return np.full(len(points), 1 / len(points))


def content_digest(content: Mapping[str, object]) -> str:
    """SHA-256 of the content of a record, whatever its layout."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
