"""Public record of a release: its promise, how it was made, and the output of the mechanism; JSON
on disk.

`Record.to_json` and `Record.from_json` write and read the whole of it. A record that comes from a
file is checked field by field, and an error names the file and the key.

`written` and `read` turn any of its dataclasses into JSON and back.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import nearest
from thesis_cli.privacy.kernels import Rows
from thesis_cli.privacy.mechanisms.mechanism import Calibration
from thesis_cli.privacy.tables.schema import Schema


def written(value: object) -> Any:
    """A value as JSON holds it.

    Fields of a dataclass that has SPARSE = True are left out while they are None.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {}
        for f in dataclasses.fields(value):
            content = getattr(value, f.name)
            if not (content is None and _sparse(type(value))):
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
        return _read_union(get_args(kind), value, key)
    if dataclasses.is_dataclass(kind):
        return _read_fields(kind, value, key)
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


def _read_union(kinds: tuple[Any, ...], value: object, key: str) -> Any:
    """None, or the one of several dataclasses whose keys are the most like those that are there."""
    if type(None) in kinds:
        if value is None:
            return None
        kinds = tuple(kind for kind in kinds if kind is not type(None))
    keys = set(value) if isinstance(value, dict) else set()
    if len(kinds) > 1:
        kinds = (min(kinds, key=lambda kind: len(keys ^ {f.name for f in dataclasses.fields(kind)})),)
    return read(kinds[0], value, key)


def _read_fields(kind: Any, value: object, key: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(key, value, "it must be an object")
    hints, found = get_type_hints(kind), {}
    keys = {f.metadata.get("key", f.name): f for f in dataclasses.fields(kind)}
    within = f"{key}." if key else ""
    for name in value:
        if name not in keys:
            raise InputError(f"{within}{name} is an unknown key", nearest(name, keys))
    for name, f in keys.items():
        if name in value:
            found[f.name] = read(hints[f.name], value[name], within + name)
        elif f.default is dataclasses.MISSING or not _sparse(kind):
            raise InputError(f"{within}{name} is missing", "a release has it")
    return kind(**found)


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
CHANGED = "its content is not that of its sha256", "take the file as dp-release wrote it"
NOT_A_RECORD = "it is not the record of a release", "it must be a file that dp-release wrote"

Method = Literal["copula", "features", "marginals", "subspace", "exponential"]
Favour = Literal["balance", "marginals", "correlations", "rows"]
"""What the rows of a release by copula should keep best."""
Algorithm = Literal["mst", "aim"]
"""Choice of the marginals that a release by marginals measures."""


@dataclass(frozen=True)
class Promise:
    """Differential privacy that the release promises.

    Attributes
    ----------
    epsilon, delta : budget that the release spends.
    neighbours : which pairs of tables the promise is about.
    rows : number N of private rows; None if it is secret, and `Record.counted` estimates it.
    """

    epsilon: float
    delta: float
    neighbours: str
    rows: int | None


@dataclass(frozen=True)
class Counted:
    """Number of private rows that count.

    Attributes
    ----------
    rows : the number with noise, at least 1; without noise if it is public.
    deviation : standard deviation of the noise.
    most : largest number of rows of a person that count; 1 if each row is a person.
    effective : number of rows with one for each person and a public number whose means would have
        noise of the same scale.
    """

    rows: float
    deviation: float
    most: int
    effective: int


@dataclass(frozen=True)
class KernelRecord:
    """Parameters of the kernel, as in `Kernel`."""

    gamma: tuple[float, ...]
    rho: tuple[float, ...]


@dataclass(frozen=True)
class Selection:
    """Choice of a small table by the exponential mechanism.

    Attributes
    ----------
    points, domain, candidates : rows of each small table, rows of the domain, and number of small
        tables.
    mechanism : name of the mechanism that chose.
    scale : scale of its noise.
    epsilon, delta : privacy that it proves.
    sensitivity : sensitivity of each score.
    """

    points: int
    domain: int
    candidates: int
    mechanism: str
    scale: float
    epsilon: float
    delta: float
    sensitivity: float


@dataclass(frozen=True)
class Staged:
    """Gaussian noise on several vectors, each of which may depend on the noisy ones before it.

    Attributes
    ----------
    mechanism : source of the noise, and the composition of the stages.
    total : rho of the budget, which the stages share.
    rho : sum of the rhos of the stages, at most `total`.
    epsilon, delta : privacy of that sum, by OpenDP's conversion.
    """

    mechanism: str
    total: float
    rho: float
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Stage:
    """One noisy vector of several.

    Attributes
    ----------
    name, share : what the vector is, and its share of the rho of the budget.
    sensitivity : L2 sensitivity of the vector before it is rounded.
    scale, granularity, rho : noise on each coordinate, as in `Calibration`.
    vector : noisy vector.
    """

    name: str
    share: float
    sensitivity: float
    scale: float
    granularity: float
    rho: float
    vector: tuple[float, ...]


@dataclass(frozen=True)
class Measured:
    """Measurement of marginals by OpenDP.

    Attributes
    ----------
    mechanism, algorithm : source of the noise, and choice of the marginals.
    contributions : rows in which neighbours differ by adding or removing; a replaced row is two.
    rho : rho of zero-concentrated differential privacy of the choice and the noise together.
    epsilon, delta : privacy of that rho, by OpenDP's conversion.
    """

    mechanism: str
    algorithm: Algorithm
    contributions: int
    rho: float
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Marginal:
    """Noisy counts of the cells of one or two columns, or of more.

    Attributes
    ----------
    columns : names of the columns.
    deviation : standard deviation of the noise on each count.
    counts : counts, of the cells of the last column fastest.
    """

    columns: tuple[str, ...]
    deviation: float
    counts: tuple[float, ...]


@dataclass(frozen=True)
class SmallTable:
    """Encoded rows that the exponential mechanism chose: `Rows` as JSON holds them."""

    reals: tuple[tuple[float, ...], ...]
    codes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rows: Rows) -> SmallTable:
        """Rows as JSON holds them."""
        return cls(tuple(map(tuple, rows.reals.tolist())), tuple(map(tuple, rows.codes.tolist())))

    def rows(self) -> Rows:
        """Encoded rows, M of them."""
        return Rows(np.array(self.reals, np.float64), np.array(self.codes, np.int64))


