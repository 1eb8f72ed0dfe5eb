"""Files of float64 arrays with a JSON object about them, in the safetensors format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thesis_cli.base.arrays import Floats
from thesis_cli.base.errors import InputError

SUFFIX = ".safetensors"

MAX_BYTES = 2**30
"""Largest file that is read."""


class Form(NamedTuple):
    """A kind of file.

    Attributes
    ----------
    key : under which the metadata hold the JSON object.
    format : its text under `format`.
    arrays : names of the arrays.
    what : what such a file holds, for messages.
    remedy : what to give instead of another file.
    """

    key: str
    format: str
    arrays: tuple[str, ...]
    what: str
    remedy: str

    def to_bytes(self, arrays: Mapping[str, Floats], about: Mapping[str, Any]) -> bytes:
        """The content of a file; the same arrays give the same bytes."""
        from safetensors.numpy import save

        found = {name: np.ascontiguousarray(arrays[name], np.float64) for name in self.arrays}
        return bytes(save(found, {self.key: json.dumps({"format": self.format, **about}, sort_keys=True)}))

    def read(self, path: str | Path) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Arrays of a file, and what it says about them; raises as `read_any`."""
        return read_any(path, (self,))[1:]


def read_any(path: str | Path, forms: Sequence[Form]) -> tuple[Form, dict[str, Floats], dict[str, Any]]:
    """The form of a file, its arrays, and what it says about them.

    Parameters
    ----------
    forms : forms that it may have, under one key; messages name the first.

    Raises
    ------
    InputError : no such file, a damaged one, or one of another format; the message names it.
    """
    remedy = forms[0].remedy
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", remedy, source=path) from None
    if len(data) > MAX_BYTES:
        raise InputError(f"it is larger than {MAX_BYTES >> 20} MiB", remedy, source=path)
    try:
        return _parsed(data, forms)
    except InputError as error:
        raise error.at(path) from None


def _parsed(data: bytes, forms: Sequence[Form]) -> tuple[Form, dict[str, Floats], dict[str, Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    first = forms[0]
    try:
        arrays = load(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        about = json.loads(header["__metadata__"][first.key])
        known = about.pop("format")
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError):
        raise InputError(f"it holds no {first.what}", first.remedy) from None
    form = next((form for form in forms if form.format == known), None)
    if form is None:
        raise InputError(f"its format is {str(known)[:40]!r}", f"it must be {first.format!r}: {first.remedy}")
    for name in form.arrays:
        if name not in arrays or arrays[name].dtype != np.float64:
            raise InputError(f"its array {name} is missing, or not of float64", form.remedy)
    return form, {name: arrays[name] for name in form.arrays}, about
