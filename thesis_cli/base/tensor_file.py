"""Files of float64 arrays with a JSON object about them, in the safetensors format."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
        """Arrays of a file, and what it says about them.

        Raises
        ------
        InputError : no such file, a damaged one, or one of another format; the message names it.
        """
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise InputError(f"it cannot be read ({error.strerror})", self.remedy, source=path) from None
        if len(data) > MAX_BYTES:
            raise InputError(f"it is larger than {MAX_BYTES >> 20} MiB", self.remedy, source=path)
        try:
            return self._parsed(data)
        except InputError as error:
            raise error.at(path) from None

    def _parsed(self, data: bytes) -> tuple[dict[str, Floats], dict[str, Any]]:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            arrays = load(data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            about = json.loads(header["__metadata__"][self.key])
            known = about.pop("format")
        except (SafetensorError, ValueError, LookupError, TypeError, AttributeError):
            raise InputError(f"it holds no {self.what}", self.remedy) from None
        if known != self.format:
            raise InputError(f"its format is {str(known)[:40]!r}", f"it must be {self.format!r}: {self.remedy}")
        for name in self.arrays:
            if name not in arrays or arrays[name].dtype != np.float64:
                raise InputError(f"its array {name} is missing, or not of float64", self.remedy)
        return {name: arrays[name] for name in self.arrays}, about