CONTENTS: dict[Method, tuple[type, str]] = {
    "copula": (Staged, "stages"),
    "features": (Calibration, "vector"),
    "marginals": (Measured, "marginals"),
    "subspace": (Calibration, "vector"),
    "exponential": (Selection, "rows"),
}
"""Mechanism of each method, and the field that holds its output."""


@dataclass(frozen=True)
class Made:
    """How the rows beside a record were made from it.

    Attributes
    ----------
    rows, weights, most, time_limit : as `synthetic` takes them.
    """

    rows: int | None
    weights: str
    most: float
    time_limit: float | None


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
    public : what was public before the release, in words.
    versions : versions of this program and of its libraries.
    mechanism : noise on the vector or vectors, or the choice of a small table.
    counted : noisy number of private rows, if it is secret; the noise of `mechanism` is then that
        of quotients by it.
    favour : what the rows should keep best, if the method is asked for it.
    vector : noisy embedding, if the method makes one.
    stages, marginals : noisy vectors of a release by copula, noisy counts of one by marginals.
    rows : the small table, if the exponential mechanism chose one.
    objective : squared distance of the synthetic rows to `vector`, where rows were fitted.
    made : how the rows beside the record were made, if there are any.
    """

    SPARSE: ClassVar[bool] = True

    promise: Promise
    method: Method
    size: int
    basis: str
    entropy: int
    kernel: KernelRecord
    schema_text: str = field(metadata={"key": "schema"})
    public: tuple[str, ...]
    versions: Mapping[str, str]
    mechanism: Calibration | Selection | Staged | Measured
    counted: Counted | None = None
    favour: Favour | None = None
    vector: tuple[float, ...] | None = None
    stages: tuple[Stage, ...] | None = None
    marginals: tuple[Marginal, ...] | None = None
    rows: SmallTable | None = None
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

    @property
    def noisy_vector(self) -> tuple[tuple[float, ...], Calibration]:
        """The noisy embedding and its noise.

        Raises
        ------
        InputError : the release has none; the exponential mechanism chose a table.
        """
        if self.vector is None or not isinstance(self.mechanism, Calibration):
            raise InputError(f"a release by {self.method} has no noisy vector", "it must be by features or subspace")
        return self.vector, self.mechanism

    def to_json(self) -> str:
        """Text of the record's file, whose key `sha256` is the digest of all others."""
        content = {"format": FORMAT, **written(self)}
        return json.dumps({**content, "sha256": _digest(content)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str | Path = "the record") -> Record:
        """Read the text of a record's file.

        Parameters
        ----------
        source : file that errors name.

        Raises
        ------
        InputError : the text is no record, or was changed; names the key that is wrong, unknown or
            missing. Records of earlier versions of this program have no digest.
        """
        from thesis_cli.privacy.release.checks import check

        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(*NOT_A_RECORD, source=source) from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise InputError(*NOT_A_RECORD, source=source)
        digest = content.pop("sha256", None)
        if digest not in (None, _digest(content)):
            raise InputError(*CHANGED, source=source)
        try:
            record: Record = read(cls, {key: value for key, value in content.items() if key != "format"}, "")
            check(record)
        except InputError as error:
            raise InputError(error.problem, error.remedy, source=source) from None
        return record


def _digest(content: Mapping[str, object]) -> str:
    """SHA-256 of the content of a record, whatever its layout."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
