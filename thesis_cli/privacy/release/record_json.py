"""Dataclasses as JSON, and back with every key checked."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from thesis_cli.base.errors import InputError
from thesis_cli.base.wording import nearest


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
